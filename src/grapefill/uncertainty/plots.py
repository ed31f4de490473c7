"""Plots that tell whether draws and intervals can be trusted, as figures of matplotlib.

Every function takes a fitted imputer and a table, and returns a figure to show or save.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from grapefill.errors import InputError
from grapefill.settings import draw_seed
from grapefill.table import Table
from grapefill.uncertainty.cells import Beliefs
from grapefill.uncertainty.panels import (
    MOST_LABELS,
    SMALL,
    is_whole,
    label_of,
    make_panels,
    write_means,
    write_values,
)
from grapefill.uncertainty.quantiles import GRID, nested, quantile_grid
from grapefill.uncertainty.shares import find_shares
from grapefill.uncertainty.tables import check_count, check_coverage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from grapefill.table.arrays import FloatArray
    from grapefill.table.column import Column
    from grapefill.uncertainty.belief import NumberColumn
    from grapefill.uncertainty.mixin import UncertaintyMixin
    from grapefill.uncertainty.shares import Shares

    Drawn = dict[int, tuple[FloatArray, list[FloatArray]]]

OBSERVED, DRAWN = "#0072b2", "#d55e00"
COVERAGES = np.linspace(0.1, 0.95, 18)
MOST_POINTS = 2_000
MOST_BINS = 30
# A draw of fewer cells is shown with the others only: by itself it is nothing but spikes.
FEWEST_CELLS = 30


def density(imputer: UncertaintyMixin, X: Any, *, draws: int = 5, random_state: int = 0) -> Figure:
    """Draw the distribution of observed values of columns with holes against that of draws.

    Draws are shown together, and one by one in thin lines or as points where they have enough
    cells. Heights are shares of the cells. Of more than twelve columns with holes, those with the
    most are shown; so it is in the other plots.

    They need not be equal: where holes depend on other columns, draws should differ. What differs
    without a reason is a warning.

    Parameters
    ----------
    imputer : GrapeImputer
        A fitted imputer.
    X : table
        The table with its holes.
    draws : int
        How many draws to show.
    random_state : int
        Where their randomness starts.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from grapefill import GrapeImputer
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) + np.zeros((60, 2))
    >>> X[::4, 1] = np.nan
    >>> imputer = GrapeImputer("fast", settings={"max_steps": 10}, random_state=0).fit(X)
    >>> len(density(imputer, X).axes)
    1
    """
    drawn = drawn_numbers(imputer, X, draws, random_state)

    def panel(axes: Any, j: int, column: Column) -> None:
        shares = find_shares(column, *drawn[j])
        if shares is None:
            _draw_histograms(axes, column, *drawn[j])
        else:
            _draw_bars(axes, shares)

    return make_panels(imputer.schema_, _sizes(drawn), panel)


def _draw_bars(axes: Any, shares: Shares) -> None:
    """Draw how frequent values are as bars, and the single draws as points."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    places = np.arange(len(shares.names))
    axes.barh(places - 0.2, shares.observed, 0.4, color=OBSERVED, alpha=0.35, label="observed")
    mean = shares.drawn.mean(axis=0)
    axes.barh(places + 0.2, mean, 0.4, fill=False, edgecolor=DRAWN, label="drawn")
    for each in shares.drawn:
        axes.plot(each, places + 0.2, ".", ms=3, color=DRAWN)
    shares.write_names(axes)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.xaxis.set_tick_params(labelsize=SMALL)


def _draw_histograms(
    axes: Any, column: Column, observed: FloatArray, draws: Sequence[FloatArray]
) -> None:
    """Draw how frequent numbers are."""
    every = np.concatenate(draws)
    edges = _edges(column, observed, every)
    for values, style in (
        (observed, {"fill": True, "color": OBSERVED, "alpha": 0.35, "label": "observed"}),
        *((each, {"color": DRAWN, "lw": 0.6, "alpha": 0.6}) for each in draws),
        (every, {"color": DRAWN, "lw": 1.6, "label": "drawn"}),
    ):
        if "label" in style or values.size >= FEWEST_CELLS:
            axes.stairs(np.histogram(values, edges)[0] / max(1, values.size), edges, **style)
    # How much is in a bin depends on how many there are.
    axes.set_yticks([])
    write_values(axes.xaxis, column)


def _edges(column: Column, observed: FloatArray, drawn: FloatArray) -> FloatArray:
    """Return the edges of bins: few for few cells, and between whole numbers."""
    bins = int(np.clip(np.sqrt(min(observed.size, drawn.size)), 5, MOST_BINS))
    both = np.concatenate([observed, drawn])
    if not is_whole(column):
        return np.histogram_bin_edges(both, bins)
    step = max(1.0, np.ceil((both.max() - both.min() + 1) / bins))
    return np.arange(both.min() - 0.5, both.max() + step, step)


