"""Labels that count more than others: sample_weight and class_weight."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import recall_score

from grapefill import GrapeClassifier, GrapeRegressor

QUICK = {
    **{"layers": 1, "width": 8, "edge_width": 8, "head_width": 8, "max_steps": 8},
    **{"rounds": 1, "trees": 4, "early_trees": 2, "trial_trees": 4},
}
BOTH = pytest.mark.parametrize("estimator", [GrapeRegressor, GrapeClassifier])
KNOWN = np.arange(60) % 6 > 0


def quick(estimator, *, settings=None, **parameters):
    settings = QUICK | (settings or {})
    return estimator("fast", settings=settings, random_state=0, **parameters)


def table(estimator, rows=60):
    """Return a table with holes, and numbers or classes that depend on it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3))
    y = X[:, 0] + X[:, 1]
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, y if estimator is GrapeRegressor else np.digitize(y, [-0.5, 0.5])


def outcome(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


@BOTH
def test_no_weight_is_no_label(estimator):
    X, y = table(estimator)
    weighted = quick(estimator).fit(X, y, sample_weight=KNOWN.astype(int))
    missing = quick(estimator).fit(X, np.where(KNOWN, y, np.nan))
    np.testing.assert_array_equal(outcome(weighted, X), outcome(missing, X))


@BOTH
@pytest.mark.parametrize("factor", [2.0**-40, 2.0**1000])
def test_only_proportions_count(estimator, factor):
    X, y = table(estimator)
    weights = 1.0 + np.arange(60) % 3
    plain = outcome(quick(estimator).fit(X, y), X)
    given = outcome(quick(estimator).fit(X, y, sample_weight=weights), X)
    assert np.abs(given - plain).max() > 1e-3
    scaled = quick(estimator).fit(X, y, sample_weight=factor * weights)
    np.testing.assert_array_equal(outcome(scaled, X), given)
    same = quick(estimator).fit(X, y, sample_weight=np.full(60, factor))
    np.testing.assert_array_equal(outcome(same, X), plain)


# By the network alone, by trees, by O_node.
@pytest.mark.parametrize(
    "settings",
    [
        {"rounds": 0, "max_steps": 80, "learning_rate": 0.02},
        {"max_steps": 4, "trees": 16},
        {"rounds": 0, "max_steps": 80, "learning_rate": 0.02, "labels": "node"},
    ],
    ids=["network", "trees", "node"],
)
@BOTH
def test_a_heavy_weight_pulls(estimator, settings):
    """Rows come in groups whose labels contradict each other."""
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 20, axis=0)
    y = np.tile([0, 1], 40)
    means = []
    for heavy in (0, 1):
        weights = np.where(y == heavy, 30.0, 1.0)
        model = quick(estimator, settings=settings).fit(X, y, sample_weight=weights)
        found = outcome(model, X)
        means.append(found[:, 1].mean() if found.ndim > 1 else found.mean())
    assert means[0] < 0.25
    assert means[1] > 0.75


def overlapping(rows=300):
    rng = np.random.default_rng(0)
    rare = rng.random(rows) < 0.12
    return rng.normal(size=(rows, 2)) + 1.2 * rare[:, None], np.where(rare, "rare", "usual")


def test_balanced_classes_raise_the_recall_of_a_rare_one():
    X, y = overlapping()
    settings = {"max_steps": 60, "learning_rate": 0.02, "rounds": 0}
    recall = [
        recall_score(
            y,
            quick(GrapeClassifier, settings=settings, class_weight=how).fit(X, y).predict(X),
            pos_label="rare",
        )
        for how in (None, "balanced")
    ]
    assert recall[1] > recall[0] + 0.25


def test_class_weights_are_sample_weights():
    X, y = overlapping(60)
    by_class = quick(GrapeClassifier, class_weight={"rare": 3, "usual": 1}).fit(X, y)
    by_row = quick(GrapeClassifier).fit(X, y, sample_weight=np.where(y == "rare", 3.0, 1.0))
    np.testing.assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))
    # A class that is not named counts 1, and both kinds of weights are multiplied.
    undone = quick(GrapeClassifier, class_weight={"rare": 4.0})
    undone.fit(X, y, sample_weight=np.where(y == "rare", 0.25, 1.0))
    plain = quick(GrapeClassifier).fit(X, y)
    np.testing.assert_array_equal(undone.predict_proba(X), plain.predict_proba(X))


def test_balance_is_that_of_known_labels():
    X, y = overlapping(60)
    usual = np.flatnonzero(y == "usual")[: (y == "rare").sum()]
    known = (y == "rare") | np.isin(np.arange(60), usual)
    some = np.where(known, y, None)
    balanced = quick(GrapeClassifier, class_weight="balanced").fit(X, some)
    plain = quick(GrapeClassifier).fit(X, some)
    np.testing.assert_array_equal(balanced.predict_proba(X), plain.predict_proba(X))
