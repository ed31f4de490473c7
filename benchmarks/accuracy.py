"""Accuracy of imputation: the presets beside their peers, same tables and masks, in one run."""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import UCI, load_features, mcar
from benchmarks.methods import METHODS
from benchmarks.results import ResultFile, markdown_table, peak_megabytes

if TYPE_CHECKING:
    import argparse

RESULTS = ResultFile("accuracy", ("dataset", "method", "seed", "missing"))
# The paper's preset takes an hour on the larger tables, so it is run when asked for.
USUAL = [name for name in METHODS if name != "grapefill paper"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--datasets", nargs="+", default=list(UCI), choices=UCI)
    parser.add_argument("--methods", nargs="+", default=USUAL, choices=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[100, 101, 102, 103, 104])
    parser.add_argument("--missing", type=float, default=0.3)
    parser.add_argument("--table-only", action="store_true", help="print what was measured before")


def run(arguments: argparse.Namespace) -> None:
    """Measure what has not been measured yet, then print the table."""
    todo = [
        {"dataset": dataset, "method": method, "seed": seed, "missing": arguments.missing}
        for dataset in arguments.datasets
        for seed in arguments.seeds
        for method in arguments.methods
    ]
    todo = [] if arguments.table_only else [fields for fields in todo if not RESULTS.has(**fields)]
    start = time.perf_counter()
    for done, fields in enumerate(todo, start=1):
        result = _in_own_process(fields, arguments.data_dir)
        RESULTS.add(**fields, **result)
        left = (time.perf_counter() - start) / done * (len(todo) - done)
        shown = result.get("error") or f"MAE {result['mae']:.4f} in {result['seconds']:.1f} s"
        print(
            f"[{done}/{len(todo)}, {left / 60:.0f} min left] {fields['dataset']}, "
            f"{fields['method']}, mask {fields['seed']}: {shown}",
            flush=True,
        )
    print(table(arguments.datasets, arguments.methods, arguments.missing))


def _in_own_process(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Measure in a process of its own, so that peak memory is the method's."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(measure, fields, data_dir).result()
        except Exception as error:  # a method that fails must not end the run
            return {"error": f"{type(error).__name__}: {error}"}


def measure(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Fill one table by one method."""
    complete = load_features(fields["dataset"], data_dir)
    missing = mcar(complete.shape, fields["missing"], fields["seed"])
    holes = np.where(missing, np.nan, complete)
    imputer = METHODS[fields["method"]](fields["seed"])
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        filled = imputer.fit_transform(holes)
    seconds = time.perf_counter() - start
    return {
        "mae": float(np.abs(filled - complete)[missing].mean()),
        "seconds": round(seconds, 2),
        "peak_mb": round(peak_megabytes()),
    }


def table(datasets: list[str], methods: list[str], missing: float) -> str:
    """Return MAE (mean and standard deviation over masks), seconds and memory of every method."""
    lines = [line for line in RESULTS.lines() if line["missing"] == missing and "mae" in line]
    rows = []
    for dataset in datasets:
        for method in methods:
            mine = [x for x in lines if (x["dataset"], x["method"]) == (dataset, method)]
            if not mine:
                continue
            mae = np.array([line["mae"] for line in mine])
            seconds = np.mean([line["seconds"] for line in mine])
            memory = max(line["peak_mb"] for line in mine)
            rows.append(
                [
                    dataset,
                    method,
                    f"{mae.mean():.4f} ± {mae.std():.4f}",
                    str(len(mine)),
                    f"{seconds:.1f}",
                    str(memory),
                ]
            )
    return markdown_table(["table", "method", "MAE", "masks", "seconds", "peak MB"], rows)
