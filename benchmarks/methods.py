"""The imputers that are compared: grapefill's presets and what people use instead.

A method is a function from a seed to something with ``fit_transform``. To add one, add a line:
wrap it in `OnNumbers` when it cannot take a dataframe with categories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from benchmarks.data import as_numbers, from_numbers
from benchmarks.soft_impute import SoftImpute
from grapefill import GrapeImputer

if TYPE_CHECKING:
    from collections.abc import Callable


class OnNumbers:
    """An imputer for arrays, given codes for categories; the nearest category is what it says."""

    def __init__(self, imputer: Any) -> None:
        self.imputer = imputer

    def fit_transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the filled table."""
        return from_numbers(self.imputer.fit_transform(as_numbers(table)), table)


class Constant:
    """The mean of numbers, the most frequent of categories."""

    def fit_transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the filled table."""
        filled = table.copy()
        for name in table:
            number = table[name].dtype.kind == "f"
            filled[name] = table[name].fillna(
                table[name].mean() if number else table[name].mode()[0]
            )
        return filled


class PyPIMissForest:
    """The package missforest as it comes: chained LightGBM with linear leaves."""

    def fit_transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the filled table."""
        from missforest import MissForest

        words = list(table.select_dtypes("category").columns)
        codes = table.copy()
        for name in words:
            code = table[name].cat.codes
            codes[name] = code.where(code >= 0).astype(float)
        filled = MissForest(categorical=words or None, verbose=0).fit_transform(codes)
        for name in words:
            filled[name] = pd.Categorical.from_codes(
                filled[name].astype(int), dtype=table[name].dtype
            )
        return filled[table.columns]


def chained_extra_trees(seed: int) -> IterativeImputer:
    """Return the imputer that people build from scikit-learn's parts instead of MissForest."""
    trees = ExtraTreesRegressor(50, min_samples_leaf=2, n_jobs=-1, random_state=seed)
    return IterativeImputer(trees, max_iter=5, random_state=seed)


def _chained_boosting(seed: int) -> Any:
    boosting = HistGradientBoostingRegressor(random_state=seed)
    return OnNumbers(IterativeImputer(boosting, max_iter=5, random_state=seed))


METHODS: dict[str, Callable[[int], Any]] = {
    "mean": lambda _: Constant(),
    "knn": lambda _: OnNumbers(KNNImputer(n_neighbors=50, weights="distance")),
    "mice": lambda seed: OnNumbers(IterativeImputer(max_iter=10, random_state=seed)),
    "soft svd": lambda seed: OnNumbers(SoftImpute(seed)),
    "chained extra trees": lambda seed: OnNumbers(chained_extra_trees(seed)),
    "chained boosting": _chained_boosting,
    "missforest": lambda _: PyPIMissForest(),
    "grapefill fast": lambda seed: GrapeImputer("fast", random_state=seed),
    "grapefill default": lambda seed: GrapeImputer("default", random_state=seed),
    "grapefill paper": lambda seed: GrapeImputer("paper", random_state=seed),
}
