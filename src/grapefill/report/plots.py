"""The plots of the report, as SVG that takes its colours from the page.

matplotlib draws in stand-in colours, which are replaced by variables of the page's style sheet, so
that the plots follow light and dark. Blue and orange can be told apart by colour-blind readers.
"""

from __future__ import annotations

import io
import itertools
import re
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.evaluate.text import counted
from grapefill.report.ticks import name_ticks
from grapefill.table.text import describe_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from grapefill.report.facts import ColumnFacts, Facts
    from grapefill.table.arrays import FloatArray

# Stand-ins, and what they become.
INK, FAINT, OBSERVED, FILLED, PAPER = "#010203", "#040506", "#070809", "#0a0b0c", "#0d0e0f"
VARIABLES = {
    INK: "var(--ink)",
    FAINT: "var(--faint)",
    OBSERVED: "var(--observed)",
    FILLED: "var(--filled)",
    PAPER: "var(--paper)",
}
MAP_ROWS, MAP_COLUMNS = 120, 60
MOST_DISTRIBUTIONS = 40
MOST_SCATTERS = 12
MOST_CATEGORIES = 12
MOST_CORRELATED = 30
BINS = 24
FEWEST_FOR_HISTOGRAM = 20
# The width of a letter, and of what stands beside a plot.
LETTER_INCHES, AXIS_INCHES = 0.075, 0.5


def missingness_map(facts: Facts) -> str:
    """Draw where the holes are: rows in their order, from top to bottom."""
    shown = most_missing(facts, range(len(facts.names)))
    holes = facts.missing[:, shown]
    bins = np.array_split(np.arange(holes.shape[0]), min(MAP_ROWS, max(1, holes.shape[0])))
    share = np.array([holes[rows].mean(axis=0) for rows in bins])
    names = [facts.names[at] for at in shown]
    with figure_of(width=_wide(len(names)), height=4.2) as (figure, axes):
        edges = np.cumsum([0, *map(len, bins)]) * (facts.n_rows / max(1, holes.shape[0]))
        for at in range(share.shape[1]):
            # One patch for each run of like rows keeps the file small.
            for first, last in _runs(share[:, at]):
                if share[first, at] > 0:
                    axes.fill_between(
                        [at - 0.45, at + 0.45],
                        edges[first],
                        edges[last],
                        color=FILLED,
                        alpha=0.15 + 0.85 * float(share[first, at]),
                        linewidth=0,
                    )
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.set_ylim(facts.n_rows, 0)
        _name_ticks(axes, names)
        axes.set_ylabel("row")
        total = facts.missing.mean() if facts.missing.size else 0.0
        words = f"{counted(len(names), 'column')}, {total:.1%} of the cells are missing"
        return svg_of(figure, f"Map of missing cells: {words}.")


def most_missing(facts: Facts, columns: Iterable[int]) -> list[int]:
    """Return the columns with the most holes, as many as there is room for, in their order."""
    holes = facts.missing.sum(axis=0)
    return sorted(sorted(columns, key=lambda at: -holes[at])[:MAP_COLUMNS])


def pattern_columns(facts: Facts) -> list[int]:
    """Return the columns that are missing in the most frequent patterns."""
    return sorted({at for columns, _ in facts.patterns for at in columns})


def pattern_plot(facts: Facts) -> str:
    """Draw which columns are missing together, and how often."""
    patterns = facts.patterns
    used = most_missing(facts, pattern_columns(facts))
    with figure_of(width=_wide(len(used) + 4), height=1.0) as (figure, axes):
        for line, (columns, count) in enumerate(patterns):
            for place, at in enumerate(used):
                gone = at in columns
                axes.plot(
                    place, line, "o", color=FILLED if gone else FAINT, markersize=8 if gone else 4
                )
            share = count / max(1, facts.shown_rows)
            words = f"{counted(count, 'row')} ({share:.1%})"
            axes.text(len(used) + 0.2, line, words, va="center", color=INK)
        axes.set_ylim(len(patterns) - 0.5, -0.5)
        axes.set_xlim(-0.6, len(used) + 3.4)
        axes.set_yticks([])
        below = _name_ticks(axes, [facts.names[at] for at in used])
        figure.set_figheight(0.6 + below + 0.3 * len(patterns))
        axes.spines[:].set_visible(False)
        words = "; ".join(
            f"{counted(count, 'row')} without "
            + (", ".join(facts.names[at] for at in columns) or "any hole")
            for columns, count in patterns[:3]
        )
        return svg_of(figure, f"Columns that are missing together. Most frequent: {words}.")


def distribution(column: ColumnFacts) -> str:
    """Draw the values observed in a column and those filled in."""
    with figure_of(width=3.1, height=2.1) as (figure, axes):
        if column.discrete:
            _bars(axes, column)
        else:
            _histograms(axes, column)
        axes.set_yticks([])
        axes.spines[["left"]].set_visible(False)
        return svg_of(
            figure,
            f"{column.name}: {counted(column.observed.size, 'observed value')} beside "
            f"{column.filled.size:,} filled in.",
        )


