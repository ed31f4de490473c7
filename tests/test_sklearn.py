"""scikit-learn's own checks, and its tools around the imputer."""

from __future__ import annotations

import datetime
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import torch
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from grapefill import GrapeImputer
from grapefill.errors import GrapefillWarning, InputError
from grapefill.training import get_preset

QUICK = {"max_steps": 5, "batch_rows": None, "width": 8, "edge_width": 8, "head_width": 8}


@parametrize_with_checks([GrapeImputer(settings=QUICK)])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def quick(**parameters):
    parameters.setdefault("random_state", 0)
    return GrapeImputer(settings=QUICK, **parameters)


def holes(rows=40, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    X[:, 1] = 2 * X[:, 0]
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def frame(**parameters):
    return pd.DataFrame(holes(**parameters), columns=["a", "b", "c"])


def mixed():
    """Return a polars frame of all kinds, with holes in every column."""
    return pl.DataFrame(
        {
            "f": [1.5, None, 3.0, 4.0] * 6,
            "i": [1, 2, None, 2**60 + 1] * 6,
            "s": ["a", "b", None, "a"] * 6,
            "b": [True, None, False, True] * 6,
            "d": [datetime.date(2020, 1, 1), None, datetime.date(2021, 1, 1), None] * 6,
            "e": pl.Series(["x", "y", None, "x"] * 6, dtype=pl.Enum(["x", "y", "z"])),
        }
    )


class TestComposition:
    def test_pipeline(self):
        X, y = holes(), np.arange(40.0)
        pipeline = make_pipeline(quick(), LinearRegression()).fit(X, y)
        assert np.isfinite(pipeline.predict(X)).all()
        np.testing.assert_array_equal(pipeline[0].transform(X), quick().fit(X).transform(X))

    def test_pipeline_with_indicators_and_labels_that_are_numbers(self):
        X = pd.DataFrame(holes())
        pipeline = make_pipeline(quick(add_indicator=True), LinearRegression())
        assert np.isfinite(pipeline.fit(X, np.arange(40.0)).predict(X)).all()

    def test_cross_validation(self):
        scores = cross_val_score(
            make_pipeline(quick(), LinearRegression()), frame(), np.arange(40.0), cv=3
        )
        assert np.isfinite(scores).all()

    def test_column_transformer(self):
        X = frame().assign(word=["red", "green", None, "red"] * 10)
        numbers = make_column_selector(dtype_include="number")
        transformer = ColumnTransformer(
            [
                ("numbers", quick(add_indicator=True), numbers),
                ("words", make_pipeline(quick(), OneHotEncoder(sparse_output=False)), ["word"]),
            ]
        )
        result = transformer.set_output(transform="pandas").fit_transform(X)
        assert list(result) == [
            *("numbers__a", "numbers__b", "numbers__c"),
            *(f"numbers__missingindicator_{name}" for name in "abc"),
            *("words__word_green", "words__word_red"),
        ]
        assert not result.isna().any(axis=None)
        assert list(result) == transformer.get_feature_names_out().tolist()

    def test_grid_search(self):
        pipeline = make_pipeline(quick(), LinearRegression())
        # Numbers of numpy, as a grid often has them.
        sizes = [QUICK | {"width": width} for width in np.array([4, 8])]
        grid = {
            "grapeimputer__settings": sizes,
            "grapeimputer__preset": ["fast", "paper"],
        }
        search = GridSearchCV(pipeline, grid, cv=2, error_score="raise")
        search.fit(frame(), np.arange(40.0))
        assert len(search.cv_results_["params"]) == 4
        best = search.best_estimator_[0]
        assert best.network_.config.width == search.best_params_["grapeimputer__settings"]["width"]

    def test_a_grid_of_numpy_numbers_can_be_saved(self, tmp_path):
        settings = QUICK | {"width": np.int64(4), "learning_rate": np.float32(0.5)}
        imputer = quick().set_params(settings=settings, time_limit=np.int64(100)).fit(holes())
        imputer.save(tmp_path / "a.grape")
        loaded = GrapeImputer.load(tmp_path / "a.grape")
        assert loaded.settings == settings
        np.testing.assert_array_equal(loaded.transform(holes()), imputer.transform(holes()))

    def test_clone_has_the_parameters_and_nothing_learned(self):
        module = torch.nn.Linear(16, 1)
        imputer = quick(o_edge=module, kinds={0: "continuous"}, add_indicator=True).fit(holes())
        copy = clone(imputer)
        assert copy.settings == QUICK
        assert copy.add_indicator
        assert copy.o_edge is not module
        assert torch.equal(copy.o_edge.weight, module.weight)
        with pytest.raises(NotFittedError):
            copy.transform(holes())
        np.testing.assert_array_equal(copy.fit_transform(holes()), imputer.transform(holes()))

    def test_parallel(self):
        tables = [holes(rows=20, seed=seed) for seed in range(2)]
        with Parallel(n_jobs=2) as parallel:
            fits = parallel(delayed(quick().fit)(X) for X in tables)
            filled = parallel(delayed(fits[0].transform)(X) for X in tables)
        # Workers may have another number of threads, which round in another order.
        close = {"rtol": 0, "atol": 1e-3}
        np.testing.assert_allclose(filled[0], quick().fit_transform(tables[0]), **close)
        np.testing.assert_allclose(filled[1], fits[0].transform(tables[1]), **close)
        np.testing.assert_allclose(
            fits[1].transform(tables[1]), quick().fit_transform(tables[1]), **close
        )

    @pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
    def test_pickle(self, protocol):
        X = mixed()
        imputer = quick().fit(X)
        again = pickle.loads(pickle.dumps(imputer, protocol=protocol))
        assert again.transform(X).equals(imputer.transform(X))
        assert again.history_ == imputer.history_


class TestSetOutput:
    INPUTS = {  # noqa: RUF012
        "numpy": holes,
        "pandas": frame,
        "polars": lambda: pl.from_pandas(frame()),
        "pyarrow": lambda: pa.Table.from_pandas(frame()),
    }
    TYPES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}  # noqa: RUF012

    @pytest.mark.parametrize("given", INPUTS)
    @pytest.mark.parametrize("wanted", ["pandas", "polars"])
    @pytest.mark.parametrize("way", ["set_output", "config_context"])
    def test_container(self, given, wanted, way):
        X, imputer = self.INPUTS[given](), quick(add_indicator=True)
        plain = imputer.fit_transform(X)
        if way == "set_output":
            imputer.set_output(transform=wanted)
            results = imputer.transform(X), imputer.fit_transform(X)
        else:
            with sklearn.config_context(transform_output=wanted):
                results = imputer.transform(X), imputer.fit_transform(X)
        for result in results:
            assert isinstance(result, self.TYPES[wanted])
            assert list(result.columns) == imputer.get_feature_names_out().tolist()
            expected = plain if given == "numpy" else np.asarray(plain, dtype=np.float64)
            np.testing.assert_array_equal(result.to_numpy().astype(float), expected)

    @pytest.mark.parametrize("given", INPUTS)
    def test_default_keeps_the_container(self, given):
        X = self.INPUTS[given]()
        with sklearn.config_context(transform_output="pandas"):
            result = quick().set_output(transform="default").fit_transform(X)
        assert type(result) is type(X)

    @pytest.mark.parametrize("given", ["polars", "pyarrow"])
    def test_dtypes_survive_in_pandas(self, given):
        X = mixed().drop("d")
        native = X if given == "polars" else X.to_arrow()
        result = quick().set_output(transform="pandas").fit_transform(native)
        assert [str(dtype) for dtype in result.dtypes] == [
            *("float64", "int64", "str", "bool", "category"),
        ]
        assert result["i"][3] == 2**60 + 1

    def test_dtypes_survive_in_polars(self):
        X = mixed().drop("b", "i").to_pandas()
        result = quick().set_output(transform="polars").fit_transform(X)
        assert result.dtypes == [pl.Float64, pl.String, pl.Datetime("ms"), pl.Categorical]
        assert result.null_count().sum_horizontal().item() == 0

    def test_index_survives(self):
        X = frame().set_axis(pd.date_range("2020-01-01", periods=40), axis=0)
        result = quick(add_indicator=True).set_output(transform="pandas").fit_transform(X)
        pd.testing.assert_index_equal(result.index, X.index)

    def test_an_index_in_pyarrow_is_a_column(self):
        X = pa.Table.from_pandas(frame().set_axis(np.arange(40.0)[::-1], axis=0))
        result = quick().set_output(transform="pandas").fit_transform(X)
        assert list(result) == X.column_names == ["a", "b", "c", "__index_level_0__"]
        assert result["__index_level_0__"].tolist() == list(range(40))[::-1]


