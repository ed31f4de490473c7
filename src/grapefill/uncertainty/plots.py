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
from grapefill.table.grain import NANOSECONDS
from grapefill.table.kinds import Form
from grapefill.uncertainty.cells import Beliefs
from grapefill.uncertainty.quantiles import GRID, nested, quantile_grid
from grapefill.uncertainty.tables import check_count, check_coverage

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from matplotlib.figure import Figure

    from grapefill.table.arrays import FloatArray
    from grapefill.table.column import Column
    from grapefill.uncertainty.belief import NumberColumn
    from grapefill.uncertainty.mixin import UncertaintyMixin

OBSERVED, DRAWN = "#0072b2", "#d55e00"
COVERAGES = np.linspace(0.1, 0.95, 18)
MOST_POINTS = 2_000
MOST_PANELS = 12


def density(imputer: UncertaintyMixin, X: Any, *, draws: int = 5, random_state: int = 0) -> Figure:
    """Draw the distribution of observed values of columns with holes against that of draws.

    Of more than twelve such columns, the first twelve are shown; so it is in the other plots.

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

    def panel(axes: Any, j: int) -> None:
        observed, each = drawn[j]
        both = np.concatenate([observed, *each])
        edges = np.histogram_bin_edges(both, bins=min(30, max(5, int(np.sqrt(both.size)))))
        axes.hist(observed, edges, density=True, color=OBSERVED, alpha=0.35, label="observed")
        for at, values in enumerate(each):
            label = "drawn" if at == 0 else None
            axes.hist(values, edges, density=True, histtype="step", color=DRAWN, label=label)

    return _panels(imputer, list(drawn), panel, "x")


def strips(imputer: UncertaintyMixin, X: Any, *, draws: int = 5, random_state: int = 0) -> Figure:
    """Draw the values of every column as points, the observed ones at 0 and the draws beside.

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

    def panel(axes: Any, j: int) -> None:
        observed, each = drawn[j]
        for at, values in enumerate([observed, *each]):
            some = random.permutation(values)[:MOST_POINTS]
            place = at + 0.3 * (random.random(some.size) - 0.5)
            color, label = (OBSERVED, "observed") if at == 0 else (DRAWN, "drawn")
            axes.plot(place, some, ".", ms=2, color=color, label=label if at < 2 else None)
        axes.set_xticks(range(len(each) + 1))

    return _panels(imputer, list(drawn), panel, "y")


