r"""Bayesian factors of users and items, which know where in the graph these are.

.. math::
    r_{ui} &= \mu + b_u + b_i + p_u^\top q_i + \varepsilon_{ui}, \quad
        \varepsilon_{ui} \sim N(0, \sigma^2 / (\alpha_u \alpha_i)) \\
    (p_u, b_u) &\sim N(m + B^\top f_u, \Lambda^{-1}), \quad
        B \sim MN(0, I / \rho, \Lambda^{-1})

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
# Degrees of freedom of the gamma priors, and rho.
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
        uneven, _ = self.choose(rest, held_out)
        return self.predict(train, asked, uneven=uneven)

    def choose(self, rest: Ratings, held_out: Ratings) -> tuple[bool, Tensor]:
        """Return which noise predicts held-out ratings best, and these predictions."""
        tried = {uneven: self.predict(rest, held_out, uneven=uneven) for uneven in (False, True)}
        best = min(tried, key=lambda uneven: root_mean_square(tried[uneven], held_out))
        return best, tried[best]

    def predict(self, train: Ratings, asked: Ratings, *, uneven: bool) -> Tensor:
        """Return the predicted ratings of other pairs, with even or uneven noise."""
        random = np.random.default_rng(self.seed)
        rating = train.rating.numpy().astype(np.float64)
        center, spread = rating.mean(), rating.std() or 1.0
        scaled = (rating - center) / spread
        sampler = Sampler(train, scaled, random, places=self.places, uneven=uneven)
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
    """The users, or the items: their factors and biases, and where these come from.

    Parameters
    ----------
    places : ndarray of shape (nodes, features)
        What is known of the nodes.
    rank : int
        How many factors there are.
    random : Generator
        Source of all randomness.
    """

    def __init__(self, places: np.ndarray, rank: int, random: np.random.Generator) -> None:
        self.random = random
        self.places = places
        self.state = 0.1 * random.normal(size=(len(places), rank + 1))
        self.slopes = np.zeros((places.shape[1], rank + 1))
        self.covariance = np.linalg.inv(places.T @ places + RIDGE * np.eye(places.shape[1]))
        self.root = np.linalg.cholesky(self.covariance)

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
        mean, precision = self.sample_prior()
        size = self.state.shape[1]
        inputs = np.column_stack([other.factors, np.ones(len(other.state))])
        pairs = (inputs[:, :, None] * inputs[:, None, :]).reshape(len(inputs), -1)
        inner = (weights @ pairs).reshape(-1, size, size) + precision
        right = weighted @ inputs - weights @ (other.biases[:, None] * inputs)
        right += (mean + self.places @ self.slopes) @ precision
        self.state = sample_normal(inner, right, self.random)
        self.slopes = self.covariance @ (self.places.T @ (self.state - mean))
        noise = self.root @ self.random.normal(size=self.slopes.shape)
        self.slopes += noise @ np.linalg.cholesky(np.linalg.inv(precision)).T

    def sample_prior(self) -> tuple[np.ndarray, np.ndarray]:
        """Sample mean and precision of the prior; their own is a weak normal-Wishart."""
        rest = self.state - self.places @ self.slopes
        count, size = rest.shape
        mean = rest.mean(axis=0)
        scale = np.eye(size) + count * np.cov(rest.T, bias=True)
        scale += 2 * count / (2 + count) * np.outer(mean, mean)
        scale += RIDGE * self.slopes.T @ self.slopes
        degrees = size + count + len(self.slopes)
        precision = wishart.rvs(degrees, np.linalg.inv(scale), random_state=self.random)
        spread = np.linalg.inv((2 + count) * precision)
        return self.random.multivariate_normal(count * mean / (2 + count), spread), precision


class Sampler:
    """Gibbs sampling of both sides and, if noise is uneven, of how precise nodes are."""

    def __init__(
        self,
        train: Ratings,
        rating: np.ndarray,
        random: np.random.Generator,
        *,
        places: int,
        uneven: bool,
    ) -> None:
        self.random, self.uneven = random, uneven
        self.user, self.item, self.rating = train.user.numpy(), train.item.numpy(), rating
        self.shape = (train.n_users, train.n_items)
        self.users, self.items = (Side(side, RANK, random) for side in find_places(train, places))
        self.of_rating = np.full_like(rating, 1 / NOISE)
        self.of_item = np.ones(train.n_items)

    def round(self) -> None:
        """Sample everything once."""
        weights = self._matrix(self.of_rating)
        weighted = self._matrix(self.of_rating * self.rating)
        self.users.sample(self.items, weights, weighted)
        self.items.sample(self.users, weights.T.tocsr(), weighted.T.tocsr())
        if self.uneven:
            off = np.square(self.rating - self.mean(self.user, self.item)) / NOISE
            of_user = self._precisions(self.user, off * self.of_item[self.item], self.shape[0])
            self.of_item = self._precisions(self.item, off * of_user[self.user], self.shape[1])
            self.of_rating = of_user[self.user] * self.of_item[self.item] / NOISE

    def _precisions(self, node: np.ndarray, off: np.ndarray, nodes: int) -> np.ndarray:
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


def sample_normal(inner: np.ndarray, right: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Sample from normal distributions, given their precisions and these times their means."""
    noise = random.normal(size=right.shape)
    root = np.linalg.cholesky(inner)
    half = np.linalg.solve(root, right[..., None])
    sample: np.ndarray = np.linalg.solve(root.swapaxes(1, 2), half + noise[..., None])[..., 0]
    return sample
