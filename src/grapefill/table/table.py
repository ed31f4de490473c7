"""The caller's table, whatever its container."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals.dependencies as libraries
import numpy as np

from grapefill.errors import InputError
from grapefill.table.kinds import Form, Storage
from grapefill.table.marks import Mark, read_mark
from grapefill.table.numpy_frame import NumpyFrame
from grapefill.table.text import some_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grapefill.table.arrays import Array, BoolArray, IntArray
    from grapefill.table.cells import ColumnCells, Frame

__all__ = ["Table"]

_ACCEPTED = "a 2-D numpy array, a list of rows, or a pandas, polars or pyarrow table"


class Table:
    """The caller's table as columns; made by `Table.wrap`.

    Nothing is copied and nothing of the caller's is ever changed.

    Attributes
    ----------
    container : {"numpy", "pandas", "polars", "pyarrow"}
        What the caller passed (lists of rows count as numpy).
    names : tuple or None
        Column labels as the container has them; None for arrays and lists.
    labels : tuple of str
        Column labels for messages: the name as text, ``"x3"`` where there is none.
    n_rows, n_columns : int
        The table's shape.

    Examples
    --------
    >>> table = Table.wrap([[1.0, None], [2.0, 3.0]])
    >>> table.container, table.labels, table.missing(1).tolist()
    ('numpy', ('x0', 'x1'), [True, False])
    >>> table.rebuild({1: (np.array([0]), np.array([4.0]))}, keep=[0, 1])
    array([[1.0, 4.0],
           [2.0, 3.0]], dtype=object)
    """

    def __init__(self, frame: Frame, mark: Mark) -> None:
        self._frame = frame
        self._mark = mark
        self._cells: dict[int, ColumnCells] = {}
        self.container = frame.container
        self.names = frame.names
        self.n_rows = frame.n_rows
        self.n_columns = frame.n_columns
        names = range(frame.n_columns) if frame.names is None else frame.names
        prefix = "x" if frame.names is None else ""
        self.labels = tuple(f"{prefix}{name}" for name in names)

    @classmethod
    def wrap(cls, X: Any, *, missing_values: object = np.nan) -> Table:
        """Read a table.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            The table.
        missing_values : scalar
            A value that means "missing" in columns of its own type, in addition to NaN, None,
            NaT, NA and null, which always do.

        Returns
        -------
        Table

        Raises
        ------
        InputError
            If `X` is none of these, or not two-dimensional.
        ConfigError
            If `missing_values` is not a number, string, bool, None or NaN.
        """
        return cls(_frame_of(X), read_mark(missing_values))

    def cells(self, j: int) -> ColumnCells:
        """Return column `j`, read once and remembered."""
        if j not in self._cells:
            self._cells[j] = self._frame.cells(j, self._mark)
        return self._cells[j]

    def position(self, label: Any, asked_by: str) -> int:
        """Return the position of a column, by its name (position for arrays) or message label.

        Parameters
        ----------
        label : hashable
            The column.
        asked_by : str
            The parameter that names it, for the message.

        Raises
        ------
        InputError
            If the table has no such column.
        """
        found = self._positions.get(label) if isinstance(label, Hashable) else None
        if found is None:
            raise InputError(
                f"{asked_by} names the column {label!r}, which the table does not have. Its "
                f"columns are {some_of(self.labels, 10)}."
            )
        return found

    @cached_property
    def _positions(self) -> dict[Any, int]:
        positions: dict[Any, int] = {label: j for j, label in enumerate(self.labels)}
        return positions | {n: j for j, n in enumerate(self.names or range(self.n_columns))}

    def missing(self, j: int) -> BoolArray:
        """Return where column `j` has no value."""
        return self.cells(j).missing

    def slice(self, start: int, stop: int) -> Table:
        """Return some rows as a table, without copying them."""
        return Table(self._frame.slice(start, stop), self._mark)

    def take(self, rows: IntArray) -> Table:
        """Return a copy of some rows, as a table."""
        return Table(self._frame.take(rows), self._mark)

    def rebuild(self, fills: Mapping[int, tuple[IntArray, Array]], keep: Sequence[int]) -> Any:
        """Return a table like the caller's with some cells replaced.

        Parameters
        ----------
        fills : mapping of int to (positions, values)
            For a column, the rows to replace and what `Column.decode` returned for them.
        keep : sequence of int
            The columns of the result, in order.

        Returns
        -------
        native
            Same container, dtypes, index and names; every other cell bit-equal. A dtype
            changes only where it cannot hold the values: a column without any value whose
            dtype is of another family, a fixed-width text column that is too narrow, an
            unordered category that lacks a category seen at fit.
        """
        kept = set(keep)
        columns = {
            j: self._filled(j, np.asarray(positions, dtype=np.int64), np.asarray(values))
            for j, (positions, values) in fills.items()
            if j in kept and len(positions)
        }
        return self._frame.rebuild(columns, keep)

    def emptied(self, holes: Mapping[int, IntArray]) -> Any:
        """Return a table like the caller's with some cells missing.

        Parameters
        ----------
        holes : mapping of int to positions
            For a column, the rows that lose their value.

        Returns
        -------
        native
            Same container, index and names; every other cell equal. A dtype changes only where it
            has no missing cells: integers and booleans of pandas become nullable; integers of an
            array become floats, or objects where floats would round them; its booleans and texts
            become objects.

        Raises
        ------
        InputError
            For a column of a dtype that has no missing cells and no such relative.
        """
        columns = {j: self._emptied(j, rows) for j, rows in holes.items() if len(rows)}
        return self._frame.rebuild(columns, range(self.n_columns))

    def _emptied(self, j: int, rows: IntArray) -> Any:
        """One column with cells missing."""
        cells = self.cells(j)
        try:
            return cells.emptied(rows)
        except Exception as error:
            # Libraries raise all kinds of errors for the few dtypes they cannot empty a cell of.
            raise InputError(
                f"Column {self.labels[j]!r} of dtype {cells.storage.dtype} cannot hold missing "
                f"cells: {error}. Convert it, or leave it out."
            ) from error

    def _filled(self, j: int, positions: IntArray, values: Array) -> Any:
        """One column with cells replaced."""
        cells = self.cells(j)
        if _can_hold(cells.storage, values):
            return cells.filled(positions, values)
        if cells.missing.all():
            return cells.replaced(positions, values)
        raise InputError(
            f"Column {self.labels[j]!r} of dtype {cells.storage.dtype} cannot hold values of "
            f"dtype {values.dtype}. Pass the column as it was at fit."
        )


def _can_hold(storage: Storage, values: Array) -> bool:
    """Whether decoded values fit a column's dtype."""
    kind = values.dtype.kind
    if storage.form in (Form.INTEGER, Form.FLOAT, Form.DECIMAL):
        return kind in "iufb"
    accepted = {
        Form.BOOLEAN: "b",
        Form.TEXT: "OU",
        Form.CATEGORY: "OUiufb",
        Form.DATETIME: "M",
        Form.DURATION: "m",
    }
    return kind in accepted.get(storage.form, "")


