"""Tables that are read some rows at a time, again and again, in any order of their pieces."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from grapefill.errors import InputError
from grapefill.files.orders import (
    orders_in_parquet,
    unknown_orders,
    warn_of_unknown_orders,
    without_orders,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "BatchSource",
    "DatasetSource",
    "FactorySource",
    "MappedSource",
    "ParquetSource",
    "as_source",
    "parquet_files",
    "read_all",
]

# Rows that are in memory together, unless a row group has to be.
BATCH_ROWS = 65_536
SUFFIXES = (".parquet", ".pq", ".parq")


class BatchSource(Protocol):
    """A table in pieces, such as the row groups of Parquet files.

    Attributes
    ----------
    name : str
        What to call it in a message.
    rows : sequence of int or None
        Rows of every piece; None where nobody has counted them yet.
    ordered : bool
        Whether the pieces can only be read one after the other, from the first on.
    """

    name: str
    ordered: bool

    @property
    def rows(self) -> Sequence[int] | None:
        """Rows of every piece, if they are known."""

    def read(self, piece: int) -> Iterator[Any]:
        """Yield the rows of a piece as pyarrow tables, in order."""

    def stream(self) -> Iterator[tuple[int, Any]]:
        """Yield the rows of all pieces in order, each table with the number of its piece."""


class _Pieces(ABC):
    """What sources with pieces in any order share."""

    ordered = False
    rows: Sequence[int]

    def stream(self) -> Iterator[tuple[int, Any]]:
        for piece in range(len(self.rows)):
            for table in self.read(piece):
                yield piece, table

    @abstractmethod
    def read(self, piece: int) -> Iterator[Any]: ...


@dataclass(frozen=True)
class _RowGroup:
    path: str
    number: int
    rows: int


class ParquetSource(_Pieces):
    """Parquet files, row group by row group.

    Parameters
    ----------
    paths : sequence of str or Path
        The files, in order.
    name : str
        What to call them in a message.

    Attributes
    ----------
    unordered : frozenset of str
        Columns of ordered categories whose order the files do not tell; they are read without.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]], name: str = "the table") -> None:
        self.name = name
        self.paths = tuple(os.fspath(path) for path in paths)
        self._groups: list[_RowGroup] = []
        first = None
        orders = []
        for path in self.paths:
            metadata, schema, order = _describe(path)
            orders.append(order)
            if first is None:
                first = schema
            elif schema.names != first.names:
                same = sorted(schema.names) == sorted(first.names)
                how = "its columns in another order" if same else "other columns"
                raise InputError(
                    f"{path!r} has {how} than {self.paths[0]!r}: {_listed(schema.names)} "
                    f"instead of {_listed(first.names)}. All files of a folder make one table."
                )
            self._groups += [
                _RowGroup(path, number, metadata.row_group(number).num_rows)
                for number in range(metadata.num_row_groups)
            ]
        self.schema = first
        self.unordered = unknown_orders(orders)

    @property
    def rows(self) -> Sequence[int]:  # type: ignore[override]
        """Rows of every row group."""
        return [group.rows for group in self._groups]

    def read(self, piece: int) -> Iterator[Any]:
        """Yield the rows of a row group."""
        group = self._groups[piece]
        for table in read_groups(group.path, [group.number]):
            yield without_orders(table, self.unordered)


class DatasetSource(_Pieces):
    """A pyarrow dataset: row groups where its files have them, else whole files.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        The dataset.
    """

    name = "the dataset"

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._fragments: list[Any] = []
        orders = []
        for fragment in dataset.get_fragments():
            if _has_row_groups(fragment):
                with import_module("pyarrow.parquet").ParquetFile(fragment.open()) as file:
                    orders.append(orders_in_parquet(file))
            parts = fragment.split_by_row_group() if _has_row_groups(fragment) else [fragment]
            self._fragments += parts
        self._rows = [int(fragment.count_rows()) for fragment in self._fragments]
        self.unordered = unknown_orders(orders)

    @property
    def rows(self) -> Sequence[int]:  # type: ignore[override]
        """Rows of every fragment."""
        return self._rows

    def read(self, piece: int) -> Iterator[Any]:
        """Yield the rows of a fragment."""
        pa: Any = import_module("pyarrow")
        fragment, schema = self._fragments[piece], self._dataset.schema
        for batch in fragment.to_batches(schema=schema, batch_size=BATCH_ROWS, use_threads=False):
            yield without_orders(pa.Table.from_batches([batch]), self.unordered)


class FactorySource:
    """A function that gives the batches of a table, anew at every call.

    Parameters
    ----------
    factory : callable
        Returns an iterator of record batches or tables of pyarrow: the same rows in the same order
        each time.
    """

    name = "the batches"
    ordered = True

    def __init__(self, factory: Callable[[], Iterable[Any]]) -> None:
        self._factory = factory
        self._rows: list[int] | None = None

    @property
    def rows(self) -> Sequence[int] | None:
        """Rows of every batch, once they were all read."""
        return self._rows

    def stream(self) -> Iterator[tuple[int, Any]]:
        """Yield the batches in order."""
        pa: Any = import_module("pyarrow")
        counts = []
        for piece, batch in enumerate(self._factory()):
            if not isinstance(batch, pa.RecordBatch | pa.Table):
                raise InputError(
                    f"A function that gives a table must give record batches or tables of pyarrow, "
                    f"not a {type(batch).__name__}."
                )
            counts.append(int(batch.num_rows))
            yield piece, batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        if self._rows is not None and self._rows != counts:
            raise InputError(
                f"The function that gives the table gave {len(counts)} batches with {sum(counts):,}"
                f" rows, but {len(self._rows)} with {sum(self._rows):,} rows before. It must give "
                "the same rows at every call."
            )
        self._rows = counts

    def read(self, piece: int) -> Iterator[Any]:
        """Yield one batch; all before it are read and left out."""
        for number, table in self.stream():
            if number == piece:
                yield table
                return


