"""How much of a belief an interval needs to hold the truth as often as it should.

Held-out cells tell (split conformal prediction; Vovk et al.: Algorithmic learning in a random
world, 2005). In a column there may be few of them, so those of all columns count a little, values
count as often as they occur in the column, and what chance may do is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray, IntArray

# How many cells those of all columns together count for.
CALIBRATION_CELLS = 30
# By how much smaller errors are taken to be than in the trial, which had fewer cells to learn from;
# by less in a column of whose spread less than that share is foretold: more cells do not help it.
SMALLER, FORETOLD = 0.07, 0.1
# Where n cells of a column were observed, errors are taken to be larger by `CHANCE_CELLS / n`, and
# by no more than a share: trials hold out some of them twice, and not many more are missing.
CHANCE_CELLS, MOST_CHANCE = 24.0, 0.3
# Standard errors that are added to the coverage of sets, as few cells of a column tell it.
CAREFUL = 0.6


@dataclass(frozen=True)
class Calibration:
    """Which mass an interval needs so that the truth is inside as often as it should be.

    Parameters
    ----------
    needed : ndarray of shape (cells,)
        For every held-out cell of all columns, the smallest mass that would have been enough.
    column : ndarray of int, shape (cells,)
        Whose cell it is.
    weights : ndarray of shape (cells,)
        How many cells it stands for.
    n_observed : ndarray of shape (columns,)
        How many cells of every column were observed.
    foretold : ndarray of shape (columns,)
        By how much errors are smaller than those of a constant.
    """

    needed: FloatArray
    column: IntArray
    weights: FloatArray
    n_observed: FloatArray
    foretold: FloatArray

    def mass(self, coverage: float, column: int) -> float:
        """Return the mass for a column."""
        if not self.needed.size:
            return coverage
        smaller = SMALLER * min(1.0, float(self.foretold[column]) / FORETOLD)
        larger = min(CHANCE_CELLS / max(1.0, float(self.n_observed[column])), MOST_CHANCE)
        # As if errors were normal.
        ends = (1 - smaller + larger) * float(ndtri(0.5 + coverage / 2))
        coverage = 2 * float(ndtr(ends)) - 1
        mine = self.column == column
        own, counts = self.needed[mine], self.weights[mine]
        return min(1.0, shared_level(own, self.needed, coverage, counts))


def as_frequent(codes: IntArray, shares: FloatArray) -> FloatArray:
    """Return weights with which some cells have their values as often as they are known to occur.

    Of few cells which happen to be held out, few may have a value that is frequent. If it is a hard
    one to foretell they tell too good a story.

    Parameters
    ----------
    codes : ndarray of int
        Which value each of the cells has.
    shares : ndarray
        How frequent every value is.

    Returns
    -------
    ndarray
        On average 1. A value that hardly any cell has does not count as often as all the others.

    Examples
    --------
    >>> as_frequent(np.array([0, 0, 0, 1]), np.array([0.5, 0.5])).round(2)
    array([0.8, 0.8, 0.8, 1.6])
    """
    counts = np.bincount(codes, minlength=shares.size)
    weights = ((codes.size * shares + 1) / (counts + 1))[codes]
    scaled: FloatArray = weights * (codes.size / max(weights.sum(), 1e-300))
    return scaled


def shared_level(
    own: FloatArray,
    everyone: FloatArray,
    coverage: float,
    counts: FloatArray | None = None,
    *,
    careful: float = 0.0,
) -> float:
    """Return what a share of a column's cells does not exceed, as far as a few of them can tell.

    The cells of all columns together count as `CALIBRATION_CELLS` more of its own, and one further
    cell as infinite. A column's own cells may stand for several, or for less than one each. So many
    standard errors of the share are added, for a few cells may happen to be easy.

    Examples
    --------
    >>> shared_level(np.array([0.2, 0.3]), np.linspace(0, 1, 101), 0.5, careful=0.6)
    0.54
    """
    size = own.size + CALIBRATION_CELLS
    level = coverage + careful * float(np.sqrt(coverage * (1 - coverage) / size))
    values = np.concatenate([own, everyone])
    each = np.ones(own.size) if counts is None else counts
    weights = np.append(each, np.full(everyone.size, CALIBRATION_CELLS / everyone.size))
    order = np.argsort(values)
    reached = np.searchsorted(weights[order].cumsum(), min(1.0, level) * (size + 1) - 1e-9)
    return float(np.append(values[order], np.inf)[reached])
