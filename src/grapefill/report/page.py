"""The page: facts and plots in one HTML file that needs nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grapefill.files.atomic import write_whole
from grapefill.report import draw_plots, plots
from grapefill.report.facts import collect
from grapefill.uncertainty.plots import (
    COVERAGES,
    coverage_curves,
    drawn_numbers,
    sweep_means,
)

if TYPE_CHECKING:
    from pathlib import Path

    from grapefill.imputer import GrapeImputer
    from grapefill.report.facts import ColumnFacts, Facts


def make_report(imputer: GrapeImputer, X: Any, *, title: str = "Table", draws: int = 0) -> str:
    """Return a report about a table and the imputer that was fitted to it, as HTML.

    Parameters
    ----------
    imputer : GrapeImputer
        A fitted imputer.
    X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
        The table with its holes.
    title : str
        What the table is called.
    draws : int
        How many draws of the missing cells to show; 0 for none, which takes less time.

    Returns
    -------
    str
        One page: no script, and nothing is loaded from anywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from grapefill import GrapeImputer
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) * [1.0, 2.0, 3.0]
    >>> X[::5, 1] = np.nan
    >>> page = make_report(GrapeImputer("fast", random_state=0).fit(X), X, title="Example")
    >>> page[:15], "<h1>Example</h1>" in page
    ('<!DOCTYPE html>', True)
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("grapefill.report", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    facts = collect(imputer, X, title=title)
    pictures = _pictures(facts) | {"calibration": _calibration(imputer)}
    pictures |= {"drawn": _draws(imputer, X, facts, draws) if draws else []}
    return environment.get_template("page.html.jinja").render(facts=facts, **pictures)


def write_report(
    path: str | Path, imputer: GrapeImputer, X: Any, *, title: str = "Table", draws: int = 0
) -> None:
    """Write the report of `make_report` to a file, whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file; an existing one is replaced.
    imputer : GrapeImputer
        A fitted imputer.
    X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
        The table with its holes.
    title : str
        What the table is called.
    draws : int
        How many draws of the missing cells to show.
    """
    page = make_report(imputer, X, title=title, draws=draws)
    with write_whole(path) as file:
        file.write(page.encode())


def _pictures(facts: Facts) -> dict[str, Any]:
    """Draw what there is something to see of."""
    from markupsafe import Markup

    def drawn(svg: str) -> Markup:
        # Names and values were escaped when the SVG was made.
        return Markup(svg)

    with_holes = [column for column in facts.columns if column.filled.size]
    with_holes.sort(key=lambda column: -column.missing)
    # A single column has nothing to be judged by but itself.
    judged = [column for column in facts.columns if _can_scatter(column) and len(facts.columns) > 1]
    judged.sort(key=lambda column: column.gain or 0.0)
    holes = bool(facts.missing.any())
    return {
        "missingness": drawn(plots.missingness_map(facts)) if holes else None,
        "pattern": drawn(plots.pattern_plot(facts)) if holes else None,
        "distributions": [
            (column, drawn(plots.distribution(column)))
            for column in with_holes[: plots.MOST_DISTRIBUTIONS]
        ],
        "more_distributions": max(0, len(with_holes) - plots.MOST_DISTRIBUTIONS),
        "curve": drawn(plots.training_curve(facts)) if facts.history.step else None,
        "errors": drawn(plots.error_plot(facts.columns)) if facts.gain is not None else None,
        "scatters": [
            (column, drawn(plots.scatter(column))) for column in judged[: plots.MOST_SCATTERS]
        ],
        "correlation": drawn(plots.correlation_plot(facts)) if _can_correlate(facts) else None,
        "parts": _parts(facts, len(judged)),
    }


def _draws(
    imputer: GrapeImputer, X: Any, facts: Facts, count: int
) -> list[tuple[ColumnFacts, Any]]:
    """Draw what draws of columns of numbers look like, of those with the most holes."""
    from markupsafe import Markup

    found, sweeps = drawn_numbers(imputer, X, count, 0), sweep_means(imputer)
    shown = [at for at in found if not facts.columns[at].discrete]
    shown = sorted(shown, key=lambda at: -facts.columns[at].missing)[: draw_plots.MOST_COLUMNS]
    return [
        (
            facts.columns[at],
            Markup(draw_plots.draws_plot(facts.columns[at], *found[at], sweeps[:, at])),
        )
        for at in shown
    ]


def _parts(facts: Facts, judged: int) -> dict[str, str]:
    """Return what the plots say that have no room for all there is to show; mostly nothing."""
    most_missing = ", those with the most missing cells"
    errors = sum(column.gain is not None for column in facts.columns)
    return {
        "map": _part(plots.MAP_COLUMNS, len(facts.names), "columns", most_missing),
        "patterns": _part(
            len(facts.patterns), facts.n_patterns, "patterns", ", the most frequent ones"
        ),
        "pattern": _part(
            plots.MAP_COLUMNS, len(plots.pattern_columns(facts)), "columns", most_missing
        ),
        "errors": _part(
            plots.MAP_COLUMNS, errors, "columns", ", those with the most cells filled in"
        ),
        "scatters": _part(plots.MOST_SCATTERS, judged, "columns"),
        "correlation": _part(plots.MOST_CORRELATED, len(facts.correlated), "columns"),
    }


def _part(shown: int, there: int, what: str, which: str = "") -> str:
    """Return a sentence about how much of something is shown; empty where all of it is.

    Examples
    --------
    >>> _part(60, 80, "columns"), _part(60, 8, "columns")
    (' 60 of 80 columns are shown.', '')
    """
    return f" {shown:,} of {there:,} {what} are shown{which}." if there > shown else ""


def _calibration(imputer: GrapeImputer) -> Any:
    """Draw how often intervals hold held-out cells, if any cells were held out."""
    from markupsafe import Markup

    model = imputer.model_
    if model is None or model.held_out is None or model.features.count < 2:
        return None
    if not model.held_out.feature.size:
        return None
    curves = coverage_curves(imputer)
    return Markup(plots.calibration_plot(COVERAGES, curves)) if curves else None


def _can_correlate(facts: Facts) -> bool:
    # Without holes, before and after are the same.
    return len(facts.correlated) > 1 and facts.holes > 0


def _can_scatter(column: ColumnFacts) -> bool:
    return not column.discrete and column.held_out is not None and column.held_out.truth.size > 1
