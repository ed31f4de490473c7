"""Pooling gives what R's mice gives; data/pool.R made the figures."""

import json
from pathlib import Path

import numpy as np
import pytest

from grapefill import pool

CASES = json.loads((Path(__file__).parent / "data" / "pool.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_as_in_mice(name: str) -> None:
    case = CASES[name]
    result = pool(case["estimates"], case["variances"], df_complete=case["df_complete"])
    figures = ("estimate", "within", "between", "total", "df", "increase", "missing_share")
    for figure in (*figures, "missing_information", "p_value"):
        np.testing.assert_allclose(getattr(result, figure), case[figure], rtol=1e-6, err_msg=figure)
    low, high = result.interval(0.95).T
    np.testing.assert_allclose(low, case["low"], rtol=1e-6)
    np.testing.assert_allclose(high, case["high"], rtol=1e-6)
