"""Where tables come from and go to: paths, standard input and output, compression."""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
import zlib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from grapefill.errors import InputError, OutputError
from grapefill.files.atomic import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "STANDARD",
    "Format",
    "Place",
    "are_same",
    "check_output",
    "open_output",
    "read_content",
]

STANDARD = "-"
"""The path that stands for standard input or output."""

Format = Literal["delimited", "parquet", "arrow", "excel", "json"]
Compression = Literal["", "gzip", "zstd"]

_FORMATS: dict[str, Format] = {
    ".csv": "delimited",
    ".tsv": "delimited",
    ".tab": "delimited",
    ".psv": "delimited",
    ".txt": "delimited",
    ".dat": "delimited",
    ".data": "delimited",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".parq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
_COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_STARTS: tuple[tuple[bytes, Format], ...] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),
    (b"PK\x03\x04", "excel"),
    (b"{", "json"),
)
_COMPRESSED_STARTS: tuple[tuple[bytes, Compression], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)


@dataclass(frozen=True)
class Place:
    """A path, and what its suffixes say.

    Parameters
    ----------
    path : str
        The path, or ``"-"``.
    format : {"delimited", "parquet", "arrow", "excel", "json"} or None
        The format that the suffix names; None if it names none.
    compression : {"", "gzip", "zstd"}
        The compression that the last suffix names.
    suffix : str
        The suffix without that of the compression.

    Examples
    --------
    >>> Place.at("sales.CSV.gz")
    Place(path='sales.CSV.gz', format='delimited', compression='gzip', suffix='.csv')
    """

    path: str
    format: Format | None
    compression: Compression = ""
    suffix: str = ""

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Place:
        """Read the suffixes of a path."""
        text = os.fspath(path)
        if text == STANDARD:
            return cls(text, None)
        suffixes = [suffix.lower() for suffix in Path(text).suffixes]
        compression = _COMPRESSIONS.get(suffixes[-1], "") if suffixes else ""
        if compression:
            suffixes.pop()
        suffix = suffixes[-1] if suffixes else ""
        return cls(text, _FORMATS.get(suffix), compression, suffix)

    @property
    def name(self) -> str:
        """What to call the place in a message."""
        return "standard input" if self.path == STANDARD else repr(self.path)


def read_content(place: Place) -> bytes:
    """Return the bytes of a file or of standard input, without their compression.

    Raises
    ------
    InputError
        If there is no such file, it cannot be read, or its compression is broken.
    """
    compression = place.compression
    if place.path == STANDARD:
        content = sys.stdin.buffer.read()
        compression = next((c for start, c in _COMPRESSED_STARTS if content.startswith(start)), "")
    else:
        content = _read_file(place)
    if not compression:
        return content
    try:
        if compression == "gzip":
            return gzip.decompress(content)
        pa: Any = import_module("pyarrow")
        with pa.input_stream(pa.BufferReader(content), compression="zstd") as stream:
            return bytes(stream.read())
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"Cannot read {place.name}: it is cut short or not compressed with {compression} "
            f"({error}). Copy the file again, or correct its suffix."
        ) from error


def _read_file(place: Place) -> bytes:
    path = Path(place.path)
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(
            f"Cannot read {place.name}: there is no such file. Check the path; relative paths "
            f"start at {str(Path.cwd())!r}."
        ) from error
    except OSError as error:
        reason = "it is a folder" if path.is_dir() else error.strerror or str(error)
        raise InputError(
            f"Cannot read {place.name}: {reason}. Give the path of a file that you may read."
        ) from error


def find_format(place: Place, content: bytes, wanted: str | None) -> Format:
    """Return the format that the caller, the suffix or, for standard input, the content names.

    Raises
    ------
    InputError
        If none of them names a format that we know.
    """
    if wanted is not None:
        if wanted not in set(_FORMATS.values()):
            choices = ", ".join(map(repr, sorted(set(_FORMATS.values()))))
            raise InputError(f"There is no format {wanted!r}. Choose one of {choices}.")
        return wanted
    if place.format is not None:
        return place.format
    if place.path == STANDARD:
        stripped = content[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
        return next((f for start, f in _STARTS if stripped.startswith(start)), "delimited")
    known = " ".join(_FORMATS)
    raise InputError(
        f"Cannot tell what {place.name} is from its suffix {place.suffix!r}. Known are {known}, "
        "each also with .gz or .zst; or say which format it has."
    )


def check_output(
    path: str | os.PathLike[str],
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
    overwrite: bool = False,
) -> None:
    """Refuse a place that must not be written, before any work is done.

    Parameters
    ----------
    path : str or path-like
        Where a file is to be written; ``"-"`` is always possible.
    inputs : iterable of str or path-like
        Files that are never overwritten, whatever their names are here.
    overwrite : bool
        Whether another existing file may be replaced.

    Raises
    ------
    OutputError
        If the place is an input, holds something already, or has no folder.

    Examples
    --------
    >>> check_output("no/such/folder/filled.csv")
    Traceback (most recent call last):
    grapefill.errors.OutputError: Cannot write 'no/such/folder/filled.csv': the folder
    'no/such/folder' does not exist. Create it first or choose another place.
    """
    if os.fspath(path) == STANDARD:
        return
    target = Path(path)
    shown = repr(os.fspath(path))
    folder = target.parent
    if not folder.is_dir():
        raise OutputError(
            f"Cannot write {shown}: the folder {str(folder)!r} does not exist. Create it first or "
            "choose another place."
        )
    for source in inputs:
        if os.fspath(source) != STANDARD and are_same(target, Path(source)):
            raise OutputError(
                f"Cannot write {shown}: it is the input {os.fspath(source)!r}, which is never "
                "overwritten. Choose another name for the output."
            )
    if target.is_dir():
        raise OutputError(f"Cannot write {shown}: it is a folder. Add a file name to it.")
    if target.exists() and not overwrite:
        raise OutputError(
            f"Cannot write {shown}: the file exists already. Choose another name, or allow "
            "overwriting."
        )
    if not os.access(folder, os.W_OK):
        raise OutputError(f"Cannot write {shown}: you may not write to the folder {str(folder)!r}.")


def are_same(one: Path, other: Path) -> bool:
    """Whether two paths name one file, which need not be there yet."""
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there yet
        return os.path.realpath(one) == os.path.realpath(other)


@contextlib.contextmanager
def open_output(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a place for writing: the file appears whole, compressed as its suffix says.

    Raises
    ------
    OutputError
        If the system refuses.
    """
    if os.fspath(path) == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    compression = Place.at(path).compression
    try:
        with write_whole(path) as file:
            if compression == "gzip":
                # No time stamp: the same table gives the same bytes.
                with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            elif compression == "zstd":
                pa: Any = import_module("pyarrow")
                with pa.CompressedOutputStream(pa.PythonFile(_Lent(file), "w"), "zstd") as packed:
                    yield packed
            else:
                yield file
    except OSError as error:
        reason = str(error) if error.errno is None else f"Cannot write {path!s}: {error}."
        raise OutputError(f"Nothing was written. {reason}") from error


class _Lent:
    """A file that a compressor may write to but not close."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        pass

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
