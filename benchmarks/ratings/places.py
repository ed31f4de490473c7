r"""Where in the graph users and items are.

The leading singular vectors of the normalised incidence matrix, the spectral embedding of a
bipartite graph (Dhillon, KDD 2001), and the logarithm of the degree:

.. math:: (D_u + c)^{-1/2} A (D_i + c)^{-1/2} \approx U \Sigma V^\top

*What* somebody rates tells something about *how*, and nodes with few ratings profit most. Only
ratings to learn from are edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import svds

if TYPE_CHECKING:
    from benchmarks.ratings.data import Ratings

# c, so that a node with one edge is not taken for sure.
EXTRA_DEGREE = 5.0


def find_places(ratings: Ratings, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of users and of items: vectors of mean square 1, and centred degrees.

    Parameters
    ----------
    ratings : Ratings
        The edges.
    count : int
        Singular vectors, at most.
    """
    pairs = (ratings.user.numpy(), ratings.item.numpy())
    shape = (ratings.n_users, ratings.n_items)
    incidence = csr_matrix((np.ones(len(ratings)), pairs), shape=shape)
    degrees = [np.asarray(incidence.sum(axis=axis)).ravel() for axis in (1, 0)]
    left, right = (diags(1 / np.sqrt(degree + EXTRA_DEGREE)) for degree in degrees)
    count = min(count, min(shape) - 1)
    start = np.random.default_rng(0).normal(size=min(shape))
    of_users, _, of_items = svds(left @ incidence @ right, k=count, v0=start)
    return _with_degrees(of_users, degrees[0]), _with_degrees(of_items.T, degrees[1])


def _with_degrees(vectors: np.ndarray, degree: np.ndarray) -> np.ndarray:
    popular = np.log1p(degree)
    return np.column_stack([vectors * np.sqrt(len(vectors)), popular - popular.mean()])
