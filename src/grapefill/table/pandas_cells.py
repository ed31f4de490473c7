"""Columns of a pandas table, one class for each way pandas stores them."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import GrapefillError
from grapefill.table.arrays import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    cast_numbers,
    take_or_minus_one,
)
from grapefill.table.cells import ColumnCells
from grapefill.table.kinds import Form, Storage
from grapefill.table.numpy_frame import ArrayCells
from grapefill.table.objects import ObjectCells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.marks import Mark

__all__ = ["pandas_cells"]

# This module is loaded only for a pandas object, so pandas stays an optional dependency.
pd: Any = import_module("pandas")


def pandas_cells(series: Any, mark: Mark) -> ColumnCells:
    """Return the cells of a pandas series of any dtype."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        values = series.to_numpy()
        if dtype.kind == "O":
            return PandasObjectCells(values, mark)
        return PandasArrayCells(values, mark, holes_make_floats=True)
    if isinstance(dtype, pd.CategoricalDtype):
        return PandasCategoryCells(series, mark)
    if isinstance(dtype, pd.ArrowDtype):
        return PandasArrowCells(series, mark)
    if isinstance(dtype, pd.StringDtype):
        return PandasTextCells(series, mark)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return PandasZonedCells(series, mark)
    if isinstance(series.array, pd.arrays.IntegerArray | pd.arrays.FloatingArray):
        return PandasMaskedCells(series, mark)
    if isinstance(series.array, pd.arrays.BooleanArray):
        return PandasMaskedCells(series, mark)
    return PandasCells(series, mark)


class PandasArrayCells(ArrayCells):
    """A numpy array in a pandas column."""

    def emptied(self, positions: IntArray) -> Any:
        """Return the column with some cells missing, nullable if its dtype has no such cell."""
        kind = self.values.dtype.kind
        if kind not in "biu":
            return super().emptied(positions)
        missing = np.zeros(len(self.values), dtype=bool)
        missing[positions] = True
        nullable = pd.arrays.BooleanArray if kind == "b" else pd.arrays.IntegerArray
        return nullable(self.values.copy(), missing)


class PandasCells(ColumnCells):
    """A series grapefill can only hand back as it is; the base of those it can read."""

    def __init__(self, series: Any, mark: Mark) -> None:
        super().__init__(mark)
        self.series = series

    @cached_property
    def storage(self) -> Storage:
        """Return how the cells are stored."""
        name = str(self.series.dtype)
        return Storage(Form.OTHER, name, reason=f"values of dtype {name}")

    def absent(self) -> BoolArray:
        """Return where there is no value, or NaN."""
        absent: BoolArray = self.series.isna().to_numpy(dtype=bool)
        return absent

    def numbers(self) -> FloatArray:
        """Return numeric cells as float64."""
        raise self._unreadable()

    def integers(self) -> Array:
        """Return integer cells exactly."""
        raise self._unreadable()

    def instants(self) -> Array:
        """Return datetimes in UTC, or durations."""
        raise self._unreadable()

    def match_text(self, categories: Sequence[object]) -> IntArray:
        """Return positions among `categories`, -1 where not there."""
        raise self._unreadable()

    def distinct_text(self) -> list[Any]:
        """Return the observed values in declared or sorted order."""
        raise self._unreadable()

    def _unreadable(self) -> GrapefillError:
        """Return the error for reading what passes through: a mistake of ours, not the caller's."""
        return GrapefillError(
            f"A column of dtype {self.series.dtype} was read although it passes through. Please "
            "report this as a bug."
        )

    def filled(self, positions: IntArray, values: Array) -> Any:
        """Return the column with some cells replaced."""
        result = self.series.array.copy()
        result[positions] = self._native(values)
        return result

    def emptied(self, positions: IntArray) -> Any:
        """Return the column with some cells missing."""
        result = self.series.array.copy()
        result[positions] = None
        return result

    def _native(self, values: Array) -> Any:
        """Values in a form the series' own array accepts."""
        return values

    def replaced(self, positions: IntArray, values: Array) -> Any:
        """Return a column of the values' own dtype."""
        natural = pd.Series(values if values.dtype != object else values.tolist(), index=positions)
        return natural.reindex(range(len(self.series))).array


class PandasMaskedCells(PandasCells):
    """Nullable integers, floats and booleans."""

    @cached_property
    def storage(self) -> Storage:
        """Return how the cells are stored."""
        dtype = self.series.dtype
        form = {"b": Form.BOOLEAN, "f": Form.FLOAT}.get(dtype.kind, Form.INTEGER)
        width = dtype.numpy_dtype.name if form is Form.FLOAT else "float64"
        return Storage(form, str(dtype), float_dtype=width)

    def absent(self) -> BoolArray:
        """Return where there is no value, or NaN."""
        if self.series.dtype.kind == "f":
            # A computed NaN may hide behind the mask without being NA.
            return np.isnan(self.numbers())
        return super().absent()

    def numbers(self) -> FloatArray:
        """Return numeric cells as float64."""
        numbers: FloatArray = self.series.array.to_numpy(dtype=np.float64, na_value=np.nan)
        return numbers

    def integers(self) -> Array:
        """Return integer cells exactly."""
        wide = np.uint64 if self.series.dtype.kind == "u" else np.int64
        integers: Array = self.series.array.to_numpy(dtype=wide, na_value=0)
        return integers

    def _native(self, values: Array) -> Array:
        return cast_numbers(values, self.series.dtype.numpy_dtype)


