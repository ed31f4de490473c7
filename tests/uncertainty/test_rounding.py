"""Numbers that are filled in as tens, hundreds or thousands, where these were observed."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapefill import GrapeImputer
from grapefill.errors import GrapefillWarning
from grapefill.table.column import Column
from grapefill.table.kinds import Form, Kind
from grapefill.uncertainty.limits import Limits, read_limits
from grapefill.uncertainty.rules import Columns, read_rule, repair
from tests.uncertainty.conftest import QUICK
from tests.uncertainty.constrained import all_tables, with_parameters


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    z = random.normal(size=150)
    table = pd.DataFrame(
        {
            "z": z,
            "pay": np.rint(30 + 5 * z) * 1000,
            "pounds": np.rint(60 + 9 * z).astype(np.float32) * 10,
            "rent": pd.array(np.rint(80 + 20 * z + random.normal(size=150)) * 100, dtype="Int64"),
            "byte": pd.array(np.clip(np.rint(12 + 4 * z), 0, 25) * 10, dtype="UInt8"),
            "account": pd.array(2**60 // 1000 * 1000 + 1000 * (9 * z).astype(int), "Int64"),
            "word": np.where(z > 0, "up", "down"),
        }
    )
    for at, name in enumerate(table):
        table.loc[at :: 4 + at, name] = None
    return table


@pytest.fixture(scope="module")
def fitted(table):
    return GrapeImputer("fast", settings=QUICK, random_state=0).fit(table)


def filled(imputer, table, name, **parameters):
    """Yield what is filled into a column, as Python's integers."""
    changed = with_parameters(imputer, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrapefillWarning)
        for each in all_tables(changed, table):
            assert each[name].dtype == table[name].dtype
            yield [int(value) for value in each[name][table[name].isna()]]


@pytest.mark.parametrize(
    ("name", "step"),
    [("pay", 1000), ("pounds", 10), ("rent", 100), ("byte", 10), ("account", 1000)],
)
def test_what_was_observed_is_found(fitted, table, name, step):
    for values in filled(fitted, table, name, constraints={name: "rounded"}):
        assert all(value % step == 0 for value in values)
    coarse = step * 10 if name != "byte" else 100
    digits = {"decimals": -len(str(coarse)) + 1}
    for values in filled(fitted, table, name, constraints={name: digits}):
        assert all(value % coarse == 0 for value in values)


@pytest.mark.parametrize("name", ["pay", "rent"])
@pytest.mark.parametrize("delta", [250, -1300.0])
def test_bounds_that_are_no_multiples(fitted, table, name, delta):
    limits = {"min": 5_001, "max": 29_999.5, "decimals": -3}
    for shift in (None, {name: delta}):
        for values in filled(fitted, table, name, constraints={name: limits}, delta=shift):
            assert all(6_000 <= value <= 29_000 and value % 1000 == 0 for value in values)


def test_a_type_ends_between_two_steps(fitted, table):
    wish = {"byte": {"min": 201, "decimals": -1}}
    for values in filled(fitted, table, "byte", constraints=wish):
        assert set(values) <= {210, 220, 230, 240, 250}


def test_rules(fitted, table):
    constrained = with_parameters(
        fitted, constraints={"pay": "rounded", "rent": "rounded"}, rules=["pay > 3 * rent + 150"]
    )
    mine = table["pay"].isna() | table["rent"].isna()
    for draw in (constrained.transform(table), *constrained.sample(table, 3, random_state=0)):
        assert (draw["pay"] > 3 * draw["rent"] + 150)[mine].all()
        assert (draw["pay"] % 1000 == 0).all()
        assert (draw["rent"] % 100 == 0).all()


def test_draws_of_coarse_steps_move_by_delta(fitted, table):
    holes = table["pay"].isna()
    wish = {"pay": "rounded"}
    plain = with_parameters(fitted, constraints=wish).sample(table, 40, random_state=0)
    other = with_parameters(fitted, constraints=wish, delta={"pay": -300})
    moved = [
        (b["pay"] - a["pay"])[holes]
        for a, b in zip(plain, other.sample(table, 40, random_state=0), strict=True)
    ]
    assert set(pd.concat(moved)) == {0.0, -1000.0}
    assert abs(pd.concat(moved).mean() + 300) < 50


