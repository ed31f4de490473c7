"""What GrapeRegressor and GrapeClassifier predict, from which containers and labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.exceptions import DataConversionWarning

import grapefill.training.fill
from grapefill import GrapeClassifier, GrapeRegressor

QUICK = {
    **{"layers": 1, "width": 8, "edge_width": 8, "head_width": 8, "max_steps": 8},
    **{"rounds": 1, "trees": 4, "early_trees": 2, "trial_trees": 4},
}
BOTH = pytest.mark.parametrize("estimator", [GrapeRegressor, GrapeClassifier])


def quick(estimator=GrapeRegressor, *, preset="fast", settings=None, **parameters):
    parameters.setdefault("random_state", 0)
    return estimator(preset, settings=QUICK | (settings or {}), **parameters)


def numbers(rows=60, seed=0):
    """Return three columns, the first two of which decide the labels, and the labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)).round(2)
    y = X[:, 0] + X[:, 1]
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


def labels_for(estimator, y):
    """Return numbers as they are, or three classes of them."""
    return y if estimator is GrapeRegressor else np.digitize(y, [-0.5, 0.5])


def mixed(rows=60, seed=0):
    """Return columns of all kinds that go along with the label, and the label."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=rows)
    frame = pd.DataFrame(
        {
            "length": 40 + 5 * size,
            "age": pd.array(np.rint(30 + 8 * size), dtype="Int64"),
            "species": pd.Categorical.from_codes((size > 0).astype(int), ["small", "large"]),
            "island": np.where(size > 1, "north", "south"),
            "tagged": pd.array(size > 0.5, dtype="boolean"),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.rint(100 * size), unit="D"),
        }
    )
    holes = pd.DataFrame(rng.random(frame.shape) < 0.2, columns=frame.columns)
    return frame.mask(holes), size


NUMERIC = {
    "lists": lambda X: [[None if np.isnan(cell) else cell for cell in row] for row in X],
    "pandas": lambda X: pd.DataFrame(X, columns=list("abc")),
    "polars": lambda X: pl.DataFrame(X, schema=list("abc")).fill_nan(None),
    "pyarrow": lambda X: pa.table({name: X[:, j] for j, name in enumerate("abc")}),
}
MIXED = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


class TestTables:
    @BOTH
    @pytest.mark.parametrize("container", NUMERIC)
    def test_every_container_gives_the_same(self, estimator, container):
        X, y = numbers()
        convert = NUMERIC[container]
        labels = labels_for(estimator, y)
        expected = quick(estimator).fit(X, labels).predict(X)
        model = quick(estimator).fit(convert(X), labels)
        assert isinstance(model.predict(convert(X)), np.ndarray)
        np.testing.assert_array_equal(model.predict(convert(X)), expected)

    @BOTH
    @pytest.mark.parametrize("container", MIXED)
    def test_columns_of_all_kinds_are_learned_from(self, estimator, container):
        (frame, y), (new, truth) = mixed(150), mixed(150, seed=1)
        convert = MIXED[container]
        model = quick(estimator).fit(convert(frame), labels_for(estimator, y))
        kinds = [column.kind.value for column in model.schema_.columns]
        assert kinds == ["continuous", "ordinal", *["categorical"] * 2, "boolean", "datetime"]
        assert model.score(convert(new), labels_for(estimator, truth)) > 0.7

    @BOTH
    def test_nothing_of_the_caller_is_changed(self, estimator):
        frame, y = mixed()
        labels = pd.Series(labels_for(estimator, y)).where(np.arange(60) > 5)
        before, labels_before = frame.copy(deep=True), labels.copy(deep=True)
        model = quick(estimator).fit(frame, labels)
        model.predict(frame)
        model.impute(frame)
        model.column_importance(frame, labels_for(estimator, y))
        pd.testing.assert_frame_equal(frame, before)
        pd.testing.assert_series_equal(labels, labels_before)

    def test_a_mark_for_missing_cells(self):
        X, y = numbers()
        marked = np.where(np.isnan(X), -99.0, X)
        model = quick(missing_values=-99).fit(marked, y)
        np.testing.assert_array_equal(model.predict(marked), quick().fit(X, y).predict(X))

    def test_kinds_are_the_caller_s(self):
        X, y = numbers()
        codes = np.column_stack([np.digitize(y, [-1, 0, 1]), X[:, 1]])
        model = quick(kinds={0: "categorical", 1: "passthrough"}).fit(codes, y)
        assert model.model_.features.n_categories == (4, 0)
        codes[:, 1] = 1e300
        assert model.score(codes, y) > 0.6


KNOWN = np.arange(60) % 6 > 0


def chunked(values):
    whole = pa.array(values, mask=~KNOWN)
    return pa.chunked_array([whole[:7], whole[7:]])


# How labels may come; tests/table/test_labels.py has more.
CONTAINERS = {
    "list": lambda y: [v if known else None for v, known in zip(y.tolist(), KNOWN, strict=True)],
    "objects": lambda y: np.where(KNOWN, y.astype(object), pd.NA),
    "pandas": lambda y: pd.Series(y, index=np.arange(60)[::-1], name="target").where(KNOWN),
    "polars": lambda y: pl.Series([v if k else None for v, k in zip(y, KNOWN, strict=True)]),
    "pyarrow": chunked,
}


class TestLabels:
    @BOTH
    @pytest.mark.parametrize("container", CONTAINERS)
    def test_every_container_gives_the_same(self, estimator, container):
        X, y = numbers()
        labels = labels_for(estimator, y)
        expected = quick(estimator).fit(X, np.where(KNOWN, labels, np.nan)).predict(X)
        model = quick(estimator).fit(X, CONTAINERS[container](labels))
        np.testing.assert_array_equal(model.predict(X), expected)

    @pytest.mark.parametrize(
        ("convert", "classes"),
        [
            (lambda y: y, np.array([0, 1, 2])),
            (lambda y: (5.0 * y).tolist(), np.array([0.0, 5.0, 10.0])),
            (lambda y: y > 0, np.array([False, True])),
            (lambda y: pd.Series(y > 0, dtype="boolean").where(KNOWN), np.array([False, True])),
            (lambda y: pd.Series(y + 2**60, dtype="Int64").where(KNOWN), 2**60 + np.arange(3)),
            (lambda y: np.array(["mid", "low", "top"])[y], np.array(["low", "mid", "top"], object)),
            (
                lambda y: pd.Series(pd.Categorical.from_codes(y, ["c", "b", "a", "unused"])),
                np.array(["a", "b", "c"], object),
            ),
            (
                lambda y: pd.Series(np.array(["c", "b", "a"])[y], dtype="string").where(KNOWN),
                np.array(["a", "b", "c"], object),
            ),
        ],
        ids=["int", "float", "bool", "boolean", "Int64", "text", "category", "string"],
    )
    def test_classes_are_the_caller_s(self, convert, classes):
        y = labels_for(GrapeClassifier, numbers()[1])
        X = np.column_stack([y, np.arange(60) % 7]).astype(float)
        model = quick(GrapeClassifier).fit(X, convert(y))
        np.testing.assert_array_equal(model.classes_, classes, strict=True)
        found = model.predict(X)
        assert found.dtype == classes.dtype
        assert set(found) <= set(classes)
        truth = pd.Series(convert(y), dtype=object)
        assert (found == truth)[truth.notna()].mean() > 0.8

    def test_several_numbers_at_once(self):
        X, y = numbers(150)
        both = np.column_stack([y, 100 - 10 * y])
        both[::3, 0], both[1::4, 1] = np.nan, np.nan
        model = quick().fit(X, pd.DataFrame(both, columns=["first", "second"]))
        found = model.predict(X)
        assert found.shape == (150, 2)
        for j, truth in enumerate([y, 100 - 10 * y]):
            assert np.corrcoef(found[:, j], truth)[0, 1] > 0.6
            assert abs(np.median(found[:, j]) - np.median(truth)) < truth.std()
        assert model.score(X, np.column_stack([y, 100 - 10 * y])) > 0.4

    @pytest.mark.parametrize("column", [lambda y: y[:, None], lambda y: pd.DataFrame({"y": y})])
    def test_one_column_of_numbers_stays_a_column(self, column):
        X, y = numbers()
        found = quick().fit(X, column(y)).predict(X)
        assert found.shape == (60, 1)
        np.testing.assert_array_equal(found[:, 0], quick().fit(X, y).predict(X))

    @pytest.mark.parametrize("column", [lambda y: y[:, None], lambda y: pl.DataFrame({"y": y})])
    def test_one_column_of_classes_is_flattened_with_a_warning(self, column):
        X, y = numbers()
        y = labels_for(GrapeClassifier, y)
        model = quick(GrapeClassifier)
        with pytest.warns(DataConversionWarning, match="column-vector y was passed") as caught:
            model.fit(X, column(y))
        assert caught[0].filename == __file__
        found = model.predict(X)
        np.testing.assert_array_equal(found, quick(GrapeClassifier).fit(X, y).predict(X))

    @pytest.mark.parametrize("flags", [np.arange(60) % 2 > 0, np.arange(60) % 2])
    def test_a_regressor_takes_booleans_as_numbers(self, flags):
        X = np.column_stack([flags, np.arange(60)]).astype(float)
        found = quick().fit(X, flags).predict(X)
        assert found.dtype == np.float64
        assert np.abs(found - flags).mean() < 0.2

    def test_large_numbers_keep_their_differences(self):
        X, y = numbers()
        whole = np.rint(100 * y).astype(np.int64)
        near, far = (quick().fit(X, labels).predict(X) for labels in (whole, whole + 2**60))
        assert np.abs(far - 2.0**60 - near).max() <= 256

    def test_a_class_with_one_row(self):
        X, y = numbers()
        classes = np.where(np.arange(60) == 7, "once", np.where(y > 0, "high", "low"))
        model = quick(GrapeClassifier).fit(X, classes)
        assert model.classes_.tolist() == ["high", "low", "once"]
        assert model.predict_proba(X).shape == (60, 3)


class TestRowsWithoutLabels:
    @BOTH
    def test_they_take_part(self, estimator):
        X, y = numbers()
        y = labels_for(estimator, y).astype(float)
        some = np.where(KNOWN, y, np.nan)
        with_them = quick(estimator, settings={"rounds": 0}).fit(X, some)
        alone = quick(estimator, settings={"rounds": 0}).fit(X[KNOWN], y[KNOWN])
        states = with_them.model_.states.final, alone.model_.states.final
        assert (states[0] - states[1]).abs().max() > 1e-3
        assert with_them.history_.loss[0] != alone.history_.loss[0]

    def test_they_are_predicted_as_they_are_in_the_graph_of_fit(self):
        """The paper's protocol: rows to predict are nodes of the graph, their labels no edges."""
        X, y = numbers()
        some = np.where(KNOWN, y, np.nan)
        model = quick(settings={"rounds": 0}).fit(X, some)
        inner = model.model_
        cells = inner.cells(np.column_stack([X, some]))
        assert cells.observed[:, 3].tolist() == KNOWN.tolist()
        with torch.inference_mode():
            in_graph = model.network_.predict_cells(cells).value[:, 3].double().numpy()
        in_graph = in_graph * inner.scaling.scale[3] + inner.scaling.center[3]
        found = model.predict(X)
        np.testing.assert_allclose(found[~KNOWN], in_graph[~KNOWN], atol=1e-5)
        # Those of the others have their label before them in the graph, and not in predict.
        assert np.abs(found - in_graph)[KNOWN].max() > 1e-3

    @BOTH
    def test_they_are_predicted_well(self, estimator):
        X, y = numbers(200)
        y = labels_for(estimator, y)
        hidden = np.arange(200) % 4 == 0
        model = quick(estimator, settings={"max_steps": 60, "trees": 10, "trial_trees": 8})
        model.fit(X, np.where(hidden, np.nan, y))
        assert model.score(X[hidden], y[hidden]) > 0.5


