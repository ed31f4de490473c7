"""Where values of a column are written beside an axis, and how."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator, ScalarFormatter

from grapefill.table.grain import NANOSECONDS
from grapefill.table.kinds import Form
from grapefill.uncertainty.panels import MOST_LABELS, SMALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from grapefill.table.column import Column

__all__ = ["write_numbers"]

# Larger and smaller numbers are written with powers of ten, which leaves room for others.
POWERS = (-4, 5)
# A unit of time is used from so many of them on.
FEWEST = 3
# Round numbers from a multiple of this on are round from zero on too, be they hours or minutes.
ROUND = 6 * 10**9
# From this range on, the round numbers of a column are so far apart that floats tell them apart.
WIDE = 1e12

_UNIT = re.compile(r"(\d*)([A-Za-z]+)")
_WORDS = {"Y": "years", "M": "months", "W": "weeks", "D": "d"}


class _Step(NamedTuple):
    """A unit in which times are written.

    Parameters
    ----------
    unit : str
        As numpy calls it.
    length : Fraction
        How many counts of the column's own unit it has.
    """

    unit: str
    length: Fraction

    def shift(self, origin: int) -> tuple[int, float]:
        """Return a round number of steps before an origin, and how many counts it is before it."""
        base = origin // self.length // ROUND * ROUND
        return base, float(origin - base * self.length)


_ONE = _Step("", Fraction(1))


def write_numbers(axis: Any, column: Column, *, whole: bool) -> None:
    """Write numbers, dates or durations beside an axis.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        The axis, along which a column's numbers are counted from its origin.
    column : Column
        The column.
    whole : bool
        Whether there are only whole numbers.
    """
    axis.offsetText.set_fontsize(SMALL)
    if column.unit:
        times = _Times(axis, column)
        axis.set_major_locator(times.locator())
        axis.set_major_formatter(times)
    elif column.origin:
        _write_exactly(axis, column, whole=whole)
    else:
        axis.set_major_locator(MaxNLocator(MOST_LABELS - 1, integer=whole))
        formatter = ScalarFormatter(useOffset=False)
        formatter.set_powerlimits(POWERS)
        axis.set_major_formatter(formatter)
    if axis.axis_name == "x" and (column.unit or column.origin):
        axis.set_tick_params(rotation=30)


def _write_exactly(axis: Any, column: Column, *, whole: bool) -> None:
    """Write numbers with an origin, which floats have no room for."""
    base, rest = _ONE.shift(column.origin)
    if column.upper - column.lower > WIDE:
        # Only from zero on are they round then.
        base, rest = 0, float(column.origin)

    def word(number: float, _: int) -> str:
        return f"{Decimal(f'{number + rest:.12g}') + base:f}"

    axis.set_major_locator(_Whole(lambda: (1.0, rest), whole=whole))
    axis.set_major_formatter(FuncFormatter(word))


class _Whole(MaxNLocator):
    """Ticks at whole steps, or at round numbers of them, counted from zero and not the origin."""

    def __init__(self, steps: Callable[[], tuple[float, float]], *, whole: bool = True) -> None:
        super().__init__(MOST_LABELS - 1, integer=whole)
        self._steps = steps

    def tick_values(self, vmin: float, vmax: float) -> Any:
        length, rest = self._steps()
        ends = ((end + rest) / length for end in (vmin, vmax))
        return np.asarray(super().tick_values(*ends)) * length - rest


class _Times(FuncFormatter):
    """Writes dates or durations in days, hours, ..., whichever there are some of in view."""

    def __init__(self, axis: Any, column: Column) -> None:
        super().__init__(self._word)
        self._axis, self._origin = axis, column.origin
        self._is_duration = column.form is Form.DURATION
        self._steps = _steps(column.unit)

    def locator(self) -> Any:
        """Return where to write them."""
        return _Whole(lambda: (float(self._step().length), self._step().shift(self._origin)[1]))

    def _step(self) -> _Step:
        low, high = self._axis.get_view_interval()
        steps = self._steps
        return next((each for each in steps if high - low > FEWEST * each.length), steps[-1])

    def _word(self, number: float, at: int) -> str:
        del at
        amount, unit = self._amount(number)
        if self._is_duration:
            return f"{amount:,} {_WORDS.get(unit, unit)}"
        # Weeks and the like are written as the days on which they begin.
        day, _, time = str(np.datetime64(amount, unit)).partition("T")
        if not time:
            return day
        return time if _is_short(unit) else f"{day} {time}"

    def get_offset(self) -> str:
        """Return the day, where times would be too long with it."""
        amount, unit = self._amount(self._axis.get_view_interval()[0])
        if self._is_duration or not _is_short(unit):
            return ""
        return str(np.datetime64(amount, unit).astype("M8[D]"))

    def _amount(self, number: float) -> tuple[int, Any]:
        """Return a number of the axis as a whole one of some unit of numpy."""
        step = self._step()
        base, rest = step.shift(self._origin)
        match = _UNIT.fullmatch(step.unit)
        assert match is not None
        # A unit may be several of another, as in "10s".
        return (base + round((number + rest) / float(step.length))) * int(match[1] or 1), match[2]


def _steps(unit: str) -> list[_Step]:
    """Return the units in which counts of a unit may be written, the longest first."""
    if unit in NANOSECONDS:
        own = NANOSECONDS[unit]
        return [_Step(each, Fraction(length, own)) for each, length in NANOSECONDS.items()]
    # Months and years have no fixed length in days.
    longer = [_Step("Y", Fraction(12))] if unit == "M" else []
    return [*longer, _Step(unit, Fraction(1))]


def _is_short(unit: str) -> bool:
    """Whether a unit is shorter than a second."""
    return unit.endswith("s") and unit != "s"
