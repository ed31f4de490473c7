"""The two interfaces of a container: one column (`ColumnCells`) and all of them (`Frame`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from grapefill.table.arrays import Array, BoolArray, FloatArray, IntArray, match_numbers
from grapefill.table.kinds import Form, Storage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grapefill.table.marks import Mark

__all__ = ["ColumnCells", "Fill", "Frame"]

Fill = tuple[IntArray, Array]
"""Row positions and the values to put there."""


class ColumnCells(ABC):
    """One column of the caller's table, read-only.

    What a reading method returns at missing cells is arbitrary: mask with `missing`.

    Parameters
    ----------
    mark : Mark
        A value that counts as missing besides the NaN-likes.
    """

    def __init__(self, mark: Mark) -> None:
        self.mark = mark

    @cached_property
    @abstractmethod
    def storage(self) -> Storage:
        """Return how the cells are stored."""

    @abstractmethod
    def absent(self) -> BoolArray:
        """Return where the container itself has no value, or NaN."""

    @abstractmethod
    def numbers(self) -> FloatArray:
        """Return numeric cells as float64, booleans as 0 and 1."""

    @abstractmethod
    def integers(self) -> Array:
        """Return integer cells as int64 or uint64, exactly."""

    @abstractmethod
    def instants(self) -> Array:
        """Return datetimes (in UTC) or durations as a datetime64 or timedelta64 array."""

    @abstractmethod
    def match_text(self, categories: Sequence[object]) -> IntArray:
        """Return positions of text or category cells among `categories`, -1 where not there."""

    @abstractmethod
    def distinct_text(self) -> list[Any]:
        """Return observed values of text or category cells, in declared or sorted order."""

    @abstractmethod
    def filled(self, positions: IntArray, values: Array) -> Any:
        """Return a native column of the same dtype with the given cells replaced."""

    @abstractmethod
    def replaced(self, positions: IntArray, values: Array) -> Any:
        """Return a native column of the values' own dtype, missing elsewhere."""

    @abstractmethod
    def emptied(self, positions: IntArray) -> Any:
        """Return a native column with the given cells missing, the others bit-equal."""

    @cached_property
    def missing(self) -> BoolArray:
        """Return where a cell counts as missing."""
        missing = self.absent()
        if self.mark is None:
            return missing
        return missing | self._marked(self.mark)

    def codes(self, categories: Sequence[object]) -> IntArray:
        """Return the position of each cell among `categories`, -1 where it is not there."""
        form = self.storage.form
        if form.is_numeric:
            values = self.integers() if form is Form.INTEGER else self.numbers()
            return match_numbers(values, categories)
        if form in (Form.TEXT, Form.CATEGORY):
            return self.match_text(categories)
        return np.full(len(self.missing), -1, dtype=np.int64)

    def distinct(self) -> list[Any]:
        """Return the observed values as plain Python scalars, in declared or sorted order."""
        form = self.storage.form
        if not form.is_numeric:
            return self.distinct_text()
        values = self.integers() if form is Form.INTEGER else self.numbers()
        found: list[Any] = np.unique(values[~self.missing]).tolist()
        return [bool(value) for value in found] if form is Form.BOOLEAN else found

    def _marked(self, mark: str | int | float | bool) -> BoolArray:
        """Where the mark stands; a mark only matches cells of its own family."""
        form = self.storage.form
        is_number = not isinstance(mark, str | bool)
        if form is Form.CATEGORY:
            return np.equal(self.match_text((mark,)), 0)
        if form is Form.TEXT and isinstance(mark, str):
            return np.equal(self.match_text((mark,)), 0)
        if form is Form.BOOLEAN and isinstance(mark, bool):
            return np.equal(self.numbers(), mark)
        if form is Form.INTEGER and is_number:
            return np.equal(self.integers(), mark)
        if form in (Form.FLOAT, Form.DECIMAL) and is_number:
            found: BoolArray = self.numbers() == np.array([mark], self.storage.float_dtype)
            return found
        return np.zeros(len(self.absent()), dtype=bool)


class Frame(Protocol):
    """The caller's table in one container."""

    container: str
    names: tuple[Any, ...] | None
    n_rows: int
    n_columns: int

    def cells(self, j: int, mark: Mark) -> ColumnCells:
        """Return column `j`."""
        ...

    def slice(self, start: int, stop: int) -> Self:
        """Return the rows from `start` to `stop`, without a copy where the container allows."""
        ...

    def take(self, rows: IntArray) -> Self:
        """Return a copy of some rows."""
        ...

    def rebuild(self, columns: Mapping[int, Any], keep: Sequence[int]) -> Any:
        """Return the table with the columns `keep`, some of them exchanged for native ones."""
        ...
