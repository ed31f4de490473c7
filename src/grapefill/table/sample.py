"""A sample of the rows of a table that comes in parts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import IntArray

__all__ = ["RowSample"]


class RowSample:
    """A sample of the rows of a table that comes in parts, each row as likely as any other.

    Every row draws a number by its place, and the rows with the smallest are kept. So the sample
    does not depend on how the parts are cut or who looks at them.

    Parameters
    ----------
    size : int
        Rows to keep.
    seed : int
        Where randomness starts.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self._keys = np.empty(0)
        self._places = np.empty((0, 2), dtype=np.int64)
        self._tables: list[Any] = []
        self._piece, self._row = -1, 0
        self._random = np.random.default_rng(seed)

    def add(self, piece: int, rows: Any) -> None:
        """Look at the next rows of a piece, a pyarrow table."""
        pa: Any = import_module("pyarrow")
        if piece != self._piece:
            self._piece, self._row = piece, 0
            self._random = np.random.default_rng([self.seed, piece])
        keys = self._random.random(rows.num_rows)
        limit = self._keys.max() if self._keys.size >= self.size else np.inf
        chosen = np.flatnonzero(keys < limit)
        if chosen.size:
            self._keys = np.concatenate([self._keys, keys[chosen]])
            places = np.column_stack([np.full(chosen.size, piece), chosen + self._row])
            self._places = np.concatenate([self._places, places])
            self._tables.append(rows.take(pa.array(chosen)))
        self._row += rows.num_rows
        if self._keys.size > 2 * self.size:
            self._shrink()

    def merge(self, other: RowSample) -> None:
        """Take over the sample of other pieces."""
        self._keys = np.concatenate([self._keys, other._keys])
        self._places = np.concatenate([self._places, other._places])
        self._tables += other._tables
        self._shrink()

    def _shrink(self) -> None:
        pa: Any = import_module("pyarrow")
        if self._keys.size <= self.size:
            return
        kept = np.sort(np.argpartition(self._keys, self.size - 1)[: self.size])
        self._keys, self._places = self._keys[kept], self._places[kept]
        whole = pa.concat_tables(self._tables, promote_options="permissive")
        self._tables = [whole.take(pa.array(kept)).combine_chunks()]

    def taken(self, size: int) -> tuple[IntArray, Any]:
        """Return piece and row of up to ``size`` rows, in order, and the rows themselves."""
        pa: Any = import_module("pyarrow")
        self.size = min(self.size, size)
        self._shrink()
        order = np.lexsort((self._places[:, 1], self._places[:, 0]))
        whole = pa.concat_tables(self._tables, promote_options="permissive")
        return self._places[order], whole.take(pa.array(order))
