"""A forest that predicts one column from others: extremely randomised trees, grown to the end.

A leaf holds very few training rows and votes for the value of one of them, drawn by chance: never
for a mean, which nobody may ever have observed. The middle of the votes is a robust guess under
absolute error (Geurts, Ernst, Wehenkel: Extremely randomized trees, 2006; Meinshausen: Quantile
regression forests, 2006).

scikit-learn grows the trees and walks through them. What a model file holds are plain arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.tree import ExtraTreeRegressor
from sklearn.tree._tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Executor

    import numpy.typing as npt

    from grapefill.table.arrays import FloatArray

    Inputs = npt.NDArray[np.float32]

# Of the votes, this share is left out at either end before they are averaged.
TRIM = 0.25
# Fewer visits of a row to a tree than that are not worth a second thread.
FEWEST_VISITS = 4_096
# scikit-learn marks a leaf by these.
NO_CHILD, NO_FEATURE = -1, -2


class Middle(NamedTuple):
    """What the votes of a forest say together: one number each per row.

    Parameters
    ----------
    trimmed : ndarray
        The mean of the middle half of the votes.
    plain : ndarray
        The mean of all votes.
    spread : ndarray
        Half the width of the middle half.
    """

    trimmed: FloatArray
    plain: FloatArray
    spread: FloatArray


class Forest:
    """Trees for one column.

    Parameters
    ----------
    trees : list of Tree
        Trees of scikit-learn whose leaves hold one number each: a value or the code of a category.
    columns : tuple of int
        The columns that the trees read, in the order of their inputs.
    n_categories : int
        Categories of the column; 0 for a column of numbers.

    Examples
    --------
    >>> inputs = np.linspace(0, 1, 50, dtype=np.float32)[:, None]
    >>> forest = Forest.grow(inputs, 2.0 * inputs[:, 0], columns=(1,), n_trees=9, seed=0)
    >>> forest.numbers(inputs[10:12]).round(2)
    array([0.41, 0.46])
    """

    def __init__(self, trees: list[Any], columns: tuple[int, ...], n_categories: int = 0) -> None:
        self.trees = trees
        self.columns = columns
        self.n_categories = n_categories

    @classmethod
    def grow(
        cls,
        inputs: Inputs,
        target: FloatArray,
        *,
        columns: tuple[int, ...],
        n_trees: int,
        seed: int,
        guide: FloatArray | None = None,
        n_categories: int = 0,
        input_share: float = 0.5,
        min_split: int = 3,
        weights: FloatArray | None = None,
        pool: Executor | None = None,
    ) -> Forest:
        """Grow a forest.

        Parameters
        ----------
        inputs : ndarray of float32, shape (rows, inputs)
            What the trees read.
        target : ndarray of shape (rows,)
            The column: numbers, or codes of categories.
        columns : tuple of int
            Where the inputs come from; kept for the user of the forest.
        n_trees : int
            How many trees.
        seed : int
            Source of all randomness.
        guide : ndarray of shape (rows,) or None
            What splits tell apart, when it is not the target itself: its scaled values. Categories
            are always told apart by their indicators.
        n_categories : int
            Categories of the column; 0 for a column of numbers.
        input_share : float
            Share of the inputs that a split chooses from.
        min_split : int
            A node with fewer rows than that is a leaf.
        weights : ndarray of shape (rows,) or None
            How much every row counts, above 0; None for all the same.
        pool : Executor or None
            Threads to grow the trees in.
        """
        rows = target.shape[0]
        # Drawn beforehand, so that the forest does not depend on which thread is first.
        randomness = np.random.SeedSequence(seed).spawn(n_trees)
        if n_categories:
            # The squared error of indicators is the Gini impurity.
            guide = np.eye(n_categories)[target.astype(np.int64)]
        elif guide is None:
            guide = target

        def grow_one(source: np.random.SeedSequence) -> Any:
            random = np.random.default_rng(source)
            tree = ExtraTreeRegressor(
                max_features=input_share,
                min_samples_split=min_split,
                random_state=int(random.integers(2**31)),
            )
            tree.fit(inputs, guide, sample_weight=weights, check_input=False)
            value = np.zeros(tree.tree_.node_count)
            # Of the rows in a leaf, the last one writes its value.
            shuffled = _shuffle(rows, weights, random)
            value[tree.tree_.apply(inputs)[shuffled]] = target[shuffled]
            return relabelled(tree.tree_, value)

        each = map if pool is None or rows * n_trees < FEWEST_VISITS else pool.map
        return cls(list(each(grow_one, randomness)), columns, n_categories)

    def votes(self, inputs: Inputs, pool: Executor | None = None) -> FloatArray:
        """Return what every tree says about every row, shape (rows, trees)."""
        votes = np.empty((inputs.shape[0], len(self.trees)))

        def ask(number: int) -> None:
            votes[:, number] = self._ask(number, inputs)

        each = map if pool is None or votes.size < FEWEST_VISITS else pool.map
        for _ in each(ask, range(len(self.trees))):
            pass
        return votes

    def _ask(self, number: int, inputs: Inputs) -> FloatArray:
        """Return what one tree says about every row."""
        said: FloatArray = self.trees[number].predict(inputs)[:, 0]
        return said

    def numbers(self, inputs: Inputs, pool: Executor | None = None) -> FloatArray:
        """Return the mean of the middle half of the votes, for a column of numbers."""
        return self.middle(inputs, pool).trimmed

    def middle(self, inputs: Inputs, pool: Executor | None = None) -> Middle:
        """Return what the votes say together, for a column of numbers."""
        votes = self.votes(inputs, pool)
        votes.sort(axis=1)
        n_votes = votes.shape[1]
        cut = int(n_votes * TRIM)
        low, high = votes[:, cut], votes[:, n_votes - cut - 1]
        inner = _sum(votes, range(cut, n_votes - cut), 1 / (n_votes - 2 * cut))
        outer = _sum(votes, [*range(cut), *range(n_votes - cut, n_votes)], 1 / n_votes)
        plain = inner * ((n_votes - 2 * cut) / n_votes) + outer
        return Middle(inner, plain, high / 2 - low / 2)

    def chances(self, inputs: Inputs, pool: Executor | None = None) -> FloatArray:
        """Return the probabilities of the categories, shape (rows, categories).

        They are shares of the votes, with one more vote that is shared by all: no category is
        impossible because some trees did not think of it.
        """
        votes = self.votes(inputs, pool)
        counts = [(votes == code).sum(axis=1) for code in range(self.n_categories)]
        return (np.stack(counts, axis=1) + 1 / self.n_categories) / (len(self.trees) + 1)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the trees as plain arrays, one after the other.

        Nodes are numbered depth first, so a left child follows its parent and only right children
        are written. ``value`` has one entry per leaf.
        """
        states = [tree.__getstate__() for tree in self.trees]
        nodes = np.concatenate([state["nodes"] for state in states])
        value = np.concatenate([state["values"][:, 0, 0] for state in states])
        leaf = nodes["left_child"] == NO_CHILD
        return {
            "size": np.array([state["node_count"] for state in states], dtype=np.int32),
            "depth": np.array([state["max_depth"] for state in states], dtype=np.int32),
            "feature": nodes["feature"].astype(np.int16),
            "right": nodes["right_child"].astype(np.int32),
            "threshold": _round_down(nodes["threshold"][~leaf]),
            "value": value[leaf],
        }

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, npt.NDArray[Any]], columns: tuple[int, ...], n_categories: int
    ) -> Forest:
        """Rebuild a forest from `arrays`; raises ValueError if they are no trees."""
        feature, right, size = arrays["feature"], arrays["right"], arrays["size"]
        leaf = feature == NO_FEATURE
        ends = np.cumsum(size)
        if not size.size or (size < 1).any() or ends[-1] != feature.size:
            raise ValueError("the sizes of the trees do not add up")
        lengths = {"right": feature.size, "threshold": (~leaf).sum(), "value": leaf.sum()}
        for name, length in (lengths | {"depth": size.size}).items():
            if arrays[name].shape != (length,) or not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} of the trees is not what it should be")
        if n_categories and not np.isin(arrays["value"], np.arange(n_categories)).all():
            raise ValueError("a tree votes for a category that is not there")
        threshold, value = np.zeros(feature.size), np.zeros(feature.size)
        threshold[~leaf] = arrays["threshold"]
        value[leaf] = arrays["value"]
        trees = []
        for start, end, depth in zip(ends - size, ends, arrays["depth"], strict=True):
            nodes = slice(start, end)
            _check_nodes(feature[nodes], right[nodes], len(columns))
            trees.append(
                _make_tree(
                    feature[nodes],
                    right[nodes],
                    threshold[nodes],
                    value[nodes],
                    inputs=len(columns),
                    depth=int(depth),
                )
            )
        return cls(trees, columns, n_categories)