def strips(imputer: UncertaintyMixin, X: Any, *, draws: int = 5, random_state: int = 0) -> Figure:
    """Draw the values of every column as points, the observed ones and the draws beside them.

    Of a column of few values, a bar for each of them shows how frequent it is.

    Parameters
    ----------
    imputer, X, draws, random_state
        As in `density`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    drawn = drawn_numbers(imputer, X, draws, random_state)
    random = np.random.default_rng(random_state)

    def panel(axes: Any, j: int, column: Column) -> None:
        shares = find_shares(column, *drawn[j])
        for at, values in enumerate([drawn[j][0], *drawn[j][1]]):
            color, label = (OBSERVED, "observed") if at == 0 else (DRAWN, "drawn")
            if shares is None:
                some = random.permutation(values)[:MOST_POINTS]
                place = at + 0.3 * (random.random(some.size) - 0.5)
                axes.plot(place, some, ".", ms=2, color=color, label=label)
            else:
                share = shares.drawn[at - 1] if at else shares.observed
                # The longest of all bars ends where the next draw begins.
                wide = 0.85 * share / max(shares.observed.max(), shares.drawn.max())
                axes.barh(range(wide.size), wide, 0.7, at - 0.425, color=color, label=label)
        if shares is None:
            write_values(axes.yaxis, column)
        else:
            shares.write_names(axes)
        places = range(0, draws + 1, -(-draws // MOST_LABELS))
        axes.set_xticks(places, ["observed", *map(str, places[1:])])
        axes.xaxis.set_tick_params(labelsize=SMALL)

    return make_panels(imputer.schema_, _sizes(drawn), panel)


def convergence(
    imputer: UncertaintyMixin, X: Any, *, draws: int = 20, random_state: int = 0
) -> Figure:
    """Draw the mean of the drawn cells of every column, from sweep to sweep and draw to draw.

    Of categories it is the share of the one that is most frequent among the observed cells, of
    ordered ones the mean of their places in that order.
    On the left are the sweeps that the draws were learned by, on the right the draws. Both should
    scatter without a trend, the sweeps at least in the end; how much draws do is the uncertainty
    of the mean.

    Parameters
    ----------
    imputer, X, draws, random_state
        As in `density`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    drawn, trace = drawn_numbers(imputer, X, draws, random_state), sweep_means(imputer)
    learned = imputer.uncertainty_
    discrete = () if learned is None or imputer.model_ is None else imputer.model_.features.discrete
    usual = {
        j: int(learned.shares[j].argmax()) for j in discrete if learned and j in learned.shares
    }

    def panel(axes: Any, j: int, column: Column) -> None:
        values = drawn[j][1]
        if j in usual:
            assert column.categories is not None
            values = [each == usual[j] for each in values]
            words = f"share of {label_of(str(column.categories[usual[j]]), 24)}"
            axes.set_ylabel(words, parse_math=False, fontsize=SMALL)
            axes.yaxis.set_tick_params(labelsize=SMALL)
        else:
            write_means(axes, column)
        sweeps, means = trace[:, j], [float(each.mean()) for each in values]
        axes.plot(np.arange(-sweeps.size, 0), sweeps, "-", lw=1, color=OBSERVED, label="sweeps")
        axes.plot(range(1, len(means) + 1), means, "o-", ms=3, color=DRAWN, label="draws")
        axes.set_xticks([])

    return make_panels(imputer.schema_, _sizes(drawn), panel)


