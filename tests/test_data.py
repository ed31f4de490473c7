"""Tables from the world outside, read from the folder named by GRAPEFILL_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeImputer

FOLDER = os.environ.get("GRAPEFILL_DATA")

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not FOLDER, reason="GRAPEFILL_DATA does not name the folder of tables"),
]


def yacht():
    """Return the features of the table, scaled to [0, 1]; the last column is the label."""
    table = pd.read_csv(Path(FOLDER) / "uci" / "yacht.csv.gz").to_numpy(float)[:, :-1]
    low, high = table.min(axis=0), table.max(axis=0)
    return (table - low) / (high - low)


@pytest.mark.slow
def test_the_paper_preset_is_better_than_the_mean():
    truth = yacht()
    holes = np.random.default_rng(1).random(truth.shape) < 0.3
    table = np.where(holes, np.nan, truth)
    imputer = GrapeImputer("paper", settings={"epochs": 2_000}, random_state=1)
    filled = imputer.fit_transform(table)
    np.testing.assert_array_equal(filled[~holes], truth[~holes])
    error = np.abs(filled - truth)[holes].mean()
    by_mean = np.abs(np.nanmean(table, axis=0) - truth)[holes].mean()
    assert error < by_mean
