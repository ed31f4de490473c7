"""How far draws of a number may go beyond what was observed of it.

The largest observed value is a limit of some columns. In others larger ones are missing because of
what else is in their rows, and to draw none of them would make slopes flatter than they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import BoolArray, FloatArray

# Draws go beyond the observed values by such a share of their range at most.
MOST_BEYOND = 0.5
# What is positive is more than half of the least value, so that rounding leaves something of it.
POSITIVE = 0.51
# New values of the same distribution are more often beyond the farthest of as many old ones with a
# chance of 1%.
MOST_OUTSIDE = 6


class Reach(NamedTuple):
    """The range of what may be drawn."""

    low: float
    high: float


def reach_of(observed: FloatArray, redrawn: FloatArray) -> Reach:
    """Return the range of what may be drawn of a column.

    It ends where the observed values do if two or more of them are there, or if draws of the
    observed cells themselves go beyond it more often than chance has it. What is positive stays
    positive.

    Parameters
    ----------
    observed : ndarray of shape (cells,)
        The observed values.
    redrawn : ndarray of shape (cells,)
        Draws of the same cells.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> truth, noise = random.normal(size=(2, 500))
    >>> free = reach_of(truth + noise, truth + random.permutation(noise))
    >>> bool(free.high > (truth + noise).max())
    True
    >>> shares = np.clip(truth + noise, -1, 1)
    >>> reach_of(shares, truth + noise)
    Reach(low=-1.0, high=1.0)
    >>> reach_of(np.array([2.0, 3.0, 6.0]), np.array([3.0, 2.0, 6.0]))
    Reach(low=1.02, high=8.0)
    """
    low, high = float(observed.min()), float(observed.max())
    with np.errstate(over="ignore"):
        room = np.nan_to_num(MOST_BEYOND * (np.float64(high) - low), posinf=0.0)
    lower, upper = low, high
    if _is_open(observed == low, redrawn < low):
        lower = max(low - room, POSITIVE * low) if low >= 0 else low - room
    if _is_open(observed == high, redrawn > high):
        upper = min(high + room, POSITIVE * high) if high <= 0 else high + room
    return Reach(float(lower), float(upper))


def _is_open(at_end: BoolArray, outside: BoolArray) -> bool:
    return int(at_end.sum()) == 1 and int(outside.sum()) <= MOST_OUTSIDE
