"""A pandas DataFrame."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from grapefill.table.pandas_cells import pandas_cells

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grapefill.table.arrays import IntArray
    from grapefill.table.cells import ColumnCells
    from grapefill.table.marks import Mark

__all__ = ["PandasFrame", "stack_pandas"]

# This module is loaded only for a pandas object, so pandas stays an optional dependency.
pd: Any = import_module("pandas")


class PandasFrame:
    """A pandas DataFrame; index, labels and attributes survive a rebuild."""

    container = "pandas"

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.names: tuple[Any, ...] | None = tuple(frame.columns)
        self.n_rows, self.n_columns = frame.shape

    def cells(self, j: int, mark: Mark) -> ColumnCells:
        """Return column `j`."""
        return pandas_cells(self.frame.iloc[:, j], mark)

    def slice(self, start: int, stop: int) -> Self:
        """Return a view of some rows."""
        return type(self)(self.frame.iloc[start:stop])

    def take(self, rows: IntArray) -> Self:
        """Return a copy of some rows."""
        return type(self)(self.frame.iloc[rows])

    def rebuild(self, columns: Mapping[int, Any], keep: Sequence[int]) -> Any:
        """Return a new frame with the columns `keep`, some exchanged."""
        result = self.frame.iloc[:, list(keep)]
        dtypes = list(self.frame.dtypes)
        for at, j in enumerate(keep):
            if j in columns:
                column = columns[j]
                if dtypes[j].kind == "O" and isinstance(column, np.ndarray):
                    # A bare array of objects would be given a dtype by its values.
                    column = pd.Series(column, index=self.frame.index, dtype=object)
                result.isetitem(at, column)
        return result


def stack_pandas(tables: Sequence[Any], counts: Sequence[IntArray]) -> Any:
    """Return frames below each other, with two columns of counts in front; see `stack_tables`."""
    frames = []
    for frame, mine in zip(tables, counts, strict=True):
        result = frame.copy(deep=False)
        # Labels of several levels want a label of as many.
        more = ("",) * (frame.columns.nlevels - 1)
        for k, name in enumerate((".imp", ".id")):
            result.insert(k, (name, *more) if more else name, mine[:, k])
        frames.append(result)
    return pd.concat(frames)
