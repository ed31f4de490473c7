"""Which cells are missing together: patterns of rows, correlations of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import BoolArray, FloatArray, IntArray

__all__ = ["co_missing", "group_rows"]

# Rows that are turned into floats at a time.
BLOCK_ROWS = 65_536


def group_rows(missing: BoolArray) -> tuple[BoolArray, IntArray, IntArray]:
    """Group rows by the cells they miss.

    Parameters
    ----------
    missing : ndarray of bool, shape (rows, columns)
        Where cells are missing.

    Returns
    -------
    patterns : ndarray of bool, shape (patterns, columns)
        The different rows of `missing`.
    which : ndarray of int, shape (rows,)
        The pattern of every row.
    count : ndarray of int, shape (patterns,)
        How many rows have it.

    Examples
    --------
    >>> patterns, which, count = group_rows(np.array([[True, False], [False, False]] * 2))
    >>> patterns.tolist(), which.tolist(), count.tolist()
    ([[False, False], [True, False]], [1, 0, 1, 0], [2, 2])
    """
    bits = np.packbits(missing, axis=1)
    # Whole words instead of bytes: one word is sorted far quicker than a row.
    words = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    words[:, : bits.shape[1]] = bits
    keys = words.view(">u8")
    one = keys[:, 0] if keys.shape[1] == 1 else keys
    _, first, which, count = np.unique(
        one, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    return missing[first], which.ravel(), count


def co_missing(missing: BoolArray) -> tuple[FloatArray, IntArray]:
    """Return how columns are missing together.

    Parameters
    ----------
    missing : ndarray of bool, shape (rows, columns)
        Where cells are missing; every column has some that are and some that are not.

    Returns
    -------
    correlation : ndarray of shape (columns, columns)
        From -1, where one column is missing the other one is there, to 1, they are missing in the
        same rows.
    both : ndarray of int, shape (columns, columns)
        Number of rows that miss both.

    Examples
    --------
    >>> correlation, both = co_missing(np.array([[True, True], [True, True], [False, False]]))
    >>> correlation.tolist(), both.tolist()
    ([[1.0, 1.0], [1.0, 1.0]], [[2, 2], [2, 2]])
    """
    rows, columns = missing.shape
    both = np.zeros((columns, columns))
    for start in range(0, rows, BLOCK_ROWS):
        block = missing[start : start + BLOCK_ROWS].astype(np.float64)
        both += block.T @ block
    count = np.diagonal(both)
    covariance = rows * both - np.outer(count, count)
    variance = count * (rows - count)
    correlation = covariance / np.sqrt(np.outer(variance, variance))
    return np.clip(correlation, -1.0, 1.0), both.astype(np.int64)
