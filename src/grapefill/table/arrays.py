"""Array work every container needs: matching categories, exact offsets, safe casts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "EXACT_LIMIT",
    "Array",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "are_exact",
    "cast_numbers",
    "counts_in_unit",
    "match_numbers",
    "offsets",
    "take_or_minus_one",
    "to_objects",
]

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

EXACT_LIMIT = 2**53
"""Up to here float64 holds every integer."""

_LOW_BITS = 0xFFFFFFFF
_INT64_LIMIT = 2.0**63


def are_exact(integers: Array) -> bool:
    """Whether float64 holds all of these integers.

    Examples
    --------
    >>> are_exact(np.array([2**53, -7])), are_exact(np.array([2**53 + 1]))
    (True, False)
    """
    return bool(((integers >= -EXACT_LIMIT) & (integers <= EXACT_LIMIT)).all())


def match_numbers(values: Array, categories: Sequence[object]) -> IntArray:
    """Return the position of every value among numeric categories, -1 where it is not there.

    Examples
    --------
    >>> match_numbers(np.array([3, 1, 7]), (3, 7)).tolist()
    [0, -1, 1]
    """
    keys, codes = _sorted_keys(values.dtype, categories)
    if len(keys) == 0:
        return np.full(len(values), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where(keys[at] == values, codes[at], -1)


def _sorted_keys(dtype: np.dtype[Any], categories: Sequence[Any]) -> tuple[Array, IntArray]:
    """Categories as sorted numbers of `dtype`, without those it cannot hold, and their codes."""
    pairs: list[tuple[int | float, int]]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        pairs = [
            (int(value), code)
            for code, value in enumerate(categories)
            if limits.min <= value <= limits.max and value == int(value)
        ]
    else:
        pairs = [(float(value), code) for code, value in enumerate(categories)]
    pairs.sort()
    keys = np.array([key for key, _ in pairs], dtype=dtype)
    return keys, np.array([code for _, code in pairs], dtype=np.int64)


def take_or_minus_one(table: IntArray, codes: Array) -> IntArray:
    """Translate codes through a table, keeping negative codes at -1.

    Examples
    --------
    >>> take_or_minus_one(np.array([5, 6]), np.array([1, -1, 0])).tolist()
    [6, -1, 5]
    """
    return np.append(table, -1)[np.where(codes < 0, len(table), codes)]


def offsets(counts: Array, origin: int) -> FloatArray:
    """Subtract an integer origin from 64-bit integers without overflow, into float64.

    The high and low halves are subtracted apart, so the result is exact wherever float64
    can hold it.

    Examples
    --------
    >>> offsets(np.array([2**62 + 3]), 2**62).tolist()
    [3.0]
    """
    high = (counts >> counts.dtype.type(32)).astype(np.int64) - (origin >> 32)
    low = (counts & counts.dtype.type(_LOW_BITS)).astype(np.int64) - (origin & _LOW_BITS)
    result: FloatArray = high.astype(np.float64) * 2.0**32 + low
    return result


def counts_in_unit(instants: Array, unit: str) -> IntArray:
    """Return datetimes or durations as counts of `unit`, held at the end of int64's range.

    Examples
    --------
    >>> counts_in_unit(np.array(["1970-01-03"], dtype="datetime64[D]"), "h").tolist()
    [48]
    """
    letter = instants.dtype.kind
    target = np.dtype(f"{letter}8[{unit}]")
    if instants.dtype == target:
        return instants.view(np.int64)
    converted = instants.astype(target)
    if _is_linear(instants.dtype) and _is_linear(target):
        ratio = _seconds(instants.dtype) / _seconds(target)
        reach = instants.view(np.int64).astype(np.float64) * ratio
        limit = np.iinfo(np.int64).max
        converted.view(np.int64)[reach >= _INT64_LIMIT] = limit
        converted.view(np.int64)[(reach < -_INT64_LIMIT) & ~np.isnat(instants)] = -limit
    return converted.view(np.int64)


def _is_linear(dtype: np.dtype[Any]) -> bool:
    """Whether the unit has a fixed length (years and months have none)."""
    return np.datetime_data(dtype)[0] not in ("Y", "M", "generic")


def _seconds(dtype: np.dtype[Any]) -> float:
    """Length of one count of a datetime dtype in seconds."""
    unit, step = np.datetime_data(dtype)
    one = np.ones(1, dtype=f"m8[{step}{unit}]")
    return float((one / np.timedelta64(1, "s"))[0])


def cast_numbers(values: Array, dtype: np.dtype[Any]) -> Array:
    """Cast numbers to a dtype; into integers they are rounded and held within its range.

    Examples
    --------
    >>> cast_numbers(np.array([1.6, 300.0]), np.dtype("int8")).tolist()
    [2, 127]
    """
    if dtype.kind not in "iu" or values.dtype == dtype:
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    if values.dtype.kind == "f":
        # float(limits.max) may round up to one past the range, so the top is set apart.
        top = values >= float(limits.max)
        safe = np.where(top, 0.0, np.maximum(np.rint(values), float(limits.min)))
        cast = safe.astype(dtype)
        cast[top] = limits.max
        return cast
    if values.dtype.kind == "b":
        return values.astype(dtype)
    within = np.iinfo(values.dtype)
    return np.clip(values, max(limits.min, within.min), min(limits.max, within.max)).astype(dtype)


def to_objects(values: Array) -> Array:
    """Return values as an object array of plain Python scalars.

    Examples
    --------
    >>> to_objects(np.array(["2020-02-01"], dtype="datetime64[D]"))
    array([datetime.date(2020, 2, 1)], dtype=object)
    """
    if values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] in ("ns", "ps", "fs", "as"):
        # Python's datetime has no finer unit; numpy would hand out bare integers instead.
        values = values.astype(f"{values.dtype.kind}8[us]")
    result = np.empty(len(values), dtype=object)
    result[:] = values.tolist()
    return result
