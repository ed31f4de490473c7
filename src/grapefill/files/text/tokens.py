"""Where the cells of a delimited file begin and end, found for many rows at once.

A byte is inside quotes when an odd number of quotes stands before it, so one accumulated exclusive
or finds every delimiter and line end that counts. That holds as long as quotes stand only around
whole cells and are doubled inside them, which is checked; where it does not hold, as in
``5" pipe``, the quoted cells are searched for one after the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from grapefill.errors import InputError
from grapefill.files.text.ragged import explain_ragged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grapefill.files.text.dialect import Dialect

__all__ = ["BLOCK", "Rows", "Separators", "Tokenizer", "find_separators"]

BLOCK = 1 << 24
"""Bytes that are looked at together."""

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

_SPACE, _TAB, _RETURN = np.uint8(32), np.uint8(9), np.uint8(13)


class StrayQuoteError(Exception):
    """A quote stands where none may be; the position is that of the first."""

    def __init__(self, position: int) -> None:
        self.position = position


@dataclass(frozen=True)
class Separators:
    """The delimiters and line ends of a piece of a file.

    Parameters
    ----------
    positions : ndarray of int
        Where they are, the end of the piece included if its last row has no line end.
    ends_row : ndarray of bool
        Which of them end a row.
    quotes : ndarray of int
        Quotes that are not part of a cell's text.
    """

    positions: Integers
    ends_row: Bools
    quotes: Integers


@dataclass(frozen=True)
class Rows:
    """Some whole rows of a file; blank lines are left out.

    Parameters
    ----------
    start : int
        Where the piece begins in the file.
    data : ndarray of uint8
        The piece.
    starts, ends : ndarray of int, shape (rows * columns,)
        The cells in the piece, row by row, with the quotes around them.
    quotes : ndarray of int
        Quotes in the piece that are not part of a cell's text.
    columns : int
        Cells per row.
    """

    start: int
    data: Bytes
    starts: Integers
    ends: Integers
    quotes: Integers
    columns: int

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.starts.size // self.columns


class Tokenizer:
    r"""Walks through a delimited file, many rows at a time.

    Parameters
    ----------
    content : bytes
        The file in UTF-8.
    dialect : Dialect
        Its delimiter, quote and newline.
    name : str
        What to call the file in a message.
    block : int
        Bytes to look at together; more are taken when a row is longer.

    Examples
    --------
    >>> from grapefill.files.text.dialect import Dialect
    >>> content = b'a,b\n1,"x, y"\n'
    >>> tokenizer = Tokenizer(content, Dialect(), "'x.csv'")
    >>> for rows in tokenizer.rows(0, 2):
    ...     for start, end in zip(rows.starts, rows.ends):
    ...         print(content[start:end])
    b'a'
    b'b'
    b'1'
    b'"x, y"'
    """

    def __init__(self, content: bytes, dialect: Dialect, name: str, block: int = BLOCK) -> None:
        self.content = content
        self.dialect = dialect
        self.name = name
        self.block = block
        self._data = np.frombuffer(content, dtype=np.uint8)
        self._careful = False

    def first_row(self, start: int = 0) -> tuple[Rows, int]:
        """Return the first row that is not blank, with however many cells it has, and its end."""
        for piece, separators in self._pieces(start, rows_wanted=1):
            ends = np.flatnonzero(separators.ends_row)
            firsts = np.concatenate([[0], ends[:-1] + 1])
            starts, stops = _cells(piece, separators)
            blank = (ends == firsts) & self._are_blank(piece, starts[firsts], stops[firsts])
            rows = np.flatnonzero(~blank)
            if rows.size:
                cells = slice(int(firsts[rows[0]]), int(ends[rows[0]]) + 1)
                stop = piece.start + min(int(separators.positions[ends[rows[0]]]) + 1, piece.size)
                found = Rows(
                    piece.start,
                    piece.data,
                    starts[cells],
                    stops[cells],
                    separators.quotes,
                    cells.stop - cells.start,
                )
                return found, stop
        raise InputError(f"{self.name} is empty: it has no line with a name or a value.")

    def rows(self, start: int, columns: int) -> Iterator[Rows]:
        """Yield the rows from a position on, each with so many cells.

        Raises
        ------
        InputError
            For a row with another number of cells, and for quotes that are not closed.
        """
        pending: list[Rows] = []
        for piece, separators in self._pieces(start):
            rows = self._table(piece, separators, columns)
            if columns > 1:
                if rows.count:
                    yield rows
                continue
            # In a single column a blank line is a hole, unless no value follows it.
            pending.append(rows)
            if (rows.ends > rows.starts).any():
                filled = int(np.flatnonzero(rows.ends > rows.starts)[-1]) + 1
                yield from pending[:-1]
                yield _some_rows(rows, 0, filled)
                pending = [_some_rows(rows, filled, rows.count)] if filled < rows.count else []

    def line_of(self, position: int) -> int:
        """Return the number of the line at a position, as a text editor shows it."""
        return self.content.count(self.dialect.newline.encode(), 0, position) + 1

    def _pieces(self, start: int, rows_wanted: int = 0) -> Iterator[tuple[_Piece, Separators]]:
        """Yield pieces of whole rows, however large a row is."""
        size = min(self.block, 1 << 16) if rows_wanted else self.block
        while start < len(self.content):
            stop = min(start + size, len(self.content))
            piece = _Piece(start, self._data[start:stop], stop == len(self.content))
            separators = self._separators(piece)
            ends = np.flatnonzero(separators.ends_row)
            if not ends.size:
                if piece.last:
                    raise self._unclosed(piece)
                size *= 2
                continue
            kept = int(ends[-1]) + 1
            length = int(separators.positions[kept - 1]) + 1
            quotes = separators.quotes[: np.searchsorted(separators.quotes, length)]
            whole = Separators(separators.positions[:kept], separators.ends_row[:kept], quotes)
            yield _Piece(start, piece.data[: min(length, piece.size)], piece.last), whole
            start += length
            size = self.block

    def _separators(self, piece: _Piece) -> Separators:
        if not self._careful:
            try:
                return find_separators(piece.data, self.dialect, last=piece.last)
            except StrayQuoteError:
                self._careful = True
        try:
            return _search_separators(piece.data, self.dialect, last=piece.last)
        except StrayQuoteError as error:
            raise self._bad_quote(piece.start + error.position) from None

    def _table(self, piece: _Piece, separators: Separators, columns: int) -> Rows:
        """Give every row its cells, and refuse ragged ones."""
        starts, stops = _cells(piece, separators)
        ends = np.flatnonzero(separators.ends_row)
        counts = np.diff(ends, prepend=-1)
        if (counts != columns).any():
            firsts = ends - counts + 1
            blank = (counts == 1) & self._are_blank(piece, starts[firsts], stops[firsts])
            ragged = np.flatnonzero((counts != columns) & ~blank)
            if ragged.size:
                at = int(ragged[0])
                position = piece.start + int(starts[firsts[at]])
                raise InputError(
                    f"Line {self.line_of(position)} of {self.name} "
                    + explain_ragged(self.content, position, int(counts[at]), columns, self.dialect)
                )
            keep = np.ones(starts.size, dtype=bool)
            keep[firsts[blank]] = False
            starts, stops = starts[keep], stops[keep]
        return Rows(piece.start, piece.data, starts, stops, separators.quotes, columns)

    @staticmethod
    def _are_blank(piece: _Piece, starts: Integers, stops: Integers) -> Bools:
        """Whether cells are empty or hold nothing but spaces."""
        blank: Bools = starts == stops
        spaced = np.flatnonzero(~blank & _is_blank(piece.data[np.minimum(starts, piece.size - 1)]))
        for at in spaced.tolist():
            blank[at] = not piece.data[starts[at] : stops[at]].tobytes().strip()
        return blank

    def _unclosed(self, piece: _Piece) -> InputError:
        """Find the quote that is opened in the last row and never closed."""
        assert self.dialect.quote
        quotes = np.flatnonzero(piece.data == self.dialect.bytes[1])
        openings = quotes[::2]
        # A doubled quote inside a cell is no opening.
        real = openings[(openings == 0) | (piece.data[openings - 1] != self.dialect.bytes[1])]
        return self._bad_quote(piece.start + int(real[-1]))

    def _bad_quote(self, position: int) -> InputError:
        newline = self.dialect.newline.encode()
        row = self.content[self.content.rfind(newline, 0, position) + 1 : position]
        column = row.count(self.dialect.delimiter.encode()) + 1
        return InputError(
            f"Line {self.line_of(position)} of {self.name}: the quote that opens cell {column} is "
            "not closed at the end of the cell. Double the quotes inside the cell, or turn quoting "
            "off if quotes are ordinary characters in this file."
        )


@dataclass(frozen=True)
class _Piece:
    """A part of the file; the last one ends with the file."""

    start: int
    data: Bytes
    last: bool

    @property
    def size(self) -> int:
        return self.data.size


def find_separators(data: Bytes, dialect: Dialect, *, last: bool) -> Separators:
    """Find delimiters and line ends outside quotes.

    Parameters
    ----------
    data : ndarray of uint8
        A piece that begins with a row.
    dialect : Dialect
        Its delimiter, quote and newline.
    last : bool
        Whether the file ends with it.

    Raises
    ------
    StrayQuoteError
        If a quote is neither at an end of a cell nor doubled.
    """
    _, quote, _ = dialect.bytes
    none = np.empty(0, dtype=np.int64)
    is_quote = data == quote if quote is not None else None
    if is_quote is None or not is_quote.any():
        return _outside(data, dialect, None, none, last=last)
    inside: Bools = np.logical_xor.accumulate(is_quote)
    positions = np.flatnonzero(is_quote)
    openings, closings = positions[::2], positions[1::2]
    after_quote = np.zeros(openings.size, dtype=bool)
    after_quote[1:] = openings[1:] == closings[: openings.size - 1] + 1
    _check_quotes(data, dialect, openings[~after_quote], closings)
    dropped = np.sort(np.concatenate([openings[~after_quote], closings]))
    open_at_end = openings.size > closings.size
    return _outside(data, dialect, inside, dropped, last=last and not open_at_end)


def _check_quotes(data: Bytes, dialect: Dialect, openings: Integers, closings: Integers) -> None:
    """Require cells to begin with the openings, and to end with the closings or go on."""
    delimiter, quote, newline = dialect.bytes
    before = openings - 1
    while (spaces := (before >= 0) & _is_blank(data[before], delimiter)).any():
        before[spaces] -= 1
    previous = data[before]
    fine = (before < 0) | (previous == delimiter) | (previous == newline)
    if not fine.all():
        raise StrayQuoteError(int(openings[~fine][0]))
    end = data.size - 1
    after = closings + 1
    fine = (after <= end) & (data[np.minimum(after, end)] == quote)
    while (
        spaces := ~fine & (after <= end) & _is_blank(data[np.minimum(after, end)], delimiter)
    ).any():
        after[spaces] += 1
    following = data[np.minimum(after, end)]
    fine |= (after > end) | (following == delimiter) | (following == newline)
    fine |= following == _RETURN
    if not fine.all():
        raise StrayQuoteError(int(closings[~fine][0]))


def _is_blank(data: Bytes, delimiter: np.uint8 | None = None) -> Bools:
    blank: Bools = (data == _SPACE) | (data == _TAB)
    return blank if delimiter is None else blank & (data != delimiter)


def _search_separators(data: Bytes, dialect: Dialect, *, last: bool) -> Separators:
    """Do what `find_separators` does where quotes also stand inside of cells without quotes."""
    content, quote = data.tobytes(), dialect.quote.encode()
    inside = np.zeros(data.size, dtype=bool)
    dropped: list[int] = []
    for match in _quoted_cells(dialect).finditer(content):
        if match.start("lonely") >= 0:
            if last:
                raise StrayQuoteError(match.start("lonely"))
            # As far as we can see the cell goes on behind this piece.
            inside[match.start("lonely") :] = True
            break
        first, final = match.start("first"), match.start("final")
        inside[first:final] = True
        dropped.append(first)
        doubled = content.find(quote * 2, first + 1, final)
        while doubled >= 0:
            dropped.append(doubled)
            doubled = content.find(quote * 2, doubled + 2, final)
        dropped.append(final)
    return _outside(data, dialect, inside, np.array(dropped, dtype=np.int64), last=last)


def _quoted_cells(dialect: Dialect) -> re.Pattern[bytes]:
    """Return what finds cells with quotes around them, and openings without an end."""
    delimiter, quote, newline = map(re.escape, (dialect.delimiter, dialect.quote, dialect.newline))
    blanks = "[" + "".join(c for c in " \t" if c != dialect.delimiter) + "]*"
    text = f"[^{quote}]*(?:{quote}{quote}[^{quote}]*)*"
    return re.compile(
        rf"(?:\A|(?<=[{delimiter}{newline}])){blanks}"
        rf"(?:(?P<first>{quote}){text}(?P<final>{quote})(?={blanks}(?:[{delimiter}\r\n]|\Z))"
        rf"|(?P<lonely>{quote}))".encode()
    )


def _outside(
    data: Bytes, dialect: Dialect, inside: Bools | None, quotes: Integers, *, last: bool
) -> Separators:
    delimiter, _, newline = dialect.bytes
    found = (data == delimiter) | (data == newline)
    if inside is not None:
        found &= ~inside
    positions = np.flatnonzero(found)
    ends_row = data[positions] == newline
    if last and (not ends_row.size or positions[-1] != data.size - 1 or not ends_row[-1]):
        positions = np.append(positions, data.size)
        ends_row = np.append(ends_row, True)
    return Separators(positions, ends_row, quotes)


def _cells(piece: _Piece, separators: Separators) -> tuple[Integers, Integers]:
    """Return where the cells between separators begin and end."""
    stops = separators.positions.copy()
    starts = np.concatenate([[0], stops[:-1] + 1])
    ends = np.flatnonzero(separators.ends_row)
    # A line may end with a carriage return and a newline, which is no part of its last cell.
    before = stops[ends] - 1
    returns = (before >= starts[ends]) & (piece.data[before] == _RETURN)
    stops[ends[returns]] -= 1
    return starts, stops


def _some_rows(rows: Rows, first: int, last: int) -> Rows:
    """Return some rows of a single column."""
    part = slice(first, last)
    return Rows(
        rows.start, rows.data, rows.starts[part], rows.ends[part], rows.quotes, rows.columns
    )
