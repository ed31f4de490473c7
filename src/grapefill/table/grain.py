"""How finely the dates of a column are told: in whole days, hours, minutes, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import BoolArray, IntArray

__all__ = ["NANOSECONDS", "find_grain", "telling_count", "to_grain"]

NANOSECONDS = {
    "D": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}


def find_grain(counts: IntArray, unit: str) -> tuple[int, int]:
    """Return in which steps counts of a unit differ, and what is left of each beyond whole steps.

    A step is a day, an hour, a minute, ..., whichever is the longest that will do. One value has no
    differences: its step is 1.

    Examples
    --------
    >>> noons = np.array(["2020-01-01T12", "1960-02-29T12"], dtype="M8[s]")
    >>> find_grain(noons.view(np.int64), "s")
    (86400, 43200)
    """
    smallest = int(counts.min())
    if smallest == counts.max():
        return 1, 0
    grain = next(step for step in _steps(unit) if not _between(counts, step, smallest).any())
    return grain, smallest % grain


def telling_count(counts: IntArray, unit: str) -> int:
    """Return the position of one count that tells the grain of all, beside the smallest.

    Every step is a multiple of the shorter ones, so one difference has the grain of all.
    """
    smallest, found = int(counts.min()), int(counts.argmax())
    for step in _steps(unit):
        between = _between(counts, step, smallest)
        if not between.any():
            break
        found = int(between.argmax())
    return found


def to_grain(counts: IntArray, grain: int, phase: int) -> IntArray:
    """Return the nearest counts that are `phase` beyond whole steps.

    Between two such counts there is one, so what is observed is not left and nothing overflows.

    Examples
    --------
    >>> to_grain(np.array([-7, 13, 28]), 10, 4).tolist()
    [-6, 14, 24]
    """
    beyond = (counts % grain - phase) % grain
    nearest: IntArray = counts + np.where(2 * beyond <= grain, -beyond, grain - beyond)
    return nearest


def _steps(unit: str) -> list[int]:
    """Return days, hours, ... in counts of a unit, the longest first."""
    one = NANOSECONDS.get(unit)
    # Months and years have no fixed length, and nobody tells a date in picoseconds.
    return [1] if one is None else [each // one for each in NANOSECONDS.values() if each >= one]


def _between(counts: IntArray, step: int, smallest: int) -> BoolArray:
    """Return which counts are not whole steps away from the smallest."""
    # Not by differences, which can leave int64.
    between: BoolArray = counts % step != smallest % step
    return between
