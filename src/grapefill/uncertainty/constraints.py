"""All that filled values have to obey: the limits of their columns, shifts, and rules of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import ConfigError, warn
from grapefill.table.arrays import EXACT_LIMIT
from grapefill.table.column import Column
from grapefill.table.grain import NANOSECONDS
from grapefill.table.kinds import Form, Kind
from grapefill.table.text import storable_label
from grapefill.uncertainty.broken import BrokenRules
from grapefill.uncertainty.limits import Limits, read_limits
from grapefill.uncertainty.rules import Broken, Columns, Rule, read_rule, repair
from grapefill.uncertainty.shifts import shifted, warn_of_rounding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table import Encoded, Schema, Table
    from grapefill.table.arrays import Array, FloatArray
    from grapefill.table.cells import Fill
    from grapefill.uncertainty.fitted import Uncertainty
    from grapefill.uncertainty.shifts import Draw
    from grapefill.uncertainty.tables import Numbers


class Constraints:
    """All that filled values have to obey; of rows that break a rule it warns once.

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
            self.limits[j] = read_limits(schema.columns[j], given, self._observed(j))
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
        self._has_warned = False

    def _find(self, label: Any, asked_by: str) -> int:
        """Return the position of a column of numbers that can be filled."""
        places = {column.name: j for j, column in enumerate(self.schema.columns)}
        places |= {name: j for j, name in enumerate(self.schema.names or range(len(places)))}
        label = storable_label(label)
        if label not in places:
            listed = ", ".join(repr(name) for name in list(places)[:10])
            raise ConfigError(
                f"{asked_by} names the column {label!r}, which the table at fit did not have. Its "
                f"columns are {listed}."
            )
        column = self.schema.columns[places[label]]
        if column.empty and asked_by == "rules":
            raise ConfigError(
                f"rules names the column {label!r}, which has no value in the table at fit. Leave "
                "the rule out."
            )
        # Nothing tells what a column without a value would hold.
        if not (column.empty or is_filled_number(column, or_time=asked_by == "rules")):
            hint = "Leave the rule out." if asked_by == "rules" else "Leave it out."
            if column.family == "datetime" and asked_by == "constraints":
                hint = "Compare dates of a row by rules, such as 'end >= start'."
            raise ConfigError(
                f"{asked_by} names the column {label!r}, which does not hold numbers that are "
                f"filled in. {hint}"
            )
        return places[label]

    def _observed(self, j: int) -> FloatArray | None:
        """Return the observed values of a column, if they are known by now."""
        if self.uncertainty is None or j not in self.schema.features:
            return None
        return self.uncertainty.observed[self.schema.features.index(j)]

    def _rule_columns(self) -> dict[str, int]:
        columns: dict[str, int] = {}
        for rule in self.rules:
            columns |= {name: self._find(name, "rules") for name in rule.weights}
        for rule in self.rules:
            self._check_types(rule, [self.schema.columns[columns[name]] for name in rule.weights])
        return columns

    @staticmethod
    def _check_types(rule: Rule, columns: Sequence[Column]) -> None:
        """Refuse a rule between columns, or columns and numbers, that cannot be compared."""
        types = [(column.family, column.unit) for column in columns]
        if len(set(types)) > 1:
            listed = zip(rule.weights, types, strict=True)
            families = {family for family, _ in types}
            advice = "Convert them to the same."
            if families == {"datetime", "duration"}:
                advice = "Count the duration in days, as a number, or leave it out and derive it."
            raise ConfigError(
                f"The rule {rule.text!r} compares columns of different types: "
                + ", ".join(f"{name!r} is {' '.join(each).strip()}" for name, each in listed)
                + f". {advice}"
            )
        if columns[0].family == "datetime" and math.fsum(rule.weights.values()):
            raise ConfigError(
                f"The rule {rule.text!r} is about a date by itself. Compare dates with each other."
            )
        # A day is what dates without a time count in.
        if rule.constant and columns[0].unit not in ("", "D"):
            raise ConfigError(
                f"The rule {rule.text!r} adds a number to dates or durations. Say what it counts: "
                "'30 days', '12 hours', '90 minutes' or '5 seconds'."
            )
        if rule.seconds and columns[0].unit not in NANOSECONDS:
            raise ConfigError(
                f"The rule {rule.text!r} adds a time to columns that do not count time. Leave its "
                "unit out."
            )

    def finish(
        self, table: Table, encoded: Encoded, numbers: Numbers, draw: Draw | None = None
    ) -> dict[int, Fill]:
        """Return numbers as values of their columns that obey everything.

        Parameters
        ----------
        table : Table
            The table, for how many rows it has.
        encoded : Encoded
            Its cells, for the rules.
        numbers : dict of int to (rows, numbers)
            What is to be filled in.
        draw : Draw or None
            Which draw it is, which may be beyond what was observed; None for a fill.
        """
        if draw is None:
            for j in sorted(self.delta.keys() & numbers.keys()):
                warn_of_rounding(self.schema.columns[j], self.delta[j], self._limits_of(j))
        values = self._within(numbers, draw=draw)
        if self.rules:
            self._report(self._obey(table, encoded, numbers, values))
        return self._decoded(numbers, values, beyond=draw is not None)

    def finish_ends(
        self, table: Table, encoded: Encoded, lower: Numbers, upper: Numbers
    ) -> tuple[dict[int, Fill], dict[int, Fill]]:
        """Return the ends of intervals as values of their columns that obey everything.

        Where the rules would turn an interval of a row round they are not applied to the cells of
        that row that they tie together: cells that make up for each other are not all at their
        lower ends at once.
        """
        ends = [self._within(lower, side=-1), self._within(upper, side=1)]
        if self.rules:
            moved = [dict(each) for each in ends]
            for numbers, each in zip((lower, upper), moved, strict=True):
                self._obey(table, encoded, numbers, each)
            group = self._groups()
            turned = np.zeros((table.n_rows, max(group.values(), default=0) + 1), dtype=bool)
            ruled = {j: rows for j, (rows, _) in lower.items() if j in group}
            for j, rows in ruled.items():
                low, high = moved[0][j], moved[1][j]
                # Rounding may turn the ends of a value that is known.
                around = low - high > 1e-9 * (np.abs(low) + np.abs(high))
                turned[rows[around], group[j]] = True
                moved[0][j], moved[1][j] = np.minimum(low, high), np.maximum(low, high)
            for before, after in zip(ends, moved, strict=True):
                for j, rows in ruled.items():
                    before[j] = np.where(turned[rows, group[j]], before[j], after[j])
        return self._decoded(lower, ends[0]), self._decoded(upper, ends[1])

    def _groups(self) -> dict[int, int]:
        """Return a number for every column of a rule, one and the same for those tied together."""
        group = {j: at for at, j in enumerate(sorted(set(self.columns.values())))}
        for rule in self.rules:
            tied = {group[self.columns[name]] for name in rule.weights}
            group = {j: min(tied) if mine in tied else mine for j, mine in group.items()}
        return group

    def empty_value(self, j: int) -> float:
        """Return what fills a column of numbers that had no value at fit: 0 if that is allowed."""
        return float(self._limits_of(j).project(np.zeros(1))[0])

    def _within(
        self, numbers: Numbers, *, side: int = 0, draw: Draw | None = None
    ) -> dict[int, FloatArray]:
        """Return numbers within the limits of their columns, on a side for ends of intervals."""
        columns = self.schema.columns
        values: dict[int, FloatArray] = {}
        for j, (rows, each) in numbers.items():
            column = columns[j]
            inside = np.clip(each, column.lower, column.upper) if draw is None else each
            if self._is_touched(j):
                limits, delta = self._limits_of(j), self.delta.get(j, 0.0)
                if delta or (limits.decimals == 0 and limits.grain == 1):
                    # As it would be filled in without constraints.
                    inside = Limits.of(column).project(inside)
                if delta:
                    chance = None if draw is None else draw.chance(rows, j)
                    inside = shifted(inside, delta, limits, side=side, chance=chance)
                else:
                    inside = limits.project(inside)
            values[j] = inside
        return values

    def _is_touched(self, j: int) -> bool:
        """Whether anything is asked of a column of numbers."""
        asked = j in self.limits or j in self.delta or j in self.columns.values()
        return asked and self.schema.columns[j].categories is None

    def _decoded(
        self, numbers: Numbers, values: dict[int, FloatArray], *, beyond: bool = False
    ) -> dict[int, Fill]:
        fills: dict[int, Fill] = {}
        for j, (rows, _) in numbers.items():
            column = self.schema.columns[j]
            if self._is_touched(j):
                fills[j] = (rows, _decoded_beyond(column, values[j]))
            else:
                fills[j] = (rows, (decoded_draws if beyond else Column.decode)(column, values[j]))
        return fills

    def _limits_of(self, j: int) -> Limits:
        return self.limits.get(j) or Limits.of(self.schema.columns[j])

    def _obey(
        self, table: Table, encoded: Encoded, numbers: Numbers, values: dict[int, FloatArray]
    ) -> Broken:
        """Repair what breaks a rule, and return where one is still broken."""
        used = sorted(set(self.columns.values()))
        place = {j: k for k, j in enumerate(used)}
        whole = np.full((table.n_rows, len(used)), np.nan)
        free = np.zeros(whole.shape, dtype=bool)
        for j, k in place.items():
            if j in self.schema.features:
                whole[:, k] = encoded.numbers[:, self.schema.features.index(j)]
            if j in numbers:
                rows = numbers[j][0]
                whole[rows, k], free[rows, k] = values[j], True

        def project(k: int, moved: FloatArray, direction: int) -> FloatArray:
            return self._limits_of(used[k]).project(moved, direction)

        columns = {name: place[j] for name, j in self.columns.items()}
        limits = {k: self._limits_of(j) for j, k in place.items()}
        steps = np.array(
            [limits[k].step or _tiny(self.schema.columns[j], limits[k]) for j, k in place.items()]
        )
        rules = [self._from_origins(rule) for rule in self.rules]
        stored = [each.stored for each in limits.values()]
        broken = repair(rules, whole, free, Columns(columns, steps, project, stored))
        for j, k in place.items():
            if j in numbers:
                values[j] = whole[numbers[j][0], k]
        return broken

    def _report(self, broken: Broken) -> None:
        """Warn of rows whose rules cannot be kept; they are much the same in every draw."""
        rows = np.flatnonzero(broken.rows)
        if not rows.size or self._has_warned:
            return
        self._has_warned = True
        texts = list(dict.fromkeys(rule.text for rule in self.rules))
        warn(BrokenRules(texts, rows.tolist(), int(broken.by_observed[rows].sum())))

    def _from_origins(self, rule: Rule) -> Rule:
        """Return a rule about numbers that are counted from the origins of their columns."""
        columns = [self.schema.columns[self.columns[name]] for name in rule.weights]
        constant = Fraction(rule.constant)
        for column, weight in zip(columns, rule.weights.values(), strict=True):
            constant += Fraction(weight) * column.origin
        if rule.seconds:
            constant += Fraction(rule.seconds) * 10**9 / NANOSECONDS[columns[0].unit]
        if any(column.origin or column.unit for column in columns):
            # Other numbers than those of the rule, and whole ones, which are added exactly.
            rule = replace(rule, written=None)
        return replace(rule, constant=float(constant))


