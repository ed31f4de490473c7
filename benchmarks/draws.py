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
    from collections.abc import Callable

RESULTS = ResultFile("draws", ("dataset", "preset", "seed"))
MISSING = 0.3
DRAWS = 20
# The tables of the study of pooled coefficients.
SIMULATED = {
    f"{model}-{mechanism}-{rows}": {"model": model, "mechanism": mechanism, "rows": rows}
    for rows in (300, 1_000, 3_000)
    for model in MODELS
    for mechanism in MECHANISMS
}
# What draws cost is measured on these, made below.
COSTS = ("cost-10000x20", "cost-10000x20-categories", "cost-10000x20-products")
ROUNDS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    sets = [*UCI, *MIXED, *COSTS]
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
    if fields["dataset"] in COSTS:
        return _cost(fields["dataset"], fields["preset"], seed)
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


def _made(name: str, random: np.random.Generator) -> pd.DataFrame:
    """Return a complete table of 10,000 rows and 20 columns."""
    numbers = random.normal(size=(10_000, 5)) @ random.normal(size=(5, 20))
    noise = random.normal(size=numbers.shape)
    table = pd.DataFrame(np.tanh(numbers) + 0.5 * noise).rename(columns=str)
    if name.endswith("categories"):
        for j, count in zip(range(12, 20), (2, 2, 3, 4, 5, 6, 8, 12), strict=True):
            labels = [f"c{number}" for number in range(count)]
            table[str(j)] = pd.qcut(table[str(j)], count, labels=labels).astype(str)
        table.iloc[:, 8:12] = (2 * table.iloc[:, 8:12]).round()
    if name.endswith("products"):
        parts = random.normal(size=(10_000, 6))
        for j in range(1, 20, 2):
            table[str(j)] = parts[:, j % 6] * parts[:, (j + 1 + j // 6) % 6] + 0.3 * noise[:, j]
            table[str(j - 1)] = parts[:, (j - 1) % 6] + 0.5 * noise[:, j - 1]
    return table


def _cost(name: str, preset: str, seed: int) -> dict[str, Any]:
    """Return seconds of fit, the first draw, fill, one draw and twenty, and the memory of draws.

    All but the first two are medians; memory is that of one draw and of five.
    """
    random = np.random.default_rng(seed)
    table = _made(name, random)
    table = table.mask(random.random(table.shape) < MISSING)
    imputer = GrapeImputer(preset, random_state=seed)
    seconds = {"fit": _seconds(lambda: imputer.fit(table))}
    imputer.transform(table)
    seconds["first_draw"] = _seconds(lambda: imputer.sample(table, 1, random_state=0))
    for kind, count, rounds in (("one_draw", 1, ROUNDS), ("twenty_draws", 20, 3)):
        taken = []
        for number in range(rounds):
            draws = imputer.sample_each(table, count, random_state=number)
            taken.append(_seconds(lambda draws=draws: [None for _ in draws]))
        seconds[kind] = float(np.median(taken))
    fills = [_seconds(lambda: imputer.transform(table)) for _ in range(ROUNDS)]
    seconds["transform"] = float(np.median(fills))
    memory = {}
    for count in (1, 5):
        tracemalloc.start()
        for _ in imputer.sample_each(table, count, random_state=0):
            pass
        memory[f"peak_mb_{count}"] = round(tracemalloc.get_traced_memory()[1] / 1e6, 1)
        tracemalloc.stop()
    return {name: round(value, 3) for name, value in seconds.items()} | memory


def _seconds(work: Callable[[], Any]) -> float:
    """Return the seconds that something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def table(preset: str) -> str:
    """Return how far correlations are off in draws and in single fills."""
    lines = [line for line in RESULTS.lines() if line["preset"] == preset and "single" in line]
    names = ("single", "draws", "averaged", "expected")
    known = [line for line in lines if line["dataset"] in (*UCI, *MIXED) and "expected" in line]
    for seed in sorted({line["seed"] for line in known}):
        each = [line for line in known if line["seed"] == seed]
        if len(each) == len(UCI) + len(MIXED):
            sums = {name: sum(line[name] for line in each) for name in names}
            lines.append({"dataset": "all, in sum", "seed": seed} | sums)
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
    return "\n\n".join([markdown_table(head, rows), cost_table(preset)])


def cost_table(preset: str) -> str:
    """Return what draws cost, in fills."""
    some = [line for line in RESULTS.lines() if line["preset"] == preset and "first_draw" in line]
    names = ("first_draw", "one_draw", "twenty_draws")
    rows = [
        [
            line["dataset"],
            str(line["seed"]),
            str(line["threads"]),
            f"{line['fit']:.1f}",
            f"{line['transform']:.3f}",
            *(f"{line[name] / line['transform']:.1f}" for name in names),
            f"{line['peak_mb_1']:.0f}, {line['peak_mb_5']:.0f}",
        ]
        for line in some
    ]
    head = ["table", "seed", "threads", "fit, s", "a fill, s", "first draw, fills", "a draw"]
    return markdown_table([*head, "twenty", "peak of one, of five, MB"], rows)
