"""Rows of which less is known than of held-out cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeImputer
from grapefill.uncertainty import cells
from grapefill.uncertainty.little_known import softened, widened
from grapefill.uncertainty.quantiles import GRID


def _table(n: int, random: np.random.Generator) -> pd.DataFrame:
    """Return two groups that four columns tell, each of them well."""
    group = random.random(n) < 0.4
    numbers = 4.0 * group[:, None] + random.normal(0, 0.7, (n, 4))
    table = pd.DataFrame(numbers, columns=list("abcd"))
    return table.assign(group=np.where(group, "long", "short"))


@pytest.fixture(scope="module")
def fitted():
    random = np.random.default_rng(0)
    complete = _table(300, random)
    table = complete.mask(random.random(complete.shape) < 0.05)
    return GrapeImputer("fast", random_state=0, settings={"max_steps": 200}).fit(table)


@pytest.fixture(scope="module")
def sparse():
    """Return new rows, and the same with no cell or one that is known."""
    random = np.random.default_rng(1)
    complete = _table(300, random)
    holed = complete.mask(random.random(complete.shape) < 0.9)
    return complete, holed[holed.notna().sum(axis=1) <= 1]


def test_intervals_of_rows_with_hardly_a_known_cell_hold_the_truth(fitted, sparse):
    complete, holed = sparse
    lower, upper = intervals = fitted.interval(holed, 0.9)
    for name in "abcd":
        missing = holed.index[holed[name].isna()]
        truth = complete.loc[missing, name]
        inside = (lower.loc[missing, name] <= truth) & (truth <= upper.loc[missing, name])
        assert inside.mean() > 0.8, name
    rows = np.flatnonzero(holed["group"].isna())
    truth = complete.loc[holed.index, "group"].to_numpy()
    held = [truth[row] in intervals.sets["group"][row] for row in rows.tolist()]
    assert np.mean(held) > 0.85


def test_an_empty_row_may_be_of_either_group(fitted):
    nothing = pd.DataFrame([[np.nan] * 4 + [None]], columns=[*"abcd", "group"])
    lower, upper = intervals = fitted.interval(nothing, 0.9)
    assert (upper[list("abcd")].to_numpy() - lower[list("abcd")].to_numpy() > 3).all()
    assert set(intervals.sets["group"][0]) == {"long", "short"}
    chances = fitted.predict_distribution(nothing)["group"].chances[0]
    assert chances.min() > 0.15
    filled = fitted.transform(nothing)["group"][0]
    # The fill stays the most probable one.
    assert intervals.sets["group"][0][0] == filled == lower["group"][0]


def test_rows_do_not_depend_on_each_other(fitted, sparse, monkeypatch):
    _, holed = sparse
    whole = fitted.interval(holed, 0.9)
    monkeypatch.setattr(cells, "BLOCK", 50)
    for one, other in zip(whole, fitted.interval(holed, 0.9), strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    some = fitted.interval(holed[5:9], 0.9)
    for one, other in zip(whole, some, strict=True):
        pd.testing.assert_frame_equal(one[5:9], other, check_exact=True)
    assert some.sets["group"] == {
        row - 5: whole.sets["group"][row] for row in range(5, 9) if row in whole.sets["group"]
    }


def test_intervals_of_more_coverage_hold_those_of_less(fitted, sparse):
    _, holed = sparse
    inner, outer = fitted.interval(holed, 0.5), fitted.interval(holed, 0.95)
    for name in "abcd":
        assert (outer.lower[name] <= inner.lower[name]).all()
        assert (inner.upper[name] <= outer.upper[name]).all()
    for row, some in inner.sets["group"].items():
        assert set(some) <= set(outer.sets["group"][row])


def test_what_is_known_of_most_rows_is_left_alone(fitted, monkeypatch):
    random = np.random.default_rng(2)
    holed = _table(40, random)
    holed.loc[::3, "a"] = np.nan
    before = fitted.interval(holed, 0.9)
    monkeypatch.setattr(
        "grapefill.uncertainty.joint.Joint.draw", lambda *_, **__: pytest.fail("nothing to draw")
    )
    for one, other in zip(before, fitted.interval(holed, 0.9), strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_widened_beliefs_are_in_order_and_keep_their_middle():
    random = np.random.default_rng(0)
    grid, drawn = np.sort(random.normal(size=(2, 20, GRID.size)), axis=2)
    wide = widened(grid, drawn + 0.5)
    assert (np.diff(wide, axis=1) >= 0).all()
    assert (wide[:, 0] <= grid[:, 0]).all()
    assert (wide[:, -1] >= grid[:, -1]).all()
    np.testing.assert_array_equal(wide[:, GRID.size // 2], grid[:, GRID.size // 2])


def test_softened_probabilities_keep_the_most_probable_category():
    random = np.random.default_rng(0)
    chances = random.dirichlet(np.ones(4), size=50)
    drawn = random.multinomial(39, np.ones(4) / 4, size=50).astype(float)
    soft = softened(chances, drawn)
    np.testing.assert_allclose(soft.sum(axis=1), 1)
    np.testing.assert_array_equal(soft.argmax(axis=1), chances.argmax(axis=1))
