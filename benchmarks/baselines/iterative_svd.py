r"""Iterative SVD (Troyanskaya et al.: Missing value estimation methods for DNA microarrays, 2001).

.. math:: X \leftarrow P_\Omega(X) + P_{\bar\Omega}(X V_r V_r^\top)

with :math:`V_r` the first r right singular vectors of the filled table, from holes filled with 0
until the filled cells change by less than :math:`10^{-5}` of their squares. The paper took
r = m - 1 and fancyimpute, which lets the rank grow from 1 by doubling, as here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class IterativeSVD:
    """Filling by projection onto singular vectors.

    Parameters
    ----------
    rank : int or None
        How many; None for one less than there are columns.
    rounds : int
        At most so many.
    tolerance : float
        Change of the filled cells, in squares, at which it ends.
    """

    rank: int | None = None
    rounds: int = 200
    tolerance: float = 1e-5

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        """Return the filled table."""
        holes = np.isnan(X)
        filled = np.where(holes, 0.0, X)
        most = max(1, self.rank or X.shape[1] - 1)
        for step in range(self.rounds):
            rank = min(2 ** min(step, 30), most)
            # The right singular vectors are eigenvectors of a matrix that is small.
            _, vectors = np.linalg.eigh(filled.T @ filled)
            kept = vectors[:, -rank:]
            new = (filled @ kept) @ kept.T
            change = np.square(new - filled)[holes].sum()
            before = np.square(filled[holes]).sum()
            filled = np.where(holes, new, X)
            if change < self.tolerance * before:
                break
        return filled
