"""Which delimiter a file uses, judged by its first lines."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grapefill.files.text.dialect import DELIMITERS, Dialect, check_character, find_newline
from grapefill.files.text.tokens import StrayQuoteError, find_separators

if TYPE_CHECKING:
    import numpy.typing as npt

    from grapefill.files.options import ReadOptions

__all__ = ["find_dialect", "find_start"]

# What Excel takes from a first line, and writes there at times.
_SEP = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=([^\w\s"]|[\t ])"?(?:\r\n|\n|\r)', re.IGNORECASE)
_FIRST, _MOST = 1 << 16, 1 << 22
_FEWEST_LINES = 20


def find_dialect(content: bytes, options: ReadOptions, suffix: str) -> Dialect:
    r"""Return how a file is written.

    The delimiter is the one that gives the first rows the same number of cells, more than one; of
    several the one that gives the most. The file's suffix decides between equals. A first line
    like ``sep=;`` says it.

    Parameters
    ----------
    content : bytes
        The file in UTF-8.
    options : ReadOptions
        What the caller said.
    suffix : str
        Suffix of the file's name.

    Examples
    --------
    >>> from grapefill.files.options import ReadOptions
    >>> find_dialect(b"a;b\n1,5;2\n", ReadOptions(), ".csv").delimiter
    ';'
    """
    quote = check_character("quote", options.quote) if options.quote else ""
    plain = Dialect(quote=quote, newline=find_newline(content))
    if options.delimiter is not None:
        return replace(plain, delimiter=check_character("delimiter", options.delimiter))
    if said := _SEP.match(content):
        return replace(plain, delimiter=said[1].decode())
    sample = _first_lines(content, plain.newline.encode())
    likely = {".tsv": "\t", ".tab": "\t", ".psv": "|"}.get(suffix)
    order = sorted(DELIMITERS, key=lambda delimiter: delimiter != likely)
    scores = [(_score(sample, replace(plain, delimiter=d)), -at) for at, d in enumerate(order)]
    best, at = max(scores)
    return replace(plain, delimiter=order[-at] if best > (0, 0) else order[0])


def find_start(content: bytes) -> int:
    r"""Return where the rows begin: behind a first line like ``sep=;``, if there is one.

    Examples
    --------
    >>> find_start(b"sep=;\na;b\n"), find_start(b"a;b\n")
    (6, 0)
    """
    said = _SEP.match(content)
    return said.end() if said else 0


def _first_lines(content: bytes, newline: bytes) -> bytes:
    """Return some whole lines from the start of a file."""
    size = _FIRST
    while size < min(len(content), _MOST) and content.count(newline, 0, size) < _FEWEST_LINES:
        size *= 2
    if size >= len(content):
        return content
    return content[: content.rfind(newline, 0, size) + 1] or content[:size]


def _score(sample: bytes, dialect: Dialect) -> tuple[float, int]:
    """Return the share of rows with as many cells as the first, and how many these are."""
    data = np.frombuffer(sample, dtype=np.uint8)
    try:
        separators = find_separators(data, dialect, last=True)
    except StrayQuoteError:
        # Quotes that stand wrong for this delimiter may stand right for another.
        separators = find_separators(data, replace(dialect, quote=""), last=True)
    counts: npt.NDArray[np.int64] = np.diff(np.flatnonzero(separators.ends_row), prepend=-1)
    if not counts.size:
        return (0.0, 0)
    if counts[0] == 1:
        # Names without the delimiter, but rows with it: better refused than read as one column.
        several = counts[1:][counts[1:] > 1]
        return (0.0, int(several.size > counts.size / 2))
    same = float((counts == counts[0]).mean())
    return (round(same, 1), int(counts[0]))
