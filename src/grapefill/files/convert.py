"""A table in a format that is not the one it was read from."""

from __future__ import annotations

import io
import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

from grapefill.files.cells.write import write_plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grapefill.files.places import Place

__all__ = ["table_pieces"]

pa: Any = import_module("pyarrow")

_ROWS = 10_000


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


def _write_workbook(table: Any, buffer: io.BytesIO) -> None:
    openpyxl: Any = import_module("openpyxl")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")
    sheet.append(table.column_names)
    for batch in table.to_batches(max_chunksize=_ROWS):
        columns = [_for_workbook(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            sheet.append(row)
    book.save(buffer)


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
    return [value if isinstance(value, plain) else str(value) for value in held]
