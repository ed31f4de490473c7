r"""Regularised iterative PCA, missMDA (Josse, Husson: missMDA, JSS 70, 2016).

.. math::

    \hat x_{ij} = \mu_j + s_j \sum_{k \le S}
        \frac{\lambda_k - \sigma^2}{\lambda_k}\, \sqrt{\lambda_k}\, u_{ik} v_{jk},
    \qquad \sigma^2 = \frac{n p}{\min(p, n - 1)} \cdot
        \frac{\sum_{k > S} \lambda_k}{(n - 1) p - (n - 1) S - p S + S^2}

again and again, columns standardised anew each time, until the filled cells settle. Without the
shrinkage it is iterative PCA (``method="EM"``), which fits noise when much is missing. The number
of components S has the lowest generalised cross-validation error,
:math:`n p \sum (x - \hat x)^2 / (n p - p - n S - p S + S^2 + S)^2` over the completed table, as
``estim_ncpPCA(method.cv="gcv")`` does, or is 2, the default of ``imputePCA``.

missMDA is a package for *multiple* imputation: `draws` adds what ``MIPCA`` adds, noise of the
size of the residuals, and averages so many completed tables. One draw is what a row of a single
completed table looks like, and is much further from the truth than the mean of the distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROUNDS = 1000
TOLERANCE = 1e-6
# That of estim_ncpPCA, which only compares numbers of components.
COARSE = 1e-4
# The most that estim_ncpPCA tries.
MOST_COMPONENTS = 5


@dataclass
class MissMDA:
    """Filling by regularised iterative PCA.

    Parameters
    ----------
    components : int or None
        Number of components; None to choose it by generalised cross-validation.
    regularised : bool
        Whether singular values are shrunk.
    draws : int
        Completed tables to average, each with noise; 0 for the fit itself.
    seed : int
        Source of the noise.
    """

    components: int | None = None
    regularised: bool = True
    draws: int = 0
    seed: int = 0

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        """Return the filled table."""
        holes = np.isnan(X)
        if self.components is None:
            candidates = range(min(MOST_COMPONENTS, X.shape[1] - 1) + 1)
            count = int(
                np.argmin(
                    [_gcv(X, holes, self._iterate(X, holes, s, COARSE), s) for s in candidates]
                )
            )
        else:
            count = self.components
        fitted = self._iterate(X, holes, count, TOLERANCE)
        filled = np.where(holes, fitted, X)
        if self.draws:
            random = np.random.default_rng([self.seed, 1])
            residual = np.where(holes, 0.0, X - fitted)
            n, p = X.shape
            freedom = 1 - (p + n * count + p * count - count**2 - count) / (n * p)
            spread = np.sqrt(
                np.square(residual).sum(0) / np.maximum((~holes).sum(0), 1) / max(freedom, 0.05)
            )
            noise = random.normal(size=(self.draws, *X.shape)).mean(axis=0)
            filled = np.where(holes, fitted + noise * spread, X)
        return filled

    def _iterate(
        self, X: np.ndarray, holes: np.ndarray, components: int, tolerance: float
    ) -> np.ndarray:
        n, p = X.shape
        fitted = np.broadcast_to(np.nanmean(X, axis=0), X.shape)
        if components == 0:
            return fitted
        filled = np.where(holes, fitted, X)
        before = np.inf
        for _ in range(ROUNDS):
            mean = filled.mean(axis=0)
            spread = filled.std(axis=0)
            spread = np.where(spread > 0, spread, 1.0)
            scaled = (filled - mean) / spread
            values, vectors = np.linalg.eigh(scaled.T @ scaled / n)
            values, kept = np.maximum(values[::-1], 0.0), vectors[:, ::-1][:, :components]
            shrunk = np.ones(components)
            if self.regularised:
                noise = _noise(values, components, n, p)
                shrunk = np.maximum(values[:components] - noise, 0) / np.maximum(
                    values[:components], 1e-12
                )
            projected = (scaled @ kept) * shrunk @ kept.T
            fitted = projected * spread + mean
            filled = np.where(holes, fitted, X)
            objective = np.square((filled - fitted) / spread)[~holes].sum()
            if abs(1 - objective / before) < tolerance:
                break
            before = max(objective, 1e-300)
        return fitted


def _noise(values: np.ndarray, components: int, n: int, p: int) -> float:
    """Return the variance that is left when the components are taken out."""
    freedom = (n - 1) * p - (n - 1) * components - p * components + components**2
    if freedom <= 0:
        return 0.0
    scale = n * p / min(p, n - 1)
    return min(scale * values[components:].sum() / freedom, values[min(components, p - 1)])


def _gcv(X: np.ndarray, holes: np.ndarray, fitted: np.ndarray, components: int) -> float:
    spread = np.nanstd(X, axis=0)
    n, p = X.shape
    error = np.square((X - fitted) / np.where(spread > 0, spread, 1.0))[~holes].mean()
    known = (~holes).sum()
    # Observed cells against parameters, as estim_ncpPCA counts them for tables with holes.
    freedom = known - p - n * components - p * components + components**2 + components
    return float(error * known**2 / freedom**2) if freedom > 0 else np.inf
