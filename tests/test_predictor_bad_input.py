"""Every label and weight that is likely to go wrong works or says what to do."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from grapefill import GrapeClassifier, GrapeRegressor
from grapefill.errors import ConfigError, GrapefillWarning, InputError, SchemaError

QUICK = {
    **{"layers": 1, "width": 8, "edge_width": 8, "head_width": 8, "max_steps": 4},
    **{"rounds": 1, "trees": 4, "early_trees": 2, "trial_trees": 4},
}
BOTH = pytest.mark.parametrize("estimator", [GrapeRegressor, GrapeClassifier])


def quick(estimator=GrapeRegressor, *, settings=None, **parameters):
    settings = QUICK | (settings or {})
    return estimator("fast", settings=settings, random_state=0, **parameters)


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=30),
            "age": pd.array(rng.integers(90, size=30), dtype="Int64"),
            "color": pd.Categorical(rng.choice(["red", "green", "blue"], size=30)),
        }
    )
    return frame.mask(pd.DataFrame(rng.random(frame.shape) < 0.2, columns=frame.columns))


def labels(estimator):
    return np.linspace(-1, 1, 30) if estimator is GrapeRegressor else np.arange(30) % 3


def says(*parts):
    """Match a message that has these parts, in this order."""
    return "(?s)" + ".*".join(map(re.escape, parts))


def refused(estimator, y, *parts, X=None, error=InputError, **options):
    """Check that a fit fails in these words, and leaves nothing behind."""
    model = quick(estimator, **options.pop("parameters", {}))
    with pytest.raises(error, match=says(*parts)):
        model.fit(table() if X is None else X, y, **options)
    assert [name for name in vars(model) if name.endswith("_")] == []


EMPTY = {
    "list": [None] * 30,
    "NaN": np.full(30, np.nan),
    "Int64": pd.Series([pd.NA] * 30, dtype="Int64"),
    "string": pd.Series([None] * 30, dtype="string"),
    "polars": pl.Series([None] * 30),
    "pyarrow": pa.nulls(30),
}


class TestLabels:
    @BOTH
    def test_none(self, estimator):
        refused(estimator, None, "requires y to be passed", "Pass the labels")

    @BOTH
    @pytest.mark.parametrize("container", EMPTY)
    def test_all_missing(self, estimator, container):
        refused(estimator, EMPTY[container], "All labels in y are missing", "Give the labels of")

    def test_one_of_several_all_missing(self):
        y = pd.DataFrame({"a": np.arange(30.0), "b": np.nan})
        refused(GrapeRegressor, y, "All labels in y are missing in column 'b'", "Give")

    @BOTH
    @pytest.mark.parametrize("rows", [0, 29, 31])
    @pytest.mark.parametrize("convert", [list, np.array, pd.Series, pl.Series, pa.array])
    def test_another_number_of_rows(self, estimator, rows, convert):
        y = convert(np.arange(rows) % 2)
        refused(estimator, y, f"X has 30 rows, y has {rows} labels", "one label for each row")

    @BOTH
    @pytest.mark.parametrize("infinity", [np.inf, -np.inf])
    @pytest.mark.parametrize("convert", [list, np.float32, pd.Series, pl.Series, pa.array])
    def test_infinity(self, estimator, infinity, convert):
        y = np.where(np.arange(30) == 4, infinity, np.arange(30) % 2)
        refused(estimator, convert(y), "contains infinity: the label of row 4", "Leave it missing")

    @BOTH
    def test_three_dimensions(self, estimator):
        refused(estimator, np.zeros((30, 1, 1)), "1d array", "(30, 1, 1)", "one label for each row")

    @BOTH
    @pytest.mark.parametrize("y", [3.0, "abc", {"a": 1}, iter([1, 2])])
    def test_no_array_at_all(self, estimator, y):
        refused(estimator, y, "y should be a 1d array", "one label for each row")

    @BOTH
    def test_rows_of_different_lengths(self, estimator):
        refused(estimator, [[1]] * 29 + [[1, 2]], "does not make an array", "Give one label per")

    @BOTH
    @pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.coo_array])
    def test_sparse(self, estimator, make):
        refused(estimator, make(np.ones((30, 1))), "Sparse data", "toarray()")

    @BOTH
    def test_masked(self, estimator):
        y = np.ma.array(labels(estimator), mask=np.arange(30) < 9)
        refused(estimator, y, "Masked arrays are not read", "filled(np.nan)")

    @BOTH
    def test_duplicate_names(self, estimator):
        y = pd.DataFrame(np.ones((30, 2)), columns=["a", "a"])
        parts = ["2 columns"] if estimator is GrapeClassifier else ["more than once: 'a'", "Rename"]
        refused(estimator, y, *parts)

    @BOTH
    def test_no_columns(self, estimator):
        refused(estimator, np.empty((30, 0)), "0 feature(s)", "one column")


class TestNumbers:
    @pytest.mark.parametrize(
        ("y", "dtype"),
        [
            (["a", "b"] * 15, "<U1"),
            ([str(i) for i in range(30)], "<U2"),
            ([1.0, "a"] * 15, "object"),
            (pd.Series(["a", "b"] * 15, dtype="string"), "string"),
            (pd.Series([1, 2] * 15, dtype="category"), "category"),
            (pd.Series(pd.date_range("2020-01-01", periods=30)), "datetime64"),
            (np.arange(30).astype("m8[s]"), "timedelta64[s]"),
            (np.arange(30) + 1j, "complex128"),
            (pl.Series([[1]] * 30), "List"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_what_are_none(self, y, dtype):
        refused(GrapeRegressor, y, f"y holds {dtype}", "predicts numbers", "Convert them")

    def test_the_column_is_named(self):
        y = pd.DataFrame({"a": np.arange(30.0), "b": ["x"] * 30})
        refused(GrapeRegressor, y, "in column 'b'", "Convert them, or use GrapeClassifier")

    def test_one_known_label(self):
        y = np.where(np.arange(30) == 3, 5.0, np.nan)
        model = quick().fit(table(), y)
        assert np.isfinite(model.predict(table())).all()

    def test_a_constant(self):
        found = quick().fit(table(), np.full(30, 7.25)).predict(table())
        np.testing.assert_allclose(found, 7.25, atol=1.5)

    def test_numbers_near_the_end_of_float64(self):
        y = 1.7e308 * np.linspace(-1, 1, 30)
        assert np.isfinite(quick().fit(table(), y).predict(table())).all()

    def test_a_wide_table_near_the_end_of_float64(self):
        X = 1.7e308 * np.random.default_rng(0).uniform(-1, 1, size=(30, 26))
        assert np.isfinite(quick().fit(X, np.arange(30.0)).predict(X)).all()


class TestClasses:
    @pytest.mark.parametrize("value", ["yes", 3, True, 2.0])
    def test_one(self, value):
        y = np.array([value, None] * 15, dtype=object)
        refused(GrapeClassifier, y, f"one class, {value!r}", "needs at least two classes")

    def test_continuous(self):
        y = np.linspace(0, 1, 30)
        y[:3] = [np.nan, 1.0, 0.25]
        message = ["Unknown label type: continuous", "row 2 is 0.25", "Use GrapeRegressor"]
        refused(GrapeClassifier, y, *message)

    @pytest.mark.parametrize(
        ("y", "dtype"),
        [
            (pd.Series(pd.date_range("2020-01-01", periods=30)), "datetime64"),
            (np.arange(30).astype("m8[s]"), "timedelta64[s]"),
            (np.arange(30) + 1j, "complex128"),
            (np.array([b"a", b"b"] * 15), "|S1"),
            ([1, "a"] * 15, "object"),
            (pl.Series([[1]] * 30), "List"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_what_are_none(self, y, dtype):
        refused(GrapeClassifier, y, "Unknown label type", f"holds {dtype}", "Pass text, integers")

    @pytest.mark.parametrize("convert", [np.array, np.ndarray.tolist, pd.DataFrame])
    def test_several_columns(self, convert):
        y = convert(np.ones((30, 2)))
        refused(GrapeClassifier, y, "y has 2 columns", "fit a classifier for each")

    def test_two_rows_of_two_classes(self):
        X = table().iloc[:2]
        model = quick(GrapeClassifier).fit(X, ["a", "b"])
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-6)

    def test_a_class_in_every_row(self):
        """More classes than trees are grown for."""
        X = np.arange(80.0)[:, None]
        model = quick(GrapeClassifier).fit(X, np.arange(80))
        assert model.predict_proba(X).shape == (80, 80)


class TestWeights:
    @BOTH
    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (np.where(np.arange(30) == 3, -1.0, 1.0), "Negative values"),
            (np.ones(29), r"sample_weight.shape == \(29,\), expected \(30,\)"),
            (np.ones((30, 2)), "must be 1D array or scalar"),
            (np.zeros(30), "at least one non-zero"),
            (np.full(30, np.nan), "sample_weight contains NaN"),
            (np.full(30, np.inf), "sample_weight contains infinity"),
            (["heavy"] * 30, "could not convert string to float"),
        ],
    )
    def test_that_cannot_be(self, estimator, weights, message):
        model = quick(estimator)
        with pytest.raises(ValueError, match=message):
            model.fit(table(), labels(estimator), sample_weight=weights)
        assert not hasattr(model, "model_")

    @BOTH
    def test_only_unknown_labels_count(self, estimator):
        y = np.where(np.arange(30) < 10, np.nan, labels(estimator))
        weights = (np.arange(30) < 10).astype(float)
        refused(estimator, y, "is 0 for all labels", "above 0", sample_weight=weights)

    def test_no_label_of_one_target_counts(self):
        y = np.column_stack([np.arange(30.0), np.where(np.arange(30) < 9, 1.0, np.nan)])
        weights = (np.arange(30) >= 9).astype(float)
        refused(GrapeRegressor, y, "is 0 for all labels", "above 0", sample_weight=weights)

    def test_of_very_different_size(self):
        X, y = table(), labels(GrapeRegressor)
        weights = np.where(np.arange(30) < 15, 1e-300, 1e300)
        assert np.isfinite(quick().fit(X, y, sample_weight=weights).predict(X)).all()

    @pytest.mark.parametrize("class_weight", [{0: -1}, {0: np.nan}, {0: np.inf, 1: 2}])
    def test_of_classes_that_cannot_be(self, class_weight):
        refused(
            GrapeClassifier,
            labels(GrapeClassifier),
            "class_weight must give every class a number from 0 on",
            error=ConfigError,
            parameters={"class_weight": class_weight},
        )

    @pytest.mark.parametrize(
        ("class_weight", "message"),
        [
            ({"unheard of": 2}, "The classes, [0, 1, 2], are not in class_weight"),
            ("blanced", "'class_weight' parameter"),
        ],
    )
    def test_of_classes_that_are_not_there(self, class_weight, message):
        parameters = {"class_weight": class_weight}
        y = labels(GrapeClassifier)
        refused(GrapeClassifier, y, message, error=ValueError, parameters=parameters)

    def test_no_class_counts(self):
        parameters = {"class_weight": dict.fromkeys(range(3), 0)}
        y = labels(GrapeClassifier)
        refused(GrapeClassifier, y, "is 0 for all labels", "above 0", parameters=parameters)

    def test_a_class_that_does_not_count_is_still_a_class(self):
        model = quick(GrapeClassifier, class_weight={0: 0, 1: 1, 2: 1})
        model.fit(table(), labels(GrapeClassifier))
        assert model.classes_.tolist() == [0, 1, 2]
        assert (model.predict(table()) != 0).mean() > 0.8


class TestTables:
    @BOTH
    @pytest.mark.parametrize("X", [table().iloc[:0], np.empty((0, 2))])
    def test_no_rows(self, estimator, X):
        refused(estimator, [], "0 sample(s)", "at least one row", X=X)

    @BOTH
    def test_no_columns(self, estimator):
        refused(estimator, labels(estimator), "0 feature(s)", "one column", X=table().iloc[:, :0])

    @BOTH
    def test_every_cell_missing(self, estimator):
        X = np.full((30, 2), np.nan)
        refused(estimator, labels(estimator), "Every cell is missing", "Check", X=X)

    @BOTH
    def test_no_column_to_learn_from(self, estimator):
        refused(
            estimator,
            labels(estimator),
            "None of the columns of X can be learned from",
            "Give a table with",
            X=table()[["size"]],
            parameters={"kinds": {"size": "passthrough"}},
        )

    @BOTH
    def test_infinity(self, estimator):
        X = table().assign(size=np.inf)
        refused(estimator, labels(estimator), "infinity", "'size', row 0", "Replace", X=X)

    @BOTH
    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("preset", "papr", "preset must be one of"),
            ("settings", {"labels": "edge"}, "NetworkConfig.labels must be one of"),
            ("settings", {"label_dropout": 0.0}, "TrainingConfig.label_dropout must be above 0"),
            ("settings", {"label_dropout": 1.5}, "TrainingConfig.label_dropout must be above 0"),
            ("settings", {"step_cells": 0}, "TrainingConfig.step_cells must be at least 1"),
            ("settings", {"most_factors": -1}, "FactorConfig.most_factors must not be negative"),
            ("settings", {"factor_rows": 1}, "FactorConfig.fewest_columns and factor_rows"),
            ("time_limit", 0, "time_limit must be positive"),
            ("layout", "sparse", "layout must be one of"),
            ("device", "gpu", "device='gpu' cannot be used here"),
            ("o_edge", "text", "o_edge must be a torch.nn.Module or None, got 'text'"),
            ("o_node", "text", "o_node must be a torch.nn.Module or None, got 'text'"),
            ("callbacks", print, "callbacks must be a sequence"),
        ],
    )
    def test_parameters(self, estimator, name, value, message):
        model = quick(estimator).set_params(**{name: value})
        with pytest.raises(ConfigError, match=re.escape(message)):
            model.fit(table(), labels(estimator))
        assert not hasattr(model, "model_")


@pytest.fixture(scope="module", params=[GrapeRegressor, GrapeClassifier])
def fitted(request):
    return quick(request.param).fit(table(), labels(request.param))


class TestAtPredict:
    @pytest.mark.parametrize("method", ["predict", "impute"])
    @pytest.mark.parametrize(
        ("change", "parts"),
        [
            (lambda X: X.drop(columns="age"), ["now missing", "- age", "Select the columns"]),
            (lambda X: X.assign(more=1.0), ["unseen at fit time", "- more", "Select the columns"]),
            (lambda X: X[["age", "size", "color"]], ["same order", "Select the columns"]),
            (lambda X: X.assign(size="big"), ["Column 'size' is", "at fit. Convert it"]),
        ],
        ids=["missing", "extra", "reordered", "retyped"],
    )
    def test_other_columns(self, fitted, method, change, parts):
        with pytest.raises(SchemaError, match=says(*parts)):
            getattr(fitted, method)(change(table()))

    def test_infinity(self, fitted):
        with pytest.raises(InputError, match=says("infinity", "'size', row 0", "Replace")):
            fitted.predict(table().assign(size=np.inf))

    def test_another_number_of_columns_in_an_array(self):
        model = quick().fit(np.ones((5, 3)) * np.arange(5)[:, None], np.arange(5.0))
        message = says("X has 2 features", "GrapeRegressor is expecting 3", "Pass the columns")
        with pytest.raises(SchemaError, match=message):
            model.predict(np.ones((5, 2)))

    @pytest.mark.parametrize("cells", [1_000_000, 12])
    def test_unseen_categories(self, fitted, cells, monkeypatch):
        monkeypatch.setattr("grapefill.training.fill.SLICE_CELLS", cells)
        X = table()
        X["color"] = X["color"].astype(object)
        X.loc[[2, 25], "color"] = ["pink", "violet"]
        message = says("not there at fit", "'color' ('pink', 'violet')", "Fit again")
        with pytest.warns(GrapefillWarning, match=message) as caught:
            found = fitted.predict(X)
        assert len(caught) == 1
        X.loc[[2, 25], "color"] = None
        np.testing.assert_array_equal(found, fitted.predict(X))

    def test_importance_of_labels_that_do_not_fit(self, fitted):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            fitted.column_importance(table(), np.arange(5))
