"""A table with known cells hidden, in the views that imputers take, and the way back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from grapefill.errors import InputError
from grapefill.table import Kind, Scaling, Schema, Table
from grapefill.table.consistency import check_columns

if TYPE_CHECKING:
    from grapefill.table.arrays import BoolArray, FloatArray

__all__ = ["Coding", "Task"]

Coding = Literal["codes", "indicators"]
# A column with more categories than that would make too many columns of indicators.
MOST_INDICATORS = 20


@dataclass(frozen=True)
class Task:
    """A table whose holes are to be filled.

    Parameters
    ----------
    native : array, pandas DataFrame, polars DataFrame or pyarrow Table
        The table in the caller's container; every column can be filled.
    schema : Schema
        Its columns, as they were before cells were hidden.
    numbers : ndarray of shape (rows, columns)
        The table as numbers and codes of categories, NaN where a cell is missing.
    hidden : ndarray of bool, shape (rows, columns)
        The cells that were hidden.
    """

    native: Any
    schema: Schema
    numbers: FloatArray
    hidden: BoolArray

    @property
    def kinds(self) -> dict[Any, Kind]:
        """The kinds of the columns, for an estimator that takes them."""
        names = self.schema.names or range(len(self.schema.columns))
        return {name: column.kind for name, column in zip(names, self.schema.columns, strict=True)}

    @cached_property
    def discrete(self) -> BoolArray:
        """Which columns are categories."""
        return np.array([column.kind.is_discrete for column in self.schema.columns])

    def as_numbers(self, coding: Coding, *, scaled: bool) -> tuple[FloatArray, Decoder]:
        """Return the table for imputers that take numbers only, and the way back.

        Parameters
        ----------
        coding : {"codes", "indicators"}
            How categories are written: as codes 0, 1, ..., or in columns of 0 and 1, one for each
            category but the most frequent. With a column for that one too, each of them would
            follow from the others, and chained regressions would learn nothing else. Categories
            are written as codes in any case if there are more than 20 of them.
        scaled : bool
            Whether numbers and codes are scaled to [0, 1].
        """
        return Decoder.make(self.numbers, self.discrete, coding, scaled=scaled)

    def read(self, filled: Any) -> FloatArray:
        """Return a filled table as numbers and codes.

        Raises
        ------
        InputError
            If it does not have the rows and columns of the table, or a hidden cell is missing.
        """
        table = Table.wrap(filled)
        _require_shape((table.n_rows, table.n_columns), self.numbers.shape)
        check_columns(self.schema.columns, table, estimator="the comparison")
        missing = np.column_stack([table.missing(j) for j in range(table.n_columns)])
        _require_filled(int((missing & self.hidden).sum()))
        return self.schema.encode(table, warn=False).numbers


@dataclass(frozen=True)
class Decoder:
    """How columns of numbers came from the columns of a table.

    Parameters
    ----------
    scaling : Scaling
        Of the table's numbers; codes that become indicators are left as they are.
    categories : list of ndarray or None
        For every column that was written as indicators, its codes; the most frequent is the last
        and has no indicator. None for the others.
    counts : list of int
        Number of codes in the columns that were written as codes, 0 for numbers.
    """

    scaling: Scaling
    categories: list[FloatArray | None]
    counts: list[int]

    @classmethod
    def make(
        cls, numbers: FloatArray, discrete: BoolArray, coding: Coding, *, scaled: bool
    ) -> tuple[FloatArray, Decoder]:
        """Write a table as columns of numbers."""
        categories: list[FloatArray | None] = []
        counts = []
        for j, column in enumerate(numbers.T):
            found, count = np.unique(column[~np.isnan(column)], return_counts=True)
            spread = discrete[j] and coding == "indicators" and found.size <= MOST_INDICATORS
            categories.append(found[np.argsort(count, kind="stable")] if spread else None)
            counts.append(int(np.nanmax(column)) + 1 if discrete[j] else 0)
        plain = [j for j, codes in enumerate(categories) if codes is not None]
        scaling = Scaling.fit(numbers, "minmax", discrete=plain)
        if not scaled:
            one = np.ones_like(scaling.scale)
            scaling = Scaling(np.zeros_like(one), one)
        parts = []
        for column, codes in zip(scaling.apply(numbers).T, categories, strict=True):
            if codes is None:
                parts.append(column[:, None])
            else:
                indicators = (column[:, None] == codes[:-1]).astype(np.float64)
                indicators[np.isnan(column)] = np.nan
                parts.append(indicators)
        return np.hstack(parts), cls(scaling, categories, counts)

    @property
    def width(self) -> int:
        """Number of columns of numbers."""
        return sum(1 if codes is None else len(codes) - 1 for codes in self.categories)

    def decode(self, filled: Any, hidden: BoolArray) -> FloatArray:
        """Return the filled numbers of the table's columns; categories are the likeliest ones."""
        filled = np.asarray(filled, dtype=np.float64)
        _require_shape(filled.shape, (hidden.shape[0], self.width))
        columns = []
        at = 0
        for j, codes in enumerate(self.categories):
            width = 1 if codes is None else len(codes) - 1
            part = filled[:, at : at + width]
            at += width
            _require_filled(int((np.isnan(part).any(axis=1) & hidden[:, j]).sum()))
            if codes is None:
                column = self.scaling.of(j).undo(part[:, 0])
                if self.counts[j]:
                    column = np.clip(np.rint(column), 0, self.counts[j] - 1)
            else:
                rest = 1 - part.sum(axis=1, keepdims=True)
                column = codes[np.hstack([part, rest]).argmax(axis=1)]
            columns.append(column)
        return np.column_stack(columns)


def _require_shape(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if shape != expected:
        raise InputError(f"It returned a table of shape {shape} instead of {expected}.")


def _require_filled(empty: int) -> None:
    if empty:
        raise InputError(f"It left {empty} hidden cells empty.")
