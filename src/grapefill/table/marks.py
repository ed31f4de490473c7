"""Which cells count as missing: the NaN-likes always, and one mark the caller may add."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import ConfigError

if TYPE_CHECKING:
    from grapefill.table.arrays import BoolArray

__all__ = ["Mark", "is_nan_like", "missing_objects", "read_mark"]

Mark = str | int | float | bool | None
"""The caller's extra mark; None when the NaN-likes are all there is."""

_PLAIN_TYPES = {str, int, float, bool, type(None)}


def is_nan_like(value: object) -> bool:
    """Whether a Python value is None, NaN, NaT or pandas' NA.

    Examples
    --------
    >>> [is_nan_like(value) for value in (None, float("nan"), 0.0, "nan")]
    [True, True, False, False]
    """
    if value is None:
        return True
    # NA cannot be compared and pandas may be absent, so its types are known by name.
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def read_mark(missing_values: object) -> Mark:
    """Return the extra mark as a plain Python scalar, None for NaN-likes.

    Examples
    --------
    >>> read_mark(-1), read_mark(np.nan), read_mark("?")
    (-1, None, '?')
    """
    if is_nan_like(missing_values):
        return None
    if isinstance(missing_values, bool | np.bool_):
        return bool(missing_values)
    if isinstance(missing_values, numbers.Integral):
        return int(missing_values)
    if isinstance(missing_values, numbers.Real):
        return float(missing_values)
    if isinstance(missing_values, str):
        return str(missing_values)
    raise ConfigError(
        f"missing_values={missing_values!r} of type {type(missing_values).__name__} cannot mark "
        "missing cells. Use a number, a string, None or NaN (cells that hold None, NaN, NaT or "
        "NA are missing in any case)."
    )


def missing_objects(values: np.ndarray[Any, Any], mark: Mark) -> BoolArray:
    """Find the missing cells of an object array."""
    count = len(values)
    missing: BoolArray
    if set(map(type, values)) <= _PLAIN_TYPES:
        # Only these compare safely by element, and only NaN differs from itself.
        missing = (values == np.array(None)) | np.not_equal(values, values).astype(bool)
    else:
        missing = np.fromiter((is_nan_like(value) for value in values), dtype=bool, count=count)
    if mark is not None:
        missing |= np.fromiter((_equals(value, mark) for value in values), bool, count=count)
    return missing


def _equals(value: Any, mark: Mark) -> bool:
    """Compare within one family only, since 1 == True and arrays compare by element."""
    if isinstance(mark, str):
        return isinstance(value, str) and value == mark
    if isinstance(mark, bool):
        return isinstance(value, bool | np.bool_) and bool(value == mark)
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    return is_number and bool(value == mark)
