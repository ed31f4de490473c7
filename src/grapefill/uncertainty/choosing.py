"""How a value is chosen by a number from 0 to 1: an observed cell, a vote, a category."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from grapefill.table.arrays import FloatArray, IntArray
    from grapefill.trees.forest import Forest

# Observed cells of about the same prediction, as a share of all and at least so many.
ALIKE, FEWEST_ALIKE = 0.05, 5


def choose_vote(
    forest: Forest, inputs: npt.NDArray[np.float32], chance: FloatArray, sharpness: float
) -> FloatArray:
    """Choose one of the categories that trees vote for, by a number between 0 and 1.

    Parameters
    ----------
    forest : Forest
        Trees whose leaves hold categories.
    inputs : ndarray of shape (rows, inputs)
        What they read.
    chance : ndarray of shape (rows,)
        Numbers between 0 and 1.
    sharpness : float
        To which power the share of the votes for a category is raised: with 1 it is that of any
        tree, with more rather what most of them say.
    """
    if sharpness > 1:
        shares = shares_of_votes(forest.votes(inputs), forest.n_categories)
        return choose_category(shares**sharpness, chance)
    chosen = (chance * len(forest.trees)).astype(np.int64)
    votes = np.empty(chosen.size)
    for number, tree in enumerate(forest.trees):
        mine = np.flatnonzero(chosen == number)
        if mine.size:
            votes[mine] = tree.predict(inputs[mine])[:, 0]
    return votes


def shares_of_votes(votes: FloatArray, n_categories: int) -> FloatArray:
    """Return the share of every category among votes, shape (rows, categories).

    Examples
    --------
    >>> shares_of_votes(np.array([[0.0, 2.0, 2.0, 2.0]]), 3).tolist()
    [[0.25, 0.0, 0.75]]
    """
    rows, count = votes.shape
    places = np.arange(rows)[:, None] * n_categories + votes.astype(np.int64)
    found: FloatArray = np.bincount(places.ravel(), minlength=rows * n_categories) / count
    return found.reshape(rows, n_categories)


def choose_alike(
    levels: FloatArray,
    predicted: FloatArray,
    chance: FloatArray,
    *,
    within: float | None = None,
    blur: float = 0.0,
) -> IntArray:
    """Choose an observed cell of about the same prediction, by a number from 0 to 1.

    Many cells may have the very prediction that is closest, as where the other columns have a few
    values only; then it is one of them.

    Parameters
    ----------
    levels : ndarray
        What was predicted of the observed cells, in order.
    predicted, chance : ndarray of shape (cells,)
        Predictions, and numbers.
    within : float or None
        By how much predictions of cells may differ, unless none is closer. Then only a few are
        alike, if `blur` does not say more; without, more are, however much theirs differ.
    blur : float
        With `within`, by how much predictions may differ that cannot be told apart: all cells that
        are so close to the closest one are alike, too.
    """
    few = within is not None
    alike = FEWEST_ALIKE if few else max(FEWEST_ALIKE, round(ALIKE * levels.size))
    alike = min(levels.size, alike)
    above = np.clip(np.searchsorted(levels, predicted), 1, max(1, levels.size - 1))
    below = levels[above - 1]
    above = np.minimum(above, levels.size - 1)
    closer = np.where(predicted - below <= levels[above] - predicted, below, levels[above])
    start, stop = (np.searchsorted(levels, closer, side) for side in ("left", "right"))
    first = np.clip((start + stop) // 2 - alike // 2, 0, levels.size - alike)
    same = stop - start
    first, count = np.where(same > alike, start, first), np.maximum(same, alike)
    if within is not None:
        off = np.maximum(np.abs(predicted - closer), within)
        low = np.searchsorted(levels, np.minimum(predicted - off, closer), "left")
        high = np.searchsorted(levels, np.maximum(predicted + off, closer), "right")
        low, high = np.maximum(first, low), np.minimum(first + count, high)
        if blur:
            low = np.minimum(low, np.searchsorted(levels, closer - blur, "left"))
            high = np.maximum(high, np.searchsorted(levels, closer + blur, "right"))
        first, count = low, high - low
    chosen: IntArray = first + (chance * count).astype(np.int64)
    return chosen


def choose_donor(
    observed: FloatArray,
    levels: FloatArray,
    predicted: FloatArray,
    chance: FloatArray,
    blur: float,
) -> IntArray:
    """Choose an observed cell whose value is drawn.

    Parameters
    ----------
    observed : ndarray
        The scaled values of observed cells.
    levels, predicted, chance : ndarray
        As in `choose_alike`.
    blur : float
        Which difference of two predictions tells nothing, in units of how far these are off.
    """
    off = float(np.sqrt(np.square(observed - levels).mean()))
    return choose_alike(levels, predicted, chance, within=off, blur=blur * off)


def choose_category(chances: FloatArray, chance: FloatArray) -> FloatArray:
    """Return a category for every row, by a number between 0 and 1."""
    total = np.cumsum(chances, axis=1)
    codes = (total < (chance * total[:, -1])[:, None]).sum(axis=1)
    drawn: FloatArray = np.minimum(codes, chances.shape[1] - 1).astype(np.float64)
    return drawn