def relabelled(tree: Any, value: FloatArray) -> Any:
    """Return a tree of scikit-learn whose nodes hold other values, one each."""
    state = tree.__getstate__()
    return _tree_of(state["nodes"], value, tree.n_features, state["max_depth"])


def _sum(votes: FloatArray, which: Iterable[int], weight: float) -> FloatArray:
    """Return the weighted sum of some votes: finite, and for every row the same as for it alone."""
    total = np.zeros(votes.shape[0])
    for number in which:
        total += votes[:, number] * weight
    return total


def _shuffle(
    rows: int, weights: FloatArray | None, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw an order of rows in which a row is last among some with a chance like its weight."""
    if weights is None:
        return random.permutation(rows)
    # Efraimidis, Spirakis: Weighted random sampling with a reservoir, 2006.
    return np.argsort(-random.exponential(size=rows) / weights, kind="stable")


def _make_tree(
    feature: npt.NDArray[Any],
    right: npt.NDArray[Any],
    threshold: FloatArray,
    value: FloatArray,
    *,
    inputs: int,
    depth: int,
) -> Any:
    """Make a tree of scikit-learn from arrays."""
    nodes = np.zeros(feature.size, dtype=_node_dtype())
    leaf = feature == NO_FEATURE
    nodes["left_child"] = np.where(leaf, NO_CHILD, np.arange(1, feature.size + 1))
    nodes["right_child"] = right
    nodes["feature"] = feature
    nodes["threshold"] = threshold
    nodes["n_node_samples"] = 1
    nodes["weighted_n_node_samples"] = 1.0
    return _tree_of(nodes, value, inputs, depth)


def _tree_of(nodes: npt.NDArray[Any], value: FloatArray, inputs: int, depth: int) -> Any:
    tree = Tree(inputs, np.array([1], dtype=np.intp), 1)
    values = value.reshape(-1, 1, 1)
    state = {"max_depth": depth, "node_count": nodes.size, "nodes": nodes, "values": values}
    tree.__setstate__(state)
    return tree


def _node_dtype() -> Any:
    """Return the layout of a node in the installed scikit-learn."""
    smallest = ExtraTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    return smallest.tree_.__getstate__()["nodes"].dtype


def _check_nodes(feature: npt.NDArray[Any], right: npt.NDArray[Any], inputs: int) -> None:
    """Raise unless a walk through the nodes always ends, within the nodes and the inputs."""
    position = np.arange(feature.size)
    leaf = feature == NO_FEATURE
    fine = np.where(
        leaf,
        right == NO_CHILD,
        (feature >= 0) & (feature < inputs) & (right > position + 1) & (right < feature.size),
    )
    if not fine.all():
        raise ValueError("the nodes of a tree point outside of it")


def _round_down(threshold: FloatArray) -> Inputs:
    """Round to float32 so that ``x <= threshold`` holds for the same x, which are float32 too."""
    nearest = threshold.astype(np.float32)
    above = nearest > threshold
    nearest[above] = np.nextafter(nearest[above], np.float32(-np.inf))
    return nearest
