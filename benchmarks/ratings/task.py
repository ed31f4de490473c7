"""Ratings of Flixster, Douban and YahooMusic: RMSE on the usual test ratings."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from benchmarks.accuracy import allows
from benchmarks.budget import is_whole, steps
from benchmarks.data import data_folder
from benchmarks.ratings.biases import Biases
from benchmarks.ratings.data import NAMES, load_ratings, made_up, root_mean_square
from benchmarks.ratings.factors import GraphFactors
from benchmarks.ratings.gc_mc import GCMC
from benchmarks.ratings.grape import GrapeRatings
from benchmarks.ratings.igmc import IGMC
from benchmarks.results import ResultFile, peak_megabytes, settings_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DATASETS", "METHODS", "METRICS", "RESULTS", "allows", "measure", "shown"]

RESULTS = ResultFile("ratings", ("dataset", "method", "seed"))
METRICS = ("rmse",)
DATASETS = (*NAMES, "made-up")
ON_BIASES = {"discrete": False, "on_biases": True, "width": 32, "rate": 0.002, "dropout": 0.5}


def _grape(seed: int, **settings: Any) -> GrapeRatings:
    members = 3 if is_whole() else 1
    usual = 60 if settings.get("on_biases") else 300
    return GrapeRatings(seed, steps=max(10, steps(usual)), members=members, **settings)


METHODS: dict[str, Callable[[int], Any]] = {
    "biases": Biases,
    "grape, discrete": lambda seed: _grape(seed, discrete=True),
    "grape, continuous": lambda seed: _grape(seed, discrete=False),
    "grape, on biases": lambda seed: _grape(seed, **ON_BIASES),
    "grape, with places": lambda seed: _grape(seed, **ON_BIASES, places=20),
    "graph factors": lambda seed: GraphFactors(seed, steps(400)),
    "grape, with places, beside factors": lambda seed: _grape(
        seed, **ON_BIASES, places=20, factor_rounds=steps(400)
    ),
    "gc-mc": lambda seed: GCMC(seed, steps(400)),
    "igmc": lambda seed: IGMC(seed, steps(4000)),
}


def measure(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Predict the test ratings of one set by one method."""
    name = fields["dataset"]
    if name == "made-up":
        train, test = made_up()
    else:
        train, test = load_ratings(data_folder(data_dir) / "ratings" / f"{name}.npz")
    method = METHODS[fields["method"]](fields["seed"])
    start = time.perf_counter()
    predicted = method.fit_predict(train, test)
    return {
        "rmse": root_mean_square(predicted, test),
        "seconds": round(time.perf_counter() - start, 1),
        "peak_mb": round(peak_megabytes()),
        "settings": settings_of(method),
    }


def shown(result: dict[str, Any]) -> str:
    """Return a result in words."""
    return f"RMSE {result['rmse']:.4f} in {result['seconds']:.0f} s"
