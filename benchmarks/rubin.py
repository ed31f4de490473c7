"""Rubin coverage: do pooled intervals from draws hold the true coefficients? Beside R's mice."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.results import ResultFile, markdown_table
from grapefill import GrapeImputer, pool

if TYPE_CHECKING:
    import argparse

RESULTS = ResultFile("rubin", ("model", "mechanism", "method", "first", "repetitions", "rows"))
MODELS = ("linear", "logistic")
MECHANISMS = ("mcar", "mar")
METHODS = ("complete", "grapefill", "mice", "single fill", "mean fill")
TRUTH = np.array([0.0, 0.5, -0.5, 0.3])
TERMS = ("constant", "x1", "x2", "x3")
COVARIANCE = np.array([[1.0, 0.5, 0.3], [0.5, 1.0, 0.4], [0.3, 0.4, 1.0]])
MISSING = 0.3
IMPUTATIONS = 10
CHUNK = 50
# Draws do not depend on how well the network was trained, so a short training will do.
BUDGET = {"max_steps": 10, "rounds": 1, "trees": 4, "trial_trees": 4}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--mechanisms", nargs="+", default=list(MECHANISMS), choices=MECHANISMS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--first", type=int, default=1000, help="seed of the first repetition")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--table-only", action="store_true", help="print what was measured before")


def run(arguments: argparse.Namespace) -> None:
    """Measure what has not been measured yet, then print the table."""
    for start in range(0, 0 if arguments.table_only else arguments.repetitions, CHUNK):
        for model in arguments.models:
            for mechanism in arguments.mechanisms:
                for method in arguments.methods:
                    fields = {
                        "model": model,
                        "mechanism": mechanism,
                        "method": method,
                        "first": arguments.first + start,
                        "repetitions": min(CHUNK, arguments.repetitions - start),
                        "rows": arguments.rows,
                    }
                    if RESULTS.has(**fields) or (method == "mice" and not shutil.which("Rscript")):
                        continue
                    result = measure(fields)
                    RESULTS.add(**fields, **result)
                    shown = " ".join(f"{share:.2f}" for share in result["covered"])
                    print(*fields.values(), "covered", shown, f"{result['seconds']} s", flush=True)
    print(table(arguments.rows, arguments.first))


def simulate(fields: dict[str, Any], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a complete table, and the same with holes."""
    random = np.random.default_rng(seed)
    n = fields["rows"]
    x = random.multivariate_normal(np.zeros(3), COVARIANCE, size=n)
    signal = TRUTH[0] + x @ TRUTH[1:]
    if fields["model"] == "linear":
        y = signal + random.normal(size=n)
    else:
        y = (random.random(n) < 1 / (1 + np.exp(-signal))).astype(float)
    complete = pd.DataFrame(np.column_stack([x, y]), columns=["x1", "x2", "x3", "y"])
    holes = np.zeros(complete.shape, dtype=bool)
    if fields["mechanism"] == "mcar":
        holes[:, [0, 1, 3]] = random.random((n, 3)) < MISSING
    else:
        score = x[:, 2] + y
        score = (score - score.mean()) / score.std()
        chance = 2 * MISSING / (1 + np.exp(-1.5 * score))
        holes[:, [0, 1]] = random.random((n, 2)) < chance[:, None]
    return complete, complete.mask(holes)


def estimate(table: pd.DataFrame, model: str) -> Any:
    """Fit the model to a complete table."""
    import statsmodels.api as sm

    inputs = sm.add_constant(table[["x1", "x2", "x3"]].to_numpy(float))
    y = table["y"].to_numpy(float)
    return sm.OLS(y, inputs).fit() if model == "linear" else sm.Logit(y, inputs).fit(disp=0)


def measure(fields: dict[str, Any]) -> dict[str, Any]:
    """Run some repetitions of one method and sum them up."""
    started = time.perf_counter()
    seeds = range(fields["first"], fields["first"] + fields["repetitions"])
    if fields["method"] == "mice":
        found = _by_mice(fields, seeds)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.array([_one(fields, seed) for seed in seeds])
    values, errors, low, high = np.moveaxis(found, 1, 0)
    inside = (low <= TRUTH) & (high >= TRUTH)
    return {
        "covered": inside.mean(axis=0).round(4).tolist(),
        "bias": (values - TRUTH).mean(axis=0).round(6).tolist(),
        "spread": values.std(axis=0, ddof=1).round(6).tolist(),
        "std_error": errors.mean(axis=0).round(6).tolist(),
        "seconds": round(time.perf_counter() - started, 1),
    }


