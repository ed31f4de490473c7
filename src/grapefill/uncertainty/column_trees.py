"""Trees of one column while draws are learned, and whether they have a say.

Each is grown on some of the observed cells. What it says of the others, which it has not seen,
tells whether trees know something that a regression does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grapefill.trees.forest import Forest
from grapefill.uncertainty.remainders import correlation

if TYPE_CHECKING:
    import numpy.typing as npt

    from grapefill.table.arrays import BoolArray, FloatArray, IntArray
    from grapefill.uncertainty.joint import Work

# Rows and trees of a column; a tree of many rows costs much and says little more.
TREE_ROWS = 4_000
FIRST_TREES, KEPT_TREES = 6, 32
# Trees of many rows are grown where a few smaller ones find something.
TRIAL_ROWS, TRIAL_TREES = 1_000, 3
MIN_SPLIT = 2
TREE_SHARE = 0.6
# As many trees are asked about a missing cell as have not seen an observed one of a short table.
ASKED_SHARE = 1 - TREE_SHARE
# Correlation of what is left over with what trees say of it, from which on trees are asked; from
# which on a trial promises something, and below which it ends, at first and later.
LEAST_SIGNAL, LEAST_OF_TRIAL, HOPELESS, LITTLE = 0.1, 0.05, -0.02, 0.0
# How often a regression may be asked of categories rather than trees, and how sharp votes may be.
LINEAR_SHARES = np.linspace(0, 1, 5)
LEAST_CHANCE = 1e-6
ERRORS = 2.0
SHARPNESSES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


class ColumnTrees:
    """Trees of one column, whose leaves hold a remainder or a category.

    Parameters
    ----------
    work : Work
        The rows, with the cells of all columns as they are by then.
    known : ndarray of int, shape (cells,)
        The rows in which the column was observed.
    truth : ndarray of shape (cells,)
        The values there.
    reads : tuple of int
        The columns that trees read.
    n_categories : int
        0 for numbers.
    as_donors : bool
        Whether observed values are drawn.
    random : Generator
        Source of all randomness.

    Attributes
    ----------
    rest : ndarray of shape (cells,)
        Of numbers, what the regression leaves over.
    are_wanted : bool
        Whether more trees may be grown.
    are_used : bool
        Whether they have a say.
    linear : float
        For categories, how often the regression is asked, not the trees.
    sharpness : float
        For categories, how far trees are believed; see `choose_vote`.
    """

    def __init__(
        self,
        work: Work,
        known: IntArray,
        truth: FloatArray,
        *,
        reads: tuple[int, ...],
        n_categories: int,
        as_donors: bool,
        random: np.random.Generator,
    ) -> None:
        self.work = work
        self.known = known
        self.truth = truth
        self.reads = reads
        self.n_categories = n_categories
        self.as_donors = as_donors
        self.random = random
        self.rest = np.empty(0)
        self.are_wanted = bool(reads) and known.size > MIN_SPLIT
        self.are_used = False
        self.linear, self.sharpness = 1.0, 1.0
        self._trees: list[Forest] = []
        # Cells that each of the trees has seen.
        self._bags: list[BoolArray] = []
        # Sums of votes on cells that a tree has not seen, of their sizes and squares, of what was
        # left over by then, and their number.
        self._votes = np.zeros((5, known.size))
        self._tree_chances = np.zeros((known.size, n_categories))
        self._linear_chances = np.zeros((known.size, n_categories))

    def start(self, *, quick: bool = False) -> None:
        """Grow the first trees, and decide whether there are to be any.

        Parameters
        ----------
        quick : bool
            Whether to give up as soon as trees find nothing.
        """
        if self.known.size >= TREE_ROWS and not self.n_categories:
            self.are_wanted = self.are_wanted and self._promise()
        for number in range(FIRST_TREES):
            self.grow(1)
            if quick and number and not self.n_categories:
                # The first two may have bad luck.
                self.are_wanted &= self.signal() > (HOPELESS if number == 1 else LITTLE)
        self.decide()

    def _promise(self) -> bool:
        """Whether a few small trees find something in what is left over."""
        order = self.random.permutation(self.known.size)
        parts = np.split(order, TRIAL_ROWS * np.arange(1, TRIAL_TREES + 1))
        for cells in parts[:-1]:
            self._try(self._grow_one(cells), parts[-1][: 2 * TRIAL_ROWS])
            signal = self.signal()
            if signal < HOPELESS:
                break
        self._votes = np.zeros_like(self._votes)
        return signal > LEAST_OF_TRIAL

    def grow(self, n_trees: int) -> None:
        """Grow trees on most cells, and let them say something about others."""
        if not self.are_wanted:
            return
        size = self.known.size
        take = min(max(3, int(TREE_SHARE * size)), TREE_ROWS)
        for _ in range(n_trees):
            cells, others = np.split(self.random.permutation(size), [take])
            tree = self._grow_one(cells)
            bag = np.zeros(size, dtype=bool)
            bag[cells] = True
            self._trees = [*self._trees, tree][-KEPT_TREES:]
            self._bags = [*self._bags, bag][-KEPT_TREES:]
            if others.size:
                self._try(tree, others[:TREE_ROWS])

    def _grow_one(self, cells: IntArray) -> Forest:
        return Forest.grow(
            self._read(cells),
            (self.truth if self.n_categories else self.rest)[cells],
            columns=self.reads,
            n_trees=1,
            seed=int(self.random.integers(2**31)),
            n_categories=self.n_categories,
            min_split=MIN_SPLIT,
        )

    def _read(self, cells: IntArray) -> npt.NDArray[np.float32]:
        return self.work.scaled.take(self.known[cells], axis=0).take(self.reads, axis=1)

    def _try(self, tree: Forest, others: IntArray) -> None:
        """Note what a tree says about cells that it has not seen."""
        votes = tree.votes(self._read(others))[:, 0]
        if self.n_categories:
            self._tree_chances[others, votes.astype(np.int64)] += 1
        else:
            rest, one = self.rest[others], np.ones(others.size)
            self._votes[:, others] += np.stack([votes, np.abs(votes), votes**2, rest, one])

    def hear_regression(self, chances: FloatArray) -> None:
        """Note what regressions say about categories of cells that they have not seen."""
        self._linear_chances = chances

    def decide(self) -> None:
        """Decide whether trees have a say, by what they say about cells they have not seen."""
        if not self._trees:
            return
        if self.n_categories:
            self.linear, self.sharpness = self._mixture()
            self.are_used = self.linear < 1
        else:
            self.are_used = self.signal() > LEAST_SIGNAL

    def forest(self) -> Forest:
        """Return the trees."""
        return Forest(
            [tree for each in self._trees for tree in each.trees], self.reads, self.n_categories
        )

    @property
    def asked(self) -> int:
        """How many trees are asked about a missing cell."""
        return max(1, round(ASKED_SHARE * len(self._trees)))

    def unseen(self, cells: IntArray) -> BoolArray:
        """Return which trees have not seen which of some cells, shape (cells, trees).

        Of more than are asked about a missing cell, some.
        """
        unseen = ~np.stack(self._bags, axis=1)[cells]
        order = self.random.permutation(unseen.shape[1])
        among = np.empty(unseen.shape, dtype=np.int64)
        among[:, order] = np.cumsum(unseen[:, order], axis=1)
        return unseen & (among <= self.asked)

    def signal(self) -> float:
        """Return how what is left over depends on the other columns, in its mean or its size.

        That is the correlation with what trees say of cells that they have not seen, less what may
        be chance.
        """
        seen = self._votes[-1] > 0
        if seen.sum() < 20:
            return 0.0
        count = self._votes[-1, seen]
        said, size, squares, rest = self._votes[:-1, seen] / count
        if self.as_donors:
            # Values of like predictions differ as much as they should without trees, and what trees
            # say makes predictions worse unless it is close.
            noise = (squares - said**2)[count > 1] * (count / np.maximum(count - 1, 1))[count > 1]
            fewer = 1 / count - 1 / (ASKED_SHARE * KEPT_TREES)
            fewer = fewer * float(noise.mean() if noise.size else 0.0)
            off = max(np.square(rest - said).mean() - fewer.mean(), 0.0)
            gain = 1 - float(off / max(np.square(rest).mean(), 1e-300))
            signal = float(np.sign(gain) * np.sqrt(abs(gain)))
        else:
            signal = max(correlation(said, rest), correlation(size, np.abs(rest)))
        return signal - 1.5 / float(np.sqrt(seen.sum()))

    def _mixture(self) -> tuple[float, float]:
        """Return how often to ask the regression rather than trees, and how sharp these are.

        By the probabilities that they give to what they have not seen. Trees were grown on fewer
        cells than the regression was fitted to, and fewer of them speak about each cell here.
        """
        seen = self._tree_chances.sum(axis=1) > 0
        if seen.sum() < 20:
            return 1.0, 1.0
        at = np.arange(int(seen.sum())), self.truth[seen].astype(np.int64)
        votes = self._tree_chances[seen] + 0.5 / self.n_categories
        regression = self._linear_chances[seen][at]
        alone = np.log(np.maximum(regression, LEAST_CHANCE))
        best, found = 0.0, (1.0, 1.0)
        for sharpness in SHARPNESSES:
            trees = votes**sharpness
            trees = (trees / trees.sum(axis=1, keepdims=True))[at]
            for share in LINEAR_SHARES[:-1]:
                mixed = share * regression + (1 - share) * trees
                gain = np.log(np.maximum(mixed, LEAST_CHANCE)) - alone
                mean, error = float(gain.mean()), float(gain.std()) / np.sqrt(gain.size)
                # A little may be chance, and a regression is what estimates are free of bias by.
                if mean > max(best, ERRORS * error):
                    best, found = mean, (float(share), sharpness)
        return found
