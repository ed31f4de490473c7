"""What a filled value may be: limits, whole numbers, allowed values, rounding, rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import ConfigError, warn
from grapefill.table.kinds import Kind
from grapefill.uncertainty.belief import nearest
from grapefill.uncertainty.rules import Columns, Rule, read_rule, repair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table import Encoded, Schema, Table
    from grapefill.table.arrays import BoolArray, FloatArray
    from grapefill.table.cells import Fill
    from grapefill.table.column import Column
    from grapefill.uncertainty.fitted import Uncertainty
    from grapefill.uncertainty.tables import Numbers

WORDS: Mapping[str, Mapping[str, Any]] = {
    "non-negative": {"min": 0.0},
    "integer": {"integer": True},
    "rounded": {"decimals": "observed"},
    "observed": {"observed": True},
}
KEYS = ("min", "max", "integer", "allowed", "decimals", "observed")
MOST_DECIMALS = 9


@dataclass(frozen=True)
class Limits:
    """What the values of one column may be.

    Parameters
    ----------
    low, high : float
        The range.
    allowed : ndarray or None
        The only values, in order.
    decimals : int or None
        Digits after the point.

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
        if self.decimals is not None:
            values = self._rounded(values, direction)
        return values

    def _rounded(self, values: FloatArray, direction: int) -> FloatArray:
        assert self.decimals is not None
        unit = 10.0**self.decimals
        step = 1 / unit
        rounded: FloatArray = np.round(values, self.decimals)
        if direction:
            short = (rounded - values) * direction < 0
            rounded = np.where(short, np.round(rounded + direction * step, self.decimals), rounded)
        inside = np.where(rounded > self.high, np.floor(self.high * unit + 1e-9) / unit, rounded)
        return np.where(inside < self.low, np.ceil(self.low * unit - 1e-9) / unit, inside)

    @property
    def step(self) -> float:
        """The smallest difference between two values."""
        if self.allowed is not None and self.allowed.size > 1:
            return float(np.diff(self.allowed).min())
        return 0.0 if self.decimals is None else 10.0**-self.decimals


