"""What the values of one column may be: a range, whole numbers, allowed values, rounding."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from grapefill.errors import ConfigError
from grapefill.table.kinds import Form, Kind
from grapefill.uncertainty.quantiles import nearest

if TYPE_CHECKING:
    from grapefill.table.arrays import BoolArray, FloatArray
    from grapefill.table.column import Column

WORDS: Mapping[str, Mapping[str, Any]] = {
    "non-negative": {"min": 0.0},
    "integer": {"integer": True},
    "rounded": {"decimals": "observed"},
    "observed": {"observed": True},
}
KEYS = ("min", "max", "integer", "allowed", "decimals", "observed")
# Digits that are looked for, and that may be asked for.
MOST_DECIMALS = 9
MOST_GIVEN = 15


@dataclass(frozen=True)
class Limits:
    """What the values of one column may be, counted from its origin.

    Parameters
    ----------
    low, high : float
        The range.
    allowed : ndarray or None
        The only values, in order.
    decimals : int or None
        Digits after the point.
    grain, phase : int
        Steps of dates, and of whole numbers such as hundreds, and what is left of each beyond whole
        steps.
    stored : type
        The floats that the values are stored as.

    Examples
    --------
    >>> Limits(0.0, 10.0, decimals=0).project(np.array([-3.0, 2.4, 99.5])).tolist()
    [0.0, 2.0, 10.0]
    >>> Limits(allowed=np.array([1.0, 2.0, 5.0])).project(np.array([3.0]), 1).tolist()
    [5.0]
    """

    low: float = -np.inf
    high: float = np.inf
    allowed: FloatArray | None = None
    decimals: int | None = None
    grain: int = 1
    phase: int = 0
    stored: type[np.floating[Any]] = np.float64

    @classmethod
    def of(cls, column: Column) -> Self:
        """Return what values of a column are even if nothing is asked of them."""
        whole = column.extent is not None or column.kind is Kind.ORDINAL
        digits = 0 if whole else column.scale if column.form is Form.DECIMAL else None
        phase = (column.phase - column.origin) % column.grain
        low, high = _storable(column)
        stored = _float_type(column)
        return cls(low, high, None, digits, grain=column.grain, phase=phase, stored=stored)

    def project(self, values: FloatArray, direction: int = 0) -> FloatArray:
        """Return the nearest values within the limits; with a direction, none on the other side."""
        values = np.clip(values, self.low, self.high)
        if self.allowed is not None:
            if not direction:
                return nearest(self.allowed, values)
            at = np.searchsorted(self.allowed, values, side="left" if direction > 0 else "right")
            at = np.clip(at - (direction < 0), 0, self.allowed.size - 1)
            found: FloatArray = self.allowed[at]
            return found
        if self.grain > 1:
            return self._on_steps(values, direction)
        if self.decimals is not None:
            return self._rounded(values, direction)
        return values if self.stored is np.float64 else self._as_stored(values, direction)

    def _as_stored(self, values: FloatArray, direction: int) -> FloatArray:
        stored: Any = values.astype(self.stored)
        if direction:
            short = (stored.astype(np.float64) - values) * direction < 0
            stored = np.where(short, np.nextafter(stored, self.stored(direction * np.inf)), stored)
        return np.asarray(stored, dtype=np.float64)

    def _on_steps(self, values: FloatArray, direction: int) -> FloatArray:
        steps = (values - self.phase) / self.grain
        # What rounding may add to a float of this size is no step.
        near = 2 * np.spacing(np.abs(values)) / self.grain
        steps = np.where(np.abs(steps - np.rint(steps)) <= near, np.rint(steps), steps)
        whole = {0: np.rint, 1: np.ceil, -1: np.floor}[direction](steps)
        found = whole * self.grain + self.phase
        # Nobody writes -0.
        inside: FloatArray = np.clip(found, *self.outermost()) + 0.0
        return inside

    def outermost(self) -> tuple[float, float]:
        """Return the smallest and the largest whole step within the range."""
        return self._last_step(self.low, 1), self._last_step(self.high, -1)

    def _last_step(self, end: float, inwards: int) -> float:
        if not np.isfinite(end):
            return end
        steps = (Fraction(end) - self.phase) / self.grain
        last = (math.ceil(steps) if inwards > 0 else math.floor(steps)) * self.grain + self.phase
        # Of very large numbers, floats hold only some.
        outside = (float(last) - end) * inwards < 0
        return float(np.nextafter(float(last), inwards * np.inf)) if outside else float(last)

    def _rounded(self, values: FloatArray, direction: int) -> FloatArray:
        assert self.decimals is not None
        unit = 10.0**self.decimals
        step = 1 / unit
        rounded: FloatArray = np.round(values, self.decimals)
        if direction:
            short = (rounded - values) * direction < 0
            rounded = np.where(short, np.round(rounded + direction * step, self.decimals), rounded)
        inside = np.where(rounded > self.high, np.floor(self.high * unit + 1e-9) / unit, rounded)
        inside = np.where(inside < self.low, np.ceil(self.low * unit - 1e-9) / unit, inside)
        # Nobody writes -0.
        return inside + 0.0

    @property
    def step(self) -> float:
        """The smallest difference between two values."""
        if self.allowed is not None and self.allowed.size > 1:
            return float(np.diff(self.allowed).min())
        return 0.0 if self.decimals is None else self.grain * 10.0**-self.decimals


def read_limits(column: Column, given: Any, observed: FloatArray | None) -> Limits:
    """Read what somebody asks of a column.

    Parameters
    ----------
    column : Column
        The column.
    given : str or dict
        One of `WORDS`, or a dict with some of `KEYS`.
    observed : ndarray or None
        The values that were observed; None before that is known.

    Raises
    ------
    ConfigError
        If it cannot be understood, or no value could obey it.
    """
    name = column.name
    if isinstance(given, str):
        if given not in WORDS:
            words = ", ".join(map(repr, WORDS))
            raise ConfigError(
                f"constraints of column {name!r} are {given!r}. Choose one of {words}, or give "
                f"a dict with some of {', '.join(KEYS)}."
            )
        given = WORDS[given]
    if not isinstance(given, Mapping) or set(given) - set(KEYS):
        raise ConfigError(
            f"constraints of column {name!r} must be a word or a dict with some of "
            f"{', '.join(KEYS)}, got {given!r}."
        )
    low, high = (
        _counted(column, given[key], key) if given.get(key) is not None else end
        for key, end in (("min", -np.inf), ("max", np.inf))
    )
    for key, end in (("min", low), ("max", high)):
        if np.isnan(end):
            raise ConfigError(f"{key} of column {name!r} must be a number, got {given[key]!r}.")
    if low > high:
        raise ConfigError(f"constraints of column {name!r} have a min above their max.")
    least, most = _storable(column)
    if low > most or high < least:
        raise ConfigError(
            f"No number of column {name!r}, which is {column.dtype}, can obey its constraints. "
            "Change them, or convert it to a type that can hold such numbers."
        )
    low, high = max(low, least), min(high, most)
    for key in ("integer", "observed"):
        if not isinstance(given.get(key), bool | np.bool_ | None):
            raise ConfigError(
                f"{key} of column {name!r} must be True or False, got {given[key]!r}."
            )
    decimals = given.get("decimals")
    if not (decimals in (None, "observed") or _is_digits(decimals)):
        raise ConfigError(
            f'decimals of column {name!r} must be "observed" or {-MOST_GIVEN} to {MOST_GIVEN}, got '
            f"{decimals!r}."
        )
    if isinstance(decimals, np.integer):
        decimals = int(decimals)
    if decimals == "observed":
        decimals = _observed_decimals(observed, _float_type(column), column.origin)
    if given.get("integer") or column.extent is not None or column.form is Form.INTEGER:
        decimals = min(decimals or 0, 0)
    if column.form is Form.DECIMAL:
        decimals = column.scale if decimals is None else min(decimals, column.scale)
    allowed = _allowed(column, given, observed)
    if allowed is None and decimals is None and column.kind is Kind.ORDINAL:
        decimals = 0
    if allowed is not None:
        if decimals is not None and not (given.get("observed") and column.form is Form.DECIMAL):
            allowed = allowed[_is_rounded(allowed, decimals, _float_type(column), column.origin)]
            if not allowed.size:
                raise ConfigError(
                    f"None of the allowed values of column {name!r} {_described(decimals)}."
                )
        allowed = allowed[(allowed >= low) & (allowed <= high)]
        if not allowed.size:
            raise ConfigError(
                f"None of the allowed values of column {name!r} is within its limits."
            )
        return Limits(low, high, allowed, stored=_float_type(column))
    return _on_grid(column, low, high, decimals)


def _on_grid(column: Column, low: float, high: float, decimals: int | None) -> Limits:
    """Return limits of numbers that are rounded, if some number is within them."""
    stored = _float_type(column)
    if decimals is None:
        return Limits(low, high, stored=stored)
    if decimals < 0:
        grain = 10**-decimals
        phase = -column.origin % grain
        limits = Limits(low, high, None, 0, grain, phase, stored)
        lowest, highest = limits.outermost()
        obeyed = lowest <= highest
    else:
        unit = 10.0**decimals
        limits = Limits(low, high, None, int(decimals), stored=stored)
        obeyed = bool(np.ceil(low * unit - 1e-9) <= np.floor(high * unit + 1e-9))
    if not obeyed:
        raise ConfigError(f"No number of column {column.name!r} can obey its constraints.")
    return limits


def _described(decimals: int) -> str:
    """Return in words what a rounded number is."""
    if decimals < 0:
        return f"is a multiple of {10**-decimals}"
    return f"has at most {decimals} digits" if decimals else "is a whole number"


def _storable(column: Column) -> tuple[float, float]:
    """Return the range of a column's type, counted from its origin."""
    match = re.match(r"(u?)int(8|16|32|64)\b", column.dtype.lower())
    if column.form is Form.FLOAT:
        largest = float(np.finfo(_float_type(column)).max)
        return -largest, largest
    if match is None or column.form is not Form.INTEGER:
        return -np.inf, np.inf
    ends = np.iinfo(f"{match[1]}int{match[2]}")
    low, high = int(ends.min) - column.origin, int(ends.max) - column.origin
    # A float may be beyond the integer that it stands for.
    lowest, highest = float(low), float(high)
    return (
        lowest if int(lowest) >= low else float(np.nextafter(lowest, np.inf)),
        highest if int(highest) <= high else float(np.nextafter(highest, -np.inf)),
    )


