"""`compare` ranks imputers on hidden cells, fairly, and says how sure it is."""

from __future__ import annotations

import json
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import accuracy
from benchmarks.data import load_features
from grapefill import GrapeImputer, compare
from grapefill.comparing import METHODS
from grapefill.errors import ConfigError, GrapefillWarning, InputError

if TYPE_CHECKING:
    from grapefill.evaluate import Comparison, Step

QUICK = {"max_steps": 20, "rounds": 1, "width": 8, "edge_width": 8, "head_width": 8}
CHEAP = ["mean", "KNN", "MICE"]


def mixed(rows: int = 150) -> pd.DataFrame:
    """Return a table whose columns tell a lot about each other, with some holes."""
    random = np.random.default_rng(0)
    x = random.normal(size=rows)
    frame = pd.DataFrame(
        {
            "size": 100 + 20 * x,
            "weight": 3 * x + 0.3 * random.normal(size=rows),
            "rooms": np.clip(np.rint(3 + x), 1, 6).astype(int),
            "class": np.where(x > 0.4, "big", np.where(x < -0.4, "small", "medium")),
            "heavy": x > 0,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.rint(100 * x), unit="D"),
        }
    )
    frame.loc[::9, "weight"] = np.nan
    return frame


def without_seconds(comparison: Comparison) -> dict[str, Any]:
    plain = comparison.to_dict()
    for method in plain["methods"]:
        method["seconds"] = None
    return plain


@pytest.fixture(scope="module")
def found() -> Comparison:
    methods: list[Any] = [*CHEAP, GrapeImputer("fast", settings=QUICK)]
    return compare(mixed(), methods, random_state=0)


def test_methods_that_use_other_columns_win(found: Comparison) -> None:
    names = [method.name for method in found.methods]
    assert set(names) == {*CHEAP, "GrapeImputer"}
    assert names[-1] == "mean"
    assert found.best == names[0]
    errors = [method.error for method in found.methods]
    assert errors == sorted(errors)
    assert found["mean"].error == pytest.approx(1, abs=0.15)
    assert found["KNN"].error < 0.6


def test_numbers_of_a_result(found: Comparison) -> None:
    for method in found.methods:
        assert len(method.repeats) == 3
        assert method.error == pytest.approx(np.mean(method.repeats))
        assert method.standard_error == pytest.approx(np.std(method.repeats, ddof=1) / 3**0.5)
        gaps = np.subtract(method.repeats, found.methods[0].repeats)
        assert method.behind == pytest.approx(gaps.mean())
        assert method.behind_error == pytest.approx(np.std(gaps, ddof=1) / 3**0.5)
        assert 0 <= method.categories <= 1
        assert method.seconds > 0
        assert set(method.columns) == set(mixed().columns)
    kinds = {column.name: column.kind for column in found.columns}
    assert kinds["class"] == "categorical"
    assert kinds["since"] == "datetime"
    hidden = {column.name: column.hidden for column in found.columns}
    assert 60 < hidden["size"] < 120
    numbers = [name for name, kind in kinds.items() if kind not in ("categorical", "boolean")]
    weights = [hidden[name] for name in numbers]
    expected = np.average([found["KNN"].columns[name] for name in numbers], weights=weights)
    assert found["KNN"].numbers == pytest.approx(expected)


def test_ways_to_look_at_it(found: Comparison) -> None:
    text = str(found)
    assert text.startswith("20% of the observed cells (MCAR) of 150 rows and 6 columns were hidden")
    assert "wrong categories" in text
    assert found.recommendation.split("'")[1] in text
    frame = found.to_pandas()
    assert list(frame.index) == [method.name for method in found.methods]
    assert frame.loc["mean", "error"] == found["mean"].error
    columns = found.columns_to_pandas()
    assert columns.loc["size", "KNN"] == found["KNN"].columns["size"]
    assert json.loads(json.dumps(found.to_dict()))["best"] == found.best
    assert "<td>KNN</td>" in found._repr_html_()
    with pytest.raises(KeyError):
        found["nobody"]