class Constraints:
    """All that filled values have to obey.

    Parameters
    ----------
    schema : Schema
        The columns.
    constraints, rules, delta
        The parameters of the imputer.
    uncertainty : Uncertainty or None
        Which values were observed; None before that is known.
    """

    def __init__(
        self,
        schema: Schema,
        constraints: Mapping[Any, Any] | None,
        rules: Sequence[str] | None,
        delta: Mapping[Any, float] | None,
        uncertainty: Uncertainty | None,
    ) -> None:
        self.schema = schema
        self.uncertainty = uncertainty
        for name, value in (("constraints", constraints), ("delta", delta)):
            if value is not None and not isinstance(value, Mapping):
                raise ConfigError(f"{name} must be a dict by column or None, got {value!r}.")
        if isinstance(rules, str) or not isinstance(rules, Iterable | None):
            raise ConfigError(f'rules must be a list such as ["end >= start"], got {rules!r}.')
        self.limits: dict[int, Limits] = {}
        for label, given in (constraints or {}).items():
            j = self._find(label, "constraints")
            self.limits[j] = self._limits(j, given)
        self.delta: dict[int, float] = {}
        for label, amount in (delta or {}).items():
            j = self._find(label, "delta")
            if isinstance(amount, bool) or not isinstance(amount, int | float | np.number):
                raise ConfigError(f"delta of column {label!r} must be a number, got {amount!r}.")
            if not np.isfinite(amount):
                raise ConfigError(f"delta of column {label!r} must be finite, got {amount!r}.")
            self.delta[j] = float(amount)
        self.rules: list[Rule] = [rule for text in rules or () for rule in read_rule(text)]
        self.columns = self._rule_columns()

    def _find(self, label: Any, asked_by: str) -> int:
        """Return the position of a column of numbers that can be filled."""
        places = {column.name: j for j, column in enumerate(self.schema.columns)}
        places |= {name: j for j, name in enumerate(self.schema.names or range(len(places)))}
        if label not in places:
            listed = ", ".join(repr(name) for name in list(places)[:10])
            raise ConfigError(
                f"{asked_by} names the column {label!r}, which the table at fit did not have. Its "
                f"columns are {listed}."
            )
        column = self.schema.columns[places[label]]
        number = column.family == "number" and column.categories is None
        if asked_by == "rules":
            number |= column.family in ("datetime", "duration") and column.categories is None
        if not number or column.kind is Kind.PASSTHROUGH:
            raise ConfigError(
                f"{asked_by} names the column {label!r}, which does not hold numbers that are "
                "filled in."
            )
        return places[label]

    def _limits(self, j: int, given: Any) -> Limits:
        column = self.schema.columns[j]
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
            float(given[key]) if given.get(key) is not None else end
            for key, end in (("min", -np.inf), ("max", np.inf))
        )
        if np.isnan(low) or np.isnan(high) or low > high:
            raise ConfigError(f"constraints of column {name!r} have a min above their max.")
        decimals = given.get("decimals")
        if decimals == "observed":
            decimals = self._observed_decimals(j)
        if given.get("integer") or column.kind is Kind.ORDINAL or column.extent is not None:
            decimals = 0
        if decimals is not None and (not isinstance(decimals, int) or not 0 <= decimals <= 15):
            raise ConfigError(
                f'decimals of column {name!r} must be "observed" or 0 to 15, got {decimals!r}.'
            )
        allowed = self._allowed(j, given)
        if allowed is not None:
            allowed = allowed[(allowed >= low) & (allowed <= high)]
        elif decimals is not None:
            unit = 10.0**decimals
            if np.ceil(low * unit - 1e-9) > np.floor(high * unit + 1e-9):
                raise ConfigError(f"No number of column {name!r} can obey its constraints.")
        if allowed is not None and not allowed.size:
            raise ConfigError(
                f"None of the allowed values of column {name!r} is within its limits."
            )
        return Limits(low, high, allowed, decimals if allowed is None else None)

    def _allowed(self, j: int, given: Mapping[str, Any]) -> FloatArray | None:
        allowed = given.get("allowed")
        if given.get("observed"):
            if self.uncertainty is None:
                return None
            at = self.schema.features.index(j)
            return self.uncertainty.observed[at] + self.schema.columns[j].origin
        if allowed is None:
            return None
        values = np.unique(np.asarray(list(allowed), dtype=np.float64))
        if not values.size or not np.isfinite(values).all():
            raise ConfigError(
                f"allowed values of column {self.schema.columns[j].name!r} must be numbers."
            )
        return values

    def _observed_decimals(self, j: int) -> int | None:
        """Return how many digits the observed values have; None if they have all."""
        if self.uncertainty is None or j not in self.schema.features:
            return None
        values = self.uncertainty.observed[self.schema.features.index(j)]
        for digits in range(MOST_DECIMALS + 1):
            if (np.round(values, digits) == values).all():
                return digits
        return None

    def _rule_columns(self) -> dict[str, int]:
        columns, units = {}, {}
        for rule in self.rules:
            for name in rule.weights:
                columns[name] = self._find(name, "rules")
                column = self.schema.columns[columns[name]]
                units[name] = (column.family, column.unit)
            mine = {units[name] for name in rule.weights}
            if len(mine) > 1:
                raise ConfigError(
                    f"The rule {rule.text!r} compares columns of different types: "
                    + ", ".join(f"{n!r} is {' '.join(units[n]).strip()}" for n in rule.weights)
                    + ". Convert them to the same."
                )
        return columns

    def finish(self, table: Table, encoded: Encoded, numbers: Numbers) -> dict[int, Fill]:
        """Return numbers as values of their columns that obey everything.

        Parameters
        ----------
        table : Table
            The table, for how many rows it has.
        encoded : Encoded
            Its cells, for the rules.
        numbers : dict of int to (rows, numbers)
            What is to be filled in.
        """
        columns = self.schema.columns
        values: dict[int, FloatArray] = {}
        for j, (_, each) in numbers.items():
            column = columns[j]
            inside = np.clip(each, column.lower, column.upper)
            if column.categories is None:
                inside = self._plain(column, inside + column.origin) + self.delta.get(j, 0.0)
                inside = self._limits_of(j).project(inside)
            values[j] = inside
        if self.rules:
            self._obey(table, encoded, numbers, values)
        return {j: (rows, _decoded(columns[j], values[j])) for j, (rows, _) in numbers.items()}

    def _plain(self, column: Column, values: FloatArray) -> FloatArray:
        """Return values as they are filled in without constraints."""
        if column.extent is not None or column.kind is Kind.ORDINAL:
            return np.rint(values)
        return values

    def _limits_of(self, j: int) -> Limits:
        column = self.schema.columns[j]
        whole = column.extent is not None or column.kind is Kind.ORDINAL
        return self.limits.get(j, Limits(decimals=0 if whole else None))

    def _obey(
        self, table: Table, encoded: Encoded, numbers: Numbers, values: dict[int, FloatArray]
    ) -> None:
        """Repair what breaks a rule, and tell of what cannot be repaired."""
        used = sorted(set(self.columns.values()))
        place = {j: k for k, j in enumerate(used)}
        whole = np.full((table.n_rows, len(used)), np.nan)
        free = np.zeros(whole.shape, dtype=bool)
        for j, k in place.items():
            if j in self.schema.features:
                origin = self.schema.columns[j].origin
                whole[:, k] = encoded.numbers[:, self.schema.features.index(j)] + origin
            if j in numbers:
                rows = numbers[j][0]
                whole[rows, k], free[rows, k] = values[j], True

        def project(k: int, moved: FloatArray, direction: int) -> FloatArray:
            return self._limits_of(used[k]).project(moved, direction)

        columns = {name: place[j] for name, j in self.columns.items()}
        steps = np.array([self._limits_of(j).step or _tiny(whole[:, k]) for j, k in place.items()])
        broken = repair(self.rules, whole, free, Columns(columns, steps, project))
        for j, k in place.items():
            if j in numbers:
                values[j] = whole[numbers[j][0], k]
        _report(broken, free, self.rules)


