"""Lines that are no rows of a table: units, names that come again, footers, totals."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grapefill.errors import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

__all__ = [
    "MOST_LINES",
    "Lines",
    "Mixture",
    "is_footer",
    "is_total",
    "shown",
    "total_message",
    "warn_of_mixtures",
]

MOST_LINES = 3
"""So many rows at either end of a file may be something else."""

_FOOTER = re.compile(
    r"(?i)(?:sources?|notes?|remarks?|footnotes?|copyright|exported|created|generated|printed|"
    r"quellen?|anmerkung(?:en)?|hinweise?|stand|fuente|nota|bron)\b.*|[*©†¹].+|[^\W\d][^:]*:\s.+"
)
_TOTALS = {
    *("total", "totals", "grand total", "subtotal", "sum", "sums"),
    *("gesamt", "summe", "gesamtsumme", "insgesamt", "somme", "suma", "totale", "totaal"),
}
# Characters of a cell that a warning shows.
MOST_SHOWN = 80
# Columns that a warning names one by one.
_MOST = 5


@dataclass(frozen=True)
class Mixture:
    """Another text among the numbers or dates of a column.

    Parameters
    ----------
    name : str
        The column.
    what : str
        What it holds else, ``"numbers"`` or ``"dates"``.
    rows : ndarray of int
        The rows with other texts.
    texts : tuple of str
        The texts of the first few of them.
    """

    name: str
    what: str
    rows: npt.NDArray[np.int64]
    texts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The first text."""
        return self.texts[0]


@dataclass(frozen=True)
class Lines:
    """What is known of the rows of a file.

    Parameters
    ----------
    file : str
        What to call the file.
    where : callable
        Returns for a row what to call it.
    count, columns : int
        How many rows and columns there are.
    cells_of : callable
        Returns for a row how many texts it has, and how many other values.
    """

    file: str
    where: Callable[[int], str]
    count: int
    columns: int
    cells_of: Callable[[int], tuple[int, int]]


def shown(text: str) -> str:
    """Return a cell as a note shows it: in quotes, and only the beginning of a long one.

    Examples
    --------
    >>> shown("n.d."), shown("so many words " * 9)[-14:]
    ("'n.d.'", "so many wo...'")
    """
    return repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}...")


def is_footer(text: str) -> bool:
    """Whether a text reads like a remark below a table.

    Examples
    --------
    >>> is_footer("Source: ERP"), is_footer("Berlin")
    (True, False)
    """
    return _FOOTER.fullmatch(text.strip()) is not None


def is_total(text: str) -> bool:
    """Whether a text is a word for a total.

    Examples
    --------
    >>> is_total("Grand Total:"), is_total("Total loss")
    (True, False)
    """
    return " ".join(text.strip(" :*").lower().split()) in _TOTALS


def total_message(place: str, text: str, name: str) -> str:
    """Return what to say of a last row that is a total, with its text in a column."""
    return (
        f"{place}, the last, looks like a total: it has {shown(text)} in column {name!r}. It is "
        "taken for a row like the others. Delete it, in a copy."
    )


def warn_of_mixtures(found: Sequence[Mixture], lines: Lines) -> None:
    """Warn of other texts among numbers, once for a line in which several columns have one.

    Parameters
    ----------
    found : sequence of Mixture
        The texts.
    lines : Lines
        What is known of the rows.
    """
    places: defaultdict[int, list[Mixture]] = defaultdict(list)
    below = _lines_below(found, lines)
    ending = [each for each in found if below.keys() >= set(each.rows.tolist())]
    rows = sorted({int(row) for each in ending for row in each.rows})
    if len(rows) > 1:
        texts = " and ".join(f"{lines.where(row)} has {shown(below[row])}" for row in rows)
        what = "columns" if len(ending) > 1 else "a column"
        warn(
            f"The end of {lines.file} looks like a footer: {texts}, in {what} of {ending[0].what}, "
            f"{_some(each.name for each in ending)}. Delete these lines, in a copy."
        )
        told = {each.name for each in ending}
        found = [each for each in found if each.name not in told]
    for each in found:
        places[int(each.rows[0])].append(each)
    for row, those in sorted(places.items()):
        together = _of_a_line(row, those, lines)
        if together:
            # What else is in these columns is told once the line is gone.
            warn(together)
            continue
        for each in those:
            _warn_of_one(each, lines.file, lines.where(row))


def _lines_below(found: Sequence[Mixture], lines: Lines) -> dict[int, str]:
    """Return the last lines that are no rows of values, each with its first text."""
    texts: defaultdict[int, list[str]] = defaultdict(list)
    for each in found:
        if each.rows[0] >= lines.count - MOST_LINES:
            for row, text in zip(each.rows.tolist(), each.texts, strict=True):
                texts[row].append(text)
    return {
        row: several[0]
        for row, several in texts.items()
        if any(is_footer(text) or is_total(text) for text in several) or _is_alone(row, lines)
    }


def _is_alone(row: int, lines: Lines) -> bool:
    """Whether a row has one cell of several."""
    return sum(lines.cells_of(row)) == 1 and lines.columns > 1


def _of_a_line(row: int, found: Sequence[Mixture], lines: Lines) -> str:
    """Return what a line with other texts looks like, empty if it may be a row of values."""
    title = f"{lines.where(row).capitalize()} of {lines.file}"
    if len(found) > 1 and all(each.text == each.name for each in found):
        texts = _some(each.text for each in found)
        return f"{title} repeats the names of the columns, {texts}. Delete it, in a copy."
    # What is there more than once is no unit and no name.
    once = [each for each in found if len(each.rows) == 1]
    if not once:
        return ""
    first, texts = once[0], _some(each.text for each in once)
    columns = _some(each.name for each in once)
    _, others = lines.cells_of(row)
    if len(once) > 1 and row == 0 and not others:
        if all(re.fullmatch(r"column \d+", each.name) for each in once):
            return (
                f"{title} looks like the names of the columns: it has {texts}, where other lines "
                "have numbers. Read the file with its line of names."
            )
        return (
            f"{title} is no row of values: it has {texts} in columns of numbers, {columns}, like "
            "a line of units or of further names. Delete it, in a copy."
        )
    if row == lines.count - 1 and is_total(first.text):
        return total_message(title, first.text, first.name)
    if row >= lines.count - MOST_LINES and (_is_alone(row, lines) or is_footer(first.text)):
        last = "the last" if row == lines.count - 1 else "near the end"
        return (
            f"{title}, {last}, looks like a footer: it has {texts} in a column of {first.what}, "
            f"{columns}. Delete it, in a copy."
        )
    return ""


def _warn_of_one(found: Mixture, file: str, place: str) -> None:
    others = len(found.rows) - 1
    more = f" and {others:,} other cell{'s' if others > 1 else ''}" if others else ""
    advice = (
        f"Name it as a mark for missing, na={found.text!r}, if it stands for a missing cell."
        if len(found.text) <= MOST_SHOWN
        else "Write a number there, or nothing, in a copy."
    )
    warn(
        f"Column {found.name!r} of {file} holds {found.what}, but {place} has {shown(found.text)}"
        f"{more}, so it is read as text. {advice}"
    )


def _some(words: Iterable[str]) -> str:
    found = [shown(word) for word in words]
    return ", ".join(found[:_MOST]) + (", ..." if len(found) > _MOST else "")
