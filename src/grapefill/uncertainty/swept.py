"""One column while draws are learned: regressed on the others and drawn anew, sweep after sweep.

What is kept of it in the end, `ColumnDraws`, says in `grapefill.uncertainty.joint` how its cells
are drawn.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from grapefill.trees.forest import Forest
from grapefill.uncertainty.design import has_frequent
from grapefill.uncertainty.joint import (
    ColumnDraws,
    Work,
    choose_alike,
    choose_category,
    one_vote_each,
)
from grapefill.uncertainty.regression import (
    Fit,
    category_chances,
    fit_linear,
    fit_logistic,
    solve_products,
)
from grapefill.uncertainty.remainders import Trust, correlation, what_is_left

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from grapefill.table.arrays import BoolArray, FloatArray, IntArray

    Products = Callable[[IntArray], FloatArray]
    """From some inputs to the sums over rows of their products."""

# A column is regressed on the inputs that it goes along with most, one of many categories on fewer.
MOST_INPUTS, MOST_INPUTS_OF_MANY = 128, 32
MANY_CATEGORIES = 10
# Rows and trees of a column; a tree of many rows costs much and says little more.
TREE_ROWS = 4_000
FIRST_TREES, KEPT_TREES = 6, 16
# Trees of many rows are grown where a few smaller ones find something.
TRIAL_ROWS, TRIAL_TREES = 1_000, 3
MIN_SPLIT = 2
TREE_SHARE = 0.6
# Correlation of what is left over with what trees say of it, from which on trees are asked; from
# which on a trial promises something, and below which it ends, at first and later.
LEAST_SIGNAL, LEAST_OF_TRIAL, HOPELESS, LITTLE = 0.1, 0.05, -0.02, 0.0
LINEAR_SHARES = np.linspace(0, 1, 5)
# So many remainders are kept of a column.
MOST_POOL = 2_000
# Share of a column that is known, from which on draws are kept that look at all of its rows.
LEAST_KNOWN = 0.5
# What is left over is no more than so many times larger in one draw than usual.
MOST_SPREAD = 2.0
# What holes are drawn by.
LEARNED = (
    "drawn",
    "fit",
    "rest",
    "pool",
    "levels",
    "trees",
    "forest_is_used",
    "shift",
    "linear",
    "trust",
)


class SweptColumn:
    """One column during the sweeps.

    Parameters
    ----------
    work : Work
        The rows, with the cells of all columns as they are by then.
    feature : int
        The column.
    missing : ndarray of bool, shape (rows,)
        Its holes.
    random : Generator
        Source of all randomness.
    like : SweptColumn or None
        The same column of more rows, whose way of drawing is taken over.
    """

    def __init__(
        self,
        work: Work,
        feature: int,
        missing: BoolArray,
        random: np.random.Generator,
        *,
        like: SweptColumn | None = None,
    ) -> None:
        self.work = work
        self.feature = feature
        self.random = random
        self.n_categories = work.design.n_categories[feature]
        self.holes = np.flatnonzero(missing)
        self.known = np.flatnonzero(~missing)
        self.truth = work.values[self.known, feature]
        self.target = self.truth if self.n_categories else work.design.scaled(feature, self.truth)
        self.inputs, self.reads, self.as_donors = like.way if like else self._choose_way()
        self.has_trees = bool(self.reads) and self.known.size > MIN_SPLIT
        # Draws of the coefficients and of the spread, each with its place among those of a sweep.
        self.kept: list[tuple[int, FloatArray, float]] = []
        self.trees: list[Forest] = []
        # Rows that each of the trees has seen.
        self.bags: list[BoolArray] = []
        self.votes = np.zeros((3, self.known.size))
        self.tree_chances = np.zeros((self.known.size, self.n_categories))
        self.linear_chances = np.zeros((self.known.size, self.n_categories))
        self.start: FloatArray | None = None
        self.drawn = np.empty(0)
        self.fit = Fit(np.empty(0), np.empty(0), np.empty(0), ())
        self.linear = 1.0
        self.forest_is_used = False
        self.pool, self.levels = np.empty(0), np.empty(0)
        self.shift = np.zeros(self.inputs.size)
        self.rest = np.empty(0)
        self.trust = Trust()

    @property
    def way(self) -> tuple[IntArray, tuple[int, ...], bool]:
        """What a regression and trees read, and whether observed values are drawn."""
        return self.inputs, self.reads, self.as_donors

    def _choose_way(self) -> tuple[IntArray, tuple[int, ...], bool]:
        return (
            _choose_inputs(self.work, self.feature, self.known, self.target),
            _choose_columns(self.work, self.feature, self.known, self.target),
            # Where a value makes up much of a column of numbers, observed values are drawn.
            not self.n_categories and has_frequent(self.truth),
        )

    def _read(self, rows: IntArray) -> FloatArray:
        return self.work.inputs.take(rows, axis=0).take(self.inputs, axis=1)

    def regress(self) -> None:
        """Regress the column on the others, and draw the coefficients."""
        inputs = self._read(self.known)
        self.fit = self._fit(inputs)
        self.drawn = self.fit.drawn
        if self.n_categories:
            self.start = self.fit.best
            self.linear_chances += category_chances(inputs @ self.fit.best, self.n_categories)
        else:
            self.rest = self._left_over(inputs, self.target)

    def _fit(self, inputs: FloatArray) -> Fit:
        if not self.n_categories:
            return fit_linear(inputs, self.target, self.random)
        return fit_logistic(inputs, self.target, self.n_categories, self.random, start=self.start)

    def keep(self, weights: FloatArray, products: Sequence[Products]) -> None:
        """Keep draws of the coefficients that belong together with those of other columns.

        A number is regressed in all rows, also in those where it was drawn: what its coefficients
        owe to the cells that happened to be drawn in other columns is then as uncertain as it is.
        Not so where most of it was drawn, for sweeps are too alike then, nor where it was drawn in
        another way than by the regression alone, which would make this one a little flatter.

        Parameters
        ----------
        weights : ndarray of shape (rows, draws)
            How often rows count, the same for all columns.
        products : sequence of callable
            For every draw, gives sums over rows of products of inputs.
        """
        mostly_drawn = self.known.size < LEAST_KNOWN * weights.shape[0]
        if self.n_categories or self.forest_is_used or self.as_donors or mostly_drawn:
            inputs = self._read(self.known)
            drawn = self._fit(inputs).reweighted(inputs, weights[self.known])
        else:
            some = np.append(self.inputs, self.work.design.places[self.feature].start)
            drawn = np.stack([solve_products(each(some), weights.shape[0]) for each in products])
        spreads = self._spreads(weights[self.known])
        self.kept.extend(zip(range(len(drawn)), drawn, spreads, strict=True))

    def _spreads(self, weights: FloatArray) -> list[float]:
        """Return by how much what is left over is larger if rows count more or less than once."""
        if self.n_categories:
            return [1.0] * weights.shape[1]
        squares = np.square(self.rest)
        usual = max(float(squares.mean()), 1e-300)
        found: list[float] = np.sqrt((squares @ weights) / weights.sum(axis=0) / usual).tolist()
        return [min(max(spread, 1 / MOST_SPREAD), MOST_SPREAD) for spread in found]

    def _left_over(self, inputs: FloatArray, target: FloatArray) -> FloatArray:
        left: FloatArray = (target - inputs @ self.fit.best) * self.fit.grow
        return left

    def start_trees(self, *, quick: bool = False) -> None:
        """Grow the first trees, and decide whether there are to be any.

        Parameters
        ----------
        quick : bool
            Whether to give up as soon as trees find nothing.
        """
        if self.known.size >= TREE_ROWS and not self.n_categories:
            self.has_trees = self.has_trees and self._promises()
        for number in range(FIRST_TREES):
            self.grow(1)
            if quick and number and not self.n_categories:
                # The first two may have bad luck.
                self.has_trees &= self._signal() > (HOPELESS if number == 1 else LITTLE)
        self.decide()

    def _promises(self) -> bool:
        """Whether a few small trees find something in what is left over."""
        order = self.random.permutation(self.known.size)
        parts = np.split(order, TRIAL_ROWS * np.arange(1, TRIAL_TREES + 1))
        for rows in parts[:-1]:
            self._try(self._grow_one(rows), parts[-1][: 2 * TRIAL_ROWS])
            signal = self._signal()
            if signal < HOPELESS:
                break
        self.votes = np.zeros_like(self.votes)
        return signal > LEAST_OF_TRIAL

    def grow(self, n_trees: int) -> None:
        """Grow trees on most rows, and let them say something about others."""
        if not self.has_trees:
            return
        size = self.known.size
        take = min(max(3, int(TREE_SHARE * size)), TREE_ROWS)
        for _ in range(n_trees):
            rows, others = np.split(self.random.permutation(size), [take])
            forest = self._grow_one(rows)
            bag = np.zeros(size, dtype=bool)
            bag[rows] = True
            self.trees = [*self.trees, forest][-KEPT_TREES:]
            self.bags = [*self.bags, bag][-KEPT_TREES:]
            if others.size:
                self._try(forest, others[:TREE_ROWS])

    def _grow_one(self, rows: IntArray) -> Forest:
        return Forest.grow(
            self._trees_read(rows),
            (self.truth if self.n_categories else self.rest)[rows],
            columns=self.reads,
            n_trees=1,
            seed=int(self.random.integers(2**31)),
            n_categories=self.n_categories,
            min_split=MIN_SPLIT,
        )

    def _trees_read(self, rows: IntArray) -> npt.NDArray[np.float32]:
        return self.work.scaled.take(self.known[rows], axis=0).take(self.reads, axis=1)

    def decide(self) -> None:
        """Decide whether trees have a say, by what they say about rows that they have not seen."""
        if not self.trees:
            return
        if self.n_categories:
            self.linear = self._linear_share()
            self.forest_is_used = self.linear < 1
        else:
            self.forest_is_used = self._signal() > LEAST_SIGNAL

    def look(self) -> None:
        """Look at what is left over now, where it depends on what was predicted."""
        if self.forest_is_used or self.as_donors:
            self._keep_pool()

    def _keep_pool(self) -> None:
        if not self.n_categories:
            self.pool, self.levels = self._pool(self._forest() if self.forest_is_used else None)

    def _try(self, forest: Forest, others: IntArray) -> None:
        """Note what a tree says about rows that it has not seen."""
        votes = forest.votes(self._trees_read(others))[:, 0]
        if self.n_categories:
            self.tree_chances[others, votes.astype(np.int64)] += 1
        else:
            self.votes[:, others] += np.stack([votes, np.abs(votes), np.ones(others.size)])

    def redraw(self) -> None:
        """Draw the holes of the column anew."""
        if not self.holes.size:
            return
        chance = self.random.random(self.holes.size)
        forest = self._forest() if self.forest_is_used else None
        read = None if forest is None else self.work.trees_read(forest, self.holes)
        linear = self._read(self.holes) @ self._shifted(self.drawn)
        if self.n_categories:
            values = choose_category(category_chances(linear, self.n_categories), chance)
            if forest is not None and read is not None:
                trees = self.random.random(chance.size) >= self.linear
                values[trees] = one_vote_each(forest, read[trees], chance[trees])
        else:
            size = np.ones(self.holes.size)
            if forest is not None and read is not None:
                more, size = self.trust.ask(forest, read)
                linear = linear + more
            if self.levels.size:
                alike = choose_alike(self.levels, linear, chance, closest=self.as_donors)
                values = self.pool[alike]
            else:
                values = self.random.choice(self.rest, self.holes.size)
            if not self.as_donors:
                values = self._undo(linear + values * size * (self.fit.spread / self.fit.grow))
        self.work.put(self.feature, self.holes, values)

    def redraw_like(self, other: SweptColumn) -> None:
        """Draw the holes of the column by what was learned from other rows of it."""
        self.start = other.start
        mine = {name: getattr(self, name) for name in LEARNED}
        for name in LEARNED:
            setattr(self, name, getattr(other, name))
        self.redraw()
        for name, value in mine.items():
            setattr(self, name, value)

    def _shifted(self, drawn: FloatArray) -> FloatArray:
        """Return coefficients that make up for what trees do to a regression."""
        return drawn if self.n_categories else drawn + self.shift

    def _undo(self, scaled: FloatArray) -> FloatArray:
        values = self.work.design.undo(self.feature, scaled)
        return np.clip(values, self.truth.min(), self.truth.max())

    def _forest(self) -> Forest:
        trees = [tree for each in self.trees for tree in each.trees]
        return Forest(trees, self.reads, self.n_categories)

    def result(self, low: float, high: float) -> ColumnDraws:
        """Return what is kept of the column."""
        self.decide()
        self._keep_pool()
        # A few imputations are to come from different sweeps.
        kept = sorted(self.kept, key=itemgetter(0))
        return ColumnDraws(
            self.inputs,
            self._shifted(np.stack([drawn for _, drawn, _ in kept])),
            np.array([spread for *_, spread in kept]),
            self.pool,
            self.levels,
            self._forest() if self.forest_is_used else None,
            0.0 if self.as_donors else self.linear,
            float(low),
            float(high),
            self.trust,
        )

    def _pool(self, forest: Forest | None) -> tuple[FloatArray, FloatArray]:
        """Return what is left over in observed cells, and what was predicted of them."""
        left, seen = self.rest, np.arange(self.rest.size)
        predicted = self._read(self.known) @ self.fit.best
        # Without trees there is nothing to make up for, though there may have been.
        self.shift, self.trust = np.zeros(self.inputs.size), Trust()
        if forest is not None:
            left, predicted, seen = self._left_by_trees(forest)
        if forest is None and not self.as_donors:
            left = np.sort(left)
            if left.size > MOST_POOL:
                levels = (np.arange(MOST_POOL) + 0.5) / MOST_POOL
                left = np.interp(levels * (left.size - 1), np.arange(left.size), left)
            return left, np.empty(0)
        if seen.size > MOST_POOL:
            some = self.random.permutation(seen.size)[:MOST_POOL]
            seen, left, predicted = seen[some], left[some], predicted[some]
        # Rows that are alike have one prediction, however it was rounded.
        predicted = np.round(predicted, 10)
        order = np.argsort(predicted, kind="stable")
        return (self.truth[seen] if self.as_donors else left)[order], predicted[order]

    def _left_by_trees(self, forest: Forest) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return what regression and trees leave over in cells that trees have not seen.

        And what they predict, and which cells these are.

        It is taken from one draw of the other cells of a row, as the cells to be drawn will be: a
        mean over draws would be closer to the truth.
        """
        rows = np.arange(self.known.size)
        if rows.size > MOST_POOL:
            rows = np.sort(self.random.permutation(rows)[:MOST_POOL])
        unseen = ~np.stack(self.bags, axis=1)[rows]
        count = unseen.sum(axis=1)
        some = np.flatnonzero(count > 1)
        if some.size < 2:
            some = np.flatnonzero(count > 0)
        rows, unseen = rows[some], unseen[some]
        inputs = self._read(self.known[rows])
        rest = self._left_over(inputs, self.target[rows])
        votes = forest.votes(self.work.trees_read(forest, self.known[rows]))
        found = what_is_left(rest, inputs, votes, unseen, self.random, entirely=self.as_donors)
        self.shift, self.trust = found.shift, found.trust
        if self.as_donors:
            # Values must not be told apart by how much closer more trees will come.
            mean = (votes * unseen).sum(axis=1) / unseen.sum(axis=1)
            predicted = inputs @ (self.fit.best + self.shift) + self.trust.share * mean
        else:
            predicted = self.target[rows] - rest + found.predicted
        return found.left, predicted, rows

    def _signal(self) -> float:
        """Return how what is left over depends on the other columns, in its mean or its size.

        That is the correlation with what trees say of rows that they have not seen, less what may
        be chance.
        """
        vote, size, count = self.votes
        seen = count > 0
        if seen.sum() < 20:
            return 0.0
        said, rest = vote[seen] / count[seen], self.rest[seen]
        if self.as_donors:
            # Values of like predictions differ as much as they should without trees, and what trees
            # say makes predictions worse unless it is close.
            gain = 1 - float(np.square(rest - said).mean() / max(np.square(rest).mean(), 1e-300))
            signal = float(np.sign(gain) * np.sqrt(abs(gain)))
        else:
            spread = correlation(size[seen] / count[seen], np.abs(rest))
            signal = max(correlation(said, rest), spread)
        return signal - 1.5 / float(np.sqrt(seen.sum()))

    def _linear_share(self) -> float:
        """Return how often to ask the regression rather than trees, by the probabilities given."""
        seen = self.tree_chances.sum(axis=1) > 0
        if seen.sum() < 20:
            return 1.0
        codes = self.truth[seen].astype(np.int64)
        trees = self.tree_chances[seen] + 0.5 / self.n_categories
        at = np.arange(codes.size), codes
        trees = (trees / trees.sum(axis=1, keepdims=True))[at]
        regression = self.linear_chances[seen]
        regression = (regression / np.maximum(regression.sum(axis=1, keepdims=True), 1e-9))[at]
        scores = [
            np.log(np.maximum(share * regression + (1 - share) * trees, 1e-6)).mean()
            for share in LINEAR_SHARES
        ]
        # Trees saw fewer rows than the regression did, but the regression saw these.
        certain = scores[-1] + 0.5 * self.inputs.size / seen.sum()
        return 1.0 if max(scores) < certain else float(LINEAR_SHARES[int(np.argmax(scores))])