@pytest.fixture(scope="module", params=[GrapeRegressor, GrapeClassifier])
def fitted(request):
    frame, y = mixed(120)
    settings = {"layers": 3, "rounds": 2}
    model = quick(request.param, settings=settings).fit(frame, labels_for(request.param, y))
    return model, frame


def outcome(model, frame):
    return model.predict_proba(frame) if hasattr(model, "classes_") else model.predict(frame)


class TestIndependenceOfRows:
    def test_one_by_one(self, fitted):
        model, frame = fitted
        together = outcome(model, frame)
        apart = [outcome(model, frame.iloc[[i]]) for i in range(0, 120, 5)]
        np.testing.assert_allclose(np.concatenate(apart), together[::5], atol=1e-6)

    def test_in_any_order_and_batch(self, fitted):
        model, frame = fitted
        together = outcome(model, frame)
        order = np.random.default_rng(1).permutation(120)
        batches = np.split(order, [1, 2, 50])
        apart = np.concatenate([outcome(model, frame.iloc[rows]) for rows in batches])
        np.testing.assert_allclose(apart, together[order], atol=1e-6)

    @pytest.mark.parametrize("cells", [1, 60])
    def test_slices_do_not_change_the_result(self, fitted, monkeypatch, cells):
        model, frame = fitted
        together = outcome(model, frame)
        monkeypatch.setattr(grapefill.training.fill, "SLICE_CELLS", cells)
        np.testing.assert_allclose(outcome(model, frame), together, atol=1e-6)

    def test_no_rows(self, fitted):
        model, frame = fitted
        assert outcome(model, frame.iloc[:0]).shape == (0, *outcome(model, frame).shape[1:])
        assert model.predict(frame.iloc[:0]).shape == (0,)
        pd.testing.assert_frame_equal(model.impute(frame.iloc[:0]), frame.iloc[:0])

    def test_a_row_without_any_value(self, fitted):
        model, frame = fitted
        nothing = frame.iloc[:2].mask(frame.iloc[:2].notna()).astype(frame.dtypes)
        found = outcome(model, nothing)
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found[0], found[1])


