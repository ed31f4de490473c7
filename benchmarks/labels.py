"""Label prediction from rows with holes: the predictors beside trees, same rows and masks."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.baselines.decision_tree import SurrogateTree
from benchmarks.data import CLASSES, NUMBERS, UCI, load_labelled
from benchmarks.methods import BATCHES, chained_extra_trees, grapefill
from benchmarks.methods import METHODS as IMPUTERS
from benchmarks.results import ResultFile, markdown_table, peak_megabytes, settings_of
from benchmarks.runner import run_missing
from grapefill import GrapeClassifier, GrapeRegressor
from grapefill.evaluate import draw_mask
from grapefill.training import get_preset

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

RESULTS = ResultFile("labels", ("dataset", "method", "seed", "missing"))
TREES = (
    "hist gradient boosting, squared",
    "hist gradient boosting, absolute",
    "lightgbm, absolute",
    "catboost",
    "random forest",
)
BINS = 10
# As many steps as the paper has epochs, each on some rows, and the last weights.
ALL_STEPS = BATCHES | {"max_steps": 20_000, "average": 0.0}


@dataclass(frozen=True)
class Method:
    """A way to predict labels.

    Parameters
    ----------
    regressor, classifier : callable or None
        From a seed to an estimator; None where there is no such thing.
    transductive : bool
        Whether the rows to predict take part in fit, without their labels.
    """

    regressor: Callable[[int], Any] | None
    classifier: Callable[[int], Any] | None
    transductive: bool = False


def _lightgbm(seed: int, *, classes: bool) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    if classes:
        return LGBMClassifier(random_state=seed, verbose=-1)
    return LGBMRegressor(objective="mae", random_state=seed, verbose=-1)


def _catboost(seed: int, *, classes: bool) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if classes else CatBoostRegressor
    return kind(random_seed=seed, verbose=0, allow_writing_files=False)


def _chained(seed: int, last: Any) -> Any:
    return make_pipeline(chained_extra_trees(seed), last)


def _linear(seed: int, last: Any) -> Any:
    return make_pipeline(grapefill("default", seed), StandardScaler(), last)


class ImputeThenLinear:
    """The paper's way for imputers: fill all rows, then a linear map of them.

    Parameters
    ----------
    imputer : object
        One of the imputation methods.
    classes : bool
        Whether labels are classes.
    """

    def __init__(self, imputer: Any, *, classes: bool) -> None:
        self.imputer = imputer
        self.last = make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=1000) if classes else LinearRegression()
        )
        self.classes = classes

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fill rows, with labels or without, and learn from those that have one."""
        names = [f"x{j}" for j in range(X.shape[1])]
        low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
        scaled = (X - low) / np.where(high > low, high - low, 1.0)
        self.filled = self.imputer.fit_transform(pd.DataFrame(scaled, columns=names)).to_numpy()
        known = ~np.isnan(y)
        self.last.fit(self.filled[known], y[known])
        self.classes_ = self.last.classes_ if self.classes else None
        return self

    def predict_fitted_rows(self) -> np.ndarray:
        """Return labels, or chances of classes, of all rows that `fit` saw."""
        last = self.last
        return last.predict_proba(self.filled) if self.classes else last.predict(self.filled)


def _then_linear(imputer: Callable[[int], Any]) -> Method:
    return Method(
        lambda seed: ImputeThenLinear(imputer(seed), classes=False),
        lambda seed: ImputeThenLinear(imputer(seed), classes=True),
        transductive=True,
    )


def _of_grapefill(preset: str, *, transductive: bool, **settings: Any) -> Method:
    def parameters(seed: int) -> dict[str, Any]:
        imputer = grapefill(preset, seed, **settings)
        return {"settings": imputer.settings, "random_state": seed}

    return Method(
        lambda seed: GrapeRegressor(preset, **parameters(seed)),
        lambda seed: GrapeClassifier(preset, **parameters(seed)),
        transductive,
    )


