"""Rows that keep arriving: a sample of those seen so far, to train on beside new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray

__all__ = ["SEEN_ROWS", "SeenRows"]

# As many as trees are grown on.
SEEN_ROWS = 50_000


@dataclass(frozen=True)
class SeenRows:
    """A sample of encoded rows, each that was ever seen as likely to be in it as any other.

    Parameters
    ----------
    numbers : ndarray of shape (rows, features)
        The rows.
    keys : ndarray of shape (rows,)
        What each has drawn; the smallest are kept.
    count : int
        How many rows were seen in all.

    Examples
    --------
    >>> seen = SeenRows.none(2).joined(np.zeros((3, 2)), seed=0)
    >>> seen.count, seen.numbers.shape
    (3, (3, 2))
    """

    numbers: FloatArray
    keys: FloatArray
    count: int

    @classmethod
    def none(cls, n_features: int) -> SeenRows:
        """Return the sample before any row was seen."""
        return cls(np.empty((0, n_features)), np.empty(0), 0)

    def joined(self, numbers: FloatArray, *, seed: int) -> SeenRows:
        """Return the sample after further rows."""
        keys = np.random.default_rng([seed, self.count]).random(len(numbers))
        both, drawn = np.concatenate([self.numbers, numbers]), np.concatenate([self.keys, keys])
        if len(drawn) > SEEN_ROWS:
            kept = np.sort(np.argpartition(drawn, SEEN_ROWS - 1)[:SEEN_ROWS])
            both, drawn = both[kept], drawn[kept]
        return SeenRows(both, drawn, self.count + len(numbers))
