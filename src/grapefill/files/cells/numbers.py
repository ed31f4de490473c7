"""Numbers as people write them: decimal marks, thousands, signs, exponents."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.files.cells.formats import ColumnFormat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

__all__ = [
    "ENOUGH",
    "STYLES",
    "Numbers",
    "Style",
    "describe_floats",
    "describe_numbers",
    "read_numbers",
    "rounded",
    "write_numbers",
]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")

_SPACES = " \u00a0\u2009\u202f"
_APOSTROPHES = "'\u2019"
_EXACT = 2.0**53
# A column with this share of its fractions that short is written that short.
_USUAL = 0.9
# More digits than that a float may not have; what it has besides is written as zeros.
_FEW_DECIMALS = 15
ENOUGH = 20
"""With fewer cells than that, the column at fit tells better how numbers are written."""


@dataclass(frozen=True)
class Style:
    """The marks of a number.

    Parameters
    ----------
    decimal : {".", ","}
        The decimal mark.
    thousands : str
        The characters of which one stands between groups of three digits; empty for no groups.

    Examples
    --------
    >>> bool(Style(",", ".").pattern.fullmatch("1.234,5"))
    True
    >>> bool(Style(",", ".").pattern.fullmatch("1234,5"))
    False
    """

    decimal: str = "."
    thousands: str = ""

    @cached_property
    def text(self) -> str:
        """The regular expression of a number, for Python and for arrow."""
        mark = re.escape(self.decimal)
        if not self.thousands:
            return rf"[+-]?(?:[0-9]+(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        groups = rf"[1-9][0-9]{{0,2}}(?:[{re.escape(self.thousands)}][0-9]{{3}})+|[0-9]{{1,3}}"
        return rf"[+-]?(?:{groups})(?:{mark}[0-9]+)?"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled expression."""
        return re.compile(self.text)

    def plain(self, texts: Any) -> Any:
        """Return texts of this style as Python would write them."""
        if self.thousands:
            texts = pc.replace_substring_regex(texts, f"[{re.escape(self.thousands)}]", "")
        return texts if self.decimal == "." else pc.replace_substring(texts, self.decimal, ".")


STYLES = tuple(
    Style(decimal, thousands)
    for thousands in ("", ",", ".", _SPACES, _APOSTROPHES)
    for decimal in (".", ",")
    if decimal != thousands
)
"""What is tried, the plainest first."""


@dataclass(frozen=True)
class Numbers:
    """A column of text read as numbers.

    Parameters
    ----------
    values : pyarrow.ChunkedArray of int64 or float64
        The numbers, null where there is none.
    bad : ndarray of bool or None
        Where there is a text that is no number; None if there is none such.
    codes : bool
        Whether a number begins with a zero that it does not need, as codes do.
    """

    values: Any
    bad: npt.NDArray[np.bool_] | None
    codes: bool


def read_numbers(texts: Any, style: Style) -> Numbers:
    """Read a column of text as numbers.

    Parameters
    ----------
    texts : pyarrow.ChunkedArray of string
        The cells without surrounding space, null where missing.
    style : Style
        The marks they are written with.
    """
    allowed = "0123456789+-eE" + style.decimal
    bad = None
    if style.thousands or odd_characters(texts, allowed):
        texts, bad = _only_matching(texts, style)
    plain = style.plain(texts)
    values = _cast(plain)
    if values is None:
        texts, bad = _only_matching(texts, style, bad)
        plain = style.plain(texts)
        values = _cast(plain)
    assert values is not None
    if pa.types.is_floating(values.type) and _is_endless(values):
        endless = pc.fill_null(pc.is_inf(values), False)
        values = pc.if_else(endless, pa.scalar(None, values.type), values)
        bad = endless.to_numpy() if bad is None else bad | endless.to_numpy()
    return Numbers(values, bad, _has_codes(plain))


def odd_characters(texts: Any, allowed: str) -> bool:
    """Whether a column of text has a character that is not among the allowed ones."""
    delete = allowed.encode()
    return any(
        data[offsets[0] : offsets[-1]].tobytes().translate(None, delete)
        for offsets, data in _buffers(texts)
    )


