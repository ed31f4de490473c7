"""Notes on columns of text that may have been meant as numbers or dates, or have marks in them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import warn
from grapefill.files.cells.dates import guess_layouts, read_dates
from grapefill.files.cells.lines import MOST_LINES, Mixture, shown
from grapefill.files.cells.numbers import STYLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy.typing as npt

__all__ = ["MOSTLY", "TextColumn", "count_marks", "warn_of_marks", "warn_of_meaning"]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")

MOSTLY = 0.75
"""So much of a column must be numbers for another text in it to be worth a warning."""

# What may stand around a number: percent, currencies, parentheses, another minus, spaces.
_SIGNS = "%\u2030$€£¥₹()\u2212 \u00a0\u202f"
_NUMBER = r"[+-]?[0-9.,][0-9.,' \x{a0}]*"
_UNIT = r"(?:\p{L}+|°\p{L}?)[²³23]?(?:/\p{L}+[²³23]?)?"
_UNIT_BEHIND = re.compile(r"(.*[0-9.,])\s?((?:[^\W\d_]+|°[^\W\d_]?)[²³23]?(?:/[^\W\d_]+[²³23]?)?)")
# Three digits behind a mark may be thousands.
_DECIMALS = tuple(rf"^[+-]?[0-9]*{mark}(?:[0-9]{{1,2}}|[0-9]{{4,}})$" for mark in (r"\.", ","))
_TIME_OF_DAY = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?: ?[AaPp]\.?[Mm]\.?)?")
# Texts of a column that are looked at one by one, and columns that a note names so.
_SOME = 100
_MOST_COLUMNS = 10


@dataclass(frozen=True)
class TextColumn:
    """A column that was read as text.

    Parameters
    ----------
    name : str
        The column.
    texts : pyarrow.ChunkedArray of string
        Its cells, null where missing.
    sample : list of str
        Some of them, without marks for missing cells.
    observed : int
        How many cells have a value.
    almost : tuple or None
        The best reading as ``"numbers"`` or ``"dates"`` that failed, and the cells where it did.
    marks : frozenset of str
        Texts that stand for missing cells where all else is numbers or dates.
    """

    name: str
    texts: Any
    sample: list[str]
    observed: int
    almost: tuple[str, npt.NDArray[np.bool_]] | None
    marks: frozenset[str]

    def where_in(self, texts: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Return which cells hold one of some texts."""
        known = pa.array(sorted(texts), type=pa.string())
        found: npt.NDArray[np.bool_] = pc.is_in(self.texts, value_set=known).to_numpy()
        return found


@dataclass(frozen=True)
class _Form:
    """What numbers may have around them.

    Parameters
    ----------
    what : str
        The same in words.
    pattern : str
        The cells with it, in a column that is known to be of such numbers, as arrow writes it.
    advice : str
        What to do.
    """

    what: str
    pattern: str
    advice: str


_AS_NUMBERS = "if they are to be filled in as numbers."
_FORMS = {
    "limit": _Form(
        "limits among them",
        r"^[<>≤≥]",
        "A limit is no missing cell: it tells that the number is small, or large. To have numbers "
        "filled in, write a number in place of each, such as 0.25 for '<0.5'; or leave the text.",
    ),
    "parentheses": _Form(
        "parentheses around them",
        r"^\(.*\)$",
        f"Write '-' instead of parentheses that mean minus, {_AS_NUMBERS}",
    ),
    "sign": _Form(
        "signs around them",
        rf"^[{re.escape(_SIGNS)}].*[0-9]|[0-9].*[{re.escape(_SIGNS)}]$",
        f"Remove the signs, and write minus as '-', {_AS_NUMBERS}",
    ),
    "unit": _Form(
        "units behind them",
        rf"^{_NUMBER}{_UNIT}$",
        f"Remove the units, and write all in the same one, {_AS_NUMBERS}",
    ),
}
_TIMES = _Form(
    "",
    r"^[0-9]{1,2}:[0-9]{2}",
    f"Write them as numbers, such as 8.5 for 08:30, {_AS_NUMBERS}",
)


