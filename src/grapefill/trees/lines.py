"""Trees with few leaves and a linear map in each, for columns that others determine smoothly.

Where a column is nearly a smooth function of others, a leaf that votes for an observed value is
never closer than the nearest row it has seen; a line through the rows of a larger leaf is (Quinlan:
Learning with continuous classes, 1992; Friedberg, Tibshirani, Athey, Wager: Local linear forests,
2020).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.tree import ExtraTreeRegressor

from grapefill.trees.forest import FEWEST_VISITS, Forest, relabelled

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import numpy.typing as npt

    from grapefill.table.arrays import FloatArray
    from grapefill.trees.forest import Inputs

# Rows of a leaf at least.
FEWEST_ROWS = 20
# Weight of the penalty on the slopes, relative to the variance of the inputs in the leaf.
RIDGE = 0.01
# How far beyond the values in its leaf a line may go, in widths of their range.
BEYOND = 0.2


@dataclass(frozen=True)
class Lines:
    """The linear maps of some leaves.

    Parameters
    ----------
    intercept : ndarray of shape (leaves,)
    slope : ndarray of float32, shape (leaves, inputs)
    low, high : ndarray of shape (leaves,)
        What a leaf says is kept between these.
    """

    intercept: FloatArray
    slope: npt.NDArray[np.float32]
    low: FloatArray
    high: FloatArray

    @classmethod
    def fit(
        cls,
        inputs: FloatArray,
        target: FloatArray,
        leaf: npt.NDArray[np.int64],
        weights: FloatArray,
    ) -> Lines:
        """Fit a ridge regression in every leaf; leaves are numbered from 0, none is empty."""
        order = np.argsort(leaf, kind="stable")
        ends = np.cumsum(np.bincount(leaf))
        n_leaves, n_inputs = ends.size, inputs.shape[1]
        center = np.empty((n_leaves, n_inputs))
        product = np.empty((n_leaves, n_inputs, n_inputs))
        toward = np.empty((n_leaves, n_inputs))
        level, low, high = np.empty((3, n_leaves))
        for at, rows in enumerate(np.split(order, ends[:-1])):
            x, y, w = inputs[rows], target[rows], weights[rows] / weights[rows].sum()
            center[at], level[at] = w @ x, w @ y
            low[at], high[at] = y.min(), y.max()
            x = x - center[at]
            weighted = (x * w[:, None]).T
            product[at] = weighted @ x
            toward[at] = weighted @ (y - level[at])
        size = product.trace(axis1=1, axis2=2) / max(1, n_inputs)
        # A leaf whose inputs are all alike has no slope.
        penalty = RIDGE * np.where(size > 0, size, 1.0)
        slope = np.linalg.solve(
            product + penalty[:, None, None] * np.eye(n_inputs), toward[..., None]
        )[..., 0].astype(np.float32)
        margin = BEYOND * (high - low)
        return cls(level - (center * slope).sum(axis=1), slope, low - margin, high + margin)

    def at(self, inputs: Inputs, leaf: npt.NDArray[np.int64]) -> FloatArray:
        """Return what the leaves say about some rows: for every row the same as for it alone."""
        total = self.intercept[leaf]
        for number in range(inputs.shape[1]):
            total += inputs[:, number].astype(np.float64) * self.slope[leaf, number]
        return np.clip(total, self.low[leaf], self.high[leaf])


class LineForest(Forest):
    """Trees for one column of numbers whose leaves hold linear maps.

    Parameters
    ----------
    trees : list of Tree
        Trees of scikit-learn whose leaves hold their numbers, counted over all trees.
    columns : tuple of int
        The columns that the trees read, in the order of their inputs.
    lines : Lines
        The linear maps of the leaves.
    frame : ndarray of shape (2,)
        Middle and half the width of the range of the column: what is 0 and 1 to the lines.

    Examples
    --------
    >>> inputs = np.linspace(0, 1, 1000, dtype=np.float32)[:, None]
    >>> forest = LineForest.fit(inputs, inputs[:, 0] ** 2, columns=(1,), n_trees=4, seed=0)
    >>> forest.numbers(np.array([[0.5]], dtype=np.float32)).round(3)
    array([0.25])
    """

    def __init__(
        self, trees: list[Any], columns: tuple[int, ...], lines: Lines, frame: FloatArray
    ) -> None:
        super().__init__(trees, columns)
        self.lines = lines
        self.frame = frame

    @classmethod
    def fit(
        cls,
        inputs: Inputs,
        target: FloatArray,
        *,
        columns: tuple[int, ...],
        n_trees: int,
        seed: int,
        weights: FloatArray | None = None,
        pool: Executor | None = None,
    ) -> LineForest:
        """Grow the trees and fit the lines; see `Forest.grow` for the parameters."""
        rows = target.shape[0]
        low, high = target.min() / 2, target.max() / 2
        frame = np.array([low + high, (high - low) or 1.0])
        scaled = (target - frame[0]) / frame[1]
        exact = inputs.astype(np.float64)
        counts = np.ones(rows) if weights is None else weights

        def grow_one(source: np.random.SeedSequence) -> tuple[Any, Lines]:
            tree = ExtraTreeRegressor(
                min_samples_leaf=FEWEST_ROWS,
                random_state=int(np.random.default_rng(source).integers(2**31)),
            )
            tree.fit(inputs, scaled, sample_weight=weights, check_input=False)
            node, leaf = np.unique(tree.tree_.apply(inputs), return_inverse=True)
            return (tree.tree_, node), Lines.fit(exact, scaled, leaf, counts)

        each = map if pool is None or rows * n_trees < FEWEST_VISITS else pool.map
        grown = list(each(grow_one, np.random.SeedSequence(seed).spawn(n_trees)))
        trees, first = [], 0
        for (tree, node), _ in grown:
            value = np.zeros(tree.node_count)
            value[node] = first + np.arange(node.size)
            trees.append(relabelled(tree, value))
            first += node.size
        lines = Lines(
            *(
                np.concatenate([getattr(lines, name) for _, lines in grown])
                for name in Lines.__dataclass_fields__
            )
        )
        return cls(trees, columns, lines, frame)

    def _ask(self, number: int, inputs: Inputs) -> FloatArray:
        scaled = self.lines.at(inputs, super()._ask(number, inputs).astype(np.int64))
        middle, unit = self.frame
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore"):
            said: FloatArray = np.clip(middle + unit * scaled, -largest, largest)
        return said

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return trees and lines as plain arrays."""
        return super().arrays() | asdict(self.lines) | {"frame": self.frame}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, npt.NDArray[Any]], columns: tuple[int, ...], n_categories: int
    ) -> LineForest:
        """Rebuild a forest from `arrays`; raises ValueError if they are none."""
        trees = Forest.from_arrays(arrays, columns, n_categories)
        lines = Lines(**{name: arrays[name] for name in Lines.__dataclass_fields__})
        leaves = arrays["value"].size
        shapes = {array.shape for array in (lines.intercept, lines.low, lines.high)}
        if shapes != {(leaves,)} or lines.slope.shape != (leaves, len(columns)):
            raise ValueError("the lines of the leaves are not as many as the leaves")
        if not np.array_equal(np.sort(arrays["value"]), np.arange(leaves)):
            raise ValueError("the leaves are not numbered")
        frame = arrays["frame"]
        numbers = [*asdict(lines).values(), frame]
        if n_categories or not all(np.isfinite(array).all() for array in numbers):
            raise ValueError("a line is not made of numbers")
        if frame.shape != (2,):
            raise ValueError("the unit of the lines is not known")
        return cls(trees.trees, columns, lines, frame)
