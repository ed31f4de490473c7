"""Rules hold exactly, in the way in which they are written and checked."""

import warnings

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeImputer
from grapefill.errors import ConfigError
from grapefill.uncertainty.rules import Written, read_rule
from tests.uncertainty.constrained import with_parameters

RULES = [
    "a <= b",
    "a < b",
    "b >= 0.3 * a",
    "a + b <= 100",
    "a - b <= 5.1",
    "b >= 0.1 * a + 0.2 * c",
    "a + b + c >= 110.3",
    "-a + 2 * 0.7 * b > 0.1 - c",
]


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    a = random.uniform(0, 100, 200)
    complete = pd.DataFrame({"a": a, "b": 0.3 * a + random.uniform(0, 10, 200), "c": 100 - a})
    return complete.mask(random.random(complete.shape) < 0.3)


@pytest.fixture(scope="module")
def imputer(table):
    settings = {"max_steps": 10, "rounds": 0}
    return GrapeImputer("fast", settings=settings, random_state=0).fit(table)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rules_hold_exactly_as_they_are_written(imputer, table, rule, dtype):
    limited = with_parameters(imputer, rules=[rule])
    if dtype == "float32":
        table = table.astype("float32")
        limited = GrapeImputer(**limited.get_params()).fit(table)
    names = [name for name in "abc" if name in rule]
    filled = table[names].isna().any(axis=1)
    with warnings.catch_warnings():
        # Observed cells break some of them.
        warnings.filterwarnings("ignore", "[0-9]+ rows? breaks? the rule")
        tables = [limited.transform(table), *limited.sample(table, 3, random_state=0)]
    for each in tables:
        assert each.eval(rule, engine="python")[filled].all()


def test_equations_hold_up_to_rounding_of_their_type(table):
    settings = {"max_steps": 10, "rounds": 0}
    small = table.astype("float32")
    imputer = GrapeImputer("fast", settings=settings, random_state=0, rules=["a + c == 100"])
    # No row is reported as one that cannot be mended.
    filled = imputer.fit(small).transform(small)
    off = np.abs(filled["a"] + filled["c"] - 100)
    assert off.max() <= 4 * np.finfo(np.float32).eps * 200


def test_observed_cells_that_break_a_rule_by_rounding_are_not_reported():
    table = pd.DataFrame({"a": [0.1, 0.1, 0.2], "b": [0.2, 0.2, 0.1], "c": [0.3, np.nan, 0.3]})
    settings = {"max_steps": 3, "rounds": 0}
    rule = "a + b <= c"
    imputer = GrapeImputer("fast", settings=settings, random_state=0, rules=[rule]).fit(table)
    assert imputer.transform(table).eval(rule)[1]


def test_a_rule_about_a_column_without_values_is_refused():
    table = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [np.nan] * 3})
    imputer = GrapeImputer("fast", rules=["a >= b"], keep_empty_features=True)
    with pytest.raises(ConfigError, match="'b', which has no value in the table at fit"):
        imputer.fit(table)


def test_sums_are_added_from_left_to_right():
    (rule,) = read_rule("2 * a - 0.5 * 3 * b <= -c + 1")
    assert rule.written == Written(
        ((1.0, (2.0, "a")), (-1.0, (0.5, 3.0, "b"))), ((-1.0, ("c",)), (1.0, (1.0,))), "<="
    )
    columns = {"a": np.array([1.0, 2.0]), "b": np.zeros(2), "c": np.array([-1.0, -3.0])}
    assert rule.written.holds(columns).tolist() == [True, True]
    assert [part.written for part in read_rule("a == b")] == [None, None]


def test_times_are_times_whatever_the_first_dates_are():
    start = pd.Series(pd.date_range("2020-01-01", periods=150)).dt.as_unit("ns")
    table = pd.DataFrame({"start": start, "end": start + pd.Timedelta(2, "D")})
    holes = np.random.default_rng(0).random(150) < 0.3
    holes[0] = False
    table.loc[holes, "end"] = pd.NaT
    settings = {"max_steps": 10, "rounds": 0}
    rules = ["end >= start + 2 days", "end <= start + 2 days"]
    imputer = GrapeImputer("fast", settings=settings, random_state=0, rules=rules).fit(table)
    filled = imputer.transform(table)
    assert (filled["end"] - filled["start"] == pd.Timedelta(2, "D")).all()


def test_small_integers_beside_small_floats():
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.normal(0, 10, (1_000, 2)).astype("float32"), columns=["a", "b"])
    table["k"] = pd.array(random.integers(-20, 20, 1_000), dtype="Int16")
    table["b"] += 30
    holes = random.random(table.shape) < 0.3
    table = table.mask(holes)
    settings = {"max_steps": 10, "rounds": 0}
    rule = "a + k <= b"
    imputer = GrapeImputer("fast", settings=settings, random_state=0, rules=[rule]).fit(table)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9]+ rows? breaks? the rule")
        filled = imputer.transform(table)
    assert (filled["a"] + filled["k"] <= filled["b"])[holes.any(axis=1)].all()


@pytest.mark.parametrize("rule", ["a > b", "a >= b"])
def test_a_row_does_not_depend_on_the_rows_behind_it(imputer, table, rule):
    table = table.copy()
    table.loc[199, "b"] = 1e6
    limited = with_parameters(imputer, rules=[rule])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9]+ rows? breaks? the rule")
        for fill in (limited.transform, lambda some: limited.sample(some, 1, random_state=0)[0]):
            pd.testing.assert_frame_equal(fill(table)[:30], fill(table[:30]), check_exact=True)
