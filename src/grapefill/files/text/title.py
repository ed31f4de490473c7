"""A title above the names of the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grapefill.files.cells.numbers import STYLES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["find_names"]


def find_names(first: Sequence[str], rows: Sequence[Sequence[str | None]]) -> int | None:
    """Return which row has the names of the columns, if the first line is a title instead.

    A title has text in its first cell and names few columns; below it, perhaps behind others like
    it, is a line of words, each another one.

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
    if not _is_title(first):
        return None
    for at, row in enumerate(rows):
        if not _is_title(row):
            return at if _are_names(row) else None
    return None


def _is_title(cells: Sequence[str | None]) -> bool:
    """Whether a line has text in its first cell, and nothing in half of them or more."""
    return bool(cells[0]) and 2 * sum(map(bool, cells)) <= len(cells)


def _are_names(cells: Sequence[str | None]) -> bool:
    """Whether all cells are there and no numbers, each another one."""
    words = [cell for cell in cells if cell]
    return len(set(words)) == len(cells) and not any(map(_is_number, words))


def _is_number(text: str) -> bool:
    return any(style.pattern.fullmatch(text) for style in STYLES)
