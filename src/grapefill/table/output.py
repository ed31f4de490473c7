"""What happens to a rebuilt table before the caller gets it: more columns, another container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_pandas_dataframe, is_pyarrow_table

from grapefill.table.consistency import are_feature_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.arrays import BoolArray

__all__ = ["append_columns", "as_pandas", "stack_tables"]


def append_columns(table: Any, names: Sequence[str], columns: Sequence[BoolArray]) -> Any:
    """Return the table with boolean columns appended, in the same container.

    An array has one dtype for all columns, so True is 1 among numbers, and arrays of text or dates
    become arrays of objects. Labels of pandas that are not all text become text: scikit-learn
    refuses a mixture.

    Examples
    --------
    >>> append_columns(np.array([[1.5], [2.5]]), ["hole"], [np.array([True, False])])
    array([[1.5, 1. ],
           [2.5, 0. ]])
    """
    if isinstance(table, np.ndarray):
        extra = np.column_stack(columns) if columns else np.empty((len(table), 0), bool)
        if table.dtype.kind not in "biuf":
            return np.hstack([table.astype(object), extra.astype(object)])
        return np.hstack([table, extra.astype(table.dtype)])
    if is_pyarrow_table(table):
        # Narwhals would append them one by one, each time to a new table.
        from grapefill.table.arrow_frame import append_to_arrow

        return append_to_arrow(table, names, columns)
    if is_pandas_dataframe(table) and not are_feature_names(tuple(table.columns)):
        table = table.set_axis([str(label) for label in table.columns], axis=1)
    frame = nw.from_native(table, eager_only=True)
    series = [
        nw.new_series(name, column, nw.Boolean(), backend=frame.implementation)
        for name, column in zip(names, columns, strict=True)
    ]
    # Narwhals gives them the caller's index, so pandas has nothing to align.
    return frame.with_columns(*series).to_native()


def as_pandas(table: Any) -> Any:
    """Return a polars or pyarrow table as a pandas one; anything else as it is."""
    if isinstance(table, np.ndarray) or is_pandas_dataframe(table):
        return table
    return nw.from_native(table, eager_only=True).to_pandas()


def stack_tables(tables: Sequence[Any]) -> Any:
    """Return tables of one shape below each other, with columns in front that count them.

    ``.imp`` counts the tables and ``.id`` their rows, both from 1.

    Examples
    --------
    >>> stack_tables([np.array([[1.5], [2.5]]), np.array([[1.5], [3.5]])])
    array([[1. , 1. , 1.5],
           [1. , 2. , 2.5],
           [2. , 1. , 1.5],
           [2. , 2. , 3.5]])
    """
    if isinstance(tables[0], np.ndarray):
        counted = [
            np.column_stack([np.full(len(table), at), np.arange(1, len(table) + 1), table])
            if table.dtype != object
            else np.hstack([_counts(len(table), at).astype(object), table])
            for at, table in enumerate(tables, start=1)
        ]
        return np.vstack(counted)
    frames = []
    for at, table in enumerate(tables, start=1):
        frame = nw.from_native(table, eager_only=True)
        counts = _counts(len(frame), at)
        series = [
            nw.new_series(name, counts[:, k], nw.Int64(), backend=frame.implementation)
            for k, name in enumerate((".imp", ".id"))
        ]
        names = frame.columns
        frames.append(frame.with_columns(*series).select(".imp", ".id", *names))
    return nw.concat(frames, how="vertical").to_native()


def _counts(rows: int, at: int) -> Any:
    return np.column_stack([np.full(rows, at), np.arange(1, rows + 1)])
