"""Numbers that are absurdly far from all others of their column: a slip of a digit, a mark.

One cell of 9999 among ages is most of the variance of the column. On a scale that it sets, all
other ages are about the same, and nothing would be learned of them. Such a cell stays as it is in
the table, but for what is learned it counts as the nearest of the others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from grapefill.errors import warn
from grapefill.table.arrays import EXACT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.arrays import FloatArray, IntArray
    from grapefill.table.column import Column

__all__ = ["Ends", "describe_far", "warn_far"]

# Of fewer numbers nobody knows how far out is far. That is told by the nearest of them, such a
# share and at most all but a few.
FEWEST, LOOKED_AT, FEWEST_BEYOND = 30, 0.95, 3
# A number is far if it is farther out than this power of the ratio of two quantiles of distances
# makes the upper one of them: 28 standard deviations of a normal distribution, and what is as rare
# in heavy tails. The power grows with the logarithm of the number of cells, here of so many.
POWER, CELLS_PER_UNIT, LEAST_RATIO = 2.5, 2.5, 2.0
# Far numbers are no more than such a share of a column, or so many, and such a share of its
# variance at least: otherwise they do no harm, or are what the column is about.
MOST, MOST_SHARE, LEAST_VARIANCE = 2, 0.002, 0.6


class Ends(NamedTuple):
    """The range of a column without the numbers that are far from all others.

    Parameters
    ----------
    floor, ceiling : float
        What is beyond these is far.
    low, high : float
        The smallest and the largest number within them.
    """

    floor: float
    low: float
    high: float
    ceiling: float

    @classmethod
    def of(cls, numbers: FloatArray, *, variance: float | None = None) -> Self | None:
        """Find out from the observed numbers of a column; None if none of them is far.

        Parameters
        ----------
        numbers : ndarray of shape (cells,)
            The numbers.
        variance : float or None
            The variance of the column if these are only some of its numbers and its ends.

        Examples
        --------
        >>> ages = np.append(np.arange(20.0, 80.0), 9999.0)
        >>> ends = Ends.of(ages)
        >>> ends.low, ends.high, ends.within(np.array([30.0, 81.0, 9999.0])).tolist()
        (20.0, 79.0, [30.0, 81.0, 79.0])
        >>> Ends.of(ages[:-1]) is None, Ends.of(np.exp(ages[:-1] / 4)) is None
        (True, True)
        """
        if numbers.size < FEWEST:
            return None
        # Squares of large numbers may be too large.
        unit = float(np.abs(numbers).max()) or 1.0
        moderate = numbers / unit
        middle = float(np.median(moderate))
        apart = np.abs(moderate - middle)
        others = apart[apart > 0]
        if others.size < FEWEST:
            return None
        level = min(LOOKED_AT, 1 - FEWEST_BEYOND / others.size)
        usual, large = np.quantile(others, [0.5, level])
        power = max(POWER, float(np.log10(numbers.size / CELLS_PER_UNIT)))
        with np.errstate(over="ignore"):
            most = large * max(large / usual, LEAST_RATIO) ** power
        far = apart > most
        if not 0 < far.sum() <= max(MOST, MOST_SHARE * numbers.size):
            return None
        whole = float(moderate.var()) if variance is None else variance / unit / unit
        if moderate[~far].var() > (1 - LEAST_VARIANCE) * whole:
            return None
        near = numbers[~far]
        floor, ceiling = ((middle + side * float(most)) * unit for side in (-1, 1))
        return cls(floor, float(near.min()), float(near.max()), ceiling)

    def within(self, numbers: FloatArray) -> FloatArray:
        """Return numbers of which those that are far count as the nearest of the others."""
        numbers = np.where(numbers < self.floor, self.low, numbers)
        found: FloatArray = np.where(numbers > self.ceiling, self.high, numbers)
        return found

    def widened(self, numbers: FloatArray) -> Self:
        """Return the ends with further numbers."""
        near = numbers[(numbers >= self.floor) & (numbers <= self.ceiling)]
        low, high = near.min(initial=self.low), near.max(initial=self.high)
        return self._replace(low=float(low), high=float(high))


def describe_far(column: Column, far: FloatArray, rows: IntArray | None, ends: Ends) -> str:
    """Return words for the numbers of a column that are far from all others, the farthest of them.

    Parameters
    ----------
    column : Column
        The column as it was observed.
    far : ndarray of shape (cells,)
        These numbers, encoded.
    rows : ndarray of int of the same shape or None
        Where they are, counted from 0, if that is known.
    ends : Ends
        The range of the others.
    """
    at = int(np.abs(far * 0.5 - ends.low * 0.5).argmax())
    first, low, high = (_shown(column, number) for number in (far[at], ends.low, ends.high))
    row = "" if rows is None else f" in row {rows[at]}"
    more = f" and {far.size - 1} more" if far.size > 1 else ""
    return f"{column.name!r}: {first}{row}{more} (the others are {low} to {high})"


def warn_far(told: Sequence[str], *, what: str = "values") -> None:
    """Warn once of all numbers that are far from all others of their columns."""
    warn(
        f"Some {what} are so far from all others of their column that nothing can be learned from "
        f"how far: {'; '.join(told)}. They stay as they are, but count as the nearest of the "
        "others for what is learned. Correct them if they are wrong, and if they stand for "
        "missing cells say so (missing_values, on the command line --na)."
    )


def _shown(column: Column, number: float) -> str:
    value = column.decode(np.array([number]))[0]
    if column.extent is not None and not column.unit and abs(number) > EXACT_LIMIT:
        # Too far for a float to hit it.
        value = column.extent[int(number > 0)]
    if isinstance(value, float):
        return f"{value:g}"
    # A date without the time that it does not have.
    return re.sub(r"(T00:00:00)?(\.0+)?$", "", str(value))
