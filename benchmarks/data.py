"""The nine UCI tables of the paper, and masks for them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

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


def data_folder(folder: str | None = None) -> Path:
    """Return the folder that holds ``uci/*.csv.gz``: the argument or ``GRAPEFILL_DATA``."""
    chosen = folder or os.environ.get("GRAPEFILL_DATA")
    if not chosen:
        raise SystemExit("Say where the tables are: --data-dir FOLDER or GRAPEFILL_DATA=FOLDER.")
    path = Path(chosen)
    if not (path / "uci").is_dir():
        raise SystemExit(f"{path} has no folder uci/ with the tables in it.")
    return path


def load_features(name: str, folder: str | None = None) -> np.ndarray:
    """Return the features of a table, scaled to [0, 1]; the last column, the label, is left out."""
    table = pd.read_csv(data_folder(folder) / "uci" / f"{name}.csv.gz").to_numpy(float)[:, :-1]
    low, high = table.min(axis=0), table.max(axis=0)
    return (table - low) / np.where(high > low, high - low, 1.0)


def mcar(shape: tuple[int, ...], rate: float, seed: int) -> np.ndarray:
    """Return which cells are missing, completely at random."""
    return np.random.default_rng(seed).random(shape) < rate
