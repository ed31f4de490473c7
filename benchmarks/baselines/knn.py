r"""K nearest neighbours (Troyanskaya et al.: Missing value estimation methods, 2001).

.. math::

    \hat x_{ij} = \frac{\sum_{k \in N_j(i)} x_{kj} / d_{ik}}{\sum_{k \in N_j(i)} 1 / d_{ik}},
    \qquad d_{ik} = \mathrm{mean}_{l \in O_i \cap O_k} (x_{il} - x_{kl})^2

over the 50 nearest rows that have column j. The paper took fancyimpute, whose distance is the mean
*squared* difference of what two rows have in common; scikit-learn's is its root, so weights of
``1 / d`` there are much flatter. Neighbours are those of scikit-learn's ``KNNImputer``, found by
matrix products and partial sorts: 46,000 rows take a minute or two, there more than an hour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

# The least distance that fancyimpute knows, so that rows that agree do not decide alone.
LEAST = 1e-6
BLOCK = 256


@dataclass
class KNN:
    """Filling by the rows that are most alike.

    Parameters
    ----------
    neighbours : int
        How many rows fill a hole, at most.
    """

    neighbours: int = 50

    def fit(self, X: np.ndarray) -> Self:
        """Keep the rows of a table with holes."""
        X = np.asarray(X, dtype=np.float64)
        self.known = torch.from_numpy(~np.isnan(X))
        self.values = torch.from_numpy(np.nan_to_num(X))
        self.mean = np.nan_to_num(np.nanmean(X, axis=0))
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return a table whose holes are filled by the rows of `fit`."""
        filled = np.array(X, dtype=np.float64)
        have = [self.known[:, j].nonzero()[:, 0] for j in range(X.shape[1])]
        for start in range(0, len(X), BLOCK):
            block = filled[start : start + BLOCK]
            distance = self._distances(torch.from_numpy(block))
            for j, rows in enumerate(have):
                holes = np.flatnonzero(np.isnan(X[start : start + BLOCK, j]))
                if holes.size and len(rows):
                    guess = self._guess(distance[holes][:, rows], self.values[rows, j])
                    block[holes, j] = np.where(np.isnan(guess), self.mean[j], guess)
                else:
                    block[holes, j] = self.mean[j]
        return filled

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        """Return the filled table."""
        return self.fit(X).transform(X)

    def _distances(self, rows: Tensor) -> Tensor:
        """Return mean squared differences to all rows; infinite with nothing in common."""
        known = (~rows.isnan()).double()
        values, others = rows.nan_to_num(), self.known.double()
        squares = values.square() @ others.T + known @ self.values.square().T
        distance = (squares - 2 * values @ self.values.T) / (known @ others.T)
        return distance.clamp_(min=0).nan_to_num_(nan=torch.inf)

    def _guess(self, distance: Tensor, values: Tensor) -> np.ndarray:
        """Return the weighted means of the nearest values; NaN if none is near."""
        nearest = distance.topk(min(self.neighbours, distance.shape[1]), largest=False)
        weights = torch.where(nearest.values.isinf(), 0, 1 / nearest.values.clamp(min=LEAST))
        found: np.ndarray = ((weights * values[nearest.indices]).sum(1) / weights.sum(1)).numpy()
        return found
