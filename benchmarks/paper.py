"""The paper's feature imputation in its own configuration: preset "paper", MCAR, MAE on [0, 1]."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.data import load_features
from benchmarks.results import ResultFile, markdown_table
from grapefill import GrapeImputer
from grapefill.evaluate import draw_mask

if TYPE_CHECKING:
    import argparse

PUBLISHED = {
    "concrete": 0.090,
    "energy": 0.136,
    "housing": 0.075,
    "kin8nm": 0.249,
    "naval": 0.008,
    "power": 0.102,
    "protein": 0.027,
    "wine": 0.063,
    "yacht": 0.151,
}
RESULTS = ResultFile("paper_imputation", ("dataset", "seed", "missing", "epochs"))


def whole_lines() -> list[dict[str, Any]]:
    """Return the measurements of full length, as those of a method among others."""
    about = {"method": "grapefill paper", "mechanism": "mcar"}
    return [about | line for line in RESULTS.lines() if line["epochs"] == 20_000]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument(
        "--datasets", nargs="+", default=["yacht", "energy", "housing", "concrete", "wine"]
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[100, 101, 102])
    parser.add_argument("--missing", type=float, default=0.3)
    parser.add_argument("--epochs", type=int, default=20_000)
    parser.add_argument("--table-only", action="store_true", help="print what was measured before")


def run(arguments: argparse.Namespace) -> None:
    """Measure what has not been measured yet, then print the table."""
    if not arguments.table_only:
        for seed in arguments.seeds:
            for dataset in arguments.datasets:
                _measure(dataset, seed, arguments)
    print(table(arguments.missing, arguments.epochs))


def _measure(dataset: str, seed: int, arguments: argparse.Namespace) -> None:
    fields = {
        "dataset": dataset,
        "seed": seed,
        "missing": arguments.missing,
        "epochs": arguments.epochs,
    }
    if RESULTS.has(**fields):
        return
    complete = load_features(dataset, arguments.data_dir)
    missing = draw_mask(complete, arguments.missing, seed=seed)
    holes = np.where(missing, np.nan, complete)
    imputer = GrapeImputer(
        "paper",
        settings={"epochs": arguments.epochs},
        random_state=seed,
        verbose=arguments.verbose,
    )
    start = time.perf_counter()
    filled = imputer.fit_transform(holes)
    seconds = time.perf_counter() - start
    mae = float(np.abs(filled - complete)[missing].mean())
    RESULTS.add(**fields, mae=mae, seconds=round(seconds, 1))
    print(f"{dataset} seed {seed}: MAE {mae:.4f} in {seconds:.0f} s", flush=True)


def table(missing: float, epochs: int) -> str:
    """Return the measured MAE beside the published one."""
    rows = []
    for dataset, published in PUBLISHED.items():
        lines = [
            line
            for line in RESULTS.lines()
            if (line["dataset"], line["missing"], line["epochs"]) == (dataset, missing, epochs)
        ]
        if not lines:
            continue
        mae = np.array([line["mae"] for line in lines])
        seconds = np.mean([line["seconds"] for line in lines])
        rows.append(
            [
                dataset,
                f"{published:.3f}",
                f"{mae.mean():.4f} ± {mae.std():.4f}",
                f"{mae.mean() / published:.3f}",
                str(len(lines)),
                f"{seconds:.0f}",
            ]
        )
    header = ["table", "published MAE", "MAE", "ratio", "masks", "seconds per fit"]
    return markdown_table(header, rows)
