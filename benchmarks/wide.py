"""Wide tables of which little is observed: error beside means, time per step, memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.data import data_folder
from benchmarks.results import ResultFile, markdown_table, peak_megabytes
from benchmarks.runner import in_own_process
from grapefill import SparseImputer

if TYPE_CHECKING:
    import argparse

RESULTS = ResultFile("wide", ("dataset", "method", "rows", "columns", "observed", "seed"))
RATINGS = ("flixster", "douban", "yahoo_music")
FACTORS, NOISE = 4, 0.3
TEST = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--datasets", nargs="+", default=["factors"])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=20_000)
    parser.add_argument("--observed", nargs="+", type=float, default=[0.0025, 0.005, 0.01])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-rows", type=int, default=1024)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--seed", type=int, default=100)


def run(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    rows = []
    for dataset in arguments.datasets:
        for observed in arguments.observed if dataset == "factors" else [0.0]:
            fields = {
                "dataset": dataset,
                "method": f"grapefill {arguments.preset}",
                "rows": arguments.rows if dataset == "factors" else 0,
                "columns": arguments.columns if dataset == "factors" else 0,
                "observed": observed,
                "seed": arguments.seed,
                "steps": arguments.steps,
                "batch_rows": arguments.batch_rows,
            }
            result = in_own_process(measure, fields, arguments.data_dir)
            if "error" in result:
                raise SystemExit(f"{fields}: {result['error']}")
            RESULTS.add(**fields, **result)
            print(fields, result, flush=True)
            rows.append(
                [
                    dataset,
                    f"{result['cells']:,}",
                    f"{result['mae']:.4f}",
                    f"{result['rmse']:.4f}",
                    f"{result['mean_mae']:.4f}",
                    f"{result['column_mae']:.4f}",
                    f"{result['column_rmse']:.4f}",
                    f"{result['ms_per_step']:.0f}",
                    f"{result['mb']:,}",
                ]
            )
    header = [
        "set",
        "observed cells",
        "MAE",
        "RMSE",
        "MAE of the mean",
        "MAE of column means",
        "RMSE of column means",
        "ms/step",
        "MB",
    ]
    print(markdown_table(header, rows))


def make_cells(
    n_rows: int, n_columns: int, observed: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and values of a table of a few factors, column means and noise."""
    random = np.random.default_rng([seed, n_rows, n_columns])
    place = np.unique(random.integers(0, n_rows * n_columns, round(observed * n_rows * n_columns)))
    rows, columns = place // n_columns, place % n_columns
    left = random.normal(size=(n_rows, FACTORS)) / np.sqrt(FACTORS)
    right = random.normal(size=(n_columns, FACTORS))
    means = random.normal(size=n_columns)
    values = np.einsum("ek,ek->e", left[rows], right[columns]) + means[columns]
    return rows, columns, values + NOISE * random.normal(size=values.size)


def measure(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Fit on most of the observed cells, predict the others."""
    if fields["dataset"] == "factors":
        n_rows, n_columns = fields["rows"], fields["columns"]
        rows, columns, values = make_cells(n_rows, n_columns, fields["observed"], fields["seed"])
        test = np.random.default_rng(fields["seed"]).random(rows.size) < TEST
        seen = (rows[~test], columns[~test], values[~test])
        wanted = (rows[test], columns[test], values[test])
    else:
        with np.load(data_folder(data_dir) / "ratings" / f"{fields['dataset']}.npz") as file:
            seen, wanted = (
                tuple(
                    file[f"{part}_{name}"].astype(kind)
                    for name, kind in (("user", np.int64), ("item", np.int64), ("rating", float))
                )
                for part in ("train", "test")
            )
        n_rows, n_columns = (int(max(seen[k].max(), wanted[k].max())) + 1 for k in (0, 1))
    steps = []
    settings = {
        "max_steps": fields["steps"],
        "large_factor": 1.0,
        "batch_rows": fields["batch_rows"],
        "step_cells": None,
        "learning_rate": 0.01,
    }
    imputer = SparseImputer(
        fields["method"].removeprefix("grapefill "),
        settings=settings,
        random_state=fields["seed"],
        # Of the processor, so that other work on the machine does not count.
        callbacks=[lambda _: steps.append(time.process_time())],
    )
    start = time.perf_counter()
    imputer.fit(seen, shape=(n_rows, n_columns))
    seconds = time.perf_counter() - start
    predicted = imputer.predict_cells(seen, *wanted[:2], shape=(n_rows, n_columns))
    count = np.bincount(seen[1], minlength=n_columns)
    mean = seen[2].mean()
    means = np.where(
        count > 0, np.bincount(seen[1], seen[2], n_columns) / np.maximum(count, 1), mean
    )
    off, column_off = predicted - wanted[2], means[wanted[1]] - wanted[2]
    return {
        "cells": int(seen[2].size),
        "mae": float(np.abs(off).mean()),
        "rmse": float(np.sqrt(np.square(off).mean())),
        "mean_mae": float(np.abs(mean - wanted[2]).mean()),
        "column_mae": float(np.abs(column_off).mean()),
        "column_rmse": float(np.sqrt(np.square(column_off).mean())),
        # The median: a validation is part of some steps.
        "ms_per_step": round(1000 * float(np.median(np.diff(steps))), 1),
        "seconds": round(seconds, 1),
        "mb": round(peak_megabytes()),
    }
