"""What looks odd about a column: an identifier, a constant, numbers written as text, ..."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.evaluate.text import counted, join_words
from grapefill.evaluate.words import is_tick, same_but_case, words_for_missing
from grapefill.table.far import Ends
from grapefill.table.infer import MINIMUM_FOR_IDENTIFIER, first_infinity
from grapefill.table.kinds import Form
from grapefill.table.text import some_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grapefill.table import Column, Table
    from grapefill.table.arrays import Array
    from grapefill.table.cells import ColumnCells

__all__ = ["Remark", "Values", "find_sentinels", "plain_number", "remarks_on"]

# A column is nearly empty, and a category dominates, from these shares on.
NEARLY_EMPTY = 0.9
DOMINANT = 0.95
# Text is taken for numbers if nearly all cells look like one, and there are some different ones.
NUMBERS = 0.9
FEWEST_NUMBERS = 5
# Categories in more than one case that are named.
MOST_SPELLINGS = 3
# From here on numbers are often written with an exponent.
LONG = 1e15

_NUMBER = re.compile(
    r"""
    [+-]? [$€£]? \s?
    ( \d+ ([.,] \d*)? | [.,] \d+ | \d{1,3} ([\ ,.'\u00a0] \d{3})+ ([.,] \d+)? )
    ([eE] [+-]? \d+)? \s? %?
    """,
    re.VERBOSE,
)
_LEADING_ZERO = re.compile(r"0\d+")
_ARTICLES = {
    "identifier": "an identifier",
    "free text or identifier": "free text or an identifier",
}


def _written_marks() -> Array:
    """Return numbers that are often written for a missing cell."""
    whole = [float(digit * digits) for digits in range(2, 6) for digit in "78"]
    nines = [float("9" * digits) for digits in range(2, 13)]
    nines += [
        float(f"{'9' * digits}.{'9' * behind}") for digits in range(2, 6) for behind in (1, 2)
    ]
    ends = [2.0**15 - 1, 2.0**31 - 1, 1e20, 1e30]
    found = np.array([*whole, *nines, *ends])
    found = np.concatenate([found, -found, [-(2.0**15), -(2.0**31)]])
    # Columns of float32 have some of them a little off; but 99999999 becomes 100000000 there, which
    # may well be a number.
    rounded = found[(found % 1 != 0) | (np.abs(found) >= LONG)].astype(np.float32)
    return np.unique(np.concatenate([found, rounded.astype(np.float64)]))


_MARKS = _written_marks()
# Numbers that mean missing only in a column of many others, with nothing near them.
_WEAK_MARKS = np.array([-1.0, -7.0, -8.0, -9.0, -97.0, -98.0, 97.0, 98.0])
_FEWEST_OTHERS = 5


@dataclass(frozen=True)
class Remark:
    """Something to know about a column.

    Parameters
    ----------
    code : str
        One word for programs: ``"empty"``, ``"nearly_empty"``, ``"constant"``, ``"identifier"``,
        ``"dominant"``, ``"numbers_as_text"``, ``"sentinel"``, ``"far"``, ``"spellings"``,
        ``"infinite"`` or ``"unreadable"``.
    text : str
        The same for people.
    """

    code: str
    text: str


class Values:
    """The observed cells of a column: different values and how often each is there."""

    def __init__(self, cells: ColumnCells) -> None:
        self.cells = cells
        self.observed = int(np.count_nonzero(~cells.missing))

    @cached_property
    def _counted(self) -> tuple[Any, Array] | None:
        cells, form = self.cells, self.cells.storage.form
        here = ~cells.missing
        if form is Form.OTHER:
            return None
        if not self.observed:
            return [], np.zeros(0, dtype=np.int64)
        if form in (Form.TEXT, Form.CATEGORY):
            found = cells.distinct()
            return found, np.bincount(cells.codes(found)[here], minlength=len(found))
        if form in (Form.DATETIME, Form.DURATION):
            values = cells.instants()
        else:
            values = cells.integers() if form is Form.INTEGER else cells.numbers()
        return np.unique(values[here], return_counts=True)

    @property
    def distinct(self) -> int | None:
        """Number of different values; None if they cannot be compared."""
        return None if self._counted is None else len(self._counted[1])

    @property
    def values(self) -> Any:
        """The different values, sorted or in declared order."""
        return [] if self._counted is None else self._counted[0]

    @property
    def counts(self) -> Array:
        """How often each of them is there."""
        return np.zeros(0, dtype=np.int64) if self._counted is None else self._counted[1]


def remarks_on(column: Column, values: Values) -> tuple[Remark, ...]:
    """Return what looks odd about a column, most important first."""
    if not values.observed:
        return (Remark("empty", "has no value at all"),)
    return tuple(_remarks(column, values))


def _remarks(column: Column, values: Values) -> Iterator[Remark]:
    rows = len(values.cells.missing)
    if values.observed <= (1 - NEARLY_EMPTY) * rows:
        yield Remark("nearly_empty", f"only {values.observed:,} of {rows:,} cells have a value")
    row = first_infinity(values.cells)
    if row is not None:
        yield Remark("infinite", f"holds an infinite number, first in row {row}: replace it")
    if values.distinct is None:
        yield Remark("unreadable", f"{column.note or column.dtype} cannot be filled")
        return
    if values.distinct == 1:
        if values.observed > 1:
            no = "; an empty cell may mean no" if is_tick(values) else ""
            yield Remark("constant", f"has the same value in all observed cells{no}")
        return
    form = values.cells.storage.form
    if form in (Form.TEXT, Form.CATEGORY):
        yield from _remarks_on_text(column, values)
    elif form.is_numeric and form is not Form.BOOLEAN:
        yield from _remarks_on_numbers(column, values)
    if column.kind.is_discrete and values.observed >= MINIMUM_FOR_IDENTIFIER:
        most = int(values.counts.argmax())
        share = values.counts[most] / values.observed
        if share >= DOMINANT:
            yield Remark("dominant", f"is {values.values[most]!r} in {share:.1%} of observed cells")


def _remarks_on_text(column: Column, values: Values) -> Iterator[Remark]:
    texts = [str(value).strip() for value in values.values]
    blank = words_for_missing(values)
    for at in blank:
        cells = counted(int(values.counts[at]), "cell")
        yield Remark("sentinel", f"has {values.values[at]!r} in {cells}, which may mean missing")
    is_text = values.cells.storage.form is Form.TEXT
    numeric = [at for at, text in enumerate(texts) if is_text and _NUMBER.fullmatch(text)]
    coded = any(_LEADING_ZERO.fullmatch(texts[at]) for at in numeric)
    known = values.observed - sum(values.counts[at] for at in blank)
    share = sum(values.counts[at] for at in numeric) / max(known, 1)
    if len(numeric) >= FEWEST_NUMBERS and share >= NUMBERS and not coded:
        odd = [texts[at] for at in sorted(set(range(len(texts))) - set(numeric) - set(blank))]
        but = f", but for {some_of(odd, 3)}" if odd else ""
        yield Remark("numbers_as_text", f"holds numbers stored as text{but}: convert it")
    elif column.note in _ARTICLES:
        yield Remark("identifier", f"looks like {_ARTICLES[column.note]} and is not used")
    elif values.distinct == values.observed >= MINIMUM_FOR_IDENTIFIER:
        yield Remark("identifier", "has a different category in every row, like an identifier")
    else:
        yield from _remarks_on_spellings(values)


def _remarks_on_spellings(values: Values) -> Iterator[Remark]:
    groups = same_but_case(values)
    for group in groups[:MOST_SPELLINGS]:
        words = join_words([repr(values.values[at]) for at in group])
        yield Remark("spellings", f"has {words}, which differ in upper and lower case only")
    if len(groups) > MOST_SPELLINGS:
        more = counted(len(groups) - MOST_SPELLINGS, "other word")
        yield Remark("spellings", f"has {more} in more than one case")


def _remarks_on_numbers(column: Column, values: Values) -> Iterator[Remark]:
    found, counts = np.asarray(values.values), values.counts
    if column.note in _ARTICLES:
        yield Remark("identifier", f"looks like {_ARTICLES[column.note]} and is not used")
    elif values.distinct == values.observed >= MINIMUM_FOR_IDENTIFIER and _are_consecutive(found):
        yield Remark("identifier", "holds consecutive whole numbers, like a row number")
    marks = dict(_sentinels(found, counts))
    for value, count in marks.items():
        cells = f"{plain_number(value)} in {counted(count, 'cell')}"
        yield Remark("sentinel", f"has {cells}, far from all others, which may mean missing")
    ends = Ends.of(np.repeat(found, counts).astype(np.float64)) if _is_finite(found) else None
    if ends is not None:
        low, high = plain_number(ends.low), plain_number(ends.high)
        for value, count in zip(found.tolist(), counts.tolist(), strict=True):
            if not (ends.floor <= value <= ends.ceiling or float(value) in marks):
                cells = f"{plain_number(float(value))} in {counted(count, 'cell')}"
                yield Remark("far", f"has {cells}, far from all others ({low} to {high})")


def find_sentinels(table: Table) -> Iterator[tuple[int, float, int]]:
    """Yield numbers of a table that look like marks for missing cells.

    Parameters
    ----------
    table : Table
        The table.

    Yields
    ------
    int
        The column's position.
    float
        The number.
    int
        How many cells have it.
    """
    for j in range(table.n_columns):
        cells = table.cells(j)
        form = cells.storage.form
        if not form.is_numeric or form is Form.BOOLEAN or cells.missing.all():
            continue
        numbers = cells.numbers()[~cells.missing]
        # Marks stand at an end, which is found much sooner than how often each number is there.
        if np.isin([numbers.min(), numbers.max()], [*_MARKS, *_WEAK_MARKS]).any():
            for value, count in _sentinels(*np.unique(numbers, return_counts=True)):
                yield j, value, count


def plain_number(value: float) -> str:
    """Return a number as files write it, without an exponent as long as it can be read.

    Examples
    --------
    >>> plain_number(-99999999.0), plain_number(-999.9), plain_number(1e30)
    ('-99999999', '-999.9', '1e+30')
    """
    if value % 1 == 0 and abs(value) < LONG:
        return f"{value:.0f}"
    # Seven digits are all that a float32 has.
    return f"{value:.7g}"


def _is_finite(found: Array) -> bool:
    return bool(np.isfinite(found).all())


def _are_consecutive(found: Array) -> bool:
    """Whether sorted different numbers are whole and without a gap."""
    if not _is_finite(found):
        return False
    # Python's integers, since a difference of the largest 64-bit ones has no room.
    return int(found[-1]) - int(found[0]) == len(found) - 1 and bool(np.all(found == found // 1))


def _sentinels(found: Array, counts: Array) -> Iterator[tuple[float, int]]:
    """Yield numbers at either end that look like marks and stand apart from all others."""
    numbers = found.astype(np.float64)
    numbers, counts = numbers[np.isfinite(numbers)], counts[np.isfinite(numbers)]
    marks, weak = np.isin(numbers, _MARKS), np.isin(numbers, _WEAK_MARKS)
    if (~marks & ~weak).sum() >= _FEWEST_OTHERS:
        weak &= _stand_apart(numbers, numbers[~marks & ~weak], 1.0)
        marks |= weak
    others = numbers[~marks]
    if others.size < 2:
        return
    far = marks & _stand_apart(numbers, others, 0.5)
    yield from zip(numbers[far].tolist(), counts[far].tolist(), strict=True)


def _stand_apart(numbers: Array, others: Array, widths: float) -> Array:
    """Return which numbers are that many times the width of some others away from all of these."""
    low, high = others[0], others[-1]
    found: Array = np.maximum(low - numbers, numbers - high) > widths * (high - low)
    return found
