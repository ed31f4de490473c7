"""Numpy arrays: typed columns, object columns, and the two-dimensional array of either."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from grapefill.table.arrays import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    are_exact,
    cast_numbers,
    to_objects,
)
from grapefill.table.cells import ColumnCells
from grapefill.table.kinds import Form, Storage
from grapefill.table.objects import ObjectCells

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grapefill.table.marks import Mark

__all__ = ["ArrayCells", "NumpyFrame"]

_FORMS = {
    "b": Form.BOOLEAN,
    "i": Form.INTEGER,
    "u": Form.INTEGER,
    "f": Form.FLOAT,
    "U": Form.TEXT,
    "M": Form.DATETIME,
    "m": Form.DURATION,
}


class ArrayCells(ColumnCells):
    """A column of a typed numpy array.

    Parameters
    ----------
    values : ndarray of shape (rows,)
        Any dtype but object.
    mark : Mark
        A value that counts as missing.
    holes_make_floats : bool
        True for pandas, whose integers become floats when a cell is missing.
    """

    def __init__(self, values: Array, mark: Mark, *, holes_make_floats: bool = False) -> None:
        super().__init__(mark)
        self.values = values
        self.holes_make_floats = holes_make_floats

    @cached_property
    def storage(self) -> Storage:
        """Return how the cells are stored."""
        dtype = self.values.dtype
        form = _FORMS.get(dtype.kind, Form.OTHER)
        if form in (Form.DATETIME, Form.DURATION):
            unit, step = np.datetime_data(dtype)
            if unit == "generic":
                return Storage(Form.EMPTY, str(dtype))
            return Storage(form, str(dtype), unit=unit if step == 1 else f"{step}{unit}")
        return Storage(
            form,
            str(dtype),
            # longdouble is read as float64, so it is compared as such.
            float_dtype=dtype.name if dtype.name in ("float16", "float32") else "float64",
            holes_make_floats=self.holes_make_floats and form is Form.FLOAT,
            reason=f"values of dtype {dtype}",
        )

    def absent(self) -> BoolArray:
        """Return where there is no value, or NaN."""
        if self.values.dtype.kind in "fc":
            return np.isnan(self.values)
        if self.values.dtype.kind in "mM":
            return np.isnat(self.values)
        return np.zeros(len(self.values), dtype=bool)

    def numbers(self) -> FloatArray:
        """Return numeric cells as float64."""
        return self.values.astype(np.float64)

    def integers(self) -> Array:
        """Return integer cells exactly."""
        return self.values.astype(np.uint64 if self.values.dtype.kind == "u" else np.int64)

    def instants(self) -> Array:
        """Return datetimes in UTC, or durations."""
        # A copy in native byte order and contiguous, since callers view it as integers.
        return self.values.astype(self.values.dtype.newbyteorder("="), order="C")

    def match_text(self, categories: Sequence[object]) -> IntArray:
        """Return positions among `categories`, -1 where not there."""
        names = np.array(categories, dtype=str)
        order = np.argsort(names)
        keys = names[order]
        at = np.minimum(np.searchsorted(keys, self.values), len(keys) - 1)
        return np.where(keys[at] == self.values, order[at], -1)

    def distinct_text(self) -> list[Any]:
        """Return the observed values in declared or sorted order."""
        values: list[Any] = np.unique(self.values[~self.missing]).tolist()
        return values

    def filled(self, positions: IntArray, values: Array) -> Array:
        """Return the column with some cells replaced."""
        own = self.values.dtype
        if own.kind == "U":
            text = values.astype(str)
            # A wider column rather than a silently shortened word.
            result = self.values.astype(np.promote_types(own, text.dtype))
            result[positions] = text
            return result
        result = self.values.copy()
        result[positions] = cast_numbers(values, own)
        return result

    def emptied(self, positions: IntArray) -> Any:
        """Return the column with some cells missing, as floats or objects if its dtype has none."""
        kind = self.values.dtype.kind
        if kind in "fcmM":
            result = self.values.copy()
            result[positions] = "NaT" if kind in "mM" else np.nan
            return result
        exact = kind in "iu" and are_exact(self.values)
        result = self.values.astype(np.float64 if exact else object)
        # scikit-learn takes NaN, not None, for the hole in an array of objects.
        result[positions] = np.nan
        return result

    def replaced(self, positions: IntArray, values: Array) -> Array:
        """Return a column of the values' own dtype."""
        result = np.full(len(self.values), None, dtype=object)
        result[positions] = to_objects(values)
        return result


class NumpyFrame:
    """A two-dimensional numpy array."""

    container = "numpy"
    names: tuple[Any, ...] | None = None

    def __init__(self, array: Array) -> None:
        self.array = array
        self.n_rows, self.n_columns = array.shape

    def cells(self, j: int, mark: Mark) -> ColumnCells:
        """Return column `j`."""
        values = self.array[:, j]
        return ObjectCells(values, mark) if values.dtype == object else ArrayCells(values, mark)

    def slice(self, start: int, stop: int) -> Self:
        """Return a view of some rows."""
        return type(self)(self.array[start:stop])

    def take(self, rows: IntArray) -> Self:
        """Return a copy of some rows."""
        return type(self)(self.array[rows])

    def rebuild(self, columns: Mapping[int, Any], keep: Sequence[int]) -> Array:
        """Return a new array with the columns `keep`, some exchanged."""
        kept = list(keep)
        dtype = self.array.dtype
        for column in columns.values():
            # Promotion would also turn a foreign byte order into the native one.
            if column.dtype == object:
                dtype = column.dtype
            elif column.dtype != dtype:
                dtype = np.promote_types(dtype, column.dtype)
        if dtype.kind == "f" and self.array.dtype.kind in "iu" and not are_exact(self.array):
            # Floats would round the large integers of the other columns.
            dtype = np.dtype(object)
        # Choosing columns copies already, and slowly: not needed when all of them stay.
        every = kept == list(range(self.n_columns))
        chosen = self.array if every else self.array[:, kept]
        result = chosen.astype(dtype, copy=every)
        for at, j in enumerate(kept):
            if j in columns:
                result[:, at] = columns[j]
        return result
