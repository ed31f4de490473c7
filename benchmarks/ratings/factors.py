r"""Bayesian factors of users and items, which know where in the graph these are.

.. math::
    r_{ui} &= \mu + b_u + b_i + p_u^\top q_i + \varepsilon_{ui}, \quad
        \varepsilon_{ui} \sim N(0, \sigma^2 / (\alpha_u \alpha_i)) \\
    (p_u, b_u) &\sim N(m + B^\top f_u, \Lambda^{-1})

and likewise for items, sampled by Gibbs (Salakhutdinov and Mnih, ICML 2008). The mean of the prior
follows from features :math:`f_u` (Simm et al., MLSP 2017), here places in the graph. The noise
:math:`\sigma^2` is given, as a share of the ratings' variance: most nodes have too few ratings to
tell it from biases, and sampled it drifts to zero. With `uneven`, :math:`\alpha_u` and
:math:`\alpha_i` have gamma priors: some raters are erratic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.stats import wishart
from torch import Tensor

from benchmarks.ratings.data import Ratings, root_mean_square
from benchmarks.ratings.places import find_places

RANK, NOISE = 8, 0.6
# Strength of the gamma priors, and of the normal prior of B.
DEGREES, RIDGE = 8.0, 20.0


@dataclass
class GraphFactors:
    """Predicts ratings by factors; whether noise is even is seen on a tenth of the ratings.

    Parameters
    ----------
    seed : int
        Source of all randomness.
    rounds : int
        Gibbs samples of everything, the first quarter of which is thrown away.
    places : int
        Singular vectors that say where a node is.
    """

    seed: int = 0
    rounds: int = 400
    places: int = 20

    def fit_predict(self, train: Ratings, asked: Ratings) -> Tensor:
        """Return the predicted ratings of other pairs."""
        rest, held_out = train.split(0.1, torch.Generator().manual_seed(self.seed))
        self.choose(rest, held_out)
        return self.predict(train, asked)

    def choose(self, rest: Ratings, held_out: Ratings) -> Tensor:
        """Choose what predicts held-out ratings best, and return those predictions."""
        tried = {}
        for self.uneven in (False, True):
            tried[self.uneven] = self.predict(rest, held_out)
        self.uneven = min(tried, key=lambda how: root_mean_square(tried[how], held_out))
        return tried[self.uneven]

    def predict(self, train: Ratings, asked: Ratings) -> Tensor:
        """Return predictions, with what was chosen."""
        random = np.random.default_rng(self.seed)
        rating = train.rating.numpy().astype(np.float64)
        center, spread = rating.mean(), rating.std() or 1.0
        sampler = Sampler(train, (rating - center) / spread, self, random)
        user, item = asked.user.numpy(), asked.item.numpy()
        total = np.zeros(len(asked))
        first = self.rounds // 4
        for number in range(self.rounds):
            sampler.round()
            if number >= first:
                total += sampler.mean(user, item)
        said = center + spread * total / (self.rounds - first)
        return torch.from_numpy(said.clip(rating.min(), rating.max())).float()


class Side:
    """The users, or the items: their factors and biases, and where these come from."""

    def __init__(self, places: np.ndarray, rank: int, random: np.random.Generator) -> None:
        self.random = random
        self.places = places
        self.state = 0.1 * random.normal(size=(len(places), rank + 1))
        self.prior = np.zeros_like(self.state)
        square = places.T @ places + RIDGE * np.eye(places.shape[1])
        self.solve = np.linalg.inv(square)
        self.root = np.linalg.cholesky(self.solve)

    @property
    def factors(self) -> np.ndarray:
        """All but the biases, which are last."""
        return self.state[:, :-1]

    @property
    def biases(self) -> np.ndarray:
        """How much higher ratings are."""
        return self.state[:, -1]

    def sample(self, other: Side, weights: csr_matrix, weighted: csr_matrix) -> None:
        """Sample everything of this side.

        Parameters
        ----------
        other : Side
            The other side.
        weights, weighted : csr_matrix
            Precisions of the ratings, and ratings times these, with a row for each node.
        """
        mean, precision = self._sample_prior()
        size = self.state.shape[1]
        inputs = np.column_stack([other.factors, np.ones(len(other.state))])
        pairs = (inputs[:, :, None] * inputs[:, None, :]).reshape(len(inputs), -1)
        inner = (weights @ pairs).reshape(-1, size, size) + precision
        right = weighted @ inputs - weights @ (other.biases[:, None] * inputs)
        right += (mean + self.prior) @ precision
        self.state = _normal(inner, right, self.random)
        slopes = self.solve @ (self.places.T @ (self.state - mean))
        noise = self.root @ self.random.normal(size=slopes.shape)
        slopes += noise @ np.linalg.cholesky(np.linalg.inv(precision)).T
        self.prior = self.places @ slopes

    def _sample_prior(self) -> tuple[np.ndarray, np.ndarray]:
        """Sample mean and precision of the prior; their own is a weak normal-Wishart."""
        rest = self.state - self.prior
        count, size = rest.shape
        mean = rest.mean(axis=0)
        scale = np.eye(size) + count * np.cov(rest.T, bias=True).reshape(size, size)
        scale += 2 * count / (2 + count) * np.outer(mean, mean)
        precision = wishart.rvs(size + count, np.linalg.inv(scale), random_state=self.random)
        precision = np.reshape(precision, (size, size))
        spread = np.linalg.inv((2 + count) * precision)
        return self.random.multivariate_normal(count * mean / (2 + count), spread), precision


class Sampler:
    """Gibbs sampling of both sides and of the noise."""

    def __init__(
        self,
        train: Ratings,
        rating: np.ndarray,
        settings: GraphFactors,
        random: np.random.Generator,
    ) -> None:
        self.random, self.settings = random, settings
        self.user, self.item, self.rating = train.user.numpy(), train.item.numpy(), rating
        self.shape = (train.n_users, train.n_items)
        places = find_places(train, settings.places)
        self.users, self.items = (Side(side, RANK, random) for side in places)
        self.precision = np.full_like(rating, 1 / NOISE)
        self.steady = np.ones(train.n_items)

    def round(self) -> None:
        """Sample everything once."""
        weights = self._matrix(self.precision)
        weighted = self._matrix(self.precision * self.rating)
        self.users.sample(self.items, weights, weighted)
        self.items.sample(self.users, weights.T.tocsr(), weighted.T.tocsr())
        if self.settings.uneven:
            off = np.square(self.rating - self.mean(self.user, self.item)) / NOISE
            of_user = self._sample_steady(self.user, off * self.steady[self.item], self.shape[0])
            self.steady = self._sample_steady(self.item, off * of_user[self.user], self.shape[1])
            relative = of_user[self.user] * self.steady[self.item]
            self.precision = relative / NOISE

    def _sample_steady(self, node: np.ndarray, off: np.ndarray, nodes: int) -> np.ndarray:
        """Sample how precise nodes are, given squared errors in units of the usual one."""
        count, total = np.bincount(node, minlength=nodes), np.bincount(node, off, nodes)
        return self.random.gamma((DEGREES + count) / 2) / ((DEGREES + total) / 2)

    def mean(self, user: np.ndarray, item: np.ndarray) -> np.ndarray:
        """Return the expected ratings of pairs."""
        users, items = self.users, self.items
        together = np.einsum("ek,ek->e", users.factors[user], items.factors[item])
        return together + users.biases[user] + items.biases[item]

    def _matrix(self, values: np.ndarray) -> csr_matrix:
        return csr_matrix((values, (self.user, self.item)), shape=self.shape)


def _normal(inner: np.ndarray, right: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Sample from normal distributions, given their precisions and these times their means."""
    noise = random.normal(size=right.shape)
    root = np.linalg.cholesky(inner)
    half = np.linalg.solve(root, right[..., None])
    sample: np.ndarray = np.linalg.solve(root.swapaxes(1, 2), half + noise[..., None])[..., 0]
    return sample