def _buffers(texts: Any) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]]:
    """Yield where the texts of every chunk begin and end, and their bytes."""
    for chunk in texts.chunks:
        _, offsets, data = chunk.buffers()
        if data is not None and data.size and len(chunk):
            ends = np.frombuffer(offsets, dtype=np.int32)
            ends = ends[chunk.offset : chunk.offset + len(chunk) + 1]
            yield ends, np.frombuffer(data, dtype=np.uint8)


def _is_endless(values: Any) -> bool:
    """Whether there is a number too large for a float."""
    ends = pc.min_max(values).as_py()
    return any(end is not None and math.isinf(end) for end in ends.values())


def _only_matching(
    texts: Any, style: Style, bad: npt.NDArray[np.bool_] | None = None
) -> tuple[Any, npt.NDArray[np.bool_] | None]:
    """Take out what is no number, or an integer too long for 64 bits."""
    good = pc.match_substring_regex(texts, f"^(?:{style.text})$")
    # Longer ones may be beyond int64, and as identifiers must not be rounded.
    good = pc.and_(good, pc.invert(pc.match_substring_regex(texts, "^[+-]?[0-9]{19,}$")))
    wrong = pc.fill_null(pc.invert(good), False).to_numpy()
    if bad is not None:
        wrong = wrong | bad
    if not wrong.any():
        return texts, None
    return pc.if_else(good, texts, pa.scalar(None, pa.string())), wrong


def _cast(plain: Any) -> Any:
    """Return integers, or floats, or None if some text is neither."""
    if not odd_characters(plain, "0123456789"):
        kind = pa.int64()
    elif not odd_characters(plain, "0123456789+-"):
        plain, kind = pc.replace_substring_regex(plain, r"^\+", ""), pa.int64()
    else:
        kind = pa.float64()
    try:
        values = plain.cast(kind)
    except pa.ArrowInvalid:
        return None
    return values if kind == pa.int64() else _whole(values, plain)


def _whole(values: Any, plain: Any) -> Any:
    """Return floats such as 3.0, as programs write integers with holes, as integers."""
    if odd_characters(plain, "0123456789+-."):
        return values
    numbers = pc.drop_null(values).to_numpy()
    if numbers.size and (np.rint(numbers) == numbers).all() and np.abs(numbers).max() <= _EXACT:
        return values.cast(pa.int64())
    return values


def _has_codes(plain: Any) -> bool:
    """Whether a number begins with a zero and another digit."""
    for offsets, data in _buffers(plain):
        starts, lengths = offsets[:-1], np.diff(offsets)
        signed = (lengths > 2) & _is_sign(data[np.minimum(starts, data.size - 1)])
        starts = (starts + signed)[lengths - signed > 1]
        second = data[starts + 1]
        if ((data[starts] == ord("0")) & (second >= ord("0")) & (second <= ord("9"))).any():
            return True
    return False