class MappedSource:
    """A source whose tables are changed as they are read, each row by itself.

    Parameters
    ----------
    source : BatchSource
        The source.
    change : callable
        Takes a pyarrow table and returns one with as many rows.
    """

    def __init__(self, source: BatchSource, change: Callable[[Any], Any]) -> None:
        self._source = source
        self._change = change
        self.name = source.name
        self.ordered = source.ordered

    @property
    def rows(self) -> Sequence[int] | None:
        """Rows of every piece, if they are known."""
        return self._source.rows

    def read(self, piece: int) -> Iterator[Any]:
        """Yield the rows of a piece, changed."""
        return map(self._change, self._source.read(piece))

    def stream(self) -> Iterator[tuple[int, Any]]:
        """Yield the rows of all pieces, changed."""
        return ((piece, self._change(table)) for piece, table in self._source.stream())


def as_source(data: Any) -> BatchSource | None:
    """Return a source of batches for what is one, None for anything else.

    Parameters
    ----------
    data : pyarrow.dataset.Dataset, callable, str, Path or anything
        A dataset, a function that returns record batches, or the path of a Parquet file or of a
        folder of them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> source = as_source(lambda: [pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [3]})])
    >>> [(piece, table.num_rows) for piece, table in source.stream()]
    [(0, 2), (1, 1)]
    >>> as_source([[1.0, 2.0]]) is None
    True
    """
    if isinstance(data, ParquetSource | DatasetSource | FactorySource | MappedSource):
        return data
    if isinstance(data, str | os.PathLike):
        return _told(ParquetSource(parquet_files(data), repr(os.fspath(data))))
    if type(data).__module__.partition(".")[0] == "pyarrow" and hasattr(data, "get_fragments"):
        return _told(DatasetSource(data))
    # A class, or an object that is a table and can be called besides, is no function.
    if callable(data) and not isinstance(data, type) and not hasattr(data, "__array__"):
        return FactorySource(data)
    return None


def _told(source: ParquetSource | DatasetSource) -> BatchSource:
    """Warn of what a source cannot tell, and return it."""
    warn_of_unknown_orders(source.unordered, source.name)
    return source


def parquet_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the Parquet files of a folder and its folders, by name; or the one file.

    Files and folders whose names begin with a point or an underscore are left out, as other
    programs do.

    Raises
    ------
    InputError
        If there is nothing there, or no Parquet file.
    """
    place = Path(path)
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise InputError(
            f"Cannot read {str(path)!r}: there is no such file or folder. Check the path; relative "
            f"paths start at {str(Path.cwd())!r}."
        )
    found = [
        file
        for file in place.rglob("*")
        if file.suffix.lower() in SUFFIXES
        and file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(place).parts)
    ]
    if not found:
        raise InputError(
            f"The folder {str(path)!r} has no Parquet file. Give a folder with files that end in "
            ".parquet."
        )
    return sorted(found)


def read_groups(path: str, groups: Sequence[int] | None = None) -> Iterator[Any]:
    """Yield the rows of some row groups of a Parquet file, or of all, as pyarrow tables."""
    pa: Any = import_module("pyarrow")
    pq: Any = import_module("pyarrow.parquet")
    try:
        with pq.ParquetFile(path) as file:
            wanted = range(file.metadata.num_row_groups) if groups is None else groups
            for batch in file.iter_batches(BATCH_ROWS, row_groups=list(wanted), use_threads=False):
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def read_all(source: BatchSource) -> Any:
    """Return all rows of a source as one pyarrow table."""
    pa: Any = import_module("pyarrow")
    tables = [table for _, table in source.stream()]
    if not tables:
        raise InputError(f"{source.name} has no rows: there is nothing to learn from.")
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(
            f"The parts of {source.name} do not make one table: {error}. Give every part the same "
            "columns."
        ) from error


def _describe(path: str) -> tuple[Any, Any, dict[str, Any]]:
    """Return the footer of a Parquet file, its schema, and the orders of its categories."""
    pa: Any = import_module("pyarrow")
    pq: Any = import_module("pyarrow.parquet")
    try:
        with pq.ParquetFile(path) as file:
            return file.metadata, file.schema_arrow, orders_in_parquet(file)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: Exception) -> InputError:
    return InputError(
        f"Cannot read {path!r}: it is damaged, or not a Parquet file ({str(error).splitlines()[0]})"
        ". Copy it again, or correct its suffix."
    )


def _has_row_groups(fragment: Any) -> bool:
    return hasattr(fragment, "split_by_row_group")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
