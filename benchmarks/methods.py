"""The imputers that are compared: grapefill's presets and what people use instead.

A method is a function from a seed to a scikit-learn imputer. To add one, add a line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from grapefill import GrapeImputer

if TYPE_CHECKING:
    from collections.abc import Callable


def _chained_extra_trees(seed: int) -> Any:
    trees = ExtraTreesRegressor(50, min_samples_leaf=2, n_jobs=-1, random_state=seed)
    return IterativeImputer(trees, max_iter=5, random_state=seed)


def _chained_boosting(seed: int) -> Any:
    boosting = HistGradientBoostingRegressor(random_state=seed)
    return IterativeImputer(boosting, max_iter=5, random_state=seed)


METHODS: dict[str, Callable[[int], Any]] = {
    "mean": lambda _: SimpleImputer(),
    "knn": lambda _: KNNImputer(n_neighbors=50, weights="distance"),
    "mice": lambda seed: IterativeImputer(max_iter=10, random_state=seed),
    "chained extra trees": _chained_extra_trees,
    "chained boosting": _chained_boosting,
    "grapefill fast": lambda seed: GrapeImputer("fast", random_state=seed),
    "grapefill default": lambda seed: GrapeImputer("default", random_state=seed),
    "grapefill paper": lambda seed: GrapeImputer("paper", random_state=seed),
}
