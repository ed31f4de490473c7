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
    return _between(_bits(rows, *key))


def spread_uniforms(rows: IntArray, number: int, *key: int) -> FloatArray:
    """Return a number between 0 and 1 for every row, those of several imputations spread evenly.

    Each is as random as one of `uniforms`. But of `STRATA` imputations in a row each falls into
    another of as many equal parts (McKay, Beckman, Conover: A comparison of three methods for
    selecting values of input variables, 1979), so that means over imputations are less a matter of
    chance. In which order they do, and where in its part each is, is drawn for every row (Hoang,
    Morris, Rogaway: An enciphering scheme based on a card shuffle, 2012).

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
    bits = _bits(rows, *key, block)
    within = _between(bits)
    # Wherever it starts, each part is as likely as any other.
    bits = _mixed(bits)
    part = place + _below(bits, STRATA)
    part -= STRATA * (part >= STRATA)
    for _ in range(SHUFFLES):
        bits = _mixed(bits)
        other = _below(bits, STRATA) - part
        other += STRATA * (other < 0)
        # Two parts that are each other's partner are swapped, or neither is.
        swapped = (bits >> np.maximum(part, other).astype(np.uint64)) & np.uint64(1)
        part = np.where(swapped, other, part)
    # So that the places within parts even out, too.
    within = np.where(part & 1, 1 - within, within)
    # Not 1, to which the sum may be rounded.
    return np.minimum((part + within) / STRATA, 1 - 2.0**-53)


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


def _mixed(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return further random bits, a step of those in `_bits`."""
    with np.errstate(over="ignore"):
        found: npt.NDArray[np.uint64] = bits * _FIRST + _STEP
    return found ^ (found >> np.uint64(29))


def _between(bits: npt.NDArray[np.uint64]) -> FloatArray:
    """Return numbers between 0 and 1, neither of them included."""
    numbers: FloatArray = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return numbers


def _below(bits: npt.NDArray[np.uint64], count: int) -> IntArray:
    """Return whole numbers below a small one, by the first half of the bits."""
    return (((bits >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)).astype(np.int64)