def _frame_of(X: Any) -> Frame:
    """Choose the adapter; a library's adapter is imported only when its table arrives."""
    if libraries.is_pandas_dataframe(X):
        from grapefill.table.pandas_frame import PandasFrame

        return PandasFrame(X)
    if libraries.is_polars_dataframe(X):
        from grapefill.table.polars_frame import PolarsFrame

        return PolarsFrame(X)
    if libraries.is_pyarrow_table(X):
        from grapefill.table.arrow_frame import ArrowFrame

        return ArrowFrame(X)
    _refuse(X)
    return NumpyFrame(_two_dimensional(X))


def _refuse(X: Any) -> None:
    """Raise for what looks like a table and is none."""
    if libraries.is_polars_lazyframe(X):
        raise InputError("A polars LazyFrame has no values yet. Call collect() first.")
    if libraries.is_pandas_series(X) or libraries.is_polars_series(X):
        raise InputError(
            f"Expected a table, got a {type(X).__name__} of one column. Reshape your data: "
            "pass X.to_frame()."
        )
    if hasattr(X, "tocsr") or hasattr(X, "todense"):
        raise InputError(
            "Sparse data was passed, but dense data is required: in a sparse matrix a hole and "
            "a zero look the same. Use '.toarray()' to convert to a dense numpy array."
        )
    if type(X).__name__ == "RecordBatch" and type(X).__module__.startswith("pyarrow"):
        raise InputError(
            "A pyarrow RecordBatch is only a part of a table. Pass pyarrow.Table.from_batches([X])."
        )
    if isinstance(X, np.ma.MaskedArray):
        raise InputError(
            "Masked arrays are not read. Pass X.astype(float).filled(np.nan), so that masked "
            "cells are missing."
        )
    if not isinstance(X, list | tuple) and not hasattr(X, "__array__"):
        raise InputError(f"A {type(X).__name__} is not a table. Pass {_ACCEPTED}.")


def _two_dimensional(X: Any) -> Array:
    """Turn an array, an array-like or a list of rows into a 2-D array."""
    try:
        array = np.asarray(X)
        if isinstance(X, list | tuple) and array.dtype.kind in "US":
            array = _array_of_rows(X, array)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"The rows do not make a table: {error}. Give every row the same number of cells."
        ) from error
    if array.ndim != 2 or array.dtype.names is not None:
        raise InputError(
            f"Expected 2D array, got {array.ndim}D array of dtype {array.dtype} instead. Reshape "
            "your data either using array.reshape(-1, 1) if your data has a single feature or "
            "array.reshape(1, -1) if it contains a single sample."
        )
    return array


def _array_of_rows(rows: Any, texts: Array) -> Array:
    """Keep numbers beside texts as they are, where numpy would turn them into text."""
    objects = np.array(rows, dtype=object)
    return texts if all(isinstance(cell, str) for cell in objects.flat) else objects
