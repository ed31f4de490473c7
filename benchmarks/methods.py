"""The imputers that are compared: grapefill's presets and what people use instead.

A method is a function from a seed to something with ``fit_transform``. To add one, add a line:
wrap it in `OnNumbers` when it cannot take a dataframe with categories. With ``fit`` and
``transform`` besides, it takes part in the experiments on new rows and on time too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from benchmarks.baselines.gain import GAIN
from benchmarks.baselines.iterative_svd import IterativeSVD
from benchmarks.baselines.knn import KNN
from benchmarks.baselines.miss_mda import MissMDA
from benchmarks.baselines.miwae import MIWAE
from benchmarks.baselines.soft_impute import SoftImpute, Spectral
from benchmarks.budget import is_whole, steps
from benchmarks.data import as_numbers, from_numbers
from grapefill import GrapeImputer

if TYPE_CHECKING:
    from collections.abc import Callable

    from grapefill.training import Preset

# For ablations, which need many fits: half of the paper's steps, on a thousand rows at most.
BATCHES = {"max_steps": 10_000, "batch_rows": 1_024}


class OnNumbers:
    """An imputer for arrays, given codes for categories; the nearest category is what it says."""

    def __init__(self, imputer: Any) -> None:
        self.imputer = imputer

    def fit(self, table: pd.DataFrame) -> Self:
        """Learn from a table."""
        self.imputer.fit(as_numbers(table))
        return self

    def transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return another table with the same columns, filled."""
        return from_numbers(self.imputer.transform(as_numbers(table)), table)

    def fit_transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the filled table."""
        return from_numbers(self.imputer.fit_transform(as_numbers(table)), table)


class Constant:
    """The mean of numbers, the most frequent of categories."""

    def fit(self, table: pd.DataFrame) -> Self:
        """Learn from a table."""
        self.constants = {
            name: column.mean() if column.dtype.kind == "f" else column.mode()[0]
            for name, column in table.items()
        }
        return self

    def transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return another table with the same columns, filled."""
        return table.fillna(self.constants)

    def fit_transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the filled table."""
        return self.fit(table).transform(table)


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
    count = 50 if is_whole() else 5
    trees = ExtraTreesRegressor(count, min_samples_leaf=2, n_jobs=-1, random_state=seed)
    return IterativeImputer(trees, max_iter=5, random_state=seed)


def _chained_boosting(seed: int) -> Any:
    boosting = HistGradientBoostingRegressor(random_state=seed)
    return OnNumbers(IterativeImputer(boosting, max_iter=5, random_state=seed))


def _mice(seed: int, rounds: int) -> Any:
    return OnNumbers(IterativeImputer(max_iter=rounds, random_state=seed))


def grapefill(preset: str | Preset, seed: int, **settings: Any) -> GrapeImputer:
    """Return one of grapefill's presets, trained for as long as the budget allows."""
    if not is_whole():
        settings |= {"max_steps": steps(1000), "rounds": 1, "trees": 2}
    return GrapeImputer(preset, settings=settings or None, random_state=seed)


METHODS: dict[str, Callable[[int], Any]] = {
    "mean": lambda _: Constant(),
    "knn": lambda _: OnNumbers(KNN()),
    "mice": lambda seed: _mice(seed, 10),
    "mice, 3 rounds": lambda seed: _mice(seed, 3),
    "svd": lambda _: OnNumbers(IterativeSVD()),
    "spectral": lambda _: OnNumbers(Spectral()),
    "gain": lambda seed: OnNumbers(GAIN(seed, steps(10_000))),
    "miwae": lambda seed: OnNumbers(MIWAE(seed, steps(5_000))),
    "missmda": lambda _: OnNumbers(MissMDA()),
    "missmda, one draw": lambda seed: OnNumbers(MissMDA(draws=1, seed=seed)),
    "soft svd": lambda seed: OnNumbers(SoftImpute(seed)),
    "chained extra trees": lambda seed: OnNumbers(chained_extra_trees(seed)),
    "chained boosting": _chained_boosting,
    "missforest": lambda _: PyPIMissForest(),
    "grapefill fast": lambda seed: grapefill("fast", seed),
    "grapefill default": lambda seed: grapefill("default", seed),
    "grapefill paper": lambda seed: grapefill("paper", seed),
    "grapefill paper, batches": lambda seed: grapefill("paper", seed, **BATCHES),
    "grapefill paper, batches, no edge dropout": lambda seed: grapefill(
        "paper", seed, **BATCHES, dropout=(0.0, 0.0)
    ),
    "grapefill paper, batches, sum": lambda seed: grapefill(
        "paper", seed, **BATCHES, aggregation="sum"
    ),
    "grapefill paper, batches, max": lambda seed: grapefill(
        "paper", seed, **BATCHES, aggregation="max"
    ),
}
