"""Labels from any container, some of them not known."""

from __future__ import annotations

import datetime
import decimal
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.exceptions import DataConversionWarning

from grapefill.errors import GrapefillWarning, InputError
from grapefill.table.labels import Labels

N = np.nan


def learn(y, task="regression", n_rows=None):
    return Labels.learn(y, task=task, n_rows=len(y) if n_rows is None else n_rows)


def assert_numbers(found, *expected):
    """Compare with the columns that are expected."""
    np.testing.assert_array_equal(found, np.column_stack(expected).astype(np.float64))


FLOATS = [1.5, None, -2.0]
WHOLE = [1, None, -2]

NUMBERS = [
    pytest.param([1.5, None, -2.0], id="list"),
    pytest.param((1.5, N, -2.0), id="tuple"),
    pytest.param(np.array([1.5, N, -2.0], dtype=np.float32), id="float32"),
    pytest.param(np.array([1.5, pd.NA, -2], dtype=object), id="objects"),
    pytest.param(pd.Series(FLOATS, index=[9, 9, 0], name="x"), id="Series"),
    pytest.param(pd.Series(FLOATS, dtype="Float64"), id="Float64"),
    pytest.param(pd.array(FLOATS, dtype="Float64"), id="pandas array"),
    pytest.param(pd.Index([1.5, N, -2.0]), id="Index"),
    pytest.param(pd.Series(FLOATS, dtype="float64[pyarrow]"), id="pandas by pyarrow"),
    pytest.param(pl.Series(FLOATS), id="polars"),
    pytest.param(pl.Series("x", [1.5, N, -2.0], dtype=pl.Float32), id="polars with NaN"),
    pytest.param(pl.Series([decimal.Decimal("1.5"), None, decimal.Decimal(-2)]), id="decimal"),
    pytest.param(pa.array(FLOATS), id="pyarrow"),
    pytest.param(pa.chunked_array([FLOATS[:1], FLOATS[1:]]), id="chunks"),
    pytest.param(torch.tensor([1.5, N, -2.0]), id="torch"),
]


@pytest.mark.parametrize("y", NUMBERS)
def test_numbers(y):
    labels, numbers = learn(y)
    assert_numbers(numbers, [1.5, N, -2.0])
    assert labels.n_categories == (0,)
    assert labels.flat
    np.testing.assert_array_equal(labels.numbers(numbers), [1.5, N, -2.0])


@pytest.mark.parametrize(
    "y",
    [
        pytest.param([[1, None], [None, 2.5], [3, 4]], id="lists"),
        pytest.param(np.array([[1, N], [N, 2.5], [3, 4]]), id="array"),
        pytest.param(pd.DataFrame({"b": [1, None, 3], "a": [None, 2.5, 4]}), id="pandas"),
        pytest.param(
            pd.DataFrame({0: pd.array([1, None, 3], dtype="Int8"), "a": [None, 2.5, 4]}),
            id="names of several types",
        ),
        pytest.param(pl.DataFrame({"b": [1, None, 3], "a": [None, 2.5, 4.0]}), id="polars"),
        pytest.param(pa.table({"b": [1, None, 3], "a": [None, 2.5, 4.0]}), id="pyarrow"),
    ],
)
def test_several_columns_of_numbers(y):
    labels, numbers = learn(y, n_rows=3)
    assert_numbers(numbers, [1, N, 3], [N, 2.5, 4])
    assert labels.n_categories == (0, 0)
    assert not labels.flat
    assert labels.numbers(numbers).shape == (3, 2)


HUGE, FLAGS = [2**60, 2**60 + 1], [False, True]
ENUM = pl.Enum(["b", "c", "a"])

CLASSES = [
    pytest.param(["no", None, "yes"], ["no", "yes"], [0, N, 1], id="list"),
    pytest.param(["yes", N, "no"], ["no", "yes"], [1, N, 0], id="list with NaN"),
    pytest.param(["None", "nan", "x"], ["None", "nan", "x"], [0, 1, 2], id="words"),
    pytest.param(np.array(["yes", "no"]), ["no", "yes"], [1, 0], id="text"),
    pytest.param(np.array(["b", None, "a"], dtype=object), ["a", "b"], [1, N, 0], id="objects"),
    pytest.param([True, None, False], [False, True], [1, N, 0], id="booleans"),
    pytest.param(np.array([True, False]), [False, True], [1, 0], id="bool"),
    pytest.param([30, 4, 30], [4, 30], [1, 0, 1], id="integers"),
    pytest.param([30, None, 4], [4, 30], [1, N, 0], id="integers and None"),
    pytest.param([3.0, N, -1.0], [-1.0, 3.0], [1, N, 0], id="floats"),
    pytest.param(pd.Series([2**60 + 1, None, 2**60], dtype="Int64"), HUGE, [1, N, 0], id="Int64"),
    pytest.param(pd.Series([True, None, False], dtype="boolean"), FLAGS, [1, N, 0], id="boolean"),
    pytest.param(pd.Series(["b", None, "a"], dtype="string"), ["a", "b"], [1, N, 0], id="string"),
    pytest.param(
        pd.Series(pd.Categorical(["z", None, "a"], categories=["z", "q", "a"], ordered=True)),
        ["a", "z"],
        [1, N, 0],
        id="category",
    ),
    pytest.param(pd.Categorical([10, 2, 10]), [2, 10], [1, 0, 1], id="category of integers"),
    pytest.param(pl.Series(["b", None, "a"]), ["a", "b"], [1, N, 0], id="polars"),
    pytest.param(pl.Series(["b", None, "a"], dtype=ENUM), ["a", "b"], [1, N, 0], id="enum"),
    pytest.param(pl.Series([True, None, False]), [False, True], [1, N, 0], id="polars booleans"),
    pytest.param(pa.array(["b", None, "a"]), ["a", "b"], [1, N, 0], id="pyarrow"),
    pytest.param(
        pa.array(["b", None, "a"]).dictionary_encode(), ["a", "b"], [1, N, 0], id="dictionary"
    ),
    pytest.param(pa.chunked_array([[7], [None, 5]]), [5, 7], [1, N, 0], id="chunks"),
]


