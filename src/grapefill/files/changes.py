"""What differs between the table of a file and the table that is to be written."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from grapefill.errors import InputError
from grapefill.files.orders import with_one_dictionary

if TYPE_CHECKING:
    from grapefill.files.cells.formats import ColumnFormat

__all__ = ["Changes", "apply_changes", "find_missing", "with_holes"]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Changes:
    """The cells that change, and the columns that are added.

    Parameters
    ----------
    rows : int
        Rows of the table.
    filled : dict of int to (ndarray of bool, pyarrow.Array)
        For a column, which rows get a value, and the values in their order.
    erased : dict of int to ndarray of bool
        For a column, which rows lose their value.
    added : list of (str, pyarrow.ChunkedArray)
        New columns and their names.
    formats : dict of str to ColumnFormat
        How some of the new columns are written.
    """

    rows: int
    filled: dict[int, tuple[Bools, Any]]
    erased: dict[int, Bools]
    added: list[tuple[str, Any]]
    formats: dict[str, ColumnFormat] = field(default_factory=dict)

    @classmethod
    def between(cls, before: Any, after: Any, *, erase: bool, name: str) -> Changes:
        """Compare two tables.

        Parameters
        ----------
        before, after : pyarrow.Table
            The table of the file, and the one to be written. It may lack columns, which stay as
            they are, and may have others behind them.
        erase : bool
            Whether a cell that has no value any more loses it in the file too.
        name : str
            What to call the file in a message.

        Raises
        ------
        InputError
            If the second is no table, or has another number of rows.
        """
        if not isinstance(after, pa.Table):
            raise InputError(f"Expected a pyarrow Table to write, got a {type(after).__name__}.")
        if after.num_rows != before.num_rows:
            raise InputError(
                f"The table to write has {after.num_rows} rows, but {name} has {before.num_rows}. "
                "Fill the table that was read, with its rows in their order."
            )
        filled, erased, added = {}, {}, []
        positions = {label: j for j, label in enumerate(before.column_names)}
        for label, column in zip(after.column_names, after.columns, strict=True):
            if label not in positions:
                added.append((label, column))
                continue
            j = positions[label]
            was, now = find_missing(before.column(j)), find_missing(column)
            if (fill := was & ~now).any():
                filled[j] = (fill, _one_array(column.filter(pa.array(fill))))
            if erase and (gone := now & ~was).any():
                erased[j] = gone
        return cls(before.num_rows, filled, erased, added)


def apply_changes(table: Any, changes: Changes) -> Any:
    """Return a table with the changes made."""
    columns = list(table.columns)
    for j, (rows, values) in changes.filled.items():
        columns[j] = _replaced(columns[j], rows, values)
    for j, rows in changes.erased.items():
        columns[j] = with_holes(columns[j], rows)
    names = table.column_names + [name for name, _ in changes.added]
    return pa.table([*columns, *(column for _, column in changes.added)], names=names)


def with_holes(column: Any, rows: Bools) -> Any:
    """Return a column with nothing in some cells; categories keep their order."""
    return _replaced(column, rows, pa.nulls(int(rows.sum()), column.type))


def _replaced(column: Any, rows: Bools, values: Any) -> Any:
    """Return a column with some cells replaced; its type stays."""
    if pa.types.is_null(column.type):
        column = column.cast(values.type)
    if pa.types.is_dictionary(column.type):
        return _replaced_in_dictionary(column, rows, values)
    # Not every type has a kernel that replaces cells, but all can be taken.
    order = np.arange(len(column))
    order[rows] = len(column) + np.arange(len(values))
    both = pa.chunked_array([*column.chunks, values.cast(column.type)], type=column.type)
    return pa.chunked_array([_one_array(both.take(pa.array(order)))], type=column.type)


def _replaced_in_dictionary(column: Any, rows: Bools, values: Any) -> Any:
    """Return a column of a dictionary with some cells replaced; its entries keep their order."""
    kind = column.type
    whole = _one_array(with_one_dictionary(column))
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    values = values.cast(kind.value_type)
    known = whole.dictionary
    unknown = pc.unique(values.filter(pc.invert(pc.is_in(values, value_set=known)))).drop_null()
    known = pa.concat_arrays([known, unknown])
    codes = whole.indices.cast(pa.int64()).to_numpy(zero_copy_only=False).copy()
    gone = whole.is_null().to_numpy(zero_copy_only=False).copy()
    new = pc.index_in(values, value_set=known)
    codes[rows] = pc.fill_null(new, 0).to_numpy(zero_copy_only=False)
    gone[rows] = new.is_null().to_numpy(zero_copy_only=False)
    indices = pa.array(np.where(gone, 0, codes).astype(np.int64), mask=gone).cast(kind.index_type)
    result = pa.DictionaryArray.from_arrays(indices, known, ordered=kind.ordered)
    return pa.chunked_array([result], type=kind)


def find_missing(column: Any) -> Bools:
    """Return where a column has no value, or NaN.

    Examples
    --------
    >>> find_missing(pa.chunked_array([[1.0, None, float("nan")]])).tolist()
    [False, True, True]
    """
    nan = pa.types.is_floating(column.type)
    missing: Bools = column.is_null(nan_is_null=nan).to_numpy().astype(bool)
    return missing


def _one_array(column: Any) -> Any:
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        return whole.chunk(0) if whole.num_chunks else pa.array([], type=whole.type)
    return whole
