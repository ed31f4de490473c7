"""The mean and the variance of numbers that come in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray

__all__ = ["Moments"]

# Squares of larger numbers would overflow.
HUGE, UNIT = 1e100, 2.0**700


@dataclass
class Moments:
    """Number, mean and sum of squared deviations of numbers that come in parts.

    Parameters
    ----------
    count : int
        How many there were.
    shift : int
        What was subtracted from whole numbers, so that the rest fits a float.
    unit : float
        What the rest was divided by.
    mean, squares : float
        Mean, and sum of squared deviations from it, of what is left.

    Examples
    --------
    >>> one, other = Moments.of(np.array([1.0, 2.0])), Moments.of(np.array([3.0, 6.0]))
    >>> both = one.merged(other)
    >>> both.center(0), round(both.spread() ** 2, 6)
    (3.0, 3.5)
    """

    count: int = 0
    shift: int = 0
    unit: float = 1.0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, numbers: FloatArray, shift: int = 0) -> Moments:
        """Return the moments of some numbers, from which ``shift`` was subtracted already."""
        if not numbers.size:
            return cls()
        unit = UNIT if np.abs(numbers).max() > HUGE else 1.0
        moderate = numbers / unit
        mean = float(moderate.mean())
        return cls(numbers.size, shift, unit, mean, float(np.square(moderate - mean).sum()))

    def merged(self, other: Moments) -> Moments:
        """Return the moments of both (Chan, Golub, LeVeque 1983)."""
        if not self.count or not other.count:
            return self if self.count else other
        unit = max(self.unit, other.unit)
        one, two = self._in(unit), other._in(unit)
        count = self.count + other.count
        apart = two.mean + (other.shift - self.shift) / unit - one.mean
        share = other.count / count
        mean = one.mean + apart * share
        squares = one.squares + two.squares + apart * apart * share * self.count
        return Moments(count, self.shift, unit, mean, squares)

    def _in(self, unit: float) -> Moments:
        ratio = self.unit / unit
        return Moments(self.count, self.shift, unit, self.mean * ratio, self.squares * ratio**2)

    def center(self, origin: int) -> float:
        """Return the mean, counted from ``origin``."""
        return self.mean * self.unit + (self.shift - origin)

    def spread(self) -> float:
        """Return the standard deviation; infinity for one too large for a float."""
        return float(np.sqrt(self.squares / max(self.count, 1))) * self.unit