class PandasTextCells(PandasCells):
    """Strings of pandas' own dtypes, whatever keeps them."""

    @cached_property
    def storage(self) -> Storage:
        """Return how the cells are stored."""
        return Storage(Form.TEXT, str(self.series.dtype))

    def match_text(self, categories: Sequence[object]) -> IntArray:
        """Return positions among `categories`, -1 where not there."""
        known = pd.Index([str(value) for value in categories], dtype=self.series.dtype)
        return np.asarray(known.get_indexer(self.series), dtype=np.int64)

    def distinct_text(self) -> list[Any]:
        """Return the observed values in declared or sorted order."""
        found = self.series.dropna().unique().tolist()
        return sorted(value for value in found if value != self.mark)

    def _native(self, values: Array) -> Any:
        return values.astype(object)


class PandasZonedCells(PandasCells):
    """Datetimes with a time zone."""

    @cached_property
    def storage(self) -> Storage:
        """Return how the cells are stored."""
        dtype = self.series.dtype
        return Storage(Form.DATETIME, str(dtype), unit=dtype.unit, zoned=True)

    def instants(self) -> Array:
        """Return datetimes in UTC, or durations."""
        counts: Array = pd.DatetimeIndex(self.series).asi8
        return counts.view(f"M8[{self.storage.unit}]")

    def _native(self, values: Array) -> Any:
        utc = values.astype(f"M8[{self.storage.unit}]")
        return pd.DatetimeIndex(utc, tz="UTC").tz_convert(self.series.dtype.tz)


class PandasCategoryCells(PandasCells):
    """Categories of any values; those JSON has no word for go by their text."""

    @cached_property
    def _keys(self) -> list[Any]:
        return [_storable_category(value) for value in self.series.dtype.categories]

    @cached_property
    def storage(self) -> Storage:
        """Return how the cells are stored."""
        ordered = bool(self.series.dtype.ordered)
        name = "ordered category" if ordered else "category"
        return Storage(
            Form.CATEGORY,
            name,
            declared=tuple(self._keys),
            ordered=ordered,
            order_meant=ordered,
            closed=ordered,
        )

    @property
    def _codes(self) -> Array:
        codes: Array = self.series.cat.codes.to_numpy()
        return codes

    def match_text(self, categories: Sequence[object]) -> IntArray:
        """Return positions among `categories`, -1 where not there."""
        codes = {value: code for code, value in enumerate(categories)}
        table = np.array([codes.get(key, -1) for key in self._keys], dtype=np.int64)
        return take_or_minus_one(table, self._codes)

    def distinct_text(self) -> list[Any]:
        """Return the observed values in declared or sorted order."""
        return [self._keys[code] for code in np.unique(self._codes[~self.missing])]

    def filled(self, positions: IntArray, values: Array) -> Any:
        """Return the column with some cells replaced."""
        keys, dtype = self._keys, self.series.dtype
        known = set(keys)
        added = [value for value in dict.fromkeys(values.tolist()) if value not in known]
        if added:
            # The table declares fewer categories than were seen at fit: they join at the end.
            dtype = self.series.cat.add_categories(added).dtype
            keys = keys + added
        at = {key: code for code, key in enumerate(keys)}
        codes = self._codes.astype(np.int64)
        codes[positions] = [at[value] for value in values.tolist()]
        return pd.Categorical.from_codes(codes, dtype=dtype)


class PandasObjectCells(ObjectCells):
    """Python objects in a pandas column, matched with pandas' hash tables."""

    def match_text(self, categories: Sequence[object]) -> IntArray:
        """Return positions among `categories`, -1 where not there."""
        known = pd.Index(list(categories), dtype=object)
        return np.asarray(known.get_indexer(self.values), dtype=np.int64)

    def distinct_text(self) -> list[Any]:
        """Return the observed values in declared or sorted order."""
        return sorted(map(str, pd.unique(self._observed)))


def _arrow_cells(series: Any, mark: Mark) -> ColumnCells:
    from grapefill.table.arrow_cells import arrow_cells

    return arrow_cells(series.array.__arrow_array__(), mark)


class PandasArrowCells(PandasCells):
    """A pyarrow column inside a pandas table: the pyarrow cells do the work."""

    def __init__(self, series: Any, mark: Mark) -> None:
        super().__init__(series, mark)
        self.inner = _arrow_cells(series, mark)

    @cached_property
    def storage(self) -> Storage:
        """Return how the cells are stored."""
        return self.inner.storage

    def absent(self) -> BoolArray:
        """Return where there is no value, or NaN."""
        return self.inner.absent()

    def numbers(self) -> FloatArray:
        """Return numeric cells as float64."""
        return self.inner.numbers()

    def integers(self) -> Array:
        """Return integer cells exactly."""
        return self.inner.integers()

    def instants(self) -> Array:
        """Return datetimes in UTC, or durations."""
        return self.inner.instants()

    def match_text(self, categories: Sequence[object]) -> IntArray:
        """Return positions among `categories`, -1 where not there."""
        return self.inner.match_text(categories)

    def distinct_text(self) -> list[Any]:
        """Return the observed values in declared or sorted order."""
        return self.inner.distinct_text()

    def filled(self, positions: IntArray, values: Array) -> Any:
        """Return the column with some cells replaced."""
        return pd.arrays.ArrowExtensionArray(self.inner.filled(positions, values))

    def emptied(self, positions: IntArray) -> Any:
        """Return the column with some cells missing."""
        return pd.arrays.ArrowExtensionArray(self.inner.emptied(positions))


def _storable_category(value: Any) -> Any:
    """Return a category as a JSON scalar; what JSON has no word for goes by its text."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, str | bool | int | float) else str(value)
