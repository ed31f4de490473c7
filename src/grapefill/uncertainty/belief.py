r"""What may be in a missing cell of numbers, learned from the errors on held-out cells.

A belief is a mixture of three samples, weighted by how well each foretold the held-out cells of the
column:

* errors: the fill plus what held-out fills were off by, in units of how far off a cell like this is
  expected to be (as the spread of its votes, the size of the fill, the number of known cells in its
  row and whether those are among them that tell it);
* neighbours: true values of held-out cells whose fills were about the same;
* votes: what the trees say about this cell, each by itself.

The first is a smooth guess that fits any column, the others know of values that columns repeat, and
of two answers with nothing in between. The chance that intervals hold the truth is calibrated on
the same held-out cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grapefill.uncertainty.calibration import Calibration, as_frequent
from grapefill.uncertainty.company import Company
from grapefill.uncertainty.quantiles import (
    GRID,
    SPLIT_AT,
    Sample,
    ends,
    nearest,
    quantile_grid,
    split_at,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.arrays import BoolArray, FloatArray

# Levels at which errors are kept.
LEVELS = (np.arange(100) + 0.5) / 100
# How far apart, as a share of all, fills count as about the same; more with few cells.
NEAR, NEAR_CELLS = 0.1, 1.0
# Of a cell's expected error: the part that is the same for all, by the spread of its votes, and by
# the size of its fill.
SCALES = np.array([[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.3, 0.0, 0.7], [0.2, 0.4, 0.4]])
# How much more is known of a cell with the known cells of its row: nothing once there is one, their
# square root, as many times as there are.
POWERS = np.array([0.0, 0.5, 1.0])
# Trees that were grown on all cells agree more, or less, than those of the trial did: a column's by
# no more than the first, the usual one's by no more than the second, and as if there were some more
# cells with no change. A cell is compared with so many of like fills. Fills are closer by the usual
# change to this power.
MOST_CHANGE, MOST_USUAL, UNCHANGED_CELLS = 4.0, 2.0, 10
LIKE_FILLS = 5
CLOSER = 0.25
# From how many times the usual squared error on votes and values of like fills count less.
LEAST_ALIKE = 2.0
# How many cells the average column counts for, in scales and weights, and in errors.
PRIOR_CELLS = 10
ERROR_CELLS = 30
# Foretold is a value within that share of the column's range.
RESOLUTION = 0.01
ROUNDS = 30
# Part of a column's range that its errors are never smaller than.
LEAST = 1e-6


class Cells(NamedTuple):
    """What is known of cells beforehand.

    Parameters
    ----------
    guess : ndarray of shape (cells,)
        What they are filled with.
    spread : ndarray of shape (cells,)
        How far the votes on them lie apart; NaN where there are none.
    votes : ndarray of shape (cells, trees)
        The votes.
    known : ndarray of shape (cells,)
        How many other cells of their rows are known; NaN where nobody noted it.
    beside : ndarray of bool, shape (cells, features)
        Which ones; without features where nobody did.
    """

    guess: FloatArray
    spread: FloatArray
    votes: FloatArray
    known: FloatArray
    beside: BoolArray

    def part(self, rows: slice) -> Cells:
        """Return some of the cells."""
        guess, spread, votes, known, beside = self
        return Cells(guess[rows], spread[rows], votes[rows], known[rows], beside[rows])


class Fills(NamedTuple):
    """What some missing cells of a column are filled with.

    Parameters
    ----------
    guess : ndarray of shape (cells,)
        The fills.
    spread : ndarray of shape (cells,)
        How far the votes on them lie apart.
    """

    guess: FloatArray
    spread: FloatArray


class NumberColumn:
    """The held-out cells of one column of numbers.

    Parameters
    ----------
    truth : ndarray of shape (cells,)
        What was observed.
    cells : Cells
        What was said about them.
    low, high : float
        The range of what may be filled in.
    typical : float
        The error to expect in a column like this before any of its cells was seen.
    repeated : ndarray or None
        The values of a column that repeats a few of them, in order: nothing else is in its cells.
    shares : ndarray or None
        How frequent these values are.
    n_observed : float
        How many cells of the column were observed.
    """

    def __init__(
        self,
        truth: FloatArray,
        cells: Cells,
        low: float,
        high: float,
        *,
        typical: float,
        repeated: FloatArray | None = None,
        shares: FloatArray | None = None,
        n_observed: float = np.inf,
    ) -> None:
        self.repeated = repeated
        self.shares = shares
        self.n_observed = n_observed
        self.truth = truth
        self.cells = cells
        self.low, self.high = low, high
        self.range = max(high - low, 1e-300)
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.nan_to_num(truth - np.clip(cells.guess, low, high))
        self.error = np.clip(error, -self.range, self.range)
        # Rows of which nothing is known have errors of their own, see `ignorance`.
        some = cells.known != 0
        usual = np.abs(self.error[some] if some.any() else self.error)
        total = float(usual.sum()) + 2 * min(typical, self.range)
        self.base: float = max(total / (usual.size + 2), LEAST * self.range)
        self.company = Company.of(usual, cells.beside[some] if some.any() else cells.beside)
        self.order = np.sort(np.clip(cells.guess, low, high))
        self.near = max(NEAR, NEAR_CELLS / np.sqrt(max(1, truth.size)))
        spread = cells.spread[np.isfinite(cells.spread)]
        self.mean_spread = float(spread.mean()) if spread.size else 0.0
        tails = np.quantile(truth, [0.1, 0.9]) if truth.size else np.array([low, high])
        self.spread = max(float(tails[1] - tails[0]), LEAST * self.range)
        # How much farther apart votes are now, and what that does to errors; see `bring_closer`.
        self.apart, self.closer = 1.0, 1.0
        self.scale = SCALES[0]
        self.power = POWERS[0]
        noted = cells.known[cells.known > 0]
        self.mean_known = float(noted.mean()) if noted.size else np.nan
        with np.errstate(over="ignore", invalid="ignore"):
            alone = np.nan_to_num(truth - np.median(truth)) if truth.size else np.zeros(1)
        share = float(np.minimum(np.abs(alone) / self.range, 1.0).mean())
        self.alone: float = max(self.base, share * self.range)
        self.errors = np.zeros(LEVELS.size)
        self.weights = np.array([1.0, 0.0, 0.0])

    @property
    def size(self) -> int:
        """How many cells were held out."""
        return self.truth.size

    @property
    def foretold_share(self) -> float:
        """By how much errors are smaller than those of a constant, as a share."""
        return max(0.0, 1 - self.base / self.alone)

    def _place(self, guess: FloatArray) -> FloatArray:
        """Return the share of held-out fills below a fill, ties in the middle."""
        guess = np.clip(guess, self.low, self.high)
        sides = [np.searchsorted(self.order, guess, side) for side in ("left", "right")]
        places: FloatArray = (sides[0] + sides[1]) / (2 * max(1, self.order.size))
        return places

    def closeness(self, cells: Cells, *, but_itself: bool = False) -> FloatArray:
        """Return how much every held-out cell counts for others, shape (cells, held out)."""
        apart = np.abs(self._place(cells.guess)[:, None] - self._place(self.cells.guess)[None])
        # Fills that hardly differ say nothing, whatever their order.
        inside = np.clip(cells.guess, self.low, self.high)
        differ = np.abs(inside[:, None] - np.clip(self.cells.guess, self.low, self.high)[None])
        close = np.exp(-0.5 * np.square(np.minimum(apart, differ / self.spread) / self.near))
        # Rows of which nothing is known are like each other only, as long as there are such; and
        # those in which what tells them is not.
        for here, there in (
            (cells.known == 0, self.cells.known == 0),
            (self.company.is_absent(cells.beside), self.company.is_absent(self.cells.beside)),
        ):
            same = here[:, None] == there
            close *= same | ~same.any(axis=1, keepdims=True)
        if but_itself:
            np.fill_diagonal(close, 0.0)
        total: FloatArray = close / np.maximum(close.sum(axis=1, keepdims=True), 1e-300)
        return total

    def relative_scales(self, cells: Cells, close: FloatArray) -> FloatArray:
        """Return the expected error of cells, by each of its three parts, on average 1."""
        same = np.ones(cells.guess.size)
        if not self.size:
            return np.stack([same] * 3, axis=1)
        usual = self.base * self.company.sizes(self.cells.beside)
        off = np.abs(self.error) / np.where(self.cells.known == 0, self.alone, usual)
        # Not a matrix product, which may round a row differently among others.
        by_guess = np.where(close.any(axis=1), (close * off).sum(axis=1), 1.0)
        by_votes = same
        if self.mean_spread > 0:
            by_votes = np.where(
                np.isfinite(cells.spread), cells.spread / self.mean_spread, by_guess
            )
        return np.stack([same, np.minimum(by_votes, 20.0), by_guess], axis=1)

    def ignorance(self, cells: Cells, power: float) -> FloatArray:
        """Return how much farther off cells are than usual, by how much is known of their rows.

        Every known cell adds to the precision, the inverse square of the error. A row of which
        nothing is known has the error of a column alone, one as known as others are the usual one.
        """
        by_company = np.where(cells.known == 0, 1.0, self.company.sizes(cells.beside))
        if np.isnan(self.mean_known) or self.alone <= self.base:
            return by_company
        known = np.nan_to_num(cells.known, nan=self.mean_known) / self.mean_known
        added = np.where(known > 0, np.maximum(known, 1e-300) ** power, 0.0)
        least = np.square(self.base / self.alone)
        farther: FloatArray = by_company / np.sqrt(least + (1 - least) * added)
        return farther

    def expected(self, cells: Cells, close: FloatArray) -> FloatArray:
        """Return how far off cells are expected to be."""
        relative = np.einsum("ij,j->i", self.relative_scales(cells, close), self.scale)
        farther = self.ignorance(cells, self.power)
        expected: FloatArray = self.base * farther * np.maximum(relative, 0.02)
        return expected

    def scale_losses(self) -> FloatArray:
        """Return how badly `SCALES` with `POWERS` tell the size of errors, summed over cells."""
        close = self.closeness(self.cells, but_itself=True)
        relative = self.relative_scales(self.cells, close)
        farther = np.stack([self.ignorance(self.cells, power) for power in POWERS], axis=1)
        expected = np.maximum(relative @ SCALES.T, 0.02)[:, :, None] * farther[:, None]
        off = (np.abs(self.error) / self.base)[:, None, None]
        losses: FloatArray = (np.log(expected) + off / expected).sum(axis=0)
        return losses

    def as_frequent(self) -> FloatArray:
        """Return how many cells each held-out one stands for, were its value as frequent there."""
        if self.repeated is None or self.shares is None:
            return np.ones(self.size)
        # Of a long table the values of only some rows are known.
        codes = np.minimum(np.searchsorted(self.repeated, self.truth), self.shares.size - 1)
        return as_frequent(codes, self.shares)

    def as_in_trial(self, cells: Cells) -> Cells:
        """Return cells with spreads as large as they were when cells were held out."""
        return cells._replace(spread=cells.spread / self.apart)

    def change(self, fills: Fills) -> float | None:
        """Return how much farther apart votes are than on held-out cells with like fills.

        As a logarithm; None if there is nothing to compare.
        """
        known = np.isfinite(self.cells.spread)
        if not fills.guess.size or not known.any():
            return None
        guess, spread = self.cells.guess[known], self.cells.spread[known]
        order = np.argsort(guess)
        like = min(LIKE_FILLS, guess.size)
        first = np.searchsorted(guess[order], fills.guess) - like // 2
        first = np.clip(first, 0, guess.size - like)
        with np.errstate(over="ignore", invalid="ignore"):
            before = float(spread[order][first[:, None] + np.arange(like)].mean())
            now = float(fills.spread.mean())
        if not (0 < before < np.inf and 0 < now < np.inf):
            return None
        most = np.log(MOST_CHANGE)
        apart = min(max(np.log(now) - np.log(before), -most), most)
        return float(apart * fills.guess.size / (fills.guess.size + UNCHANGED_CELLS))

    def samples(self, cells: Cells, *, itself: bool = False) -> list[Sample]:
        """Return the three samples for some cells; for the held-out ones without `itself`."""
        cells = cells if itself else self.as_in_trial(cells)
        close = self.closeness(cells, but_itself=itself)
        expected = self.expected(cells, close) * (1.0 if itself else self.closer)
        guess = np.clip(cells.guess, self.low, self.high)
        errors = guess[:, None] + expected[:, None] * self.errors
        even = np.full(errors.shape, 1 / LEVELS.size)
        neighbours = np.broadcast_to(self.truth, close.shape)
        voted = np.isfinite(cells.votes)
        # Votes, and values of like fills, are of cells of which about as much was known.
        alike = np.minimum(1.0, LEAST_ALIKE / self.ignorance(cells, self.power)[:, None] ** 2)
        empty = (cells.known == 0) & (self.cells.known == 0).any()
        share = alike * voted / np.maximum(voted.sum(axis=1, keepdims=True), 1)
        votes = np.where(voted, cells.votes, guess[:, None])
        errors = np.clip(errors, self.low, self.high)
        if self.repeated is not None:
            errors = nearest(self.repeated, errors)
        return [
            Sample(errors, even),
            Sample(neighbours, np.where(empty[:, None], 1.0, alike) * close),
            Sample(votes, share),
        ]

    def foretold(self) -> FloatArray:
        """Return how well the samples foretold the held-out cells, shape (samples, cells)."""
        within = RESOLUTION * self.range
        chances = [
            (weights * (np.abs(points - self.truth[:, None]) <= within)).sum(axis=1)
            for points, weights in self.samples(self.cells, itself=True)
        ]
        # Nothing is impossible.
        return 0.98 * np.stack(chances) + 0.02 * 2 * RESOLUTION

    def mixture(self, cells: Cells, *, itself: bool = False) -> Sample:
        """Return the belief about some cells: points in order, and the chance to be below each."""
        samples = self.samples(cells, itself=itself)
        points = np.concatenate([sample.points for sample in samples], axis=1)
        weights = np.concatenate(
            [w * sample.weights for w, sample in zip(self.weights, samples, strict=True)], axis=1
        )
        # A cell without votes, or without neighbours, has less to go by.
        lacking = 1 - weights.sum(axis=1, keepdims=True)
        weights[:, : LEVELS.size] += lacking / LEVELS.size
        order = np.argsort(points, axis=1)
        points = np.take_along_axis(points, order, axis=1)
        return Sample(points, np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1))


def bring_closer(columns: Sequence[NumberColumn], fills: Sequence[Fills]) -> None:
    """Tell columns how far apart the votes are that fill their cells, and what that means.

    In a column a few cells decide how far apart votes are, so the usual change of all columns tells
    how much closer fills are. A column that cannot be foretold is no closer than before.

    Parameters
    ----------
    columns : sequence of NumberColumn
        The columns.
    fills : sequence of Fills
        Some fills of the missing cells of each.
    """
    changes = [column.change(mine) for column, mine in zip(columns, fills, strict=True)]
    known = [change for change in changes if change is not None]
    if not known:
        return
    most = np.log(MOST_USUAL)
    usual = min(max(float(np.median(known)), -most), most)
    for column, change in zip(columns, changes, strict=True):
        column.apart = float(np.exp(usual if change is None else change))
        column.closer = float(np.exp(CLOSER * usual * column.foretold_share))


def fit_columns(columns: Sequence[NumberColumn]) -> Calibration:
    """Learn from held-out cells of all columns together what a few of one column cannot tell."""
    if not columns:
        nothing = np.empty(0)
        return Calibration(nothing, np.empty(0, dtype=np.int64), nothing, nothing, nothing)
    losses = [column.scale_losses() for column in columns]
    cells = max(1, sum(column.size for column in columns))
    pooled = sum(losses, np.zeros((SCALES.shape[0], POWERS.size))) / cells
    for column, own in zip(columns, losses, strict=True):
        best = np.unravel_index(np.argmin(own + PRIOR_CELLS * pooled), own.shape)
        column.scale, column.power = SCALES[best[0]], float(POWERS[best[1]])
    relative = [_relative_errors(column) for column in columns]
    everyone = np.concatenate([*relative, np.zeros(1)])
    shared = np.quantile(everyone, LEVELS)
    for column, own in zip(columns, relative, strict=True):
        share = own.size / (own.size + ERROR_CELLS)
        mine = np.quantile(own, LEVELS) if own.size else shared
        column.errors = share * mine + (1 - share) * shared
    _fit_weights(columns)
    needed = [np.empty(0), *(_needed_mass(column) for column in columns)]
    return Calibration(
        np.concatenate(needed),
        np.repeat(np.arange(len(columns)), [column.size for column in columns]),
        np.concatenate([np.empty(0), *(column.as_frequent() for column in columns)]),
        np.array([column.n_observed for column in columns]),
        np.array([column.foretold_share for column in columns]),
    )


def _relative_errors(column: NumberColumn) -> FloatArray:
    if not column.size:
        return np.empty(0)
    close = column.closeness(column.cells, but_itself=True)
    return column.error / column.expected(column.cells, close)


def _fit_weights(columns: Sequence[NumberColumn]) -> None:
    """Choose the weights of the samples by expectation and maximisation, columns like the mean."""
    foretold = [column.foretold() if column.size else np.empty((3, 0)) for column in columns]
    common = np.full(3, 1 / 3)
    for _ in range(ROUNDS):
        common = _responsibility(np.concatenate(foretold, axis=1), common) + 1e-3
        common /= common.sum()
    for column, chances in zip(columns, foretold, strict=True):
        has_votes = bool(np.isfinite(column.cells.votes).any())
        prior = common * np.array([1, column.size > 1, has_votes])
        prior = prior / prior.sum()
        weights = prior
        for _ in range(ROUNDS):
            own = _responsibility(chances, weights) * column.size
            weights = (own + PRIOR_CELLS * prior) / (column.size + PRIOR_CELLS)
            weights = weights * (prior > 0) / (weights * (prior > 0)).sum()
        column.weights = weights


def _responsibility(chances: FloatArray, weights: FloatArray) -> FloatArray:
    """Return which share of the cells each sample accounts for."""
    if not chances.shape[1]:
        return weights
    part = weights[:, None] * chances
    share: FloatArray = (part / part.sum(axis=0)).mean(axis=1)
    return share


def _needed_mass(column: NumberColumn) -> FloatArray:
    """Return the mass from which on intervals around a held-out cell hold it."""
    if not column.size:
        return np.empty(0)
    grid = quantile_grid(column.mixture(column.cells, itself=True))
    needed = np.ones(column.size)
    holding = np.ones(column.size, dtype=bool)
    slack = 1e-9 * column.range
    split = split_at(grid, SPLIT_AT)
    for mass in GRID[:0:-1]:
        low, high = ends(grid, split, float(mass))
        holding &= (low - slack <= column.truth) & (column.truth <= high + slack)
        needed[holding] = mass
    return needed
