"""One column while draws are learned: regressed on the others and drawn anew, sweep after sweep.

What is kept of it in the end, `ColumnDraws`, says in `grapefill.uncertainty.joint` how its cells
are drawn.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grapefill.uncertainty.choosing import choose_alike, choose_category, choose_donor, choose_vote
from grapefill.uncertainty.column_trees import KEPT_TREES, ColumnTrees
from grapefill.uncertainty.design import closest_of, has_frequent, values_of_list
from grapefill.uncertainty.groups import Effects, Groups
from grapefill.uncertainty.joint import ColumnDraws, Work
from grapefill.uncertainty.logistic import Odds, category_chances, fit_logistic
from grapefill.uncertainty.reach import Bend, Ends, Reach, reach_of
from grapefill.uncertainty.regression import Fit, fit_linear, solve_products
from grapefill.uncertainty.relevant import choose_columns, choose_inputs
from grapefill.uncertainty.remainders import Trust, what_is_left

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grapefill.table.arrays import BoolArray, FloatArray, IntArray
    from grapefill.trees.forest import Forest

    Products = Callable[[IntArray], FloatArray]
    """From some inputs to the sums over rows of their products."""

# So many remainders are looked at during the sweeps, and kept of a column in the end: what is rare
# and far out should be as rare in draws.
MOST_POOL, KEPT_POOL = 2_000, 8_000
# Share of a column that is known, from which on draws are kept that look at all of its rows.
LEAST_KNOWN = 0.5
# What is left over is no more than so many times larger in one draw than usual.
MOST_SPREAD = 2.0
# What a regression says of categories is tried on such a part of the cells, fitted to the others.
PARTS = 3
# How wide the priors of its coefficients are is found out anew after so many regressions.
PER_WIDTH = 5
# Standard errors by which predictions may differ that are taken to be the same, and how far these
# may be off at most, in units of what is left over.
BLUR, MOST_BLUR = 2.0, 0.3
# What holes are drawn by.
LEARNED = ("drawn", "fit", "rest", "pool", "levels", "trees", "shift", "trust", "groups")
# How often observed cells are drawn to see what becomes of a curved column.
AGAIN = 10
# How often coefficients and effects of groups are worked out by turns in the first regression.
FIRST_TURNS = 3


class Kept(NamedTuple):
    """A draw of what a column is drawn by.

    Parameters
    ----------
    place : int
        Its place among those of a sweep.
    coefficients : ndarray of shape (inputs,) or (inputs, categories - 1)
        Those of the regression.
    spread : float
        By how much larger than usual is what it leaves over.
    effects : list of ndarray
        Those of every group.
    """

    place: int
    coefficients: FloatArray
    spread: float
    effects: list[FloatArray]


class SweptColumn:
    """One column during the sweeps.

    Parameters
    ----------
    work : Work
        The rows, with the cells of all columns as they are by then.
    feature : int
        The column.
    missing : ndarray of bool, shape (rows, features)
        The holes of all columns.
    random : Generator
        Source of all randomness.
    may_exceed : bool
        Whether numbers may be drawn that are beyond the observed ones; see `reach_of`.
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
        may_exceed: bool = False,
        like: SweptColumn | None = None,
    ) -> None:
        self.work = work
        self.may_exceed: bool = like.may_exceed if like else may_exceed
        self.feature = feature
        self.random = random
        self.n_categories = work.design.n_categories[feature]
        self.groups = Groups(work.design, feature, missing, random)
        self.holes = np.flatnonzero(missing[:, feature])
        self.known = np.flatnonzero(~missing[:, feature] & self.groups.told(missing))
        self.truth = work.values[self.known, feature]
        self.target = self.truth if self.n_categories else work.design.scaled(feature, self.truth)
        self.inputs, self.reads, self.as_donors = like.way if like else self._choose_way()
        self.kept: list[Kept] = []
        self.trees = ColumnTrees(
            work,
            self.known,
            self.truth,
            reads=self.reads,
            n_categories=self.n_categories,
            as_donors=self.as_donors,
            # Its own, for trees of several columns grow at the same time.
            random=random.spawn(1)[0],
        )
        self.values = np.empty(0)
        if not self.n_categories and not self.as_donors:
            self.values = like.values if like else values_of_list(self.truth)
        self.regressions = 0
        # The most probable ones of every sweep since coefficients are kept.
        self.best: list[FloatArray] = []
        self.drawn = np.empty(0)
        # Of numbers and of categories.
        self.fit = Fit(np.empty(0), np.empty(0), np.empty(0), np.empty(0))
        self.odds: Odds | None = None
        self.pool, self.levels = np.empty(0), np.empty(0)
        # What goes with them: the observed values, and the sizes of what is left over.
        self.seen, self.sizes = self.truth, np.empty(0)
        self.shift = np.zeros(self.inputs.size)
        self.rest = np.empty(0)
        self.trust = Trust()
        self.ends = Ends(Reach(float(self.truth.min()), float(self.truth.max())))

    @property
    def way(self) -> tuple[IntArray, tuple[int, ...], bool]:
        """What a regression and trees read, and whether observed values are drawn."""
        return self.inputs, self.reads, self.as_donors

    def _choose_way(self) -> tuple[IntArray, tuple[int, ...], bool]:
        return (
            choose_inputs(self.work, self.feature, self.known, self.target),
            choose_columns(self.work, self.feature, self.known, self.target),
            # Where a value makes up much of a column of numbers, observed values are drawn.
            not self.n_categories and has_frequent(self.truth),
        )

    def _read(self, rows: IntArray) -> FloatArray:
        return self.work.inputs.take(rows, axis=0).take(self.inputs, axis=1)

    def regress(self) -> None:
        """Regress the column on the others, and draw the coefficients."""
        inputs = self._read(self.known)
        self.regressions += 1
        if self.n_categories:
            self.odds = self._fit_odds(inputs, self.target)
            # Rows that count more or less often keep apart what they all tell apart; a normal
            # around coefficients of which little is known but that they are large does not.
            weights = self.random.exponential(size=(self.known.size, 1))
            self.drawn = self.odds.reweighted(inputs, weights)[0]
            return
        first = self.regressions == 1
        # How wide priors are changes little from one sweep to the next.
        self.fit = self._fit(inputs, anew=self.regressions % PER_WIDTH == 1)
        self.drawn = self.fit.drawn
        if self.kept:
            self.best.append(self.fit.best)
        if self.groups:
            self._regroup(inputs, FIRST_TURNS if first else 1)
        self.rest = self.trees.rest = self._left_over(inputs, self._alone())
        if not self.as_donors and (self.is_curved or (first and not self.values.size)):
            redrawn = self._redrawn()
            # A curved scale may turn a little more into a multiple.
            if first and self.may_exceed and not self.is_curved:
                self.ends = Ends(reach_of(self.truth, redrawn))
            self.ends = Ends(self.ends.reach, *self._bends(redrawn))

    def _regroup(self, inputs: FloatArray, turns: int) -> None:
        """Draw the effects of groups, and coefficients given these, by turns."""
        for turn in range(turns):
            if turn:
                self.fit = self._fit(inputs)
                self.drawn = self.fit.drawn
            error = float(np.square(self.fit.left).mean()) * self.fit.grow**2
            left = self._alone() - inputs @ self.drawn
            self.groups.redraw(self.work.values, self.known, left, error)

    def _common(self, rows: IntArray) -> FloatArray:
        """Return what groups add in some rows."""
        return self.groups.of(self.work.values, rows)

    def _alone(self) -> FloatArray:
        """Return the observed numbers without what groups add."""
        return self.target - self._common(self.known) if self.groups else self.target

    def try_regression(self) -> None:
        """Let the trees hear what regressions say of categories that they have not seen."""
        if not self.n_categories or self.known.size < PARTS:
            return
        inputs = self._read(self.known)
        part = self.random.permutation(self.known.size) % PARTS
        chances = np.empty((self.known.size, self.n_categories))
        for number in range(PARTS):
            others, mine = part != number, part == number
            odds = self._fit_odds(inputs[others], self.target[others])
            chances[mine] = category_chances(inputs[mine] @ odds.best, self.n_categories)
        self.trees.hear_regression(chances)

    def _fit(self, inputs: FloatArray, *, anew: bool = False) -> Fit:
        """Regress numbers, perhaps with priors whose widths are found out anew."""
        widths = None if anew else self.fit.widths
        return fit_linear(inputs, self._alone(), self.random, widths=widths)

    def _fit_odds(self, inputs: FloatArray, codes: FloatArray) -> Odds:
        """Regress categories."""
        return fit_logistic(inputs, codes, self.n_categories, near=self.odds)

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
        by_more = self.trees.are_used or self.as_donors or bool(self.groups)
        if self.n_categories:
            inputs = self._read(self.known)
            drawn = self._fit_odds(inputs, self.target).reweighted(inputs, weights[self.known])
        elif by_more or mostly_drawn:
            inputs = self._read(self.known)
            drawn = self._fit(inputs).reweighted(inputs, weights[self.known], self.random)
        else:
            drawn = self._regressed_everywhere(products, weights.shape[0])
        effects = self._effects(drawn)
        spreads = self._spreads(weights[self.known])
        self.kept.extend(map(Kept, range(len(drawn)), drawn, spreads, effects))

    def _regressed_everywhere(self, products: Sequence[Products], rows: int) -> FloatArray:
        """Return coefficients of regressions in all rows, by sums of products of inputs."""
        some = np.append(self.inputs, self.work.design.places[self.feature].start)
        size = float(np.sqrt(np.square(self.rest).mean()))
        errors = size * self.random.standard_normal((len(products), self.inputs.size))
        return np.stack(
            [
                solve_products(each(some), rows, widths=self.fit.widths, errors=error)
                for each, error in zip(products, errors, strict=True)
            ]
        )

    def _effects(self, drawn: FloatArray) -> list[list[FloatArray]]:
        """Draw the effects of all groups for each of some draws of the coefficients."""
        if not self.groups:
            return [[]] * len(drawn)
        values, inputs, alone = self.work.values, self._read(self.known), self._alone()
        error = float(np.square(self.rest).mean())
        return [
            self.groups.draw(values, self.known, alone - inputs @ beta, error) for beta in drawn
        ]

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

    def look(self) -> None:
        """Look at what is left over now, where it depends on what was predicted."""
        if self.trees.are_used or self.as_donors:
            self._keep_pool()

    def _keep_pool(self, most: int = MOST_POOL) -> None:
        if not self.n_categories:
            self.pool, self.levels = self._pool(
                self.trees.forest() if self.trees.are_used else None, most
            )

    def redraw(self) -> None:
        """Draw the holes of the column anew."""
        if not self.holes.size:
            return
        chance = self.random.random(self.holes.size)
        forest = self.trees.forest() if self.trees.are_used else None
        read = None if forest is None else self.work.trees_read(forest, self.holes)
        linear = self._read(self.holes) @ self._shifted(self.drawn)
        if self.groups:
            linear = linear + self._common(self.holes)
        if self.n_categories:
            values = choose_category(category_chances(linear, self.n_categories), chance)
            if forest is not None and read is not None:
                asked = self.random.random(chance.size) >= self.trees.linear
                values[asked] = choose_vote(
                    forest, read[asked], chance[asked], self.trees.sharpness
                )
        else:
            size = np.ones(self.holes.size)
            if forest is not None and read is not None:
                more, size = self.trust.ask(forest, read, int(self.random.integers(KEPT_TREES)))
                linear = linear + more
            if self.levels.size:
                values = self.pool[self._choose(linear, chance)]
            else:
                values = self.random.choice(self.rest, self.holes.size)
            if not self.as_donors:
                values = self._undo(linear + values * size * (self.fit.spread / self.fit.grow))
        self.work.put(self.feature, self.holes, values)

    def _choose(self, predicted: FloatArray, chance: FloatArray) -> IntArray:
        """Choose observed cells of about the same prediction."""
        if not self.as_donors:
            return choose_alike(self.levels, predicted, chance)
        observed = self.work.design.scaled(self.feature, self.pool)
        return choose_donor(observed, self.levels, predicted, chance, self.blur)

    @property
    def blur(self) -> float:
        """Which difference of two predictions tells nothing, in units of how far these are off."""
        # So many coefficients for every row.
        share = max(0.0, 1 - self.fit.grow**-2)
        return min(BLUR * float(np.sqrt(share)), MOST_BLUR)

    def redraw_like(self, other: SweptColumn) -> None:
        """Draw the holes of the column by what was learned from other rows of it."""
        self.odds = other.odds
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
        values = self.ends.apply(self.work.design.undo(self.feature, scaled))
        return closest_of(self.values, values) if self.values.size else values

    def result(self, low: float, high: float) -> ColumnDraws:
        """Return what is kept of the column, whose observed numbers have some range."""
        self.try_regression()
        self.trees.decide()
        self._keep_pool(KEPT_POOL)
        # A few imputations are to come from different sweeps.
        kept = sorted(self.kept, key=attrgetter("place"))
        return ColumnDraws(
            self.inputs,
            self._shifted(self._centred(np.stack([each.coefficients for each in kept]))),
            np.array([each.spread for each in kept]),
            self.pool,
            self.levels,
            self.trees.forest() if self.trees.are_used else None,
            0.0 if self.as_donors else self.trees.linear,
            float(min(low, self.ends.reach.low)),
            float(max(high, self.ends.reach.high)),
            self.trust,
            self.trees.sharpness,
            self.values,
            self._bends(),
            self.blur,
            tuple(
                Effects(group.feature, np.stack([each.effects[at] for each in kept]))
                for at, group in enumerate(self.groups.each)
            ),
        )

    def _centred(self, drawn: FloatArray) -> FloatArray:
        """Return coefficients around what the regressions of all sweeps say on average.

        The mean of so few draws is off by chance, and so would be whatever is averaged over tables
        that are drawn by them.
        """
        # Effects of groups were drawn beside the coefficients as they are.
        if self.n_categories or self.groups or not self.best:
            return drawn
        centred: FloatArray = drawn + (np.mean(self.best, axis=0) - drawn.mean(axis=0))
        return centred

    def _bends(self, redrawn: FloatArray | None = None) -> tuple[Bend, Bend]:
        """Return what becomes of draws, as they are drawn by now."""
        if self.n_categories or self.as_donors or (self.values.size and not self.is_curved):
            return Bend(), Bend()
        redrawn = self._redrawn() if redrawn is None else redrawn
        if self.is_curved:
            return Bend.matching(self.seen, redrawn), Bend()
        return Ends.of(self.truth, redrawn, self.ends.reach)[1:]

    def _redrawn(self) -> FloatArray:
        """Return draws of observed cells, of a curved column several of each."""
        if not self.is_curved:
            return self.work.design.undo(self.feature, self._draw_again())
        # Of a scale that is right, draws are as far apart as observed values.
        again = [self._draw_again(1 / self.fit.grow) for _ in range(AGAIN)]
        return self.work.design.undo(self.feature, np.concatenate(again))

    def _draw_again(self, size: float = 1.0) -> FloatArray:
        if self.levels.size:
            chance = self.random.random(self.levels.size)
            left = self.pool[choose_alike(self.levels, self.levels, chance)] * self.sizes
            expected = self.levels
        else:
            left = self.random.permutation(self.rest)
            expected = self.target - self.rest / self.fit.grow
        again: FloatArray = expected + size * left
        return again

    @property
    def is_curved(self) -> bool:
        """Whether the column is regressed on a curved scale."""
        return self.feature in self.work.design.curves

    def _pool(self, forest: Forest | None, most: int) -> tuple[FloatArray, FloatArray]:
        """Return what is left over in observed cells, and what was predicted of them."""
        left, seen = self.rest, np.arange(self.rest.size)
        predicted = self._read(self.known) @ self.fit.best + self._common(self.known)
        # Without trees there is nothing to make up for, though there may have been.
        self.shift, self.trust = np.zeros(self.inputs.size), Trust()
        sizes = np.ones(seen.size)
        if forest is not None:
            left, predicted, seen, sizes = self._left_by_trees(forest, most)
        if forest is None and not self.as_donors:
            left = np.sort(left)
            if left.size > most:
                levels = (np.arange(most) + 0.5) / most
                left = np.interp(levels * (left.size - 1), np.arange(left.size), left)
            self.seen = self.truth
            return left, np.empty(0)
        if seen.size > most:
            some = self.random.permutation(seen.size)[:most]
            seen, left, predicted, sizes = seen[some], left[some], predicted[some], sizes[some]
        # Rows that are alike have one prediction, however it was rounded.
        predicted = np.round(predicted, 10)
        order = np.argsort(predicted, kind="stable")
        self.seen, self.sizes = self.truth[seen][order], sizes[order]
        return (self.seen if self.as_donors else left[order]), predicted[order]

    def _left_by_trees(
        self, forest: Forest, most: int
    ) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
        """Return what regression and trees leave over in cells that trees have not seen.

        And what they predict, which cells these are, and how large it is expected to be.

        It is taken from one draw of the other cells of a row, as the cells to be drawn will be: a
        mean over draws would be closer to the truth.
        """
        rows = np.arange(self.known.size)
        if rows.size > most:
            rows = np.sort(self.random.permutation(rows)[:most])
        unseen = self.trees.unseen(rows)
        count = unseen.sum(axis=1)
        some = np.flatnonzero(count > 1)
        if some.size < 2:
            some = np.flatnonzero(count > 0)
        rows, unseen = rows[some], unseen[some]
        inputs = self._read(self.known[rows])
        rest = self._left_over(inputs, self._alone()[rows])
        votes = forest.votes(self.work.trees_read(forest, self.known[rows]))
        asked, entirely = self.trees.asked, self.as_donors
        found = what_is_left(
            rest, inputs, votes, unseen, self.random, asked=asked, entirely=entirely
        )
        self.shift, self.trust = found.shift, found.trust
        if self.as_donors:
            mean = (votes * unseen).sum(axis=1) / unseen.sum(axis=1)
            predicted = inputs @ (self.fit.best + self.shift) + self.trust.share * mean
            predicted = predicted + self._common(self.known[rows])
        else:
            predicted = self.target[rows] - rest + found.predicted
        return found.left, predicted, rows, found.sizes
