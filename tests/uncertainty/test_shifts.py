"""A delta is what draws move by on average, also where a column holds only some numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapefill.errors import GrapefillWarning
from grapefill.uncertainty.limits import Limits
from grapefill.uncertainty.shifts import shifted
from tests.uncertainty.constrained import with_parameters

EVENLY = (np.arange(10_000) + 0.5) / 10_000


def moves(imputer, table, delta, name="size", **parameters):
    """Return by how much draws of a column move, one after the other."""
    holes = table[name].isna()
    plain = with_parameters(imputer, **parameters).sample(table, 30, random_state=0)
    other = with_parameters(imputer, delta={name: delta}, **parameters)
    return [
        (b[name] - a[name])[holes].to_numpy(float)
        for a, b in zip(plain, other.sample(table, 30, random_state=0), strict=True)
    ]


class TestDraws:
    @pytest.mark.parametrize("delta", [0.3, 0.5, -0.3, -1.25, 2.75])
    def test_whole_numbers_move_by_the_delta_on_average(self, imputer, holed, delta):
        moved = np.concatenate(moves(imputer, holed, delta))
        assert set(moved.tolist()) == {np.floor(delta), np.ceil(delta)}
        assert abs(moved.mean() - delta) < 4 * 0.5 / np.sqrt(moved.size)

    def test_a_float_column_of_whole_numbers(self, imputer, holed):
        moved = np.concatenate(moves(imputer, holed, 0.3, "count"))
        assert set(moved.tolist()) == {0.0, 1.0}
        assert abs(moved.mean() - 0.3) < 0.07

    def test_other_numbers_move_by_exactly_that(self, imputer, holed):
        np.testing.assert_allclose(np.concatenate(moves(imputer, holed, 0.3, "a")), 0.3)

    def test_decimals(self, imputer, holed):
        rounded = {"a": {"decimals": 1}}
        moved = np.concatenate(moves(imputer, holed, 0.13, "a", constraints=rounded))
        np.testing.assert_array_less(np.abs(moved - 0.15), 0.0501)
        assert abs(moved.mean() - 0.13) < 0.01

    def test_a_row_moves_the_same_whichever_rows_follow(self, imputer, holed):
        shifting = with_parameters(imputer, delta={"size": 0.4})
        for whole, first in zip(
            shifting.sample(holed, 3, random_state=5),
            shifting.sample(holed.iloc[:50], 3, random_state=5),
            strict=True,
        ):
            assert whole["size"].iloc[:50].equals(first["size"])

    def test_a_larger_delta_never_moves_less(self, imputer, holed):
        for less, more in zip(moves(imputer, holed, 0.2), moves(imputer, holed, 0.7), strict=True):
            assert (less <= more).all()

    def test_limits_and_rules_hold(self, imputer, holed):
        holes = holed["size"].isna()
        constrained = with_parameters(
            imputer,
            delta={"size": 0.6, "start": 0.5},
            constraints={"size": {"allowed": [1, 3, 4]}, "start": {"max": 60.5}},
            rules=["end >= start"],
        )
        for draw in constrained.sample(holed, 5, random_state=0):
            assert draw["size"][holes].isin([1, 3, 4]).all()
            assert (draw["start"][holed["start"].isna()] <= 60).all()
            assert (draw["start"] % 1 == 0).all()
            assert (draw["end"] >= draw["start"]).all()


class TestFills:
    def test_a_warning_says_what_is_rounded(self, imputer, holed):
        shifting = with_parameters(imputer, delta={"size": 0.3, "a": 0.3})
        with pytest.warns(GrapefillWarning, match=r"'size' is 0\.3, .* moves by about 0\.") as told:
            filled = shifting.transform(holed)
        assert len(told) == 1
        assert filled["size"].equals(imputer.transform(holed)["size"])

    @pytest.mark.parametrize("delta", [1, -2.0, 0])
    def test_whole_deltas_need_none(self, imputer, holed, delta):
        plain = imputer.transform(holed)["size"]
        filled = with_parameters(imputer, delta={"size": delta}).transform(holed)["size"]
        assert (filled - plain)[holed["size"].isna()].eq(delta).all()

    def test_intervals_hold_what_may_be_drawn(self, imputer, holed):
        holes = holed["size"].isna()
        plain = imputer.interval(holed)
        lower, upper = with_parameters(imputer, delta={"size": 0.3}).interval(holed)
        assert lower["size"].equals(plain.lower["size"])
        assert (upper["size"] - plain.upper["size"])[holes].eq(1).all()


class TestShifted:
    @settings(max_examples=200, deadline=None)
    @given(
        value=st.floats(-20, 20),
        delta=st.floats(-5, 5).filter(bool),
        decimals=st.integers(0, 3),
        low=st.floats(-20, 0),
        high=st.floats(1, 20),
    )
    def test_sums_are_rounded_within_bounds(self, value, delta, decimals, low, high):
        limits = Limits(low, high, decimals=decimals)
        found = shifted(np.full(EVENLY.size, value), delta, limits, chance=EVENLY)
        # A bound that rounding has moved is as good as the number itself.
        assert ((found >= low - 1e-9) & (found <= high + 1e-9)).all()
        np.testing.assert_array_equal(found, np.round(found, decimals))
        start = float(np.round(value, decimals))
        lowest, highest = limits.project(np.array([low, high]))
        if lowest <= start + delta <= highest:
            assert abs(found.mean() - start - delta) <= 2e-4
        ends = [shifted(np.array([value]), delta, limits, side=side)[0] for side in (-1, 0, 1)]
        assert ends[0] <= ends[1] <= ends[2]
        assert ends[0] <= found.min() <= found.max() <= ends[2]

    @settings(max_examples=100, deadline=None)
    @given(
        allowed=st.lists(st.integers(-50, 50), min_size=2, max_size=6, unique=True),
        value=st.integers(-50, 50),
        delta=st.floats(-20, 20).filter(bool),
    )
    def test_allowed_values(self, allowed, value, delta):
        limits = Limits(allowed=np.sort(np.array(allowed, dtype=float)))
        found = shifted(np.full(EVENLY.size, float(value)), delta, limits, chance=EVENLY)
        assert np.isin(found, limits.allowed).all()
        start = limits.project(np.array([float(value)]))[0]
        if min(allowed) <= start + delta <= max(allowed):
            assert abs(found.mean() - start - delta) <= 0.02

    @pytest.mark.parametrize("side", [-1, 0, 1])
    def test_a_multiple_of_the_step_is_exact(self, side):
        limits = Limits(decimals=1)
        values = np.arange(-30, 30) / 10
        found = shifted(values, 0.2, limits, side=side)
        np.testing.assert_array_equal(found, np.round(values + 0.2, 1))