class TestFeatureNames:
    def test_of_a_frame(self):
        imputer = quick().fit(frame())
        assert imputer.feature_names_in_.tolist() == ["a", "b", "c"]
        assert imputer.get_feature_names_out().tolist() == ["a", "b", "c"]
        with pytest.raises(ValueError, match="not equal to feature_names_in_"):
            imputer.get_feature_names_out(["a", "b", "d"])

    def test_of_an_array(self):
        imputer = quick(add_indicator=True).fit(holes())
        assert not hasattr(imputer, "feature_names_in_")
        indicators = [f"missingindicator_x{j}" for j in range(3)]
        assert imputer.get_feature_names_out().tolist() == ["x0", "x1", "x2", *indicators]
        named = imputer.get_feature_names_out(["a", "b", "c"])
        assert named.tolist()[:4] == ["a", "b", "c", "missingindicator_a"]
        with pytest.raises(ValueError, match="length equal to number of features"):
            imputer.get_feature_names_out(["a"])

    def test_names_of_an_earlier_fit_are_forgotten(self):
        imputer = quick().fit(frame()).fit(holes())
        assert not hasattr(imputer, "feature_names_in_")

    def test_before_fit(self):
        with pytest.raises(NotFittedError):
            quick().get_feature_names_out()


class TestIndicator:
    def test_matches_scikit_learn_on_arrays(self):
        X = holes()
        X[:, 2] = 1.0
        ours = quick(add_indicator=True).fit(X)
        theirs = SimpleImputer(add_indicator=True).fit(X)
        new = holes(seed=1)
        assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
        np.testing.assert_array_equal(ours.transform(new)[:, 3:], theirs.transform(new)[:, 3:])

    @pytest.mark.parametrize(
        "index", [pd.RangeIndex(5, 29), pd.Index(list("abcdefghijkl") * 2), pd.Index([0] * 24)]
    )
    def test_pandas_with_an_index_of_its_own(self, index):
        X = mixed().to_pandas().set_axis(index, axis=0)
        result = quick(add_indicator=True).fit_transform(X)
        pd.testing.assert_index_equal(result.index, index)
        assert list(result)[6:] == [f"missingindicator_{name}" for name in X]
        assert set(result.dtypes.iloc[6:]) == {np.dtype(bool)}
        np.testing.assert_array_equal(result.iloc[:, 6:].to_numpy(), X.isna().to_numpy())

    def test_polars_and_pyarrow(self):
        X = mixed()
        result = quick(add_indicator=True).fit_transform(X)
        assert result.columns[6:] == [f"missingindicator_{name}" for name in X.columns]
        for name in X.columns:
            assert result[f"missingindicator_{name}"].equals(X[name].is_null())
        arrow = quick(add_indicator=True).fit_transform(X.to_arrow())
        assert isinstance(arrow, pa.Table)
        assert pl.from_arrow(arrow).equals(result)

    @pytest.mark.parametrize(
        ("X", "dtype", "indicators"),
        [
            (np.array([[1, -1], [3, 4]]), np.int64, [[1], [0]]),
            (np.array([["a", "-1"], ["b", "c"]]), object, [[True], [False]]),
            (np.array([["2020-01-01", "NaT"], ["2020-01-02"] * 2], "M8[D]"), object, [[1], [0]]),
        ],
        ids=["integers", "text", "dates"],
    )
    def test_arrays_of_other_dtypes(self, X, dtype, indicators):
        mark = "-1" if X.dtype.kind == "U" else -1
        result = quick(add_indicator=True, missing_values=mark).fit_transform(X)
        assert result.dtype == dtype
        assert result[:, 2:].tolist() == indicators
        assert result[:, 0].tolist() == X[:, 0].tolist()

    @pytest.mark.parametrize("labels", [[3, 1, 2], [("a", 1), ("a", 2), ("b", 1)], ["a", 1, 2.5]])
    def test_labels_that_are_not_text_become_text(self, labels):
        X = pd.DataFrame(holes()).set_axis(pd.Index(labels), axis=1)
        result = quick(add_indicator=True).fit_transform(X)
        texts = [str(label) for label in X.columns]
        assert list(result) == texts + [f"missingindicator_{text}" for text in texts]
        assert list(quick().fit_transform(X)) == list(X.columns)

    def test_labels_with_the_same_text(self):
        X = pd.DataFrame(holes()[:, :2], columns=[1, "1"])
        with pytest.raises(InputError, match="two columns would be called '1'"):
            quick(add_indicator=True).fit(X)


