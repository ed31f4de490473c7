"""What a column can store is a constraint too."""

import warnings

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeImputer
from grapefill.errors import ConfigError, GrapefillWarning
from grapefill.table.column import Column
from grapefill.table.kinds import Form, Kind
from grapefill.uncertainty.limits import read_limits
from tests.uncertainty.constrained import all_tables, with_parameters


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    z = random.normal(size=150)
    table = pd.DataFrame(
        {
            "whole": np.rint(200 + 60 * z),
            "byte": pd.array(np.clip(np.rint(100 + 30 * z), 0, 255), dtype="UInt8"),
            "small": pd.array(np.rint(50 + 10 * z), dtype="Int8"),
            "x": np.round(50 + 9 * z, 1).astype(np.float32),
            "y": np.round(52 + 9 * z, 1).astype(np.float32),
        }
    )
    for at, name in enumerate(table):
        table.loc[at :: 4 + at, name] = None
    return table


@pytest.fixture(scope="module")
def fitted(table):
    settings = {"max_steps": 15, "rounds": 1, "trees": 6, "trial_trees": 6}
    return GrapeImputer("fast", settings=settings, random_state=0).fit(table)


class TestStorage:
    """What a column can store is a constraint too."""

    def filled(self, fitted, table, name, **parameters):
        for each in all_tables(with_parameters(fitted, **parameters), table):
            yield each[name][table[name].isna()]

    def test_fractions_among_whole_floats(self, fitted, table):
        allowed = [100.5, 200.5, 300.25]
        given = {"whole": {"allowed": allowed}}
        for values in self.filled(fitted, table, "whole", constraints=given):
            assert values.isin(allowed).all()
        for values in self.filled(fitted, table, "whole", constraints={"whole": {"decimals": 1}}):
            assert (values.round(1) == values).all()
        assert (values % 1 != 0).any()

    def test_only_whole_numbers_among_integers(self, fitted, table):
        given = {"small": {"allowed": [40.5, 60]}}
        for values in self.filled(fitted, table, "small", constraints=given):
            assert (values == 60).all()
        with pytest.raises(ConfigError, match="is a whole number"):
            with_parameters(fitted, constraints={"small": {"allowed": [40.5]}}).transform(table)

    @pytest.mark.parametrize("given", [{"min": 300}, {"max": -5}, {"allowed": [-3, 999]}])
    def test_beyond_the_type(self, table, given, quick):
        imputer = GrapeImputer("fast", settings=quick, constraints={"byte": given})
        with pytest.raises(ConfigError, match="byte"):
            imputer.fit(table)

    def test_rules_beyond_the_type_are_counted(self, fitted, table):
        limited = with_parameters(fitted, rules=["small >= 10*x"])
        with pytest.warns(GrapefillWarning, match="no allowed value could be filled in"):
            filled = limited.transform(table)["small"]
        assert filled.max() <= 127

    def test_rules_of_single_precision(self, fitted, table):
        strict = with_parameters(fitted, rules=["y > x"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GrapefillWarning)
            for each in all_tables(strict, table):
                mine = table["x"].isna() | table["y"].isna()
                assert (each["y"] > each["x"])[mine].all()

    def test_rounding_of_single_precision(self, fitted, table):
        for values in self.filled(fitted, table, "x", constraints={"x": "rounded"}):
            assert (values == values.astype(float).round(1).astype(np.float32)).all()

    @pytest.mark.parametrize(("delta", "moved"), [(0.5, 1), (-0.5, -1), (1.5, 2)])
    def test_halves_of_delta_all_go_one_way(self, fitted, table, delta, moved):
        holes = table["whole"].isna()
        plain = fitted.transform(table)["whole"][holes]
        shifting = with_parameters(fitted, delta={"whole": delta})
        with pytest.warns(GrapefillWarning, match=f"moves by about {moved}"):
            shifted = shifting.transform(table)["whole"][holes]
        assert (shifted - plain == moved).all()


class TestNearTheEndsOfTypes:
    def read(self, dtype, given, observed=None, **column):
        form = Form.FLOAT if "float" in dtype else Form.INTEGER
        extent = None if form is Form.FLOAT else (0, 9)
        shared = {"dtype": dtype, "family": "number", "form": form, "extent": extent}
        shared |= {"kind": Kind.CONTINUOUS, "empty": False, "upper": 9.0} | column
        return read_limits(Column("x", **shared), given, observed)

    @pytest.mark.parametrize(
        ("dtype", "given"),
        [("UInt64", {"max": -5}), ("int64", {"min": 1e30}), ("float32", {"min": 1e39})],
    )
    def test_beyond(self, dtype, given):
        with pytest.raises(ConfigError, match="can obey"):
            self.read(dtype, given)

    def test_largest(self):
        limits = self.read("int64", {"min": 0})
        assert int(limits.project(np.array([1e30]))[0]) < 2**63
        assert np.isfinite(np.float16(self.read("float16", {"min": 0}).project(np.array([1e9]))))

    def test_donors_of_decimals_stay(self):
        observed = np.array([1e8 + 0.1234567891, 0.1, 0.7])
        decimal = {"form": Form.DECIMAL, "scale": 10, "extent": None}
        limits = self.read("decimal128(38, 10)", {"observed": True}, observed, **decimal)
        assert limits.allowed.size == 3

    def test_digits_of_single_precision(self):
        observed = np.array([0.1, 0.3, 48.9, 0.25], dtype=np.float32).astype(float)
        limits = self.read("float32", {"observed": True, "decimals": 1}, observed)
        assert limits.allowed.size == 3

    def test_a_whole_delta_is_exact(self, quick):
        random = np.random.default_rng(0)
        start = 2**52 + 10**6
        table = pd.DataFrame({"a": pd.array(start + random.integers(0, 99, 80), dtype="Int64")})
        table["b"] = random.normal(size=80)
        table.loc[::5, "a"] = pd.NA
        fitted = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
        moved = with_parameters(fitted, delta={"a": 1}).transform(table)["a"]
        assert (moved - fitted.transform(table)["a"])[::5].eq(1).all()