def _float_type(column: Column) -> type[np.floating[Any]]:
    """Return the floats that a column holds."""
    # "float" by itself is pyarrow's name for 32 bits.
    match = re.match(r"(float16|halffloat)|float(32)?(\W|$)", column.dtype.lower())
    if match is None:
        return np.float64
    return np.float16 if match[1] else np.float32


def _is_rounded(
    values: FloatArray, decimals: int, stored: type[np.floating[Any]], origin: int
) -> BoolArray:
    """Return which values have no more digits than that, as far as they are stored."""
    if origin and decimals < 0:
        return np.array([(int(value) + origin) % 10**-decimals == 0 for value in values], bool)
    rounded = np.round(values, decimals).astype(stored)
    exact: BoolArray = np.abs(rounded - values.astype(stored)) <= np.spacing(np.abs(rounded))
    return exact


def _allowed(
    column: Column, given: Mapping[str, Any], observed: FloatArray | None
) -> FloatArray | None:
    if given.get("observed"):
        return observed
    allowed = given.get("allowed")
    if allowed is None:
        return None
    if isinstance(allowed, str) or not isinstance(allowed, Iterable):
        raise ConfigError(
            f"allowed values of column {column.name!r} must be a list, got {allowed!r}."
        )
    values = np.unique([_counted(column, value, "allowed values") for value in allowed])
    if not values.size or not np.isfinite(values).all():
        raise ConfigError(f"allowed values of column {column.name!r} must be numbers.")
    return values


