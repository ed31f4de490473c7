"""How a chain of forests is grown, round after round and column after column."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from grapefill.trees.chain import Chain, labels_first
from grapefill.trees.forest import Forest
from grapefill.trees.guess import Guess
from grapefill.trees.lines import LineForest
from grapefill.trees.work import MOST_INPUTS, RowsInWork, threads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Executor

    import numpy.typing as npt

    from grapefill.table import Scaling
    from grapefill.table.arrays import FloatArray
    from grapefill.trees.config import ForestConfig

FEWEST_TO_SPLIT = 3
# A column with more categories than that is left to the network.
MOST_CATEGORIES = 64
# With more inputs than that, lines would cost more than trees.
MOST_LINE_INPUTS = 32
# A column with a value that makes up so much of it has votes for that value, not lines.
MOST_REPEATED = 0.05


@dataclass
class Growth:
    """How a chain is grown.

    Parameters
    ----------
    config : ForestConfig
        How many trees.
    n_categories : tuple of int
        For every feature, 0 for numbers or the number of categories.
    scaling : Scaling
        How numbers are scaled before the trees read them.
    seed : int
        Source of all randomness.
    deadline : float or None
        ``time.perf_counter()`` by which to be done; rounds that would not make it are left out.
    report : callable or None
        Called after every forest with how many are done and how many are planned.
    weights : dict of int to ndarray of shape (rows,)
        For a feature whose cells do not all count the same, how much they do, above 0.
    n_labels : int
        How many of the features, the last ones, are labels.
    """

    config: ForestConfig
    n_categories: tuple[int, ...]
    scaling: Scaling
    seed: int
    deadline: float | None = None
    report: Callable[[int, int], None] | None = None
    weights: Mapping[int, FloatArray] = field(default_factory=dict)
    n_labels: int = 0

    def __post_init__(self) -> None:
        self._watch = _Watch()

    def grow(
        self,
        numbers: FloatArray,
        guess: Guess,
        shares: FloatArray,
        *,
        trimmed: npt.NDArray[np.bool_] | None = None,
        smooth: npt.NDArray[np.bool_] | None = None,
        plan: Sequence[int] | None = None,
    ) -> tuple[Chain, Guess]:
        """Grow a chain on some rows and return it with what it says about their holes.

        Parameters
        ----------
        numbers : ndarray of shape (rows, features)
            Encoded rows, NaN where a cell is not observed.
        guess : Guess
            What the network says about them.
        shares : ndarray of shape (features,)
            The weight of the network in every feature; where it is 1 no trees are grown, nor for
            a feature of more than 64 categories, or without any observed cell.
        trimmed : ndarray of bool, shape (features,), or None
            Whether the votes on a feature are averaged without their extremes; None for all.
        smooth : ndarray of bool, shape (features,), or None
            Whether the trees of a feature have lines in their leaves; None for none.
        plan : sequence of int or None
            Trees per column in every round; None for the plan of the configuration.
        """
        plan = self.config.plan if plan is None else tuple(plan)
        trimmed = np.ones(shares.size, dtype=bool) if trimmed is None else trimmed
        smooth = np.zeros(shares.size, dtype=bool) if smooth is None else smooth
        work = RowsInWork(numbers, guess, shares, trimmed, self.scaling)
        columns = [
            j
            for j in range(numbers.shape[1])
            if shares[j] < 1
            and self.n_categories[j] <= MOST_CATEGORIES
            and not work.missing[:, j].all()
        ]
        columns = labels_first(columns, shares.size, self.n_labels)
        rounds: list[dict[int, Forest]] = []
        seeds = iter(np.random.SeedSequence(self.seed).generate_state(len(plan) * len(columns)))
        # A tree has about four nodes for as many rows as a node needs to be split.
        voting = [j for j in columns if not smooth[j]]
        nodes = 4 * sum(plan) * int((~work.missing[:, voting]).sum())
        min_split = max(FEWEST_TO_SPLIT, -(-nodes // self.config.most_nodes))
        self._watch.start()
        with threads() as pool:
            for at in range(len(plan)):
                trees = {j: self._trees(plan, at, j) for j in columns}
                if not self._watch.allows(sum(trees.values()), self.deadline):
                    break
                forests: dict[int, Forest] = {}
                for j, mine in trees.items():
                    if not self._watch.allows(mine, self.deadline):
                        break
                    forests[j] = self._grow_one(
                        work,
                        j,
                        int(next(seeds)),
                        pool,
                        smooth=bool(smooth[j]),
                        n_trees=mine,
                        min_split=min_split,
                    )
                    work.refine(j, forests[j], pool)
                    self._watch.grown(mine)
                    if self.report is not None:
                        done = len(rounds) * len(columns) + len(forests)
                        self.report(done, len(plan) * len(columns))
                rounds.append(forests)
        ones = np.ones(shares.size)
        return Chain(rounds, shares, trimmed, self.scaling, ones, self.n_labels), work.guess

    def _trees(self, plan: Sequence[int], at: int, feature: int) -> int:
        """Return how many trees a feature has in a round."""
        if at < len(plan) - 1:
            # All rows to predict go through these, and few trees will do.
            return -(-plan[at] // 2) if self.n_labels else plan[at]
        label = feature >= len(self.n_categories) - self.n_labels
        return max(plan[at], self.config.label_trees) if label else plan[at]

    def try_lines(
        self, numbers: FloatArray, guess: Guess, held_out: npt.NDArray[np.bool_]
    ) -> tuple[Guess, dict[int, Forest]] | None:
        """Return what trees with lines say about held-out cells of columns of numbers.

        Parameters
        ----------
        numbers : ndarray of shape (rows, features)
            Encoded rows, NaN where a cell is not observed or held out.
        guess : Guess
            What is believed about them so far, which the trees read.
        held_out : ndarray of bool, shape (rows, features)
            The cells.

        Returns
        -------
        (Guess, dict of int to Forest) or None
            The guess with these cells replaced, and the trees by feature; None if there is no time
            for them, or they are not wanted.
        """
        n_trees = self.config.line_trees
        columns = [j for j in range(numbers.shape[1]) if not self.n_categories[j]]
        columns = [j for j in columns if held_out[:, j].any() and _varies(numbers[:, j])]
        if not n_trees or min(numbers.shape[1] - 1, MOST_INPUTS) > MOST_LINE_INPUTS:
            return None
        none = np.zeros(numbers.shape[1])
        work = RowsInWork(numbers, guess, none, none == 0, self.scaling)
        value, spread = guess.value.copy(), work.spread
        seeds = np.random.SeedSequence((self.seed, 1)).generate_state(len(columns))
        forests: dict[int, Forest] = {}
        with threads() as pool:
            for j, seed in zip(columns, seeds, strict=True):
                if not self._watch.allows(n_trees, self.deadline):
                    return None
                forests[j] = self._grow_one(work, j, int(seed), pool, smooth=True)
                rows = np.flatnonzero(held_out[:, j])
                middle = forests[j].middle(work.inputs(rows, forests[j].columns), pool)
                value[rows, j], spread[rows, j] = middle.trimmed, middle.spread
        return Guess(value, guess.chances, value, spread), forests

    def _without_labels(self, columns: tuple[int, ...], feature: int) -> tuple[int, ...]:
        """Return what trees of a label read: no other label, which nobody knows when predicting."""
        first = len(self.n_categories) - self.n_labels
        if feature < first:
            return columns
        return tuple(column for column in columns if column < first) or columns

    def _grow_one(
        self,
        work: RowsInWork,
        feature: int,
        seed: int,
        pool: Executor | None,
        *,
        smooth: bool,
        n_trees: int = 0,
        min_split: int = FEWEST_TO_SPLIT,
    ) -> Forest:
        known = np.flatnonzero(~work.missing[:, feature])
        columns = self._without_labels(work.inputs_for(feature), feature)
        inputs, target = work.inputs(known, columns), work.values[known, feature]
        weights = self.weights[feature][known] if feature in self.weights else None
        if smooth:
            return LineForest.fit(
                inputs,
                target,
                columns=columns,
                n_trees=self.config.line_trees,
                seed=seed,
                weights=weights,
                pool=pool,
            )
        return Forest.grow(
            inputs,
            target,
            columns=columns,
            n_trees=n_trees,
            seed=seed,
            guide=work.scaled[known, feature].astype(np.float64),
            n_categories=self.n_categories[feature],
            input_share=self.config.input_share,
            min_split=min_split,
            weights=weights,
            pool=pool,
        )


class _Watch:
    """Whether there is time for more trees, judged by those grown so far."""

    def __init__(self) -> None:
        self.trees = 0
        self.seconds = 0.0
        self.last = 0.0

    def start(self) -> None:
        self.last = time.perf_counter()

    def grown(self, trees: int) -> None:
        now = time.perf_counter()
        self.trees += trees
        self.seconds += now - self.last
        self.last = now

    def allows(self, trees: int, deadline: float | None) -> bool:
        if deadline is None:
            return True
        per_tree = self.seconds / max(1, self.trees)
        return time.perf_counter() + trees * per_tree <= deadline


def _varies(column: FloatArray) -> bool:
    """Whether a column has values, and none of them again and again."""
    known = column[~np.isnan(column)]
    if not known.size:
        return False
    most = np.unique(known, return_counts=True)[1].max()
    return bool(most < max(2, MOST_REPEATED * known.size))
