"""What draws of a column look like, in the style of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grapefill.evaluate.text import counted
from grapefill.report.plots import BINS, FILLED, OBSERVED, figure_of, svg_of
from grapefill.report.ticks import name_ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.report.facts import ColumnFacts
    from grapefill.table.arrays import FloatArray

# Columns that are shown, draws in a strip plot, and points in a strip.
MOST_COLUMNS, MOST_STRIPS, MOST_POINTS = 12, 5, 150


def draws_plot(
    column: ColumnFacts, observed: FloatArray, draws: Sequence[FloatArray], sweeps: FloatArray
) -> str:
    """Draw densities, strips, and the means of sweeps and draws of one column of numbers.

    Parameters
    ----------
    column : ColumnFacts
        The column.
    observed : ndarray
        Its observed numbers.
    draws : sequence of ndarray
        The numbers of its holes, draw by draw.
    sweeps : ndarray of shape (sweeps,)
        The mean of its holes after every sweep that the draws were learned by.
    """
    both = np.concatenate([observed, *draws])
    low, high = np.quantile(both, [0.005, 0.995])
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    random = np.random.default_rng(0)
    with figure_of(width=8.8, height=2.1, panels=3) as (figure, (density, strips, means)):
        edges = np.linspace(low, high, BINS + 1)
        for values, colour, fill in (
            (observed, OBSERVED, True),
            (np.concatenate(draws), FILLED, False),
        ):
            shares = np.histogram(np.clip(values, low, high), edges)[0] / max(1, values.size)
            alpha = 0.45 if fill else 1.0
            density.stairs(shares, edges, fill=fill, color=colour, alpha=alpha, linewidth=1.6)
        density.set_yticks([])
        density.set_xticks(*name_ticks(column, np.linspace(low, high, 3)))
        for at, values in enumerate([observed, *draws[:MOST_STRIPS]]):
            some = random.permutation(values)[:MOST_POINTS]
            place = at + 0.5 * (random.random(some.size) - 0.5)
            colour = FILLED if at else OBSERVED
            strips.plot(place, some, "o", color=colour, markersize=1.5, alpha=0.6)
        strips.set_xticks(
            range(len(draws[:MOST_STRIPS]) + 1),
            ["observed", *map(str, range(1, len(draws[:MOST_STRIPS]) + 1))],
            fontsize=7.5,
        )
        strips.set_yticks(*name_ticks(column, np.linspace(low, high, 3)))
        centres = [float(values.mean()) for values in draws]
        means.plot(np.arange(-sweeps.size, 0), sweeps, color=OBSERVED, linewidth=1)
        means.plot(np.arange(1, len(centres) + 1), centres, "o-", color=FILLED, markersize=3)
        means.set_xticks(
            [-sweeps.size / 2, (len(centres) + 1) / 2] if sweeps.size else [1],
            ["sweeps", "draws"] if sweeps.size else ["draws"],
        )
        ends = [*sweeps.tolist(), *centres]
        means.set_yticks(*name_ticks(column, np.array([min(ends), max(ends)])))
        density.set_title("density")
        strips.set_title("values")
        means.set_title("mean")
        words = counted(len(draws), "draw")
        return svg_of(
            figure,
            f"{column.name}: {observed.size:,} observed values beside {words} of "
            f"{draws[0].size:,} missing ones; the means of draws go from {min(centres):.4g} to "
            f"{max(centres):.4g}.",
        )
