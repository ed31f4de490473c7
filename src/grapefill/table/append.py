"""Add yes/no columns at the end of a caller's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.arrays import BoolArray

__all__ = ["append_columns"]


def append_columns(table: Any, names: Sequence[str], columns: Sequence[BoolArray]) -> Any:
    """Return the table with boolean columns appended, in the same container.

    An array has one dtype for all columns, so there True is 1.

    Examples
    --------
    >>> append_columns(np.array([[1.5], [2.5]]), ["hole"], [np.array([True, False])])
    array([[1.5, 1. ],
           [2.5, 0. ]])
    """
    if isinstance(table, np.ndarray):
        extra = np.column_stack(columns) if columns else np.empty((len(table), 0), bool)
        if table.dtype.kind in "USO":
            return np.hstack([table.astype(object), extra.astype(object)])
        return np.hstack([table, extra.astype(table.dtype)])
    frame = nw.from_native(table, eager_only=True)
    series = [
        nw.new_series(name, column, nw.Boolean(), backend=frame.implementation)
        for name, column in zip(names, columns, strict=True)
    ]
    if frame.implementation.is_pandas_like():
        # Without the caller's index the columns would be aligned by position to 0, 1, 2, ...
        series = [nw.maybe_set_index(each, index=table.index) for each in series]
    return frame.with_columns(*series).to_native()
