"""Dates and times in one layout per column.

A layout is written with the codes of `strftime`: ``%Y %y %m %d %b %B %H %I %M %S %p %z``, a dash
after the percent sign where a number has no leading zero (``%-d``), a caret where a name is in
capitals (``%^b``), and ``%3f`` for three digits of a second's fraction.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.files.cells.formats import ColumnFormat

__all__ = ["Dates", "guess_layouts", "read_dates", "type_of", "usual_offset", "write_dates"]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_NAME = "|".join([*_MONTHS, *(month[:3] for month in _MONTHS), "Sept"])
_CODE = re.compile(r"%([-^]?[A-Za-z]|[1-9]f)")
_PARTS = {
    "Y": r"[0-9]{4}",
    "y": r"[0-9]{2}",
    "m": r"[0-9]{1,2}",
    "d": r"[0-9]{1,2}",
    "b": rf"(?i:{_NAME})",
    "H": r"[0-9]{1,2}",
    "I": r"[0-9]{1,2}",
    "M": r"[0-9]{2}",
    "S": r"[0-9]{2}",
    "f": r"[0-9]{1,9}",
    "p": r"[AaPp][Mm]",
    "z": r"Z|[+-][0-9]{2}:?[0-9]{2}",
}
_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_NUMBERS = ("m", "d", "H", "I", "M", "S", "y")
# Years of two digits, as POSIX reads them.
_PIVOT = 69
_EARLIEST, _LATEST = 1800, 2200

_DATE = re.compile(
    rf"(?:(?P<y1>\d{{4}})(?P<s1>[-/.])(?P<m1>\d{{1,2}})(?:(?P=s1)(?P<d1>\d{{1,2}}))?"
    rf"|(?P<a>\d{{1,2}})(?P<s2>[-/.])(?P<b>\d{{1,2}})(?P=s2)(?P<y2>\d{{4}}|\d{{2}})"
    rf"|(?P<d3>\d{{1,2}})(?P<s3>[ -])(?P<n3>{_NAME})(?P=s3)(?P<y3>\d{{4}}|\d{{2}})"
    rf"|(?P<n4>{_NAME}) (?P<d4>\d{{1,2}})(?P<c4>,?) (?P<y4>\d{{4}})"
    rf"|(?P<y5>\d{{4}})(?P<m5>\d{{2}})(?P<d5>\d{{2}}))",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(?P<gap>[ T]|, )(?P<h>\d{1,2}):(?P<min>\d{2})"
    r"(?::(?P<s>\d{2})(?:(?P<dot>[.,])(?P<f>\d{1,9}))?)?"
    r"(?:(?P<space> ?)(?P<p>[AP]M))?(?P<zgap> ?)(?P<z>Z|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
)
_FRACTION = re.compile(r":\d\d[.,](\d+)")
_OFFSET = re.compile(r"(?:Z|[+-]\d{2}:?\d{2})$")


@dataclass(frozen=True)
class Dates:
    """A column of text read as dates.

    Parameters
    ----------
    values : pyarrow.ChunkedArray of date32 or timestamp
        The dates, null where there is none.
    bad : ndarray of bool or None
        Where there is a text that is no date of this layout; None if there is none such.
    """

    values: Any
    bad: Bools | None


def guess_layouts(sample: Sequence[str]) -> list[str]:
    """Return the layouts that a column may have, judged by some of its cells.

    There are two where day and month could be either way round, the likelier one first.

    Examples
    --------
    >>> guess_layouts(["2024-03-01T12:30Z"]), guess_layouts(["1.2.2024"])
    (['%Y-%m-%dT%H:%M%z'], ['%-d.%-m.%Y', '%-m.%-d.%Y'])
    """
    if not sample:
        return []
    date = _DATE.match(sample[0])
    if date is None:
        return []
    time = ""
    if date.end() < len(sample[0]):
        found = _TIME.fullmatch(sample[0], date.end())
        if found is None:
            return []
        time = _time_layout(found, sample)
    layouts = [layout + time for layout in _date_layouts(date, sample)]
    return [layout for layout in layouts if _is_plausible(layout, sample[0])]


def _date_layouts(date: re.Match[str], sample: Sequence[str]) -> list[str]:
    part = date.groupdict()
    if part["y1"]:
        gap, m, d = part["s1"], _padded("m", "s1", sample), _padded("d", "s1", sample)
        return [f"%Y{gap}{m}{gap}{d}" if part["d1"] else f"%Y{gap}{m}"]
    if part["a"]:
        gap, m, d = part["s2"], _padded("m", "s2", sample), _padded("d", "s2", sample)
        year = "%Y" if len(part["y2"]) == 4 else "%y"
        layouts = [f"{d}{gap}{m}{gap}{year}", f"{m}{gap}{d}{gap}{year}"]
        return layouts[::-1] if gap == "/" else layouts
    if part["n3"]:
        gap, year = part["s3"], "%Y" if len(part["y3"]) == 4 else "%y"
        return [f"{_padded('d', 's3', sample)}{gap}{_month_name(part['n3'])}{gap}{year}"]
    if part["n4"]:
        return [f"{_month_name(part['n4'])} {_padded('d', 'n4', sample)}{part['c4']} %Y"]
    return ["%Y%m%d"]


def _padded(code: str, group: str, sample: Sequence[str]) -> str:
    """Return the code of a number, without its leading zero if some cell is written so."""
    groups = {"s1": ("m1", "d1"), "s2": ("a", "b"), "s3": ("d3",), "n4": ("d4",)}[group]
    for text in sample:
        match = _DATE.match(text)
        if match and any(len(match[name] or "00") == 1 for name in groups):
            return f"%-{code}"
    return f"%{code}"


def _month_name(name: str) -> str:
    code = "b" if len(name) == 3 else "B"
    return f"%^{code}" if name.isupper() else f"%{code}"


def _time_layout(time: re.Match[str], sample: Sequence[str]) -> str:
    code = "I" if time["p"] else "H"
    short = any(re.search(r"(?<!\d)\d:\d\d", text) for text in sample)
    layout = time["gap"] + (f"%-{code}" if short else f"%{code}") + ":%M"
    if time["s"]:
        layout += ":%S"
    if time["f"]:
        digits = max(
            (len(found[1]) for text in sample if (found := _FRACTION.search(text))), default=1
        )
        layout += f"{time['dot']}%{digits}f"
    if time["p"]:
        layout += time["space"] + ("%p" if time["p"].isupper() else "%-p")
    if time["z"]:
        layout += time["zgap"] + "%z"
    return layout


def _is_plausible(layout: str, text: str) -> bool:
    """Whether eight digits in a row, or a year and a month, can be meant as a date."""
    if layout not in ("%Y%m%d", "%Y-%m", "%Y/%m", "%Y.%m", "%Y-%-m", "%Y/%-m", "%Y.%-m"):
        return True
    return "." not in layout and _EARLIEST <= int(text[:4]) <= _LATEST


def read_dates(texts: Any, layout: str) -> Dates:
    """Read a column of text as dates of one layout.

    Parameters
    ----------
    texts : pyarrow.ChunkedArray of string
        The cells without surrounding space, null where missing.
    layout : str
        Their layout.
    """
    chunks, bad = [], []
    for chunk in texts.chunks:
        values, wrong = _read_chunk(chunk, layout)
        chunks.append(values)
        bad.append(wrong)
    wrong = np.concatenate(bad) if bad else np.zeros(0, dtype=bool)
    return Dates(pa.chunked_array(chunks, type=type_of(layout)), wrong if wrong.any() else None)


def _read_chunk(texts: Any, layout: str) -> tuple[Any, Bools]:
    observed = texts.is_valid().to_numpy(zero_copy_only=False)
    found = pc.extract_regex(texts, f"^{_pattern(layout)}$")
    matched = found.is_valid().to_numpy(zero_copy_only=False)
    parts = {field.name: pc.struct_field(found, [k]) for k, field in enumerate(found.type)}
    number = {
        name: _integers(parts[name], matched) for name in parts if name not in ("b", "p", "z", "f")
    }
    if "y" in number:
        number["Y"] = number["y"] + np.where(number["y"] < _PIVOT, 2000, 1900)
    if "b" in parts:
        number["m"] = _months(parts["b"])
    day = number.get("d", np.ones(len(texts), dtype=np.int64))
    months = (number["Y"] - 1970) * 12 + number["m"] - 1
    days = months.astype("M8[M]").astype("M8[D]").astype(np.int64) + day - 1
    good = matched & (number["m"] >= 1) & (number["m"] <= 12) & (day >= 1)
    good &= days.astype("M8[D]").astype("M8[M]").astype(np.int64) == months
    kind = type_of(layout)
    if pa.types.is_date(kind):
        values = pa.array(days.astype(np.int32), mask=~good).cast(kind)
        return values, observed & ~good
    seconds, fine = _seconds(number, parts, matched)
    good &= fine
    per_second = _PER_SECOND[kind.unit]
    counts = (days * 86_400 + seconds) * per_second
    if "f" in parts:
        padded = pc.utf8_rpad(pc.fill_null(parts["f"], "0"), width=9, padding="0")
        counts += padded.cast(pa.int64()).to_numpy(zero_copy_only=False) // (10**9 // per_second)
    return pa.array(counts, mask=~good).cast(kind), observed & ~good


def _seconds(
    number: dict[str, Integers], parts: dict[str, Any], matched: Bools
) -> tuple[Integers, Bools]:
    """Return the seconds since midnight in UTC, and whether there is such a time."""
    zero = np.zeros(matched.size, dtype=np.int64)
    minute, second = number["M"], number.get("S", zero)
    fine = (minute < 60) & (second < 60)
    if "I" in number:
        afternoon = pc.fill_null(pc.starts_with(pc.utf8_lower(parts["p"]), "p"), False)
        hour = number["I"] % 12 + 12 * afternoon.to_numpy(zero_copy_only=False)
        fine &= (number["I"] >= 1) & (number["I"] <= 12)
    else:
        hour = number["H"]
        fine &= hour < 24
    seconds = hour * 3600 + minute * 60 + second
    if "z" in parts:
        digits = pc.replace_substring_regex(parts["z"], "[Z:]", "")
        digits = pc.replace_substring_regex(pc.fill_null(digits, ""), r"^(\+|)$", "0000")
        digits = pc.replace_substring_regex(digits, r"^\+", "")
        offset = digits.cast(pa.int64()).to_numpy(zero_copy_only=False)
        seconds -= np.sign(offset) * (np.abs(offset) // 100 * 3600 + np.abs(offset) % 100 * 60)
    return seconds, fine


def _integers(texts: Any, matched: Bools) -> Integers:
    values: Integers = pc.fill_null(texts, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.where(matched, values, 1)


def _months(names: Any) -> Integers:
    short = pc.utf8_slice_codeunits(pc.utf8_lower(names), 0, 3)
    known = pa.array([month[:3].lower() for month in _MONTHS])
    found: Integers = pc.fill_null(pc.index_in(short, value_set=known), -1).to_numpy(
        zero_copy_only=False
    )
    return found.astype(np.int64) + 1


def _pattern(layout: str) -> str:
    """Return the expression that takes a text of a layout apart."""
    parts, end = [], 0
    for match in _CODE.finditer(layout):
        name = match[1].lstrip("-^123456789")
        name = "b" if name == "B" else name
        parts += [re.escape(layout[end : match.start()]), f"(?P<{name}>{_PARTS[name]})"]
        end = match.end()
    return "".join([*parts, re.escape(layout[end:])])


def type_of(layout: str) -> Any:
    """Return the arrow type that holds dates of a layout."""
    if "%M" not in layout:
        return pa.date32()
    fraction = re.search(r"%(\d)f", layout)
    digits = int(fraction[1]) if fraction else 0
    unit = next(unit for most, unit in _UNITS.items() if digits <= most)
    return pa.timestamp(unit, tz="UTC" if "%z" in layout else None)


def write_dates(values: Any, shape: ColumnFormat) -> list[str]:
    """Write dates like the others of their column.

    Parameters
    ----------
    values : pyarrow.Array of date32 or timestamp
        The dates, none of them null.
    shape : ColumnFormat
        The column.

    Examples
    --------
    >>> import datetime
    >>> from grapefill.files.cells.formats import ColumnFormat
    >>> write_dates(pa.array([datetime.date(2024, 3, 1)]), ColumnFormat("date", layout="%-d %b %Y"))
    ['1 Mar 2024']
    """
    if pa.types.is_date(values.type):
        seconds = values.cast(pa.date32()).cast(pa.int32()).to_numpy().astype(np.int64) * 86_400
        fraction = np.zeros_like(seconds)
    else:
        per_second = _PER_SECOND[values.type.unit]
        counts = values.cast(pa.int64()).to_numpy()
        seconds, fraction = counts // per_second, counts % per_second * (10**9 // per_second)
    if shape.offset and shape.offset != "Z":
        digits = int(shape.offset.replace(":", ""))
        seconds = seconds + np.sign(digits) * (abs(digits) // 100 * 3600 + abs(digits) % 100 * 60)
    moments = seconds.astype("M8[s]")
    months = moments.astype("M8[M]")
    years = months.astype(np.int64) // 12 + 1970
    days = (moments.astype("M8[D]") - months.astype("M8[D]")).astype(np.int64) + 1
    parts = (years, months.astype(np.int64) % 12 + 1, days, seconds % 86_400, fraction)
    rows = zip(*(part.tolist() for part in parts), strict=True)
    return [_write_one(shape, row) for row in rows]


def _write_one(shape: ColumnFormat, moment: tuple[int, ...]) -> str:
    year, month, day, second, fraction = moment
    hour = second // 3600

    def part(match: re.Match[str]) -> str:
        code = match[1]
        name = code.lstrip("-^")
        if name in _NUMBERS:
            value = {
                "m": month,
                "d": day,
                "H": hour,
                "I": (hour - 1) % 12 + 1,
                "M": second // 60 % 60,
                "S": second % 60,
                "y": year % 100,
            }[name]
            return str(value) if code.startswith("-") else f"{value:02d}"
        if name in ("b", "B"):
            written = _MONTHS[month - 1][: 3 if name == "b" else None]
            return written.upper() if code.startswith("^") else written
        if name == "p":
            written = "AM" if hour < 12 else "PM"
            return written.lower() if code.startswith("-") else written
        if name == "Y":
            return f"{year:04d}"
        return shape.offset if name == "z" else f"{fraction:09d}"[: int(code[0])]

    return _CODE.sub(part, shape.layout)


def usual_offset(sample: Sequence[str]) -> str:
    """Return the distance from UTC that most of the cells have.

    Examples
    --------
    >>> usual_offset(["2024-03-01T00:00+01:00", "2024-03-02T00:00+01:00", "2024-07-02T00:00Z"])
    '+01:00'
    """
    found = Counter(match[0] for text in sample if (match := _OFFSET.search(text)))
    return found.most_common(1)[0][0] if found else "Z"
