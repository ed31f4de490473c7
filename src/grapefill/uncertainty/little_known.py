"""Rows of which less is known than of held-out cells: what draws say of them.

Held-out cells tell how far off fills are in rows like theirs. Of rows with many more holes, such as
new ones with only a few cells, they tell nothing. Draws leave open what a row's known cells do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grapefill.uncertainty.quantiles import GRID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grapefill.table.arrays import BoolArray, FloatArray
    from grapefill.training.fill import Part
    from grapefill.uncertainty.joint import Joint

# Of so small a share of the held-out cells less was known than of any that calibrate intervals.
RARE = 0.05
# Draws of every cell.
DRAWS = 39


class LittleKnown:
    """Which cells of a table are in rows of which little is known, and what draws say of these.

    Parameters
    ----------
    sampler : Joint or None
        Draws cells; None leaves all beliefs as they are.
    fewest : mapping of int to float
        For every feature, how many other cells were known of nearly all its held-out cells.
    """

    def __init__(self, sampler: Joint | None, fewest: Mapping[int, float]) -> None:
        self.sampler = sampler
        self.fewest = fewest
        self._part: Part | None = None
        self._place = np.empty(0, dtype=np.int64)
        self._drawn = np.empty((DRAWS, 0, 0))

    def cells(self, part: Part, feature: int) -> BoolArray:
        """Return which missing cells of a feature are in such rows."""
        return self._rows(part, feature)[part.holes[:, feature]]

    def widen(
        self, part: Part, feature: int, grid: FloatArray, low: float, high: float
    ) -> FloatArray:
        """Return beliefs about the missing cells of a feature, quantiles between two limits."""
        cells = self.cells(part, feature)
        if not cells.any():
            return grid
        # A further draw is as likely to be between any two neighbours of these.
        drawn = np.quantile(self._draws(part, feature), GRID, axis=0, method="weibull").T
        wider = grid.copy()
        wider[cells] = widened(grid[cells], np.clip(drawn, low, high))
        return wider

    def soften(self, part: Part, feature: int, chances: FloatArray) -> FloatArray:
        """Return the probabilities of categories for the missing cells of a feature."""
        cells = self.cells(part, feature)
        if not cells.any():
            return chances
        codes = self._draws(part, feature).astype(np.int64)
        drawn = np.stack([(codes == k).sum(axis=0) for k in range(chances.shape[1])], axis=1)
        softer = chances.copy()
        softer[cells] = softened(chances[cells], drawn.astype(np.float64))
        return softer

    def _rows(self, part: Part, feature: int) -> BoolArray:
        """Return of which rows less is known than of nearly all held-out cells of a feature."""
        if self.sampler is None:
            return np.zeros(len(part.numbers), dtype=bool)
        known = (~np.isnan(part.numbers)).sum(axis=1)
        few: BoolArray = known < self.fewest.get(feature, np.nan)
        return few

    def _draws(self, part: Part, feature: int) -> FloatArray:
        """Return draws of a feature's cells, shape (draws, cells); a part's serve all features."""
        if self._part is not part:
            assert self.sampler is not None
            rows = np.any([self._rows(part, j) for j in self.fewest], axis=0)
            few = part.take(np.flatnonzero(rows))
            # The same random numbers for all rows, so that none depends on where it is.
            places = np.zeros(len(few.numbers), dtype=np.int64)
            self._drawn = np.stack(
                [
                    self.sampler.draw(few.numbers, few.guess, places, seed=0, number=number)
                    for number in range(DRAWS)
                ]
            )
            self._part, self._place = part, np.cumsum(rows) - 1
        cells = np.flatnonzero(self._rows(part, feature) & part.holes[:, feature])
        drawn: FloatArray = self._drawn[:, self._place[cells], feature]
        return drawn


def fewest_known(known: FloatArray) -> float:
    """Return how many other cells were known of nearly all held-out cells, NaN if nobody noted it.

    Examples
    --------
    >>> fewest_known(np.repeat([1.0, 5.0, 6.0], [2, 8, 90]))
    5.0
    """
    known = known[np.isfinite(known)]
    return float(np.quantile(known, RARE, method="lower")) if known.size else np.nan


def widened(grid: FloatArray, drawn: FloatArray) -> FloatArray:
    """Return beliefs, quantiles at `GRID`, that leave as much open as draws do.

    Parameters
    ----------
    grid, drawn : ndarray of shape (cells, levels)
        Quantiles of beliefs and of draws.

    Examples
    --------
    >>> wide = widened(np.full((1, GRID.size), 5.0), 10 * GRID[None])
    >>> wide[0, [0, 50, 100, 150, 200]]
    array([ 0. ,  2.5,  5. ,  7.5, 10. ])
    """
    below = GRID < 0.5
    wide: FloatArray = np.where(below, np.minimum(grid, drawn), np.maximum(grid, drawn))
    wide[:, GRID.size // 2] = grid[:, GRID.size // 2]
    return wide


def softened(chances: FloatArray, drawn: FloatArray) -> FloatArray:
    """Return probabilities as frequent as draws are; what is filled in stays the most probable.

    Parameters
    ----------
    chances : ndarray of shape (cells, categories)
        What the model says, which counts like one more draw.
    drawn : ndarray of shape (cells, categories)
        How often each of them was drawn.

    Examples
    --------
    >>> softened(np.array([[0.9, 0.1, 0.0]]), np.array([[19.0, 20.0, 0.0]])).round(3)
    array([[0.5, 0.5, 0. ]])
    """
    told = chances + drawn
    top = chances.argmax(axis=1)[:, None]
    # A trace more than the others, since the first of equals counts as the most probable.
    most = told.max(axis=1, keepdims=True) * (1 + 1e-9)
    np.put_along_axis(told, top, most, axis=1)
    soft: FloatArray = told / told.sum(axis=1, keepdims=True)
    return soft
