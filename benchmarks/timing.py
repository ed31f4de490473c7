"""Running time at test time: one call that fills a whole table, training left out.

For methods that are trained (GAIN, grapefill) that is a pass of the trained model; for the others
it is the whole call, as in the paper. How well a model was trained does not change how long a pass
takes, so GAIN and preset "paper" are trained for a few steps here; trees grow as usual.
"""

from __future__ import annotations

import statistics
import time
import warnings
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import ConvergenceWarning

from benchmarks.accuracy import DATASETS, allows
from benchmarks.baselines.gain import GAIN
from benchmarks.data import as_numbers, load_table
from benchmarks.methods import METHODS as IMPUTERS
from benchmarks.methods import OnNumbers, grapefill
from benchmarks.results import ResultFile, peak_megabytes, settings_of
from grapefill.evaluate import draw_mask

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DATASETS", "METHODS", "METRICS", "RESULTS", "allows", "measure", "shown"]

RESULTS = ResultFile("time", ("dataset", "method", "seed", "missing"))
METRICS = ("seconds",)
CALLS = 3

TRAINED: dict[str, Callable[[int], Any]] = {
    "gain": lambda seed: OnNumbers(GAIN(seed, steps=20)),
    "grapefill paper": lambda seed: grapefill("paper", seed, max_steps=2, batch_rows=1024),
    "grapefill fast": lambda seed: grapefill("fast", seed, max_steps=100),
    "grapefill default": lambda seed: grapefill("default", seed, max_steps=100),
}
METHODS: dict[str, Callable[[int], Any]] = {
    **{
        name: IMPUTERS[name]
        for name in ("mean", "knn", "mice", "mice, 3 rounds", "svd", "spectral")
    },
    "chained extra trees": IMPUTERS["chained extra trees"],
    **TRAINED,
}


def measure(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Fill one table some times and note the median of the seconds."""
    complete = load_table(fields["dataset"], data_dir)
    missing = draw_mask(as_numbers(complete), fields["missing"], seed=fields["seed"])
    holes = complete.mask(missing)
    imputer = METHODS[fields["method"]](fields["seed"])
    trained = fields["method"] in TRAINED
    seconds: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if trained:
            imputer.fit(holes)
        call = imputer.transform if trained else imputer.fit_transform
        while len(seconds) < CALLS and sum(seconds) < 60:
            start = time.perf_counter()
            call(holes)
            seconds.append(time.perf_counter() - start)
    return {
        "seconds": round(statistics.median(seconds), 6),
        "calls": len(seconds),
        "peak_mb": round(peak_megabytes()),
        "settings": settings_of(imputer),
    }


def shown(result: dict[str, Any]) -> str:
    """Return a result in words."""
    return f"{result['seconds']:.4g} s"
