"""A pyarrow table."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from grapefill.files.orders import is_enum, with_one_dictionary
from grapefill.table.arrow_cells import arrow_cells, take_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grapefill.table.arrays import BoolArray, IntArray
    from grapefill.table.cells import ColumnCells
    from grapefill.table.marks import Mark

__all__ = ["ArrowFrame", "append_to_arrow", "as_batch", "as_table", "without_index"]

# This module is loaded only for a pyarrow object; pyarrow has no types, hence Any.
pa: Any = import_module("pyarrow")


class ArrowFrame:
    """A pyarrow table; schema and field metadata survive a rebuild."""

    container = "pyarrow"

    def __init__(self, table: Any) -> None:
        self.table = table
        self.names: tuple[Any, ...] | None = tuple(table.column_names)
        self.n_rows = int(table.num_rows)
        self.n_columns = int(table.num_columns)

    def cells(self, j: int, mark: Mark) -> ColumnCells:
        """Return column `j`."""
        is_meant = not is_enum(self.table.schema.field(j))
        return arrow_cells(self.table.column(j), mark, order_meant=is_meant)

    def slice(self, start: int, stop: int) -> Self:
        """Return some rows without a copy."""
        return type(self)(self.table.slice(start, max(0, stop - start)))

    def take(self, rows: IntArray) -> Self:
        """Return a copy of some rows."""
        columns = [take_rows(column, pa.array(rows)) for column in self.table.columns]
        return type(self)(pa.Table.from_arrays(columns, schema=self.table.schema))

    def rebuild(self, columns: Mapping[int, Any], keep: Sequence[int]) -> Any:
        """Return a new table with the columns `keep`, some exchanged."""
        arrays, fields = [], []
        for j in keep:
            field = self.table.schema.field(j)
            array = columns.get(j, self.table.column(j))
            arrays.append(array)
            field = field if field.type == array.type else field.with_type(array.type)
            fields.append(field.with_nullable(field.nullable or array.null_count > 0))
        schema = pa.schema(fields, metadata=self.table.schema.metadata)
        return pa.Table.from_arrays(arrays, schema=schema)


def append_to_arrow(table: Any, names: Sequence[str], columns: Sequence[BoolArray]) -> Any:
    """Return a pyarrow table with boolean columns appended, all at once."""
    fields = [*table.schema, *(pa.field(name, pa.bool_()) for name in names)]
    schema = pa.schema(fields, metadata=table.schema.metadata)
    return pa.Table.from_arrays([*table.columns, *map(pa.array, columns)], schema=schema)


def without_index(table: Any) -> Any:
    """Return a pyarrow table whose columns are no index of pandas, whatever its metadata says."""
    pandas = table.schema.pandas_metadata
    if not pandas or not any(isinstance(each, str) for each in pandas["index_columns"]):
        return table
    # An index without a name has none there, but its column has.
    columns = [each | {"name": each["name"] or each["field_name"]} for each in pandas["columns"]]
    changed = json.dumps(pandas | {"index_columns": [], "columns": columns})
    return table.replace_schema_metadata(table.schema.metadata | {b"pandas": changed})


def as_table(batch: Any) -> Any:
    """Return a record batch of pyarrow as a table; anything else as it is."""
    return pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch


def as_batch(table: Any) -> Any:
    """Return the rows of a pyarrow table as one record batch."""
    arrays = [
        column.chunk(0) if column.num_chunks == 1 else _joined(column) for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def _joined(column: Any) -> Any:
    if not column.num_chunks:
        return pa.array([], type=column.type)
    whole = with_one_dictionary(column).combine_chunks()
    # Of types such as string views, pyarrow gives a chunked array again.
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
