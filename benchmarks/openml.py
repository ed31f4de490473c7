"""UCI tables from OpenML, for machines without the data folder. Tests never need this.

What comes from there is checked for its number of rows and columns; that a file in the data folder
is the one that results were measured on is checked by its SHA-256, see `check`.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

# Number on OpenML, columns that are no features, rows, features. The label is OpenML's own target.
# power is not among them.
OPENML: dict[str, tuple[int, tuple[str, ...], int, int]] = {
    "concrete": (44959, (), 1030, 8),
    "energy": (44960, ("cooling_load",), 768, 8),
    "housing": (531, (), 506, 13),
    "kin8nm": (189, (), 8192, 8),
    "naval": (44969, ("gt_turbine_decay_state_coefficient",), 11934, 16),
    "protein": (44963, (), 45730, 9),
    "wine": (44972, (), 1599, 11),
    "yacht": (42370, (), 308, 6),
}
SHA256 = {
    "uci/concrete.csv.gz": "431abe843d93221004e2d4cba7e8f22e9e7c4dbcf1fc94c953a044a5ff8a0772",
    "uci/energy.csv.gz": "52de8264ce930f509bc554c44b27f43532eedaefb93d92b09140b6df85382466",
    "uci/housing.csv.gz": "8aff0631eb05dee55d7d409278f13834675c5ec7df932c7f6c88af4b0a9741b0",
    "uci/kin8nm.csv.gz": "2ebec9425b21781779e3c7286fa27d5b279fb477df3c2ce526ef359532a2cbaa",
    "uci/naval.csv.gz": "5f295c9352f8d8f3c2bc1c709b3f0a06f8eadc270b88b4018c37bbef81ee70a4",
    "uci/power.csv.gz": "a490667860643e2e96e09e8a77e6d7ab8d4958cba0479d5985b5ebb7c60c4354",
    "uci/protein.csv.gz": "4781a5e47a06ad9e86ccef870ebccd4b9b952dd9836c794e9b9b590ab5264ba3",
    "uci/wine.csv.gz": "d671f2a2809bb35c2fbec654581922235ef5fd70f8a059f7fbfd82e32be9bfc0",
    "uci/yacht.csv.gz": "b76d90e2c1e60a6cdc9d9b4ab9abd6d22720af3fd9ff92dd8d92ae49398d2a94",
    "ratings/flixster.npz": "c8fd19eadf31452f0cc3ef31f499b9f0d4ef774a78cb1366cff3d1574f87ac83",
    "ratings/douban.npz": "e3fdc66a2d4c4830c1abe8fc13c479d76e8366402ece4e84e2b1192c0551ece7",
    "ratings/yahoo_music.npz": "6943abdcc943ae675c796ed501f034033023ffc73c4414aa21a1a58af05ee809",
}


def fetch_uci(name: str) -> np.ndarray:
    """Return a table from OpenML, its label last."""
    from sklearn.datasets import fetch_openml

    number, left_out, rows, features = OPENML[name]
    bunch = fetch_openml(data_id=number, as_frame=True, parser="auto")
    table = bunch.data.drop(columns=[each for each in left_out if each in bunch.data])
    numbers = np.column_stack([table.to_numpy(float), bunch.target.to_numpy(float)])
    if numbers.shape != (rows, features + 1):
        raise SystemExit(
            f"OpenML's data set {number} has {numbers.shape[0]} rows and {numbers.shape[1] - 1} "
            f"features, {name} should have {rows} and {features}. Use --data-dir instead."
        )
    return numbers


def check(folder: Path) -> dict[str, bool | None]:
    """Return for every file of the data folder whether it is as known; None if it is absent."""
    found: dict[str, bool | None] = {}
    for name, expected in SHA256.items():
        path = folder / name
        found[name] = None
        if path.exists():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest() == expected
    return found