def warn_of_meaning(column: TextColumn, file: str, where: Callable[[int], str]) -> Mixture | None:
    """Warn if a column of text seems to hold numbers or dates.

    Parameters
    ----------
    column : TextColumn
        The column.
    file : str
        What to call the file.
    where : callable
        Returns for a row what to call it.

    Returns
    -------
    Mixture or None
        What else is among its numbers or dates, of which there is no warning yet: other columns
        may have it in the same line.
    """
    title = f"Column {column.name!r} of {file}"
    forms = {text: _form_of(text) for text in set(column.sample)}
    counts = Counter(forms[text] for text in column.sample)
    form = _usual_form(forms, counts)
    if form is not None:
        found = _places(column, form, forms, _FORMS[form].pattern, where)
        what, advice = _FORMS[form].what, _FORMS[form].advice
        warn(f"{title} is text, since its numbers have {what}: {found}. {advice}")
    elif column.sample and counts["time"] >= MOSTLY * len(column.sample):
        found = _places(column, "time", forms, _TIMES.pattern, where)
        warn(f"{title} is text, since it holds times of day: {found}. {_TIMES.advice}")
    elif counts["number"] >= MOSTLY * len(column.sample) and (
        found := _both_decimal_marks(column, where)
    ):
        warn(
            f"{title} is text, since its numbers have more than one decimal mark: {found}. Write "
            "all of them with the same mark."
        )
    else:
        return _find_mixture(column, title, where)
    return None


def _form_of(text: str) -> str | None:
    """Return what a number has around it, ``"number"`` for nothing, None for another text."""
    if not any(map(str.isdecimal, text)):
        return None
    if _is_number(text):
        return "number"
    if _TIME_OF_DAY.fullmatch(text):
        return "time"
    if text[0] in "<>≤≥":
        inside = _form_of(text.lstrip("<>≤≥= "))
        return None if inside in (None, "time") else "limit"
    if _is_number(text.strip(_SIGNS)):
        return "parentheses" if text[0] == "(" and text[-1] == ")" else "sign"
    match = _UNIT_BEHIND.fullmatch(text)
    return "unit" if match and _is_number(match[1].strip()) else None


def _is_number(text: str) -> bool:
    return any(style.pattern.fullmatch(text) for style in STYLES)


def _usual_form(forms: Mapping[str, str | None], counts: Counter[str | None]) -> str | None:
    """Return what most numbers of a column have around them that are not plain, if any."""
    total, odd = counts.total(), counts.total() - counts["number"]
    known = {form: counts[form] for form in _FORMS if counts[form]}
    if not known or sum(known.values()) + counts["number"] < MOSTLY * total:
        return None
    form = max(known, key=lambda each: known[each])
    if known[form] < odd / 2:
        return None
    texts = [text for text, found in forms.items() if found == form]
    if form == "unit" and counts["number"] < known[form] and not _is_one_unit(texts):
        return None
    # Without numbers beside them, '<18' and '>65' are groups.
    few = form == "limit" and sum(found == "number" for found in forms.values()) < 2
    return None if few else form


def _is_one_unit(texts: Iterable[str]) -> bool:
    """Whether what stands behind numbers is mostly the same, as letters of codes are not."""
    parts = [match.groups() for text in texts if (match := _UNIT_BEHIND.fullmatch(text))]
    numbers, units = {number for number, _ in parts}, Counter(unit for _, unit in parts)
    return len(numbers) > 2 and units.most_common(1)[0][1] >= MOSTLY * units.total()


def _places(
    column: TextColumn,
    form: str,
    forms: Mapping[str, str | None],
    pattern: str,
    where: Callable[[int], str],
) -> str:
    """Return where the first cell of a form is, and how many others there are."""
    matched = pc.fill_null(pc.match_substring_regex(column.texts, pattern), False).to_numpy()
    # The pattern is coarser in some ways and finer in others.
    matched = matched | column.where_in(text for text, found in forms.items() if found == form)
    row, others = int(np.flatnonzero(matched)[0]), int(matched.sum()) - 1
    more = f", and {others:,} more {'cells are' if others > 1 else 'cell is'} like it"
    return f"{where(row)} has {shown(column.texts[row].as_py())}{more if others else ''}"


