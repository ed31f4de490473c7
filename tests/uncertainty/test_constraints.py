"""Constraints hold in every filled cell: of fills, draws and ends of intervals."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapefill import GrapeImputer
from grapefill.errors import ConfigError, GrapefillWarning
from grapefill.uncertainty.constraints import Constraints
from grapefill.uncertainty.limits import Limits
from grapefill.uncertainty.rules import Columns, over, read_rule, repair
from tests.uncertainty.constrained import all_tables, with_parameters


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

    def test_large_integers_are_told_apart(self, quick):
        """Also those of which nothing is asked: floats cannot tell them apart."""
        random = np.random.default_rng(0)
        a = random.normal(size=80)
        account = pd.array(np.where(a > 0, 2**60 + 1, 2**60 + 101), dtype="Int64")
        table = pd.DataFrame({"a": a, "b": 2 * a, "account": account})
        table.loc[::4, "account"] = pd.NA
        table.loc[1::4, "b"] = np.nan
        wanted = {"b": {"min": -9}}
        imputer = GrapeImputer("fast", settings=quick, random_state=0, constraints=wanted)
        fills = imputer.fit(table).transform(table)["account"]
        plain = with_parameters(imputer, constraints=None).transform(table)["account"]
        assert fills.tolist() == plain.tolist()
        for wish, allowed in (
            ("observed", {2**60 + 1, 2**60 + 101}),
            ({"allowed": [2**60 + 3, 2**60 + 77]}, {2**60 + 3, 2**60 + 77}),
            ({"min": 2**60 + 55, "max": 2**60 + 55}, {2**60 + 55}),
            ({"min": 2**60 + 201}, {2**60 + 201}),
        ):
            constrained = with_parameters(imputer, constraints={"account": wish})
            for filled in all_tables(constrained, table):
                assert set(filled["account"][::4].tolist()) <= allowed
                assert filled["account"][1::4].equals(table["account"][1::4])

    def test_labels_that_are_no_text(self, quick):
        random = np.random.default_rng(0)
        table = pd.DataFrame(random.normal(size=(40, 2)), columns=[("u", "x"), ("u", "y")])
        table.columns = pd.MultiIndex.from_tuples(table.columns)
        table.iloc[::4, 1] = np.nan
        imputer = GrapeImputer(
            "fast", settings=quick, random_state=0, constraints={("u", "y"): {"min": 3}}
        )
        assert (imputer.fit_transform(table)["u", "y"][::4] == 3).all()

    def test_an_empty_column_that_is_kept(self, quick):
        table = pd.DataFrame({"a": [1.0, None, 3.0, 4.0] * 5, "e": np.nan, "f": np.nan})
        imputer = GrapeImputer(
            "fast",
            settings=quick,
            random_state=0,
            keep_empty_features=True,
            constraints={"e": {"min": 5}, "f": "observed"},
        )
        filled = imputer.fit_transform(table)
        assert (filled["e"] == 5).all()
        assert (filled["f"] == 0).all()


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

    @pytest.mark.parametrize(
        ("unit", "rule"),
        [("ns", "end > start"), ("ns", "end >= start + 2 days"), ("us", "end > start")],
    )
    def test_dates_of_any_unit(self, quick, unit, rule):
        random = np.random.default_rng(0)
        start = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 10**9, 60), "ms")
        end = start + pd.to_timedelta(random.integers(2 * 86_400_000, 3 * 86_400_000, 60), "ms")
        table = pd.DataFrame({"start": start, "end": end}).astype(f"M8[{unit}]")
        table = table.mask(random.random(table.shape) < 0.4)
        imputer = GrapeImputer("fast", settings=quick, rules=[rule], random_state=0)
        imputer.fit(table)
        for filled in (imputer.transform(table), *imputer.sample(table, 2, random_state=0)):
            apart = filled["end"] - filled["start"]
            assert (apart > pd.Timedelta(0) if ">=" not in rule else apart.dt.days >= 2).all()

    @pytest.mark.parametrize("rule", ["x + y + z == t", "2*x + 3*y + z == t", "x + 2*y == t - 3*z"])
    def test_sums_of_whole_numbers(self, rule):
        """Cells that round do not push each other to and fro."""
        random = np.random.default_rng(0)
        values = random.integers(0, 30, (300, 4)).astype(float)
        free = np.ones(values.shape, dtype=bool)
        free[:, 3] = False
        before = values.copy()
        columns = Columns(
            {"x": 0, "y": 1, "z": 2, "t": 3},
            np.ones(4),
            lambda _, moved, direction: Limits(decimals=0).project(moved, direction),
            [np.float64] * 4,
        )
        assert not repair(read_rule(rule), values, free, columns).rows.any()
        assert (values[:, 3] == before[:, 3]).all()
        assert (values == np.rint(values)).all()

    def test_ends_of_shares_are_not_turned_round(self, quick):
        random = np.random.default_rng(0)
        shares = 100 * random.dirichlet([3, 2, 1], 90)
        table = pd.DataFrame(shares, columns=["p", "q", "r"])
        table.loc[::3, ["p", "q"]] = np.nan
        table.loc[1::3, "r"] = np.nan
        imputer = GrapeImputer(
            "fast", settings=quick, rules=["p + q + r == 100"], random_state=0
        ).fit(table)
        for filled in (imputer.transform(table), *imputer.sample(table, 2, random_state=0)):
            np.testing.assert_allclose(filled.sum(axis=1), 100)
        lower, upper = imputer.interval(table)
        assert (lower <= upper).all(axis=None)
        # A single hole is known.
        np.testing.assert_allclose(lower["r"][1::3], 100 - table["p"][1::3] - table["q"][1::3])

    def test_rules_hold_in_intervals_whatever_others_would_turn_round(self, quick):
        random = np.random.default_rng(0)
        table = pd.DataFrame(100 * random.dirichlet([3, 2, 1], 90), columns=["p", "q", "r"])
        table["start"] = random.normal(size=90)
        table["end"] = table["start"] + random.exponential(0.3, 90)
        table.loc[::3, ["p", "q", "end"]] = np.nan
        rules = ["p + q + r == 100", "end >= start"]
        imputer = GrapeImputer("fast", settings=quick, rules=rules, random_state=0).fit(table)
        lower, upper = imputer.interval(table, 0.95)
        assert (lower["p"] < upper["p"])[::3].any()
        assert (lower["end"] >= table["start"]).all()
        assert (upper["end"] >= lower["end"]).all()

    def test_numbers_and_times(self, quick):
        table = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02"]), "n": [1.0, 2.0]})
        table["other"] = table["day"]
        for rule, message in (
            ("day >= other + 30", "Say what it counts: '30 days'"),
            ("n >= 3 days", "Leave its unit out"),
            ("day >= 30 days", "Compare dates with each other"),
        ):
            with pytest.raises(ConfigError, match=message):
                GrapeImputer("fast", settings=quick, rules=[rule]).fit(table)

    def test_what_observed_cells_break_is_reported(self, imputer, holed):
        broken = holed.copy()
        broken.loc[3, ["start", "end"]] = [50.0, 10.0]
        constrained = with_parameters(imputer, rules=["end >= start"])
        with pytest.warns(GrapefillWarning, match=r"1 row breaks the rule .* Row 3\."):
            filled = constrained.transform(broken)
        assert filled.loc[3, ["start", "end"]].tolist() == [50.0, 10.0]

    def test_draws_report_it_once(self, imputer, holed):
        broken = holed.copy()
        broken.loc[3, ["start", "end"]] = [50.0, 10.0]
        constrained = with_parameters(imputer, rules=["end >= start"])
        for _ in range(2):
            with pytest.warns(GrapefillWarning, match="1 row breaks the rule") as told:
                constrained.sample(broken, 3, random_state=0)
            assert len(told) == 1

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
            [np.float64] * 3,
        )
        before = values.copy()
        broken = repair(rule, values, free, columns).rows
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
        ({"constraints": {"a": {"decimals": -16}}}, "decimals .* -15 to 15"),
        ({"constraints": {"a": {"decimals": 16}}}, "decimals"),
        ({"constraints": {"a": {"decimals": -2, "min": 101, "max": 199}}}, "can obey"),
        ({"constraints": {"a": {"decimals": -1, "allowed": [4, 15]}}}, "is a multiple of 10"),
        ({"constraints": {"a": {"decimals": True}}}, "decimals"),
        ({"constraints": {"a": {"min": "x"}}}, "min of column 'a' must be numbers"),
        ({"constraints": {"a": {"allowed": 5}}}, "must be a list"),
        ({"constraints": {"a": {"integer": "no"}}}, "must be True or False"),
        ({"constraints": ["a"]}, "must be a dict"),
        ({"delta": {"a": "more"}}, "must be a number"),
        ({"delta": {"a": np.inf}}, "must be finite"),
        ({"delta": {"word": 1}}, "does not hold numbers"),
        ({"rules": "end >= start"}, "must be a list"),
        ({"rules": ["end >= nothing"]}, "names the column 'nothing'"),
        ({"rules": ["end > end"]}, "its columns cancel out"),
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


@pytest.mark.parametrize("unit", ["s", "ns"])
@pytest.mark.parametrize("rule", ["end > start", "end >= start"])
def test_rules_hold_for_dates_that_are_told_in_days(quick, unit, rule):
    random = np.random.default_rng(0)
    days = random.integers(0, 40, 80).astype("m8[D]")
    start = np.datetime64("2020-01-01", unit) + days + random.integers(8, 18, 80).astype("m8[h]")
    end = np.datetime64("2020-01-01", unit) + days + random.integers(1, 3, 80).astype("m8[D]")
    table = pd.DataFrame({"start": start, "end": end})
    table.loc[::3, "end"] = pd.NaT
    table.loc[1::6, "start"] = pd.NaT
    imputer = GrapeImputer("fast", settings=quick, rules=[rule], random_state=0)
    filled = imputer.fit_transform(table)
    assert (filled["end"] == filled["end"].dt.normalize()).all()
    assert (filled["start"] == filled["start"].dt.round("h")).all()
    assert filled.eval(rule).all()


def test_rules_may_lead_beyond_the_first_date(quick):
    """Also where the counts of all dates are too far apart for a float."""
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(0, 600, 10), "D")
    table = pd.DataFrame({"start": day, "end": day + pd.Timedelta(40, "D")}).astype("M8[ns]")
    table.loc[::3, "start"] = pd.NaT
    table.loc[0, "end"] = pd.Timestamp("2020-01-15")
    rule = "start <= end - 30 days"
    imputer = GrapeImputer("fast", settings=quick, rules=[rule], random_state=0)
    filled = imputer.fit_transform(table)
    assert (filled["start"] <= filled["end"] - pd.Timedelta(30, "D")).all()


def test_a_limit_far_below_large_integers(quick):
    table = pd.DataFrame({"a": np.arange(40.0), "n": pd.array(2**60 + np.arange(40), "Int64")})
    table.loc[::4, "n"] = pd.NA
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    constrained = with_parameters(imputer, constraints={"n": {"min": 0.5}})
    assert constrained.transform(table).equals(imputer.transform(table))


def test_nothing_but_empty_columns(quick):
    table = pd.DataFrame({"e": [np.nan] * 5})
    imputer = GrapeImputer(
        "fast", settings=quick, keep_empty_features=True, constraints={"e": {"min": 5}}
    )
    assert (imputer.fit_transform(table)["e"] == 5).all()


def test_numbers_of_any_type_are_limits(imputer, holed):
    given = {"a": {"min": Decimal("4.5")}, "b": {"allowed": [Decimal(4), np.float32(5)]}}
    filled = with_parameters(imputer, constraints=given).transform(holed)
    assert (filled["a"][holed["a"].isna()] == 4.5).all()
    assert filled["b"][holed["b"].isna()].isin([4, 5]).all()


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


def test_who_breaks_a_rule_is_told(quick):
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.normal(size=(60, 4)).cumsum(axis=1), columns=list("abcd"))
    table.loc[::5, "c"] = np.nan
    table.loc[0, ["a", "b", "d"]] = [1.0, 0.0, 2.0]
    table.loc[1:, ["a", "b"]] = np.sort(table.loc[1:, ["a", "b"]].to_numpy(), axis=1)
    imputer = GrapeImputer("fast", settings=quick, rules=["a <= b", "c <= d"], random_state=0)
    with pytest.warns(GrapefillWarning, match=r"stays so: its observed cells do\. Row 0\."):
        imputer.fit(table).transform(table.iloc[:1])
