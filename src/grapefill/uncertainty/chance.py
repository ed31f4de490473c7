"""Random numbers that belong to rows: the same for a row whichever rows come with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray, IntArray

# Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def uniforms(rows: IntArray, *key: int) -> FloatArray:
    """Return a number between 0 and 1 for every row, neither of them included.

    Parameters
    ----------
    rows : ndarray of int
        Positions of the rows in the table.
    *key : int
        What the numbers are for, each at least 0; another key gives other numbers.

    Examples
    --------
    >>> all_rows = uniforms(np.arange(5), 7, 1)
    >>> bool((uniforms(np.array([3]), 7, 1) == all_rows[3]).all())
    True
    """
    # Zeros are put behind a short key, so that its length has to be a part of it.
    start = np.random.SeedSequence((len(key), *key)).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        bits = start + (rows.astype(np.uint64) + np.uint64(1)) * _STEP
        bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
        bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    bits ^= bits >> np.uint64(31)
    numbers: FloatArray = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return numbers


def normals(rows: IntArray, *key: int) -> FloatArray:
    """Return a standard normal number for every row; see `uniforms`."""
    numbers: FloatArray = ndtri(uniforms(rows, *key))
    return numbers
