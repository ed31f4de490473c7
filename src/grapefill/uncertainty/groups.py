r"""What rows of one category have in common, where a column has more categories than inputs allow.

Hospitals, shops, places: each has a few rows, which are more alike than those of others. A number
is then regressed with an effect of every category,

.. math:: y_i = z_i^\top \beta + u_{g(i)} + \varepsilon_i, \quad u_g \sim \mathcal N(0, \tau^2),

and these are drawn with the coefficients (Goldstein: Multilevel statistical models, 2011). Of a
category with few rows, little more is known than how much categories differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grapefill.uncertainty.design import MOST_INDICATORS

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray, IntArray
    from grapefill.uncertainty.design import Design

# Columns of more categories, or of fewer rows for each, have no effects.
MOST_GROUPS, ROWS_PER_GROUP = 2_000, 3
# What effects vary by is no less than such a share of the errors' variance.
LEAST_SHARE = 1e-6


@dataclass(frozen=True)
class Effects:
    """Drawn effects of the categories of one column on the numbers of another.

    Parameters
    ----------
    feature : int
        The column of categories.
    drawn : ndarray of shape (draws, categories)
        On the scaled number, one for every draw of the coefficients.
    """

    feature: int
    drawn: FloatArray

    def of(self, values: FloatArray, which: int) -> FloatArray:
        """Return the effects in rows, by the codes of their categories, in one of the draws."""
        found: FloatArray = self.drawn[which].take(values[:, self.feature].astype(np.int64))
        return found


class Group:
    """The effects of one column of categories while draws are learned.

    Parameters
    ----------
    feature : int
        The column.
    n_categories : int
        How many categories it has.
    random : Generator
        Source of all randomness.

    Attributes
    ----------
    effects : ndarray of shape (categories,)
        As they are by now.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> truth, codes = random.normal(size=100), random.integers(100, size=5_000)
    >>> group = Group(0, 100, random)
    >>> for _ in range(10):
    ...     group.redraw(codes, truth[codes] + random.normal(size=5_000), 1.0)
    >>> bool(np.corrcoef(group.effects, truth)[0, 1] > 0.9)
    True
    """

    def __init__(self, feature: int, n_categories: int, random: np.random.Generator) -> None:
        self.feature = feature
        self.random = random
        self.effects = np.zeros(n_categories)
        self._variance = np.inf

    def redraw(self, codes: IntArray, left: FloatArray, error: float) -> None:
        """Draw the effects anew, and how much they vary.

        Parameters
        ----------
        codes : ndarray of int, shape (cells,)
            The categories of rows in which the number was observed.
        left : ndarray of shape (cells,)
            What everything else leaves over of it.
        error : float
            The variance of its errors.
        """
        error = max(error, 1e-300)
        if not np.isfinite(self._variance):
            self._variance = max(float(np.square(left).mean()), error)
        self.effects = self.draw(codes, left, error)
        squares = float(np.square(self.effects).sum())
        drawn = squares / float(self.random.chisquare(max(1, self.effects.size - 1)))
        self._variance = max(drawn, LEAST_SHARE * error)

    def draw(self, codes: IntArray, left: FloatArray, error: float) -> FloatArray:
        """Return a draw of the effects, given how much they vary; see `redraw`."""
        size, error = self.effects.size, max(error, 1e-300)
        ratio = error / self._variance
        rows = np.bincount(codes, minlength=size) + ratio
        mean = np.bincount(codes, weights=left, minlength=size) / rows
        drawn: FloatArray = mean + np.sqrt(error / rows) * self.random.standard_normal(size)
        return drawn


class Groups:
    """All groups that a column of numbers has effects of, while draws are learned.

    Parameters
    ----------
    design : Design
        Tells which columns have categories, and how many.
    feature : int
        The column.
    n_cells : int
        In how many rows it was observed.
    random : Generator
        Source of all randomness.
    """

    def __init__(
        self, design: Design, feature: int, n_cells: int, random: np.random.Generator
    ) -> None:
        most = min(MOST_GROUPS, n_cells // ROWS_PER_GROUP)
        self.each = [
            Group(at, k, random)
            for at, k in enumerate(design.n_categories)
            if MOST_INDICATORS < k <= most and not design.n_categories[feature]
        ]

    def __bool__(self) -> bool:
        return bool(self.each)

    def of(self, values: FloatArray) -> FloatArray:
        """Return what all groups add in some rows."""
        found = np.zeros(values.shape[0])
        for group in self.each:
            found += group.effects[_codes(group, values)]
        return found

    def redraw(self, values: FloatArray, left: FloatArray, error: float) -> None:
        """Draw all effects anew, by what is left over with effects as they are in some rows."""
        for group in self.each:
            codes = _codes(group, values)
            left = left + group.effects[codes]
            group.redraw(codes, left, error)
            left = left - group.effects[codes]

    def draw(self, values: FloatArray, left: FloatArray, error: float) -> list[FloatArray]:
        """Return a draw of the effects of every group; see `redraw`."""
        drawn = []
        for group in self.each:
            codes = _codes(group, values)
            drawn.append(group.draw(codes, left + group.effects[codes], error))
        return drawn


def _codes(group: Group, values: FloatArray) -> IntArray:
    found: IntArray = values[:, group.feature].astype(np.int64)
    return found