def test_the_seed_decides_and_randomness_left_open_follows_from_it() -> None:
    trees = IterativeImputer(sample_posterior=True, max_iter=2)
    methods = {"drawn": trees, "network": GrapeImputer("fast", settings=QUICK)}
    runs = [
        without_seconds(compare(mixed(60), methods, repeats=2, random_state=seed))
        for seed in (5, 5, 6)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    assert trees.random_state is None


def test_methods_get_the_same_cells_to_fill_and_never_see_them() -> None:
    seen: list[pd.DataFrame] = []

    def spy(table: pd.DataFrame) -> pd.DataFrame:
        seen.append(table.copy())
        return mixed()

    truth = mixed()
    both = compare(truth, {"a": spy, "b": spy}, repeats=2, random_state=0)
    assert len(seen) == 4
    pd.testing.assert_frame_equal(seen[0], seen[1])
    assert not seen[0].equals(seen[2])
    gone = seen[0].isna() & truth.notna()
    assert gone.to_numpy().mean() == pytest.approx(0.2, abs=0.05)
    # What the function says is the truth, where there is one.
    assert both["a"].error == 0


@pytest.mark.parametrize("container", ["numpy", "polars", "pyarrow", "list"])
def test_containers(container: str) -> None:
    frame = mixed(80)
    native = {
        "numpy": frame[["size", "weight", "rooms"]].to_numpy(),
        "polars": pl.from_pandas(frame),
        "pyarrow": pa.Table.from_pandas(frame),
        "list": frame[["size", "class"]].to_numpy().tolist(),
    }[container]
    methods = {"KNN": "KNN", "mean": "mean", "network": GrapeImputer("fast", settings=QUICK)}
    result = compare(native, methods, repeats=1, random_state=0)
    assert not any(method.failure for method in result.methods)
    assert result["KNN"].error < result["mean"].error


def test_imputers_of_numbers_get_their_own_units_and_may_be_pipelines() -> None:
    seen = []

    class Spy(SimpleImputer):
        def fit_transform(self, X: Any, y: Any = None) -> Any:
            seen.append(X)
            return super().fit_transform(X)

    scaled = make_pipeline(StandardScaler(), KNNImputer())
    result = compare(mixed(), {"spy": Spy(), "scaled": scaled}, repeats=1, random_state=0)
    assert not result["spy"].failure
    assert 90 < np.nanmean(seen[0][:, 0]) < 110
    # Three classes make two columns, the other five one each.
    assert seen[0].shape == (150, 7)
    # The pipeline answers in other units, which the error shows.
    assert result["scaled"].error > 1


def test_objects_that_are_no_estimators_of_scikit_learn() -> None:
    class Halves:
        def fit_transform(self, numbers: np.ndarray) -> np.ndarray:
            return np.nan_to_num(numbers, nan=0.5)

    result = compare(mixed(60), [Halves()], repeats=1, random_state=0)
    assert result.best == "Halves"
    assert not result["Halves"].failure


def test_a_method_alone() -> None:
    result = compare(mixed(), {"KNN": "KNN", "broken": Broken()}, random_state=0)
    assert result.recommendation.startswith("Only 'KNN' worked; it leaves ")


class Broken(BaseEstimator):
    def fit_transform(self, X: Any) -> Any:
        raise RuntimeError("no <b>such</b> luck\nand more")


def test_a_method_that_fails_does_not_end_the_run() -> None:
    methods = {
        "broken": Broken(),
        "fewer": lambda table: table.iloc[:, :2],
        "lazy": lambda table: table,
        "numbers": lambda table: np.zeros((len(table), 6)),
        "constant": SimpleImputer(add_indicator=True),
        "mean": "mean",
        "KNN": "KNN",
    }
    result = compare(mixed(), methods, repeats=2, random_state=0)
    assert result.best == "KNN"
    failures = {method.name: method.failure for method in result.methods if method.failure}
    assert failures["broken"] == "RuntimeError: no <b>such</b> luck\nand more"
    assert failures["fewer"] == (
        "InputError: It returned a table of shape (150, 2) instead of (150, 6)."
    )
    assert "hidden cells empty" in failures["lazy"]
    assert failures["numbers"].startswith("SchemaError: Column 'class' is ")
    assert "instead of (150, 7)" in failures["constant"]
    assert "broken failed: RuntimeError: no <b>such</b> luck\n" in str(result)
    assert "no &lt;b&gt;such" in result._repr_html_()
    assert result["broken"].error is None
    json.dumps(result.to_dict())


def test_all_fail() -> None:
    result = compare(mixed(), [Broken()], repeats=1)
    assert result.best is None
    assert result.recommended is None
    assert result.ties == ()
    assert result.recommendation == "All methods failed, so none can be recommended."
    assert "failed" in str(result)


def test_ties_are_named_and_the_fastest_of_them_is_chosen() -> None:
    import time

    def slow(numbers: np.ndarray) -> np.ndarray:
        time.sleep(0.02)
        return KNNImputer().fit_transform(numbers)

    def quick(numbers: np.ndarray) -> np.ndarray:
        return KNNImputer().fit_transform(numbers)

    table = mixed()[["size", "weight"]].to_numpy()
    result = compare(table, [slow, quick, "mean"], random_state=0)
    assert result.ties == ("slow", "quick")
    assert result.recommended == "quick"
    assert "'slow' and 'quick' cannot be told apart with 3 repeats; use 'quick'" in (
        result.recommendation
    )
    assert "= 0.000 ± 0.000" in str(result)


def test_far_behind_is_no_tie_however_few_the_repeats() -> None:
    offsets = iter([0.0, 1.0])

    def good(numbers: np.ndarray) -> np.ndarray:
        return KNNImputer().fit_transform(numbers)

    def fickle(numbers: np.ndarray) -> np.ndarray:
        off = next(offsets) * np.nanstd(numbers, axis=0)
        return np.where(np.isnan(numbers), good(numbers) + off, numbers)

    table = mixed()[["size", "weight"]].to_numpy()
    result = compare(table, [good, fickle], repeats=2, random_state=0)
    assert result["fickle"].behind < 3 * result["fickle"].behind_error
    assert result.recommended == "good"


def test_a_clear_winner() -> None:
    sentence = compare(mixed(), ["mean", "KNN"], random_state=0).recommendation
    assert sentence.startswith("Use 'KNN': it leaves ")
    assert "the least of 2 methods; the next is 'mean' with" in sentence


def test_columns_that_know_nothing_of_each_other() -> None:
    table = np.random.default_rng(0).normal(size=(300, 4))
    result = compare(table, ["mean", "KNN"], random_state=0)
    assert result.recommended == "mean"
    assert result.recommendation.startswith("No method is better than filling with the median: ")


def test_one_repeat_has_no_uncertainty() -> None:
    result = compare(mixed(), ["mean", "KNN"], repeats=1, random_state=0)
    assert result["KNN"].standard_error is None
    assert result.ties == ("KNN",)
    assert "in the only repeat" in result.recommendation
    assert "±" not in str(result)


def test_long_tables_are_sampled() -> None:
    result = compare(mixed(400), CHEAP, repeats=1, max_rows=100, random_state=0)
    assert (result.rows, result.rows_given) == (100, 400)
    assert "100 of 400 rows, chosen at random, and 6 columns" in str(result)
    assert compare(mixed(400), ["mean"], repeats=1, max_rows=None).rows == 400


@pytest.mark.parametrize("mechanism", ["mar", "mnar"])
def test_other_mechanisms(mechanism: str) -> None:
    result = compare(mixed(), CHEAP, mechanism=mechanism, repeats=1, random_state=0)
    assert result.mechanism == mechanism
    assert mechanism.upper() in str(result)
    if mechanism == "mar":
        assert 0 in [column.hidden for column in result.columns]


def test_marks_kinds_and_columns_that_cannot_be_filled() -> None:
    frame = mixed()
    frame["weight"] = frame["weight"].fillna(-1)
    frame["person_id"] = range(len(frame))
    frame["nothing"] = np.nan
    frame["constant"] = 5.0
    frame["month"] = np.arange(len(frame)) % 12
    with pytest.warns(GrapefillWarning, match="'person_id'"):
        result = compare(
            frame, ["KNN", "mean"], kinds={"month": "categorical"}, missing_values=-1, repeats=1
        )
    hidden = {column.name: column.hidden for column in result.columns}
    assert hidden.keys() == {*mixed().columns, "month", "constant"}
    assert hidden["constant"] == 0
    assert 0 < hidden["weight"] < 45
    assert result["KNN"].columns["month"] <= 1
    assert "constant" not in result["KNN"].columns


def test_callbacks_tell_how_far_it_is() -> None:
    steps: list[Step] = []
    compare(mixed(50), ["mean", "KNN"], repeats=2, callbacks=[steps.append])
    assert [(step.done, step.method, step.repeat) for step in steps] == [
        (0, "mean", 1),
        (1, "KNN", 1),
        (2, "mean", 2),
        (3, "KNN", 2),
        (4, "", 2),
    ]
    assert all(step.steps == 4 for step in steps)
    assert np.isnan(steps[1].seconds_left)
    assert steps[2].seconds_left > steps[4].seconds_left == 0


def test_an_interrupt_keeps_finished_repeats() -> None:
    calls = []

    def stop_at(limit: int) -> Any:
        def fill(table: pd.DataFrame) -> pd.DataFrame:
            calls.append(table)
            if len(calls) == limit:
                raise KeyboardInterrupt
            return mixed()

        return fill

    with pytest.warns(GrapefillWarning, match="interrupted; it rests on 2 repeats"):
        result = compare(mixed(), {"truth": stop_at(3), "mean": "mean"}, random_state=0)
    assert result.repeats == 2
    assert len(result["mean"].repeats) == 2
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        compare(mixed(), {"truth": stop_at(1), "mean": "mean"}, random_state=0)


def test_an_imputer_that_was_interrupted_is_not_judged() -> None:
    def stop(progress: Any) -> None:
        if progress.step == 5:
            raise KeyboardInterrupt

    imputer = GrapeImputer("fast", settings=QUICK, callbacks=[stop])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrapefillWarning)
        with pytest.raises(KeyboardInterrupt):
            compare(mixed(60), [imputer], random_state=0)


