"""Which columns tell a cell: how much farther off it is where none of them is known.

Where one column repeats another, a cell is told without fail if the other is known, and hardly at
all if it is not; how many cells of its row are known says nothing. Held-out cells tell which
columns it depends on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import BoolArray, FloatArray

# Held-out cells of each kind that it takes, and how many of the usual size are added to either.
FEWEST, PRIOR_CELLS = 8, 12.0
# By how much the log likelihood must be higher, and by how much more for every column tried.
GAIN = 8.0
MOST_COMPANIONS = 4


@dataclass(frozen=True)
class Company:
    """Columns that tell the cells of another, and what it means if none of them is known.

    Parameters
    ----------
    features : tuple of int
        The columns; none if it makes no difference.
    known, unknown : float
        The size of errors relative to the usual one.
    """

    features: tuple[int, ...] = ()
    known: float = 1.0
    unknown: float = 1.0

    @classmethod
    def of(cls, sizes: FloatArray, beside: BoolArray) -> Self:
        """Find the company of a column.

        Parameters
        ----------
        sizes : ndarray of shape (cells,)
            How far off held-out cells were.
        beside : ndarray of bool, shape (cells, features)
            Which cells of their rows were known.

        Examples
        --------
        >>> random = np.random.default_rng(0)
        >>> beside = random.random((200, 3)) < 0.7
        >>> sizes = np.where(beside[:, 1], 0.1, 1.0) * random.exponential(size=200)
        >>> company = Company.of(sizes, beside)
        >>> company.features, bool(company.unknown > 5 * company.known)
        ((1,), True)
        """
        found = cls()
        absent = ~beside
        alone: BoolArray = np.ones(sizes.size, dtype=bool)
        least = GAIN + float(np.log(max(1, beside.shape[1])))
        total = 0.0
        while len(found.features) < MOST_COMPANIONS:
            gains = [_gain(sizes, alone & column) for column in absent.T]
            best = int(np.argmax(gains)) if gains else -1
            if best < 0 or gains[best] < total + least:
                break
            alone &= absent[:, best]
            total = gains[best]
            known, unknown = _relative(sizes, alone)
            found = cls((*found.features, best), known, unknown)
        return found

    def is_absent(self, beside: BoolArray) -> BoolArray:
        """Return in which rows none of the columns is known, by what is."""
        if not self.features or not beside.shape[1]:
            return np.zeros(len(beside), dtype=bool)
        return np.asarray(~beside[:, list(self.features)].any(axis=1))

    def sizes(self, beside: BoolArray) -> FloatArray:
        """Return the relative sizes of errors in rows, by what is known there."""
        if not self.features or not beside.shape[1]:
            return np.ones(len(beside))
        return np.where(self.is_absent(beside), self.unknown, self.known)


def _relative(sizes: FloatArray, alone: BoolArray) -> tuple[float, float]:
    """Return how large the others are and those that are alone, on average 1, drawn towards it."""
    usual = max(float(sizes.mean()), 1e-300)
    parts = [sizes[~alone], sizes[alone]]
    means = [(part.sum() / usual + PRIOR_CELLS) / (part.size + PRIOR_CELLS) for part in parts]
    return float(means[0]), float(means[1])


def _gain(sizes: FloatArray, alone: BoolArray) -> float:
    """Return how much likelier sizes are if those that are alone are larger."""
    count = int(alone.sum())
    if min(count, sizes.size - count) < FEWEST or sizes.sum() <= 0:
        return 0.0
    known, unknown = _relative(sizes, alone)
    if unknown <= known:
        return 0.0
    expected = np.where(alone, unknown, known)
    off = sizes / float(sizes.mean())
    return float((off - np.log(expected) - off / expected).sum())
