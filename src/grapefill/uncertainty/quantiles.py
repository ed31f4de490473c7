"""Beliefs written down as quantiles, and the shortest intervals that have some of their mass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray

# Levels at which a belief is written down.
GRID = np.linspace(0, 1, 201)
# Ways to share the rest between the two sides of an interval.
SPLITS = 11
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


def shortest(grid: FloatArray, mass: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the shortest interval with some mass, of a few that are tried."""
    steps = GRID.size - 1
    inside = min(steps, max(0, int(np.ceil(mass * steps - 1e-9))))
    starts = np.unique(np.linspace(0, steps - inside, SPLITS).round().astype(int))
    low, high = grid[:, starts], grid[:, starts + inside]
    width = high - low
    # The middle one unless another is really shorter: the tails are uncertain.
    width[:, starts.size // 2] *= MIDDLE
    best = width.argmin(axis=1)[:, None]
    return (
        np.take_along_axis(low, best, axis=1)[:, 0],
        np.take_along_axis(high, best, axis=1)[:, 0],
    )


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
