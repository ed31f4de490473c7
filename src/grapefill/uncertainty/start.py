r"""Where the chain of a draw starts: the fills, off by errors that go along with each other.

A chain forgets slowly where it started when cells are missing together that go along with each
other, and fills alone lie too close together. With :math:`\Sigma` the covariance of the columns and
:math:`x \sim \mathcal N(0, \Sigma)`,

.. math:: e_{mis} = x_{mis} - \Sigma_{mis, obs} \Sigma_{obs, obs}^{-1} x_{obs}

is distributed as the errors of the best linear fills of the missing cells of a row are, given which
of its cells are observed (Matheron's rule).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grapefill.uncertainty.chance import normals

if TYPE_CHECKING:
    from grapefill.table.arrays import BoolArray, FloatArray, IntArray

# Of the largest variance, what is added to all, so that every part can be inverted.
RIDGE = 1e-6
# Rows are worked out so many numbers at a time: 2 MB.
BLOCK = 250_000


def covariance_of(scaled: FloatArray) -> FloatArray:
    """Return the covariance of columns without holes, a little more than it on the diagonal."""
    columns = scaled.shape[1]
    if not columns:
        return np.empty((0, 0))
    centred = scaled - scaled.mean(axis=0)
    covariance: FloatArray = centred.T @ centred / max(1, scaled.shape[0] - 1)
    return covariance + np.eye(columns) * (RIDGE * float(np.diag(covariance).max()) + 1e-12)


def errors_together(
    covariance: FloatArray, missing: BoolArray, rows: IntArray, *key: int
) -> FloatArray:
    """Draw the errors of the missing cells of rows; 0 where a cell is observed.

    Parameters
    ----------
    covariance : ndarray of shape (columns, columns)
        How the columns go along with each other.
    missing : ndarray of bool, shape (rows, columns)
        The cells.
    rows : ndarray of int
        Positions of the rows in their table.
    *key : int
        What the random numbers are for.

    Examples
    --------
    >>> covariance = np.array([[1.0, 0.99], [0.99, 1.0]])
    >>> missing = np.array([[True, True], [True, False]]).repeat(2_000, axis=0)
    >>> errors = errors_together(covariance, missing, np.arange(4_000), 0)
    >>> bool(errors[:2_000].std() > 0.9), bool(errors[2_000:, 0].std() < 0.2)
    (True, True)
    """
    columns = covariance.shape[0]
    root = np.linalg.cholesky(covariance)
    noise = np.stack([normals(rows, *key, k) for k in range(columns)], axis=1)
    # A matrix product may round a row differently among others.
    drawn = np.einsum("ij,kj->ik", noise, root)
    seen = (~missing).astype(np.float64)
    step = max(1, BLOCK // columns**2)
    for first in range(0, rows.size, step):
        part = slice(first, first + step)
        here = seen[part]
        system = covariance * here[:, :, None] * here[:, None, :]
        system[:, np.arange(columns), np.arange(columns)] += 1 - here
        known = np.linalg.solve(system, (here * drawn[part])[:, :, None])[:, :, 0]
        drawn[part] -= np.einsum("ij,jk->ik", here * known, covariance)
    result: FloatArray = np.where(missing, drawn, 0.0)
    return result
