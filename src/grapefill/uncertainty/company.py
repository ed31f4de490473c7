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
            gains = _gains(sizes, alone[:, None] & absent)
            best = int(np.argmax(gains)) if gains.size else -1
            if best < 0 or not gains[best] >= total + least:
                break
            alone &= absent[:, best]
            total = float(gains[best])
            known, unknown = _relative(sizes, alone[:, None])
            found = cls((*found.features, best), float(known[0]), float(unknown[0]))
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


def _relative(sizes: FloatArray, alone: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return how large the others are and those that are alone, on average 1, drawn towards it.

    For each of some ways to tell who is alone, the columns of ``alone``.
    """
    usual = max(float(sizes.mean()), 1e-300)
    sums = sizes / usual @ alone
    counts = alone.sum(axis=0)
    known = (sizes.sum() / usual - sums + PRIOR_CELLS) / (sizes.size - counts + PRIOR_CELLS)
    return known, (sums + PRIOR_CELLS) / (counts + PRIOR_CELLS)


def _gains(sizes: FloatArray, alone: BoolArray) -> FloatArray:
    """Return how much likelier sizes are if those that are alone are larger, for each column."""
    counts, total = alone.sum(axis=0), float(sizes.sum())
    if not 0 < total < np.inf:
        return np.zeros(alone.shape[1])
    known, unknown = _relative(sizes, alone)
    sums = sizes @ alone / float(sizes.mean())
    others, left = sizes.size - counts, sizes.size - sums
    # Sizes as of an exponential distribution.
    said = others * np.log(known) + left / known + counts * np.log(unknown) + sums / unknown
    enough = (np.minimum(counts, others) >= FEWEST) & (unknown > known)
    gains: FloatArray = np.where(enough, sizes.size - said, 0.0)
    return gains