class TestKeepEmptyFeatures:
    @pytest.mark.parametrize("keep", [True, False])
    @pytest.mark.parametrize("indicator", [True, False])
    @pytest.mark.filterwarnings("ignore::grapefill.errors.GrapefillWarning")
    @pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
    def test_means_what_it_means_in_scikit_learn(self, keep, indicator):
        X = holes()
        X[:, 1] = np.nan
        parameters = {"keep_empty_features": keep, "add_indicator": indicator}
        ours, theirs = quick(**parameters).fit(X), SimpleImputer(**parameters).fit(X)
        new = holes(seed=1)
        found, expected = ours.transform(new), theirs.transform(new)
        assert found.shape == expected.shape
        assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
        if keep:
            # Values that turn up later stay; holes become 0.
            np.testing.assert_array_equal(found[:, 1], np.nan_to_num(new[:, 1]))
        if indicator:
            np.testing.assert_array_equal(found[:, -3:], expected[:, -3:])

    def test_nothing_observed_at_all(self):
        X = np.full((3, 2), np.nan)
        np.testing.assert_array_equal(
            quick(keep_empty_features=True).fit_transform(X), np.zeros((3, 2))
        )

    def test_columns_that_are_not_numbers_stay_missing(self):
        X = pd.DataFrame(
            {
                "number": pd.array([None] * 4, dtype="Int8"),
                "text": pd.array([None] * 4, dtype="string"),
                "category": pd.Categorical([None] * 4, categories=["x"]),
                "boolean": pd.array([None] * 4, dtype="boolean"),
                "date": pd.array([None] * 4, dtype="datetime64[ns]"),
                "object": np.array([None] * 4, dtype=object),
                "x": [1.0, 2.0, None, 4.0],
            }
        )
        filled = quick(keep_empty_features=True).fit_transform(X)
        pd.testing.assert_series_equal(filled.dtypes, X.dtypes)
        assert filled["number"].tolist() == [0] * 4
        assert filled.drop(columns=["number", "x"]).isna().all(axis=None)
        assert filled["x"].notna().all()

    @pytest.mark.parametrize("keep", [True, False])
    def test_passthrough_is_kept_as_it_is(self, keep):
        X = pd.DataFrame({"note": [np.nan] * 3, "other": [None] * 3, "x": [1.0, 2.0, np.nan]})
        kinds = {"note": "passthrough", "other": "passthrough"}
        filled = quick(keep_empty_features=keep, kinds=kinds).fit_transform(X)
        pd.testing.assert_frame_equal(filled[["note", "other"]], X[["note", "other"]])

    def test_a_warning_names_the_columns(self):
        X = frame().assign(nothing=np.nan)
        with pytest.warns(GrapefillWarning, match="no observed value and are not used: 'nothing'"):
            quick().fit(X)


