"""Long tables: speed of transform beside chained extra trees, time and memory up to 1e6 rows."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks.data import load_features
from benchmarks.methods import chained_extra_trees
from benchmarks.results import ResultFile, markdown_table, peak_megabytes
from benchmarks.runner import in_own_process
from benchmarks.stream import measure_stream
from grapefill import GrapeImputer
from grapefill.evaluate import draw_mask

if TYPE_CHECKING:
    import argparse

RESULTS = ResultFile("scale", ("part", "dataset", "method", "rows", "seed"))
COLUMNS, FACTORS = 20, 6
MISSING = 0.3
REPEATS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--parts", nargs="+", default=["new-rows", "transform", "fit"])
    parser.add_argument("--presets", nargs="+", default=["fast", "default"])
    parser.add_argument("--rows", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--folder", help="where part stream puts its rows, emptied afterwards")


def run(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    print(
        f"{MISSING:.0%} missing, MCAR, seed {arguments.seed}; {os.cpu_count()} cores, "
        f"{torch.get_num_threads()} threads. Each line in a process of its own."
    )
    presets = [f"grapefill {preset}" for preset in arguments.presets]
    if "new-rows" in arguments.parts:
        _new_rows(presets, arguments)
    for part in ("transform", "fit"):
        if part in arguments.parts:
            _long(part, presets, arguments)
    if "stream" in arguments.parts:
        _stream(presets, arguments)


def _stream(presets: list[str], arguments: argparse.Namespace) -> None:
    rows = []
    for method in presets:
        for n_rows in arguments.rows:
            fields = {"part": "stream", "dataset": "folder", "method": method, "rows": n_rows}
            fields["folder"] = arguments.folder and f"{arguments.folder}/{n_rows}"
            result = _measure(measure_stream, fields, arguments)
            rows.append(
                [
                    method,
                    f"{n_rows:,}",
                    f"{result['input_mb']:,}",
                    f"{result['fit_seconds']:,.0f}",
                    f"{result['fit_cpu_seconds']:,.0f}",
                    f"{n_rows / result['apply_seconds']:,.0f}",
                    f"{n_rows / result['apply_cpu_seconds']:,.0f}",
                    f"{result['mb']:,}",
                ]
            )
    header = [
        "stream",
        "rows",
        "MB of files",
        "fit, s",
        "fit, CPU s",
        "apply, rows/s",
        "apply, rows/CPU s",
        "peak MB",
    ]
    print(markdown_table(header, rows))


def _new_rows(presets: list[str], arguments: argparse.Namespace) -> None:
    rows = []
    yardstick = None
    for method in ["chained extra trees", *presets]:
        fields = {"part": "new-rows", "dataset": "protein", "method": method}
        result = _measure(measure_new_rows, fields | {"rows": 45_730}, arguments)
        yardstick = yardstick or result["seconds"]
        rows.append([method, f"{result['seconds']:.2f}", f"{yardstick / result['seconds']:.1f}"])
    print(markdown_table(["transform of protein's rows, other holes", "seconds", "faster"], rows))


def _long(part: str, presets: list[str], arguments: argparse.Namespace) -> None:
    rows = []
    for method in presets:
        for n_rows in arguments.rows:
            fields = {"part": part, "dataset": "factors", "method": method, "rows": n_rows}
            measure = measure_transform if part == "transform" else measure_fit
            result = _measure(measure, fields, arguments)
            per_second = n_rows / result["seconds"]
            rows.append(
                [
                    method,
                    f"{n_rows:,}",
                    f"{result['seconds']:.1f}",
                    f"{per_second:,.0f}",
                    f"{result['mae']:.4f}",
                    f"{result['above_mb']:,}",
                ]
            )
    header = [part, "rows", "seconds", "rows/s", "MAE (spread 1)", "MB above the table"]
    print(markdown_table(header, rows))


def _measure(measure: Any, fields: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    fields = fields | {"seed": arguments.seed}
    result = in_own_process(measure, fields, arguments.data_dir)
    if "error" in result:
        raise SystemExit(f"{fields}: {result['error']}")
    # Where the rows were is of no interest later.
    RESULTS.add(**{name: fields[name] for name in fields if name != "folder"}, **result)
    print(f"{fields['part']}, {fields['method']}, {fields['rows']:,} rows: {result}", flush=True)
    return result


def make_table(n_rows: int, seed: int) -> np.ndarray:
    """Return columns of spread 1: bent mixtures of a few hidden factors, and noise."""
    random = np.random.default_rng(0)
    mix = random.normal(size=(FACTORS, COLUMNS)) / np.sqrt(FACTORS)
    shift = random.normal(size=COLUMNS)
    random = np.random.default_rng([seed, n_rows])
    hidden = random.normal(size=(n_rows, FACTORS))
    bent = np.tanh(hidden @ mix + shift) * 1.5
    return bent + 0.1 * random.normal(size=(n_rows, COLUMNS))


def measure_new_rows(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Fit a method to protein, then time how long it takes to fill it with other holes."""
    complete = load_features("protein", data_dir)
    seed = fields["seed"]
    first, other = (
        np.where(draw_mask(complete, MISSING, seed=s), np.nan, complete) for s in (seed, seed + 1)
    )
    preset = fields["method"].removeprefix("grapefill ")
    if preset == "chained extra trees":
        imputer = chained_extra_trees(seed)
    else:
        imputer = GrapeImputer(preset, random_state=seed)
    imputer.fit(first)
    return {"seconds": round(min(_seconds(imputer, other) for _ in range(REPEATS)), 3)}


