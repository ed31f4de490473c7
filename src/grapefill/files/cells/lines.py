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

__all__ = ["MOST_LINES", "Mixture", "is_footer", "is_total", "total_message", "warn_of_mixtures"]

MOST_LINES = 3
"""So many rows at either end of a file may be something else."""

_FOOTER = re.compile(
    r"(?i)(?:sources?|notes?|remarks?|footnotes?|copyright|exported|created|generated|printed|"
    r"quellen?|anmerkung(?:en)?|hinweise?|stand|fuente|nota|bron)\b.*|[*©†¹].+|.+:.+"
)
_TOTALS = {
    *("total", "totals", "grand total", "subtotal", "sum", "sums"),
    *("gesamt", "summe", "gesamtsumme", "insgesamt", "somme", "suma", "totale", "totaal"),
}
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
    text : str
        The first of them.
    """

    name: str
    what: str
    rows: npt.NDArray[np.int64]
    text: str


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
        f"{place}, the last, looks like a total: it has {text!r} in column {name!r}. It is taken "
        "for a row like the others. Delete it, in a copy."
    )


def warn_of_mixtures(
    found: Sequence[Mixture],
    rows: int,
    file: str,
    where: Callable[[int], str],
    is_alone: Callable[[int], bool],
) -> None:
    """Warn of other texts among numbers, once for a line in which several columns have one.

    Parameters
    ----------
    found : sequence of Mixture
        The texts.
    rows : int
        Rows of the table.
    file : str
        What to call the file.
    where : callable
        Returns for a row what to call it.
    is_alone : callable
        Returns for a row whether it has but one value.
    """
    lines: defaultdict[int, list[Mixture]] = defaultdict(list)
    for each in found:
        lines[int(each.rows[0])].append(each)
    for row, those in sorted(lines.items()):
        place = where(row)
        title = f"{place.capitalize()} of {file}"
        shown = _some(each.text for each in those)
        columns = _some(each.name for each in those)
        if len(those) > 1 and all(each.text == each.name for each in those):
            warn(f"{title} repeats the names of the columns, {shown}. Delete it, in a copy.")
        elif len(those) > 1 and row == 0 and _have_no_names(those):
            warn(
                f"{title} looks like the names of the columns: it has {shown}, where other lines "
                "have numbers. Read the file with its line of names."
            )
        elif len(those) > 1 and row < MOST_LINES:
            warn(
                f"{title} is no row of values: it has {shown} in columns of numbers, {columns}, "
                "like a line of units or of further names. Delete it, in a copy."
            )
        elif row == rows - 1 and is_total(those[0].text):
            warn(total_message(title, those[0].text, those[0].name))
        elif rows - MOST_LINES <= row and (is_alone(row) or is_footer(those[0].text)):
            last = ", the last," if row == rows - 1 else ", near the end,"
            warn(
                f"{title}{last} looks like a footer: it has {shown} in a column of "
                f"{those[0].what}, {columns}. Delete it, in a copy."
            )
        else:
            for each in those:
                _warn_of_one(each, file, place)


def _warn_of_one(found: Mixture, file: str, place: str) -> None:
    others = len(found.rows) - 1
    more = f" and {others:,} other cell{'s' if others > 1 else ''}" if others else ""
    warn(
        f"Column {found.name!r} of {file} holds {found.what}, but {place} has {found.text!r}{more},"
        f" so it is read as text. Name it as a mark for missing, na={found.text!r}, if it stands "
        "for a missing cell."
    )


def _have_no_names(found: Iterable[Mixture]) -> bool:
    """Whether columns are called as those of a file without names are."""
    return all(re.fullmatch(r"column \d+", each.name) for each in found)


def _some(words: Iterable[str]) -> str:
    shown = [repr(word) for word in words]
    return ", ".join(shown[:_MOST]) + (", ..." if len(shown) > _MOST else "")