METHODS = {
    TREES[0]: Method(
        lambda seed: HistGradientBoostingRegressor(random_state=seed),
        lambda seed: HistGradientBoostingClassifier(random_state=seed),
    ),
    TREES[1]: Method(
        lambda seed: HistGradientBoostingRegressor(loss="absolute_error", random_state=seed), None
    ),
    TREES[2]: Method(partial(_lightgbm, classes=False), partial(_lightgbm, classes=True)),
    TREES[3]: Method(partial(_catboost, classes=False), partial(_catboost, classes=True)),
    TREES[4]: Method(
        lambda seed: RandomForestRegressor(n_jobs=-1, random_state=seed),
        lambda seed: RandomForestClassifier(n_jobs=-1, random_state=seed),
    ),
    "chained extra trees, random forest": Method(
        lambda seed: _chained(seed, RandomForestRegressor(n_jobs=-1, random_state=seed)),
        lambda seed: _chained(seed, RandomForestClassifier(n_jobs=-1, random_state=seed)),
    ),
    "decision tree": Method(
        lambda seed: SurrogateTree(classes=False, seed=seed),
        lambda seed: SurrogateTree(classes=True, seed=seed),
    ),
    **{
        f"{name}, then linear": _then_linear(IMPUTERS[name])
        for name in ("mean", "knn", "mice", "mice, 3 rounds", "svd", "spectral", "gain")
    },
    "grapefill default, then linear": Method(
        lambda seed: _linear(seed, LinearRegression()),
        lambda seed: _linear(seed, LogisticRegression(max_iter=1000)),
    ),
    "grapefill fast": _of_grapefill("fast", transductive=True),
    "grapefill default": _of_grapefill("default", transductive=True),
    "grapefill default, new rows": _of_grapefill("default", transductive=False),
    "grapefill paper": _of_grapefill("paper", transductive=True),
    "grapefill paper, batches": _of_grapefill("paper", transductive=True, **ALL_STEPS),
    "grapefill paper, batches, then linear": _then_linear(
        lambda seed: grapefill(get_preset("paper", labels=True), seed, **ALL_STEPS)
    ),
}
USUAL = [
    *TREES,
    "chained extra trees, random forest",
    "grapefill default, then linear",
    "grapefill fast",
    "grapefill default",
    "grapefill default, new rows",
]
METRICS = ("mae", "log_loss", "accuracy", "ece")
DATASETS = (*UCI, *CLASSES, *NUMBERS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--datasets", nargs="+", default=list(UCI), choices=DATASETS)
    parser.add_argument("--methods", nargs="+", default=USUAL, choices=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[100, 101, 102, 103, 104])
    parser.add_argument("--missing", type=float, default=0.3)
    parser.add_argument("--time-limit", type=float, help="seconds for one measurement")
    parser.add_argument("--table-only", action="store_true", help="print what was measured before")


def run(arguments: argparse.Namespace) -> None:
    """Measure what has not been measured yet, then print the tables."""
    todo = [
        {"dataset": dataset, "method": method, "seed": seed, "missing": arguments.missing}
        for dataset in arguments.datasets
        for seed in arguments.seeds
        for method in arguments.methods
        if allows(dataset, method)
    ]
    print(
        f"{arguments.missing:.0%} of the features missing, MCAR; labels of 70% of the rows known; "
        f"seeds {', '.join(map(str, arguments.seeds))}; {os.cpu_count()} cores, "
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
    lines = [
        line
        for line in RESULTS.good_lines()
        if line["missing"] == arguments.missing and line["seed"] in arguments.seeds
    ]
    numbers = [name for name in arguments.datasets if name not in CLASSES]
    classes = [name for name in arguments.datasets if name in CLASSES]
    for datasets, metrics in ((numbers, ("mae",)), (classes, ("log_loss", "accuracy", "ece"))):
        if datasets:
            print(table(lines, datasets, arguments.methods, metrics))
            print(ratios(lines, datasets, arguments.methods, metrics[0]))


def _maker(dataset: str, method: str) -> Callable[[int], Any] | None:
    chosen = METHODS[method]
    return chosen.classifier if dataset in CLASSES else chosen.regressor


def allows(dataset: str, method: str) -> bool:
    """Whether a method can be tried on a table."""
    return _maker(dataset, method) is not None


def shown(result: dict[str, Any]) -> str:
    """Return a result in words."""
    scores = [
        f"{name} {result[name]:.4g}" for name in ("mae", "log_loss", "accuracy") if name in result
    ]
    return f"{', '.join(scores)} in {result['fit_seconds']:.1f} s"


def measure(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Predict the labels of one table by one method."""
    complete, y = load_labelled(fields["dataset"], data_dir)
    seed = fields["seed"]
    X = np.where(draw_mask(complete, fields["missing"], seed=seed), np.nan, complete)
    classes = fields["dataset"] in CLASSES
    train, test = train_test_split(
        np.arange(y.size), test_size=0.3, random_state=seed, stratify=y if classes else None
    )
    make = _maker(fields["dataset"], fields["method"])
    assert make is not None
    model = make(seed)
    known = y.astype(float)
    known[test] = np.nan
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if not METHODS[fields["method"]].transductive:
            model.fit(X[train], y[train])
        else:
            model.fit(X, known)
        fitted = time.perf_counter()
        if hasattr(model, "predict_fitted_rows"):
            predicted = model.predict_fitted_rows()[test]
        else:
            predicted = model.predict_proba(X[test]) if classes else model.predict(X[test])
    predicted_by = time.perf_counter()
    scores = (
        _class_scores(y, test, model.classes_, predicted)
        if classes
        else {"mae": float(np.abs(predicted - y[test]).mean())}
    )
    return scores | {
        "fit_seconds": round(fitted - start, 2),
        "predict_seconds": round(predicted_by - fitted, 4),
        "peak_mb": round(peak_megabytes()),
        "implementation": getattr(model, "implementation", None),
        "settings": settings_of(model),
    }


def _class_scores(
    y: np.ndarray, test: np.ndarray, classes: np.ndarray, chances: np.ndarray
) -> dict[str, float]:
    every = np.unique(y)
    aligned = np.zeros((test.size, every.size))
    aligned[:, np.searchsorted(every, classes.astype(every.dtype))] = chances
    guess = every[aligned.argmax(axis=1)]
    return {
        "log_loss": float(log_loss(y[test], aligned, labels=every)),
        "accuracy": float(accuracy_score(y[test], guess)),
        "ece": calibration_error(aligned.max(axis=1), guess == y[test]),
    }


def calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """Return the expected calibration error: how far confidence is from accuracy, in ten bins."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [
        (bins == b).mean() * abs(confidence[bins == b].mean() - right[bins == b].mean())
        for b in np.unique(bins)
    ]
    return float(sum(gaps))


def table(
    lines: list[dict[str, Any]], datasets: list[str], methods: list[str], metrics: tuple[str, ...]
) -> str:
    """Return the scores of every method, mean and standard deviation, with seconds and memory."""
    rows = []
    for dataset in datasets:
        for method in methods:
            mine = _of(lines, dataset, method, metrics[0])
            if not mine:
                continue
            scores = [[line[metric] for line in mine] for metric in metrics]
            rows.append(
                [
                    dataset,
                    method,
                    *(f"{np.mean(values):.4g} ± {np.std(values):.2g}" for values in scores),
                    str(len(mine)),
                    f"{np.mean([line['fit_seconds'] for line in mine]):.1f}",
                    f"{np.mean([line['predict_seconds'] for line in mine]):.3f}",
                    str(max(line["peak_mb"] for line in mine)),
                ]
            )
    header = ["table", "method", *metrics, "splits", "fit s", "predict s", "peak MB"]
    return markdown_table(header, rows)


def ratios(
    lines: list[dict[str, Any]], datasets: list[str], methods: list[str], metric: str
) -> str:
    """Return every method's scores over those of the best tree model of each table."""
    rows = []
    for method in methods:
        each = []
        for dataset in datasets:
            mine = _of(lines, dataset, method, metric)
            trees = [_of(lines, dataset, tree, metric) for tree in TREES]
            best = [np.mean([line[metric] for line in tree]) for tree in trees if tree]
            if mine and best:
                each.append(np.mean([line[metric] for line in mine]) / min(best))
        if len(each) == len(datasets):
            mean = np.exp(np.mean(np.log(each)))
            rows.append([method, *(f"{ratio:.3f}" for ratio in each), f"{mean:.3f}"])
    header = [f"{metric} / best tree model", *datasets, "geometric mean"]
    return markdown_table(header, rows)


def _of(
    lines: list[dict[str, Any]], dataset: str, method: str, metric: str
) -> list[dict[str, Any]]:
    wanted = (dataset, method)
    return [
        line for line in lines if metric in line and (line["dataset"], line["method"]) == wanted
    ]
