"""Rows whose holes trees are filling."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import torch

from grapefill.table.scaling import FARTHEST
from grapefill.trees.guess import Guess

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import numpy.typing as npt

    from grapefill.table import Scaling
    from grapefill.table.arrays import FloatArray
    from grapefill.trees.forest import Forest

# A column is predicted from so many others, the ones it goes along with most.
MOST_INPUTS = 64


class RowsInWork:
    """Rows whose holes are being filled.

    Parameters
    ----------
    numbers : ndarray of shape (rows, features)
        Encoded rows, NaN where a cell is not observed.
    guess : Guess
        What the network says about them.
    shares : ndarray of shape (features,)
        The weight of the network in the blend of every feature.
    trimmed : ndarray of bool, shape (features,)
        Whether the votes on a feature are averaged without their extremes.
    scaling : Scaling
        How numbers are scaled before the trees read them.
    """

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
        self.scaled = np.ascontiguousarray(readable(scaling.apply(self.values)))

    @property
    def guess(self) -> Guess:
        """What is believed by now."""
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
        self.scaled[rows, feature] = readable(self.scaling.of(feature).apply(values))


def readable(scaled: FloatArray) -> npt.NDArray[np.float32]:
    """Return scaled numbers as trees read them."""
    return np.clip(scaled, -FARTHEST, FARTHEST).astype(np.float32)


def threads() -> ThreadPoolExecutor:
    """Return as many threads as torch would use."""
    return ThreadPoolExecutor(torch.get_num_threads())
