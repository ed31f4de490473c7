"""What happens to a rebuilt table before the caller gets it: more columns, another container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_pandas_dataframe, is_pyarrow_table

from grapefill.errors import InputError
from grapefill.table.consistency import are_feature_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.arrays import Array, BoolArray, IntArray

__all__ = ["append_columns", "as_pandas", "as_polars", "stack_tables"]


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
            return np.hstack([_as_objects(table), extra.astype(object)])
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


def as_pandas(table: Any, names: Sequence[str]) -> Any:
    """Return a table as a pandas DataFrame; an array, or labels that are no text, get names.

    An index of pandas that a pyarrow table keeps as columns stays columns.
    """
    if isinstance(table, np.ndarray):
        import pandas as pd

        return pd.DataFrame(table, columns=list(names))
    if is_pandas_dataframe(table):
        text = are_feature_names(list(table.columns))
        return table if text else table.set_axis(list(names), axis=1)
    if is_pyarrow_table(table):
        from grapefill.table.arrow_frame import without_index

        table = without_index(table)
    return nw.from_native(table, eager_only=True).to_pandas()


def as_polars(table: Any, names: Sequence[str]) -> Any:
    """Return a table as a polars DataFrame; an array gets names for its columns."""
    import polars as pl

    if isinstance(table, np.ndarray):
        return pl.DataFrame(table, schema=list(names), orient="row")
    if is_pandas_dataframe(table):
        return pl.from_pandas(table.rename(columns=str))
    return pl.from_arrow(table) if is_pyarrow_table(table) else table


def stack_tables(tables: Sequence[Any]) -> Any:
    """Return tables of one shape below each other, with columns in front that count them.

    ``.imp`` counts the tables and ``.id`` their rows, both from 1. Arrays of text or dates become
    arrays of objects. Labels of pandas stay what they are, also if they are not text.

    Examples
    --------
    >>> stack_tables([np.array([[1.5], [2.5]]), np.array([[1.5], [3.5]])])
    array([[1. , 1. , 1.5],
           [1. , 2. , 2.5],
           [2. , 1. , 1.5],
           [2. , 2. , 3.5]])
    """
    if isinstance(tables[0], np.ndarray):
        return np.vstack([_counted_array(table, at) for at, table in enumerate(tables, start=1)])
    _require_free(nw.from_native(tables[0], eager_only=True).columns)
    if is_pandas_dataframe(tables[0]):
        # Narwhals takes labels that are text only.
        from grapefill.table.pandas_frame import stack_pandas

        numbers = [_counts(len(table), at) for at, table in enumerate(tables, start=1)]
        return stack_pandas(tables, numbers)
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


def _require_free(names: Sequence[Any]) -> None:
    taken = [name for name in (".imp", ".id") if name in names]
    if taken:
        raise InputError(
            f"The table has a column {taken[0]!r} already, so the tables cannot be counted in one "
            "of that name. Rename it, or sample without long=True."
        )


def _counted_array(table: Array, at: int) -> Array:
    counts = _counts(len(table), at)
    if table.dtype.kind not in "biuf":
        return np.hstack([counts.astype(object), _as_objects(table)])
    # Together with signed integers, large unsigned ones would become floats.
    return np.hstack([counts.astype(np.uint64) if table.dtype.kind == "u" else counts, table])


def _as_objects(table: Array) -> Array:
    """Return an array of objects without any loss; times too fine for Python stay numpy's."""
    if table.dtype.kind in "mM":
        objects = table.astype(object)
        if any(isinstance(cell, int) for cell in objects.flat):
            return np.array(list(table.flat), dtype=object).reshape(table.shape)
        return objects
    return table.astype(object)


def _counts(rows: int, at: int) -> IntArray:
    return np.column_stack([np.full(rows, at), np.arange(1, rows + 1)])
