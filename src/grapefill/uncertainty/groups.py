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
    from grapefill.table.arrays import BoolArray, FloatArray, IntArray
    from grapefill.uncertainty.design import Design

# Columns of more categories, or of fewer rows for each, have no effects; nor where such a share of
# what is known of a number is in rows whose category is not.
MOST_GROUPS, ROWS_PER_GROUP, LEAST_TOLD = 2_000, 3, 0.5
# What effects vary by is no less than such a share of the errors' variance.
LEAST_SHARE = 1e-6
LEAST_VARIANCE = 1e-300


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

    def of(self, codes: FloatArray, which: int) -> FloatArray:
        """Return the effects in rows of some categories, in one of the draws."""
        found: FloatArray = self.drawn[which].take(codes.astype(np.int64))
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
        if not np.isfinite(self._variance):
            self._variance = max(float(np.square(left).mean()), error, LEAST_VARIANCE)
        self.effects = self.draw(codes, left, error)
        squares = float(np.square(self.effects).sum())
        drawn = squares / float(self.random.chisquare(max(1, self.effects.size - 1)))
        self._variance = max(drawn, LEAST_SHARE * error, LEAST_VARIANCE)

    def draw(self, codes: IntArray, left: FloatArray, error: float) -> FloatArray:
        """Return a draw of the effects, given how much they vary; see `redraw`."""
        size, error = self.effects.size, max(error, LEAST_VARIANCE)
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
    missing : ndarray of bool, shape (rows, features)
        The holes of all columns. Only rows in which the category was observed tell its effect: a
        guess may be a few categories for all of them.
    random : Generator
        Source of all randomness.
    """

    def __init__(
        self, design: Design, feature: int, missing: BoolArray, random: np.random.Generator
    ) -> None:
        self.each: list[Group] = []
        if design.n_categories[feature]:
            return
        read = [feature]
        for at, k in enumerate(design.n_categories):
            if MOST_INDICATORS < k <= MOST_GROUPS:
                told, fewer = (
                    np.count_nonzero(~missing[:, some].any(axis=1)) for some in (read, [*read, at])
                )
                if fewer >= max(ROWS_PER_GROUP * k, LEAST_TOLD * told):
                    read.append(at)
                    self.each.append(Group(at, k, random))

    def __bool__(self) -> bool:
        return bool(self.each)

    def told(self, missing: BoolArray) -> BoolArray:
        """Return the rows in which all categories were observed."""
        read = [group.feature for group in self.each]
        found: BoolArray = np.logical_not(missing[:, read].any(axis=1))
        return found

    def of(self, values: FloatArray, rows: IntArray) -> FloatArray:
        """Return what all groups add in some rows of a table."""
        found = np.zeros(rows.size)
        for group in self.each:
            found += group.effects[_codes(group, values, rows)]
        return found

    def redraw(self, values: FloatArray, rows: IntArray, left: FloatArray, error: float) -> None:
        """Draw all effects anew, by what is left over in rows with effects as they are."""
        for group in self.each:
            codes = _codes(group, values, rows)
            left = left + group.effects[codes]
            group.redraw(codes, left, error)
            left = left - group.effects[codes]

    def draw(
        self, values: FloatArray, rows: IntArray, left: FloatArray, error: float
    ) -> list[FloatArray]:
        """Return a draw of the effects of every group; see `redraw`."""
        drawn = []
        for group in self.each:
            codes = _codes(group, values, rows)
            left = left + group.effects[codes]
            drawn.append(group.draw(codes, left, error))
            left = left - drawn[-1][codes]
        return drawn


def _codes(group: Group, values: FloatArray, rows: IntArray) -> IntArray:
    found: IntArray = values[rows, group.feature].astype(np.int64)
    return found