class TestObserved:
    def digits(self, observed, dtype="float64", origin=0):
        whole = "int" in dtype
        extent = (origin, origin + int(max(observed))) if whole else None
        column = Column(
            "x",
            Kind.ORDINAL if whole else Kind.CONTINUOUS,
            dtype=dtype,
            family="number",
            form=Form.INTEGER if whole else Form.FLOAT,
            empty=False,
            extent=extent,
        )
        limits = read_limits(column, "rounded", np.array(observed, dtype=float))
        return limits.decimals, limits.grain, limits.phase

    @pytest.mark.parametrize(
        ("observed", "decimals", "grain"),
        [
            ([0.5, 10.0], 1, 1),
            ([0.0, 3.0, 10.0], 0, 1),
            ([0.0, 20.0, 100.0], 0, 10),
            ([-300.0, 0.0, 1200.0], 0, 100),
            ([0.0], 0, 1),
            ([5e15, 1e16], 0, 10**15),
        ],
    )
    def test_floats(self, observed, decimals, grain):
        assert self.digits(observed) == (decimals, grain, 0)
        if decimals == 0:
            assert self.digits(observed, "int64") == (0, grain, 0)

    def test_large_integers_count_from_zero_not_from_the_origin(self):
        origin = 2**60 // 1000 * 1000 + 300
        assert self.digits([0.0, 700.0, 1500.0], "int64", origin) == (0, 100, 0)
        assert self.digits([700.0, 1700.0], "int64", origin) == (0, 1000, 700)

    def test_digits_are_in_no_way_guessed(self):
        column = Column("x", Kind.CONTINUOUS, "float64", "number", Form.FLOAT, empty=False)
        assert read_limits(column, "rounded", None) == read_limits(column, {}, None)


class TestProperties:
    @settings(max_examples=200, deadline=None)
    @given(
        values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8),
        digits=st.integers(1, 4),
        bounds=st.tuples(st.floats(-1e6, 0), st.floats(1e4, 1e6)),
        phase=st.integers(0, 9999),
        direction=st.sampled_from([-1, 0, 1]),
    )
    def test_projecting(self, values, digits, bounds, phase, direction):
        low, size = bounds
        grain = 10**digits
        limits = Limits(low, low + size, None, 0, grain=grain, phase=phase % grain)
        given = np.array(values)
        found = limits.project(given, direction)
        assert ((found >= low) & (found <= low + size)).all()
        assert ((found - limits.phase) % grain == 0).all()
        np.testing.assert_array_equal(limits.project(found), found)
        lowest, highest = limits.outermost()
        inside = (given >= lowest) & (given <= highest)
        assert (np.abs(found - given)[inside] <= grain * (1.0 if direction else 0.5)).all()
        # What rounding may add to a float is no step.
        assert ((found - given) * direction >= -1e-9)[inside].all()

    @settings(max_examples=60, deadline=None)
    @given(data=st.data())
    def test_repair(self, data):
        """Rules between columns of other steps are kept; observed cells never change."""
        whole = st.integers(-50, 50)
        rows = data.draw(st.integers(1, 8))
        values = np.array([[data.draw(whole) for _ in range(2)] for _ in range(rows)], dtype=float)
        values *= [100, 10]
        free = np.array([[data.draw(st.booleans()) for _ in range(2)] for _ in range(rows)])
        sign = data.draw(st.sampled_from(["<=", "<", ">=", ">"]))
        limits = [Limits(decimals=0, grain=100), Limits(decimals=0, grain=10)]
        columns = Columns(
            {"x": 0, "y": 1},
            np.array([each.step for each in limits]),
            lambda j, moved, direction: limits[j].project(moved, direction),
            [np.float64] * 2,
        )
        before = values.copy()
        broken = repair(read_rule(f"x {sign} 2*y - 30"), values, free, columns).rows
        assert (values[~free] == before[~free]).all()
        assert not broken[free.any(axis=1)].any()
        assert (values % [100, 10] == 0).all()
        left, right = values[:, 0], 2 * values[:, 1] - 30
        held = {"<=": left <= right, "<": left < right, ">=": left >= right, ">": left > right}
        assert held[sign][free.any(axis=1)].all()


def test_every_tenth_of_whole_numbers_is_no_reason_to_round_to_tens():
    table = pd.DataFrame({"y": np.arange(19_991.0), "x": np.arange(19_991.0) % 7})
    # Of every x some, so that not all are filled with the same.
    table.loc[5:300:6, "y"] = np.nan
    fitted = GrapeImputer(
        "fast",
        settings={"max_steps": 3, "rounds": 0},
        constraints={"y": "rounded"},
        random_state=0,
    ).fit(table)
    filled = fitted.transform(table)["y"][table["y"].isna()]
    assert (filled % 1 == 0).all()
    assert (filled % 10 != 0).any()


def test_digits_may_be_a_number_of_numpy():
    table = pd.DataFrame({"y": [10.0, 20.0, np.nan, 50.0, 30.0] * 8})
    constraints = {"y": {"decimals": np.int64(-1)}}
    filled = GrapeImputer("fast", settings={"max_steps": 3}, constraints=constraints).fit_transform(
        table
    )
    assert (filled["y"] % 10 == 0).all()
