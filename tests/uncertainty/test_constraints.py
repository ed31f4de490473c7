"""Constraints hold in every filled cell: of fills, draws and ends of intervals."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapefill import GrapeImputer
from grapefill.errors import ConfigError, GrapefillWarning
from grapefill.uncertainty.constraints import Constraints, Limits
from grapefill.uncertainty.rules import Columns, over, read_rule, repair


def with_parameters(imputer, **parameters):
    """Return the fitted imputer with other parameters; what it learned does not depend on them."""
    changed = GrapeImputer(**(imputer.get_params() | parameters))
    changed.__dict__.update(
        {k: v for k, v in imputer.__dict__.items() if k.endswith("_") or k.startswith("_")}
    )
    return changed


def all_tables(imputer, holed):
    yield imputer.transform(holed)
    yield from imputer.sample(holed, 2, random_state=0)
    yield from imputer.interval(holed, 0.9)


class TestColumns:
    limits = st.floats(-4, 4).map(lambda x: round(x, 2))

    @settings(max_examples=15, deadline=None)
    @given(low=limits, size=st.floats(0, 3), whole=st.booleans())
    def test_limits(self, imputer, holed, low, size, whole):
        high = low + size + whole
        constrained = with_parameters(
            imputer, constraints={"a": {"min": low, "max": high, "integer": whole}}
        )
        for table in all_tables(constrained, holed):
            filled = table["a"][holed["a"].isna()]
            assert filled.between(low, high).all()
            assert not whole or (filled % 1 == 0).all()

    @settings(max_examples=10, deadline=None)
    @given(allowed=st.lists(st.floats(-3, 3), min_size=1, max_size=6))
    def test_allowed_values(self, imputer, holed, allowed):
        constrained = with_parameters(imputer, constraints={"b": {"allowed": allowed}})
        for table in all_tables(constrained, holed):
            assert table["b"][holed["b"].isna()].isin(allowed).all()

    def test_observed_values_only(self, imputer, holed):
        constrained = with_parameters(imputer, constraints={"a": "observed", "b": "observed"})
        for table in all_tables(constrained, holed):
            for name in ("a", "b"):
                assert table[name].isin(holed[name].dropna()).all()

    def test_words(self, imputer, holed):
        words = {"a": "non-negative", "b": "rounded", "count": "integer"}
        constrained = with_parameters(imputer, constraints=words)
        for table in all_tables(constrained, holed):
            assert (table["a"][holed["a"].isna()] >= 0).all()
            assert (table["b"].round(1) == table["b"]).all()
            assert (table["count"] % 1 == 0).all()

    def test_observed_cells_are_left_alone(self, imputer, holed):
        constrained = with_parameters(imputer, constraints={"a": {"min": 100.0}})
        known = holed["a"].notna()
        for table in all_tables(constrained, holed):
            assert table["a"][known].equals(holed["a"][known])
            assert (table["a"][~known] == 100).all()

    def test_a_shift(self, imputer, holed):
        plain = imputer.transform(holed)
        shifted = with_parameters(imputer, delta={"a": -2.5}).transform(holed)
        hidden = holed["a"].isna()
        np.testing.assert_allclose(shifted["a"][hidden], plain["a"][hidden] - 2.5)
        assert shifted["a"][~hidden].equals(holed["a"][~hidden])
        draws = zip(
            imputer.sample(holed, 2, random_state=0),
            with_parameters(imputer, delta={"size": 1}).sample(holed, 2, random_state=0),
            strict=True,
        )
        for one, other in draws:
            assert (other["size"] - one["size"])[holed["size"].isna()].eq(1).all()
            assert other["size"].dtype == holed["size"].dtype

    def test_constraints_are_kept_in_a_file(self, imputer, holed, tmp_path):
        constrained = with_parameters(
            imputer,
            constraints={"a": "non-negative", "b": {"allowed": np.array([0.0, 1.0])}},
            rules=["end >= start"],
            delta={"count": np.float64(1.0)},
        )
        constrained.save(tmp_path / "model.grape")
        loaded = GrapeImputer.load(tmp_path / "model.grape")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GrapefillWarning)
            pd.testing.assert_frame_equal(loaded.transform(holed), constrained.transform(holed))


class TestRules:
    def test_end_after_start(self, imputer, holed):
        constrained = with_parameters(imputer, rules=["end >= start"])
        for table in all_tables(constrained, holed):
            assert (table["end"] >= table["start"]).all()

    def test_dates(self, quick):
        random = np.random.default_rng(0)
        start = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 300, 90), "D")
        end = start + pd.to_timedelta(random.integers(0, 5, 90), "D")
        table = pd.DataFrame({"start": start, "end": end})
        table = table.mask(random.random(table.shape) < 0.3)
        imputer = GrapeImputer("fast", settings=quick, rules=["start <= end"], random_state=0)
        imputer.fit(table)
        for filled in all_tables(imputer, table):
            assert (filled["start"] <= filled["end"]).all()

    def test_what_observed_cells_break_is_reported(self, imputer, holed):
        broken = holed.copy()
        broken.loc[3, ["start", "end"]] = [50.0, 10.0]
        constrained = with_parameters(imputer, rules=["end >= start"])
        with pytest.warns(GrapefillWarning, match=r"1 rows break the rules .* Rows 3\."):
            filled = constrained.transform(broken)
        assert filled.loc[3, ["start", "end"]].tolist() == [50.0, 10.0]

    @settings(max_examples=60, deadline=None)
    @given(data=st.data())
    def test_repair(self, data):
        """What can be mended is; observed cells never change."""
        number = st.floats(-100, 100).map(lambda x: round(x, 2))
        rows = data.draw(st.integers(1, 8))
        values = np.array([[data.draw(number) for _ in range(3)] for _ in range(rows)], dtype=float)
        free = np.array([[data.draw(st.booleans()) for _ in range(3)] for _ in range(rows)])
        whole = data.draw(st.booleans())
        if whole:
            values = np.rint(values)
        sign = data.draw(st.sampled_from(["<=", "<", ">=", ">"]))
        rule = read_rule(f"x + 2*y {sign} z - 1")
        limits = Limits(decimals=0 if whole else None)
        columns = Columns(
            {"x": 0, "y": 1, "z": 2},
            np.full(3, 1.0 if whole else 1e-9),
            lambda _, moved, direction: limits.project(moved, direction),
        )
        before = values.copy()
        broken = repair(rule, values, free, columns)
        assert (values[~free] == before[~free]).all()
        assert not broken[free.any(axis=1)].any()
        assert (over(rule[0], values, columns) <= 0)[free.any(axis=1)].all()
        fine = over(rule[0], before, columns) <= 0
        assert (values[fine] == before[fine]).all()

    @pytest.mark.parametrize(
        "text", ["end", "end >= ", "a >= b >= c", "a / b > 1", "1 < 2", "a b < 1", "import os", 3]
    )
    def test_unreadable(self, text):
        with pytest.raises(ConfigError, match=r"[Rr]ule"):
            read_rule(text)

    def test_readable(self):
        (rule,) = read_rule("`a b` - 0.5*c < -2 + c")
        assert rule.weights == {"a b": 1.0, "c": -1.5}
        assert (rule.constant, rule.strict) == (2.0, True)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"constraints": {"nothing": "integer"}}, "names the column 'nothing'"),
        ({"constraints": {"word": "integer"}}, "does not hold numbers"),
        ({"constraints": {"a": "positive"}}, "Choose one of"),
        ({"constraints": {"a": {"least": 1}}}, "a dict with some of"),
        ({"constraints": {"a": {"min": 2, "max": 1}}}, "min above"),
        ({"constraints": {"a": {"min": 0.2, "max": 0.8, "integer": True}}}, "can obey"),
        ({"constraints": {"a": {"allowed": []}}}, "must be numbers"),
        ({"constraints": {"a": {"allowed": [5], "max": 1}}}, "None of the allowed"),
        ({"constraints": {"a": {"decimals": -1}}}, "decimals"),
        ({"constraints": ["a"]}, "must be a dict"),
        ({"delta": {"a": "more"}}, "must be a number"),
        ({"delta": {"a": np.inf}}, "must be finite"),
        ({"delta": {"word": 1}}, "does not hold numbers"),
        ({"rules": "end >= start"}, "must be a list"),
        ({"rules": ["end >= nothing"]}, "names the column 'nothing'"),
    ],
)
def test_bad_parameters(holed, parameters, message):
    """They are told of before training."""
    with pytest.raises(ConfigError, match=message):
        GrapeImputer("fast", **parameters).fit(holed)


def test_rules_between_types_are_refused():
    table = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02"]), "n": [1.0, 2.0]})
    with pytest.raises(ConfigError, match="different types"):
        GrapeImputer("fast", rules=["day > n"]).fit(table)


def test_limits_of_whole_numbers():
    limits = Limits(0.5, 3.7, decimals=0)
    assert limits.project(np.array([-1.0, 0.2, 2.5, 9.0])).tolist() == [1.0, 1.0, 2.0, 3.0]
    assert limits.project(np.array([1.2, 2.8]), 1).tolist() == [2.0, 3.0]
    assert limits.project(np.array([1.2, 2.8]), -1).tolist() == [1.0, 2.0]


def test_no_constraints_are_no_constraints(imputer, holed):
    plain = Constraints(imputer.schema_, None, None, None, None)
    assert (plain.limits, plain.rules, plain.delta) == ({}, [], {})
    pd.testing.assert_frame_equal(
        with_parameters(imputer, constraints={"a": {}}).transform(holed), imputer.transform(holed)
    )
