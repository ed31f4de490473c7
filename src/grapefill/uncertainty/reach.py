"""How far draws of a number may go beyond what was observed of it.

The largest observed value is a limit of some columns. In others larger ones are missing because of
what else is in their rows, and to draw none of them would make slopes flatter than they are.

Where it is a limit, what would be drawn beyond is not put at the limit, where few observed cells
are: draws near it are bent so that those of the observed cells are as frequent there as these are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

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
# Draws are bent if more than such a share would be beyond an end, by so many points, and in no more
# than such a part of the column.
FEWEST_BEYOND, KNOTS, MOST_BENT = 0.01, 50, 0.5
# What is infinite on the scale of a column.
MOST = float(np.finfo(np.float64).max) / 8
# What shares and percentages are of.
WHOLES = (1.0, 100.0)


class Reach(NamedTuple):
    """The range of what may be drawn."""

    low: float
    high: float


class Bend(NamedTuple):
    """What becomes of draws near one end of a column, towards which numbers get smaller.

    Parameters
    ----------
    drawn, meant : ndarray of shape (knots,)
        What is drawn, in order, and what it is to be. The last of both is the same: nothing
        changes from there on. Empty where nothing does.
    """

    drawn: FloatArray = np.empty(0)
    meant: FloatArray = np.empty(0)

    @classmethod
    def of(cls, observed: FloatArray, redrawn: FloatArray) -> Self:
        """Find how the low end is to be bent; at high ends signs are changed.

        Parameters
        ----------
        observed : ndarray of shape (cells,)
            The observed values.
        redrawn : ndarray
            Draws of the same cells, or of some of them.

        Examples
        --------
        >>> random = np.random.default_rng(0)
        >>> share = random.beta(0.5, 1, 1_000)
        >>> redrawn = 0.33 + 0.3 * random.normal(size=1_000)
        >>> bent = Bend.of(share, redrawn).apply(redrawn)
        >>> bool((redrawn < 0).mean() > 0.1), bool((bent <= share.min()).mean() < 0.01)
        (True, True)
        >>> np.quantile(share, 0.1).round(2) == np.quantile(bent, 0.1).round(2)
        np.True_
        """
        beyond = int((redrawn < observed.min()).sum())
        if beyond <= max(MOST_OUTSIDE, FEWEST_BEYOND * redrawn.size):
            return cls()
        observed, redrawn = np.sort(observed), np.sort(redrawn)
        if observed.size != redrawn.size:
            observed = np.quantile(observed, np.linspace(0, 1, redrawn.size))
        most = max(1, int(MOST_BENT * observed.size))
        lower = redrawn[:most] < observed[:most]
        size = most if lower.all() else int(lower.argmin())
        some = np.unique(np.linspace(0, size - 1, min(size, KNOTS)).astype(np.int64))
        end = max(redrawn[size - 1], observed[size - 1])
        if size < most:
            end = max(end, observed[size])
        return cls(np.append(redrawn[some], end), np.append(observed[some], end))

    @classmethod
    def matching(cls, observed: FloatArray, redrawn: FloatArray) -> Self:
        """Find how a whole column is to be bent, so that draws are as frequent as observed values.

        Parameters
        ----------
        observed : ndarray of shape (cells,)
            The observed values.
        redrawn : ndarray
            Draws of the same cells, each as often.

        Examples
        --------
        >>> random = np.random.default_rng(0)
        >>> observed, redrawn = np.exp(random.normal(size=(2, 1_000)) * [[0.8], [1.0]])
        >>> bent = Bend.matching(observed, redrawn).apply(redrawn)
        >>> bool(bent.std() < 1.1 * observed.std() < 0.8 * redrawn.std())
        True
        """
        # Close to each other where values are rare, the first and the last of the observed ones.
        least = 0.5 / observed.size
        odds = np.linspace(-1, 1, KNOTS) * np.log((1 - least) / least)
        levels = 1 / (1 + np.exp(-odds))
        redrawn = np.clip(redrawn, -MOST, MOST)
        drawn, meant = (np.quantile(each, levels, method="hazen") for each in (redrawn, observed))
        # Of draws that are the same, the middle one.
        drawn, first, count = np.unique(drawn, return_index=True, return_counts=True)
        meant = meant[first + count // 2]
        end = max(drawn[-1], meant[-1]) + (drawn[-1] - drawn[0])
        return cls(np.append(drawn, end), np.append(meant, end))

    def apply(self, values: FloatArray) -> FloatArray:
        """Return what values are to be."""
        if not self.drawn.size:
            return values
        bent = np.interp(values, self.drawn, self.meant)
        found: FloatArray = np.where(values < self.drawn[-1], bent, values)
        return found


class Ends(NamedTuple):
    """What becomes of draws near both ends of a column.

    Parameters
    ----------
    reach : Reach
        Where they are.
    low, high : Bend
        How draws are bent there, the high end with signs changed.
    """

    reach: Reach
    low: Bend = Bend()
    high: Bend = Bend()

    @classmethod
    def of(cls, observed: FloatArray, redrawn: FloatArray, reach: Reach) -> Self:
        """Find out from observed values, and draws of the same cells."""
        ends = Reach(float(observed.min()), float(observed.max()))
        # Where there is some room, but not all of it, a limit is near.
        room = 0.5 * _room(ends.low, ends.high)
        low = Bend.of(observed, redrawn) if reach.low >= ends.low - room else Bend()
        high = Bend.of(-observed, -redrawn) if reach.high <= ends.high + room else Bend()
        return cls(reach, low, high)

    def apply(self, values: FloatArray) -> FloatArray:
        """Return values that are within reach."""
        values = -self.high.apply(-self.low.apply(values))
        found: FloatArray = np.clip(values, self.reach.low, self.reach.high)
        return found


def reach_of(observed: FloatArray, redrawn: FloatArray) -> Reach:
    """Return the range of what may be drawn of a column.

    It ends where the observed values do if two or more of them are there, or if draws of the
    observed cells themselves go beyond it more often than chance has it. What is positive stays
    positive, and shares that come close to all of it, or to 100%, are not more.

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
    >>> reach_of(np.array([20.0, 50.0, 98.0]), np.array([50.0, 20.0, 98.0])).high
    100.0
    """
    low, high = float(observed.min()), float(observed.max())
    room = _room(low, high)
    lower, upper = low, high
    whole = next((whole for whole in WHOLES if low >= 0 and 0.9 * whole < high <= whole), np.inf)
    if _is_open(observed == low, redrawn < low):
        lower = max(low - room, POSITIVE * low) if low >= 0 else low - room
    if _is_open(observed == high, redrawn > high):
        upper = min(high + room, POSITIVE * high) if high <= 0 else high + room
        upper = min(upper, whole)
    return Reach(float(lower), float(upper))


def _room(low: float, high: float) -> float:
    """Return by how much draws may be beyond the ends of a column."""
    with np.errstate(over="ignore"):
        return float(np.nan_to_num(MOST_BEYOND * (np.float64(high) - low), posinf=0.0))


def _is_open(at_end: BoolArray, outside: BoolArray) -> bool:
    return int(at_end.sum()) == 1 and int(outside.sum()) <= MOST_OUTSIDE
