"""Excel workbooks: values go into empty cells of one sheet, the rest of the workbook is kept."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from collections import Counter
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import InputError, warn
from grapefill.files.cells.formats import ColumnFormat
from grapefill.files.cells.marks import AMONG_NUMBERS, spellings
from grapefill.files.cells.read import Context, TypedColumn, arrow_type, read_columns
from grapefill.files.changes import find_missing
from grapefill.files.convert import put
from grapefill.files.sheet_cells import (
    as_cells,
    is_blank,
    is_mark,
    read_floats,
    read_moments,
    typed_column,
)
from grapefill.files.table_file import TableFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grapefill.files.changes import Bools, Changes
    from grapefill.files.options import ReadOptions
    from grapefill.files.places import Place

__all__ = ["ExcelFile"]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")

_FORMULA = re.compile(rb"<(\w+:)?f[\s/>]")
# Parts of a workbook that openpyxl does not keep, and what people call them.
_LOST = {
    "xl/charts/": "charts",
    "xl/media/": "pictures",
    "xl/pivotTables/": "pivot tables",
    "xl/slicers/": "slicers",
    "xl/embeddings/": "embedded objects",
}


class ExcelFile(TableFile):
    """A sheet of an Excel workbook, its names in the first row that is not empty.

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
        self.content = content
        self.options = options
        # Values as the workbook shows them, not the formulas behind them.
        self.sheet = self._open(data_only=True)
        rows = self._filled_rows()
        if not rows:
            raise self._nothing("is empty: it has no cell with a name or a value.")
        first, width = rows[0][0], max(row[1] for row in rows)
        self.first_column = min(row[2] for row in rows)
        names = [self.sheet.cell(first, c).value for c in range(self.first_column, width + 1)]
        body = rows[1:] if options.header else rows
        self.rows = [row[0] for row in body]
        if len(names) == 1 and self.rows:
            # In a single column an empty row is a hole.
            self.rows = list(range(self.rows[0], self.rows[-1] + 1))
        self.names = self._checked_names(names)
        if options.header:
            self._refuse_title(names)
        if not self.rows:
            raise self._nothing("has names but no rows: there is nothing to fill.")
        self._header = first if options.header else None
        self._formulas = self._find_formulas()
        self._covered = {
            (row, column)
            for area in self.sheet.merged_cells.ranges
            for row, column in area.cells
            if (row, column) != (area.min_row, area.min_col)
        }
        columns = self._read_columns()
        self.frame = pa.table([column.values for column in columns], names=list(self.names))
        self.formats = {
            name: column.format for name, column in zip(self.names, columns, strict=True)
        }
        self._locked = self._find_locked()

    @property
    def _title(self) -> str:
        return f"Sheet {self.sheet.title!r} of {self.name}"

    def where(self, row: int) -> str:
        """Return the row of the sheet."""
        return f"row {self.rows[row]}"

    def _nothing(self, why: str) -> InputError:
        """Return the error for a sheet without rows, which names the other ones."""
        others = [repr(each.title) for each in self.book.worksheets if each is not self.sheet]
        have = f" The workbook also has {', '.join(others)}. Name the sheet to read another."
        return InputError(f"{self._title} {why}{have if others else ''}")

    def has_mark(self, mark: str) -> bool:
        """Whether a cell below the names is a mark for missing."""
        marks = spellings([mark])
        columns = range(self.first_column, self.first_column + len(self.names))
        values = (self.sheet.cell(row, column).value for row in self.rows for column in columns)
        return any(value is not None and is_mark(value, marks) for value in values)

    def _open(self, *, data_only: bool) -> Any:
        openpyxl: Any = import_module("openpyxl")
        try:
            book = openpyxl.load_workbook(
                io.BytesIO(self.content),
                data_only=data_only,
                rich_text=not data_only,
                keep_vba=self.place.suffix == ".xlsm",
            )
        except (OSError, KeyError, ValueError, zipfile.BadZipFile, TypeError) as error:
            raise InputError(
                f"Cannot read {self.name}: it is damaged, or not an Excel workbook ({error}). Save "
                "it again as .xlsx; the old .xls is not read."
            ) from error
        self.book = book
        wanted = self.options.sheet
        if wanted is None:
            return book.worksheets[0]
        if wanted in book.sheetnames:
            return book[wanted]
        if wanted.isdecimal() and 1 <= int(wanted) <= len(book.worksheets):
            return book.worksheets[int(wanted) - 1]
        names = ", ".join(map(repr, book.sheetnames))
        raise InputError(f"{self.name} has no sheet {wanted!r}. It has {names}.")

    def _filled_rows(self) -> list[tuple[int, int, int]]:
        """Return number, last and first used column of the rows that hold something."""
        rows = []
        for number, row in enumerate(self.sheet.iter_rows(values_only=True), start=1):
            used = [c for c, value in enumerate(row, start=1) if not is_blank(value)]
            if used:
                rows.append((number, used[-1], used[0]))
        return rows

    def _find_formulas(self) -> set[tuple[int, int]]:
        """Return row and column of the cells with a formula, which values alone do not show."""
        with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            parts = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
            # A workbook takes long to open, and most have none.
            if not any(_FORMULA.search(archive.read(name)) for name in parts):
                return set()
        cells = (cell for row in self._open(data_only=False).iter_rows() for cell in row)
        return {(cell.row, cell.column) for cell in cells if cell.data_type == "f"}

    def _find_locked(self) -> dict[int, Bools]:
        """Return where cells are missing but never to be filled.

        They hold a formula without a result, or another cell covers them.
        """
        formulas = self._missing_among(self._formulas)
        if formulas:
            warn(
                f"Cells of {self.name} hold a formula that has no result, or an error: "
                f"{self._counts(formulas)}. The formulas stay and no value is filled in. If they "
                "should count as values, open the workbook in Excel or LibreOffice, save it there, "
                "and try again."
            )
        covered = self._missing_among(self._covered)
        if covered:
            warn(
                f"Cells of {self.name} are merged with others and hold no value of their own: "
                f"{self._counts(covered)}. They stay so. Split them in Excel or LibreOffice if "
                "they are to be filled in."
            )
        return self._missing_among(self._formulas | self._covered)

    def _missing_among(self, cells: set[tuple[int, int]]) -> dict[int, Bools]:
        """Return which of some cells are missing, by column."""
        found = {}
        for j in range(len(self.names)):
            column = self.first_column + j
            here = np.array([(row, column) in cells for row in self.rows])
            if (here := here & find_missing(self.frame.column(j))).any():
                found[j] = here
        return found

    def _counts(self, cells: dict[int, Bools]) -> str:
        return ", ".join(f"{int(v.sum()):,} in {self.names[j]!r}" for j, v in cells.items())

    def as_written(self, table: Any) -> Any:
        """Return a filled table whose cells are empty where the file has no place for values."""
        places = {name: at for at, name in enumerate(table.column_names)}
        for j, locked in self._locked.items():
            at = places.get(self.names[j])
            if at is not None:
                column = table.column(at)
                left = pc.if_else(pa.array(locked), pa.scalar(None, column.type), column)
                table = table.set_column(at, table.field(at), left)
        return table

    def _allowed(self, changes: Changes) -> Changes:
        """Leave the cells with a formula, and those that others cover, as they are."""
        filled = {}
        for j, (mask, values) in changes.filled.items():
            free = ~self._locked[j] if j in self._locked else np.ones_like(mask)
            if (mask & free).any():
                filled[j] = (mask & free, values.filter(pa.array(free[mask])))
        return replace(changes, filled=filled)

    def _checked_names(self, cells: Sequence[Any]) -> tuple[str, ...]:
        if not self.options.header:
            return tuple(f"column {j + 1}" for j in range(len(cells)))
        names = [
            f"Unnamed: {j}" if is_blank(cell) else str(cell).strip() for j, cell in enumerate(cells)
        ]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise InputError(
                f"Two columns of sheet {self.sheet.title!r} of {self.name} are called "
                f"{twice[0]!r}. Give every column its own name."
            )
        return tuple(names)

    def _refuse_title(self, names: Sequence[Any]) -> None:
        """Refuse a first row that names few columns, if the next looks like the real names."""
        if not self.rows or 2 * sum(not is_blank(name) for name in names) > len(names):
            return
        below = [
            self.sheet.cell(self.rows[0], self.first_column + j).value for j in range(len(names))
        ]
        if all(isinstance(cell, str) and cell.strip() for cell in below):
            raise InputError(
                f"The first row of {self._title} names few of its {len(names)} columns, and "
                f"{self.where(0)} looks like the names. Delete the rows above it, in a copy."
            )

    def _read_columns(self) -> list[TypedColumn]:
        """Give every column its type: that of its cells, or for cells of text what it says."""
        columns: list[TypedColumn | None] = []
        texts, names = [], []
        for j, name in enumerate(self.names):
            cells = [self.sheet.cell(row, self.first_column + j).value for row in self.rows]
            expected = self.options.types.get(name)
            column = self._typed(cells, expected)
            columns.append(column)
            if column is None:
                names.append(name)
                levels = () if expected is None else expected.levels
                found = pa.array(self._texts(cells, levels), type=pa.string())
                texts.append(pa.chunked_array([found]))
        context = Context(
            self.name,
            self.where,
            expected=self.options.types,
            decimal=self.options.decimal,
            day_first=self.options.day_first,
            usual_marks=self.options.usual_na,
            others=tuple(column for column in columns if column is not None),
        )
        read = iter(read_columns(names, texts, context))
        return [next(read) if column is None else column for column in columns]

    def _typed(self, cells: list[Any], expected: ColumnFormat | None) -> TypedColumn | None:
        """Return a column of numbers, dates or booleans; None if it holds text or nothing."""
        marks = self.options.marks | (AMONG_NUMBERS if self.options.usual_na else frozenset())
        values = [None if is_mark(cell, marks) else cell for cell in cells]
        kinds = {type(value) for value in values if value is not None}
        if not kinds:
            if expected is None or expected.type in ("text", "empty"):
                return None
            nulls = pa.nulls(len(cells), type=arrow_type(expected))
            return TypedColumn(pa.chunked_array([nulls]), expected)
        if expected is not None and expected.type == "text":
            return None
        if kinds <= {bool}:
            return typed_column(values, pa.bool_(), ColumnFormat("boolean"))
        if kinds <= {int, float}:
            return read_floats(values, expected)
        if kinds <= {datetime.datetime, datetime.date}:
            return read_moments(values)
        return None

    def _texts(self, cells: list[Any], levels: Sequence[str]) -> list[str | None]:
        marks = self.options.marks - set(levels)
        return [None if is_mark(cell, marks) else str(cell).strip() for cell in cells]

    def _whole(self, changes: Changes) -> Any:
        """Return all columns; another format holds no formulas."""
        if self._missing_among(self._formulas):
            warn(
                f"Formulas of {self.name} that have no result cannot be written in another format: "
                "their cells are empty there."
            )
        return super()._whole(changes)

    def _pieces(self, changes: Changes) -> Iterable[bytes]:
        self._warn_of_losses()
        sheet = self._open(data_only=False)
        for j, (mask, values) in changes.filled.items():
            shape = self.formats[self.names[j]]
            column = self.first_column + j
            new = as_cells(values, shape, text=self._holds_text(j))
            if shape.type == "text":
                own = self._not_text(j)
                new = [own.get(text, text) for text in new]
            style = self._usual_style(sheet, column)
            for row, value in zip(_chosen(self.rows, mask), new, strict=True):
                cell = sheet.cell(row, column)
                if cell.number_format == "General" and style is not None:
                    cell.number_format = style
                put(cell, value)
        for j, mask in changes.erased.items():
            for row in _chosen(self.rows, mask):
                sheet.cell(row, self.first_column + j).value = None
        # Formulas without a result, and merged cells, may stand beside the table.
        last = max((column for _, column in self._formulas | self._covered), default=0)
        for at, (name, added) in enumerate(changes.added):
            column = max(self.first_column + len(self.names), last + 1) + at
            if self._header is not None:
                put(sheet.cell(self._header, column), name)
            for row, value in zip(self.rows, added.to_pylist(), strict=True):
                put(sheet.cell(row, column), int(value) if isinstance(value, bool) else value)
        buffer = io.BytesIO()
        self.book.save(buffer)
        return [buffer.getvalue()]

    def _holds_text(self, j: int) -> bool:
        """Whether the values of a column are written as text in the workbook."""
        cells = (self.sheet.cell(row, self.first_column + j).value for row in self.rows)
        found = next((cell for cell in cells if not is_mark(cell, self.options.marks)), None)
        return isinstance(found, str)

    def _not_text(self, j: int) -> dict[str, Any]:
        """Return cells that a column of text holds as something else, such as times of day."""
        cells = [self.sheet.cell(row, self.first_column + j).value for row in self.rows]
        texts = {cell for cell in cells if isinstance(cell, str)}
        others = {str(cell): cell for cell in cells if not isinstance(cell, str | None)}
        return {text: cell for text, cell in others.items() if text not in texts}

    def _usual_style(self, sheet: Any, column: int) -> str | None:
        """Return the number format of most cells with a value."""
        counts: Counter[str] = Counter()
        for row in self.rows:
            cell = sheet.cell(row, column)
            if cell.value is not None:
                counts[cell.number_format] += 1
        return counts.most_common(1)[0][0] if counts else None

    def _warn_of_losses(self) -> None:
        with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            inside = archive.namelist()
        lost = [word for start, word in _LOST.items() if any(n.startswith(start) for n in inside)]
        if lost:
            warn(
                f"The copy of {self.name} will lack its {', '.join(lost)}: cells, formats and "
                "formulas are kept, these are not. The file itself stays as it is."
            )
        if self._formulas:
            warn(
                f"The copy of {self.name} has its formulas without results. Excel and LibreOffice "
                "work them out when they open it; other programs see empty cells until it was "
                "saved there once."
            )


def _chosen(rows: Sequence[int], mask: Any) -> list[int]:
    return [row for row, chosen in zip(rows, mask.tolist(), strict=True) if chosen]
