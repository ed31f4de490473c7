"""A forest for one column: how it grows and votes, and what it is as plain arrays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import trim_mean

from grapefill.trees import Forest
from grapefill.trees.forest import _round_down

COLUMNS = (4, 0, 7)
LARGEST = float(np.finfo(np.float32).max)


def sample(n_rows: int = 120, *, seed: int = 0, n_categories: int = 0) -> tuple[Any, Any]:
    """Return inputs and a target that depends on the first of them, with ties in both."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n_rows, len(COLUMNS))).astype(np.float32)
    inputs[:, 1] = inputs[:, 1].round()
    if n_categories:
        # The last category never occurs.
        return inputs, np.digitize(inputs[:, 0], np.linspace(-0.7, 0.7, n_categories - 2)) * 1.0
    return inputs, (3 * inputs[:, 0] + 0.1 * rng.normal(size=n_rows)).round(1).astype(np.float64)


def grow(n_categories: int = 0, **options: Any) -> Forest:
    inputs, target = sample(n_categories=n_categories)
    options = {"n_trees": 8, "seed": 0, "columns": COLUMNS} | options
    return Forest.grow(inputs, target, n_categories=n_categories, **options)


def assert_same(first: Forest, second: Forest) -> None:
    ours, theirs = first.arrays(), second.arrays()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], strict=True)


class Says:
    """A tree that votes for the same value everywhere."""

    def __init__(self, value: float) -> None:
        self.value = value

    def predict(self, inputs: Any) -> Any:
        return np.full((len(inputs), 1), self.value)


