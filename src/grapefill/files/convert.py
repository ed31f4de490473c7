"""A table in a format that is not the one it was read from."""

from __future__ import annotations

import io
import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grapefill.files.places import Place

__all__ = ["table_pieces"]

pa: Any = import_module("pyarrow")

_JSON_ROWS = 10_000


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
    buffer = io.BytesIO()
    if target.format == "parquet":
        import_module("pyarrow.parquet").write_table(table, buffer)
    elif target.format == "arrow":
        feather: Any = import_module("pyarrow.feather")
        feather.write_feather(table, buffer)
    elif target.format == "excel":
        _write_workbook(table, buffer)
    else:
        delimiter = {".tsv": "\t", ".tab": "\t", ".psv": "|"}.get(target.suffix, ",")
        _write_text(table, buffer, delimiter)
    return [buffer.getvalue()]


def _write_text(table: Any, buffer: io.BytesIO, delimiter: str) -> None:
    csv: Any = import_module("pyarrow.csv")
    names = [_quoted(name, delimiter) for name in table.column_names]
    buffer.write((delimiter.join(names) + "\n").encode())
    plain = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    options = csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="needed")
    csv.write_csv(pa.table(plain, names=table.column_names), buffer, options)


def _quoted(text: str, delimiter: str) -> str:
    needed = any(character in text for character in (delimiter, '"', "\n", "\r"))
    return '"' + text.replace('"', '""') + '"' if needed else text


def _json_lines(table: Any) -> Iterable[bytes]:
    for batch in table.to_batches(max_chunksize=_JSON_ROWS):
        lines = [json.dumps(row, ensure_ascii=False, default=str) for row in batch.to_pylist()]
        yield ("\n".join(lines) + "\n").encode()


def _write_workbook(table: Any, buffer: io.BytesIO) -> None:
    openpyxl: Any = import_module("openpyxl")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")
    sheet.append(table.column_names)
    for batch in table.to_batches(max_chunksize=_JSON_ROWS):
        columns = [_for_workbook(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            sheet.append(row)
    book.save(buffer)


def _for_workbook(column: Any) -> list[Any]:
    """Return cells that a workbook can hold: it knows neither time zones nor nested values."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", tz=kind.tz), safe=False).cast(pa.timestamp("us"))
    held: list[Any] = column.to_pylist()
    plain = (bool, int, float, str, type(None))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return held
    return [value if isinstance(value, plain) else str(value) for value in held]
