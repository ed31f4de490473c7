r"""K nearest neighbours (Troyanskaya et al.: Missing value estimation methods, 2001).

.. math::

    \hat x_{ij} = \frac{\sum_{k \in N_j(i)} x_{kj} / d_{ik}}{\sum_{k \in N_j(i)} 1 / d_{ik}},
    \qquad d_{ik} = \mathrm{mean}_{l \in O_i \cap O_k} (x_{il} - x_{kl})^2

over the 50 nearest rows that have column j. The paper took fancyimpute, whose distance is the mean
*squared* difference of what two rows have in common; scikit-learn's is its root, so weights of
``1 / d`` there are much flatter. The search itself is scikit-learn's, in blocks of rows, so that
memory stays at a gigabyte however long the table is.
"""

from __future__ import annotations

import numpy as np
from sklearn.impute import KNNImputer

NEIGHBOURS = 50
# The least distance that fancyimpute knows, so that rows that agree do not decide alone.
LEAST = 1e-6


def knn(neighbours: int = NEIGHBOURS) -> KNNImputer:
    """Return the imputer."""
    return KNNImputer(n_neighbors=neighbours, weights=inverse_square)


def inverse_square(distances: np.ndarray) -> np.ndarray:
    """Return the weights of neighbours, from their root mean square distances."""
    return 1 / np.maximum(np.square(distances), LEAST)