@pytest.mark.parametrize(("y", "classes", "codes"), CLASSES)
def test_classes(y, classes, codes):
    labels, numbers = learn(y, "classification")
    assert_numbers(numbers, codes)
    assert labels.classes.tolist() == classes
    assert {type(value) for value in labels.classes.tolist()} == {type(classes[0])}
    assert labels.n_categories == (len(classes),)
    # Like any other, and as it comes from a file.
    again = Labels.from_dict(json.loads(json.dumps(labels.to_dict())))
    assert again == labels
    np.testing.assert_array_equal(again.classes, labels.classes, strict=True)
    np.testing.assert_array_equal(again.encode(y, n_rows=len(y)), numbers)


@pytest.mark.parametrize(
    ("y", "only"),
    [(pd.Series([True, None], dtype="boolean"), "True"), (["a", "a"], "'a'"), ([0.0, N], "0.0")],
)
def test_one_class_is_not_enough(y, only):
    with pytest.raises(InputError, match=f"of one class, {only}: .* at least two"):
        learn(y, "classification")


@pytest.mark.parametrize("y", [np.array([[1], [0]]), [["a"], ["b"]], pd.DataFrame({"y": [1, 0]})])
def test_a_column_of_classes_is_flat_in_the_end(y):
    with pytest.warns(DataConversionWarning, match="ravel"):
        labels, numbers = learn(y, "classification")
    assert labels.flat
    assert numbers.shape == (2, 1)


def test_classes_that_cannot_be_sorted_keep_their_order():
    y = pd.Series(pd.Categorical(["a", 1, None], categories=["a", 1]))
    labels, numbers = learn(y, "classification")
    assert labels.classes.tolist() == ["a", 1]
    assert_numbers(numbers, [0, 1, N])


def test_a_column_of_numbers_stays_one():
    labels, numbers = learn(np.array([[1.0], [2.0]]))
    assert not labels.flat
    assert labels.numbers(numbers).shape == (2, 1)


def test_booleans_are_numbers_to_a_regressor():
    labels, numbers = learn(pd.Series([True, None, False], dtype="boolean"))
    assert_numbers(numbers, [1, N, 0])
    assert labels.n_categories == (0,)
    np.testing.assert_array_equal(labels.numbers(np.array([[0.25]])), [0.25])


def test_large_integers_are_told_apart():
    labels, numbers = learn(np.array([2**60, 2**60 + 1]))
    assert numbers[1, 0] - numbers[0, 0] == 1
    assert labels.numbers(numbers)[0] == 2.0**60


def test_predicted_numbers_are_not_cut_off():
    """Other than what fills a hole, a label may be one that nobody has seen."""
    labels, _ = learn([1, 2, 3])
    np.testing.assert_array_equal(labels.numbers(np.array([[-0.5], [9.75]])), [-0.5, 9.75])


class TestFurtherLabels:
    def test_of_another_container(self):
        labels, _ = learn([1.0, 2.0])
        assert_numbers(labels.encode(pd.Series([5, None], dtype="Int64"), n_rows=2), [5, N])
        assert_numbers(labels.encode([None, None], n_rows=2), [N, N])

    def test_a_class_that_was_not_there_is_missing(self):
        labels, _ = learn(["a", "b"], "classification")
        with pytest.warns(GrapefillWarning, match=r"not there at fit.*'c'"):
            numbers = labels.encode(["b", "c", None], n_rows=3)
        assert_numbers(numbers, [1, N, N])

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (None, "y is None"),
            ([1.0], "X has 2 rows, y has 1 labels"),
            ([1.0, np.inf], "infinity: the label of row 1"),
            ([[1.0, 2.0], [3.0, 4.0]], "y has 2 columns, at fit it had 1"),
            (["a", "b"], "a regressor predicts numbers"),
            ([datetime.date(2020, 1, 1)] * 2, "a regressor predicts numbers"),
        ],
    )
    def test_bad_ones(self, y, message):
        labels, _ = learn([1.0, 2.0])
        with pytest.raises(InputError, match=message):
            labels.encode(y, n_rows=2)


def test_texts_that_are_nearly_all_different():
    texts = [f"name {k}" for k in range(30)]
    with pytest.raises(InputError, match="y holds 30 different texts in 30 rows, like free text"):
        learn([*texts, None], "classification")
    assert learn(texts[:15] * 2, "classification")[0].classes.size == 15
    assert learn(texts[:19], "classification")[0].classes.size == 19
    # Whoever declares categories means them.
    assert learn(pd.Series(texts, dtype="category"), "classification")[0].classes.size == 30
