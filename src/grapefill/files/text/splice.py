"""Replace some cells of a text and copy everything else."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from grapefill.files.text.tokens import Bytes, Integers

__all__ = ["Order", "splice"]

pa: Any = import_module("pyarrow")


def splice(data: Bytes, starts: Integers, ends: Integers, texts: Any) -> bytes:
    """Return a text with some spans replaced.

    The spans cut the text into pieces that stay. As an arrow array, pieces and new texts are put
    into their order by one take, and the buffer of the result is the new text.

    Parameters
    ----------
    data : ndarray of uint8
        The text.
    starts, ends : ndarray of int
        The spans, in order and apart; a span may be empty.
    texts : pyarrow.StringArray
        What takes their place.

    Examples
    --------
    >>> data = np.frombuffer(b"1,NA,3,", dtype=np.uint8)
    >>> splice(data, np.array([2, 7]), np.array([4, 7]), pa.array(["2", "four"]))
    b'1,2,3,four'
    """
    count = starts.size
    if not count:
        return data.tobytes()
    lengths = ends - starts
    if lengths.any():
        gone = np.zeros(data.size + 1, dtype=np.int8)
        held = lengths > 0
        gone[starts[held]] += 1
        gone[ends[held]] -= 1
        data = data[~np.add.accumulate(gone[:-1], dtype=np.int8).view(np.bool_)]
    cuts = np.zeros(count + 2, dtype=np.int32)
    cuts[1:-1] = starts - (np.cumsum(lengths) - lengths)
    cuts[-1] = data.size
    kept = pa.BinaryArray.from_buffers(
        pa.binary(), count + 1, [None, pa.py_buffer(cuts), pa.py_buffer(data)]
    )
    order = np.empty(2 * count + 1, dtype=np.int64)
    order[::2] = np.arange(count + 1)
    order[1::2] = np.arange(count + 1, 2 * count + 1)
    joined = pa.concat_arrays([kept, texts.cast(pa.binary())]).take(pa.array(order))
    _, offsets, result = joined.buffers()
    end = np.frombuffer(offsets, dtype=np.int32)[joined.offset + len(joined)]
    return bytes(memoryview(result)[:end])


class Order:
    """Brings new texts, column by column, into the order of the file, some rows at a time.

    Parameters
    ----------
    texts : dict of int to (ndarray of bool, pyarrow.StringArray)
        For the columns that change, which rows do, and their new texts.
    added : pyarrow.StringArray or None
        What is added to every row.
    width : int
        Cells of a row, what is added included.
    """

    def __init__(self, texts: dict[int, tuple[Any, Any]], added: Any, width: int) -> None:
        self.width = width
        self.masks = {j: rows for j, (rows, _) in texts.items()}
        arrays = [array for _, array in texts.values()]
        if added is not None:
            self.masks[width - 1] = np.ones(len(added), dtype=bool)
            arrays.append(added)
        self.texts = pa.concat_arrays(arrays) if arrays else pa.array([], type=pa.string())
        lengths = np.array([0, *map(len, arrays)], dtype=np.int64)
        # Where the next text of each column stands.
        self.next_text = np.zeros(width, dtype=np.int64)
        self.next_text[list(self.masks)] = np.cumsum(lengths)[:-1]
        self.row = 0

    def next(self, count: int) -> tuple[Integers, Integers]:
        """Return the cells of the next rows that change, and the texts for them."""
        changed = np.zeros((count, self.width), dtype=bool)
        for j, mask in self.masks.items():
            changed[:, j] = mask[self.row : self.row + count]
        self.row += count
        where = np.flatnonzero(changed)
        column = where % self.width
        by_column = np.argsort(column, kind="stable")
        counts = np.bincount(column, minlength=self.width)
        firsts = np.cumsum(counts) - counts
        which = np.empty_like(where)
        which[by_column] = np.arange(where.size) + np.repeat(self.next_text - firsts, counts)
        self.next_text += counts
        return where, which
