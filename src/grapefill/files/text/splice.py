"""Replace some cells of a text and copy everything else."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from grapefill.files.text.tokens import Bytes, Integers

__all__ = ["splice"]

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
