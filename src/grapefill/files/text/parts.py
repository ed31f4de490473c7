"""A file of delimited text that is filled some rows at a time."""

from __future__ import annotations

import codecs
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from grapefill.errors import InputError
from grapefill.files.changes import Changes
from grapefill.files.places import Place, open_output
from grapefill.files.text.delimited import DelimitedFile
from grapefill.files.text.sniff import find_dialect, find_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grapefill.files.options import ReadOptions
    from grapefill.files.text.dialect import Dialect

__all__ = ["can_be_cut", "fill_delimited"]

# Bytes that are in memory together, several times over while they are read.
PART_BYTES = 16 * 2**20


def can_be_cut(path: str | Path) -> bool:
    """Whether a text can be cut at the ends of its lines without decoding it first."""
    with Path(path).open("rb") as file:
        start = file.read(4096)
    wide = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return not start.startswith(wide) and b"\0" not in start


def fill_delimited(
    source: str | Path,
    target: str | Path,
    fill: Callable[[Any], Any],
    options: ReadOptions,
    *,
    on_rows: Callable[[int], None] | None = None,
) -> int:
    """Fill a file of delimited text some rows at a time; the result appears whole or not at all.

    Everything but the filled cells stays as it was, byte for byte.

    Parameters
    ----------
    source, target : str or Path
        The file and its copy.
    fill : callable
        Takes some rows as a file, and returns their table filled.
    options : ReadOptions
        How the file is read; ``types`` has all columns that are to be filled, so that all parts
        are read in the same way.
    on_rows : callable or None
        Called with the number of rows of every part.

    Returns
    -------
    int
        The number of rows.
    """
    place = replace(Place.at(source), format="delimited")
    if options.encoding is None:
        options = replace(options, encoding=_encoding_of(Path(source)))
    rows, lines = 0, 0
    with Path(source).open("rb") as file, open_output(target) as output:
        header = b""
        for number, (part, dialect) in enumerate(_parts(file, options, place.suffix)):
            content = header + part
            try:
                read = DelimitedFile(place, content, replace(options, delimiter=dialect.delimiter))
            except InputError as error:
                if not number:
                    raise
                raise InputError(
                    f"{error} (The lines are counted from line {lines:,} of the file.)"
                ) from error
            newline = dialect.newline.encode()
            read.lines_before = lines - header.count(newline)
            filled = fill(read)
            changes = Changes.between(read.frame, filled, erase=False, name=read.name)
            _write(output, read._pieces(changes), again=bool(header))
            rows += read.frame.num_rows
            if on_rows is not None:
                on_rows(read.frame.num_rows)
            if not number and options.header:
                header = _first_record(content, dialect)
            lines += part.count(newline)
    return rows


def _write(output: BinaryIO, pieces: Iterator[bytes], *, again: bool) -> None:
    """Write a part; when it is not the first, without the line of names and its end."""
    if not again:
        for piece in pieces:
            output.write(piece)
        return
    next(pieces)
    start = True
    for piece in pieces:
        if start and piece:
            piece = piece[2:] if piece.startswith(b"\r\n") else piece[1:]  # noqa: PLW2901
            start = False
        output.write(piece)


def _parts(file: BinaryIO, options: ReadOptions, suffix: str) -> Iterator[tuple[bytes, Dialect]]:
    """Yield parts of a text that end where a row ends, and how they are written."""
    rest, dialect = b"", None
    while True:
        read = file.read(PART_BYTES)
        content = rest + read
        if not content:
            return
        if dialect is None:
            dialect = find_dialect(content.removeprefix(codecs.BOM_UTF8), options, suffix)
        end = len(content) if len(read) < PART_BYTES else _last_end(content, dialect)
        if end:
            # Blank lines alone are no rows.
            part = content[:end]
            yield part, dialect
        rest = content[end:]
        if len(read) < PART_BYTES:
            return


def _last_end(content: bytes, dialect: Dialect) -> int:
    """Return where the last whole row ends, 0 if there is none."""
    data = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero(data == ord(dialect.newline))
    if dialect.quote and ends.size:
        quotes = np.flatnonzero(data == ord(dialect.quote))
        # Between an odd number of quotes and the next, a line end is part of a cell.
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return int(ends[-1]) + 1 if ends.size else 0


def _first_record(content: bytes, dialect: Dialect) -> bytes:
    """Return the line of names with its end, and what stands before it, as it is written."""
    data = np.frombuffer(content[: 1 << 20], dtype=np.uint8)
    ends = np.flatnonzero(data == ord(dialect.newline))
    if dialect.quote:
        quotes = np.flatnonzero(data == ord(dialect.quote))
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    ends = ends[ends >= find_start(content)]
    return content[: int(ends[0]) + 1]


def _encoding_of(path: Path) -> str:
    """Return the encoding of a whole text: UTF-8 if all of it is, else one byte per character."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    single = True
    with path.open("rb") as file:
        utf8 = True
        while piece := file.read(PART_BYTES):
            if utf8:
                try:
                    decoder.decode(piece)
                except UnicodeDecodeError:
                    utf8 = False
            if single:
                try:
                    piece.decode("cp1252")
                except UnicodeDecodeError:
                    single = False
    if utf8:
        return "utf-8"
    return "cp1252" if single else "latin-1"