def test_the_usual_methods_work_on_mixed_tables() -> None:
    names = ["MICE", "chained trees", "grapefill fast"]
    result = compare(mixed(60), names, repeats=1, random_state=0)
    assert {method.name for method in result.methods} == set(names)
    assert all(method.error < 0.6 for method in result.methods)
    for preset in ("fast", "default"):
        imputer = METHODS[f"grapefill {preset}"].make(3, {"a": "ordinal"})
        assert (imputer.preset, imputer.random_state) == (preset, 3)
        assert imputer.kinds == {"a": "ordinal"}


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("GRAPEFILL_DATA"),
    reason="GRAPEFILL_DATA does not name the folder of tables",
)
def test_it_ranks_as_the_benchmark_does() -> None:
    ours = {"mean": "mean", "mice": "MICE", "chained extra trees": "chained trees"}
    fields = {"dataset": "energy", "seed": 100, "missing": 0.3, "mechanism": "mcar"}
    measured = {name: accuracy.measure({**fields, "method": name}, None)["mae"] for name in ours}
    result = compare(load_features("energy"), list(ours.values()), repeats=2, random_state=0)
    expected = [ours[name] for name in sorted(measured, key=lambda name: measured[name])]
    assert [method.name for method in result.methods] == expected


def test_the_usual_methods_are_those_in_the_docstring() -> None:
    for name in METHODS:
        assert f'``"{name}"``' in str(compare.__doc__)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"methods": "KNN"}, ConfigError, r"methods must be a list .* Pass \['KNN'\]"),
        ({"methods": 3}, ConfigError, "methods must be a list or a dict"),
        ({"methods": []}, ConfigError, "methods is empty"),
        ({"methods": ["knn"]}, ConfigError, "no method 'knn'. Choose from 'mean', 'KNN', 'MICE'"),
        ({"methods": [KNNImputer]}, ConfigError, r"a class. Pass an instance: KNNImputer\(\)"),
        ({"methods": [3]}, ConfigError, "3 is not a method"),
        ({"rate": 1.5}, ConfigError, "rate must be"),
        ({"rate": 0}, ConfigError, "rate=0 hides no cell"),
        ({"repeats": 0}, ConfigError, "repeats must be a whole number of at least 1, got 0"),
        ({"repeats": 2.5}, ConfigError, "repeats must be a whole number"),
        ({"max_rows": 1}, ConfigError, "max_rows must be a whole number of at least 2"),
        ({"mechanism": "by hand"}, ConfigError, "mechanism must be one of"),
        ({"callbacks": print}, ConfigError, r"callbacks must be a sequence. Pass a list"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compare(mixed(30), **{"methods": ["mean"], **arguments})


def test_tables_with_nothing_to_compare() -> None:
    with pytest.raises(InputError, match=r"two or more columns .* this table has 1"):
        compare(pd.DataFrame({"a": [1.0, 2.0, 3.0]}), ["mean"])
    with pytest.raises(InputError, match="Every column is constant"):
        compare(np.ones((10, 2)), ["mean"])
