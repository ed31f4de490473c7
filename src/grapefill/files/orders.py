"""The order of categories: what the dictionaries of pyarrow and of Parquet files tell of it."""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

from grapefill.errors import warn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = [
    "common_order",
    "is_enum",
    "orders_in_parquet",
    "unknown_orders",
    "warn_of_unknown_orders",
    "with_one_dictionary",
    "without_orders",
]

pa: Any = import_module("pyarrow")

# Other libraries list the categories as they come, and call them ordered all the same.
_KEEPS_DICTIONARIES = "parquet-cpp-arrow"
_BATCH_ROWS = 65_536


def is_enum(field: Any) -> bool:
    """Whether a field is an Enum of polars.

    It is stored like ordered categories, but lists what it may hold.
    """
    return any(name.startswith(b"_PL_") for name in field.metadata or {})


def common_order(dictionaries: Iterable[Any]) -> Any:
    """Return the dictionary that all others are a part of in the same order, None if none is.

    Examples
    --------
    >>> common_order([pa.array(["lo", "hi"]), pa.array(["lo", "mid", "hi"])]).to_pylist()
    ['lo', 'mid', 'hi']
    >>> common_order([pa.array(["lo", "mid"]), pa.array(["hi", "lo"])]) is None
    True
    """
    longest = None
    for each in dictionaries:
        if longest is None or _is_part(longest, each):
            longest = each
        elif not _is_part(each, longest):
            return None
    return longest


def _is_part(one: Any, other: Any) -> bool:
    """Whether the values of one dictionary are in another, in the same order."""
    if one.equals(other):
        return True
    rest = iter(other.to_pylist())
    return all(value in rest for value in one.to_pylist())


def with_one_dictionary(column: Any) -> Any:
    """Return a chunked array whose chunks share a dictionary, in the order of all if there is one.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Of any type; what is no dictionary, or has one for all chunks, is returned as it is.
    """
    if not pa.types.is_dictionary(column.type) or column.num_chunks < 2:
        return column
    order = common_order(chunk.dictionary for chunk in column.chunks)
    if order is None:
        return column.unify_dictionaries()
    # Dictionaries are joined in the order of the chunks, so the longest comes first.
    first = pa.DictionaryArray.from_arrays(
        pa.array([], column.type.index_type), order, ordered=column.type.ordered
    )
    joined = pa.chunked_array([first, *column.chunks], type=column.type).unify_dictionaries()
    return pa.chunked_array(joined.chunks[1:], type=joined.type)


def without_orders(table: Any, names: Collection[str]) -> Any:
    """Return a table in which the categories of some columns have no order."""
    for j, field in enumerate(table.schema):
        if field.name not in names or not pa.types.is_dictionary(field.type):
            continue
        kind = pa.dictionary(field.type.index_type, field.type.value_type, ordered=False)
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary, ordered=False)
            for chunk in table.column(j).chunks
        ]
        table = table.set_column(j, field.with_type(kind), pa.chunked_array(chunks, type=kind))
    return table


def orders_in_parquet(file: Any) -> dict[str, Any]:
    """Return the order of the ordered categories in a Parquet file, None where it is not known.

    A column without a dictionary in the file still comes back as ordered, with its categories as
    they come in the rows; so do those that are not in the dictionary it has.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        The file.

    Returns
    -------
    dict of str to pyarrow.Array or None
        By column, without Enums of polars.
    """
    metadata = file.metadata
    names = [
        field.name
        for field in file.schema_arrow
        if pa.types.is_dictionary(field.type) and field.type.ordered and not is_enum(field)
    ]
    if not names or not str(metadata.created_by).startswith(_KEEPS_DICTIONARIES):
        return dict.fromkeys(names)
    return {name: _order_of(file, name) for name in names}


def _order_of(file: Any, name: str) -> Any:
    # A file without rows has nothing against any order.
    found = [pa.array([], pa.string())]
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        if not group.num_rows:
            continue
        chunk = next(
            each
            for each in map(group.column, range(group.num_columns))
            if each.path_in_schema == name
        )
        if not chunk.has_dictionary_page or not any(
            encoding.endswith("DICTIONARY") for encoding in chunk.encodings
        ):
            return None
        wanted = {"row_groups": [number], "columns": [name], "use_threads": False}
        # The first row is read with the dictionary of the file; what is not in there is appended.
        stored = next(file.iter_batches(1, **wanted)).column(0).dictionary
        for batch in file.iter_batches(_BATCH_ROWS, **wanted):
            if len(batch.column(0).dictionary) > len(stored):
                return None
        found.append(stored)
    return common_order(found)


def unknown_orders(orders: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the columns for which some files of a table tell no order, or unlike ones.

    Parameters
    ----------
    orders : iterable of mapping
        What `orders_in_parquet` says of every file.
    """
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for each in orders:
        for name, order in each.items():
            found[name].append(order)
    return frozenset(
        name
        for name, several in found.items()
        if any(order is None for order in several) or common_order(several) is None
    )


def warn_of_unknown_orders(names: Iterable[str], file: str) -> None:
    """Tell of ordered categories that are filled in as if they had no order.

    Parameters
    ----------
    names : iterable of str
        The columns.
    file : str
        What to call the file.
    """
    for name in sorted(names):
        warn(
            f"Column {name!r} of {file} holds ordered categories, but the file does not tell their "
            "order, so they are filled in as categories without one. If it matters, list them from "
            f"the lowest to the highest, on the command line with --ordinal {name}=...; or write "
            "the file again with a dictionary for the column."
        )
