"""The cells of some rows as text, column by column."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from grapefill.files.text.tokens import Bools, Bytes, Integers, Rows

__all__ = ["column_texts", "flat_texts"]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")

_SPACE, _BEYOND_ASCII = 0x20, 0x80


def flat_texts(rows: Rows) -> Any:
    """Return the texts of all cells, row by row, without quotes and surrounding space.

    The bytes of the cells already stand one behind the other; all that is between them is taken
    out, and what is left is the buffer of an arrow array.

    Parameters
    ----------
    rows : Rows
        Some rows of a file.

    Returns
    -------
    pyarrow.StringArray of length rows * columns
    """
    lengths = rows.ends - rows.starts
    inside = _inside_cells(rows)
    quotes = rows.quotes[inside[rows.quotes]]
    if quotes.size:
        inside[quotes] = False
        cells = np.searchsorted(rows.starts, quotes, side="right") - 1
        lengths -= np.bincount(cells, minlength=lengths.size)
    data = rows.data[inside]
    offsets = np.zeros(lengths.size + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    texts = pa.StringArray.from_buffers(lengths.size, pa.py_buffer(offsets), pa.py_buffer(data))
    if _has_space(data, offsets, lengths):
        texts = pc.utf8_trim_whitespace(texts)
    return texts


def _inside_cells(rows: Rows) -> Bools:
    """Return which bytes belong to a cell."""
    inside = np.ones(rows.data.size, dtype=bool)
    inside[: rows.starts[0]] = False
    inside[rows.ends[-1] :] = False
    between = rows.starts[1:] - rows.ends[:-1]
    # One byte separates two cells, two a row from the next, and more only where lines are blank.
    inside[rows.ends[:-1]] = False
    wide = np.flatnonzero(between > 1)
    inside[rows.starts[1:][wide] - 1] = False
    for gap in wide[between[wide] > 2].tolist():
        inside[rows.ends[gap] : rows.starts[gap + 1]] = False
    return inside


def column_texts(
    texts: Any, columns: int, marks: Collection[str], levels: Mapping[int, Collection[str]]
) -> tuple[list[Any], Bools]:
    """Return one array per column, null where the text is one of the marks for missing.

    Parameters
    ----------
    texts : pyarrow.StringArray
        What `flat_texts` returned.
    columns : int
        Cells per row.
    marks : collection of str
        The marks.
    levels : mapping of int to collection of str
        Texts that are none in some columns.

    Returns
    -------
    arrays : list of pyarrow.StringArray
    missing : ndarray of bool, shape (rows, columns)
    """
    missing = _find_marks(texts, marks)
    for j, values in levels.items():
        known = pc.is_in(texts.take(pa.array(np.arange(j, len(texts), columns))), pa.array(values))
        missing[j::columns] &= ~known.to_numpy(zero_copy_only=False)
    if missing.any():
        valid = np.packbits(~missing, bitorder="little")
        _, offsets, data = texts.buffers()
        texts = pa.StringArray.from_buffers(len(texts), offsets, data, pa.py_buffer(valid))
    count = len(texts)
    arrays = [texts.take(pa.array(np.arange(j, count, columns))) for j in range(columns)]
    return arrays, missing.reshape(-1, columns)


def _find_marks(texts: Any, marks: Collection[str]) -> Bools:
    """Find marks among texts; only those that begin like a mark are looked up."""
    _, offsets_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[: len(texts) + 1]
    empty: Bools = offsets[1:] == offsets[:-1]
    missing = empty if "" in marks else np.zeros_like(empty)
    spelled = [mark.encode() for mark in marks if mark]
    if not spelled or data_buffer is None or not data_buffer.size:
        return missing
    begins = np.zeros(256, dtype=bool)
    begins[[mark[0] for mark in spelled]] = True
    data = np.frombuffer(data_buffer, dtype=np.uint8)
    first = data[np.minimum(offsets[:-1], data.size - 1)]
    longest = max(map(len, spelled))
    likely = np.flatnonzero(begins[first] & ~empty & (np.diff(offsets) <= longest))
    if likely.size:
        known = pa.array([mark.decode() for mark in spelled])
        found = pc.is_in(texts.take(pa.array(likely)), value_set=known)
        missing[likely[found.to_numpy(zero_copy_only=False)]] = True
    return missing


def _has_space(data: Bytes, offsets: Any, lengths: Integers) -> bool:
    """Whether a text may begin or end with a space: one of ASCII, or a byte of another one."""
    if not ((data <= _SPACE) | (data >= _BEYOND_ASCII)).any():
        return False
    held = lengths > 0
    for ends in (data[offsets[:-1][held]], data[offsets[1:][held] - 1]):
        if ((ends <= _SPACE) | (ends >= _BEYOND_ASCII)).any():
            return True
    return False
