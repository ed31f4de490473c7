"""Factor analysis where only a small part of a wide table is observed.

The model and its fit are those of `Factors`; the observed cells are a sparse matrix, so time and
memory grow with them, and with rows and columns times the square of the number of factors. Columns
are in one unit, so the mean of the loadings' prior is learned too: a factor that all columns share
tells how much higher a row is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.factors.analysis import LEAST_NOISE, PRIOR_CELLS, Factors

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray, IntArray

__all__ = ["fit_sparse_factors", "predict_sparse"]

ROUNDS = 20


def fit_sparse_factors(numbers: Any, *, rank: int, seed: int) -> Factors:
    """Fit factors to the stored cells of a sparse matrix.

    Parameters
    ----------
    numbers : scipy.sparse.csr_matrix of shape (rows, columns)
        Numbers of about unit spread; what is not stored is not observed.
    rank : int
        The most factors.
    seed : int
        Where the search for the first factors starts.
    """
    sparse: Any = import_module("scipy.sparse")
    known = sparse.csr_matrix(
        (np.ones_like(numbers.data), numbers.indices, numbers.indptr), shape=numbers.shape
    )
    known_t = known.T.tocsr()
    row = np.repeat(np.arange(numbers.shape[0]), np.diff(numbers.indptr))
    cells = np.bincount(numbers.indices, minlength=numbers.shape[1]).astype(np.float64)
    rank = max(1, min(rank, min(numbers.shape) - 1))
    center = np.asarray(numbers.sum(axis=0)).ravel() / (cells + 1)
    rest = _less(numbers, center[numbers.indices])
    loadings = _first_loadings(rest, rank, seed)
    noise, precision, usual = np.full(cells.size, 0.5), np.ones(rank), np.zeros(rank)
    for _ in range(ROUNDS):
        mean, square = _posterior(rest, known, loadings, noise)
        mix = np.linalg.cholesky(square.mean(axis=0))
        unmix = np.linalg.inv(mix)
        mean = mean @ unmix.T
        square = unmix @ square @ unmix.T
        usual = usual @ mix
        moments = (known_t @ square.reshape(-1, rank**2)).reshape(-1, rank, rank)
        spread = np.linalg.inv(moments + noise[:, None, None] * np.diag(precision))
        together = rest.T @ mean
        expected = noise[:, None] * (precision * usual)
        loadings = np.einsum("fij,fj->fi", spread, together + expected)
        usual = loadings.mean(axis=0)
        doubt = noise @ np.einsum("fii->fi", spread)
        precision = cells.size / (np.square(loadings - usual).sum(axis=0) + doubt)
        squares = np.bincount(rest.indices, np.square(rest.data), cells.size)
        left = squares - 2 * (loadings * together).sum(axis=1)
        left += np.einsum("fi,fij,fj->f", loadings, moments, loadings)
        pooled = left.sum() / cells.sum()
        noise = np.maximum((left + PRIOR_CELLS * pooled) / (cells + PRIOR_CELLS), LEAST_NOISE)
        explained = np.einsum("ek,ek->e", mean[row], loadings[numbers.indices])
        center = np.bincount(numbers.indices, numbers.data - explained, cells.size) / (cells + 1)
        rest = _less(numbers, center[numbers.indices])
    return Factors(np.arange(cells.size), center, loadings, noise)


def predict_sparse(factors: Factors, numbers: Any, rows: IntArray, columns: IntArray) -> FloatArray:
    """Return what factors say about some cells, given the stored cells of a sparse matrix."""
    wanted, which = np.unique(rows, return_inverse=True)
    some = numbers[wanted]
    rest = _less(some, factors.center[some.indices])
    sparse: Any = import_module("scipy.sparse")
    known = sparse.csr_matrix((np.ones_like(some.data), some.indices, some.indptr), some.shape)
    mean, _ = _posterior(rest, known, factors.loadings, factors.noise)
    explained: FloatArray = np.einsum("ek,ek->e", mean[which], factors.loadings[columns])
    return explained + factors.center[columns]


def _less(numbers: Any, by: FloatArray) -> Any:
    """Return a sparse matrix with something subtracted from its stored cells."""
    rest = numbers.copy()
    rest.data = numbers.data - by
    return rest


def _first_loadings(rest: Any, rank: int, seed: int) -> FloatArray:
    """Return the leading principal components, as if what is not observed were the mean.

    There are none in a single row or column, or if all cells are the means of their columns; then
    loadings are 0, and stay so.
    """
    if min(rest.shape) < 2 or not rest.data.any():
        return np.zeros((rest.shape[1], rank))
    linalg: Any = import_module("scipy.sparse.linalg")
    start = np.random.default_rng(seed).normal(size=min(rest.shape))
    _, strength, direction = linalg.svds(rest, k=rank, v0=start, solver="arpack")
    share = max(rest.nnz / (rest.shape[0] * rest.shape[1]), LEAST_NOISE)
    first: FloatArray = direction.T * strength / (share * np.sqrt(rest.shape[0]))
    return first


def _posterior(
    rest: Any, known: Any, loadings: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the rows' expected factors and the expectations of their squares."""
    columns, rank = loadings.shape
    certain = loadings / noise[:, None]
    pairs = (certain[:, :, None] * loadings[:, None, :]).reshape(columns, -1)
    covariance = np.linalg.inv((known @ pairs).reshape(-1, rank, rank) + np.eye(rank))
    mean = np.einsum("nij,nj->ni", covariance, rest @ certain)
    return mean, mean[:, :, None] * mean[:, None, :] + covariance
