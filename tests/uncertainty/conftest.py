"""A small mixed table with holes, and an imputer that was fitted to it quickly."""

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeImputer

QUICK = {"max_steps": 15, "rounds": 1, "trees": 6, "trial_trees": 6}


def mixed_table(rows=120, seed=0):
    random = np.random.default_rng(seed)
    z = random.normal(size=rows)
    start = random.integers(0, 100, rows)
    table = pd.DataFrame(
        {
            "a": z + 0.3 * random.normal(size=rows),
            "b": (2 * z + random.normal(size=rows)).round(1),
            "count": random.poisson(3, rows).astype(float),
            "word": np.where(z + 0.5 * random.normal(size=rows) > 0, "up", "down"),
            "start": start.astype(float),
            "end": start + random.integers(0, 10, rows).astype(float),
            "size": pd.array(random.integers(1, 5, rows), dtype="Int64"),
        }
    )
    for name in table:
        table.loc[random.random(rows) < 0.25, name] = None
    return table


@pytest.fixture(scope="session")
def holed():
    return mixed_table()


@pytest.fixture(scope="session")
def imputer(holed):
    return GrapeImputer("fast", settings=QUICK, random_state=0).fit(holed)


@pytest.fixture
def quick():
    return dict(QUICK)
