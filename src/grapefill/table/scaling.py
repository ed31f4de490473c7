"""Scaling of continuous columns, learned from observed cells only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.arrays import FloatArray, IntArray

__all__ = ["FARTHEST", "Scaling"]

# A scaled number at fit cannot be farther out unless there are a hundred million rows. In a new
# row it can, and must not leave the range of float32.
FARTHEST = 1e4
# Between these spreads a number can be learned without scaling it.
LEARNABLE = (1e-2, 1e3)


@dataclass(frozen=True)
class Scaling:
    """A shift and a factor for every feature; discrete features keep their codes.

    Parameters
    ----------
    center, scale : ndarray of shape (features,)
        A number x becomes ``(x - center) / scale``.

    Examples
    --------
    >>> numbers = np.array([[0.0, 1.0], [4.0, np.nan]])
    >>> scaling = Scaling.fit(numbers, "minmax", discrete=[])
    >>> scaling.apply(numbers)
    array([[ 0.,  0.],
           [ 1., nan]])
    """

    center: FloatArray
    scale: FloatArray

    @classmethod
    def fit(
        cls,
        numbers: FloatArray,
        method: Literal["minmax", "standard"],
        *,
        discrete: Sequence[int],
    ) -> Scaling:
        """Learn the scaling from the numbers that are not NaN; every column has at least one."""
        largest = np.nanmax(np.abs(numbers), axis=0)
        # Squares of larger numbers would overflow.
        unit = np.where(largest > 1e100, largest, 1.0)
        moderate = numbers / unit
        if method == "minmax":
            center = np.nanmin(moderate, axis=0)
            scale = np.nanmax(moderate, axis=0) - center
        else:
            center = np.nanmean(moderate, axis=0)
            scale = np.nanstd(moderate, axis=0)
        with np.errstate(over="ignore"):
            center, scale = center * unit, scale * unit
        return cls.finished(center, scale, largest, discrete=discrete)

    @classmethod
    def finished(
        cls, center: FloatArray, scale: FloatArray, largest: FloatArray, *, discrete: Sequence[int]
    ) -> Scaling:
        """Make a scaling of centers and spreads; ``largest`` are the largest absolute numbers."""
        scale = np.minimum(scale, np.finfo(np.float64).max)
        # A constant column has nothing to scale by; a spread below rounding error is no spread.
        flat = scale <= 1e-12 * largest
        scale = np.where(flat, 1.0, scale)
        center[list(discrete)] = 0.0
        scale[list(discrete)] = 1.0
        return cls(center, scale)

    def in_own_units(self, features: Sequence[int]) -> Scaling:
        """Return a scaling that shifts some features and leaves their units as they are.

        Not so where numbers would be too small or too large to be learned.

        Examples
        --------
        >>> scaling = Scaling(np.array([10.0, 10.0]), np.array([50.0, 1e6]))
        >>> scaling.in_own_units([0, 1]).scale.tolist()
        [1.0, 1000000.0]
        """
        least, most = LEARNABLE
        scale = self.scale.copy()
        for j in features:
            if least <= scale[j] <= most:
                scale[j] = 1.0
        return Scaling(self.center, scale)

    def apply(self, numbers: FloatArray) -> FloatArray:
        """Scale numbers."""
        # Halves, since the difference of two large numbers may be too large.
        return (numbers * 0.5 - self.center * 0.5) / (self.scale * 0.5)

    def of(self, features: int | IntArray) -> Scaling:
        """Return the scaling of one feature or of some."""
        which = np.atleast_1d(features)
        return Scaling(self.center[which], self.scale[which])

    def undo(self, scaled: FloatArray) -> FloatArray:
        """Turn scaled numbers back; one too large for a float becomes infinite."""
        with np.errstate(over="ignore"):
            return scaled * self.scale + self.center
