"""A polars frame and its columns."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from grapefill.table.arrays import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    cast_numbers,
    counts_in_unit,
)
from grapefill.table.cells import ColumnCells
from grapefill.table.decimals import to_decimals
from grapefill.table.kinds import Form, Storage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grapefill.table.marks import Mark

__all__ = ["PolarsCells", "PolarsFrame"]

# This module is loaded only for a polars object, so polars stays an optional dependency.
pl: Any = import_module("polars")


class PolarsCells(ColumnCells):
    """A polars series.

    Parameters
    ----------
    series : polars.Series
        The cells.
    mark : Mark
        A value that counts as missing.
    """

    def __init__(self, series: Any, mark: Mark) -> None:
        super().__init__(mark)
        self.series = series
        self.dtype = series.dtype

    @cached_property
    def storage(self) -> Storage:
        """Return how the cells are stored."""
        dtype, name = self.dtype, str(self.dtype)
        if dtype == pl.Boolean:
            return Storage(Form.BOOLEAN, name)
        if dtype.is_integer() and not name.endswith("128"):
            return Storage(Form.INTEGER, name)
        if dtype.is_float():
            return Storage(Form.FLOAT, name, float_dtype=name.lower())
        if dtype.is_decimal():
            return Storage(Form.DECIMAL, name, scale=dtype.scale)
        if dtype == pl.String:
            return Storage(Form.TEXT, name)
        if isinstance(dtype, pl.Enum):
            declared = tuple(dtype.categories.to_list())
            return Storage(Form.CATEGORY, "Enum", declared=declared, ordered=True, closed=True)
        if dtype == pl.Categorical:
            return Storage(Form.CATEGORY, name)
        if dtype == pl.Date:
            return Storage(Form.DATETIME, name, unit="D")
        if dtype == pl.Datetime:
            zoned = dtype.time_zone is not None
            return Storage(Form.DATETIME, name, unit=dtype.time_unit, zoned=zoned)
        if dtype == pl.Duration:
            return Storage(Form.DURATION, name, unit=dtype.time_unit)
        if dtype == pl.Null:
            return Storage(Form.EMPTY, name)
        return Storage(Form.OTHER, name, reason=f"values of dtype {name}")

    def absent(self) -> BoolArray:
        """Return where there is no value, or NaN."""
        if self.dtype.is_float():
            return np.isnan(self.numbers())
        absent: BoolArray = self.series.is_null().to_numpy()
        return absent

    def numbers(self) -> FloatArray:
        """Return numeric cells as float64."""
        numbers: FloatArray = self.series.cast(pl.Float64).to_numpy()
        return numbers

    def integers(self) -> Array:
        """Return integer cells exactly."""
        wide = pl.UInt64 if self.dtype.is_unsigned_integer() else pl.Int64
        integers: Array = self.series.cast(wide).fill_null(0).to_numpy()
        return integers

    def instants(self) -> Array:
        """Return datetimes in UTC, or durations."""
        letter = "m" if self.dtype == pl.Duration else "M"
        counts: Array = self.series.to_physical().cast(pl.Int64).fill_null(0).to_numpy()
        return counts.view(f"{letter}8[{self.storage.unit}]")

    def match_text(self, categories: Sequence[object]) -> IntArray:
        """Return positions among `categories`, -1 where not there."""
        known = pl.Enum([str(value) for value in categories])
        at = self.series.cast(pl.String).cast(known, strict=False).to_physical()
        codes: IntArray = at.cast(pl.Int64).fill_null(-1).to_numpy()
        return codes

    def distinct_text(self) -> list[Any]:
        """Return the observed values in declared or sorted order."""
        found = self.series.unique().drop_nulls().cast(pl.String).to_list()
        present = {value for value in found if value != self.mark}
        declared = self.storage.declared
        return sorted(present) if declared is None else [v for v in declared if v in present]

    def filled(self, positions: IntArray, values: Array) -> Any:
        """Return the column with some cells replaced."""
        return self._spread(positions, self._native(values)).zip_with(
            self._where(positions), self.series
        )

    def emptied(self, positions: IntArray) -> Any:
        """Return the column with some cells missing."""
        kept = pl.when(~self._where(positions)).then(self.series)
        return pl.select(kept.alias(self.series.name)).to_series()

    def replaced(self, positions: IntArray, values: Array) -> Any:
        """Return a column of the values' own dtype."""
        natural = pl.Series(values if values.dtype != object else values.tolist())
        return self._spread(positions, natural).alias(self.series.name)

    def _where(self, positions: IntArray) -> Any:
        where = np.zeros(len(self.series), dtype=bool)
        where[positions] = True
        return pl.Series(where)

    def _spread(self, positions: IntArray, values: Any) -> Any:
        """Lay the values out over all rows, null elsewhere, named like the series."""
        source = np.zeros(len(self.series), dtype=np.int64)
        source[positions] = np.arange(len(positions))
        at = pl.Series(source).zip_with(
            self._where(positions), pl.Series([None], dtype=pl.Int64).new_from_index(0, len(source))
        )
        return values.gather(at).alias(self.series.name)

    def _native(self, values: Array) -> Any:
        """Values as a series of the column's dtype."""
        form = self.storage.form
        if form is Form.INTEGER:
            bounds = np.dtype(self.storage.dtype.lower())
            return pl.Series(cast_numbers(values, bounds)).cast(self.dtype)
        if form is Form.DECIMAL:
            decimals = to_decimals(values, self.dtype.precision, self.dtype.scale)
            return pl.Series(decimals, dtype=self.dtype)
        if form in (Form.TEXT, Form.CATEGORY):
            return pl.Series(values.tolist(), dtype=pl.String).cast(self.dtype)
        if form in (Form.DATETIME, Form.DURATION):
            counts = counts_in_unit(values, self.storage.unit)
            return pl.Series(np.ascontiguousarray(counts)).cast(self.dtype)
        return pl.Series(values).cast(self.dtype)


class PolarsFrame:
    """A polars DataFrame."""

    container = "polars"

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.names: tuple[Any, ...] | None = tuple(frame.columns)
        self.n_rows, self.n_columns = frame.shape

    def cells(self, j: int, mark: Mark) -> ColumnCells:
        """Return column `j`."""
        return PolarsCells(self.frame.to_series(j), mark)

    def slice(self, start: int, stop: int) -> Self:
        """Return some rows without a copy."""
        return type(self)(self.frame.slice(start, max(0, stop - start)))

    def take(self, rows: IntArray) -> Self:
        """Return a copy of some rows."""
        return type(self)(self.frame[rows])

    def rebuild(self, columns: Mapping[int, Any], keep: Sequence[int]) -> Any:
        """Return a new frame with the columns `keep`, some exchanged."""
        kept = [columns[j] if j in columns else self.frame.to_series(j) for j in keep]
        return pl.DataFrame(kept)