def training_curve(facts: Facts) -> str:
    """Draw the loss over the course of training."""
    history = facts.history
    with figure_of(width=6.2, height=2.6) as (figure, axes):
        steps, loss = np.array(history.step), np.array(history.loss)
        size = max(1, loss.size // 200)
        kept = loss.size // size * size
        axes.plot(
            steps[:kept].reshape(-1, size).mean(axis=1),
            loss[:kept].reshape(-1, size).mean(axis=1),
            color=OBSERVED,
            label="training",
        )
        if history.validation:
            axes.plot(
                history.validation_step,
                history.validation,
                color=FILLED,
                label="held out",
                linestyle="--",
            )
        axes.set_xlabel("step")
        axes.set_ylabel("loss")
        axes.legend(frameon=False, labelcolor=INK)
        last = f"{loss[-1]:.3g}" if loss.size else "unknown"
        return svg_of(
            figure, f"Loss over {counted(loss.size, 'training step')}, {last} in the end."
        )


def error_plot(columns: list[ColumnFacts]) -> str:
    """Draw the held-out error of every column as a share of that of a constant fill."""
    known = [column for column in columns if column.gain is not None]
    known = sorted(known, key=lambda column: -column.missing)[:MAP_COLUMNS]
    known.sort(key=lambda column: column.gain or 0.0)
    with figure_of(width=6.2, height=0.8 + 0.24 * len(known)) as (figure, axes):
        gains = [column.gain or 0.0 for column in known]
        places = np.arange(len(known))
        axes.axvline(1.0, color=FAINT, linewidth=1)
        axes.hlines(places, 0, gains, color=FILLED, linewidth=2)
        axes.plot(gains, places, "o", color=FILLED)
        axes.set_yticks(places, [_short(column.name) for column in known])
        axes.set_ylim(len(known) - 0.5, -0.5)
        axes.set_xlim(0, max(1.1, *gains) if gains else 1.1)
        axes.set_xlabel("error, as a share of filling in one value everywhere")
        words = ", ".join(f"{column.name} {column.gain:.0%}" for column in known[:5])
        columns_shown = counted(len(known), "column")
        return svg_of(figure, f"Held-out error of {columns_shown} against a constant: {words}.")


def scatter(column: ColumnFacts) -> str:
    """Draw what was predicted for held-out cells of a column against what was there."""
    cells = column.held_out
    assert cells is not None
    with figure_of(width=2.6, height=2.6) as (figure, axes):
        low = float(min(cells.truth.min(), cells.guess.min()))
        high = float(max(cells.truth.max(), cells.guess.max()))
        axes.plot([low, high], [low, high], color=FAINT, linewidth=1)
        axes.plot(cells.truth, cells.guess, "o", color=FILLED, alpha=0.5, markersize=3)
        axes.set_xlabel("true")
        axes.set_ylabel("predicted")
        if column.column.unit:
            ends, words = name_ticks(column, np.array([low, high]))
            axes.set_xticks(ends, words)
            axes.set_yticks(ends, words, rotation=90)
            # Dates are long: they stand between the ticks, not across them.
            if len(words) == 2:
                for label, side in zip(axes.get_xticklabels(), ("left", "right"), strict=True):
                    label.set_horizontalalignment(side)
                for label, side in zip(axes.get_yticklabels(), ("bottom", "top"), strict=True):
                    label.set_verticalalignment(side)
        else:
            axes.locator_params(nbins=4)
        off = describe_error(float(np.abs(cells.truth - cells.guess).mean()), column.column)
        return svg_of(
            figure,
            f"{column.name}: predicted against true value of {cells.truth.size} held-out cells, "
            f"each with the others of its row in sight; off by {off} on average.",
        )


def calibration_plot(asked: FloatArray, inside: dict[str, FloatArray]) -> str:
    """Draw how often intervals hold held-out cells against how often they should."""
    with figure_of(width=3.2, height=3.0) as (figure, axes):
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
        for curve in inside.values():
            axes.plot(asked, curve, color=OBSERVED, alpha=0.35, linewidth=1)
        mean = np.mean(list(inside.values()), axis=0)
        axes.plot(asked, mean, color=FILLED, linewidth=2)
        axes.set_xlabel("coverage asked for")
        axes.set_ylabel("held-out cells inside")
        at = int(np.abs(asked - 0.9).argmin())
        return svg_of(
            figure,
            f"Intervals for {asked[at]:.0%} of the held-out cells hold {mean[at]:.0%} of them.",
        )


def correlation_plot(facts: Facts) -> str:
    """Draw the correlations of columns before and after filling."""
    size = min(len(facts.correlated), MOST_CORRELATED)
    names = [_short(name) for name in facts.correlated[:size]]
    side = max(2.2, 0.22 * size + 1.2)
    with figure_of(width=2 * side + 0.6, height=side + 0.8, panels=2) as (figure, panels):
        tables = (facts.before[:size, :size], facts.after[:size, :size])
        for axes, table, title in zip(
            panels, tables, ("observed pairs", "after filling"), strict=True
        ):
            for i in range(size):
                for j in range(size):
                    value = table[i, j]
                    if i == j or np.isnan(value):
                        continue
                    colour = OBSERVED if value > 0 else FILLED
                    axes.plot(
                        j,
                        i,
                        "s" if value > 0 else "o",
                        color=colour,
                        markersize=2 + 10 * abs(value) ** 0.5,
                        alpha=0.25 + 0.75 * abs(value),
                    )
            axes.set_xlim(-0.6, size - 0.4)
            axes.set_ylim(size - 0.4, -0.6)
            axes.set_title(title, color=INK)
            _name_ticks(axes, names)
        panels[0].set_yticks(range(size), names)
        panels[1].set_yticks([])
        change = np.nanmean(np.abs(tables[0] - tables[1])) if size > 1 else 0.0
        return svg_of(
            figure,
            f"Correlations of {size} columns before and after filling; they change by "
            f"{change:.3f} on average. Squares are positive, circles negative.",
        )


def _histograms(axes: Any, column: ColumnFacts) -> None:
    together = np.concatenate([column.observed, column.filled])
    low, high = np.quantile(together, [0.005, 0.995])
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    for values, colour, style in (
        (column.observed, OBSERVED, True),
        (column.filled, FILLED, False),
    ):
        if not values.size:
            continue
        if values is column.filled and values.size < FEWEST_FOR_HISTOGRAM:
            # Too few for a shape: a stroke for each.
            top = axes.get_ylim()[1] or 1.0
            axes.vlines(np.clip(values, low, high), 0, 0.6 * top, color=colour, linewidth=1.6)
            continue
        counts = np.histogram(np.clip(values, low, high), edges)[0] / values.size
        axes.stairs(
            counts, edges, color=colour, fill=style, alpha=0.45 if style else 1.0, linewidth=1.6
        )
    axes.set_ylim(bottom=0)
    axes.set_xticks(*name_ticks(column, np.linspace(low, high, 3)))


def _bars(axes: Any, column: ColumnFacts) -> None:
    assert column.column.categories is not None
    n = len(column.column.categories)
    counts = [
        np.bincount(values.astype(np.int64), minlength=n) / max(1, values.size)
        for values in (column.observed, column.filled)
    ]
    shown = np.argsort(-counts[0], kind="stable")[:MOST_CATEGORIES]
    places = np.arange(shown.size)
    axes.bar(places - 0.2, counts[0][shown], 0.4, color=OBSERVED, alpha=0.6)
    axes.bar(places + 0.2, counts[1][shown], 0.4, color=FILLED)
    _name_ticks(axes, column.words(shown.astype(np.float64)))


def _runs(values: FloatArray) -> list[tuple[int, int]]:
    """Return the stretches of equal values, as (first, one past the last)."""
    borders = np.flatnonzero(np.diff(values)) + 1
    edges = [0, *borders.tolist(), values.size]
    return list(itertools.pairwise(edges))


def _wide(columns: int) -> float:
    return float(np.clip(0.35 * columns + 1.5, 3.5, 11.0))


def _short(name: str) -> str:
    return name if len(name) <= 18 else name[:17] + "…"


def _name_ticks(axes: Any, names: list[str]) -> float:
    """Write names below the axes, slanting if they are long; return how many inches they take."""
    shown = [_short(name) for name in names]
    figure = axes.get_figure()
    low, high = axes.get_xlim()
    panels = len(figure.axes)
    room = (figure.get_size_inches()[0] / panels - AXIS_INCHES) / abs(high - low)
    longest = LETTER_INCHES * (max(map(len, shown), default=0) + 1)
    slanting = longest > room
    axes.set_xticks(
        range(len(shown)),
        shown,
        rotation=60 if slanting else 0,
        ha="right" if slanting else "center",
    )
    return 0.3 + (0.87 * longest if slanting else 0.0)


@contextmanager
def figure_of(*, width: float, height: float, panels: int = 1) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its axes, in the style of the report, without touching global state."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "grapefill",
        "font.family": "sans-serif",
        "font.size": 9.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "text.color": INK,
        # A column may be called "$x$"; its name is no formula.
        "text.parse_math": False,
        "axes.formatter.use_mathtext": False,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots(1, panels)
        yield figure, axes


def svg_of(figure: Any, words: str) -> str:
    """Return a figure as an inline SVG with a text alternative."""
    target = io.StringIO()
    figure.savefig(target, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = target.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    alternative = escape(words, quote=True)
    text = text.replace("<svg", f'<svg role="img" aria-label="{alternative}"', 1)
    end = text.index(">", text.index("viewBox")) + 1
    return f"{text[:end]}<title>{alternative}</title>{text[end:]}"
