"""Rules that the cells of a row obey, such as ``end >= start``: read, checked, repaired."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from grapefill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from grapefill.table.arrays import BoolArray, FloatArray, IntArray

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|`(?P<quoted>[^`]+)`"
    r"|(?P<name>[^\W\d]\w*)|(?P<sign><=|>=|==|<|>|\+|-|\*))"
)
# Times are counted in seconds.
_TIMES = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_COMPARE = ("<=", ">=", "==", "<", ">")
# Rounds over all rules; each may undo a bit of another.
ROUNDS = 10
# What rounding may add to a sum, in units of the precision of its numbers.
ROUNDING = 4

Term = tuple[float, tuple[float | str, ...]]
"""A sign, and the numbers and columns that are multiplied."""


class Written(NamedTuple):
    """An inequality as it was written: two sums, and the sign between them.

    A sum of floats depends on the order in which they are added: who checks a rule does it in this
    one.
    """

    left: tuple[Term, ...]
    right: tuple[Term, ...]
    sign: str

    def holds(self, columns: Mapping[str, npt.NDArray[Any]]) -> BoolArray:
        """Tell for every row whether the rule holds; not where something is unknown."""
        left, right = _sum(self.left, columns), _sum(self.right, columns)
        compare = {"<=": np.less_equal, ">=": np.greater_equal, "<": np.less, ">": np.greater}
        with np.errstate(invalid="ignore"):
            held: BoolArray = compare[self.sign](left, right)
        return held


@dataclass(frozen=True)
class Rule:
    """A sum of columns that stays at or below 0: ``sum(weight * column) + constant <= 0``.

    Parameters
    ----------
    text : str
        The rule as it was written.
    weights : dict of str to float
        The columns and what they are multiplied with.
    constant : float
        What is added.
    strict : bool
        Whether 0 itself is too much.
    seconds : float
        What is added to dates and durations.
    written : Written or None
        How it is checked; None for a part of an equation, which rounding may break.
    """

    text: str
    weights: Mapping[str, float]
    constant: float
    strict: bool = False
    seconds: float = 0.0
    written: Written | None = None


def read_rule(text: str) -> list[Rule]:
    """Read a rule; an equation becomes two.

    Names are written as they are, or in backticks where they hold blanks; columns may be added,
    subtracted, and multiplied with numbers. To dates and durations a time may be added, such as
    ``30 days``.

    Examples
    --------
    >>> read_rule("end >= start + 1")[0].weights
    {'end': -1.0, 'start': 1.0}
    >>> [rule.constant for rule in read_rule("2 * `part a` + b == 100")]
    [-100.0, 100.0]
    >>> read_rule("end >= start + 2 hours")[0].seconds
    7200.0

    Raises
    ------
    ConfigError
        If it cannot be read.
    """
    tokens = _tokens(text)
    at = [k for k, (kind, value) in enumerate(tokens) if kind == "sign" and value in _COMPARE]
    if len(at) != 1:
        raise _unreadable(text, "it needs exactly one of <=, >=, <, > and ==")
    left, left_constant, left_seconds, left_terms = _side(tokens[: at[0]], text)
    right, right_constant, right_seconds, right_terms = _side(tokens[at[0] + 1 :], text)
    sign = tokens[at[0]][1]
    names = list(dict.fromkeys([*left, *right]))
    if not names:
        raise _unreadable(text, "it names no column")
    weights = {name: left.get(name, 0.0) - right.get(name, 0.0) for name in names}
    if not any(weights.values()):
        raise _unreadable(text, "its columns cancel out")
    constant, seconds = left_constant - right_constant, left_seconds - right_seconds
    strict = sign in ("<", ">")
    written = None if sign == "==" else Written(left_terms, right_terms, sign)
    below = Rule(text, weights, constant, strict, seconds, written)
    opposite = {name: -w for name, w in weights.items()}
    above = Rule(text, opposite, -constant, strict, -seconds, written)
    if sign == "==":
        return [below, above]
    return [below] if sign in ("<", "<=") else [above]


def _tokens(text: str) -> list[tuple[str, str]]:
    if not isinstance(text, str):
        raise ConfigError(f'A rule must be text such as "end >= start", got {text!r}.')
    tokens, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise _unreadable(text, f"{text[place:].strip()[:10]!r} is not understood")
        kind = "name" if match.lastgroup == "quoted" else match.lastgroup
        tokens.append((kind, match[match.lastgroup]))
        place = match.end()
    return tokens


def _side(
    tokens: list[tuple[str, str]], text: str
) -> tuple[dict[str, float], float, float, tuple[Term, ...]]:
    """Read a sum of numbers, times, columns and numbers times columns."""
    weights: dict[str, float] = {}
    constant, seconds, place = 0.0, 0.0, 0
    terms: list[Term] = []
    while place < len(tokens) or place == 0:
        sign = 1.0
        while place < len(tokens) and tokens[place] in (("sign", "+"), ("sign", "-")):
            sign = -sign if tokens[place][1] == "-" else sign
            place += 1
        factor, name, wanted = sign, None, True
        factors: list[float | str] = []
        while wanted:
            kind, value = tokens[place] if place < len(tokens) else ("end", "")
            if kind == "number":
                factor *= float(value)
            elif kind == "name" and name is None:
                name = value
            else:
                raise _unreadable(text, "a number or a column is missing or there are too many")
            factors.append(float(value) if kind == "number" else value)
            place += 1
            wanted = place < len(tokens) and tokens[place] == ("sign", "*")
            place += wanted
        kind, word = tokens[place] if place < len(tokens) else ("end", "")
        if name is None and kind == "name" and word.removesuffix("s") in _TIMES:
            seconds += factor * _TIMES[word.removesuffix("s")]
            place += 1
        elif name is None:
            constant += factor
        else:
            weights[name] = weights.get(name, 0.0) + factor
        terms.append((sign, tuple(factors)))
        if place < len(tokens) and tokens[place][1] not in ("+", "-"):
            raise _unreadable(text, f"{tokens[place][1]!r} comes unexpected")
    return weights, constant, seconds, tuple(terms)


def _sum(terms: Sequence[Term], columns: Mapping[str, npt.NDArray[Any]]) -> Any:
    """Add up terms from left to right, as Python does."""
    total: Any = None
    with np.errstate(over="ignore", invalid="ignore"):
        for sign, factors in terms:
            product: Any = None
            for factor in factors:
                each = columns[factor] if isinstance(factor, str) else factor
                product = each if product is None else product * each
            if total is None:
                total = product if sign > 0 else -product
            else:
                total = total + product if sign > 0 else total - product
    return total


def _unreadable(text: str, reason: str) -> ConfigError:
    return ConfigError(
        f"The rule {text!r} cannot be read: {reason}. Write it like 'end >= start' or "
        "'`part a` + b <= 100'."
    )


class Columns(NamedTuple):
    """The columns that rules are about.

    Parameters
    ----------
    places : dict of str to int
        Where they are.
    steps : ndarray of shape (columns,)
        The smallest difference between values of a column.
    project : callable
        Takes a column, values and a direction, and returns the nearest allowed values that are not
        below (1), not above (-1), or on any side (0).
    stored : sequence of type
        The floats that the values of every column are stored as.
    """

    places: Mapping[str, int]
    steps: FloatArray
    project: Callable[[int, FloatArray, int], FloatArray]
    stored: Sequence[type[np.floating[Any]]]

    def effect(self, j: int, weight: float) -> float:
        """Return how much the smallest change of a column does to a sum."""
        return abs(weight) * float(self.steps[j])


class Broken(NamedTuple):
    """Rows in which a rule is broken, and those of them in which observed cells alone break one."""

    rows: BoolArray
    by_observed: BoolArray


def repair(rules: Sequence[Rule], values: FloatArray, free: BoolArray, columns: Columns) -> Broken:
    """Change the free cells of rows so that the rules hold, as little as that takes.

    Parameters
    ----------
    rules : sequence of Rule
        The rules.
    values : ndarray of shape (rows, columns)
        Changed in place; NaN where nothing is known, and there no rule is checked.
    free : ndarray of bool, shape (rows, columns)
        The cells that may be changed.
    columns : Columns
        What they may be changed to.

    Returns
    -------
    Broken
        Where a rule is still broken: observed cells break it, or limits of columns forbid it.
    """
    for _ in range(ROUNDS):
        changed = [_mend(rule, values, free, columns) for rule in rules]
        if not any(changed):
            break
    rows, by_observed = np.zeros((2, values.shape[0]), dtype=bool)
    for rule in rules:
        which = [columns.places[name] for name in rule.weights]
        observed = ~free[:, which].any(axis=1)
        # Nobody is told of observed cells that break a rule by rounding.
        broken = np.where(
            observed,
            over(replace(rule, written=None), values, columns) > 0,
            over(rule, values, columns) > 0,
        )
        rows |= broken
        by_observed |= broken & observed
    return Broken(rows, by_observed)


def over(rule: Rule, values: FloatArray, columns: Columns) -> FloatArray:
    """Return by how much rows break a rule; at most 0 where they do not."""
    which = [columns.places[name] for name in rule.weights]
    weights = np.array(list(rule.weights.values()))
    part = values[:, which]
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.einsum("ij,j->i", part, weights) + rule.constant
    # What rounding may add to a sum is no offence, unless whoever checks it finds one.
    size = np.einsum("ij,j->i", np.abs(part), np.abs(weights)) + abs(rule.constant)
    precision = max(float(np.finfo(columns.stored[k]).eps) for k in which)
    rounding = ROUNDING * precision * size
    total = np.where(np.abs(total) <= rounding, 0.0, total)
    if rule.strict:
        step = np.min(np.abs(weights) * columns.steps[which])
        # Half a step below is enough: the sum may have been rounded.
        total = np.where(total <= -step / 2, np.minimum(total + step, 0.0), total + step)
    if rule.written is not None:
        # In the direction in which it was written, whichever the weights have.
        held = rule.written.holds(_stored(rule, values, columns))
        coarsest = max((columns.stored[k] for k in which), key=lambda kind: np.finfo(kind).eps)
        if coarsest is not np.float64:
            # Small integers are computed with as coarsely as the floats beside them.
            held &= rule.written.holds(_stored(rule, values, columns, coarsest))
        total = np.where(held, np.minimum(total, 0.0), np.maximum(total, rounding))
    known: FloatArray = np.nan_to_num(total, nan=0.0, posinf=0.0, neginf=0.0)
    return known


def _stored(
    rule: Rule, values: FloatArray, columns: Columns, kind: type[np.floating[Any]] | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a rule as they are stored, or as floats of some kind."""
    places = {name: columns.places[name] for name in rule.weights}
    return {name: values[:, k].astype(kind or columns.stored[k]) for name, k in places.items()}


