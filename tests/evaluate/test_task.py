"""Tables as numbers for imputers that take nothing else, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapefill.errors import InputError
from grapefill.evaluate.task import MOST_INDICATORS, Decoder, Task
from grapefill.table import Schema, Table


def task(native: Any, hidden: np.ndarray | None = None) -> Task:
    table = Table.wrap(native)
    schema = Schema.infer(table)
    encoded = schema.encode(table)
    return Task(native, schema, encoded.numbers, ~encoded.observed if hidden is None else hidden)


FRAME = pd.DataFrame(
    {
        "a": [10.0, np.nan, 30.0, 20.0],
        "c": pd.Series(["x", "y", None, "y"], dtype="category"),
        "b": pd.array([True, None, False, True], dtype="boolean"),
    }
)


def test_indicators_leave_out_the_most_frequent_category() -> None:
    numbers, decoder = task(FRAME).as_numbers("indicators", scaled=True)
    gap = np.nan
    expected = [[0, 1, 0], [gap, 0, gap], [1, gap, 1], [0.5, 0, 0]]
    np.testing.assert_array_equal(numbers, expected)
    assert decoder.width == 3


def test_codes() -> None:
    numbers, _ = task(FRAME).as_numbers("codes", scaled=False)
    gap = np.nan
    np.testing.assert_array_equal(numbers, [[10, 0, 1], [gap, 1, gap], [30, gap, 0], [20, 1, 1]])


def test_many_categories_are_codes_in_any_case() -> None:
    frame = pd.DataFrame({"c": pd.Categorical([f"{i:02}" for i in range(MOST_INDICATORS + 1)] * 2)})
    numbers, _ = task(frame).as_numbers("indicators", scaled=False)
    assert numbers[:, 0].tolist() == list(range(MOST_INDICATORS + 1)) * 2


def test_the_likeliest_category_is_the_answer() -> None:
    frame = pd.DataFrame({"c": pd.Categorical(["p", "q", "q", "r", "r", "r", None, None, None])})
    one = task(frame)
    numbers, decoder = one.as_numbers("indicators", scaled=True)
    filled = numbers.copy()
    # Columns are for p and q; r is what is left.
    filled[6:] = [[0.5, 0.2], [0.2, 0.45], [0.3, 0.3]]
    assert decoder.decode(filled, one.hidden)[6:, 0].tolist() == [0, 1, 2]
    numbers, decoder = one.as_numbers("codes", scaled=True)
    filled = numbers.copy()
    filled[6:] = [[-3.0], [0.6], [7.0]]
    assert decoder.decode(filled, one.hidden)[6:, 0].tolist() == [0, 1, 2]


@given(
    seed=st.integers(0, 1000),
    rows=st.integers(2, 30),
    coding=st.sampled_from(["codes", "indicators"]),
    scaled=st.booleans(),
)
def test_what_goes_in_comes_back(seed: int, rows: int, coding: Any, scaled: bool) -> None:
    random = np.random.default_rng(seed)
    numbers = np.column_stack(
        [random.normal(size=rows) * 1e6, random.integers(0, 4, rows), random.integers(0, 30, rows)]
    ).astype(float)
    discrete = np.array([False, True, True])
    written, decoder = Decoder.make(numbers, discrete, coding, scaled=scaled)
    back = decoder.decode(written, np.ones(numbers.shape, dtype=bool))
    np.testing.assert_allclose(back, numbers, rtol=1e-12, atol=1e-6)
    np.testing.assert_array_equal(back[:, 1:], numbers[:, 1:])


def test_answers_of_the_wrong_shape_or_with_holes_are_refused() -> None:
    one = task(FRAME)
    numbers, decoder = one.as_numbers("indicators", scaled=True)
    with pytest.raises(InputError, match=r"returned a table of shape \(4, 2\) instead of \(4, 3\)"):
        decoder.decode(numbers[:, :2], one.hidden)
    with pytest.raises(InputError, match="left 1 hidden cells empty"):
        decoder.decode(numbers, one.hidden)
    with pytest.raises(InputError, match=r"shape \(4, 1\) instead of \(4, 3\)"):
        one.read(FRAME[["a"]])
    with pytest.raises(InputError, match="left 3 hidden cells empty"):
        one.read(FRAME)


def test_reading_a_filled_table() -> None:
    filled = FRAME.copy()
    filled["a"] = filled["a"].fillna(12.5)
    filled["c"] = filled["c"].cat.add_categories("new").fillna("new")
    filled["b"] = filled["b"].fillna(False)
    read = task(FRAME).read(filled)
    assert read[1, 0] == 12.5
    assert np.isnan(read[2, 1])
    assert read[1, 2] == 0
