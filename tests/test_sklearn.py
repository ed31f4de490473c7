"""scikit-learn's own checks, and its tools around the imputer."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from grapefill import GrapeImputer

QUICK = {"max_steps": 5, "batch_rows": None, "width": 8, "edge_width": 8, "head_width": 8}


@parametrize_with_checks([GrapeImputer(settings=QUICK)])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