def _seconds(imputer: Any, table: np.ndarray) -> float:
    start = time.perf_counter()
    imputer.transform(table)
    return time.perf_counter() - start


def measure_transform(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Fit a preset to 10,000 rows, then fill a long table."""
    del data_dir
    seed, n_rows = fields["seed"], fields["rows"]
    imputer = _imputer(fields).fit(_with_holes(make_table(10_000, seed), seed))
    complete = make_table(n_rows, seed + 1)
    table = _with_holes(complete, seed + 1)
    imputer.transform(table[:1000])
    before = _forget_peak()
    start = time.perf_counter()
    filled = imputer.transform(table)
    seconds = time.perf_counter() - start
    # The filled table is the caller's as well.
    above = peak_megabytes() - before - filled.nbytes / 2**20
    return _result(seconds, filled, complete, table, above)


def measure_fit(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Fit a preset to a long table, then fill 10,000 of its rows."""
    del data_dir
    seed, n_rows = fields["seed"], fields["rows"]
    complete = make_table(n_rows, seed)
    table = _with_holes(complete, seed)
    before = _forget_peak()
    start = time.perf_counter()
    imputer = _imputer(fields).fit(table)
    seconds = time.perf_counter() - start
    above = peak_megabytes() - before
    # The same rows for every length, none of which was seen.
    complete = make_table(20_000, seed + 1)
    table = _with_holes(complete, seed + 1)
    return _result(seconds, imputer.transform(table), complete, table, above)


def _imputer(fields: dict[str, Any]) -> GrapeImputer:
    preset = fields["method"].removeprefix("grapefill ")
    return GrapeImputer(preset, random_state=fields["seed"])


def _with_holes(complete: np.ndarray, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    table = complete.copy()
    table[random.random(complete.shape, dtype=np.float32) < MISSING] = np.nan
    return table


def _result(
    seconds: float, filled: np.ndarray, complete: np.ndarray, table: np.ndarray, above: float
) -> dict[str, Any]:
    holes = np.isnan(table)
    return {
        "seconds": round(seconds, 2),
        "mae": float(np.abs(filled[holes] - complete[holes]).mean()),
        "above_mb": round(above),
    }


def _forget_peak() -> float:
    """Let peak memory start from what is in use now, and return that in megabytes."""
    forget = Path("/proc/self/clear_refs")
    if forget.exists():
        forget.write_text("5")
    return peak_megabytes()
