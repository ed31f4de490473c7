r"""Factor analysis of rows with holes.

.. math:: x_{ij} = \mu_j + w_j^\top z_i + \varepsilon_{ij}, \quad
          z_i \sim \mathcal N(0, I), \; \varepsilon_{ij} \sim \mathcal N(0, \psi_j),
          \; w_{jk} \sim \mathcal N(0, 1 / \alpha_k)

Fitted by expectation and maximisation over the observed cells only. Each factor has a precision of
its own, so that one which explains nothing fades away (Bishop: Variational principal components,
1999). What a row says about its factors is the solution of a small linear system, so new rows need
no refit and do not depend on each other. Where columns are many and rows are few, nothing that
looks at one column at a time has enough to learn from, and this has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from grapefill.table.arrays import FloatArray

ROUNDS = 40
# Cells of the pooled column that the noise of every column is drawn towards.
PRIOR_CELLS = 5
LEAST_NOISE = 1e-4
# Numbers in the systems of the rows that are solved together: 64 MB.
BLOCK_NUMBERS = 8_000_000


@dataclass(frozen=True)
class Factors:
    """Columns as mixtures of factors.

    Parameters
    ----------
    columns : ndarray of int, shape (columns,)
        The features that it reads and predicts.
    center : ndarray of shape (columns,)
        Their means.
    loadings : ndarray of shape (columns, factors)
        What a factor adds to a column.
    noise : ndarray of shape (columns,)
        Variance of what the factors do not explain.

    Examples
    --------
    >>> hidden = np.random.default_rng(0).normal(size=(50, 1))
    >>> numbers = hidden * np.array([1.0, 2.0, -1.0])
    >>> numbers[0, 1] = np.nan
    >>> factors = Factors.fit(numbers, np.arange(3), rank=1)
    >>> bool(abs(factors.predict(numbers)[0, 1] - 2 * hidden[0, 0]) < 0.1)
    True
    """

    columns: npt.NDArray[np.int64]
    center: FloatArray
    loadings: FloatArray
    noise: FloatArray

    @classmethod
    def fit(cls, scaled: FloatArray, columns: npt.NDArray[np.int64], *, rank: int) -> Factors:
        """Fit factors to scaled rows.

        Parameters
        ----------
        scaled : ndarray of shape (rows, features)
            Numbers of about unit spread, NaN where a cell is not observed.
        columns : ndarray of int
            The features to look at; each has an observed cell.
        rank : int
            The most factors; less if there are fewer rows or columns.
        """
        numbers = scaled[:, columns]
        known = (~np.isnan(numbers)).astype(np.float64)
        cells = known.sum(axis=0)
        numbers = np.where(known > 0, numbers, 0.0)
        center = numbers.sum(axis=0) / cells
        rest = numbers - center * known
        loadings = _first_loadings(rest / max(known.mean(), LEAST_NOISE), rank)
        rank = loadings.shape[1]
        noise, precision = np.full(columns.size, 0.5), np.ones(rank)
        for _ in range(ROUNDS):
            mean, square = _posterior(rest, known, loadings, noise)
            # Factors are told to have unit variance; to say so after every round speeds it up.
            unmix = np.linalg.inv(np.linalg.cholesky(square.mean(axis=0)))
            mean = mean @ unmix.T
            square = unmix @ square @ unmix.T
            moments = (known.T @ square.reshape(-1, rank**2)).reshape(-1, rank, rank)
            spread = np.linalg.inv(moments + noise[:, None, None] * np.diag(precision))
            together = rest.T @ mean
            loadings = np.einsum("fij,fj->fi", spread, together)
            doubt = noise @ np.einsum("fii->fi", spread)
            precision = columns.size / (np.square(loadings).sum(axis=0) + doubt)
            left = np.square(rest).sum(axis=0) - 2 * (loadings * together).sum(axis=1)
            left += np.einsum("fi,fij,fj->f", loadings, moments, loadings)
            pooled = left.sum() / cells.sum()
            noise = np.maximum((left + PRIOR_CELLS * pooled) / (cells + PRIOR_CELLS), LEAST_NOISE)
            center = ((numbers - mean @ loadings.T) * known).sum(axis=0) / (cells + 1)
            rest = numbers - center * known
        return cls(columns, center, loadings, noise)

    def predict(self, scaled: FloatArray) -> FloatArray:
        """Return what the factors say about every cell of some rows, shape (rows, columns)."""
        predicted = np.empty((scaled.shape[0], self.columns.size))
        rank = self.loadings.shape[1]
        size = max(1, BLOCK_NUMBERS // max(rank**2, self.columns.size))
        for start in range(0, scaled.shape[0], size):
            rows = slice(start, start + size)
            numbers = scaled[rows][:, self.columns]
            known = ~np.isnan(numbers)
            rest = np.where(known, numbers - self.center, 0.0)
            system, right = _systems(
                rest, known.astype(np.float64), self.loadings, self.noise, product=_row_by_row
            )
            mean = np.linalg.solve(system, right[..., None])[..., 0]
            predicted[rows] = _row_by_row(mean, self.loadings.T) + self.center
        return predicted

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the factors as plain arrays, by name, for a model file."""
        return {
            "columns": self.columns,
            "center": self.center,
            "loadings": self.loadings,
            "noise": self.noise,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]], n_features: int) -> Factors:
        """Rebuild factors from `arrays`; raises ValueError if they are none."""
        factors = cls(**{name: arrays[name] for name in cls.__dataclass_fields__})
        size = factors.columns.size
        if not np.isin(factors.columns, np.arange(n_features)).all():
            raise ValueError("the factors read columns that are not there")
        if factors.loadings.ndim != 2 or factors.loadings.shape[0] != size:
            raise ValueError("the loadings do not fit the columns of the factors")
        if factors.center.shape != (size,) or factors.noise.shape != (size,):
            raise ValueError("center or noise do not fit the columns of the factors")
        if not (factors.noise > 0).all():
            raise ValueError("the noise of the factors is not positive")
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError("not all numbers of the factors are finite")
        return factors


def _first_loadings(rest: FloatArray, rank: int) -> FloatArray:
    """Return the leading principal components of rows whose holes are 0."""
    _, strength, direction = np.linalg.svd(rest, full_matrices=False)
    rank = min(rank, strength.size)
    first: FloatArray = direction[:rank].T * strength[:rank] / np.sqrt(rest.shape[0])
    return first


def _systems(
    rest: FloatArray,
    known: FloatArray,
    loadings: FloatArray,
    noise: FloatArray,
    *,
    product: Callable[[FloatArray, FloatArray], FloatArray] = np.matmul,
) -> tuple[FloatArray, FloatArray]:
    """Return the linear systems, left and right sides, whose solutions are the rows' factors."""
    columns, rank = loadings.shape
    certain = loadings / noise[:, None]
    pairs = (certain[:, :, None] * loadings[:, None, :]).reshape(columns, -1)
    return product(known, pairs).reshape(-1, rank, rank) + np.eye(rank), product(rest, certain)


def _row_by_row(rows: npt.NDArray[np.floating[Any]], matrix: FloatArray) -> FloatArray:
    """Return the product of every row with a matrix, rounded as if the row were alone."""
    product: FloatArray = np.matmul(rows[:, None, :], matrix)[:, 0]
    return product


def _posterior(
    rest: FloatArray, known: FloatArray, loadings: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the rows' expected factors and the expectations of their squares."""
    system, right = _systems(rest, known, loadings, noise)
    covariance = np.linalg.inv(system)
    mean = np.einsum("nij,nj->ni", covariance, right)
    return mean, mean[:, :, None] * mean[:, None, :] + covariance
