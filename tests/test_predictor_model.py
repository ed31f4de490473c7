"""The predictors around their predictions: importance, files, training, modules of one's own."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance

from grapefill import GrapeClassifier, GrapeImputer, GrapeRegressor
from grapefill.errors import GrapefillError, GrapefillWarning, InputError, ModelFileError
from grapefill.files.model import read_model, write_model
from grapefill.training import Progress

QUICK = {
    **{"layers": 1, "width": 8, "edge_width": 8, "head_width": 8, "max_steps": 8},
    **{"rounds": 1, "trees": 4, "early_trees": 2, "trial_trees": 4},
}
BOTH = pytest.mark.parametrize("estimator", [GrapeRegressor, GrapeClassifier])
PRESETS = ["default", "fast", "paper"]


def quick(estimator=GrapeRegressor, *, preset="fast", settings=None, **parameters):
    parameters.setdefault("random_state", 0)
    return estimator(preset, settings=QUICK | (settings or {}), **parameters)


def table(estimator=GrapeRegressor, rows=60, seed=0):
    """Return a frame with holes, and numbers or words that depend on its column "b"."""
    rng = np.random.default_rng(seed)
    b = rng.normal(size=rows)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=rows).astype(np.float32),
            "b": b,
            "word": pd.Categorical(rng.choice(["red", "green"], size=rows)),
            "whole": pd.array(rng.integers(9, size=rows), dtype="Int64"),
        }
    )
    holes = pd.DataFrame(rng.random(frame.shape) < 0.15, columns=frame.columns)
    y = 3 * b if estimator is GrapeRegressor else np.where(b > 0, "high", "low")
    return frame.mask(holes), y


def outcome(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


def assert_same(first, second, X):
    np.testing.assert_array_equal(outcome(first, X), outcome(second, X))
    pd.testing.assert_frame_equal(first.impute(X), second.impute(X), check_exact=True)


class TestImpute:
    @BOTH
    @pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow", "numpy"])
    def test_fills_every_hole_and_changes_nothing_else(self, estimator, container):
        X, y = table(estimator)
        model = quick(estimator)
        if container == "numpy":
            X = X[["a", "b"]].to_numpy()
            filled = model.fit(X, y).impute(X)
            assert filled.dtype == X.dtype
            np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
            assert np.isfinite(filled).all()
            return
        if container == "polars":
            X = pl.from_pandas(X)
        elif container == "pyarrow":
            X = pa.Table.from_pandas(X, preserve_index=False)
        filled = model.fit(X, y).impute(X)
        assert type(filled) is type(X)
        if container == "pandas":
            pd.testing.assert_series_equal(filled.dtypes, X.dtypes)
            pd.testing.assert_frame_equal(filled.mask(X.isna()), X, check_exact=True)
            assert not filled.isna().any(axis=None)
            return
        assert filled.schema == X.schema
        before, after = pl.DataFrame(X), pl.DataFrame(filled)
        for name in before.columns:
            seen = before[name].is_not_null()
            assert after[name].filter(seen).equals(before[name].filter(seen))
            assert after[name].null_count() == 0

    def test_what_the_table_shows_is_filled_in(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=200)
        truth = np.column_stack([x, 2 * x, -x])
        X = np.where(rng.random(truth.shape) < 0.2, np.nan, truth)
        filled = quick().fit(X, x**2).impute(X)
        holes = np.isnan(X) & (np.isnan(X).sum(axis=1) == 1)[:, None]
        assert np.abs(filled - truth)[holes].mean() < 0.3 * np.abs(truth)[holes].mean()

    def test_columns_that_are_not_used_stay_as_they_are(self):
        X, y = table()
        X = X.assign(empty=np.nan, note=["n"] * 59 + [None])
        model = quick(kinds={"note": "passthrough"})
        with pytest.warns(GrapefillWarning, match="no observed value and are not used: 'empty'"):
            model.fit(X, y)
        filled = model.impute(X)
        assert list(filled) == list(X)
        pd.testing.assert_frame_equal(filled[["empty", "note"]], X[["empty", "note"]])
        assert not filled[["a", "b", "word", "whole"]].isna().any(axis=None)
        assert set(model.column_importance(X, y)) == set(X)
        assert model.column_importance(X, y)["empty"] == 0


@pytest.fixture(scope="module", params=[GrapeRegressor, GrapeClassifier])
def judged(request):
    X, y = table(request.param, 150)
    model = quick(request.param, settings={"rounds": 2, "trees": 8}).fit(X, y)
    return model, *table(request.param, 150, seed=1)


class TestImportance:
    def test_the_column_that_matters_is_found(self, judged):
        model, X, y = judged
        before = outcome(model, X)
        drops = model.column_importance(X, y)
        assert list(drops) == ["a", "b", "word", "whole"]
        assert drops["b"] > 0.3
        assert all(abs(drops[name]) < drops["b"] / 3 for name in ("a", "word", "whole"))
        np.testing.assert_array_equal(outcome(model, X), before)

    def test_the_drop_is_that_of_a_table_without_the_column(self, judged):
        model, X, y = judged
        hidden = X.assign(b=np.nan)
        drops = model.column_importance(X, y)
        assert drops["b"] == model.score(X, y) - model.score(hidden, y)

    def test_scoring_by_name_and_by_function(self, judged):
        model, X, y = judged
        name = "neg_log_loss" if hasattr(model, "classes_") else "neg_mean_absolute_error"
        drops = model.column_importance(X, y, scoring=name)
        assert max(drops, key=drops.get) == "b"
        assert drops["b"] != model.column_importance(X, y)["b"]
        ones = model.column_importance(X, y, scoring=lambda *_: 1.0)
        assert set(ones.values()) == {0.0}

    def test_columns_of_an_array_go_by_position(self):
        X, y = table()
        numbers = X[["a", "b"]].to_numpy()
        drops = quick().fit(numbers, y).column_importance(numbers, y)
        assert list(drops) == [0, 1]
        assert drops[1] > drops[0]

    def test_permutation_importance(self, judged):
        model, X, y = judged
        found = permutation_importance(model, X, y, n_repeats=2, random_state=0)
        assert found.importances_mean.argmax() == 1
        assert found.importances_mean[1] > 0.3


class TestFile:
    @BOTH
    @pytest.mark.parametrize("preset", PRESETS)
    def test_output_is_bit_equal(self, estimator, preset, tmp_path):
        X, y = table(estimator)
        some = pd.Series(y).where(np.arange(60) > 4)
        model = quick(estimator, preset=preset).fit(X, some)
        model.save(tmp_path / "a.grape")
        loaded = estimator.load(tmp_path / "a.grape")
        assert_same(loaded, model, X)
        assert loaded.labels_ == model.labels_
        assert loaded.history_ == model.history_
        assert loaded.summary() == model.summary()
        assert loaded.feature_names_in_.tolist() == list(X)
        if estimator is GrapeClassifier:
            np.testing.assert_array_equal(loaded.classes_, model.classes_, strict=True)

    def test_in_another_process(self, tmp_path):
        X, y = table(GrapeClassifier)
        model = quick(GrapeClassifier).fit(X, y)
        model.save(tmp_path / "a.grape")
        X.to_pickle(tmp_path / "X.pickle")
        script = (
            "import sys, numpy, pandas; from grapefill import GrapeClassifier as C\n"
            "path = sys.argv[1]; X = pandas.read_pickle(path + '/X.pickle')\n"
            "numpy.save(path + '/found.npy', C.load(path + '/a.grape').predict_proba(X))"
        )
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
        np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), model.predict_proba(X))

    @pytest.mark.parametrize("y", [np.arange(120.0).reshape(60, 2), np.arange(60.0)[:, None]])
    def test_shapes_survive(self, y, tmp_path):
        X, _ = table()
        model = quick().fit(X, y)
        model.save(tmp_path / "a.grape")
        found = GrapeRegressor.load(tmp_path / "a.grape").predict(X)
        assert found.shape == y.shape
        np.testing.assert_array_equal(found, model.predict(X))

    def test_factors_survive(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 26)) + 0.1 * rng.normal(size=(80, 26))
        model = quick().fit(X, X.sum(axis=1))
        assert model.model_.linear is not None
        path = tmp_path / "a.grape"
        model.save(path)
        loaded = GrapeRegressor.load(path)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        file = read_model(path)
        for name, tensor in {
            "linear.shares": torch.full((27,), 1.5, dtype=torch.float64),
            "linear.noise": torch.zeros(27, dtype=torch.float64),
            "linear.center": torch.zeros(3, dtype=torch.float64),
            "scaling.scale": torch.ones(26, dtype=torch.float64),
        }.items():
            assert name in file.tensors
            odd = {"tensors": file.tensors | {name: tensor}, "description": file.description}
            write_model(path, estimator="GrapeRegressor", **odd)
            with pytest.raises(ModelFileError, match=r"Cannot load.*fit again"):
                GrapeRegressor.load(path)

    def test_parameters_survive(self, tmp_path):
        X, y = table(GrapeClassifier)
        parameters = {"class_weight": {"high": 2.0, "low": 1.0}, "time_limit": 60.0}
        model = quick(GrapeClassifier, kinds={"word": "categorical"}, **parameters).fit(X, y)
        model.save(tmp_path / "a.grape")
        loaded = GrapeClassifier.load(tmp_path / "a.grape")
        expected = model.get_params() | {"missing_values": loaded.missing_values}
        assert loaded.get_params() == expected
        assert_same(loaded.fit(X, y), model, X)

    @pytest.mark.parametrize(
        ("classes", "weights"),
        [
            ([0, 1], {0: 1, 1: 5}),
            ([0, 1], {np.int64(0): 1, np.int64(1): np.float64(5)}),
            ([False, True], {False: 1.0, True: 5.0}),
            ([0.0, 1.0], {0.0: 1, 1.0: np.int64(5)}),
            (["low", "high"], {np.str_("low"): 1, np.str_("high"): 5}),
            ([0, 1], "balanced"),
        ],
    )
    def test_weights_of_any_classes_survive(self, classes, weights, tmp_path):
        X, y = table(GrapeClassifier)
        labels = np.array(classes)[(y == "high").astype(int)]
        model = quick(GrapeClassifier, class_weight=weights).fit(X, labels)
        model.save(tmp_path / "a.grape")
        loaded = GrapeClassifier.load(tmp_path / "a.grape")
        assert loaded.class_weight == weights
        if weights != "balanced":
            assert [type(key) for key in loaded.class_weight] == [type(each) for each in classes]
        assert_same(loaded.fit(X, labels), model, X)

    def test_another_estimator_says_so(self, tmp_path):
        X, y = table(GrapeClassifier)
        quick(GrapeClassifier).fit(X, y).save(tmp_path / "a.grape")
        for other in (GrapeRegressor, GrapeImputer):
            with pytest.raises(ValueError, match=r"holds a GrapeClassifier.*GrapeClassifier\.load"):
                other.load(tmp_path / "a.grape")

    @BOTH
    def test_before_fit(self, estimator, tmp_path):
        X, y = table(estimator)
        model = quick(estimator)
        names = ["predict", "impute", "encode", "refresh"]
        names += ["predict_proba", "decision_function"] * (estimator is GrapeClassifier)
        calls = [lambda name=name: getattr(model, name)(X) for name in names]
        calls += [lambda: model.save(tmp_path / "a.grape"), model.summary]
        calls += [lambda: model.column_importance(X, y), lambda: model.score(X, y)]
        for call in calls:
            with pytest.raises(NotFittedError):
                call()


class TestRandomness:
    @BOTH
    @pytest.mark.parametrize("preset", PRESETS)
    def test_same_seed_same_result(self, estimator, preset):
        X, y = table(estimator)
        weights = 1.0 + np.arange(60) % 2
        first, second = (
            quick(estimator, preset=preset).fit(X, y, sample_weight=weights) for _ in range(2)
        )
        assert_same(first, second, X)
        assert first.history_.loss == second.history_.loss
        third = quick(estimator, preset=preset, random_state=1).fit(X, y, sample_weight=weights)
        assert not np.array_equal(outcome(third, X), outcome(first, X))

    def test_a_second_fit_knows_nothing_of_the_first(self):
        X, y = table(GrapeClassifier)
        model = quick(GrapeClassifier).fit(X.to_numpy(dtype=object)[:, :2], np.arange(60) % 3)
        assert_same(model.fit(X, y), quick(GrapeClassifier).fit(X, y), X)
        assert model.classes_.tolist() == ["high", "low"]
        model.fit(X[["a", "b"]].to_numpy(), y)
        assert model.n_features_in_ == 2
        assert not hasattr(model, "feature_names_in_")


class TestTraining:
    def test_time_limit(self):
        X, y = table()
        model = quick(time_limit=1e-9, settings={"max_steps": 1000}).fit(X, y)
        assert model.history_.stopped == "time limit"
        assert len(model.history_.step) == 1
        assert np.isfinite(model.predict(X)).all()

    def test_callbacks_get_every_step_and_forest(self):
        X, y = table()
        seen = []
        model = quick(callbacks=[seen.append]).fit(X, y)
        assert all(isinstance(progress, Progress) for progress in seen)
        steps = [progress.step for progress in seen if progress.stage == "network"]
        assert steps == model.history_.step == list(range(1, 9))
        # The trial and the one round, each for four columns and the label.
        assert 5 < sum(progress.stage == "trees" for progress in seen) <= 10

    @BOTH
    @pytest.mark.parametrize("stage", ["network", "trees"])
    def test_an_interruption_keeps_what_is_there(self, estimator, stage):
        def interrupt(progress):
            if progress.stage == stage and progress.step >= 3:
                raise KeyboardInterrupt

        X, y = table(estimator)
        model = quick(estimator, callbacks=[interrupt])
        with pytest.warns(GrapefillWarning, match="interrupted"):
            model.fit(X, y)
        assert model.history_.stopped == "interrupted"
        assert model.model_.chain is None
        assert np.isfinite(outcome(model, X)).all()

    @BOTH
    def test_a_fit_that_fails_leaves_the_predictor_as_it_was(self, estimator):
        def fail(progress):
            raise RuntimeError("disk full")

        X, y = table(estimator)
        new = quick(estimator, callbacks=[fail])
        with pytest.raises(RuntimeError, match="disk full"):
            new.fit(X, y)
        assert [name for name in vars(new) if name.endswith("_")] == []

        model = quick(estimator).fit(X, y)
        attributes, before = dict(vars(model)), outcome(model, X)
        other = np.arange(60) % 5
        for change, labels in (({"callbacks": [fail]}, other), ({"callbacks": None}, other[:5])):
            with pytest.raises((RuntimeError, InputError)):
                model.set_params(**change).fit(X[["a", "b"]], labels)
        for name in ("model_", "history_", "schema_", "labels_", "classes_", "n_features_in_"):
            assert getattr(model, name, None) is attributes.get(name)
        np.testing.assert_array_equal(outcome(model, X), before)

    def test_verbose_shows_a_bar_and_silence_is_the_default(self, capfd):
        X, y = table()
        quick().fit(X, y).predict(X)
        assert capfd.readouterr() == ("", "")
        quick(verbose=True).fit(X, y)
        assert "loss" in "".join(capfd.readouterr())

    def test_divergence_is_an_error(self):
        X, y = table()
        settings = {"learning_rate": 1e30, "clip": 0.0, "schedule": "constant"}
        with pytest.raises(GrapefillError, match=r"Training diverged.*lower learning_rate"):
            quick(settings=settings).fit(X, y)
