"""Rounds of forests that refine the network's guesses, column by column.

The holes start with what the network says. In every round each column in turn is predicted from
all others as they are by then, and its holes are filled with a blend of network and forest. Other
than in chained equations, the start is good, so that few rounds will do, and a column that the
trees cannot predict keeps what the network says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.trees.forest import Forest
from grapefill.trees.guess import Guess, sharpen
from grapefill.trees.lines import LineForest
from grapefill.trees.work import RowsInWork, readable, threads

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from grapefill.table import Scaling
    from grapefill.table.arrays import FloatArray

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
        work = RowsInWork(numbers, guess, self.shares, self.trimmed, self.scaling)
        with threads() as pool:
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
        inputs = readable(self.scaling.apply(values)).take(found[-1].columns, axis=1)
        with threads() as pool:
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
            {j: forests[j] for j in labels_first(forests, len(n_categories), n_labels)}
            for forests in rounds
        ]
        return cls(rounds, shares, trimmed, scaling, powers, n_labels)


def labels_first(features: Iterable[int], count: int, n_labels: int) -> list[int]:
    """Return features in order, but the last of ``count`` before the others."""
    return sorted(features, key=lambda j: (j < count - n_labels, j))
