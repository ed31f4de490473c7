"""The tables that are filled: the nine UCI sets of the paper, mixed ones, wide ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from benchmarks.openml import OPENML, fetch_uci

if TYPE_CHECKING:
    from collections.abc import Callable

UCI = (
    "concrete",
    "energy",
    "housing",
    "kin8nm",
    "naval",
    "power",
    "protein",
    "wine",
    "yacht",
)
DIAMONDS = 10_000


def data_folder(folder: str | None = None) -> Path:
    """Return the folder that holds ``uci/*.csv.gz``: the argument or ``GRAPEFILL_DATA``."""
    chosen = folder or os.environ.get("GRAPEFILL_DATA")
    if not chosen:
        raise SystemExit("Say where the tables are: --data-dir FOLDER or GRAPEFILL_DATA=FOLDER.")
    path = Path(chosen)
    if not (path / "uci").is_dir():
        raise SystemExit(f"{path} has no folder uci/ with the tables in it.")
    return path


def load_uci(name: str, folder: str | None = None) -> np.ndarray:
    """Return one of the nine tables, its label last: from the data folder, or else from OpenML."""
    if folder or os.environ.get("GRAPEFILL_DATA") or name not in OPENML:
        return pd.read_csv(data_folder(folder) / "uci" / f"{name}.csv.gz").to_numpy(float)
    return fetch_uci(name)


def load_features(name: str, folder: str | None = None) -> np.ndarray:
    """Return the features of a table, scaled to [0, 1]; the last column, the label, is left out."""
    return _unit(load_uci(name, folder)[:, :-1])


def load_labelled(name: str, folder: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of a table, in their own units."""
    loaders = CLASSES | NUMBERS
    return loaders[name](folder) if name in loaders else _labelled(name, folder)


def load_table(name: str, folder: str | None = None) -> pd.DataFrame:
    """Return a complete table: numbers scaled to [0, 1], and categories."""
    if name in OTHERS:
        table = OTHERS[name]()
        numbers = table.select_dtypes("number")
        table[numbers.columns] = _unit(numbers.to_numpy(float))
        return table
    features = load_features(name, folder)
    return pd.DataFrame(features, columns=[f"x{j}" for j in range(features.shape[1])])


def as_numbers(table: pd.DataFrame) -> np.ndarray:
    """Return a table as numbers in [0, 1]: categories become evenly spaced codes."""
    columns = []
    for name in table:
        column = table[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes = column.cat.codes.to_numpy(float)
            highest = max(1, len(column.cat.categories) - 1)
            columns.append(np.where(codes < 0, np.nan, codes / highest))
        else:
            columns.append(column.to_numpy(float))
    return np.column_stack(columns)


def from_numbers(numbers: np.ndarray, like: pd.DataFrame) -> pd.DataFrame:
    """Undo `as_numbers`: what lies between two categories becomes the nearer one."""
    columns = {}
    for j, name in enumerate(like):
        dtype = like[name].dtype
        if isinstance(dtype, pd.CategoricalDtype):
            highest = len(dtype.categories) - 1
            codes = np.clip(np.rint(numbers[:, j] * highest), 0, highest).astype(int)
            columns[name] = pd.Categorical.from_codes(codes, dtype=dtype)
        else:
            columns[name] = numbers[:, j]
    return pd.DataFrame(columns, index=like.index)


def _unit(numbers: np.ndarray) -> np.ndarray:
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    return (numbers - low) / np.where(high > low, high - low, 1.0)


def _diamonds() -> pd.DataFrame:
    from plotnine.data import diamonds

    return diamonds.sample(DIAMONDS, random_state=0).reset_index(drop=True)


def _penguins() -> pd.DataFrame:
    from palmerpenguins import load_penguins

    table = load_penguins().dropna().reset_index(drop=True)
    words = table.select_dtypes(exclude="number").columns
    return table.astype(dict.fromkeys([*words, "year"], "category"))


def _wine_classes() -> pd.DataFrame:
    from sklearn.datasets import load_wine

    table = load_wine(as_frame=True).frame
    return table.astype({"target": "category"})


def _diabetes() -> pd.DataFrame:
    from sklearn.datasets import load_diabetes

    return load_diabetes(as_frame=True).data.astype(float)


def _wide(rows: int, columns: int) -> pd.DataFrame:
    """Return a table of ten hidden factors and noise, some columns bent."""
    random = np.random.default_rng(columns)
    factors = random.normal(size=(rows, 10)) @ random.normal(size=(10, columns)) / np.sqrt(10)
    bent = random.random(columns) < 0.3
    factors[:, bent] = np.tanh(factors[:, bent])
    numbers = factors + 0.3 * random.normal(size=(rows, columns))
    return pd.DataFrame(numbers, columns=[f"x{j}" for j in range(columns)])


MIXED = ("diamonds", "penguins", "wine-classes")
WIDE = ("wide-500x200", "wide-200x2000")
OTHERS: dict[str, Callable[[], pd.DataFrame]] = {
    "diabetes": _diabetes,
    "diamonds": _diamonds,
    "penguins": _penguins,
    "wine-classes": _wine_classes,
    "wide-500x200": lambda: _wide(500, 200),
    "wide-200x2000": lambda: _wide(200, 2000),
}


def _labelled(name: str, folder: str | None) -> tuple[np.ndarray, np.ndarray]:
    table = load_uci(name, folder)
    return table[:, :-1], table[:, -1]


def _of_sklearn(loader: str) -> Callable[[str | None], tuple[np.ndarray, np.ndarray]]:
    def load(_: str | None) -> tuple[np.ndarray, np.ndarray]:
        from sklearn import datasets

        return getattr(datasets, loader)(return_X_y=True)

    return load


# Tables whose labels are classes.
CLASSES: dict[str, Callable[[str | None], tuple[np.ndarray, np.ndarray]]] = {
    "breast-cancer": _of_sklearn("load_breast_cancer"),
    "wine-cultivars": _of_sklearn("load_wine"),
    "digits": _of_sklearn("load_digits"),
    "iris": _of_sklearn("load_iris"),
    "wine-quality": lambda folder: _labelled("wine", folder),
}
# Further tables whose labels are numbers, which come with scikit-learn.
NUMBERS = {"diabetes": _of_sklearn("load_diabetes")}
