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
from grapefill.trees.guess import Guess

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
# A column is predicted from so many others, the ones it goes along with most.
MOST_INPUTS = 64


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
    """

    rounds: list[dict[int, Forest]]
    shares: FloatArray
    trimmed: npt.NDArray[np.bool_]
    scaling: Scaling

    def refine(self, numbers: FloatArray, guess: Guess) -> Guess:
        """Return better guesses for the cells that are missing.

        Parameters
        ----------
        numbers : ndarray of shape (rows, features)
            Encoded rows, NaN where a cell is not observed.
        guess : Guess
            What the network says about them.
        """
        work = _Work(numbers, guess, self.shares, self.trimmed, self.scaling)
        with _threads() as pool:
            for forests in self.rounds:
                for feature, forest in forests.items():
                    work.refine(feature, forest, pool)
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

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the chain as plain arrays, by name, for a model file."""
        named: dict[str, npt.NDArray[Any]] = {"shares": self.shares, "trimmed": self.trimmed}
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
        found: dict[tuple[int, int], dict[str, npt.NDArray[Any]]] = {}
        for name, array in arrays.items():
            if name not in ("shares", "trimmed"):
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
            rounds[at][j] = Forest.from_arrays(parts, columns, n_categories[j])
        return cls(rounds, shares, trimmed, scaling)


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
    """

    config: ForestConfig
    n_categories: tuple[int, ...]
    scaling: Scaling
    seed: int
    deadline: float | None = None
    report: Callable[[int, int], None] | None = None
    weights: Mapping[int, FloatArray] = field(default_factory=dict)

    def grow(
        self,
        numbers: FloatArray,
        guess: Guess,
        shares: FloatArray,
        *,
        trimmed: npt.NDArray[np.bool_] | None = None,
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
        plan : sequence of int or None
            Trees per column in every round; None for the plan of the configuration.
        """
        plan = self.config.plan if plan is None else tuple(plan)
        trimmed = np.ones(shares.size, dtype=bool) if trimmed is None else trimmed
        work = _Work(numbers, guess, shares, trimmed, self.scaling)
        columns = [
            j
            for j in range(numbers.shape[1])
            if shares[j] < 1
            and self.n_categories[j] <= MOST_CATEGORIES
            and not work.missing[:, j].all()
        ]
        rounds: list[dict[int, Forest]] = []
        seeds = iter(np.random.SeedSequence(self.seed).generate_state(len(plan) * len(columns)))
        # A tree has about four nodes for as many rows as a node needs to be split.
        nodes = 4 * sum(plan) * int((~work.missing[:, columns]).sum())
        min_split = max(FEWEST_TO_SPLIT, -(-nodes // self.config.most_nodes))
        self._watch.start()
        with _threads() as pool:
            for n_trees in plan:
                if not self._watch.allows(n_trees * len(columns), self.deadline):
                    break
                forests: dict[int, Forest] = {}
                for j in columns:
                    if not self._watch.allows(n_trees, self.deadline):
                        break
                    known = np.flatnonzero(~work.missing[:, j])
                    inputs = work.inputs_for(j)
                    forests[j] = Forest.grow(
                        work.scaled.take(known, axis=0).take(inputs, axis=1),
                        work.values[known, j],
                        columns=inputs,
                        n_trees=n_trees,
                        seed=int(next(seeds)),
                        guide=work.scaled[known, j].astype(np.float64),
                        n_categories=self.n_categories[j],
                        input_share=self.config.input_share,
                        min_split=min_split,
                        weights=self.weights[j][known] if j in self.weights else None,
                        pool=pool,
                    )
                    work.refine(j, forests[j], pool)
                    self._watch.grown(n_trees)
                    if self.report is not None:
                        done = len(rounds) * len(columns) + len(forests)
                        self.report(done, len(plan) * len(columns))
                rounds.append(forests)
        return Chain(rounds, shares, trimmed, self.scaling), work.guess

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

    def refine(self, feature: int, forest: Forest, pool: Executor | None) -> None:
        """Fill the holes of a feature with a blend of network and forest."""
        share = self.shares[feature]
        rows = self._holes(feature)
        if not rows.size:
            return
        inputs = self.scaled.take(rows, axis=0).take(forest.columns, axis=1)
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


def _readable(scaled: FloatArray) -> npt.NDArray[np.float32]:
    return np.clip(scaled, -FARTHEST, FARTHEST).astype(np.float32)


def _threads() -> ThreadPoolExecutor:
    """Return as many threads as torch would use."""
    return ThreadPoolExecutor(torch.get_num_threads())
