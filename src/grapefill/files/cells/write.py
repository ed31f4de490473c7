"""Values to text like that of their column."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from grapefill.files.cells.dates import write_dates
from grapefill.files.cells.numbers import rounded, write_numbers

if TYPE_CHECKING:
    from grapefill.files.cells.formats import ColumnFormat

__all__ = ["round_values", "write_plain", "write_values"]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")


def write_values(values: Any, shape: ColumnFormat) -> list[str]:
    """Write values like the others of their column.

    Parameters
    ----------
    values : pyarrow.Array
        The values, none of them null.
    shape : ColumnFormat
        How the column is written.

    Examples
    --------
    >>> from grapefill.files.cells.formats import ColumnFormat
    >>> write_values(pa.array([True, False]), ColumnFormat("boolean", words=("Yes", "No")))
    ['Yes', 'No']
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if shape.family == "date" and pa.types.is_temporal(kind):
        coded = values.dictionary_encode()
        written = write_dates(coded.dictionary, shape)
        return [written[at] for at in coded.indices.to_pylist()]
    if shape.family == "number" and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return write_numbers(values.to_pylist(), shape)
    if shape.family == "boolean" and pa.types.is_boolean(kind):
        return [shape.words[0] if value else shape.words[1] for value in values.to_pylist()]
    return write_plain(values)


def round_values(values: Any, shape: ColumnFormat | None) -> Any:
    """Return new numbers as exact as they are when written like the others of their column.

    Parameters
    ----------
    values : pyarrow.Array or pyarrow.ChunkedArray
        The values; what are no decimals stay as they are.
    shape : ColumnFormat or None
        How the column is written, if that is known.

    Examples
    --------
    >>> from grapefill.files.cells.formats import ColumnFormat
    >>> price = ColumnFormat("decimal", decimal=",", decimals=2)
    >>> round_values(pa.array([97.11499999999998, None]), price).to_pylist()
    [97.11, None]
    """
    if shape is None or shape.family != "number" or not pa.types.is_floating(values.type):
        return values
    new = [None if value is None else rounded(value, shape) for value in values.to_pylist()]
    return pa.array(new, type=values.type)


def write_plain(values: Any) -> list[str]:
    """Write values of a column that the file did not have, truth as 1 and 0.

    Examples
    --------
    >>> write_plain(pa.array([True, False])), write_plain(pa.array([0.5, 2.0]))
    (['1', '0'], ['0.5', '2.0'])
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_boolean(values.type):
        return ["1" if value else "0" for value in values.to_pylist()]
    if pa.types.is_floating(values.type):
        return [repr(value) for value in values.cast(pa.float64()).to_pylist()]
    return [str(value) for value in values.to_pylist()]