def _mend(rule: Rule, values: FloatArray, free: BoolArray, columns: Columns) -> bool:
    """Mend a rule where it is broken; whether anything was changed."""
    weights = {columns.places[name]: weight for name, weight in rule.weights.items()}
    which = list(weights)
    rows = np.flatnonzero((over(rule, values, columns) > 0) & free[:, which].any(axis=1))
    if not rows.size:
        return False
    before = values[rows][:, which]
    # First all free cells move by the same, to the nearest allowed values.
    squares = sum(np.square(weights[j]) * free[rows, j] for j in which)
    step = over(rule, values, columns)[rows] / np.maximum(squares, 1e-300)
    for j in which:
        mine = free[rows, j]
        _move(values, rows[mine], j, -weights[j] * step[mine], columns, further=0)
    # Then one after the other moves by what is left, those of large steps first and not too far, so
    # that the others meet an equation; at last far enough.
    order = sorted((j for j in which if weights[j]), key=lambda j: -columns.effect(j, weights[j]))
    for further, some in ((-1, order), (1, order[::-1])):
        for j in some:
            left = over(rule, values, columns)[rows]
            mine = free[rows, j] & (left > 0)
            _move(values, rows[mine], j, -left[mine] / weights[j], columns, further=further)
    return bool((values[rows][:, which] != before).any())


def _move(
    values: FloatArray, rows: IntArray, j: int, by: FloatArray, columns: Columns, *, further: int
) -> None:
    """Move cells of a column to allowed values.

    They move at least as far as they are told (``further=1``), at most (-1), or about as far (0).
    """
    for direction in (-1, 1):
        mine = np.sign(by) == direction
        if mine.any():
            before = values[rows[mine], j]
            after = columns.project(j, before + by[mine], direction * further)
            # Limits may send a cell that was outside of them the other way.
            back = (after - before) * direction < 0
            values[rows[mine], j] = np.where(back & (further < 0), before, after)