def _is_sign(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    sign: npt.NDArray[np.bool_] = (data == ord("+")) | (data == ord("-"))
    return sign


def describe_numbers(sample: Sequence[str], style: Style) -> dict[str, Any]:
    """Return how numbers are written, as parameters of `ColumnFormat`.

    Examples
    --------
    >>> describe_numbers(["1.50", "12.25"], Style())
    {'decimal': '.', 'thousands': '', 'decimals': 2, 'fixed': True, 'exponent': '', 'plus': False}
    """
    exponents = [text for text in sample if "e" in text or "E" in text]
    usual_exponent = len(exponents) > len(sample) / 2
    shown = exponents if usual_exponent else sample
    counts = Counter(_decimals(text, style.decimal, plain=not usual_exponent) for text in shown)
    positive = [text for text in sample if not text.startswith("-")]
    return {
        "decimal": style.decimal,
        "thousands": _usual_mark(sample, style.thousands),
        "decimals": _usual_decimals(counts),
        "fixed": len(counts) <= 1,
        "exponent": _usual_exponent(exponents) if usual_exponent else "",
        "plus": sum(t.startswith("+") for t in positive) > len(positive) / 2,
    }


def _decimals(text: str, mark: str, *, plain: bool) -> int:
    """Return the digits after the decimal mark, or those of the number without an exponent."""
    mantissa, *power = re.split("[eE]", text)
    digits = len(mantissa.partition(mark)[2])
    return max(0, digits - int(power[0])) if plain and power else digits


def _usual_decimals(counts: Counter[int]) -> int:
    """Return the decimals that cover most of the cells which have any."""
    fractions = sum(count for digits, count in counts.items() if digits)
    covered = 0
    for digits in sorted(digits for digits in counts if digits):
        covered += counts[digits]
        if covered >= _USUAL * fractions:
            return digits
    return 0


def _usual_mark(sample: Iterable[str], marks: str) -> str:
    counts = Counter(character for text in sample for character in text if character in marks)
    return counts.most_common(1)[0][0] if counts else marks[:1]


def _usual_exponent(texts: Sequence[str]) -> str:
    powers = (re.sub("^[^eE]*", "", text) for text in texts)
    return Counter(re.sub("[0-9]", "0", power) for power in powers).most_common(1)[0][0]


def describe_floats(values: Iterable[float], expected: ColumnFormat | None = None) -> ColumnFormat:
    """Return how floats are written, in a file whose cells are numbers and not text.

    Parameters
    ----------
    values : iterable of float
        Those that are there.
    expected : ColumnFormat or None
        What the column was before. It counts where there are few values.

    Examples
    --------
    >>> describe_floats([1.5, 2.25, 3.0]).decimals, describe_floats([3e-07, 1e-06]).decimals
    (2, 7)
    """
    known = list(values)
    if expected is not None and expected.type == "decimal" and len(known) < ENOUGH:
        return replace(expected, decimal=".", thousands="", plus=False, fixed=False)
    counts = Counter(_decimals(repr(value), ".", plain=True) for value in known if value % 1)
    return ColumnFormat("decimal", decimals=_usual_decimals(counts), fixed=False)


def rounded(value: float, shape: ColumnFormat) -> float:
    """Return a number with as many digits as others of its column have."""
    if shape.exponent:
        return float(f"{value:.{shape.decimals}e}")
    return round(value, shape.decimals)


def write_numbers(values: Sequence[float], shape: ColumnFormat) -> list[str]:
    """Write numbers like the others of their column.

    Examples
    --------
    >>> from grapefill.files.cells.formats import ColumnFormat
    >>> price = ColumnFormat("decimal", decimal=",", thousands=".", decimals=2)
    >>> write_numbers([1234.5, -0.001], price)
    ['1.234,50', '0,00']
    """
    if shape.exponent:
        texts = [_with_exponent(value, shape) for value in values]
    else:
        group = "," if shape.thousands else ""
        pattern = f"{{:{group}.{shape.decimals}f}}" if shape.decimals else f"{{:{group}.0f}}"
        if shape.type == "integer":
            # Not through a float, which does not hold every integer.
            zeros = "." + "0" * shape.decimals if shape.decimals else ""
            pattern = f"{{:{group}d}}{zeros}"
            values = [round(value) for value in values]
        elif shape.decimals > _FEW_DECIMALS:
            values = [Decimal(repr(value)) for value in values]  # type: ignore[misc]
        texts = [pattern.format(value) for value in values]
        zero = pattern.format(0)
        texts = [zero if text == f"-{zero}" else text for text in texts]
    plain = shape.decimal == "." and shape.thousands in ("", ",")
    if plain and shape.fixed and not shape.plus and not shape.exponent:
        return texts
    return [_finished(text, shape) for text in texts]


def _finished(text: str, shape: ColumnFormat) -> str:
    """Put the column's own marks and sign into a number as Python writes it."""
    if not shape.fixed and "." in text:
        mantissa, letter, power = text.partition(shape.exponent[:1] or "e")
        text = mantissa.rstrip("0").rstrip(".") + letter + power
    if text.startswith("-0") and not text.strip("-0.,"):
        text = text[1:]
    if shape.plus and not text.startswith("-"):
        text = "+" + text
    marks = {".": shape.decimal, ",": shape.thousands}
    if shape.decimal == "." and shape.thousands in ("", ","):
        return text
    return "".join(marks.get(character, character) for character in text)


def _with_exponent(value: float, shape: ColumnFormat) -> str:
    mantissa, _, power = f"{value:.{shape.decimals}e}".partition("e")
    exponent, digits = int(power), shape.exponent.lstrip("eE+-")
    sign = "-" if exponent < 0 else "+" if "+" in shape.exponent else ""
    return f"{mantissa}{shape.exponent[0]}{sign}{abs(exponent):0{len(digits)}d}"