@pytest.mark.parametrize("n_categories", [0, 4])
def test_a_forest_depends_on_its_seed_alone(
    n_categories: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grapefill.trees.forest.FEWEST_VISITS", 0)
    forest = grow(n_categories)
    with ThreadPoolExecutor(3) as pool:
        threaded = grow(n_categories, pool=pool)
        inputs, _ = sample(seed=1)
        np.testing.assert_array_equal(threaded.votes(inputs, pool), forest.votes(inputs))
    assert_same(threaded, forest)
    assert_same(grow(n_categories), forest)
    other = grow(n_categories, seed=1)
    assert not np.array_equal(other.arrays()["feature"], forest.arrays()["feature"])


@pytest.mark.parametrize("n_categories", [0, 4])
@pytest.mark.parametrize("min_split", [3, 40])
def test_votes_are_values_that_were_observed(n_categories: int, min_split: int) -> None:
    _, target = sample(n_categories=n_categories)
    inputs, _ = sample(seed=1)
    votes = grow(n_categories, min_split=min_split).votes(100 * inputs)
    assert votes.shape == (120, 8)
    assert np.isin(votes, target).all()


def test_a_leaf_with_several_rows_votes_for_any_of_them() -> None:
    inputs, target = sample()
    stumps = grow(n_trees=40, min_split=1000)
    votes = stumps.votes(inputs[:1])
    assert stumps.arrays()["size"].tolist() == [1] * 40
    assert np.unique(votes).size > 10
    assert abs(np.median(votes) - np.median(target)) < target.std()


class TestWeights:
    @pytest.mark.parametrize("n_categories", [0, 4])
    def test_a_heavy_row_wins_the_votes(self, n_categories: int) -> None:
        inputs, target = sample(n_categories=n_categories)
        heavy = np.flatnonzero(target != target[0])[0]
        weights = np.where(np.arange(120) == heavy, 1e9, 1.0)
        stumps = grow(n_categories, n_trees=20, min_split=1000, weights=weights)
        assert (stumps.votes(inputs) == target[heavy]).all()

    def test_votes_are_as_frequent_as_the_weights_say(self) -> None:
        inputs = np.zeros((3, len(COLUMNS)), dtype=np.float32)
        weights = np.array([1.0, 2.0, 5.0])
        forest = Forest.grow(
            inputs,
            np.array([0.0, 1.0, 2.0]),
            columns=COLUMNS,
            n_trees=600,
            seed=0,
            n_categories=3,
            weights=weights,
        )
        np.testing.assert_allclose(forest.chances(inputs)[0], weights / 8, atol=0.06)

    def test_splits_follow_the_heavy_rows(self) -> None:
        """Two groups of rows go along with different inputs; the heavy one decides."""
        inputs, _ = sample(400)
        first = np.arange(400) < 200
        target = np.where(first, inputs[:, 0], inputs[:, 2]).astype(np.float64)
        for heavy, expected in ((first, 0), (~first, 2)):
            weights = np.where(heavy, 1e4, 1.0)
            forest = Forest.grow(
                inputs,
                target,
                columns=COLUMNS,
                n_trees=30,
                seed=0,
                input_share=1.0,
                weights=weights,
            )
            arrays = forest.arrays()
            roots = np.cumsum(arrays["size"]) - arrays["size"]
            found = np.bincount(arrays["feature"][roots], minlength=3)
            assert found[expected] > 20, found

    def test_only_proportions_count(self) -> None:
        weights = 1.0 + np.arange(120) % 3
        assert_same(grow(weights=4 * weights), grow(weights=weights))


@pytest.mark.parametrize("n_trees", [1, 2, 4, 9])
def test_numbers_are_the_trimmed_mean_of_the_votes(n_trees: int) -> None:
    forest = grow(n_trees=n_trees)
    inputs, _ = sample(seed=1)
    expected = trim_mean(forest.votes(inputs), 0.25, axis=1)
    np.testing.assert_allclose(forest.numbers(inputs), expected, rtol=1e-12, atol=1e-15)


def test_a_wild_vote_does_not_count() -> None:
    forest = Forest([Says(value) for value in (1e9, 2.0, 1.0, -1e9)], (0,))
    assert forest.numbers(np.zeros((2, 1), dtype=np.float32)).tolist() == [1.5, 1.5]


def test_numbers_follow_the_target() -> None:
    inputs, target = sample(seed=1)
    error = np.abs(grow(n_trees=16).numbers(inputs) - target).mean()
    assert error < 0.4 * np.abs(target - np.median(target)).mean()


def test_numbers_near_the_end_of_float64_stay_finite() -> None:
    forest = Forest([Says(value) for value in (1.5e308, 1.6e308, 1.7e308, -1.7e308)], (0,))
    assert forest.numbers(np.zeros((1, 1), dtype=np.float32))[0] == pytest.approx(1.55e308)


def test_splits_follow_the_guide_and_leaves_hold_the_target() -> None:
    """Far from zero, differences of the target itself would be lost in its square."""
    inputs, target = sample()
    far = target + 1e9
    options: dict[str, Any] = {"columns": COLUMNS, "n_trees": 8, "seed": 0}
    forest = Forest.grow(inputs, far, guide=target, **options)
    np.testing.assert_array_equal(forest.votes(inputs) - 1e9, grow().votes(inputs) + 1e9 - 1e9)
    assert np.isin(forest.votes(inputs), far).all()


def test_chances_are_shares_of_votes_and_one_vote_for_all() -> None:
    forest = Forest([Says(code) for code in (0, 2, 2, 2)], (0,), n_categories=4)
    assert forest.chances(np.zeros((1, 1), dtype=np.float32)).tolist() == [[0.25, 0.05, 0.65, 0.05]]


def test_chances_sum_to_one_and_a_category_that_was_not_there_has_least() -> None:
    inputs, target = sample(n_categories=5)
    assert set(target) == {0, 1, 2, 3}
    forest = grow(n_categories=5)
    chances = forest.chances(inputs)
    assert chances.shape == (120, 5)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(chances[:, 4], chances.min())
    assert (chances.argmax(axis=1) == target).mean() > 0.9


def test_categories_with_gaps_keep_their_codes() -> None:
    inputs, _ = sample()
    target = np.where(inputs[:, 0] > 0, 6.0, 2.0)
    forest = Forest.grow(inputs, target, columns=COLUMNS, n_trees=8, seed=0, n_categories=9)
    assert set(np.unique(forest.votes(inputs))) == {2, 6}
    assert (forest.chances(inputs).argmax(axis=1) == target).mean() > 0.95


@pytest.mark.parametrize("target", [3.0, 0.0])
@pytest.mark.parametrize("n_categories", [0, 4])
def test_a_target_of_one_value_is_that_value(target: float, n_categories: int) -> None:
    inputs, _ = sample()
    forest = Forest.grow(
        inputs,
        np.full(120, target),
        columns=COLUMNS,
        n_trees=2,
        seed=0,
        n_categories=n_categories,
    )
    assert (forest.votes(inputs) == target).all()


@pytest.mark.parametrize("n_categories", [0, 4])
def test_arrays_hold_all_of_a_forest(n_categories: int) -> None:
    forest = grow(n_categories)
    again = Forest.from_arrays(forest.arrays(), COLUMNS, n_categories)
    assert (again.columns, again.n_categories) == (COLUMNS, n_categories)
    # At the thresholds themselves a rounding error would lead the other way.
    edges = forest.arrays()["threshold"]
    near = [edges, np.nextafter(edges, np.float32(-9)), np.nextafter(edges, np.float32(9))]
    at_edges = np.repeat(np.concatenate(near)[:, None], len(COLUMNS), axis=1)
    for inputs in (sample()[0], sample(500, seed=1)[0], at_edges):
        np.testing.assert_array_equal(again.votes(inputs), forest.votes(inputs))
    assert_same(again, forest)


def put(name: str, at: int, value: int) -> Any:
    def damage(arrays: dict[str, Any]) -> None:
        arrays[name][at] = value

    return damage


def cut(name: str, keep: int = -1) -> Any:
    def damage(arrays: dict[str, Any]) -> None:
        arrays[name] = arrays[name][:keep]

    return damage


# The first node is a split and the last one a leaf.
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(put("size", 0, 10**6), "do not add up", id="a size too large"),
        pytest.param(cut("size"), "do not add up", id="a tree without a size"),
        pytest.param(cut("size", 0), "do not add up", id="no sizes"),
        pytest.param(cut("right"), "right of the trees", id="too few children"),
        pytest.param(cut("depth"), "depth of the trees", id="a tree without a depth"),
        pytest.param(cut("threshold"), "threshold of the trees", id="too few thresholds"),
        pytest.param(cut("value"), "value of the trees", id="too few values"),
        pytest.param(put("value", 0, np.nan), "value of the trees", id="no number"),
        pytest.param(put("size", 0, 0), "do not add up", id="an empty tree"),
        pytest.param(put("right", 0, 10**6), "outside", id="a child after the last node"),
        pytest.param(put("right", 0, 0), "outside", id="a child of its own"),
        pytest.param(put("right", 0, 1), "outside", id="both children the same"),
        pytest.param(put("right", 0, -1), "outside", id="a split with one child"),
        pytest.param(put("right", -1, 1), "outside", id="a leaf with a child"),
        pytest.param(put("feature", 0, len(COLUMNS)), "outside", id="a feature too many"),
        pytest.param(put("feature", 0, -1), "outside", id="a feature below 0"),
    ],
)
def test_damaged_arrays_are_refused(damage: Any, message: str) -> None:
    arrays = grow().arrays()
    damage(arrays)
    with pytest.raises(ValueError, match=message):
        Forest.from_arrays(arrays, COLUMNS, 0)


def test_a_child_in_the_next_tree_is_outside() -> None:
    arrays = grow().arrays()
    put("right", 0, arrays["size"][0])(arrays)
    with pytest.raises(ValueError, match="outside"):
        Forest.from_arrays(arrays, COLUMNS, 0)


@given(data=st.data())
def test_a_rounded_threshold_parts_the_same_numbers(data: st.DataObject) -> None:
    x = np.float32(data.draw(st.floats(-LARGEST, LARGEST, width=32)))
    beside = [np.nextafter(np.float64(x), end) for end in (-LARGEST, LARGEST)]
    anywhere = st.floats(-LARGEST, LARGEST)
    threshold = np.float64(data.draw(st.sampled_from([x, *beside]) | anywhere))
    rounded = _round_down(np.array([threshold]))
    assert rounded.dtype == np.float32
    assert (x <= rounded[0]) == (np.float64(x) <= threshold)
    assert np.float64(rounded[0]) <= threshold
