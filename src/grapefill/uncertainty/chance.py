"""Random numbers that belong to rows: the same for a row whichever rows come with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

if TYPE_CHECKING:
    import numpy.typing as npt

    from grapefill.table.arrays import FloatArray, IntArray

# Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

# Imputations that are spread evenly, as many as coefficients are drawn, and how often their order
# is shuffled.
STRATA, SHUFFLES = 20, 4


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
    numbers: FloatArray = ((_bits(rows, *key) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return numbers


def spread_uniforms(rows: IntArray, number: int, *key: int) -> FloatArray:
    """Return a number between 0 and 1 for every row, those of several imputations spread evenly.

    Each is as random as one of `uniforms`. But of `STRATA` imputations in a row each falls into
    another of as many equal parts (McKay, Beckman, Conover: A comparison of three methods for
    selecting values of input variables, 1979), so that means over imputations are less a matter of
    chance. In which order they do is drawn for every row (Hoang, Morris, Rogaway: An enciphering
    scheme based on a card shuffle, 2012).

    Parameters
    ----------
    rows : ndarray of int
        Positions of the rows in the table.
    number : int
        Which imputation it is.
    *key : int
        What the numbers are for, each at least 0; another key gives other numbers.

    Examples
    --------
    >>> one_row = [float(spread_uniforms(np.array([3]), k, 7)[0]) for k in range(STRATA)]
    >>> sorted(int(STRATA * each) for each in one_row) == list(range(STRATA))
    True
    """
    block, place = divmod(number, STRATA)
    # Wherever it starts, each part is as likely as any other.
    part = (place + (STRATA * uniforms(rows, *key, block, 0)).astype(np.int64)) % STRATA
    for step in range(1, SHUFFLES + 1):
        bits = _bits(rows, *key, block, step)
        other = ((bits >> np.uint64(32)) % np.uint64(STRATA)).astype(np.int64) - part
        other = np.where(other < 0, other + STRATA, other)
        # Two parts that are each other's partner are swapped, or neither is.
        pair = np.maximum(part, other).astype(np.uint64)
        part = np.where((bits >> pair) & np.uint64(1), other, part)
    numbers: FloatArray = (part + uniforms(rows, *key, block, SHUFFLES + 1, place)) / STRATA
    # Not 1, to which the sum may be rounded.
    return np.minimum(numbers, 1 - 2.0**-53)


def normals(rows: IntArray, *key: int) -> FloatArray:
    """Return a standard normal number for every row; see `uniforms`."""
    numbers: FloatArray = ndtri(uniforms(rows, *key))
    return numbers


def _bits(rows: IntArray, *key: int) -> npt.NDArray[np.uint64]:
    """Return 64 random bits for every row."""
    # Zeros are put behind a short key, so that its length has to be a part of it.
    start = np.random.SeedSequence((len(key), *key)).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        bits = start + (rows.astype(np.uint64) + np.uint64(1)) * _STEP
        bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
        bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    found: npt.NDArray[np.uint64] = bits ^ (bits >> np.uint64(31))
    return found
