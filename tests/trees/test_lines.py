"""Trees with lines in their leaves: how good they are, and what they are as plain arrays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from grapefill.trees import Forest
from grapefill.trees.lines import FEWEST_ROWS, LineForest

COLUMNS = (3, 0, 5)


def sample(n_rows: int = 400, *, seed: int = 0) -> tuple[Any, Any]:
    """Return inputs and a smooth function of two of them."""
    inputs = np.random.default_rng(seed).uniform(-1, 1, (n_rows, 3)).astype(np.float32)
    exact = inputs.astype(np.float64)
    return inputs, np.sin(2 * exact[:, 0]) + exact[:, 1] ** 2


def grow(target: Any = None, **options: Any) -> LineForest:
    inputs, smooth = sample()
    options = {"n_trees": 6, "seed": 0, "columns": COLUMNS} | options
    return LineForest.fit(inputs, smooth if target is None else target, **options)


def test_lines_follow_a_smooth_function_closer_than_votes() -> None:
    inputs, target = sample(3_000)
    new, truth = sample(seed=1)
    votes = Forest.grow(inputs, target, columns=COLUMNS, n_trees=32, seed=0)
    lines = LineForest.fit(inputs, target, columns=COLUMNS, n_trees=8, seed=0)
    off = [np.abs(forest.numbers(new) - truth).mean() for forest in (lines, votes)]
    assert off[0] < 0.8 * off[1]


def test_a_linear_function_is_found_but_for_the_penalty() -> None:
    inputs, _ = sample()
    target = 2.0 + 3.0 * inputs[:, 0].astype(np.float64)
    np.testing.assert_allclose(grow(target).numbers(inputs), target, atol=0.1)


def test_a_line_does_not_run_away() -> None:
    _, target = sample()
    far = np.full((1, 3), 1e30, dtype=np.float32) * np.array([[1], [-1]], dtype=np.float32)
    reach = 0.2 * np.ptp(target)
    said = grow().votes(far)
    assert (said >= target.min() - reach).all()
    assert (said <= target.max() + reach).all()


@pytest.mark.parametrize(("factor", "shift"), [(1e-200, 0.0), (1e300, 0.0), (1.0, -1e6)])
def test_units_do_not_matter(factor: float, shift: float) -> None:
    inputs, target = sample()
    expected = grow().numbers(inputs) * factor + shift
    said = grow(target * factor + shift).numbers(inputs)
    np.testing.assert_allclose(said, expected, rtol=1e-5, atol=1e-6 * factor)


@pytest.mark.parametrize("target", [0.0, -7.25, 1e308, np.finfo(np.float64).max])
def test_a_target_of_one_value_is_that_value(target: float) -> None:
    inputs, _ = sample()
    np.testing.assert_allclose(grow(np.full(len(inputs), target)).numbers(inputs), target)


def test_inputs_that_are_all_alike_give_the_mean() -> None:
    inputs = np.ones((FEWEST_ROWS, 2), dtype=np.float32)
    target = np.arange(FEWEST_ROWS, dtype=np.float64)
    forest = LineForest.fit(inputs, target, columns=(0, 1), n_trees=3, seed=0)
    np.testing.assert_allclose(forest.numbers(inputs[:1]), target.mean())


def test_rows_that_count_more_pull_the_line() -> None:
    inputs, target = sample()
    two = np.r_[target, target + 1.0]
    options = {"columns": COLUMNS, "n_trees": 4, "seed": 0}
    heavy = np.r_[np.ones(len(target)), np.full(len(target), 1e6)]
    forest = LineForest.fit(np.r_[inputs, inputs], two, weights=heavy, **options)
    assert np.abs(forest.numbers(inputs) - target - 1.0).mean() < 0.2


def test_a_forest_depends_on_its_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grapefill.trees.lines.FEWEST_VISITS", 0)
    inputs, _ = sample()
    with ThreadPoolExecutor(2) as pool:
        threaded = grow(pool=pool)
    np.testing.assert_array_equal(grow().votes(inputs), threaded.votes(inputs))
    assert (grow(seed=1).votes(inputs) != threaded.votes(inputs)).any()


def test_a_row_alone_is_predicted_as_among_others() -> None:
    inputs, _ = sample()
    forest = grow()
    together = forest.votes(inputs)
    alone = np.concatenate([forest.votes(inputs[i : i + 1]) for i in range(len(inputs))])
    np.testing.assert_array_equal(together, alone)


def test_arrays_hold_all_of_a_forest() -> None:
    inputs, _ = sample()
    forest = grow()
    again = LineForest.from_arrays(forest.arrays(), COLUMNS, 0)
    np.testing.assert_array_equal(again.votes(inputs), forest.votes(inputs))


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("intercept", lambda array: array[:-1], "as many as the leaves"),
        ("slope", lambda array: array[:, :-1], "as many as the leaves"),
        ("value", lambda array: array * 0, "not numbered"),
        ("slope", lambda array: array * np.nan, "not made of numbers"),
        ("frame", lambda array: array[:1], "unit of the lines"),
    ],
)
def test_damaged_arrays_are_refused(name: str, damage: Any, message: str) -> None:
    arrays = grow().arrays()
    with pytest.raises(ValueError, match=message):
        LineForest.from_arrays(arrays | {name: damage(arrays[name])}, COLUMNS, 0)


def test_categories_have_no_lines() -> None:
    with pytest.raises(ValueError, match="category that is not there"):
        LineForest.from_arrays(grow().arrays(), COLUMNS, 3)
