"""Accuracy of imputation: the presets beside their peers, same tables and masks, in one run."""

from __future__ import annotations

import os
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import OTHERS, UCI, as_numbers, load_table
from benchmarks.methods import METHODS
from benchmarks.paper import whole_lines
from benchmarks.results import ResultFile, markdown_table, peak_megabytes, settings_of
from benchmarks.runner import run_missing
from grapefill.evaluate import MECHANISMS, cell_errors, draw_mask

if TYPE_CHECKING:
    import argparse

    import pandas as pd

RESULTS = ResultFile(
    "accuracy", ("dataset", "method", "seed", "missing", "mechanism"), also=whole_lines
)
METRICS = ("mae", "error_rate")
DATASETS = (*UCI, *OTHERS)
USUAL = [
    "mean",
    "knn",
    "mice",
    "chained extra trees",
    "chained boosting",
    "missforest",
    "grapefill fast",
    "grapefill default",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--datasets", nargs="+", default=list(UCI), choices=DATASETS)
    parser.add_argument("--methods", nargs="+", default=USUAL, choices=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[100, 101, 102, 103, 104])
    parser.add_argument("--missing", type=float, default=0.3)
    parser.add_argument("--mechanism", default="mcar", choices=MECHANISMS)
    parser.add_argument("--time-limit", type=float, help="seconds for one measurement")
    parser.add_argument("--table-only", action="store_true", help="print what was measured before")


def run(arguments: argparse.Namespace) -> None:
    """Measure what has not been measured yet, then print the table."""
    todo = [
        {
            "dataset": dataset,
            "method": method,
            "seed": seed,
            "missing": arguments.missing,
            "mechanism": arguments.mechanism,
        }
        for dataset in arguments.datasets
        for seed in arguments.seeds
        for method in arguments.methods
    ]
    print(
        f"{arguments.missing:.0%} missing, {arguments.mechanism.upper()}, masks "
        f"{', '.join(map(str, arguments.seeds))}; {os.cpu_count()} cores, "
        f"{torch.get_num_threads()} threads."
    )
    if not arguments.table_only:
        run_missing(
            RESULTS,
            todo,
            measure,
            data_dir=arguments.data_dir,
            shown=shown,
            time_limit=arguments.time_limit,
        )
    chosen = (arguments.datasets, arguments.methods, arguments.missing, arguments.mechanism)
    print(table(*chosen))
    print(totals(*chosen))


def allows(dataset: str, method: str) -> bool:
    """Whether a method can be tried on a table."""
    del dataset, method
    return True


def shown(result: dict[str, Any]) -> str:
    """Return a result in words."""
    rate = result["error_rate"]
    words = f"MAE {result['mae']:.4f}" + ("" if rate is None else f", error rate {rate:.4f}")
    return f"{words} in {result['seconds']:.1f} s"


def measure(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Fill one table by one method."""
    complete = load_table(fields["dataset"], data_dir)
    missing = draw_mask(
        as_numbers(complete), fields["missing"], fields["mechanism"], seed=fields["seed"]
    )
    imputer = METHODS[fields["method"]](fields["seed"])
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        filled = imputer.fit_transform(complete.mask(missing))
    seconds = time.perf_counter() - start
    check_filled(complete, filled, missing)
    return score(complete, filled, missing) | {
        "seconds": round(seconds, 2),
        "peak_mb": round(peak_megabytes()),
        "settings": settings_of(imputer),
    }


def check_filled(complete: pd.DataFrame, filled: Any, missing: np.ndarray) -> None:
    """Refuse what is no filled table: another shape, cells left, observed cells changed."""
    if np.shape(filled) != complete.shape:
        raise ValueError(f"the answer has shape {np.shape(filled)}, the table {complete.shape}")
    before, after = as_numbers(complete), as_numbers(filled)
    if not np.isfinite(after[missing]).all():
        raise ValueError(f"{int((~np.isfinite(after[missing])).sum())} cells are not filled")
    if not np.allclose(before[~missing], after[~missing], rtol=1e-6, atol=1e-9):
        raise ValueError("observed cells were changed")


def score(complete: pd.DataFrame, filled: pd.DataFrame, missing: np.ndarray) -> dict[str, Any]:
    """Return the errors of the cells that were missing."""
    categories = np.array([complete[name].dtype.kind != "f" for name in complete])
    errors = cell_errors(as_numbers(complete), as_numbers(filled), categories)
    wrong = errors[missing & categories]
    return {
        "mae": float(errors[missing & ~categories].mean()),
        "error_rate": float(wrong.mean()) if wrong.size else None,
    }


def table(datasets: list[str], methods: list[str], missing: float, mechanism: str) -> str:
    """Return MAE (mean and standard deviation over masks), seconds and memory of every method."""
    rows = []
    for dataset in datasets:
        for method in methods:
            mine = _lines(dataset, method, missing, mechanism)
            if not mine:
                continue
            seconds = np.mean([line["seconds"] for line in mine])
            rows.append(
                [
                    dataset,
                    method,
                    _spread([line["mae"] for line in mine]),
                    _spread([line["error_rate"] for line in mine]),
                    str(len(mine)),
                    f"{seconds:.1f}",
                    str(max(line.get("peak_mb", 0) for line in mine)),
                ]
            )
    header = ["table", "method", "MAE", "error rate", "masks", "seconds", "peak MB"]
    return markdown_table(header, rows)


def totals(datasets: list[str], methods: list[str], missing: float, mechanism: str) -> str:
    """Return every method's geometric mean of MAE over that of chained extra trees, and time."""
    yardstick = "chained extra trees"
    rows = []
    for method in methods:
        pairs = [
            (_lines(d, method, missing, mechanism), _lines(d, yardstick, missing, mechanism))
            for d in datasets
        ]
        if not all(mine and theirs for mine, theirs in pairs):
            continue
        mae = [np.mean([line["mae"] for line in mine]) for mine, _ in pairs]
        other = [np.mean([line["mae"] for line in theirs]) for _, theirs in pairs]
        ratio = np.exp(np.mean(np.log(np.divide(mae, other))))
        mine, theirs = (
            sum(np.mean([line["seconds"] for line in pair[side]]) for pair in pairs)
            for side in (0, 1)
        )
        rows.append([method, f"{ratio:.3f}", f"{mine:.0f}", f"{mine / theirs:.2f}"])
    header = ["method", f"MAE / {yardstick}, geometric mean", "seconds in all", "ratio"]
    return markdown_table(header, rows)


def _lines(dataset: str, method: str, missing: float, mechanism: str) -> list[dict[str, Any]]:
    wanted = (dataset, method, missing, mechanism)
    return [
        line
        for line in RESULTS.good_lines()
        if (line["dataset"], line["method"], line["missing"], line["mechanism"]) == wanted
    ]


def _spread(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.4f} ± {np.std(known):.4f}" if known else ""