def _observed_decimals(
    observed: FloatArray | None, stored: type[np.floating[Any]], origin: int
) -> int | None:
    """Return how many digits observed values have; None if they have all.

    Below 0 if all are multiples of 10, 100 and so on.

    Examples
    --------
    >>> [_observed_decimals(np.array(x), np.float64, 0) for x in ([0.25, 3], [7.0], [1200, 500])]
    [2, 0, -2]
    """
    if observed is None:
        return None
    found = next(
        (d for d in range(MOST_DECIMALS + 1) if _are_equal(observed, d, stored)),
        None,
    )
    if found != 0 or not (observed + origin).any():
        return found
    for digits in range(1, MOST_GIVEN + 1):
        if origin:
            held = bool(_is_rounded(observed, -digits, stored, origin).all())
        else:
            held = _are_equal(observed, -digits, stored)
        if not held:
            return 1 - digits
    return -MOST_GIVEN


def _are_equal(observed: FloatArray, digits: int, stored: type[np.floating[Any]]) -> bool:
    """Whether rounding changes none of the values, as they are stored."""
    return bool((np.round(observed, digits).astype(stored) == observed.astype(stored)).all())


def _counted(column: Column, value: Any, what: str) -> float:
    """Return a number that somebody gave for a column, counted from its origin."""
    try:
        if isinstance(value, str | bytes | bool | np.bool_):
            raise TypeError
        return column.from_origin(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{what} of column {column.name!r} must be numbers, got {value!r}."
        ) from error


def _is_digits(decimals: Any) -> bool:
    whole = isinstance(decimals, int | np.integer) and not isinstance(decimals, bool)
    return whole and abs(decimals) <= MOST_GIVEN