@pytest.fixture(scope="module", params=[2, 3])
def classifier(request):
    X, y = numbers(150)
    words = np.array(["small", "large", "huge"])[np.digitize(y, [0.0, 1.0][: request.param - 1])]
    return quick(GrapeClassifier, settings={"max_steps": 30}).fit(X, words), X, words


class TestClasses:
    def test_probabilities(self, classifier):
        model, X, words = classifier
        chances = model.predict_proba(X)
        assert chances.shape == (150, model.classes_.size)
        assert (chances >= 0).all()
        np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-6)
        assert model.classes_.tolist() == sorted(set(words))
        found = model.predict(X)
        assert (found == model.classes_[chances.argmax(axis=1)]).all()
        # Were the columns in another order, the classes would be wrong.
        assert (found == words).mean() > 0.7
        for j, name in enumerate(model.classes_):
            assert chances[words == name, j].mean() > chances[words != name, j].mean() + 0.1

    def test_decision_function(self, classifier):
        model, X, _ = classifier
        scores, chances = model.decision_function(X), model.predict_proba(X)
        assert np.isfinite(scores).all()
        if model.classes_.size == 2:
            assert scores.shape == (150,)
            clear = np.abs(scores) > 1e-9
            picked = model.classes_[(scores > 0).astype(int)]
            assert (picked == model.predict(X))[clear].all()
            inside = (chances > 1e-9).all(axis=1)
            odds = np.log(chances[inside, 1] / chances[inside, 0])
            np.testing.assert_allclose(scores[inside], odds, rtol=1e-6, atol=1e-9)
        else:
            assert scores.shape == (150, 3)
            assert (model.classes_[scores.argmax(axis=1)] == model.predict(X)).all()
            np.testing.assert_allclose(np.exp(scores), chances, atol=1e-9)

    def test_score_is_accuracy(self, classifier):
        model, X, words = classifier
        assert model.score(X, words) == (model.predict(X) == words).mean()
        assert model.score(X, np.array(["unheard of"] * 150)) == 0


def test_held_out_errors_of_several_targets_are_those_of_new_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 3))
    first = X[:, 0] + 2 * random.normal(size=500)
    Y = np.column_stack([first, first + 0.01 * random.normal(size=500)])
    settings = {"max_steps": 60, "rounds": 1, "trees": 16, "trial_trees": 8}
    model = GrapeRegressor("fast", settings=settings, random_state=0).fit(X[:350], Y[:350])
    off = np.abs(model.predict(X[350:]) - Y[350:]).mean()
    said = [trial.blend for trial in model.model_.trials[-2:]]
    assert min(said) > 0.6 * off