def is_filled_number(column: Column, *, or_time: bool = False) -> bool:
    """Whether the holes of a column are filled with numbers, or perhaps with times."""
    families = ("number", "datetime", "duration") if or_time else ("number",)
    return column.imputable and column.family in families and column.categories is None


def _tiny(column: Column, limits: Limits) -> float:
    """Return a difference that floats as large as those of a column at fit can tell."""
    size = max(abs(column.lower), abs(column.upper))
    return float(np.spacing(limits.stored(size))) * 8 if np.isfinite(size) else 1e-12


def decoded_draws(column: Column, values: FloatArray) -> Array:
    """Return drawn numbers as values of a column; some may be beyond what was observed."""
    if column.family != "number" or column.categories is not None:
        return column.decode(values)
    return _decoded_beyond(column, Limits.of(column).project(values))


def _decoded_beyond(column: Column, values: FloatArray) -> Array:
    """Return numbers as values of a column, also beyond what was observed."""
    if not values.size:
        return column.decode(values)
    low, high = float(values.min()), float(values.max())
    wider: dict[str, Any] = {"lower": min(column.lower, low), "upper": max(column.upper, high)}
    if column.form is Form.FLOAT:
        # Whole numbers so far, but others may be allowed.
        wider["kind"] = Kind.CONTINUOUS
    if column.extent is not None:
        smallest, largest = column.extent
        origin = column.origin
        is_large = max(map(abs, column.extent)) > EXACT_LIMIT
        if not is_large:
            # Larger ones would be counted from another origin.
            low, high = max(low, -EXACT_LIMIT), min(high, EXACT_LIMIT)
            wider |= {"lower": max(wider["lower"], low), "upper": min(wider["upper"], high)}
        # The origin must stay, and so must the smallest, from which it comes.
        wider["extent"] = (
            smallest if is_large else min(smallest, int(low)),
            max(largest, origin + int(high)),
        )
    return replace(column, **wider).decode(values)
