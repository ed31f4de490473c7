"""What the cells of a workbook hold, as columns and back."""

from __future__ import annotations

import datetime
from importlib import import_module
from typing import Any

from grapefill.files.cells.formats import ColumnFormat
from grapefill.files.cells.numbers import describe_floats, rounded
from grapefill.files.cells.read import TypedColumn
from grapefill.files.cells.write import write_values

__all__ = ["as_cells", "is_blank", "is_mark", "read_floats", "read_moments", "typed_column"]

pa: Any = import_module("pyarrow")


def is_blank(value: Any) -> bool:
    """Whether a cell has nothing but space in it."""
    return value is None or (isinstance(value, str) and not value.strip())


def is_mark(value: Any, marks: frozenset[str]) -> bool:
    """Whether a cell is empty, or one of the marks for missing."""
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip() in marks
    # A number may be a mark too, as -999 is for some.
    return isinstance(value, int | float) and not isinstance(value, bool) and repr(value) in marks


def typed_column(values: list[Any], kind: Any, shape: ColumnFormat) -> TypedColumn:
    """Return a column of cells of an arrow type, None where missing."""
    return TypedColumn(pa.chunked_array([pa.array(values, type=kind)]), shape)


def read_floats(values: list[Any], expected: ColumnFormat | None) -> TypedColumn:
    """Return a column of numbers, whole ones unless decimals are expected."""
    observed = [value for value in values if value is not None]
    whole = all(float(value).is_integer() and abs(value) < 2**53 for value in observed)
    if whole and (expected is None or expected.type != "decimal"):
        integers = [None if value is None else int(value) for value in values]
        return typed_column(integers, pa.int64(), ColumnFormat("integer"))
    shape = describe_floats(map(float, observed), expected)
    floats = [None if value is None else float(value) for value in values]
    return typed_column(floats, pa.float64(), shape)


def read_moments(values: list[Any]) -> TypedColumn:
    """Return a column of dates, with times if one of them has one."""
    moments = [
        value
        if value is None or isinstance(value, datetime.datetime)
        else datetime.datetime.combine(value, datetime.time())
        for value in values
    ]
    if all(moment is None or moment.time() == datetime.time() for moment in moments):
        days = [None if moment is None else moment.date() for moment in moments]
        return typed_column(days, pa.date32(), ColumnFormat("date", layout="%Y-%m-%d"))
    shape = ColumnFormat("datetime", layout="%Y-%m-%d %H:%M:%S")
    rounded = [None if m is None else m.replace(microsecond=0) for m in moments]
    return typed_column(rounded, pa.timestamp("s"), shape)


def as_cells(values: Any, shape: ColumnFormat, *, text: bool) -> list[Any]:
    """Return values as cells of a workbook, as text where the column is text."""
    if text or shape.type == "text":
        return list(write_values(values, shape))
    if pa.types.is_floating(values.type):
        return [rounded(value, shape) for value in values.to_pylist()]
    return list(values.to_pylist())
