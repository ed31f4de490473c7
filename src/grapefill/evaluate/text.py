"""Tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LINE", "align", "counted", "join_words"]

LINE = 96
"""Letters in a line of a paragraph."""


def align(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Return rows of cells as lines with columns of equal width.

    Parameters
    ----------
    rows : sequence of sequences of str
        The cells.
    right : sequence of int
        Columns that are aligned to the right, numbers as a rule.

    Examples
    --------
    >>> align([["name", "n"], ["a", "10"]], right=[1])
    ['name   n', 'a     10']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def join_words(words: Sequence[str]) -> str:
    """List words as a sentence does.

    Examples
    --------
    >>> join_words(["a"]), join_words(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def counted(count: int, word: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