def _find_mixture(column: TextColumn, title: str, where: Callable[[int], str]) -> Mixture | None:
    """Return some other text among numbers or dates; warn of dates in several layouts."""
    if column.almost is None:
        return None
    what, unread = column.almost
    marks = column.where_in(column.marks)
    bad = unread & ~marks
    good = pc.is_valid(column.texts).to_numpy() & ~unread & ~marks
    if not bad.any() or not good.any():
        return None
    rows = np.flatnonzero(bad)
    row = int(rows[0])
    text = column.texts[row].as_py()
    if what == "dates" and _are_dates(column.texts.filter(pa.array(bad))):
        first = int(np.flatnonzero(good)[0])
        more = _others(len(rows) - 1)
        warn(
            f"{title} is text, since it has dates in more than one layout: {where(first)} has "
            f"{shown(column.texts[first].as_py())}, but {where(row)} has {shown(text)}{more}. "
            "Write all of them in one layout."
        )
        return None
    few = len(rows) <= (1 - MOSTLY) * column.observed
    texts = tuple(column.texts[at].as_py() for at in rows[:MOST_LINES].tolist())
    return Mixture(column.name, what, rows, texts) if few else None


def _both_decimal_marks(column: TextColumn, where: Callable[[int], str]) -> str:
    """Return where numbers with a decimal point and with a comma are, empty if not both are."""
    points, commas = (
        pc.fill_null(pc.match_substring_regex(column.texts, pattern), False).to_numpy()
        for pattern in _DECIMALS
    )
    if not points.any() or not commas.any():
        return ""
    few, many = sorted((points, commas), key=lambda found: int(found.sum()))
    usual, row = int(np.flatnonzero(many)[0]), int(np.flatnonzero(few)[0])
    return (
        f"{where(usual)} has {shown(column.texts[usual].as_py())}, but {where(row)} has "
        f"{shown(column.texts[row].as_py())}{_others(int(few.sum()) - 1)}"
    )


def _others(count: int) -> str:
    """Return how many cells there are besides one."""
    return f" and {count:,} other cell{'s' if count > 1 else ''}" if count else ""


def _are_dates(texts: Any) -> bool:
    """Whether texts that are not of a column's layout are dates of another one."""
    return all(
        any(
            read_dates(pa.chunked_array([[text]]), each).bad is None
            for each in guess_layouts([text])
        )
        for text in pc.unique(texts[:_SOME]).to_pylist()
    )


def count_marks(column: TextColumn) -> Counter[str]:
    """Count texts like ``-`` among words; next to ``+`` alone it is a word itself."""
    signs = [mark for mark in column.marks if not any(map(str.isalnum, mark))]
    if len(set(column.sample)) < 2 or not signs:
        return Counter()
    found = column.texts.filter(pa.array(column.where_in(signs)))
    return Counter() if len(found) == column.observed else Counter(found.to_pylist())


def warn_of_marks(columns: Mapping[str, Counter[str]], file: str) -> None:
    """Warn of texts like ``-`` among words, once for all columns that have one.

    Parameters
    ----------
    columns : mapping of str to Counter
        How often they are there, for the columns of text.
    file : str
        What to call the file.
    """
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, counts in columns.items():
        for mark, count in counts.most_common():
            places[mark].append(f"{name!r} ({count:,} cell{'s' if count > 1 else ''})")
    for mark, found in places.items():
        left = len(found) - _MOST_COLUMNS
        listed = ", ".join(found[:_MOST_COLUMNS]) + (f" and {left:,} more" if left > 0 else "")
        which = "Column" if len(found) == 1 else "Columns"
        are = "is" if len(found) == 1 else "are"
        warn(
            f"{which} {listed} of {file} {are} text, so that {mark!r} is taken for a value. Name "
            f"it as a mark for missing, na={mark!r}, if it stands for a missing cell."
        )
