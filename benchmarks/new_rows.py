"""New rows without training again: learn from 70% of the rows, fill the others.

As in the paper, methods that are not trained are applied to the new rows alone; those that are, and
"fitted" ones besides, learn from the old rows. grapefill answers in two ways, both noted: with the
states of the features as they were at fit, row by row, and with a new graph of all new rows.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from benchmarks.accuracy import DATASETS, allows, score, shown
from benchmarks.data import as_numbers, load_table
from benchmarks.methods import METHODS as IMPUTERS
from benchmarks.results import ResultFile, peak_megabytes, settings_of
from grapefill import GrapeImputer
from grapefill.evaluate import draw_mask

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

__all__ = ["DATASETS", "METHODS", "METRICS", "RESULTS", "allows", "measure", "shown"]

RESULTS = ResultFile("new_rows", ("dataset", "method", "seed", "missing"))
METRICS = ("mae", "mae_new_graph")


class Applied:
    """An imputer that sees nothing but the new rows."""

    def __init__(self, imputer: Any) -> None:
        self.imputer = imputer

    def fit(self, table: pd.DataFrame) -> Self:
        """Learn nothing."""
        del table
        return self

    def transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the filled table."""
        filled: pd.DataFrame = self.imputer.fit_transform(table)
        return filled


def _applied(name: str) -> Callable[[int], Any]:
    return lambda seed: Applied(IMPUTERS[name](seed))


METHODS: dict[str, Callable[[int], Any]] = {
    **{
        name: _applied(name)
        for name in ("mean", "knn", "mice", "mice, 3 rounds", "svd", "spectral", "missmda")
    },
    "chained extra trees": _applied("chained extra trees"),
    "gain": IMPUTERS["gain"],
    "knn, fitted": IMPUTERS["knn"],
    "mice, fitted": IMPUTERS["mice"],
    "chained extra trees, fitted": IMPUTERS["chained extra trees"],
    "grapefill fast": IMPUTERS["grapefill fast"],
    "grapefill default": IMPUTERS["grapefill default"],
    "grapefill paper": IMPUTERS["grapefill paper"],
    "grapefill paper, batches": IMPUTERS["grapefill paper, batches"],
}


def measure(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Learn from some rows of a table and fill the others."""
    complete = load_table(fields["dataset"], data_dir)
    missing = draw_mask(as_numbers(complete), fields["missing"], seed=fields["seed"])
    holes = complete.mask(missing)
    old, new = train_test_split(
        np.arange(len(complete)), test_size=0.3, random_state=fields["seed"]
    )
    imputer = METHODS[fields["method"]](fields["seed"])
    given, truth = holes.iloc[new], complete.iloc[new]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.perf_counter()
        imputer.fit(holes.iloc[old])
        fitted = time.perf_counter()
        filled = imputer.transform(given)
        seconds = time.perf_counter() - fitted
    result = score(truth, filled, missing[new])
    if isinstance(imputer, GrapeImputer):
        imputer.graph_from = "transform"
        again = score(truth, imputer.transform(given), missing[new])
        result["mae_new_graph"] = again["mae"]
    return result | {
        "fit_seconds": round(fitted - start, 2),
        "seconds": round(seconds, 4),
        "peak_mb": round(peak_megabytes()),
        "settings": settings_of(imputer),
    }
