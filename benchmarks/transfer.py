"""From one table to another with the same columns: a small table of unusual rows, filled.

The rows of a table are sorted by its first principal component. The first 70% are the other table,
with plenty of rows; a hundred of the last 30% are the table of interest. So ranges and relations
differ, as they do between hospitals or years.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.accuracy import DATASETS, allows, score, shown
from benchmarks.budget import steps
from benchmarks.data import as_numbers, load_table
from benchmarks.methods import METHODS as IMPUTERS
from benchmarks.results import ResultFile, peak_megabytes, settings_of
from grapefill import GrapeImputer
from grapefill.evaluate import draw_mask

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    Fill = Callable[[pd.DataFrame, pd.DataFrame, int], tuple[pd.DataFrame, Any]]

__all__ = ["DATASETS", "METHODS", "METRICS", "RESULTS", "allows", "measure", "shown"]

RESULTS = ResultFile("transfer", ("dataset", "method", "seed", "missing"))
METRICS = ("mae",)
ROWS = 100


def _alone(name: str) -> Fill:
    def fill(_: pd.DataFrame, table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, Any]:
        imputer = IMPUTERS[name](seed)
        return imputer.fit_transform(table), imputer

    return fill


def _from_other(name: str, **parameters: Any) -> Fill:
    def fill(other: pd.DataFrame, table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, Any]:
        imputer = IMPUTERS[name](seed)
        for parameter, value in parameters.items():
            setattr(imputer, parameter, value)
        return imputer.fit(other).transform(table), imputer

    return fill


def _go_on(other: pd.DataFrame, table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, Any]:
    """Train on the other table, then go on with the table of interest."""
    imputer = GrapeImputer(
        "default", settings={"max_steps": steps(1000)}, random_state=seed, warm_start=True
    ).fit(other)
    imputer.settings = {"max_steps": steps(300), "learning_rate": 0.002}
    return imputer.fit(table).transform(table), imputer


METHODS: dict[str, Fill] = {
    "mean": _alone("mean"),
    "mice": _alone("mice"),
    "chained extra trees": _alone("chained extra trees"),
    "grapefill default": _alone("grapefill default"),
    "mice, other table": _from_other("mice"),
    "chained extra trees, other table": _from_other("chained extra trees"),
    "grapefill default, other table": _from_other("grapefill default"),
    "grapefill default, other table, new graph": _from_other(
        "grapefill default", graph_from="transform"
    ),
    "grapefill default, other table, trained on": _go_on,
}


def measure(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Fill the table of interest by one method."""
    complete = load_table(fields["dataset"], data_dir)
    numbers = as_numbers(complete)
    missing = draw_mask(numbers, fields["missing"], seed=fields["seed"])
    spread = numbers.std(axis=0)
    scaled = (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    first = np.linalg.svd(scaled, full_matrices=False)[2][0]
    order = np.argsort(scaled @ first, kind="stable")
    cut = round(0.7 * len(order))
    random = np.random.default_rng([fields["seed"], 2])
    rest = order[cut:]
    rows = np.sort(random.choice(rest, min(ROWS, len(rest)), replace=False))
    holes = complete.mask(missing)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        filled, imputer = METHODS[fields["method"]](
            holes.iloc[order[:cut]].reset_index(drop=True),
            holes.iloc[rows].reset_index(drop=True),
            fields["seed"],
        )
    seconds = time.perf_counter() - start
    truth = complete.iloc[rows].reset_index(drop=True)
    return score(truth, filled, missing[rows]) | {
        "rows": len(rows),
        "seconds": round(seconds, 2),
        "peak_mb": round(peak_megabytes()),
        "settings": settings_of(imputer),
    }