def calibration(imputer: UncertaintyMixin) -> Figure:
    """Draw how often intervals hold held-out cells against how often they should.

    Parameters
    ----------
    imputer : GrapeImputer
        A fitted imputer.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    lines = coverage_curves(imputer)
    if not lines:
        raise _nothing_held_out()
    figure = Figure(layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color="0.6", lw=1)
    for at, covered in enumerate(lines.values()):
        label = "columns" if at == 0 else None
        axes.plot(COVERAGES, covered, color=OBSERVED, alpha=0.3, lw=1, label=label)
    mean = np.mean(list(lines.values()), axis=0)
    axes.plot(COVERAGES, mean, color=DRAWN, lw=2, label="all columns")
    axes.legend(frameon=False)
    axes.set_xlabel("asked for")
    axes.set_ylabel("held-out cells inside")
    return figure


def coverage_curves(imputer: UncertaintyMixin) -> dict[str, FloatArray]:
    """Return, for every column of numbers, how often intervals of rising coverage hold cells."""
    beliefs, curves = _beliefs(imputer), {}
    for feature, (at, column) in _judged(beliefs).items():
        grid = quantile_grid(column.mixture(column.cells, itself=True))
        slack, inside = 1e-9 * column.range, []
        for coverage in COVERAGES:
            low, high = nested(grid, beliefs.calibration.mass(float(coverage), at))
            held = (low - slack <= column.truth) & (column.truth <= high + slack)
            inside.append(float(held.mean()))
        name = beliefs.model.schema.columns[beliefs.model.schema.features[feature]].name
        curves[name] = np.array(inside)
    return curves


def overimputation(imputer: UncertaintyMixin, *, coverage: float = 0.9) -> Figure:
    """Draw held-out observed cells against the intervals that they were given.

    These cells were hidden and filled again. Where points lie away from the line the model is
    wrong; those outside of their interval are marked.

    Parameters
    ----------
    imputer : GrapeImputer
        A fitted imputer.
    coverage : float
        How often an interval is to hold its cell.

    Returns
    -------
    matplotlib.figure.Figure
    """
    beliefs, coverage = _beliefs(imputer), check_coverage(coverage)
    columns = _judged(beliefs)
    if not columns:
        raise _nothing_held_out()

    def panel(axes: Any, feature: int, described: Column) -> None:
        at, column = columns[feature]
        grid = quantile_grid(column.mixture(column.cells, itself=True))
        low, high = nested(grid, beliefs.calibration.mass(coverage, at))
        middle = grid[:, GRID.size // 2]
        inside = (low <= column.truth) & (column.truth <= high)
        for mine, color, label in ((inside, OBSERVED, "inside"), (~inside, DRAWN, "outside")):
            axes.vlines(column.truth[mine], low[mine], high[mine], color=color, lw=0.6, alpha=0.6)
            axes.plot(column.truth[mine], middle[mine], ".", ms=3, color=color, label=label)
        axes.axline((column.low, column.low), slope=1, color="0.6", lw=1)
        for axis in (axes.xaxis, axes.yaxis):
            write_values(axis, described)

    return make_panels(
        imputer.schema_,
        {feature: column.size for feature, (_, column) in columns.items()},
        panel,
        of="held-out cells",
        labels=("observed", f"filled in when hidden, with {coverage:.0%} interval"),
    )


def _beliefs(imputer: UncertaintyMixin) -> Beliefs:
    check_is_fitted(imputer)
    if imputer.model_ is None:
        raise InputError("None of the columns seen in fit can be imputed: nothing can be shown.")
    # A look at what is there should not train further models.
    return Beliefs(imputer.model_, imputer.uncertainty_, further=False)


def _judged(beliefs: Beliefs) -> dict[int, tuple[int, NumberColumn]]:
    """Return columns of numbers with held-out cells by feature, and their places among beliefs.

    Intervals of a constant column always hold its cells, which tells nothing.
    """
    numbered = enumerate(zip(beliefs.features, beliefs.numbers, strict=True))
    return {
        feature: (at, column)
        for at, (feature, column) in numbered
        if column.size and column.low < column.high
    }


def _nothing_held_out() -> InputError:
    return InputError("There is nothing to show: no cell of a column of numbers was held out.")


def sweep_means(imputer: UncertaintyMixin) -> FloatArray:
    """Return the means of drawn cells after every sweep, by feature; see `Joint.trace`."""
    learned = imputer.uncertainty_
    none = np.empty((0, len(imputer.schema_.features)))
    trace: FloatArray = none if learned is None else getattr(learned.sampler, "trace", none)
    return trace


def _sizes(drawn: Drawn) -> dict[int, int]:
    """Return how many holes features have."""
    return {j: draws[0].size for j, (_, draws) in drawn.items()}


def drawn_numbers(imputer: UncertaintyMixin, X: Any, draws: int, random_state: int) -> Drawn:
    """Return, for every feature with holes, its observed numbers and those of every draw."""
    check_is_fitted(imputer)
    table = imputer._checked_table(X)
    encoded = imputer.schema_.encode(table, warn=False)
    every = list(range(table.n_columns))
    found: Drawn = {}
    for fills in imputer._drawn_fills(table, check_count(draws), draw_seed(random_state)):
        drawn = Table.wrap(table.rebuild(fills, every))
        numbers = imputer.schema_.encode(drawn, warn=False, far=True).numbers
        for at in range(numbers.shape[1]):
            holes = encoded.fillable[:, at]
            if holes.any():
                observed = encoded.numbers[encoded.observed[:, at], at]
                found.setdefault(at, (observed, []))[1].append(numbers[holes, at])
    return found
