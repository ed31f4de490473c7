"""Columns of Python objects: what they hold is known only from the values themselves."""

from __future__ import annotations

import datetime
import numbers
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.table.arrays import Array, BoolArray, FloatArray, IntArray, to_objects
from grapefill.table.cells import ColumnCells
from grapefill.table.kinds import Form, Storage
from grapefill.table.marks import Mark, missing_objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ObjectCells"]

_LARGEST = int(np.iinfo(np.uint64).max)
_INT64 = np.iinfo(np.int64)


class ObjectCells(ColumnCells):
    """A column of Python objects.

    Parameters
    ----------
    values : ndarray of dtype object and shape (rows,)
        The cells.
    mark : Mark
        A value that counts as missing.
    """

    def __init__(self, values: Array, mark: Mark) -> None:
        super().__init__(mark)
        self.values = values

    @cached_property
    def missing(self) -> BoolArray:
        """Return where a cell counts as missing."""
        return missing_objects(self.values, self.mark)

    @cached_property
    def _observed(self) -> Array:
        observed: Array = self.values[~self.missing]
        return observed

    @cached_property
    def storage(self) -> Storage:
        """Return how the cells are stored."""
        types = set(map(type, self._observed))
        if not types:
            return Storage(Form.EMPTY, "object")
        if all(issubclass(each, bool | np.bool_) for each in types):
            return Storage(Form.BOOLEAN, "object (booleans)")
        if all(issubclass(each, str) for each in types):
            return Storage(Form.TEXT, "object (strings)")
        if not any(issubclass(each, bool | np.bool_) for each in types):
            if all(issubclass(each, numbers.Integral) for each in types):
                return self._integer_storage()
            if all(issubclass(each, _real_types()) for each in types):
                return Storage(Form.FLOAT, "object (numbers)")
        return self._time_storage(types)

    def _integer_storage(self) -> Storage:
        smallest, largest = int(min(self._observed)), int(max(self._observed))
        if smallest < _INT64.min or largest > _LARGEST or (smallest < 0 and largest > _INT64.max):
            return Storage(Form.OTHER, "object (integers)", reason="integers wider than 64 bits")
        return Storage(Form.INTEGER, "object (integers)")

    def _time_storage(self, types: set[type]) -> Storage:
        if all(issubclass(each, datetime.datetime) for each in types):
            if all(value.tzinfo is None for value in self._observed):
                return Storage(Form.DATETIME, "object (datetimes)", unit="us")
            return Storage(Form.OTHER, "object", reason="Python datetimes with time zones")
        if all(each is datetime.date for each in types):
            return Storage(Form.DATETIME, "object (dates)", unit="D")
        if all(issubclass(each, datetime.timedelta) for each in types):
            return Storage(Form.DURATION, "object (durations)", unit="us")
        return Storage(Form.OTHER, "object", reason=_describe(types))

    def absent(self) -> BoolArray:
        """Return where there is no value, or NaN."""
        return missing_objects(self.values, None)

    def numbers(self) -> FloatArray:
        """Return numeric cells as float64."""
        result = np.full(len(self.values), np.nan)
        result[~self.missing] = self._observed.astype(np.float64)
        return result

    def integers(self) -> Array:
        """Return integer cells exactly."""
        wide = len(self._observed) > 0 and int(max(self._observed)) > _INT64.max
        result = np.zeros(len(self.values), dtype=np.uint64 if wide else np.int64)
        result[~self.missing] = self._observed
        return result

    def instants(self) -> Array:
        """Return datetimes in UTC, or durations."""
        letter = "m" if self.storage.form is Form.DURATION else "M"
        result = np.full(len(self.values), "NaT", dtype=f"{letter}8[{self.storage.unit}]")
        result[~self.missing] = self._observed
        return result

    def match_text(self, categories: Sequence[object]) -> IntArray:
        """Return positions among `categories`, -1 where not there."""
        codes = {value: code for code, value in enumerate(categories)}
        known = [codes.get(value, -1) for value in self._observed]
        result = np.full(len(self.values), -1, dtype=np.int64)
        result[~self.missing] = known
        return result

    def distinct_text(self) -> list[Any]:
        """Return the observed values in declared or sorted order."""
        return sorted({str(value) for value in self._observed})

    def filled(self, positions: IntArray, values: Array) -> Array:
        """Return the column with some cells replaced."""
        result = self.values.copy()
        result[positions] = to_objects(values)
        return result

    def emptied(self, positions: IntArray) -> Any:
        """Return the column with some cells missing: None where the column has None, else NaN."""
        result = self.values.copy()
        result[positions] = None if any(value is None for value in self.values) else np.nan
        return result

    def replaced(self, positions: IntArray, values: Array) -> Array:
        """Return a column of the values' own dtype."""
        return self.filled(positions, values)


def _real_types() -> tuple[type, ...]:
    return (int, float, np.integer, np.floating)


def _describe(types: Iterable[type]) -> str:
    """Say which values stopped the column from being imputed."""
    names = sorted({each.__name__ for each in types})
    if len(names) == 1:
        return f"values of type {names[0]}"
    return "values of several types: " + ", ".join(names)
