"""How network and trees are blended in every column, decided on cells that neither has seen."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from grapefill.trees.guess import sharpen

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import numpy.typing as npt

    from grapefill.table.arrays import FloatArray
    from grapefill.trees import Guess

# Weights of the network that are tried, and how many held-out cells the average column counts for.
SHARES = np.linspace(0, 1, 5)
PRIOR_CELLS = 10
# Trees gain more than the network from the cells that were held out, and from the rounds to come.
HANDICAP = 0.025
# By how many standard errors a way to average votes, or to grow trees, must beat the usual one.
CERTAINTY = 1.5
# Powers of probabilities that are tried; how much a power other than 1 must gain in log loss, by
# the square of its logarithm; and the least probability that such a loss is taken of.
POWERS = 1.1 ** np.arange(-8, 17)
PRIOR_POWER = 2.0
LEAST_CHANCE = 1e-6
# With fewer held-out cells than that, lines in leaves are not considered.
FEWEST_FOR_LINES = 50


@dataclass(frozen=True)
class ColumnTrial:
    """How a column was predicted where it was known but held out.

    Errors are mean absolute errors of numbers and error rates of categories.

    Parameters
    ----------
    cells : int
        Held-out cells of the column.
    constant : float or None
        Error of filling in the median, or the most frequent category; None without cells, or when
        it is infinite.
    network, trees, blend : float or None
        Errors of the parts and of their blend; None for trees that were not tried. The blend was
        chosen on these cells, and both parts get better afterwards, with the held-out cells and
        more trees.
    share : float
        The weight of the network in the blend, or of network and factors together.
    factors : float or None
        Error of the factors, if they were tried.
    factor_share : float
        The weight of the factors within that share.
    alone : float or None
        Error of the blend where each cell is held out by itself, with what else is missing beside
        such cells; None if that was not tried. The other errors are of cells held out together.
    """

    cells: int
    constant: float | None
    network: float | None
    trees: float | None
    blend: float | None
    share: float
    factors: float | None = None
    factor_share: float = 0.0
    alone: float | None = None

    @property
    def error(self) -> float | None:
        """How far off missing cells are likely to be: the last of these errors that is known."""
        found = (self.alone, self.blend, self.network)
        return next((error for error in found if error is not None), None)


def choose_shares(
    numbers: FloatArray,
    held_out: npt.NDArray[np.bool_],
    network: Guess,
    trees: Guess,
    *,
    n_categories: tuple[int, ...],
    tried: Collection[int] | None = None,
    weights: Mapping[int, FloatArray] = MappingProxyType({}),
) -> tuple[FloatArray, tuple[ColumnTrial, ...]]:
    """Choose the weight of the network in every column.

    The network has a small handicap, since trees gain more from what comes after the trial. A
    column with few held-out cells leans towards the weight that is best for all columns together.
    Where no trees were tried, or nothing was held out in any column, it is the network alone.

    Parameters
    ----------
    numbers : ndarray of shape (rows, features)
        The true values; NaN where nothing is known.
    held_out : ndarray of bool, shape (rows, features)
        The cells to judge by.
    network, trees : Guess
        What the two say about the rows without the held-out cells.
    n_categories : tuple of int
        For every feature, 0 for numbers or the number of categories.
    tried : collection of int or None
        The features that trees were tried on; None for all.
    weights : dict of int to ndarray of shape (rows,)
        For a feature whose cells do not all count the same, how much they do.

    Returns
    -------
    shares : ndarray of shape (features,)
    trials : tuple of ColumnTrial
    """
    # Differences of numbers near the end of float64 are infinite; such a column says nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        columns = [
            _Column(
                numbers,
                held_out,
                network,
                trees,
                feature=j,
                n_categories=n_categories[j],
                weights=weights.get(j),
            )
            for j in range(numbers.shape[1])
        ]
        known = [column.losses.mean(axis=1) for column in columns if column.cells]
        known = [losses for losses in known if np.isfinite(losses).all()]
        pooled = np.mean(known, axis=0) if known else 1 - SHARES
        chosen = [
            column.choose(pooled) if tried is None or j in tried else SHARES.size - 1
            for j, column in enumerate(columns)
        ]
        trials = tuple(
            column.trial(at, tried=tried is None or j in tried)
            for j, (column, at) in enumerate(zip(columns, chosen, strict=True))
        )
    return SHARES[chosen], trials


def clearly_better(
    numbers: FloatArray,
    held_out: npt.NDArray[np.bool_],
    other: FloatArray,
    rule: FloatArray,
    n_categories: tuple[int, ...],
    *,
    fewest: int = 1,
) -> npt.NDArray[np.bool_]:
    """Tell for every column whether held-out cells leave little doubt that a guess beats the rule.

    Parameters
    ----------
    numbers : ndarray of shape (rows, features)
        The true values; NaN where nothing is known.
    held_out : ndarray of bool, shape (rows, features)
        The cells to judge by.
    other, rule : ndarray of shape (rows, features)
        What is compared, and what is taken in doubt.
    n_categories : tuple of int
        For every feature, 0 for numbers or the number of categories; these follow the rule.
    fewest : int
        With fewer cells than that a column follows the rule.
    """
    better = np.zeros(numbers.shape[1], dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for j in np.flatnonzero(np.array(n_categories) == 0):
            cells = held_out[:, j]
            if cells.sum() >= fewest:
                truth = numbers[cells, j]
                gain = np.abs(rule[cells, j] - truth) - np.abs(other[cells, j] - truth)
                better[j] = gain.mean() > CERTAINTY * gain.std() / np.sqrt(gain.size)
    return better


def choose_powers(
    numbers: FloatArray,
    held_out: npt.NDArray[np.bool_],
    chances: Mapping[int, FloatArray],
    weights: Mapping[int, FloatArray] = MappingProxyType({}),
) -> dict[int, float]:
    """Choose the powers that make probabilities agree best with how often categories occur.

    That is the one of least log loss. With few held-out cells it stays near 1.

    Parameters
    ----------
    numbers : ndarray of shape (rows, features)
        The codes of the true categories; NaN where nothing is known.
    held_out : ndarray of bool, shape (rows, features)
        The cells to judge by.
    chances : dict of int to ndarray of shape (rows, categories)
        The probabilities of the categories, by feature.
    weights : dict of int to ndarray of shape (rows,)
        For a feature whose cells do not all count the same, how much they do.
    """
    chosen = {}
    for j, mine in chances.items():
        rows = np.flatnonzero(held_out[:, j])
        codes = numbers[rows, j].astype(np.int64)
        counts = weights[j][rows] if j in weights else np.ones(rows.size)
        losses = [PRIOR_POWER * np.log(power) ** 2 for power in POWERS]
        for at, power in enumerate(POWERS if rows.size else ()):
            right = sharpen(mine[rows], power)[np.arange(rows.size), codes]
            losses[at] -= counts @ np.log(np.maximum(right, LEAST_CHANCE))
        chosen[j] = float(POWERS[np.argmin(losses)])
    return chosen


class _Column:
    """The held-out cells of one column, and how the parts and their blends did on them."""

    def __init__(
        self,
        numbers: FloatArray,
        held_out: npt.NDArray[np.bool_],
        network: Guess,
        trees: Guess,
        *,
        feature: int,
        n_categories: int,
        weights: FloatArray | None,
    ) -> None:
        rest = numbers[~held_out[:, feature], feature]
        rest = rest[~np.isnan(rest)]
        # With nothing left to learn from, there is nothing to judge either.
        rows = np.flatnonzero(held_out[:, feature] & bool(rest.size))
        self.cells = rows.size
        truth = numbers[rows, feature]
        share = SHARES[:, None]
        if n_categories:
            codes = truth.astype(np.int64)
            mode = np.bincount(rest.astype(np.int64), minlength=n_categories).argmax()
            share = share[..., None]
            chances = share * network.chances[feature][rows]
            chances = chances + (1 - share) * trees.chances[feature][rows]
            # The Brier score: it honours a probability that is right, not only the top category.
            self.losses = np.square(chances - np.eye(n_categories)[codes]).sum(axis=2)
            self.errors = (chances.argmax(axis=2) != codes).astype(np.float64)
            self.constant = (mode != codes).astype(np.float64)
        else:
            middle = np.median(rest) if rest.size else 0.0
            blends = share * network.value[rows, feature] + (1 - share) * trees.value[rows, feature]
            self.errors = np.abs(blends - truth)
            self.constant = np.abs(middle - truth)
            unit = np.abs(rest - middle).mean() if rest.size else 1.0
            # In units of the column's spread, so that columns can be averaged.
            self.losses = self.errors / (unit or 1.0)
        if weights is not None:
            self.losses = self.losses * weights[rows]

    def choose(self, pooled: FloatArray) -> int:
        """Return the position of the best weight; of equals the one that trusts the trees most."""
        own = self.losses.sum(axis=1)
        total = PRIOR_CELLS * pooled + (own if np.isfinite(own).all() else 0.0)
        return int(np.argmin(total * (1 + HANDICAP * SHARES)))

    def trial(self, at: int, *, tried: bool) -> ColumnTrial:
        if not self.cells:
            return ColumnTrial(0, None, None, None, None, float(SHARES[at]))
        errors = self.errors.mean(axis=1)
        constant, network, trees, blend = (
            float(error) if np.isfinite(error) else None
            for error in (self.constant.mean(), errors[-1], errors[0], errors[at])
        )
        trees = trees if tried else None
        return ColumnTrial(self.cells, constant, network, trees, blend, float(SHARES[at]))
