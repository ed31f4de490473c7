"""A file of delimited text: comma, semicolon, tab or whatever separates its cells."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import InputError, OutputError, warn
from grapefill.files.cells.marks import DOUBTFUL, spellings
from grapefill.files.cells.read import Context, read_columns
from grapefill.files.cells.write import write_plain, write_values
from grapefill.files.table_file import TableFile
from grapefill.files.text.encoding import to_utf8
from grapefill.files.text.padding import Padding
from grapefill.files.text.sniff import find_dialect, find_start
from grapefill.files.text.splice import Order, splice
from grapefill.files.text.texts import column_texts, flat_texts
from grapefill.files.text.title import find_names
from grapefill.files.text.tokens import BLOCK, Tokenizer

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from grapefill.files.changes import Changes
    from grapefill.files.options import ReadOptions
    from grapefill.files.places import Place
    from grapefill.files.text.tokens import Bools, Rows

__all__ = ["DelimitedFile"]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")

_SPACE = 32
# Rows by which a title is told from names.
TITLE_ROWS = 1_000
# Missing cells of a column that are looked at, of some rows; and cells for the space around them.
_SAMPLE, _FEW = 100, 20


class DelimitedFile(TableFile):
    """A file of delimited text.

    Parameters
    ----------
    place : Place
        Where it was read.
    content : bytes
        The file.
    options : ReadOptions
        What the caller said about it.
    block : int
        Bytes that are looked at together.
    """

    # Lines of the file before the content, if that is a part of it.
    lines_before = 0

    def __init__(
        self, place: Place, content: bytes, options: ReadOptions, block: int = BLOCK
    ) -> None:
        self.place = place
        self.content, self.encoding = to_utf8(content, options.encoding, self.name)
        self.dialect = find_dialect(self.content, options, place.suffix)
        self.tokenizer = Tokenizer(self.content, self.dialect, self.name, block)
        self.header = options.header
        self.names = self._read_names()
        texts = self._read_texts(options)
        if self.header and not options.types:
            self._refuse_title(texts)
        context = Context(
            self.name,
            self.where,
            expected=options.types,
            decimal=options.decimal,
            day_first=options.day_first,
            semicolons=self.dialect.delimiter == ";",
            usual_marks=options.usual_na,
        )
        columns = read_columns(self.names, texts, context)
        self.frame = pa.table([column.values for column in columns], names=list(self.names))
        self.formats = {
            name: replace(
                column.format,
                quoted=self._padding[j] is not None and bool(self._quoted[j]),
                padding=self._space_around(j).before,
            )
            for j, (name, column) in enumerate(zip(self.names, columns, strict=True))
        }
        self._warn_of_words(options)

    def where(self, row: int) -> str:
        """Return the line of a row, as a text editor shows it."""
        before = 0
        for rows in self._rows():
            if row < before + rows.count:
                start = rows.start + int(rows.starts[(row - before) * rows.columns])
                return f"line {self.lines_before + self.tokenizer.line_of(start)}"
            before += rows.count
        raise IndexError(row)

    def has_mark(self, mark: str) -> bool:
        """Whether a cell is a mark for missing; most are found in the first rows."""
        marks = pa.array(sorted(spellings([mark])))
        return any(
            pc.any(pc.is_in(flat_texts(rows), value_set=marks)).as_py() for rows in self._rows()
        )

    def _rows(self) -> Iterator[Rows]:
        return self.tokenizer.rows(self._body, len(self.names))

    def _read_names(self) -> tuple[str, ...]:
        start = find_start(self.content)
        first, stop = self.tokenizer.first_row(start)
        texts = flat_texts(first).to_pylist()
        self._header_end = first.start + int(first.ends[-1])
        self._first = texts
        if not self.header:
            self._body = start
            return tuple(f"column {j + 1}" for j in range(len(texts)))
        self._body = stop
        names = tuple(text or f"Unnamed: {j}" for j, text in enumerate(texts))
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            places = [str(j + 1) for j, name in enumerate(names) if name == twice[0]]
            # With a number in it, the line may be one of values.
            no_names = ", or say that the file has no line of names"
            raise InputError(
                f"Columns {' and '.join(places)} of {self.name} are both called {twice[0]!r}. "
                "Give every column its own name in the first line"
                f"{no_names if any(map(_is_number, texts)) else ''}."
            )
        if all(_is_number(text) for text in texts):
            warn(
                f"The first line of {self.name} holds only numbers, which are taken for the names "
                "of the columns. If it holds values, say that the file has no line of names."
            )
        return names

    def _read_texts(self, options: ReadOptions) -> list[Any]:
        """Return the columns as text, and find out how they are quoted."""
        parts: list[list[Any]] = [[] for _ in self.names]
        marks = options.marks
        levels = {
            j: options.types[name].levels
            for j, name in enumerate(self.names)
            if name in options.types and options.types[name].levels
        }
        self._quoted = np.ones(len(self.names), dtype=bool)
        self._padding: list[Padding | None] = [None] * len(self.names)
        self._hole = ""
        self._marked = [_Marked() for _ in self.names]
        for rows in self._rows():
            columns, missing = column_texts(flat_texts(rows), len(self.names), marks, levels)
            self._look_at_cells(rows, missing)
            for part, column in zip(parts, columns, strict=True):
                part.append(column)
        if not parts[0]:
            what = "names but no rows" if self.header else "no rows"
            raise InputError(f"{self.name} has {what}: there is nothing to fill or to learn from.")
        return [pa.chunked_array(part) for part in parts]

    def _refuse_title(self, texts: list[Any]) -> None:
        """Refuse a first line that names few columns, if one below it looks like the real names."""
        rows = list(zip(*(column[:TITLE_ROWS].to_pylist() for column in texts), strict=True))
        at = find_names(self._first, rows)
        if at is not None:
            raise InputError(
                f"The first line of {self.name} names few of its {len(self.names)} columns, and "
                f"{self.where(at)} looks like the names. Delete the lines above it, in a copy."
            )

    def _look_at_cells(self, rows: Rows, missing: Bools) -> None:
        """Find out which columns have quotes or spaces around every cell, and what a hole is."""
        _, quote, _ = self.dialect.bytes
        if rows.quotes.size:
            first = rows.data[np.minimum(rows.starts, rows.data.size - 1)]
            bare = (first != quote) & (first != _SPACE)
            self._quoted &= ~(bare.reshape(missing.shape) & ~missing).any(axis=0)
        else:
            self._quoted &= missing.all(axis=0)
        if not self._hole and missing.any():
            self._hole = _cell_text(rows, int(np.flatnonzero(missing)[0]))
        for j in np.flatnonzero(missing.any(axis=0)).tolist():
            self._marked[j].note(rows, j, missing[:, j])
        for j, padding in enumerate(self._padding):
            if padding is None and not missing[:, j].all():
                there = np.flatnonzero(~missing[:, j])[:_FEW].tolist()
                texts = [_cell_text(rows, row * rows.columns + j) for row in there]
                self._padding[j] = Padding.of(texts)
                # Of cells that begin with space, the first one stands for all.
                first_letter = texts[0].lstrip()[:1]
                self._quoted[j] &= quote is not None and first_letter == self.dialect.quote

    def _warn_of_words(self, options: ReadOptions) -> None:
        """Warn of words like ``None`` among others: who leaves cells empty needs no word for it."""
        for name, marked in zip(self.names, self._marked, strict=True):
            words = sorted(marked.words - spellings(options.na))
            if self.formats[name].type != "text" or name in options.types:
                continue
            if marked.blanks and words:
                warn(
                    f"Column {name!r} of {self.name} has empty cells, and cells with "
                    f"{' and '.join(map(repr, words))}, which stand for missing cells too. "
                    "Say so if they are values."
                )

    def _pieces(self, changes: Changes) -> Iterator[bytes]:
        texts = self._new_texts(changes)
        added = self._new_columns(changes)
        header = self.content[: self._header_end] if self.header else b""
        if added is not None and self.header:
            names = [name for name, _ in changes.added]
            self._require_encodable(names, "the line of names")
            delimiter = self.dialect.delimiter
            header += "".join(delimiter + cell for cell in self._cells(names).to_pylist()).encode()
        return self._spliced(header, texts, added)

    def as_text(self, table: Any) -> bytes:
        """Return another table, of texts, with the delimiter, line ends and encoding of this file.

        Parameters
        ----------
        table : pyarrow.Table
            Columns of text without missing cells.

        Raises
        ------
        OutputError
            If a text cannot be written like this file.
        """
        columns = [
            [name, *column.to_pylist()]
            for name, column in zip(table.column_names, table.columns, strict=True)
        ]
        for texts in columns:
            self._require_encodable(texts, f"column {texts[0]!r}")
        lines = pc.binary_join_element_wise(*map(self._cells, columns), self.dialect.delimiter)
        ends_with_both = self.content[self._header_end :].startswith(b"\r\n")
        end = "\r\n" if ends_with_both else self.dialect.newline
        text = "".join(line + end for line in lines.to_pylist())
        return self.encoding.bom + self.encoding.encode(text.encode())

    def check_target(self, path: str | os.PathLike[str]) -> Place:
        """Refuse a suffix that promises another delimiter, too."""
        target = super().check_target(path)
        means = {".tsv": "\t", ".tab": "\t", ".psv": "|"}.get(target.suffix, self.dialect.delimiter)
        if means != self.dialect.delimiter and target.suffix != self.place.suffix:
            raise OutputError(
                f"Cannot write {target.path!r}: {self.name} is separated by "
                f"{self.dialect.delimiter!r}, and its copy stays so. Give it the suffix "
                f"{self.place.suffix or '.csv'!r}."
            )
        return target

    def _new_texts(self, changes: Changes) -> dict[int, tuple[Any, Any]]:
        """Return for the columns that change which rows do, and their new texts."""
        result = {}
        for j, (rows, values) in changes.filled.items():
            shape = self.formats[self.names[j]]
            written = write_values(values, shape)
            self._require_encodable(written, f"column {self.names[j]!r}")
            result[j] = (rows, self._padded(self._cells(written, always=shape.quoted), j))
        for j, gone in changes.erased.items():
            empty = self._hole or (self.dialect.quote * 2 if len(self.names) == 1 else "")
            rows, texts = gone, [empty] * int(gone.sum())
            if j in result:
                filled, new = result[j]
                rows = filled | gone
                merged = np.full(changes.rows, empty, dtype=object)
                merged[filled] = new.to_pylist()
                texts = merged[rows].tolist()
            result[j] = (rows, pa.array(texts, type=pa.string()))
        return result

    def _new_columns(self, changes: Changes) -> Any:
        """Return what is added to every row, None if nothing is."""
        if not changes.added:
            return None
        columns = []
        for name, column in changes.added:
            values, shape = column.drop_null().combine_chunks(), changes.formats.get(name)
            shown = iter(write_plain(values) if shape is None else write_values(values, shape))
            texts = [next(shown) if there else "" for there in column.is_valid().to_pylist()]
            self._require_encodable(texts, f"column {name!r}")
            columns.append(self._cells(texts))
        # The separator of the join stands between an empty text and the first column too.
        return pc.binary_join_element_wise("", *columns, self.dialect.delimiter)

    def _cells(self, texts: list[str], *, always: bool = False) -> Any:
        """Return texts as cells, with quotes around those that need them, or all."""
        cells, quote = pa.array(texts, type=pa.string()), self.dialect.quote
        special = re.escape(self.dialect.delimiter) + re.escape(quote)
        needed = pc.match_substring_regex(cells, rf"[{special}\r\n]|^\s|\s$")
        if not always and not pc.any(needed).as_py():
            return cells
        if not quote:
            text = cells.filter(needed)[0].as_py()
            raise OutputError(
                f"{text!r} cannot be written to a file like {self.name} without quotes: it holds a "
                "delimiter, a line end or space at an end. Allow quotes."
            )
        doubled = pc.replace_substring(cells, quote, quote * 2)
        enclosed = pc.binary_join_element_wise(quote, doubled, quote, "")
        return enclosed if always else pc.if_else(needed, enclosed, cells)

    def _space_around(self, column: int) -> Padding:
        return self._padding[column] or Padding()

    def _padded(self, cells: Any, column: int) -> Any:
        """Return cells with the space around them that the others of their column have."""
        padded = self._space_around(column).around(cells)
        if self.formats[self.names[column]].quoted or not self.dialect.quote:
            return padded
        # Many programs take a quote behind a space for an ordinary character.
        return pc.if_else(pc.starts_with(cells, self.dialect.quote), cells, padded)

    def _require_encodable(self, texts: list[str], where: str) -> None:
        if self.encoding.name.startswith("utf"):
            return
        for text in set(texts):
            try:
                text.encode(self.encoding.name)
            except UnicodeEncodeError:
                raise OutputError(
                    f"{text!r}, to be written to {where}, does not exist in the encoding "
                    f"{self.encoding.name} of {self.name}. Convert the file to UTF-8 first."
                ) from None

    def _spliced(
        self, header: bytes, texts: dict[int, tuple[Any, Any]], added: Any
    ) -> Iterator[bytes]:
        """Yield the file with the new texts in their places."""
        yield self.encoding.bom + self.encoding.encode(header)
        data = np.frombuffer(self.content, dtype=np.uint8)
        done = self._header_end if self.header else 0
        width = len(self.names) + (added is not None)
        order = Order(texts, added, width)
        for rows in self._rows():
            stop = rows.start + int(rows.ends[-1])
            starts = rows.starts.reshape(-1, rows.columns)
            ends = rows.ends.reshape(-1, rows.columns)
            if added is not None:
                # One more cell behind the last, empty so far.
                starts = np.column_stack([starts, ends[:, -1]])
                ends = np.column_stack([ends, ends[:, -1]])
            where, which = order.next(rows.count)
            shift = rows.start - done
            piece = splice(
                data[done:stop],
                starts.reshape(-1)[where] + shift,
                ends.reshape(-1)[where] + shift,
                order.texts.take(pa.array(which)),
            )
            yield self.encoding.encode(piece)
            done = stop
        yield self.encoding.encode(self.content[done:])


@dataclass
class _Marked:
    """What stands for missing cells in a column.

    Parameters
    ----------
    words : set of str
        Those that do and may be values.
    blanks : bool
        Whether cells with nothing in them do.
    """

    words: set[str] = field(default_factory=set)
    blanks: bool = False

    def note(self, rows: Rows, column: int, missing: Bools) -> None:
        """Look at the first cells of some rows."""
        for row in np.flatnonzero(missing)[:_SAMPLE].tolist():
            text = _cell_text(rows, row * rows.columns + column).strip(" \"'")
            if text in DOUBTFUL:
                self.words.add(text)
            self.blanks |= not text


def _cell_text(rows: Rows, cell: int) -> str:
    """Return a cell as it is written."""
    return rows.data[rows.starts[cell] : rows.ends[cell]].tobytes().decode()


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
