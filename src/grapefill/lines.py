"""Text in lines: how wide it is, shortened, wrapped, set in columns."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["LINE", "align", "shorten", "width_of", "wrap"]

LINE = 80
"""Letters in a line where nobody knows how wide the terminal is."""
# Columns are not made narrower than that.
NARROWEST = 10
# A line that ends inside of a name in quotes, or before the value of an option, cannot be pasted.
_WORD = re.compile(r"""(?:--[\w-]+[ =])?(?:'[^']*'|"[^"]*")\S*|--[\w-]+ \S+|\S+""")
# Where a cell of a row begins, or the text of a line that is moved to the right.
_CELL = re.compile(r"(?:^ +|(?<=\S) {2,})(?=\S)")


def width_of(text: str) -> int:
    r"""Return how many letters of usual width a text takes.

    Chinese letters, for example, are as wide as two others; an accent by itself takes no room.

    Examples
    --------
    >>> width_of("Ulm"), width_of("北京市"), width_of("e\u0301")
    (3, 6, 1)
    """
    return len(text) if text.isascii() else sum(map(_letter_width, text))


def _letter_width(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def shorten(text: str, width: int) -> str:
    """Return a text without its middle if it is too wide: names often begin alike.

    Examples
    --------
    >>> shorten("income_before_taxes_2021", 15), shorten("北京市北京市", 7)
    ('income_…es_2021', '北…市')
    """
    if width_of(text) <= width:
        return text
    room = max(0, width - 1)
    end = _beginning(text[::-1], room // 2)[::-1]
    return f"{_beginning(text, room - room // 2).rstrip()}…{end.lstrip()}"


def _beginning(text: str, width: int) -> str:
    text = text[:width]
    while width_of(text) > width:
        text = text[:-1]
    return text


def wrap(text: str, width: int = LINE) -> str:
    r"""Return a text whose lines end between words, at the latest where the width ends.

    Names in quotes and options with their values stay on one line. Of a row of a table the last
    cell is wrapped, and stays below where it begins; a row of which other cells have no room, and
    whatever else has several blanks between its words, stays as it is.

    Examples
    --------
    >>> print(wrap("name   what there is to say\nThat is all, so add --na 'not known'.", 20))
    name   what there is
           to say
    That is all, so add
    --na 'not known'.
    """
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width))


def _parts(line: str, width: int) -> Iterator[str]:
    if width_of(line) <= width:
        yield line
        return
    cells = [match.end() for match in _CELL.finditer(line)]
    start = max((at for at in cells if width_of(line[:at]) <= width // 2), default=0)
    if start < max(cells, default=0):
        yield line
        return
    part, indent = line[:start], " " * width_of(line[:start])
    gap = ""
    for word in _WORD.findall(line[start:]):
        if gap and width_of(part) + 1 + width_of(word) > width:
            yield part
            part, gap = indent, ""
        part, gap = f"{part}{gap}{word}", " "
    yield part


def align(
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    narrow: Sequence[int] = (),
    fold: int | None = None,
) -> list[str]:
    """Return rows of cells as lines with columns of equal width.

    Parameters
    ----------
    rows : sequence of sequences of str
        The cells.
    right : sequence of int
        Columns that are aligned to the right, numbers as a rule.
    narrow : sequence of int
        Columns whose texts are shortened where rows would not fit into a line, the widest first.
    fold : int or None
        The width of lines where nothing is to be shortened: a first cell that has no room is on a
        line of its own, above the others of its row. None for lines of any width.

    Examples
    --------
    >>> align([["name", "n"], ["a", "10"]], right=[1])
    ['name   n', 'a     10']
    >>> align([["name", "n"], ["a name that is long", "10"]], right=[1], fold=14)
    ['name         n', 'a name that is long', '            10']
    """
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    if fold is None:
        _make_narrower(widths, narrow, LINE)
    else:
        _make_narrower(widths, [0], fold)
    lines = []
    for first, *others in rows:
        alone = fold is not None and width_of(first) > widths[0]
        lines += [first] if alone else []
        cells = _padded(["" if alone else first, *others], widths, right)
        lines.append("  ".join(cells).rstrip())
    return lines


def _make_narrower(widths: list[int], which: Sequence[int], line: int) -> None:
    """Take from the widest of some columns until all fit into a line."""
    while which and sum(widths) + 2 * (len(widths) - 1) > line:
        widest = max(which, key=widths.__getitem__)
        if widths[widest] <= NARROWEST:
            return
        widths[widest] -= 1


def _padded(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> Iterator[str]:
    for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
        text = shorten(cell, width)
        blanks = " " * (width - width_of(text))
        yield blanks + text if at in right else text + blanks
