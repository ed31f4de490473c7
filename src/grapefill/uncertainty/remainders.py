r"""What a regression leaves over of a number, and what trees have to say about it.

The mean vote :math:`v` of some trees that have not seen a row foretells what is left over there,
:math:`r`. It is noisy, so only a share of it is believed, the one with which errors are the
smallest: :math:`\operatorname{Cov}(r, v) / \operatorname{Var}(v)`. It may be more than all of it,
for trees flatten what they follow.

As many trees are asked about a missing cell, others in every draw. What they are wrong about is the
same in all cells of a draw then: where two cells of a row are missing, an error of one is believed
by the other, and if all draws had the same errors they would be too sure.

How far the votes are from zero tells by how much values may be off: what is left over in the end is
put down relative to a size that is linear in that distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grapefill.uncertainty.regression import fit_linear

if TYPE_CHECKING:
    import numpy.typing as npt

    from grapefill.table.arrays import BoolArray, FloatArray
    from grapefill.trees.forest import Forest

# The most that is believed of a vote.
MOST_SHARE = 1.5
# The least size, relative to the usual one.
LEAST_SIZE = 0.3
# Correlation of sizes with what trees foretell of them, from which on they are believed.
LEAST_SIGNAL = 0.1


@dataclass(frozen=True)
class Trust:
    """How far the votes of trees on numbers are believed.

    Parameters
    ----------
    share : float
        The share of the mean vote that is added to a prediction.
    base, slope : float
        What is left over is as large as ``base`` and ``slope`` times the mean size of the votes, in
        units of what is usual.
    asked : int
        How many trees are asked in one draw; 0 for all.
    """

    share: float = 1.0
    base: float = 1.0
    slope: float = 0.0
    asked: int = 0

    def ask(
        self, forest: Forest, inputs: npt.NDArray[np.float32], turn: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return what trees add to predictions, and the sizes of what is left over.

        Every row is worked out as if it were alone.

        Parameters
        ----------
        forest : Forest
            The trees.
        inputs : ndarray of shape (rows, inputs)
            What they read.
        turn : int
            Whose turn it is: others are asked the next time.
        """
        total, sizes = np.zeros(inputs.shape[0]), np.zeros(inputs.shape[0])
        count = self.asked or len(forest.trees)
        for number in range(turn * count, (turn + 1) * count):
            votes = forest.trees[number % len(forest.trees)].predict(inputs)[:, 0]
            total += votes
            sizes += np.abs(votes)
        return total * (self.share / count), self.size(sizes / count)

    def size(self, votes: FloatArray) -> FloatArray:
        """Return the size of what is left over, from that of the votes."""
        return np.maximum(self.base + self.slope * votes, LEAST_SIZE)


class Remainders(NamedTuple):
    """What is left over in some observed cells.

    Parameters
    ----------
    left : ndarray of shape (cells,)
        In units of its size.
    predicted : ndarray of shape (cells,)
        What was predicted of the cells.
    shift : ndarray of shape (inputs,)
        What is to be added to the coefficients of the regression.
    trust : Trust
        How far trees are believed.
    sizes : ndarray of shape (cells,)
        The sizes.
    """

    left: FloatArray
    predicted: FloatArray
    shift: FloatArray
    trust: Trust
    sizes: FloatArray


def what_is_left(
    rest: FloatArray,
    inputs: FloatArray,
    votes: FloatArray,
    unseen: BoolArray,
    random: np.random.Generator,
    *,
    asked: int,
    entirely: bool = False,
) -> Remainders:
    """Learn how far to believe trees, from cells that they have not seen.

    Parameters
    ----------
    rest : ndarray of shape (cells,)
        What the regression leaves over.
    inputs : ndarray of shape (cells, inputs)
        What it reads, the constant first.
    votes : ndarray of shape (cells, trees)
        What trees say of ``rest``.
    unseen : ndarray of bool of the same shape
        Which of them have not seen which cell, and are asked; at least one for each.
    random : Generator
        Source of all randomness.
    asked : int
        How many trees are asked about a missing cell.
    entirely : bool
        Whether all of a mean vote is believed.

    Returns
    -------
    Remainders
        With ``predicted`` relative to the regression before it is shifted.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> signal, noise = random.normal(size=1_000), random.normal(size=(1_000, 10))
    >>> votes, rest = signal[:, None] + noise, signal + random.normal(size=1_000)
    >>> found = what_is_left(rest, np.ones((1_000, 1)), votes, noise < 9, random, asked=10)
    >>> 0.8 < found.trust.share < 1.0, 0.9 < float(found.left.std()) < 1.2
    (True, True)
    """
    count = unseen.sum(axis=1)
    mean = (votes * unseen).sum(axis=1) / count
    # What the regression could say by itself is none of the trees' merit.
    straight = fit_linear(inputs, mean, random).best
    own = mean - inputs @ straight
    together, spread = float((rest * own).mean()), max(float(np.square(own).mean()), 1e-300)
    share = 1.0 if entirely else float(np.clip(together / spread, 0.0, MOST_SHARE))
    # Trees flatten what they follow; what that takes from the regression is given back. Not what
    # is left over in these cells beside: the regression read more of them.
    left = rest - share * mean
    left = left - inputs @ fit_linear(inputs, left, random).best
    shift = -share * straight
    far = (np.abs(votes) * unseen).sum(axis=1) / count
    trust = _trust(share, left, far, asked)
    sizes = trust.size(far)
    return Remainders(_relative(left, sizes), rest - left, shift, trust, sizes)


def _relative(left: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return what is left over in units of its size, so that it is as it was in other cells."""
    if not np.ptp(sizes):
        return left
    relative = left / sizes
    relative = relative - relative.mean() + left.mean() / sizes.mean()
    larger = np.square(sizes).mean() * np.square(relative).mean()
    scaled: FloatArray = relative * np.sqrt(np.square(left).mean() / max(float(larger), 1e-300))
    return scaled


def _trust(share: float, left: FloatArray, votes: FloatArray, asked: int) -> Trust:
    """Return how far to believe trees in what is left over in the end."""
    usual = float(np.abs(left).mean())
    signal = correlation(np.abs(left), votes) - 1.5 / float(np.sqrt(left.size))
    if signal < LEAST_SIGNAL or usual <= 0:
        return Trust(share, asked=asked)
    sizes = np.abs(left) / usual
    slope = float(((sizes - 1) * (votes - votes.mean())).mean() / votes.var())
    return Trust(share, 1 - slope * float(votes.mean()), slope, asked)


def correlation(x: FloatArray, y: FloatArray) -> float:
    """Return the correlation of two samples, 0 where one is constant."""
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt(np.square(x).sum() * np.square(y).sum()))
    return float((x * y).sum()) / size if size > 0 else 0.0
