"""Parquet, Feather and Arrow files: columns with types, written again with the same schema."""

from __future__ import annotations

import io
from abc import abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any

from grapefill.errors import InputError, OutputError
from grapefill.files.cells.marks import spellings
from grapefill.files.changes import apply_changes, with_holes
from grapefill.files.orders import (
    orders_in_parquet,
    unknown_orders,
    warn_of_unknown_orders,
    with_one_dictionary,
    without_orders,
)
from grapefill.files.table_file import TableFile
from grapefill.files.views import without_views

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from grapefill.files.cells.formats import ColumnFormat
    from grapefill.files.changes import Changes
    from grapefill.files.options import ReadOptions
    from grapefill.files.places import Place

__all__ = ["ArrowFile", "ParquetFile", "parquet_options", "with_changes", "without_marks"]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")


class TypedFile(TableFile):
    """A file whose columns have types of their own.

    Missing is what is null or NaN, and cells that equal one of the caller's marks.

    Parameters
    ----------
    place : Place
        Where it was read.
    content : bytes
        The file.
    options : ReadOptions
        What the caller said about it.
    """

    def __init__(self, place: Place, content: bytes, options: ReadOptions) -> None:
        self.place = place
        self.formats: dict[str, ColumnFormat] = {}
        try:
            self.table = self._read(content)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(
                f"Cannot read {self.name}: it is damaged, or not a {self.kind} file "
                f"({str(error).splitlines()[0]}). Copy it again, or correct its suffix."
            ) from error
        self._check_names()
        if not self.table.num_rows or not self.table.num_columns:
            raise InputError(f"{self.name} has no rows: there is nothing to fill or to learn from.")
        levels = {name for name, known in options.types.items() if known.levels}
        warn_of_unknown_orders(self._unordered - levels, self.name)
        self.frame = without_marks(without_orders(self.table, self._unordered), options.na)

    kind = ""
    # Columns of ordered categories whose order the file does not tell.
    _unordered: frozenset[str] = frozenset()

    @abstractmethod
    def _read(self, content: bytes) -> Any:
        """Return the table of the file."""

    def where(self, row: int) -> str:
        """Return the number of a row, counted from one."""
        return f"row {row + 1}"

    def has_mark(self, mark: str) -> bool:
        """Whether a cell equals a mark for missing."""
        return any(
            found is not None and bool(pc.any(found).as_py())
            for column in without_views(self.table).columns
            for found in [_where_marked(_decoded(column), (mark,))]
        )

    def _check_names(self) -> None:
        seen: set[str] = set()
        for name in self.table.column_names:
            if name in seen:
                raise InputError(
                    f"Two columns of {self.name} are called {name!r}. Give every column its own "
                    "name."
                )
            seen.add(name)

    def _changed(self, changes: Changes) -> Any:
        """Return the table of the file with the changes made, its schema as it was."""
        return with_changes(self.table, changes, self.name)


class ParquetFile(TypedFile):
    """A Parquet file; compression and size of the row groups stay as they were."""

    kind = "Parquet"

    def _read(self, content: bytes) -> Any:
        file = import_module("pyarrow.parquet").ParquetFile(pa.BufferReader(content))
        self._metadata = file.metadata
        self._unordered = unknown_orders([orders_in_parquet(file)])
        return file.read()

    def _pieces(self, changes: Changes) -> Iterable[bytes]:
        table, old = self._changed(changes), self._metadata
        group = old.row_group(0).num_rows if old.num_row_groups else None
        options = parquet_options(old, table.column_names, plain=self._unordered)
        buffer = io.BytesIO()
        import_module("pyarrow.parquet").write_table(table, buffer, row_group_size=group, **options)
        return [buffer.getvalue()]


class ArrowFile(TypedFile):
    """An Arrow file or stream, also called Feather; batches and compression stay as they were."""

    kind = "Feather or Arrow"

    def _read(self, content: bytes) -> Any:
        source = pa.BufferReader(content)
        self._stream = not content.startswith((b"ARROW1", b"FEA1"))
        self._compression: str | None = "lz4"
        self._batch: int | None = None
        if content.startswith(b"FEA1"):
            return import_module("pyarrow.feather").read_table(source)
        reader = pa.ipc.open_stream(source) if self._stream else pa.ipc.open_file(source)
        table = reader.read_all()
        batches = table.to_batches()
        self._batch = max((batch.num_rows for batch in batches), default=None)
        self._compression = _compression_of(content, stream=self._stream)
        return table

    def _pieces(self, changes: Changes) -> Iterable[bytes]:
        table = self._changed(changes)
        columns = [with_one_dictionary(column) for column in table.columns]
        # Dictionaries inside of lists and the like are joined as they come.
        table = pa.Table.from_arrays(columns, schema=table.schema).unify_dictionaries()
        buffer = io.BytesIO()
        options = pa.ipc.IpcWriteOptions(compression=self._compression)
        create = pa.ipc.new_stream if self._stream else pa.ipc.new_file
        with create(buffer, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=self._batch)
        return [buffer.getvalue()]


