"""Rubin's rules give what they should."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression, LogisticRegressionCV, Ridge

from grapefill import pool
from grapefill.errors import GrapefillWarning, InputError

ESTIMATES = np.array([[1.0, -2.0], [1.4, -2.1], [0.9, -1.7], [1.2, -2.4]])
VARIANCES = np.array([[0.10, 0.30], [0.12, 0.28], [0.09, 0.33], [0.11, 0.29]])


def test_by_hand() -> None:
    result = pool(ESTIMATES, VARIANCES, df_complete=50)
    m = 4
    within, between = VARIANCES.mean(0), ESTIMATES.var(0, ddof=1)
    total = within + 1.25 * between
    share = 1.25 * between / total
    large = (m - 1) / share**2
    observed = 51 / 53 * 50 * (1 - share)
    df = large * observed / (large + observed)
    r = 1.25 * between / within
    np.testing.assert_allclose(result.estimate, ESTIMATES.mean(0))
    np.testing.assert_allclose(result.total, total)
    np.testing.assert_allclose(result.df, df)
    np.testing.assert_allclose(result.missing_information, (r + 2 / (df + 3)) / (r + 1))
    np.testing.assert_allclose(result.missing_share, share)
    expected = 2 * stats.t.sf(np.abs(ESTIMATES.mean(0)) / np.sqrt(total), df)
    np.testing.assert_allclose(result.p_value, expected)
    low, high = result.interval(0.9).T
    assert ((low < result.estimate) & (result.estimate < high)).all()
    np.testing.assert_allclose(high - result.estimate, stats.t.ppf(0.95, df) * np.sqrt(total))


def test_a_large_table_has_rubins_degrees_of_freedom() -> None:
    result = pool(ESTIMATES, VARIANCES)
    np.testing.assert_allclose(result.df, 3 / result.missing_share**2)


def test_imputations_that_agree_leave_the_complete_table() -> None:
    result = pool([2.0] * 5, [0.25] * 5, df_complete=30)
    assert result.std_error.tolist() == [0.5]
    assert result.increase.tolist() == [0.0]
    assert result.df[0] == pytest.approx(31 / 33 * 30, rel=1e-3)


def test_intervals_cover() -> None:
    """Half of the values are missing at random and drawn properly, given the mean and spread."""
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        sample = random.normal(size=20)
        estimates, variances = [], []
        for _ in range(10):
            spread = sample.std(ddof=1) * np.sqrt(19 / random.chisquare(19))
            center = sample.mean() + spread * random.normal() / np.sqrt(20)
            full = np.concatenate([sample, center + spread * random.normal(size=20)])
            estimates.append(full.mean())
            variances.append(full.var(ddof=1) / 40)
        low, high = pool(estimates, variances, df_complete=39).interval()[0]
        covered += low <= 0 <= high
    assert 0.92 < covered / 400 < 0.98


def test_one_estimate_may_come_without_a_second_dimension() -> None:
    result = pool(ESTIMATES[:, 0], VARIANCES[:, 0], names=["slope"])
    assert result.names == ("slope",)
    assert result.estimate[0] == pytest.approx(1.125)


def test_a_table_of_figures() -> None:
    result = pool(ESTIMATES, VARIANCES, names=["a", "b"])
    frame = pd.DataFrame(result.to_dict())
    assert frame["term"].tolist() == ["a", "b"]
    assert frame["std_error"].tolist() == result.std_error.tolist()
    lines = str(result).splitlines()
    assert lines[0].split()[:2] == ["term", "estimate"]
    assert lines[2].split()[:2] == ["b", "-2.05"]


def test_long_names_leave_room_for_figures() -> None:
    name = "Q('living area')[T.more than enough]"
    result = pool(ESTIMATES, VARIANCES, names=[name, "b"])
    heading, above, first, second = result.to_text(80).splitlines()
    assert (above, len(heading), len(first), len(second)) == (name, 80, 80, 80)
    # In a file, an estimate is a line.
    assert [line.split("  ")[0] for line in str(result).splitlines()] == ["term", name, "b"]


class TestFit:
    def test_results_like_those_of_statsmodels(self) -> None:
        def model(at: int) -> Any:
            index = ["const", "x"]
            return SimpleNamespace(
                params=pd.Series(ESTIMATES[at], index),
                bse=pd.Series(np.sqrt(VARIANCES[at]), index),
                df_resid=48.0,
            )

        result = pool.fit(model, range(4))
        assert result.names == ("const", "x")
        assert result.df_complete == 48
        np.testing.assert_allclose(result.total, pool(ESTIMATES, VARIANCES).total)

    def test_pairs_of_arrays_and_of_dicts(self) -> None:
        arrays = pool.fit(lambda at: (ESTIMATES[at], VARIANCES[at]), range(4))
        dicts = pool.fit(
            lambda at: (
                dict(zip("ab", ESTIMATES[at], strict=True)),
                dict(zip("ba", VARIANCES[at][::-1], strict=True)),
            ),
            range(4),
        )
        assert (arrays.names, dicts.names) == (("x0", "x1"), ("a", "b"))
        np.testing.assert_allclose(arrays.total, dicts.total)
        assert np.isinf(arrays.df_complete)

    def test_variances_go_by_their_names(self) -> None:
        def series(at: int) -> Any:
            variances = pd.Series(VARIANCES[at], ["a", "b"])
            return pd.Series(ESTIMATES[at], ["a", "b"]), variances[["b", "a"]]

        result = pool.fit(series, range(4))
        assert result.names == ("a", "b")
        np.testing.assert_allclose(result.within, VARIANCES.mean(0))
        mixed = pool.fit(lambda at: (series(at)[0], series(at)[1].to_dict()), range(4))
        np.testing.assert_allclose(mixed.within, VARIANCES.mean(0))
        some = pool.fit(lambda at: (series(at)[0], VARIANCES[at]), range(4))
        np.testing.assert_allclose(some.within, VARIANCES.mean(0))

    @pytest.mark.parametrize("kind", [dict, pd.Series])
    @pytest.mark.parametrize("other", ["c", "abc"])
    def test_variances_of_other_names_are_refused(self, kind: Any, other: str) -> None:
        estimates, variances = kind({"a": 1.0, "b": 2.0}), kind(dict.fromkeys(other, 1.0))
        with pytest.raises(InputError, match=r"different names: 'a', 'b' and .*'c'\."):
            pool.fit(lambda _: (estimates, variances), range(3))

    @pytest.mark.parametrize("pair", [({"a": 1.0}, [1.0]), ([1.0], {"a": 1.0})])
    def test_names_on_one_side_only_are_refused(self, pair: Any) -> None:
        with pytest.raises(InputError, match="Only one of estimates and variances has names"):
            pool.fit(lambda _: pair, range(3))

    def test_a_name_may_be_there_twice(self) -> None:
        twice = pd.Series([1.0, 2.0], ["a", "a"])
        assert pool.fit(lambda _: (twice, twice), range(3)).within.tolist() == [1.0, 2.0]
        three = pd.Series([1.0, 2.0, 3.0], ["a", "a", "b"])
        with pytest.raises(InputError, match="different names"):
            pool.fit(lambda _: (three, three[::-1]), range(3))

    def test_tables_are_asked_for_one_at_a_time(self) -> None:
        alive = []

        def tables() -> Any:
            for at in range(4):
                alive.append(at)
                yield at
                assert alive == [at]
                alive.clear()

        pool.fit(lambda at: (ESTIMATES[at], VARIANCES[at]), tables())

    def test_a_model_without_standard_errors_is_refused(self) -> None:
        with pytest.raises(InputError, match="A SimpleNamespace has no standard errors"):
            pool.fit(lambda _: SimpleNamespace(coef_=[1.0]), range(3))

    def test_terms_in_another_order_are_matched_by_name(self) -> None:
        random = np.random.default_rng(0)
        tables = [pd.DataFrame(random.normal(size=(40, 3)), columns=list("yab")) for _ in range(4)]
        turned = iter(["y ~ a + b", "y ~ b + a"] * 2)
        found = pool.fit(lambda table: smf.ols(next(turned), table).fit(), tables)
        wanted = pool.fit(lambda table: smf.ols("y ~ a + b", table).fit(), tables)
        assert found.names == wanted.names
        np.testing.assert_allclose(found.estimate, wanted.estimate)
        np.testing.assert_allclose(found.std_error, wanted.std_error)

    def test_names_that_are_there_twice_are_not_matched(self) -> None:
        orders = iter([["a", "a", "b"], ["b", "a", "a"]])

        def fit(_: int) -> tuple[pd.Series, pd.Series]:
            estimate = pd.Series([1.0, 2.0, 3.0], index=next(orders))
            return estimate, estimate

        with pytest.raises(InputError, match="other coefficients"):
            pool.fit(fit, [1, 2])

    def test_other_coefficients_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"imputation 2 .* other coefficients"):
            pool.fit(lambda at: ({f"a{at}": 1.0}, {f"a{at}": 1.0}), range(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0]), "needs at least 2"),
        (([1.0, 2.0], [1.0, -1.0]), "negative"),
        (([1.0, 2.0], [[1.0, 2.0], [1.0, 2.0]]), "one variance for each"),
        (([1.0, np.nan], [1.0, 1.0]), "finite"),
        ((["a", "b"], [1.0, 1.0]), "must be numbers"),
        (([[1.0], [1.0, 2.0]], [1.0, 1.0]), "must be numbers"),
        ((np.zeros((2, 2, 2)), np.zeros((2, 2, 2))), "shape"),
    ],
)
def test_bad_input(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        pool(*arguments)


def test_bad_options() -> None:
    with pytest.raises(InputError, match="df_complete must be a positive"):
        pool(ESTIMATES, VARIANCES, df_complete=0)
    with pytest.raises(InputError, match="3 names for 2 estimates"):
        pool(ESTIMATES, VARIANCES, names=["a", "b", "c"])
    with pytest.raises(InputError, match="coverage"):
        pool(ESTIMATES, VARIANCES).interval(95)


def test_what_pandas_counts_by_itself_are_no_names():
    pairs = [(pd.Series([1.0, k], index=["a", "b"]), pd.Series([0.1, 0.2])) for k in (2.0, 2.5)]
    pooled = pool.fit(lambda pair: pair, pairs)
    assert list(pooled.names) == ["a", "b"]
    np.testing.assert_allclose(pooled.within, [0.1, 0.2])


def test_frames_are_matched_by_name() -> None:
    estimates = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 3.0]})
    variances = pd.DataFrame({"b": [100.0, 100.0], "a": [1.0, 1.0]})
    result = pool(estimates, variances)
    assert result.names == ("a", "b")
    assert result.within.tolist() == [1.0, 100.0]
    rows: list[Any] = [dict(row) for _, row in variances.iterrows()]
    assert pool(estimates, rows).within.tolist() == [1.0, 100.0]
    with pytest.raises(InputError, match="different names"):
        pool(estimates, variances.rename(columns={"b": "c"}))


def test_counted_labels_are_no_names() -> None:
    estimates = [pd.Series({"a": 1.0, "b": 2.0}), pd.Series({"a": 1.5, "b": 2.5})]
    plain = [pd.Series([0.1, 0.2]), pd.Series([0.1, 0.2])]
    assert pool(estimates, plain).names == ("a", "b")
    assert pool(plain, plain).names == ("x0", "x1")
    frame = pd.DataFrame({1: [1.0, 1.5], 2: [2.0, 2.5]})
    by_number = [pd.Series({2: 0.2, 1: 0.1})] * 2
    assert pool(frame, by_number).within.tolist() == [0.1, 0.2]
    arrow = pa.table({"a": [1.0, 1.5], "b": [2.0, 2.5]})
    assert pool(arrow, arrow).names == ("a", "b")


def test_numbers_that_are_none_are_named() -> None:
    with pytest.raises(InputError, match="that of 'b' in imputation 2 is nan"):
        pool([{"a": 1.0, "b": 2.0}, {"a": 1.0, "b": np.nan}], [{"a": 1.0, "b": 1.0}] * 2)


def test_arguments_in_the_wrong_order() -> None:
    tables = [pd.DataFrame({"x": np.arange(500.0)})] * 2
    with pytest.raises(InputError, match=r"got a list\. It comes first") as caught:
        pool.fit(tables, lambda table: table)
    assert len(str(caught.value)) < 200
    with pytest.raises(InputError, match=r"several tables, .* got a function"):
        pool.fit(lambda table: table, lambda table: table)


def test_rows_that_models_leave_out_are_told() -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["x", "y"])
    holed = table.assign(x=table["x"].mask(table["x"] > 0.5))
    with pytest.warns(GrapefillWarning, match="of 2 of 2 imputations left out rows with missing"):
        pool.fit(lambda each: smf.ols("y ~ x", each).fit(), [holed, holed])


def test_models_of_other_rows_are_told() -> None:
    def model(rows: Any) -> Any:
        return SimpleNamespace(params=np.ones(1), bse=np.ones(1), nobs=rows)

    with pytest.warns(GrapefillWarning, match="The models are of 110 to 150 rows"):
        pool.fit(model, [150.0, 110.0])
    assert pool.fit(model, [np.nan, None, np.ones(2)]).n_imputations == 3


@pytest.mark.parametrize("df", [None, "many", 0])
def test_degrees_of_freedom_are_numbers(df: Any) -> None:
    with pytest.raises(InputError, match="df_complete must be a positive number"):
        pool(ESTIMATES, VARIANCES, df_complete=df)


class TestLinearModels:
    """Models of scikit-learn, which do not tell how certain their coefficients are."""

    @pytest.fixture
    def tables(self) -> list[pd.DataFrame]:
        random = np.random.default_rng(0)
        tables = []
        for _ in range(3):
            x, z = random.normal(size=(2, 200))
            y = 1 + x - 0.5 * z + random.normal(size=200)
            tables.append(pd.DataFrame({"x": x, "z": z, "y": y, "up": (y > 1).astype(float)}))
        return tables

    def test_linear(self, tables: list[pd.DataFrame]) -> None:
        def fit(table: pd.DataFrame) -> Any:
            X, y = table[["x", "z"]], table["y"]
            return LinearRegression().fit(X, y), X, y

        expected = pool.fit(lambda table: smf.ols("y ~ x + z", table).fit(), tables)
        assert_same(pool.fit(fit, tables), expected)

    def test_logistic(self, tables: list[pd.DataFrame]) -> None:
        def fit(table: pd.DataFrame) -> Any:
            X, y = table[["x", "z"]], table["up"]
            return LogisticRegression(C=np.inf, tol=1e-10, max_iter=1_000).fit(X, y), X, y

        expected = pool.fit(lambda table: smf.logit("up ~ x + z", table).fit(disp=0), tables)
        assert_same(pool.fit(fit, tables), expected)

    def test_without_a_constant(self, tables: list[pd.DataFrame]) -> None:
        def fit(table: pd.DataFrame) -> Any:
            X, y = table[["x", "z"]].to_numpy(), table["y"].to_numpy()
            return LinearRegression(fit_intercept=False).fit(X, y), X, y

        found = pool.fit(fit, tables)
        expected = pool.fit(lambda table: smf.ols("y ~ x + z - 1", table).fit(), tables)
        assert found.names == ("x0", "x1")
        np.testing.assert_allclose(found.std_error, expected.std_error)

    @pytest.mark.parametrize(
        ("model", "target", "message"),
        [
            (LogisticRegression(), "up", "penalty.* Fit it with C=np.inf"),
            (LogisticRegression(C=np.inf, class_weight="balanced"), "up", "class_weight=None"),
            (Ridge(), "y", "coefficients of a Ridge are not known"),
            (LinearRegression(), ["y", "up"], "4 coefficients for 2 columns"),
            (LogisticRegressionCV(), "up", "of a LogisticRegressionCV are not known"),
            (LinearRegression(positive=True), "y", "held positive"),
        ],
    )
    @pytest.mark.filterwarnings("ignore::FutureWarning")
    def test_what_cannot_be_pooled(
        self, tables: list[pd.DataFrame], model: Any, target: Any, message: str
    ) -> None:
        def fit(table: pd.DataFrame) -> Any:
            X, y = table[["x", "z"]], table[target]
            return model.fit(X, y), X, y

        with pytest.raises(InputError, match=message):
            pool.fit(fit, tables)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda X, y: (X.assign(x="word"), y), "X must be a table of numbers"),
            (lambda X, y: (X[:10], y), "a row for every entry of y"),
            (lambda X, y: (X[["x"]], y[:10]), "it has 200 rows, and y 10"),
            (lambda X, y: (X[:3], y[:3]), "3 rows are too few for 3 coefficients"),
        ],
    )
    def test_data_that_does_not_fit(
        self, tables: list[pd.DataFrame], change: Any, message: str
    ) -> None:
        def fit(table: pd.DataFrame) -> Any:
            X, y = table[["x", "z"]], table["y"]
            return LinearRegression().fit(X, y), *change(X, y)

        with pytest.raises(InputError, match=message):
            pool.fit(fit, tables)

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_classes_that_are_told_without_fail(self, tables: list[pd.DataFrame]) -> None:
        def fit(table: pd.DataFrame) -> Any:
            X, y = 20 * table[["up"]] - 10, table["up"]
            return LogisticRegression(C=np.inf).fit(X, y), X, y

        with pytest.raises(InputError, match="tell the classes without fail"):
            pool.fit(fit, tables)

    def test_columns_that_determine_each_other(self, tables: list[pd.DataFrame]) -> None:
        def fit(table: pd.DataFrame) -> Any:
            X, y = np.ones((len(table), 2)), table["y"]
            return LinearRegression().fit(X, y), X, y

        with pytest.raises(InputError, match="determine each other"):
            pool.fit(fit, tables)

    @pytest.mark.parametrize("factory", [LinearRegression, "y ~ x"])
    def test_no_function(self, tables: list[pd.DataFrame], factory: Any) -> None:
        with pytest.raises(InputError, match="must be a function that takes a table"):
            pool.fit(factory, tables)


def test_terms_are_named_as_in_the_model() -> None:
    random = np.random.default_rng(0)
    tables = [pd.DataFrame(random.exponential(size=(40, 2)), columns=["t", "x"]) for _ in range(2)]
    found = pool.fit(lambda table: smf.phreg("t ~ x", table).fit(), tables)
    assert found.names == ("x",)


def assert_same(one: Any, other: Any) -> None:
    assert one.names == other.names
    np.testing.assert_allclose(one.estimate, other.estimate, rtol=1e-5)
    np.testing.assert_allclose(one.std_error, other.std_error, rtol=1e-5)
    np.testing.assert_allclose(one.df, other.df, rtol=1e-4)
