"""Shifts of what is filled in (``delta``), also where a column holds only some numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grapefill.errors import warn
from grapefill.uncertainty.chance import uniforms
from grapefill.uncertainty.limits import Limits

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray, IntArray
    from grapefill.table.column import Column

# Parts of a step that come from rounding.
TINY = 1e-9


class Draw(NamedTuple):
    """Which draw something belongs to: where its random numbers start, and its number."""

    seed: int
    number: int

    def chance(self, rows: IntArray, j: int) -> FloatArray:
        """Return a number between 0 and 1 for every row of a column."""
        # Draws themselves have shorter keys.
        return uniforms(rows, self.seed, self.number, 0, 0, 0, j)


def shifted(
    values: FloatArray,
    delta: float,
    limits: Limits,
    *,
    side: int = 0,
    chance: FloatArray | None = None,
) -> FloatArray:
    """Return numbers moved by a delta, each one that its column may hold.

    Parameters
    ----------
    values : ndarray
        What would be filled in without the delta.
    delta : float
        What is added.
    limits : Limits
        What the numbers may be.
    side : {-1, 0, 1}
        Where a sum between two numbers goes: to the one below, the nearest, or the one above.
        Halves go the way of the delta.
    chance : ndarray or None
        Numbers between 0 and 1: with them a sum goes up or down by chance, so that on average the
        shift is the delta.

    Examples
    --------
    >>> whole = Limits(decimals=0)
    >>> shifted(np.full(3, 2.0), 0.4, whole, chance=np.array([0.1, 0.5, 0.9])).tolist()
    [3.0, 2.0, 2.0]
    >>> shifted(np.full(1, 2.0), -0.5, whole).tolist()
    [1.0]
    """
    if limits.allowed is None and limits.decimals is None:
        return limits.project(values + delta)
    # Bounds hold for the sum only.
    sums = replace(limits, low=-np.inf, high=np.inf).project(values) + delta
    nearest = limits.project(sums)
    below, above = (limits.project(sums, way) for way in (-1, 1))
    gap = above - below
    between = (gap > 0) & (np.abs(nearest - sums) > TINY * gap)
    if chance is not None:
        share = (sums - below) / np.where(gap > 0, gap, 1.0)
        found = np.where(chance < share, above, below)
    elif side:
        found = above if side > 0 else below
    else:
        found = limits.project(np.nextafter(sums, np.copysign(np.inf, delta)))
    result: FloatArray = np.where(between, found, nearest)
    return result


def warn_of_rounding(column: Column, delta: float, limits: Limits) -> None:
    """Warn if one fill for each cell cannot move by a delta, for it lies between two steps."""
    step = (limits if limits.allowed is None else Limits.of(column)).step
    if not step or abs(delta / step - np.rint(delta / step)) <= TINY:
        return
    moved = np.copysign(np.floor(abs(delta) / step + 0.5) * step, delta) + 0.0
    warn(
        f"delta of column {column.name!r} is {delta:g}, but its values go in steps of {step:g}: "
        f"what is filled in moves by about {moved:g}. What sample draws moves by {delta:g} on "
        "average."
    )
