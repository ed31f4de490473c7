"""A table in a format that is not the one it was read from."""

from __future__ import annotations

import io
import json
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from grapefill.errors import OutputError, warn
from grapefill.files.cells.write import write_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from grapefill.files.places import Place

__all__ = ["check_workbook", "put", "table_pieces"]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")

_ROWS = 10_000
# What a sheet of a workbook holds, names included; a cell of it; and an integer.
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_MOST_CHARACTERS = 32_767
_LONG = 10**15
_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f]"


def table_pieces(table: Any, target: Place) -> Iterable[bytes]:
    """Return the bytes of a table in the format of a place.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    target : Place
        Where it goes.

    Examples
    --------
    >>> from grapefill.files.places import Place
    >>> table = pa.table({"a": [1, None], "b": ["x, y", "z"]})
    >>> print(b"".join(table_pieces(table, Place.at("new.csv"))).decode())
    a,b
    1,"x, y"
    ,z
    <BLANKLINE>
    """
    if target.format == "json":
        return _json_lines(table)
    if target.format == "delimited":
        return _text(table, {".tsv": "\t", ".tab": "\t", ".psv": "|"}.get(target.suffix, ","))
    buffer = io.BytesIO()
    if target.format == "parquet":
        import_module("pyarrow.parquet").write_table(table, buffer)
    elif target.format == "arrow":
        feather: Any = import_module("pyarrow.feather")
        feather.write_feather(table, buffer)
    else:
        _write_workbook(table, buffer)
    return [buffer.getvalue()]


def _text(table: Any, delimiter: str) -> Iterable[bytes]:
    names = [_quoted(name, delimiter) for name in table.column_names]
    yield (delimiter.join(names) + "\n").encode()
    for batch in table.to_batches(max_chunksize=_ROWS):
        columns = [_cells(column, delimiter) for column in batch.columns]
        lines = map(delimiter.join, zip(*columns, strict=True))
        yield ("\n".join(lines) + "\n").encode()


def _cells(column: Any, delimiter: str) -> list[str]:
    """Return a column as cells, empty where there is no value."""
    if pa.types.is_boolean(column.type):
        words = {True: "true", False: "false", None: ""}
        return [words[value] for value in column.to_pylist()]
    if pa.types.is_nested(column.type):
        return [_quoted(text or "", delimiter) for text in _as_json(column)]
    shown = iter(write_plain(column.drop_null()))
    return [_quoted(next(shown), delimiter) if there.as_py() else "" for there in column.is_valid()]


def _quoted(text: str, delimiter: str) -> str:
    needed = any(character in text for character in (delimiter, '"', "\n", "\r"))
    return '"' + text.replace('"', '""') + '"' if needed else text


def _as_json(column: Any) -> list[str | None]:
    """Return lists or objects as text, as JSON lines have them."""
    return [
        None if value is None else json.dumps(value, ensure_ascii=False, default=str)
        for value in column.to_pylist()
    ]


def _json_lines(table: Any) -> Iterable[bytes]:
    for batch in table.to_batches(max_chunksize=_ROWS):
        lines = [json.dumps(row, ensure_ascii=False, default=str) for row in batch.to_pylist()]
        yield ("\n".join(lines) + "\n").encode()


def check_workbook(table: Any, name: str, where: Callable[[int], str]) -> None:
    """Refuse a table that a workbook cannot hold as it is.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    name : str
        What to call it in a message.
    where : callable
        Returns for a row what to call it in a message.

    Raises
    ------
    OutputError
        If it is too large, or a text too long or with characters that no workbook has.
    """
    if table.num_rows >= _MOST_ROWS or table.num_columns > _MOST_COLUMNS:
        raise OutputError(
            f"{name} has {table.num_rows:,} rows and {table.num_columns:,} columns. A sheet of a "
            f"workbook holds {_MOST_ROWS - 1:,} and {_MOST_COLUMNS:,}. Choose another format."
        )
    strange_names = [name for name in table.column_names if re.search(_CONTROL, name)]
    if strange_names:
        raise OutputError(
            f"The name {strange_names[0]!r} of a column of {name} has control characters, which no "
            "cell of a workbook holds. Choose another format, or rename the column."
        )
    for label, held in zip(table.column_names, table.columns, strict=True):
        coded = pa.types.is_dictionary(held.type)
        column = held.cast(held.type.value_type) if coded else held
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            continue
        long = pc.greater(pc.utf8_length(column), _MOST_CHARACTERS)
        strange = pc.match_substring_regex(column, _CONTROL)
        for found, why in (
            (long, f"has more than {_MOST_CHARACTERS:,} characters"),
            (strange, "has control characters"),
        ):
            if pc.any(found).as_py():
                row = pc.index(found, True).as_py()
                raise OutputError(
                    f"{where(row).capitalize()} of {name}, column {label!r}, {why}, which no cell "
                    "of a workbook holds. Choose another format, or correct the cell."
                )


def put(cell: Any, value: Any) -> None:
    """Write a value into a cell of a workbook; text that begins like a formula stays text."""
    cell.value = value
    if _looks_like_formula(value):
        cell.data_type = "s"


def _looks_like_formula(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("=")


def _as_cell(sheet: Any, value: Any) -> Any:
    """Return what goes into a row that is written at once; see `put`."""
    if not _looks_like_formula(value):
        return value
    cell = import_module("openpyxl.cell").WriteOnlyCell(sheet)
    put(cell, value)
    return cell


def _write_workbook(table: Any, buffer: io.BytesIO) -> None:
    openpyxl: Any = import_module("openpyxl")
    _warn_of_changes(table)
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")
    sheet.append([_as_cell(sheet, name) for name in table.column_names])
    for batch in table.to_batches(max_chunksize=_ROWS):
        columns = [_for_workbook(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            sheet.append([_as_cell(sheet, value) for value in row])
    book.save(buffer)


def _warn_of_changes(table: Any) -> None:
    """Tell what a workbook holds otherwise than the table does."""
    columns = list(zip(table.column_names, table.columns, strict=True))
    long = [name for name, column in columns if _has_long_integers(column)]
    if long:
        warn(
            "Workbooks keep 15 digits of a number; those with more are written as text: "
            + ", ".join(map(repr, long))
            + "."
        )
    zoned = [n for n, c in columns if pa.types.is_timestamp(c.type) and c.type.tz is not None]
    if zoned:
        warn(
            "Workbooks know no time zones; these times are written in UTC: "
            + ", ".join(map(repr, zoned))
            + "."
        )


def _has_long_integers(column: Any) -> bool:
    """Whether there are integers that a workbook, which has floats only, would round."""
    if not pa.types.is_integer(column.type):
        return False
    ends = pc.min_max(column).as_py()
    return any(end is not None and abs(end) >= _LONG for end in ends.values())


def _for_workbook(column: Any) -> list[Any]:
    """Return cells that a workbook can hold: it knows neither time zones nor nested values."""
    kind = column.type
    if pa.types.is_nested(kind):
        return list(_as_json(column))
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", tz=kind.tz), safe=False).cast(pa.timestamp("us"))
    held: list[Any] = column.to_pylist()
    plain = (bool, int, float, str, type(None))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return held
    held = [value if isinstance(value, plain) else str(value) for value in held]
    if pa.types.is_integer(kind):
        held = [str(v) if v is not None and abs(v) >= _LONG else v for v in held]
    return held
