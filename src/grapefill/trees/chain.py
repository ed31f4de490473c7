"""Rounds of forests that refine the network's guesses, column by column.

The holes start with what the network says. In every round each column in turn is predicted from
all others as they are by then, and its holes are filled with a blend of network and forest. Other
than in chained equations, the start is good, so that few rounds will do, and a column that the
trees cannot predict keeps what the network says.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from grapefill.table.scaling import FARTHEST
from grapefill.trees.forest import Forest
from grapefill.trees.guess import Guess, sharpen
from grapefill.trees.lines import LineForest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Executor

    import numpy.typing as npt

    from grapefill.table import Scaling
    from grapefill.table.arrays import FloatArray
    from grapefill.trees.config import ForestConfig

FEWEST_TO_SPLIT = 3
# A column with more categories than that is left to the network.
MOST_CATEGORIES = 64
# A column is predicted from so many others, the ones it goes along with most.
MOST_INPUTS = 64
# With more inputs than that, lines would cost more than trees.
MOST_LINE_INPUTS = 32
# A column with a value that makes up so much of it has votes for that value, not lines.
MOST_REPEATED = 0.05
# What a chain has one of for every feature.
OF_FEATURES = ("shares", "trimmed", "powers")


@dataclass
class Chain:
    """Forests for every column, in rounds.

    Parameters
    ----------
    rounds : list of dict of int to Forest
        For every round, the forests by feature.
    shares : ndarray of shape (features,)
        The weight of the network in the blend of every feature; the rest is the trees'.
    trimmed : ndarray of bool, shape (features,)
        Whether the votes on a feature are averaged without their extremes.
    scaling : Scaling
        How numbers are scaled before the trees read them.
    powers : ndarray of shape (features,)
        What the probabilities of categories are raised to in the end; see `sharpen`.
    n_labels : int
        How many of the features, the last ones, are labels. They come first in every round, so
        that who asks for them alone need not wait for the last round of the others.
    """

    rounds: list[dict[int, Forest]]
    shares: FloatArray
    trimmed: npt.NDArray[np.bool_]
    scaling: Scaling
    powers: FloatArray
    n_labels: int = 0

    def refine(self, numbers: FloatArray, guess: Guess, *, labels_only: bool = False) -> Guess:
        """Return better guesses for the cells that are missing.

        Parameters
        ----------
        numbers : ndarray of shape (rows, features)
            Encoded rows, NaN where a cell is not observed.
        guess : Guess
            What the network says about them.
        labels_only : bool
            Whether only the labels matter.
        """
        rounds = self._rounds_for_labels() if labels_only else self.rounds
        work = _Work(numbers, guess, self.shares, self.trimmed, self.scaling)
        with _threads() as pool:
            for forests in rounds:
                for feature, forest in forests.items():
                    work.refine(feature, forest, pool)
        for feature in set(work.chances) & set(np.flatnonzero(self.powers != 1).tolist()):
            chances, holes = work.chances[feature], work.missing[:, feature]
            chances[holes] = sharpen(chances[holes], self.powers[feature])
        return work.guess

    def votes(self, values: FloatArray, feature: int) -> FloatArray:
        """Return what every tree of the last forest for a feature says, shape (rows, trees).

        Parameters
        ----------
        values : ndarray of shape (rows, features)
            Rows whose holes are filled.
        feature : int
            Whose trees are asked; without any there are no votes.
        """
        found = [forests[feature] for forests in self.rounds if feature in forests]
        if not found or not values.shape[0]:
            return np.empty((values.shape[0], len(found[-1].trees) if found else 0))
        inputs = _readable(self.scaling.apply(values)).take(found[-1].columns, axis=1)
        with _threads() as pool:
            return found[-1].votes(inputs, pool)

    def _rounds_for_labels(self) -> list[dict[int, Forest]]:
        """Return the rounds up to the last trees of a label."""
        first = self.shares.size - self.n_labels
        for number in reversed(range(len(self.rounds))):
            last = {j: forest for j, forest in self.rounds[number].items() if j >= first}
            if last:
                return [*self.rounds[:number], last]
        return []

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the chain as plain arrays, by name, for a model file."""
        named: dict[str, npt.NDArray[Any]] = {name: getattr(self, name) for name in OF_FEATURES}
        for number, forests in enumerate(self.rounds):
            for feature, forest in forests.items():
                prefix = f"{number}.{feature}."
                named |= {prefix + name: array for name, array in forest.arrays().items()}
                named[prefix + "columns"] = np.array(forest.columns, dtype=np.int32)
        return named

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, npt.NDArray[Any]],
        n_categories: tuple[int, ...],
        scaling: Scaling,
        n_labels: int = 0,
    ) -> Chain:
        """Rebuild a chain from `arrays`; raises ValueError if they are no chain."""
        shares = arrays["shares"]
        if shares.shape != (len(n_categories),):
            raise ValueError(f"there are {shares.size} shares for {len(n_categories)} features")
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError("a share is not between 0 and 1")
        trimmed = arrays["trimmed"]
        if trimmed.shape != shares.shape or trimmed.dtype != np.bool_:
            raise ValueError("it is not known which votes are trimmed")
        powers = arrays["powers"]
        if powers.shape != shares.shape or not (powers > 0).all() or np.isinf(powers).any():
            raise ValueError("the powers of the probabilities are not what they should be")
        found: dict[tuple[int, int], dict[str, npt.NDArray[Any]]] = {}
        for name, array in arrays.items():
            if name not in OF_FEATURES:
                number, feature, part = name.split(".")
                found.setdefault((int(number), int(feature)), {})[part] = array
        rounds: list[dict[int, Forest]] = []
        for (at, j), parts in sorted(found.items()):
            if at == len(rounds):
                rounds.append({})
            if at != len(rounds) - 1:
                raise ValueError("a round is missing")
            columns = tuple(parts.pop("columns").tolist())
            if not {j, *columns} <= set(range(len(n_categories))):
                raise ValueError("a forest reads columns that are not there")
            kind = LineForest if "slope" in parts else Forest
            rounds[at][j] = kind.from_arrays(parts, columns, n_categories[j])
        rounds = [
            {j: forests[j] for j in _labels_first(forests, len(n_categories), n_labels)}
            for forests in rounds
        ]
        return cls(rounds, shares, trimmed, scaling, powers, n_labels)


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
        work = _Work(numbers, guess, shares, trimmed, self.scaling)
        columns = [
            j
            for j in range(numbers.shape[1])
            if shares[j] < 1
            and self.n_categories[j] <= MOST_CATEGORIES
            and not work.missing[:, j].all()
        ]
        columns = _labels_first(columns, shares.size, self.n_labels)
        rounds: list[dict[int, Forest]] = []
        seeds = iter(np.random.SeedSequence(self.seed).generate_state(len(plan) * len(columns)))
        # A tree has about four nodes for as many rows as a node needs to be split.
        voting = [j for j in columns if not smooth[j]]
        nodes = 4 * sum(plan) * int((~work.missing[:, voting]).sum())
        min_split = max(FEWEST_TO_SPLIT, -(-nodes // self.config.most_nodes))
        self._watch.start()
        with _threads() as pool:
            for n_trees in plan:
                if not self._watch.allows(n_trees * len(columns), self.deadline):
                    break
                forests: dict[int, Forest] = {}
                for j in columns:
                    mine = n_trees
                    if j >= shares.size - self.n_labels:
                        # Every row asks for them: few trees until the round where they are read.
                        last = len(rounds) == len(plan) - 1
                        mine = max(n_trees, self.config.label_trees) if last else -(-n_trees // 2)
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
        work = _Work(numbers, guess, none, none == 0, self.scaling)
        value, spread = guess.value.copy(), work.spread
        seeds = np.random.SeedSequence((self.seed, 1)).generate_state(len(columns))
        forests: dict[int, Forest] = {}
        with _threads() as pool:
            for j, seed in zip(columns, seeds, strict=True):
                if not self._watch.allows(n_trees, self.deadline):
                    return None
                forests[j] = self._grow_one(work, j, int(seed), pool, smooth=True)
                rows = np.flatnonzero(held_out[:, j])
                middle = forests[j].middle(work.inputs(rows, forests[j].columns), pool)
                value[rows, j], spread[rows, j] = middle.trimmed, middle.spread
        return Guess(value, guess.chances, value, spread), forests

    def _grow_one(
        self,
        work: _Work,
        feature: int,
        seed: int,
        pool: Executor | None,
        *,
        smooth: bool,
        n_trees: int = 0,
        min_split: int = FEWEST_TO_SPLIT,
    ) -> Forest:
        known = np.flatnonzero(~work.missing[:, feature])
        columns = work.inputs_for(feature)
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

    def __post_init__(self) -> None:
        self._watch = _Watch()


class _Work:
    """Rows whose holes are being filled."""

    def __init__(
        self,
        numbers: FloatArray,
        guess: Guess,
        shares: FloatArray,
        trimmed: npt.NDArray[np.bool_],
        scaling: Scaling,
    ) -> None:
        # Column after column in memory, as they are worked on; trees read rows.
        self.missing = np.asfortranarray(np.isnan(numbers))
        self.values = np.asfortranarray(np.where(self.missing, guess.value, numbers))
        self.chances = {j: chances.copy() for j, chances in guess.chances.items()}
        self.shares = shares
        self.trimmed = trimmed
        self.scaling = scaling
        self.network = guess
        self.plain = guess.value.copy(order="F")
        self.spread = np.full(numbers.shape, np.nan, order="F")
        self._rows: dict[int, npt.NDArray[np.int64]] = {}
        self.scaled = np.ascontiguousarray(_readable(scaling.apply(self.values)))

    @property
    def guess(self) -> Guess:
        value = np.where(self.missing, self.values, self.network.value)
        return Guess(value, self.chances, self.plain, self.spread)

    def _holes(self, feature: int) -> npt.NDArray[np.int64]:
        """Return the rows with a hole, those that are alike side by side.

        They walk the same way through a tree, which takes a third less time then.
        """
        if feature not in self._rows:
            rows = np.flatnonzero(self.missing[:, feature])
            self._rows[feature] = rows[np.argsort(self.values[rows, feature], kind="stable")]
        return self._rows[feature]

    def inputs_for(self, feature: int) -> tuple[int, ...]:
        """Return the columns to predict a feature from."""
        others = np.delete(np.arange(self.values.shape[1]), feature)
        if others.size <= MOST_INPUTS:
            return tuple(others.tolist())
        known = ~self.missing[:, feature]
        part = self.scaled[known].astype(np.float64)
        part -= part.mean(axis=0)
        spread = np.sqrt(np.square(part).sum(axis=0))
        together = np.abs(part.T @ part[:, feature]) / np.maximum(spread, 1e-12)
        best = np.argsort(-together[others], kind="stable")[:MOST_INPUTS]
        return tuple(np.sort(others[best]).tolist())

    def inputs(
        self, rows: npt.NDArray[np.int64], columns: tuple[int, ...]
    ) -> npt.NDArray[np.float32]:
        """Return what trees read of some rows."""
        return self.scaled.take(rows, axis=0).take(columns, axis=1)

    def refine(self, feature: int, forest: Forest, pool: Executor | None) -> None:
        """Fill the holes of a feature with a blend of network and forest."""
        share = self.shares[feature]
        rows = self._holes(feature)
        if not rows.size:
            return
        inputs = self.inputs(rows, forest.columns)
        if forest.n_categories:
            network = self.network.chances[feature][rows]
            blend = share * network + (1 - share) * forest.chances(inputs, pool)
            self.chances[feature][rows] = blend
            values = blend.argmax(axis=1).astype(np.float64)
        else:
            network = self.network.value[rows, feature]
            middle = forest.middle(inputs, pool)
            self.plain[rows, feature] = middle.plain
            self.spread[rows, feature] = middle.spread
            trees = middle.trimmed if self.trimmed[feature] else middle.plain
            values = share * network + (1 - share) * trees
        self.values[rows, feature] = values
        self.scaled[rows, feature] = _readable(self.scaling.of(feature).apply(values))


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


def _labels_first(features: Iterable[int], count: int, n_labels: int) -> list[int]:
    """Return features in order, but the last of ``count`` before the others."""
    return sorted(features, key=lambda j: (j < count - n_labels, j))


def _readable(scaled: FloatArray) -> npt.NDArray[np.float32]:
    return np.clip(scaled, -FARTHEST, FARTHEST).astype(np.float32)


def _threads() -> ThreadPoolExecutor:
    """Return as many threads as torch would use."""
    return ThreadPoolExecutor(torch.get_num_threads())
