"""Arrow's views of text and bytes, as polars writes them: pyarrow has few functions for them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["plain_type", "without_views"]

pa: Any = import_module("pyarrow")


def plain_type(kind: Any) -> Any:
    """Return a type that holds the same values, with no views in it; most types are so already.

    Examples
    --------
    >>> plain_type(pa.list_(pa.string_view()))
    ListType(list<item: large_string>)
    >>> plain_type(pa.int8())
    DataType(int8)
    """
    types = pa.types
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, plain_type(kind.value_type), kind.ordered)
    if types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    if types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    for is_one, make in ((types.is_list, pa.list_), (types.is_large_list, pa.large_list)):
        if is_one(kind):
            return make(_plain_field(kind.value_field))
    return kind


def _plain_field(field: Any) -> Any:
    return field.with_type(plain_type(field.type))


def without_views(table: Any) -> Any:
    """Return a table with no views in it; other columns are the same."""
    for j, field in enumerate(table.schema):
        kind = plain_type(field.type)
        if kind != field.type:
            table = table.set_column(j, field.with_type(kind), table.column(j).cast(kind))
    return table