class TestMissingValues:
    def test_a_number_in_an_array_of_integers(self):
        X = np.array([[1, -1], [2, 20], [-1, 30], [4, 40]], dtype=np.int16)
        filled = quick(missing_values=-1).fit_transform(X)
        assert filled.dtype == np.int16
        assert (filled != -1).all()
        np.testing.assert_array_equal(filled[X != -1], X[X != -1])

    @pytest.mark.parametrize(
        "X",
        [
            pl.DataFrame({"s": ["a", "", "b", "a"], "x": [1.0, 2.0, 3.0, 4.0]}),
            pd.DataFrame({"s": ["a", "", "b", "a"], "x": [1.0, 2.0, 3.0, 4.0]}),
            pd.DataFrame({"s": pd.Categorical(["a", "", "b", "a"]), "x": [1.0, 2.0, 3.0, 4.0]}),
            pa.table({"s": ["a", "", "b", "a"], "x": [1.0, 2.0, 3.0, 4.0]}),
        ],
        ids=["polars", "pandas", "category", "pyarrow"],
    )
    def test_empty_text(self, X):
        imputer = quick(missing_values="").fit(X)
        words = pd.Series(imputer.transform(X)["s"].to_numpy()).tolist()
        assert words[1] in ("a", "b")
        assert [words[0], *words[2:]] == ["a", "b", "a"]
        assert imputer.schema_.columns[0].categories == ("a", "b")

    @pytest.mark.parametrize("mark", [None, np.nan, pd.NA, pd.NaT])
    def test_what_always_counts(self, mark, tmp_path):
        X = pd.DataFrame(
            {
                "x": [1.0, np.nan, 3.0, 4.0],
                "i": pd.array([1, pd.NA, 2, 3], dtype="Int64"),
                "o": np.array(["a", None, "b", pd.NA], dtype=object),
                "t": [pd.Timestamp("2020-01-01"), pd.NaT, *pd.to_datetime(["2021-01-01"] * 2)],
            }
        )
        imputer = quick(missing_values=mark).fit(X)
        filled = imputer.transform(X)
        assert not filled.isna().any(axis=None)
        imputer.save(tmp_path / "a.grape")
        loaded = GrapeImputer.load(tmp_path / "a.grape")
        pd.testing.assert_frame_equal(loaded.transform(X), filled)

    @pytest.mark.parametrize("mark", [-1, np.int64(-1), -1.0, np.float32(0.1), "?", np.str_("?")])
    def test_a_mark_survives_a_file(self, mark, tmp_path):
        X = pd.DataFrame({"x": [1.0, -1.0, 2.0, np.float32(0.1)], "s": ["a", "?", "b", "a"]})
        imputer = quick(missing_values=mark).fit(X)
        imputer.save(tmp_path / "a.grape")
        loaded = GrapeImputer.load(tmp_path / "a.grape")
        assert loaded.missing_values == mark
        pd.testing.assert_frame_equal(loaded.transform(X), imputer.transform(X))


