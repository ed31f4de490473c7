r"""Soft-thresholded SVD (Mazumder, Hastie, Tibshirani: Spectral regularization, JMLR 2010).

.. math:: \min_Z \tfrac12 \|P_\Omega(X - Z)\|_F^2 + \lambda \|Z\|_*

solved by filling in Z, taking the SVD and shrinking the singular values by :math:`\lambda`, again
and again. `SoftImpute` chooses :math:`\lambda` on a tenth of the observed cells, along a path of
warm starts. `Spectral` takes a fiftieth of the largest singular value of the table with 0 in its
holes, the heuristic of fancyimpute, which the paper found to work best.
"""

from __future__ import annotations

import numpy as np

STEPS = 12
ROUNDS = 60


class SoftImpute:
    """Filling by a matrix of low rank."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        """Return the filled table."""
        mean, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        scaled = (X - mean) / spread
        observed = ~np.isnan(scaled)
        # Not the seed alone: a mask may have been drawn with it.
        random = np.random.default_rng([self.seed, 1])
        held_out = observed & (random.random(X.shape) < 0.1)
        strongest = np.linalg.norm(np.where(observed, scaled, 0.0), ord=2)
        path = strongest * np.geomspace(0.7, 0.005, STEPS)
        errors, filled = [], np.zeros_like(scaled)
        for shrinkage in path:
            filled = _solve(scaled, observed & ~held_out, shrinkage, filled)
            errors.append(np.abs(filled - scaled)[held_out].mean())
        filled = np.zeros_like(scaled)
        for shrinkage in path[: int(np.argmin(errors)) + 1]:
            filled = _solve(scaled, observed, shrinkage, filled)
        return np.where(observed, X, filled * spread + mean)


class Spectral:
    """Filling by a matrix of low rank, with fancyimpute's heuristic."""

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        """Return the filled table."""
        observed = ~np.isnan(X)
        start = np.where(observed, X, 0.0)
        shrinkage = float(np.linalg.norm(start, ord=2)) / 50
        filled = _solve(X, observed, shrinkage, start, rounds=100, tolerance=1e-3)
        return np.where(observed, X, filled)


def _solve(
    scaled: np.ndarray,
    observed: np.ndarray,
    shrinkage: float,
    start: np.ndarray,
    *,
    rounds: int = ROUNDS,
    tolerance: float = 1e-4,
) -> np.ndarray:
    filled = start
    for _ in range(rounds):
        left, values, right = np.linalg.svd(np.where(observed, scaled, filled), full_matrices=False)
        values = np.maximum(values - shrinkage, 0.0)
        new = (left * values) @ right
        change = np.linalg.norm(new - filled) / max(np.linalg.norm(filled), 1e-12)
        filled = new
        if change < tolerance:
            break
    return filled