def convergence(
    imputer: UncertaintyMixin, X: Any, *, draws: int = 20, random_state: int = 0
) -> Figure:
    """Draw the mean of the drawn cells of every column, from sweep to sweep and draw to draw.

    Of categories it is the share of the one that is most frequent among the observed cells.
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

    def panel(axes: Any, j: int) -> None:
        values = drawn[j][1]
        if j in usual:
            values = [each == usual[j] for each in values]
            column = imputer.schema_.columns[imputer.schema_.features[j]]
            assert column.categories is not None
            axes.set_ylabel(f"share of {column.categories[usual[j]]}", parse_math=False, fontsize=8)
        sweeps, means = trace[:, j], [float(each.mean()) for each in values]
        axes.plot(np.arange(-sweeps.size, 0), sweeps, "-", lw=1, color=OBSERVED, label="sweeps")
        axes.plot(range(1, len(means) + 1), means, "o-", ms=3, color=DRAWN, label="draws")
        axes.set_xticks([])

    return _panels(imputer, list(drawn), panel, "y", plain=usual)


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
    lines = coverage_curves(imputer)
    if not lines:
        raise _nothing_held_out()
    figure, axes = _figure()
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

    def panel(axes: Any, feature: int) -> None:
        at, column = columns[feature]
        grid = quantile_grid(column.mixture(column.cells, itself=True))
        low, high = nested(grid, beliefs.calibration.mass(coverage, at))
        middle = grid[:, GRID.size // 2]
        inside = (low <= column.truth) & (column.truth <= high)
        for mine, color, label in ((inside, OBSERVED, "inside"), (~inside, DRAWN, "outside")):
            axes.vlines(column.truth[mine], low[mine], high[mine], color=color, lw=0.6, alpha=0.6)
            axes.plot(column.truth[mine], middle[mine], ".", ms=3, color=color, label=label)
        axes.axline((column.low, column.low), slope=1, color="0.6", lw=1)
        axes.set_xlabel("observed")

    return _panels(imputer, list(columns), panel, "xy")


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


def drawn_numbers(
    imputer: UncertaintyMixin, X: Any, draws: int, random_state: int
) -> dict[int, tuple[FloatArray, list[FloatArray]]]:
    """Return, for every feature with holes, its observed numbers and those of every draw."""
    check_is_fitted(imputer)
    table = imputer._checked_table(X)
    encoded = imputer.schema_.encode(table, warn=False)
    every = list(range(table.n_columns))
    found: dict[int, tuple[FloatArray, list[FloatArray]]] = {}
    for fills in imputer._drawn_fills(table, check_count(draws), draw_seed(random_state)):
        drawn = Table.wrap(table.rebuild(fills, every))
        numbers = imputer.schema_.encode(drawn, warn=False).numbers
        for at in range(numbers.shape[1]):
            holes = encoded.fillable[:, at]
            if holes.any():
                observed = encoded.numbers[encoded.observed[:, at], at]
                found.setdefault(at, (observed, []))[1].append(numbers[holes, at])
    return found


def _figure(**options: Any) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained", **options)
    return figure, figure.add_subplot()


def _panels(
    imputer: UncertaintyMixin,
    features: Sequence[int],
    draw: Callable[[Any, int], None],
    values_on: str,
    *,
    plain: Container[int] = (),
) -> Figure:
    """Return a figure with a panel for each feature, up to a dozen.

    ``values_on`` names the axes that values of the column are on, x or y or both; none of those of
    ``plain`` features.
    """
    from matplotlib.figure import Figure

    if not features:
        raise InputError("There is nothing to show: no cell is missing.")
    shown = features[:MOST_PANELS]
    wide = min(4, len(shown))
    high = -(-len(shown) // wide)
    figure = Figure(figsize=(3.2 * wide, 2.6 * high), layout="constrained")
    schema = imputer.schema_
    for at, feature in enumerate(shown):
        axes = figure.add_subplot(high, wide, at + 1)
        draw(axes, feature)
        # A column may be called "$x$"; its name is no formula.
        column = schema.columns[schema.features[feature]]
        axes.set_title(column.name, fontsize=10, parse_math=False)
        for way in "" if feature in plain else values_on:
            _write_values(getattr(axes, f"{way}axis"), column)
        if at == 0:
            axes.legend(frameon=False, fontsize=8)
    return figure


def _write_values(axis: Any, column: Column) -> None:
    """Write categories and dates beside an axis as they are in the table."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if column.categories is None and not column.unit:
        return

    nanoseconds = (column.upper - column.lower) * NANOSECONDS.get(column.unit, 1)
    unit: Any = next((u for u in "Dhms" if nanoseconds > 3 * NANOSECONDS[u]), "s")

    def word(number: float, _: int) -> str:
        if not column.lower <= number <= column.upper:
            return ""
        value = column.decode(np.array([number]))[0]
        if column.categories is not None:
            return str(value)
        if column.form is Form.DURATION:
            return f"{value / np.timedelta64(1, unit):.4g} {'d' if unit == 'D' else unit}"
        return str(np.datetime_as_string(value, unit=unit)).replace("T", " ")

    axis.set_major_locator(MaxNLocator(5, integer=column.categories is not None))
    axis.set_major_formatter(FuncFormatter(word))
    axis.set_tick_params(rotation=30, labelsize=8)