def _one(fields: dict[str, Any], seed: int) -> np.ndarray:
    """Return estimates, standard errors and ends of 95% intervals, shape (4, terms)."""
    model = fields["model"]
    complete, holed = simulate(fields, seed)
    if fields["method"] in ("complete", "mean fill"):
        filled = complete
        if fields["method"] == "mean fill":
            filled = holed.fillna(holed.mean())
            if model == "logistic":
                filled["y"] = filled["y"].round()
        return _figures(estimate(filled, model))
    if model == "logistic":
        holed["y"] = holed["y"].map({0.0: "no", 1.0: "yes"}).astype("category")
    imputer = GrapeImputer("fast", settings=BUDGET, random_state=seed).fit(holed)

    def fit(table: pd.DataFrame) -> Any:
        if model == "logistic":
            table = table.assign(y=(table["y"] == "yes").astype(float))
        return estimate(table, model)

    if fields["method"] == "single fill":
        return _figures(fit(imputer.transform(holed)))
    draws = imputer.sample_each(holed, IMPUTATIONS, random_state=seed)
    pooled = pool.fit(fit, draws, df_complete=fields["rows"] - TRUTH.size)
    return np.stack([pooled.estimate, pooled.std_error, *pooled.interval(0.95).T])


def _figures(fitted: Any) -> np.ndarray:
    return np.stack([fitted.params, fitted.bse, *np.asarray(fitted.conf_int()).T])


def _by_mice(fields: dict[str, Any], seeds: range) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            simulate(fields, seed)[1].to_csv(Path(folder) / f"{seed}.csv", index=False)
        script = Path(__file__).with_suffix(".R")
        command = ["Rscript", str(script), folder, fields["model"], str(IMPUTATIONS)]
        subprocess.run(command, check=True)
        found = pd.read_csv(Path(folder) / "pooled.txt")
    figures = found[["estimate", "se", "low", "high"]].to_numpy()
    return figures.reshape(len(seeds), TRUTH.size, 4).transpose(0, 2, 1)


def table(rows: int, first: int) -> str:
    """Return coverage of the four coefficients, and bias in standard errors, of every method.

    Complete tables have a bias, too: that of the model, and chance. What holes add to it is known
    more precisely, from the same tables.
    """
    listed = []
    for model, mechanism, method in product(MODELS, MECHANISMS, METHODS):
        mine = _lines(model, mechanism, method, rows=rows, first=first)
        if not mine:
            continue
        error, bias = _mean(mine, "std_error"), _mean(mine, "bias")
        tables = {line["first"] for line in mine}
        complete = _lines(model, mechanism, "complete", rows=rows, first=first)
        complete = [line for line in complete if line["first"] in tables]
        added = bias - _mean(complete, "bias") if len(complete) == len(mine) else None
        listed.append(
            [
                model,
                mechanism,
                method,
                str(sum(line["repetitions"] for line in mine)),
                " ".join(f"{share:.3f}" for share in _mean(mine, "covered")),
                " ".join(f"{value:+.2f}" for value in bias / error),
                "" if added is None else " ".join(f"{value:+.2f}" for value in added / error),
                " ".join(f"{value:.2f}" for value in _mean(mine, "spread") / error),
            ]
        )
    header = ["model", "holes", "method", "repetitions", "95% intervals hold", "bias / error"]
    return markdown_table([*header, "added by holes", "spread / error"], listed)


def _lines(
    model: str, mechanism: str, method: str, *, rows: int, first: int
) -> list[dict[str, Any]]:
    wanted = (model, mechanism, method, rows)
    return [
        line
        for line in RESULTS.lines()
        if (line["model"], line["mechanism"], line["method"], line["rows"]) == wanted
        and line["first"] >= first
    ]


def _mean(lines: list[dict[str, Any]], name: str) -> np.ndarray:
    weight = [line["repetitions"] for line in lines]
    return np.average([line[name] for line in lines], axis=0, weights=weight)