class TestFile:
    def test_parameters_survive(self, tmp_path):
        parameters = {
            "kinds": {0: "continuous", 1: "ordinal"},
            "add_indicator": True,
            "graph_from": "transform",
            "time_limit": 60.0,
            "layout": "edges",
            "warm_start": True,
            "device": "cpu",
            "random_state": 7,
        }
        X = np.rint(holes() * 5)
        settings = QUICK | {"dropout": (0.1, 0.4)}
        imputer = quick().set_params(settings=settings, **parameters).fit(X)
        imputer.save(tmp_path / "a.grape")
        loaded = GrapeImputer.load(tmp_path / "a.grape")
        assert loaded.get_params() == imputer.get_params() | {
            "missing_values": loaded.missing_values
        }
        np.testing.assert_array_equal(loaded.transform(X), imputer.transform(X))
        # Kinds by position are positions still.
        assert clone(loaded).fit(X).schema_ == imputer.schema_

    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("random_state", np.int64(3), 3),
            ("random_state", np.random.RandomState(0), None),
            ("device", torch.device("cpu"), "cpu"),
            ("add_indicator", np.True_, True),
            ("callbacks", [print], None),
        ],
    )
    def test_parameters_in_other_types(self, name, value, expected, tmp_path, capsys):
        imputer = quick().set_params(**{name: value}).fit(holes())
        imputer.save(tmp_path / "a.grape")
        assert getattr(GrapeImputer.load(tmp_path / "a.grape"), name) == expected
        assert ("Progress(" in capsys.readouterr().out) == (name == "callbacks")

    def test_a_preset_of_ones_own(self, tmp_path):
        preset = get_preset("paper").change(**QUICK, dropout=(0.1, 0.2))
        imputer = GrapeImputer(preset, random_state=0).fit(holes())
        imputer.save(tmp_path / "a.grape")
        loaded = GrapeImputer.load(tmp_path / "a.grape")
        assert loaded.preset == preset
        np.testing.assert_array_equal(loaded.transform(holes()), imputer.transform(holes()))

    def test_without_a_network(self, tmp_path):
        X = pl.DataFrame({"tags": [["a"], None]})
        imputer = quick(kinds={"tags": "passthrough"}).fit(X)
        imputer.save(tmp_path / "a.grape")
        assert GrapeImputer.load(tmp_path / "a.grape").transform(X).equals(X)

    def test_before_fit(self, tmp_path):
        with pytest.raises(NotFittedError):
            quick().save(tmp_path / "a.grape")
        assert list(tmp_path.iterdir()) == []