def _report(broken: BoolArray, free: BoolArray, rules: Sequence[Rule]) -> None:
    """Warn of rows whose rules cannot be kept."""
    rows = np.flatnonzero(broken)
    if not rows.size:
        return
    texts = ", ".join(dict.fromkeys(repr(rule.text) for rule in rules))
    filled = int(free[rows].any(axis=1).sum())
    shown = ", ".join(map(str, rows[:5].tolist())) + (", ..." if rows.size > 5 else "")
    warn(
        f"{rows.size} rows break the rules {texts} and stay so: the observed cells of "
        f"{rows.size - filled} do, and in {filled} no allowed value could be filled in that does "
        f"not. Rows {shown}."
    )


def _tiny(values: FloatArray) -> float:
    """Return a difference that floats of this size can tell."""
    known = np.abs(values[np.isfinite(values)])
    return float(np.spacing(known.max())) * 8 if known.size else 1e-12


def _decoded(column: Column, values: FloatArray) -> Any:
    """Return numbers as values of a column, also beyond what was observed."""
    if column.categories is not None or not values.size:
        return column.decode(values)
    low, high = float(values.min()), float(values.max())
    origin = column.origin
    wider: dict[str, Any] = {
        "lower": min(column.lower, low - origin),
        "upper": max(column.upper, high - origin),
    }
    if column.extent is not None:
        smallest, largest = column.extent
        # The origin must stay, and so must the smallest, from which it comes.
        limits = (smallest if origin else min(smallest, int(low)), max(largest, int(high)))
        return replace(column, extent=limits, **wider).decode(values - origin)
    return replace(column, **wider).decode(values - origin)
