"""Intervals for missing cells: how often they hold the truth, how wide they are, log scores.

Beside quantile regression forests (Meinshausen 2006) and a normal distribution around the fill, on
the same cells. A log score is the mean logarithm of the density that is given to a window of 1% of
the column's range on either side of the truth, so that repeated values can be foretold too.
"""

from __future__ import annotations

import os
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from benchmarks.data import MIXED, UCI, as_numbers, load_table
from benchmarks.results import ResultFile, markdown_table
from grapefill import GrapeImputer
from grapefill.evaluate import draw_mask

if TYPE_CHECKING:
    import argparse

RESULTS = ResultFile("coverage", ("dataset", "preset", "seed", "coverage"))
MISSING = 0.3
WINDOW = 0.01
# Forests look at no more missing cells of a column than that; all methods are judged on them.
MOST_CELLS = 2_000
TREES, LEAF, PER_LEAF = 100, 5, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    sets = [*UCI, *MIXED]
    parser.add_argument("--datasets", nargs="+", default=sets, choices=sets)
    parser.add_argument("--preset", default="fast", choices=["fast", "default"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[100, 101, 102])
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--table-only", action="store_true", help="print what was measured before")


def run(arguments: argparse.Namespace) -> None:
    """Measure what has not been measured yet, then print the tables."""
    for seed in [] if arguments.table_only else arguments.seeds:
        for dataset in arguments.datasets:
            fields = {
                "dataset": dataset,
                "preset": arguments.preset,
                "seed": seed,
                "coverage": arguments.coverage,
            }
            if not RESULTS.has(**fields):
                result = measure(fields, arguments.data_dir)
                RESULTS.add(**fields, **result)
                print(dataset, seed, _shown(result), flush=True)
    print(f"{os.cpu_count()} cores, 30% MCAR, {arguments.preset}, {arguments.coverage:.0%}.")
    print(table(arguments.datasets, arguments.preset, arguments.coverage))


def _shown(result: dict[str, Any]) -> str:
    ours, forest = result["methods"]["grapefill"], result["methods"]["quantile forest"]
    return (
        f"covered {np.mean(ours['covered']):.3f} (least {min(ours['covered']):.3f}), width "
        f"{np.mean(ours['width']):.4f} against {np.mean(forest['width']):.4f}, log score "
        f"{np.mean(ours['score']):.3f} against {np.mean(forest['score']):.3f}, "
        f"{result['seconds']} s"
    )


def measure(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Fill one table and judge the intervals of three methods on the same cells."""
    started = time.perf_counter()
    complete, coverage = load_table(fields["dataset"], data_dir), fields["coverage"]
    missing = draw_mask(as_numbers(complete), MISSING, "mcar", seed=fields["seed"])
    holed = complete.mask(missing)
    imputer = GrapeImputer(fields["preset"], random_state=fields["seed"]).fit(holed)
    lower, upper = intervals = imputer.interval(holed, coverage)
    beliefs, filled = imputer.predict_distribution(holed), imputer.transform(holed)
    fit_seconds = time.perf_counter() - started
    inputs = _filled_inputs(as_numbers(holed), fields["seed"])
    methods: dict[str, dict[str, list[float]]] = {
        name: {"covered": [], "width": [], "score": []}
        for name in ("grapefill", "normal", "quantile forest")
    }
    sets: dict[str, list[float]] = {"covered": [], "size": []}
    for j, name in enumerate(complete):
        rows = np.flatnonzero(missing[:, j])[:MOST_CELLS]
        if complete[name].dtype.kind != "f":
            chosen = [intervals.sets[name][row] for row in rows.tolist()]
            truth = complete[name].iloc[rows]
            sets["covered"].append(np.mean([t in s for t, s in zip(truth, chosen, strict=True)]))
            sets["size"].append(np.mean([len(s) for s in chosen]))
            continue
        column = _Column(complete[name].to_numpy(), holed[name].to_numpy(), rows)
        if column.range == 0:
            continue
        ends = lower[name].to_numpy()[rows], upper[name].to_numpy()[rows]
        column.add(methods["grapefill"], *ends, _from_points(beliefs[name].grid[: rows.size]))
        held = imputer.model_.held_out.of(list(imputer.schema_.features).index(j))
        spread = max(float(np.std(held.truth - held.guess)), 1e-9)
        guess = filled[name].to_numpy()[rows]
        half = norm.ppf(0.5 + coverage / 2) * spread
        column.add(
            methods["normal"],
            guess - half,
            guess + half,
            lambda at, guess=guess, spread=spread: norm.cdf((at - guess) / spread),
        )
        sample = _forest_sample(inputs, holed[name].to_numpy(), j, rows, fields["seed"])
        tail = (1 - coverage) / 2
        column.add(
            methods["quantile forest"],
            *np.quantile(sample, [tail, 1 - tail], axis=1),
            _from_points(sample),
        )
    return {
        "methods": methods,
        "sets": sets,
        "fit_seconds": round(fit_seconds, 1),
        "seconds": round(time.perf_counter() - started, 1),
    }


class _Column:
    """The missing cells of one column, to judge methods by."""

    def __init__(self, complete: np.ndarray, holed: np.ndarray, rows: np.ndarray) -> None:
        self.truth = complete[rows]
        self.range = float(np.nanmax(holed) - np.nanmin(holed))

    def add(self, to: dict[str, list[float]], low: Any, high: Any, below: Any) -> None:
        """Add how a method did on the column."""
        slack, window = 1e-9 * self.range, WINDOW * self.range
        inside = (low - slack <= self.truth) & (self.truth <= high + slack)
        density = (below(self.truth + window) - below(self.truth - window)) / (2 * WINDOW)
        to["covered"].append(round(float(inside.mean()), 4))
        to["width"].append(round(float((high - low).mean()) / self.range, 6))
        # One part in a hundred is spread over the range: nothing is impossible.
        to["score"].append(round(float(np.log(0.99 * density + 0.01).mean()), 4))


def _from_points(points: np.ndarray) -> Any:
    """Return the distribution function of a sample for every cell."""
    return lambda at: (points <= at[:, None]).mean(axis=1)


def _filled_inputs(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Return what the forests read: the table, its holes filled by chained trees."""
    large = numbers.shape[0] > 5_000
    trees = ExtraTreesRegressor(10 if large else 30, min_samples_leaf=2, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        imputer = IterativeImputer(trees, max_iter=2 if large else 4, random_state=seed)
        return imputer.fit_transform(numbers)


def _forest_sample(
    inputs: np.ndarray, column: np.ndarray, j: int, rows: np.ndarray, seed: int
) -> np.ndarray:
    """Return values that a quantile regression forest draws for some rows from its leaves."""
    known = ~np.isnan(column)
    others = np.delete(inputs, j, axis=1)
    share = 1 / 3 if others.shape[1] > 3 else 1.0
    forest = RandomForestRegressor(
        TREES, min_samples_leaf=LEAF, max_features=share, random_state=seed
    )
    forest.fit(others[known], column[known])
    trained, asked = forest.apply(others[known]), forest.apply(others[rows])
    random, values = np.random.default_rng(seed), column[known]
    drawn = []
    for tree in range(TREES):
        for _ in range(PER_LEAF):
            order = random.permutation(values.size)
            leaf = np.zeros(trained[:, tree].max() + 1)
            leaf[trained[order, tree]] = values[order]
            drawn.append(leaf[asked[:, tree]])
    return np.stack(drawn, axis=1)


def table(datasets: list[str], preset: str, coverage: float) -> str:
    """Return coverage, width and log score of every table, and of all together."""
    rows, every = [], {}
    for dataset in datasets:
        lines = [
            line
            for line in RESULTS.lines()
            if (line["dataset"], line["preset"], line["coverage"]) == (dataset, preset, coverage)
        ]
        if not lines:
            continue
        row = [dataset, str(len(lines))]
        for name in lines[0]["methods"]:
            covered, width, score = (
                np.mean([line["methods"][name][figure] for line in lines], axis=0)
                for figure in ("covered", "width", "score")
            )
            figures = (covered.mean(), covered.min(), width.mean(), score.mean())
            every.setdefault(name, []).append(figures)
            row.append(" / ".join(f"{figure:.3f}" for figure in figures))
        sets = [line["sets"]["covered"] for line in lines]
        row.append(
            f"{np.mean(sets):.3f}, least {np.mean(sets, axis=0).min():.3f}" if sets[0] else ""
        )
        rows.append(row)
    last = ["all", ""]
    for figures in every.values():
        covered, least, width, score = np.array(figures).T
        gone = np.exp(np.log(np.maximum(width, 1e-9)).mean())
        last.append(f"{covered.mean():.3f} / {least.min():.3f} / {gone:.3f} / {score.mean():.3f}")
    names = [f"{name}: covered / least column / width / log score" for name in every]
    return markdown_table(["table", "masks", *names, "sets covered"], [*rows, [*last, ""]])
