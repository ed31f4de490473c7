"""Draws: whether they keep correlations, and what they cost in time and memory beside a fill."""

from __future__ import annotations

import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.data import MIXED, UCI, as_numbers, load_table
from benchmarks.results import ResultFile, markdown_table
from benchmarks.rubin import MECHANISMS, MODELS, simulate
from grapefill import GrapeImputer
from grapefill.evaluate import draw_mask

if TYPE_CHECKING:
    import argparse

RESULTS = ResultFile("draws", ("dataset", "preset", "seed"))
MISSING = 0.3
DRAWS = 20
COST = "cost-10000x20"
# The tables of the study of pooled coefficients.
SIMULATED = {
    f"{model}-{mechanism}-{rows}": {"model": model, "mechanism": mechanism, "rows": rows}
    for rows in (300, 1_000, 3_000)
    for model in MODELS
    for mechanism in MECHANISMS
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    sets = [*UCI, *MIXED, COST]
    parser.add_argument("--datasets", nargs="+", default=sets, choices=[*sets, *SIMULATED])
    parser.add_argument("--preset", default="fast", choices=["fast", "default"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[100])
    parser.add_argument("--table-only", action="store_true", help="print what was measured before")


def run(arguments: argparse.Namespace) -> None:
    """Measure what has not been measured yet, then print the table."""
    for seed in [] if arguments.table_only else arguments.seeds:
        for dataset in arguments.datasets:
            fields = {"dataset": dataset, "preset": arguments.preset, "seed": seed}
            if not RESULTS.has(**fields):
                result = measure(fields, arguments.data_dir)
                RESULTS.add(**fields, **result)
                print(dataset, seed, result, flush=True)
    print(table(arguments.preset))


def measure(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Fit to one table and look at its draws."""
    seed = fields["seed"]
    if fields["dataset"] == COST:
        return _cost(fields["preset"], seed)
    if fields["dataset"] in SIMULATED:
        complete, holed = simulate(SIMULATED[fields["dataset"]], seed)
    else:
        complete = load_table(fields["dataset"], data_dir)
        holed = complete.mask(draw_mask(as_numbers(complete), MISSING, "mcar", seed=seed))
    imputer = GrapeImputer(fields["preset"], random_state=seed).fit(holed)
    truth = _correlations(as_numbers(complete))
    draws = _drawn(imputer, holed, seed)
    single = _gap(truth, _correlations(as_numbers(imputer.transform(holed))))
    return {
        "single": round(single, 5),
        "draws": round(float(np.mean([_gap(truth, each) for each in draws])), 5),
        "averaged": round(_gap(truth, np.mean(draws, axis=0)), 5),
        "expected": round(_expected(np.stack(draws)), 5),
    }


def _drawn(imputer: GrapeImputer, holed: pd.DataFrame, seed: int) -> list[np.ndarray]:
    """Return the correlations in every drawn table."""
    return [
        _correlations(as_numbers(drawn))
        for drawn in imputer.sample_each(holed, DRAWS, random_state=seed)
    ]


def _correlations(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.corrcoef(numbers, rowvar=False)


def _gap(one: np.ndarray, other: np.ndarray) -> float:
    """Return the mean absolute difference of two correlation matrices, without their diagonals."""
    apart = np.abs(one - other)[~np.eye(len(one), dtype=bool)]
    return float(np.nanmean(apart))


def _expected(draws: np.ndarray) -> float:
    """Return the mean absolute error that correlations averaged over draws should have.

    If the draws vary as much as the holes leave open, the truth is one more of them: as far from
    their mean as a normal number of their variance, and of that of their mean. No way of drawing
    without other knowledge than the table's gets below that.
    """
    variance = draws.var(axis=0, ddof=1) * (1 + 1 / len(draws))
    apart = np.sqrt(2 / np.pi * variance)[~np.eye(draws.shape[1], dtype=bool)]
    return float(np.nanmean(apart))


def _cost(preset: str, seed: int) -> dict[str, Any]:
    """Return seconds of fit, fill, one draw and twenty, and the memory of one draw and of five."""
    random = np.random.default_rng(seed)
    numbers = random.normal(size=(10_000, 5)) @ random.normal(size=(5, 20))
    numbers = np.tanh(numbers) + 0.5 * random.normal(size=numbers.shape)
    table = pd.DataFrame(numbers).rename(columns=str)
    table = table.mask(random.random(table.shape) < MISSING)
    started = time.perf_counter()
    imputer = GrapeImputer(preset, random_state=seed).fit(table)
    seconds = {"fit": time.perf_counter() - started}
    imputer.transform(table)
    for name, work in {
        "learning": lambda: imputer.uncertainty_,
        "transform": lambda: imputer.transform(table),
        "one_draw": lambda: list(imputer.sample_each(table, 1, random_state=0)),
        "twenty_draws": lambda: [None for _ in imputer.sample_each(table, 20, random_state=0)],
    }.items():
        started = time.perf_counter()
        work()
        seconds[name] = time.perf_counter() - started
    memory = {}
    for count in (1, 5):
        tracemalloc.start()
        for _ in imputer.sample_each(table, count, random_state=0):
            pass
        memory[f"peak_mb_{count}"] = round(tracemalloc.get_traced_memory()[1] / 1e6, 1)
        tracemalloc.stop()
    return {name: round(value, 3) for name, value in seconds.items()} | memory


def table(preset: str) -> str:
    """Return how far correlations are off in draws and in single fills."""
    lines = [line for line in RESULTS.lines() if line["preset"] == preset and "single" in line]
    names = ("single", "draws", "averaged", "expected")
    rows = [
        [
            line["dataset"],
            str(line["seed"]),
            # Earlier lines do not say what was to be expected.
            *(f"{line[name]:.4f}" if name in line else "" for name in names),
            f"{line['averaged'] / line['single']:.2f}",
        ]
        for line in lines
    ]
    head = ["table", "seed", "single fill", "a draw", "all draws", "to be expected", "ratio"]
    return markdown_table(head, rows)