def _strength(inputs: FloatArray, target: FloatArray, n_categories: int) -> FloatArray:
    """Return how much each input goes along with a column."""
    part = inputs - inputs.mean(axis=0)
    size = np.maximum(np.sqrt(np.square(part).sum(axis=0)), 1e-12)
    wanted = np.eye(n_categories)[target.astype(np.int64)] if n_categories else target[:, None]
    together: FloatArray = np.abs(part.T @ (wanted - wanted.mean(axis=0))).max(axis=1) / size
    return together


def _choose_inputs(work: Work, feature: int, known: IntArray, target: FloatArray) -> IntArray:
    """Return the inputs to regress a column on, the constant first."""
    others = work.design.others(feature)
    many = work.design.n_categories[feature] > MANY_CATEGORIES
    most = min(MOST_INPUTS_OF_MANY if many else MOST_INPUTS, max(1, known.size // 4))
    if others.size <= most:
        return others
    strength = _strength(work.inputs[known][:, others], target, work.design.n_categories[feature])
    strength[0] = np.inf
    return np.sort(others[np.argsort(-strength, kind="stable")[:most]])


def _choose_columns(
    work: Work, feature: int, known: IntArray, target: FloatArray
) -> tuple[int, ...]:
    """Return the columns that the trees of a column read."""
    others = np.delete(np.arange(work.scaled.shape[1]), feature)
    if others.size > MOST_INPUTS:
        read = work.scaled[known][:, others].astype(np.float64)
        strength = _strength(read, target, work.design.n_categories[feature])
        others = np.sort(others[np.argsort(-strength, kind="stable")[:MOST_INPUTS]])
    return tuple(others.tolist())
