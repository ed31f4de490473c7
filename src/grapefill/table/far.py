"""Numbers that are absurdly far from all others of their column: a slip of a digit, a mark.

One cell of 9999 among ages is most of the variance of the column. On a scale that it sets, all
other ages are about the same, and nothing would be learned of them. Such a cell stays as it is in
the table, but for what is learned it counts as the nearest of the others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from grapefill.errors import warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.arrays import FloatArray, IntArray
    from grapefill.table.column import Column

__all__ = ["describe_far", "ends_of", "warn_far"]

# Of fewer numbers nobody knows how far out is far. How many are not looked at for that, of which
# some may be far, as a share and at least.
FEWEST, LOOKED_AT, FEWEST_BEYOND = 30, 0.95, 3
# A number is far if it is farther out than this power of the ratio of two quantiles of distances
# makes the upper one of them: 28 standard deviations of a normal distribution, and what is as rare
# in heavy tails.
POWER = 2.5
# Far numbers are no more than such a share of a column, or so many, and such a share of its
# variance at least: otherwise they do no harm, or are what the column is about.
MOST, MOST_SHARE, LEAST_VARIANCE = 2, 0.002, 0.6


def ends_of(numbers: FloatArray) -> tuple[float, float] | None:
    """Return the range of a column without numbers that are far from all others, if there are any.

    Parameters
    ----------
    numbers : ndarray of shape (cells,)
        The observed numbers of the column.

    Examples
    --------
    >>> ages = np.append(np.arange(20.0, 80.0), 9999.0)
    >>> ends_of(ages)
    (20.0, 79.0)
    >>> ends_of(ages[:-1]) is None, ends_of(np.exp(ages / 4)) is None
    (True, True)
    """
    if numbers.size < FEWEST:
        return None
    # Squares of large numbers may be too large.
    unit = float(np.abs(numbers).max()) or 1.0
    moderate = numbers / unit
    apart = np.abs(moderate - np.median(moderate))
    others = apart[apart > 0]
    if others.size < FEWEST:
        return None
    level = min(LOOKED_AT, 1 - FEWEST_BEYOND / others.size)
    usual, large = np.quantile(others, [0.5, level])
    far = apart > large * (large / usual) ** POWER
    if not 0 < far.sum() <= max(MOST, MOST_SHARE * numbers.size):
        return None
    near = moderate[~far]
    if near.var() > (1 - LEAST_VARIANCE) * moderate.var():
        return None
    inside = numbers[~far]
    return float(inside.min()), float(inside.max())


def describe_far(column: Column, far: FloatArray, rows: IntArray, ends: tuple[float, float]) -> str:
    """Return words for the numbers of a column that are far from all others, the first of them.

    Parameters
    ----------
    column : Column
        The column as it was observed.
    far : ndarray of shape (cells,)
        These numbers, encoded.
    rows : ndarray of int of the same shape
        Where they are, counted from 0.
    ends : tuple of float
        The range of the others.
    """
    first, low, high = (_shown(column, number) for number in (far[0], *ends))
    more = f" and {far.size - 1} more" if far.size > 1 else ""
    return f"{column.name!r}: {first} in row {rows[0]}{more} (the others are {low} to {high})"


def warn_far(told: Sequence[str]) -> None:
    """Warn once of all numbers that are far from all others of their columns."""
    warn(
        "Some values are so far from all others of their column that nothing can be learned from "
        f"how far: {'; '.join(told)}. These cells stay as they are, but count as the nearest of "
        "the others for what is filled in. Correct them if they are wrong, and if they stand for "
        "missing cells say so (missing_values)."
    )


def _shown(column: Column, number: float) -> str:
    value = column.decode(np.array([number]))[0]
    if isinstance(value, float):
        return f"{value:g}"
    # A date without the time that it does not have.
    return re.sub(r"(T00:00:00)?(\.0+)?$", "", str(value))
