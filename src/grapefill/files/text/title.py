"""A title above the names of the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["find_names"]

# Of two columns one may have no name.
FEWEST_COLUMNS = 3
# Lines between the first one and the names.
MOST_ABOVE = 3


def find_names(first: Sequence[str], rows: Sequence[Sequence[str | None]]) -> int | None:
    """Return which row has the names of the columns, if the first line is a title instead.

    A title has text in its first cell and names few of three columns or more; below it, perhaps
    behind others like it, is a line of words, each another one, that do not come again.

    Parameters
    ----------
    first : sequence of str
        The cells of the first line.
    rows : sequence of sequence of str or None
        Those of the lines below it, None where missing.

    Returns
    -------
    int or None
        None if the first line may have the names itself.

    Examples
    --------
    >>> find_names(["Sales in 2024", "", ""], [["town", "sales", "cost"], ["Ulm", "1", None]])
    0
    """
    if len(first) < FEWEST_COLUMNS or not _is_title(first):
        return None
    for at, row in enumerate(rows[: MOST_ABOVE + 1]):
        if not _is_title(row):
            return at if _are_names(row) and not _come_again(row, rows[at + 1 :]) else None
    return None


def _is_title(cells: Sequence[str | None]) -> bool:
    """Whether a line has text in its first cell, and nothing in half of them or more."""
    return bool(cells[0]) and 2 * sum(map(bool, cells)) <= len(cells)


def _are_names(cells: Sequence[str | None]) -> bool:
    """Whether all cells are words, each another one."""
    words = [cell for cell in cells if cell]
    return len(set(words)) == len(cells) and all(word[0].isalpha() for word in words)


def _come_again(cells: Sequence[str | None], rows: Sequence[Sequence[str | None]]) -> bool:
    """Whether one of the cells is in its column again."""
    return any(cell == other for row in rows for cell, other in zip(cells, row, strict=True))
