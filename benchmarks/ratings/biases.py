r"""Biases of users and items, the least that a recommender must beat (Koren, KDD 2008).

.. math:: \hat r_{ui} = \mu + b_u + b_i, \quad
    \min_b \sum (r_{ui} - \hat r_{ui})^2 + \lambda_u \sum b_u^2 + \lambda_i \sum b_i^2

solved by alternating means. The strengths are chosen on a tenth of the ratings.
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from benchmarks.ratings.data import Ratings, root_mean_square

STRENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
ROUNDS = 10


class Biases:
    """Predicts a rating from the user's and the item's mean."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit_predict(self, train: Ratings, asked: Ratings) -> Tensor:
        """Return the predicted ratings of other pairs."""
        generator = torch.Generator().manual_seed(self.seed)
        return FittedBiases(train, *choose_strengths(*train.split(0.1, generator)))(asked)


def choose_strengths(rest: Ratings, held_out: Ratings) -> tuple[float, float]:
    """Return the strengths, for users and items, that predict held-out ratings best."""
    errors = {
        strengths: root_mean_square(FittedBiases(rest, *strengths)(held_out), held_out)
        for strengths in product(STRENGTHS, STRENGTHS)
    }
    return min(errors, key=lambda strengths: errors[strengths])


class FittedBiases:
    """The fitted biases, to be called with pairs."""

    def __init__(self, train: Ratings, for_users: float, for_items: float) -> None:
        rating = train.rating
        self.mean = rating.mean()
        self.of_user = torch.zeros(train.n_users)
        self.of_item = torch.zeros(train.n_items)
        for _ in range(ROUNDS):
            rest = rating - self.mean - self.of_item[train.item]
            self.of_user = _shrunk_mean(rest, train.user, train.n_users, for_users)
            rest = rating - self.mean - self.of_user[train.user]
            self.of_item = _shrunk_mean(rest, train.item, train.n_items, for_items)

    def __call__(self, pairs: Ratings) -> Tensor:
        return self.mean + self.of_user[pairs.user] + self.of_item[pairs.item]


def _shrunk_mean(rest: Tensor, node: Tensor, nodes: int, strength: float) -> Tensor:
    total = torch.zeros(nodes).index_add(0, node, rest)
    count = torch.zeros(nodes).index_add(0, node, torch.ones_like(rest))
    return total / (count + strength)
