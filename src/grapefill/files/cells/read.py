"""Columns of text to typed columns.

The rules, the first that fits:

- no cell with a value: empty;
- only ``yes`` and ``no``, ``true`` and ``false``, ``y`` and ``n`` or ``t`` and ``f``, in any case:
  boolean;
- one layout of dates for all cells, eight digits in a row included: date, or datetime;
- numbers: integer or decimal, with one decimal mark and, if all cells of a thousand or more have
  it, one mark between thousands; integers that a program wrote as ``3.0`` are integers;
- otherwise text, and so are numbers with a leading zero, such as ``00123``, and those with more
  than 18 digits.

Where a column alone leaves open which of two marks is the decimal one, or whether the day stands
before the month, the other columns of the file decide; if they do not, the usual meaning does. In
a column of numbers or dates, texts like ``-`` or ``missing`` stand for missing cells. Any other
text among numbers makes the column one of text, with a warning that names it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import InputError, warn
from grapefill.files.cells.dates import guess_layouts, read_dates, type_of, usual_offset
from grapefill.files.cells.formats import ColumnFormat
from grapefill.files.cells.lines import Lines, Mixture, warn_of_mixtures
from grapefill.files.cells.marks import AMONG_NUMBERS
from grapefill.files.cells.notes import (
    MOSTLY,
    TextColumn,
    count_marks,
    warn_of_marks,
    warn_of_meaning,
)
from grapefill.files.cells.numbers import ENOUGH, STYLES, Style, describe_numbers, read_numbers
from grapefill.files.cells.words import describe_words, read_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

__all__ = ["Context", "TypedColumn", "read_columns"]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")

_SAMPLE = 1_000
_EARLIEST, _LATEST = -62_000, 84_000  # days: the years 1800 to 2200


@dataclass(frozen=True)
class Context:
    """What is known about a file when its columns are read.

    Parameters
    ----------
    name : str
        What to call the file in a message.
    where : callable
        Returns for a row what to call it in a message, such as ``"line 17"``.
    expected : mapping of str to ColumnFormat
        What columns were before, or are said to be.
    decimal : {".", ",", None}
        The decimal mark, if the caller named it.
    day_first : bool or None
        Whether the day stands before the month, if the caller said so.
    semicolons : bool
        Whether semicolons separate the cells, as where the comma is the decimal mark.
    usual_marks : bool
        Whether texts like ``-`` among numbers stand for missing cells.
    others : tuple of TypedColumn
        Columns of the file that have types of their own.
    """

    name: str
    where: Callable[[int], str]
    expected: Mapping[str, ColumnFormat] = field(default_factory=dict)
    decimal: str | None = None
    day_first: bool | None = None
    semicolons: bool = False
    usual_marks: bool = True
    others: tuple[TypedColumn, ...] = ()


@dataclass(frozen=True)
class TypedColumn:
    """A column of values and how they are written.

    Parameters
    ----------
    values : pyarrow.ChunkedArray
        The values, null where missing.
    format : ColumnFormat
        How they are written.
    """

    values: Any
    format: ColumnFormat


def read_columns(names: Sequence[str], texts: list[Any], context: Context) -> list[TypedColumn]:
    """Give every column of text its type.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    texts : list of pyarrow.ChunkedArray of string
        Their cells without surrounding space, null where missing. The list is emptied column by
        column, so that a large file is not held twice.
    context : Context
        What else is known.

    Returns
    -------
    list of TypedColumn

    Raises
    ------
    InputError
        If a column does not hold what it is expected to.
    """
    columns: list[list[TypedColumn]] = []
    marked: dict[str, Counter[str]] = {}
    mixtures: list[Mixture] = []
    rows = len(texts[0]) if texts else 0
    for j, name in enumerate(names):
        reader = _Reader(name, texts[j], context)
        columns.append(reader.read())
        marked[name] = reader.marked
        if reader.mixture is not None:
            mixtures.append(reader.mixture)
        texts[j] = None

    if mixtures:
        every = [*(choices[0] for choices in columns), *context.others]
        count = partial(_cells_of, every)
        warn_of_mixtures(mixtures, Lines(context.name, context.where, rows, len(every), count))
    warn_of_marks(marked, context.name)
    return _resolve(names, columns, context)


def _cells_of(columns: Sequence[TypedColumn], row: int) -> tuple[int, int]:
    """Return how many texts a row has, and how many other values."""
    there = [c.format.type == "text" for c in columns if c.values[row].is_valid]
    return sum(there), len(there) - sum(there)


def _resolve(
    names: Sequence[str], columns: list[list[TypedColumn]], context: Context
) -> list[TypedColumn]:
    """Choose where a column can be read in two ways."""
    clear = [choices[0].format for choices in columns if len(choices) == 1]
    shown = [c for c in clear if c.family == "number" and (c.decimals or c.thousands)]
    decimals = Counter(c.decimal for c in shown)
    orders = Counter(
        c.layout.replace("-", "").find("%d") < c.layout.replace("-", "").find("%m")
        for c in clear
        if c.family == "date" and not c.layout.startswith("%Y") and "%m" in c.layout
    )
    comma = decimals[","] > decimals["."]
    result, unsure = [], []
    for name, choices in zip(names, columns, strict=True):
        chosen = choices[0]
        if len(choices) > 1 and chosen.format.family == "number":
            # Three digits behind a point are decimals unless the file says otherwise; three
            # behind a comma are thousands, except among semicolons.
            keep = chosen.format.decimal == "," and context.semicolons and not shown
            wanted = "," if comma or keep else "."
            chosen = next((c for c in choices if c.format.decimal == wanted), chosen)
        elif len(choices) > 1:
            if not orders:
                unsure.append((name, chosen.format.layout))
            elif orders[_day_first(chosen)] < orders[not _day_first(chosen)]:
                chosen = choices[1]
        result.append(chosen)
    if unsure:
        name, layout = unsure[0]
        others = f" and {len(unsure) - 1} more" if len(unsure) > 1 else ""
        order = "day" if layout.replace("-", "").startswith("%d") else "month"
        warn(
            f"The dates in column {name!r}{others} of {context.name} do not tell whether day or "
            f"month comes first; the {order} is taken to. Say so if it is the other way round."
        )
    return result


def _day_first(column: TypedColumn) -> bool:
    return column.format.layout.replace("-", "").startswith("%d")


class _Reader:
    """Reads one column; more than one result means that others have to decide."""

    def __init__(self, name: str, texts: Any, context: Context) -> None:
        self.name = name
        self.texts = texts
        self.context = context
        self.marks = AMONG_NUMBERS if context.usual_marks else frozenset()
        self.observed = len(texts) - texts.null_count
        self.sample = [text for text in _sample(texts, self.observed) if text not in self.marks]
        # The best reading as numbers or dates that fails, for the warning.
        self.almost: tuple[str, npt.NDArray[np.bool_]] | None = None
        # Texts among words that may stand for a missing cell.
        self.marked: Counter[str] = Counter()
        self.mixture: Mixture | None = None

    def read(self) -> list[TypedColumn]:
        expected = self.context.expected.get(self.name)
        if expected is None or expected.type == "empty":
            found = self._natural()
            if found[0].format.type == "text":
                self._warn()
            return found
        if expected.type == "text":
            return [TypedColumn(self.texts, ColumnFormat("text", levels=expected.levels))]
        if self._has_only_marks():
            values = pa.nulls(len(self.texts), type=arrow_type(expected))
            return [TypedColumn(pa.chunked_array([values]), expected)]
        column = self._as_before(expected)
        found = [column] if column is not None else self._natural()
        found = [self._like(expected, c) for c in found if c.format.family == expected.family]
        if not found:
            raise self._unexpected(expected)
        return found

    def _warn(self) -> None:
        """Tell what a column of text may have been meant as."""
        column = TextColumn(
            self.name, self.texts, self.sample, self.observed, self.almost, self.marks
        )
        self.mixture = warn_of_meaning(column, self.context.name, self.context.where)
        self.marked = count_marks(column)

    def _has_only_marks(self) -> bool:
        """Whether nothing of a column of numbers, dates or truth values is there."""
        return (
            not self.sample and set(pc.unique(pc.drop_null(self.texts)).to_pylist()) <= self.marks
        )

    def _natural(self) -> list[TypedColumn]:
        """Read the column by the rules of this module."""
        if not self.observed:
            nulls = pa.chunked_array([pa.nulls(len(self.texts))])
            return [TypedColumn(nulls, ColumnFormat("empty"))]
        column = self._words(describe_words(self.sample))
        if column is not None:
            return [column]
        return self._dates() or self._numbers() or [self._text()]

    def _text(self) -> TypedColumn:
        return TypedColumn(self.texts, ColumnFormat("text"))

    def _words(self, words: tuple[str, str] | None) -> TypedColumn | None:
        if words is None:
            return None
        values, bad = read_words(self.texts, words)
        if bad is not None:
            return None
        return TypedColumn(values, ColumnFormat("boolean", words=words))

    def _dates(self) -> list[TypedColumn]:
        layouts = next((found for text in self.sample[:3] if (found := self._layouts(text))), [])
        if self.context.day_first is not None and len(layouts) > 1:
            starts = "%d" if self.context.day_first else "%m"
            layouts = [one for one in layouts if one.replace("-", "").startswith(starts)]
        columns = (self._date(layout) for layout in layouts)
        return [column for column in columns if column is not None]

    def _layouts(self, text: str) -> list[str]:
        return guess_layouts([text, *self.sample])

    def _date(self, layout: str) -> TypedColumn | None:
        dates = read_dates(self.texts, layout)
        if not self._acceptable(dates.bad, "dates"):
            return None
        if layout == "%Y%m%d":
            days = pc.min_max(dates.values.cast(pa.int32())).as_py()
            if days["min"] is None or days["min"] < _EARLIEST or days["max"] > _LATEST:
                return None
        type_ = "date" if pa.types.is_date(dates.values.type) else "datetime"
        offset = usual_offset(self.sample) if "%z" in layout else ""
        shape = ColumnFormat(type_, layout=layout, offset=offset)  # type: ignore[arg-type]
        return TypedColumn(dates.values, shape)

    def _numbers(self) -> list[TypedColumn]:
        found: list[TypedColumn] = []
        for style in STYLES:
            if self.context.decimal not in (None, style.decimal) or not self._suits(style):
                continue
            if found and not _is_rival(style, found[0].format, self.sample):
                continue
            column = self._number(style)
            if column is not None:
                found.append(column)
        return found

    def _suits(self, style: Style) -> bool:
        """Whether most of the sample can be read in a style."""
        good = sum(style.pattern.fullmatch(text) is not None for text in self.sample)
        return good > 0 and good >= MOSTLY * len(self.sample)

    def _number(self, style: Style, *, codes: bool = False) -> TypedColumn | None:
        numbers = read_numbers(self.texts, style)
        if numbers.codes and not codes:
            return None
        if not self._acceptable(numbers.bad, "numbers"):
            return None
        type_ = "integer" if pa.types.is_integer(numbers.values.type) else "decimal"
        sample = [text for text in self.sample if style.pattern.fullmatch(text)]
        return TypedColumn(numbers.values, ColumnFormat(type_, **describe_numbers(sample, style)))  # type: ignore[arg-type]

    def _acceptable(self, bad: npt.NDArray[np.bool_] | None, what: str) -> bool:
        """Whether all that could not be read is a mark for missing."""
        if bad is None:
            return True
        strange = pc.unique(self.texts.filter(pa.array(bad))).to_pylist()
        if set(strange) <= self.marks and bad.sum() < self.observed:
            return True
        if self.almost is None or bad.sum() < self.almost[1].sum():
            self.almost = (what, bad)
        return False

    def _as_before(self, expected: ColumnFormat) -> TypedColumn | None:
        """Read the column as it was at fit, None if that is not possible."""
        if expected.family == "boolean":
            return self._words(expected.words) or self._words(describe_words(self.sample))
        if expected.family == "date":
            column = self._date(expected.layout) if expected.layout else None
        else:
            marks = next((s.thousands for s in STYLES if expected.thousands in s.thousands), "")
            style = Style(expected.decimal, marks if expected.thousands else "")
            column = self._number(style, codes=True)
        return column

    def _like(self, expected: ColumnFormat, column: TypedColumn) -> TypedColumn:
        """Return a column as wide as it was at fit, and written so if it has few cells itself."""
        if expected.type != "decimal":
            return column
        few = self.observed < ENOUGH and column.format.decimal == expected.decimal
        shape = expected if few else replace(column.format, type="decimal")
        return TypedColumn(column.values.cast(pa.float64()), shape)

    def _unexpected(self, expected: ColumnFormat) -> InputError:
        nouns = {"number": "a number", "date": "a date", "boolean": "one of its two words"}
        bad = None if self.almost is None else self.almost[1]
        row = int(np.flatnonzero(bad)[0]) if bad is not None else 0
        if bad is None:
            row = int(np.flatnonzero(pc.is_valid(self.texts).to_numpy())[0])
        text = self.texts[row].as_py()
        return InputError(
            f"{self.context.where(row).capitalize()} of {self.context.name}, column "
            f"{self.name!r}: {text!r} is not {nouns.get(expected.family, expected.type)}, as the "
            "column should hold. Correct the cell, or name the text as a mark for missing, "
            f"na={text!r}, if it stands for a missing one."
        )


def _is_rival(style: Style, found: ColumnFormat, sample: Sequence[str]) -> bool:
    """Whether a second reading of the same texts would give other numbers."""
    if style.decimal == found.decimal:
        return False
    marks = style.thousands + style.decimal
    return any(mark in text for text in sample for mark in marks)


def arrow_type(shape: ColumnFormat) -> Any:
    """Return the arrow type of a column."""
    if shape.family == "date":
        return type_of(shape.layout) if shape.layout else pa.date32()
    types = {"integer": pa.int64(), "decimal": pa.float64(), "boolean": pa.bool_()}
    return types.get(shape.type, pa.string() if shape.type == "text" else pa.null())


def _sample(texts: Any, observed: int) -> list[str]:
    """Return some texts from all over a column."""
    found = pc.drop_null(texts) if observed <= _SAMPLE or observed < len(texts) / 4 else texts
    if len(found) > 2 * _SAMPLE:
        rows = np.linspace(0, len(found) - 1, 2 * _SAMPLE).astype(np.int64)
        found = found.take(pa.array(rows))
    return [text for text in found.to_pylist() if text is not None][: 2 * _SAMPLE]
