"""Notes on rows of a file that may be none."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grapefill.cli.terminal import Terminal
    from grapefill.files import TableFile

__all__ = ["note_rows"]

# Rows that a note names one by one, and characters of a cell.
MOST_ROWS, MOST_SHOWN = 3, 80


def note_rows(file: TableFile, terminal: Terminal) -> None:
    """Tell of rows that may be none: blank lines, a total, and remarks below the table.

    Parameters
    ----------
    file : TableFile
        What was read.
    terminal : Terminal
        Where to show notes.
    """
    _note_blank_rows(file, terminal)
    _note_footer(file, terminal)
    _note_total(file, terminal)


def _note_footer(file: TableFile, terminal: Terminal) -> None:
    """Tell of last rows with nothing but a remark such as 'Source: ERP' in the first column."""
    from grapefill.evaluate.text import join_words
    from grapefill.files.cells.lines import MOST_LINES, is_footer

    frame = file.frame
    if frame.num_columns < 2 or terminal.has_told("looks like a footer"):
        return
    rows: list[int] = []
    first, *others = frame.columns
    if not _is_text(first):
        return
    for row in range(frame.num_rows - 1, max(frame.num_rows - 1 - MOST_LINES, -1), -1):
        text = first[row].as_py()
        if text is None or not is_footer(text) or any(other[row].is_valid for other in others):
            break
        rows.insert(0, row)
    if rows:
        text = first[rows[-1]].as_py()
        text = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
        places = join_words([file.where(row) for row in rows]).capitalize()
        look, it = ("looks", "it") if len(rows) == 1 else ("look", "them")
        terminal.note(
            f"{places} of {file.name}, at the end, {look} like a footer: there is {text!r} and "
            f"nothing else. Delete {it}, in a copy; otherwise the rest is filled in."
        )


def _note_total(file: TableFile, terminal: Terminal) -> None:
    """Tell of a last row whose first text is a word such as 'Total'."""
    from grapefill.files.cells.lines import is_total, total_message

    if terminal.has_told("looks like a total"):
        return
    frame = file.frame
    columns = zip(frame.column_names, frame.columns, strict=True)
    last = ((name, column[-1].as_py()) for name, column in columns if _is_text(column))
    name, text = next((pair for pair in last if pair[1] is not None), ("", ""))
    if is_total(text):
        place = f"{file.where(frame.num_rows - 1).capitalize()} of {file.name}"
        terminal.note(total_message(place, text, name))


def _is_text(column: Any) -> bool:
    """Whether a column has texts; dates and times need not be what Python can hold."""
    types = import_module("pyarrow.types")
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    texts = types.is_string, types.is_large_string, types.is_string_view
    return any(is_one(kind) for is_one in texts)


def _note_blank_rows(file: TableFile, terminal: Terminal) -> None:
    """Tell of rows without any value, as spreadsheets leave behind."""
    from grapefill.files.changes import find_missing

    frame = file.frame
    # In a single column an empty row is a hole.
    if frame.num_columns < 2:
        return
    blank = find_missing(frame.column(0))
    for column in frame.columns[1:]:
        if not blank.any():
            return
        blank &= find_missing(column)
    rows = blank.nonzero()[0].tolist()
    if not rows:
        return
    places = ", ".join(file.where(row) for row in rows[:MOST_ROWS])
    more = ", ..." if len(rows) > MOST_ROWS else ""
    have = "A row has" if len(rows) == 1 else f"{len(rows):,} rows have"
    terminal.note(
        f"{have} no value at all in {file.name}: {places}{more}. Such rows are filled in like any "
        "other, though nothing is known of them. Delete them if they are blank lines and no rows."
    )
