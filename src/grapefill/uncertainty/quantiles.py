"""Beliefs written down as quantiles, and short intervals that have some of their mass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray, IntArray

# Levels at which a belief is written down.
GRID = np.linspace(0, 1, 201)
# In how many steps the rest is shared by the two sides of an interval, for which mass that is
# chosen, and how much shorter than the middle one another has to be.
SPLITS = 10
SPLIT_AT = 0.9
MIDDLE = 0.8


class Sample(NamedTuple):
    """Weighted points for some cells, each of shape (cells, points)."""

    points: FloatArray
    weights: FloatArray


def quantile_grid(belief: Sample) -> FloatArray:
    """Return the quantiles of a belief at `GRID`, shape (cells, levels)."""
    cells, n_points = belief.points.shape
    steps = GRID.size - 1
    # The number of points that are below a level is the number of those in the bins before it.
    bins = np.clip(np.ceil(belief.weights * steps - 1e-9), 0, steps).astype(np.int64) + 1
    bins += np.arange(cells)[:, None] * (steps + 2)
    counts = np.bincount(bins.ravel(), minlength=cells * (steps + 2)).reshape(cells, -1)
    found = np.minimum(np.cumsum(counts, axis=1)[:, :-1], n_points - 1)
    return np.take_along_axis(belief.points, found, axis=1)


def split_at(grid: FloatArray, mass: float) -> IntArray:
    """Return how the rest is shared by the two sides of the shortest interval with some mass.

    In steps of `1 / SPLITS`: 0 if all of it is above the interval, `SPLITS` if all is below.
    """
    inside = _steps(mass)
    starts = np.arange(SPLITS + 1) * (GRID.size - 1 - inside) // SPLITS
    width = grid[:, starts + inside] - grid[:, starts]
    # The middle one unless another is really shorter: the tails are uncertain.
    width[:, SPLITS // 2] *= MIDDLE
    best: IntArray = width.argmin(axis=1)
    return best


def ends(grid: FloatArray, split: IntArray, mass: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals with some mass. With the same split, more of it holds less."""
    inside = _steps(mass)
    start = (split * (GRID.size - 1 - inside) // SPLITS)[:, None]
    low, high = (np.take_along_axis(grid, at, axis=1)[:, 0] for at in (start, start + inside))
    return low, high


def shortest(grid: FloatArray, mass: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the shortest interval with some mass, of a few that are tried."""
    return ends(grid, split_at(grid, mass), mass)


def nested(grid: FloatArray, mass: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of an interval with some mass, which holds those with less of it.

    It is the shortest one for a mass of `SPLIT_AT`, and a short one for others.
    """
    return ends(grid, split_at(grid, SPLIT_AT), mass)


def _steps(mass: float) -> int:
    """Return how many steps of the grid have some mass."""
    return min(GRID.size - 1, max(0, int(np.ceil(mass * (GRID.size - 1) - 1e-9))))


def nearest(known: FloatArray, values: FloatArray) -> FloatArray:
    """Return the nearest of known values, which are in order.

    Examples
    --------
    >>> nearest(np.array([0.0, 1.0, 5.0]), np.array([-2.0, 0.6, 2.9, 3.1]))
    array([0., 1., 1., 5.])
    """
    above = np.clip(np.searchsorted(known, values), 1, max(1, known.size - 1))
    if known.size == 1:
        return np.full(np.shape(values), known[0])
    low, high = known[above - 1], known[above]
    return np.where(values - low <= high - values, low, high)