def with_changes(table: Any, changes: Changes, name: str) -> Any:
    """Return a table with changes made, its schema as it was.

    Raises
    ------
    OutputError
        If a column cannot hold a value.
    """
    plain = without_views(table)
    try:
        changed = apply_changes(plain, changes)
    except pa.ArrowException as error:
        raise OutputError(
            f"{name} cannot hold what is to be filled in: {error}. Nothing was written."
        ) from error
    for j, field in enumerate(table.schema):
        if field.type != plain.schema.field(j).type:
            changed = changed.set_column(j, field, changed.column(j).cast(field.type))
    fields = [
        field if field.type == changed.schema.field(j).type else changed.schema.field(j)
        for j, field in enumerate(table.schema)
    ]
    added = [pa.field(label, column.type) for label, column in changes.added]
    schema = pa.schema([*fields, *added], metadata=table.schema.metadata)
    return pa.Table.from_arrays(changed.columns, schema=schema)


def parquet_options(old: Any, columns: list[str], *, plain: Collection[str] = ()) -> dict[str, Any]:
    """Return how to write a Parquet file like one with this footer: compression and version.

    Parameters
    ----------
    old : pyarrow.parquet.FileMetaData
        The footer.
    columns : list of str
        The columns to write.
    plain : collection of str
        Columns to be written without a dictionary, since its order would be taken for theirs.
    """
    compression: Any = "snappy"
    if old.num_row_groups:
        first = old.row_group(0)
        codecs = [first.column(k).compression for k in range(first.num_columns)]
        codecs = ["NONE" if codec == "UNCOMPRESSED" else codec for codec in codecs]
        # Columns of nested types are several here, so by name only where that is clear.
        names = [first.column(k).path_in_schema for k in range(first.num_columns)]
        compression = codecs[0]
        if len(set(codecs)) > 1:
            usual = max(codecs, key=codecs.count)
            compression = dict.fromkeys(columns, usual)
            compression |= dict(zip(names, codecs, strict=True))
    version = old.format_version if old.format_version in ("1.0", "2.4", "2.6") else "2.6"
    dictionary: Any = True
    if plain:
        leaves = [old.schema.column(k).path for k in range(len(old.schema))]
        dictionary = [name for name in dict.fromkeys([*leaves, *columns]) if name not in plain]
    return {"compression": compression, "version": version, "use_dictionary": dictionary}


def without_marks(table: Any, marks: tuple[str, ...]) -> Any:
    """Return a table with null in the cells that equal a mark, compared as the column's type.

    Views of text become plain text, as little can be done with them otherwise.
    """
    table = without_views(table)
    for j, field in enumerate(table.schema if marks else ()):
        column = table.column(j)
        found = _where_marked(_decoded(column), marks)
        if found is not None and pc.any(found).as_py():
            rows = pc.fill_null(found, False).to_numpy()
            table = table.set_column(j, field, with_holes(column, rows))
    return table


def _decoded(column: Any) -> Any:
    """Return a column with its values in place of codes for them."""
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def _where_marked(column: Any, marks: tuple[str, ...]) -> Any:
    """Return where a column equals a mark, None if no cell of its type can."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values = pa.array(sorted(spellings(marks)), type=kind)
        return pc.is_in(pc.utf8_trim_whitespace(column), value_set=values)
    if not pa.types.is_primitive(kind) or pa.types.is_boolean(kind):
        return None
    found = None
    for mark in marks:
        value = _as_type(mark.strip(), kind)
        if value is not None:
            same = pc.fill_null(pc.equal(column, value), False)
            found = same if found is None else pc.or_(found, same)
    return found


def _as_type(mark: str, kind: Any) -> Any:
    """Return a mark as a value of some type, None if it is none; -999.0 is an integer too."""
    for read in (str, float):
        try:
            return pa.scalar(read(mark)).cast(kind)
        except (pa.ArrowException, ValueError):
            continue
    return None


def _compression_of(content: bytes, *, stream: bool) -> str | None:
    """Return the codec of the first record batch, from its description in flatbuffers."""
    try:
        start = 0 if stream else _first_batch(content)
        source = pa.BufferReader(pa.py_buffer(content).slice(start))
        while True:
            message = pa.ipc.read_message(source)
            if message.type == "record batch":
                break
    except (EOFError, OSError, pa.ArrowException):
        return None
    data = bytes(message.metadata)
    root = _number(data, 0, 4)
    batch = _follow(data, _field(data, root, 2))
    compression = _field(data, batch, 3)
    if not compression:
        return None
    codec = _field(data, _follow(data, compression), 0)
    return "zstd" if codec and data[codec] == 1 else "lz4"


def _first_batch(content: bytes) -> int:
    """Return where a file's first record batch begins, as its footer tells.

    Not all programs write at the start what a reader from there would understand.
    """
    end = len(content) - len(b"ARROW1")
    footer = content[end - 4 - _number(content, end - 4, 4) : end - 4]
    blocks = _field(footer, _number(footer, 0, 4), 3)
    if not blocks:
        raise EOFError
    vector = _follow(footer, blocks)
    if not _number(footer, vector, 4):
        raise EOFError
    return _number(footer, vector + 4, 8)


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little", signed=size > 2)


def _follow(data: bytes, at: int) -> int:
    """Return where an offset points to."""
    return at + _number(data, at, 4)


def _field(data: bytes, table: int, index: int) -> int:
    """Return where a field of a table is, 0 if it is not there."""
    layout = table - _number(data, table, 4)
    entry = 4 + 2 * index
    offset = _number(data, layout + entry, 2) if entry < _number(data, layout, 2) else 0
    return table + offset if offset else 0
