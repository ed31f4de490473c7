"""Draws differ where cells are missing, keep what was observed, and go along with each other."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from grapefill import GrapeImputer
from grapefill.errors import ConfigError, InputError
from grapefill.uncertainty import column_trees, gibbs, regression
from grapefill.uncertainty.column_trees import ColumnTrees
from grapefill.uncertainty.fitted import Uncertainty
from grapefill.uncertainty.gibbs import fit_joint
from grapefill.uncertainty.swept import SweptColumn
from grapefill.uncertainty.wide import WideDraws


def test_observed_cells_stay_and_holes_differ(imputer, holed):
    draws = imputer.sample(holed, 4, random_state=0)
    assert len(draws) == 4
    known = holed.notna()
    for drawn in draws:
        assert drawn.dtypes.equals(holed.dtypes)
        assert not drawn.isna().any().any()
        pd.testing.assert_frame_equal(drawn.where(known), holed.where(known))
    assert (draws[0]["a"] != draws[1]["a"])[~known["a"]].mean() > 0.9
    assert (draws[0]["a"] == draws[1]["a"])[known["a"]].all()


def test_values_stay_near_what_was_observed(imputer, holed):
    for drawn in imputer.sample(holed, 3, random_state=1):
        assert set(drawn["word"]) == {"up", "down"}
        for name in ("a", "b", "count", "size"):
            low, high = holed[name].min(), holed[name].max()
            room = (high - low) / 2 if name in "ab" else 0
            assert drawn[name].between(low - room, high + room).all()
        assert (drawn["size"] % 1 == 0).all()


def test_the_same_seed_draws_the_same(imputer, holed):
    one, again, other = (imputer.sample(holed, 2, random_state=seed)[1] for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(one, again)
    assert not one.equals(other)


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_generators_of_numpy(imputer, holed, kind):
    random = kind(3)
    one, other = (imputer.sample(holed, 1, random_state=random)[0] for _ in range(2))
    pd.testing.assert_frame_equal(one, imputer.sample(holed, 1, random_state=kind(3))[0])
    assert not one.equals(other)


@pytest.mark.parametrize("given", ["3", -1, 2.5, np.random.SeedSequence(3)])
def test_other_sources_of_randomness_are_refused(imputer, holed, given):
    with pytest.raises(ConfigError, match="random_state must be a whole number"):
        imputer.sample(holed, 1, random_state=given)


def test_a_row_does_not_depend_on_the_rows_behind_it(imputer, holed):
    whole = imputer.sample(holed, 2, random_state=0)[1]
    part = imputer.sample(holed.iloc[:30], 2, random_state=0)[1]
    pd.testing.assert_frame_equal(part, whole.iloc[:30])


def test_tables_come_one_at_a_time(imputer, holed):
    each = imputer.sample_each(holed, 3, random_state=0)
    listed = imputer.sample(holed, 3, random_state=0)
    for drawn, expected in zip(each, listed, strict=True):
        pd.testing.assert_frame_equal(drawn, expected)


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_other_containers(imputer, holed, convert):
    table = convert(holed)
    drawn = imputer.sample(table, 2, random_state=0)
    assert type(drawn[0]) is type(table)
    long = imputer.sample(table, 2, random_state=0, long=True)
    assert type(long) is type(table)
    names = long.columns if isinstance(long, pl.DataFrame) else long.column_names
    assert list(names) == [".imp", ".id", *holed.columns]


def test_long_format(imputer, holed):
    draws = imputer.sample(holed, 3, random_state=0)
    long = imputer.sample(holed, 3, random_state=0, long=True)
    assert long[".imp"].value_counts().to_dict() == dict.fromkeys((1, 2, 3), len(holed))
    second = long[long[".imp"] == 2]
    assert second[".id"].tolist() == list(range(1, len(holed) + 1))
    assert second["a"].tolist() == draws[1]["a"].tolist()


def test_arrays(quick):
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 1)) + 0.5 * random.normal(size=(80, 3))
    X[random.random(X.shape) < 0.2] = np.nan
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(X)
    drawn = imputer.sample(X, 2, random_state=0)
    assert isinstance(drawn[0], np.ndarray)
    assert imputer.sample(X, 2, random_state=0, long=True).shape == (160, 5)


def test_draws_survive_a_file(imputer, holed, tmp_path):
    imputer.save(tmp_path / "model.grape")
    loaded = GrapeImputer.load(tmp_path / "model.grape")
    for one, other in zip(
        imputer.sample(holed, 2, random_state=0),
        loaded.sample(holed, 2, random_state=0),
        strict=True,
    ):
        pd.testing.assert_frame_equal(one, other)
    for one, other in zip(imputer.interval(holed), loaded.interval(holed), strict=True):
        pd.testing.assert_frame_equal(one, other)


def test_draws_keep_correlation():
    """A single fill makes correlations too strong; draws do not."""
    random = np.random.default_rng(0)
    X = random.multivariate_normal([0, 0, 0], [[1, 0.6, 0.3], [0.6, 1, 0.5], [0.3, 0.5, 1]], 600)
    holed = np.where(random.random(X.shape) < 0.3, np.nan, X)
    settings = {"max_steps": 60, "rounds": 1, "trees": 6, "trial_trees": 6}
    imputer = GrapeImputer("fast", settings=settings, random_state=0).fit(holed)

    def gap(correlation):
        return np.abs(correlation - np.corrcoef(X.T)).mean()

    draws = [np.corrcoef(drawn.T) for drawn in imputer.sample(holed, 10, random_state=0)]
    single = gap(np.corrcoef(imputer.transform(holed).T))
    assert gap(np.mean(draws, axis=0)) < 0.5 * single
    assert np.mean([gap(each) for each in draws]) < 0.7 * single


@pytest.mark.parametrize("many_rows", [100, 10_000])
def test_coefficients_are_as_uncertain_as_they_should_be(many_rows, quick, monkeypatch):
    """The spread of a mean between draws is what the theory says, about."""
    monkeypatch.setattr(gibbs, "MANY_ROWS", many_rows)
    monkeypatch.setattr(gibbs, "START_ROWS", 150)
    random = np.random.default_rng(1)
    n = 400
    x = random.normal(size=n)
    y = x + random.normal(size=n)
    y[: n // 2] = np.nan
    table = np.column_stack([x, y])
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    means = [drawn[:, 1].mean() for drawn in imputer.sample(table, 40, random_state=0)]
    # Half of the cells with error 1, and their common mean known from the other half.
    expected = np.sqrt(0.25 * (1 / (n / 2) + 1 / (n / 2)))
    assert 0.7 * expected < np.std(means) < 1.4 * expected


def test_what_is_not_linear_is_drawn_too(quick):
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, 500)
    table = np.column_stack([x, 4 * x**2 + 0.05 * random.normal(size=500)])
    hidden = random.random(500) < 0.3
    truth = table[hidden, 1].copy()
    table[hidden, 1] = np.nan
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    drawn = imputer.sample(table, 1, random_state=0)[0][hidden, 1]
    assert np.abs(drawn - truth).mean() < 0.2


def test_a_column_without_holes_at_fit_is_drawn_too(quick):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 1)) + 0.2 * random.normal(size=(60, 2))
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(X)
    new = np.array([[1.0, np.nan], [np.nan, -1.0]])
    drawn = np.stack(imputer.sample(new, 20, random_state=0))
    assert np.isfinite(drawn).all()
    assert drawn[:, 0, 1].mean() > 0.3 > -0.3 > drawn[:, 1, 0].mean()


def test_many_columns_are_drawn_from_factors(quick):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3)) @ random.normal(size=(3, 220))
    X += 0.3 * random.normal(size=X.shape)
    holed = np.where(random.random(X.shape) < 0.2, np.nan, X)
    imputer = GrapeImputer("fast", settings=quick | {"rounds": 0}, random_state=0).fit(holed)
    assert isinstance(imputer.uncertainty_.sampler, WideDraws)
    one, other = imputer.sample(holed, 2, random_state=0)
    part = imputer.sample(holed[:10], 2, random_state=0)[0]
    np.testing.assert_array_equal(part, one[:10])
    hidden = np.isnan(holed)
    assert (one[hidden] != other[hidden]).mean() > 0.9
    assert np.abs(one - X)[hidden].mean() < np.abs(X)[hidden].mean()


def test_a_column_tells_another_in_a_table_of_many_columns(quick):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 120))
    X[:, 1] = X[:, 0] + 0.3 * random.normal(size=200)
    holed = X.copy()
    holed[random.random(200) < 0.4, 1] = np.nan
    imputer = GrapeImputer("fast", settings=quick | {"rounds": 0}, random_state=0).fit(holed)
    drawn = imputer.sample(holed, 3, random_state=0)
    slopes = [np.polyfit(each[:, 0], each[:, 1], 1)[0] for each in drawn]
    assert 0.85 < np.mean(slopes) < 1.1


def test_learning_draws_again_gives_the_same(imputer, holed):
    numbers = imputer.schema_.encode(_wrap(holed)).numbers
    one, again = (fit_joint(imputer.model_, numbers, seed=5).arrays() for _ in range(2))
    assert one.keys() == again.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, again[name])


def _wrap(table):
    from grapefill.table import Table

    return Table.wrap(table)


def test_correlations_of_what_is_not_linear_are_kept():
    """What trees leave over is as large for drawn cells as it is for observed ones."""
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, 3000)
    first = np.sin(2 * x) + 0.5 * x + 0.5 * random.normal(size=x.size)
    second = np.abs(x) + x + 0.5 * random.normal(size=x.size)
    complete = np.stack([x, first, second], axis=1)
    holed = np.where(random.random(complete.shape) < 0.3, np.nan, complete)
    settings = {"max_steps": 60, "rounds": 1, "trees": 10, "trial_trees": 10}
    imputer = GrapeImputer("fast", settings=settings, random_state=0).fit(holed)
    draws = imputer.sample(holed, 5, random_state=0)
    drawn = np.mean([np.corrcoef(each.T) for each in draws], axis=0)
    np.testing.assert_allclose(drawn, np.corrcoef(complete.T), atol=0.03)


def test_trees_that_are_dropped_leave_the_regression_as_it_was(holed, imputer, monkeypatch):
    found = []

    def result(column, low, high):
        # Wanted at first, and no longer in the end.
        monkeypatch.setattr(ColumnTrees, "signal", lambda trees: 0.0)
        drawn = whole_result(column, low, high)
        kept = np.stack([each.coefficients for each in column.kept])
        if not column.n_categories:
            found.append((kept - kept.mean(axis=0) + np.mean(column.best, axis=0), drawn))
        return drawn

    whole_result = SweptColumn.result
    monkeypatch.setattr(SweptColumn, "result", result)
    monkeypatch.setattr(ColumnTrees, "signal", lambda trees: 1.0)
    fit_joint(imputer.model_, imputer.schema_.encode(_wrap(holed)).numbers, seed=0)
    assert found
    for centred, drawn in found:
        assert drawn.forest is None
        np.testing.assert_allclose(drawn.coefficients, centred, rtol=1e-9, atol=1e-12)


def test_what_is_not_linear_is_learned_from_a_table_without_holes(quick):
    random = np.random.default_rng(0)
    x = random.uniform(-3, 3, 400)
    complete = np.stack([x, x**2 + 0.1 * random.normal(size=400)], axis=1)
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(complete)
    new = np.stack([x[:50], np.full(50, np.nan)], axis=1)
    drawn = imputer.sample(new, 1, random_state=0)[0]
    assert np.abs(drawn[:, 1] - x[:50] ** 2).mean() < 0.5


@pytest.mark.parametrize("many_rows", [100, 10_000])
def test_twenty_draws_of_the_coefficients_are_kept(many_rows, holed, imputer, monkeypatch):
    monkeypatch.setattr(gibbs, "MANY_ROWS", many_rows)
    monkeypatch.setattr(gibbs, "START_ROWS", 40)
    numbers = imputer.schema_.encode(_wrap(holed)).numbers
    for column in fit_joint(imputer.model_, numbers, seed=0).columns:
        assert column.coefficients.shape[0] == 20
        assert np.unique(column.coefficients.reshape(20, -1), axis=0).shape[0] == 20


def test_a_few_imputations_come_from_different_sweeps(holed, imputer, monkeypatch):
    monkeypatch.setattr(gibbs, "MANY_ROWS", 100)
    first = {}
    keep = SweptColumn.keep

    def note(column, weights, products):
        before = len(column.kept)
        keep(column, weights, products)
        first.setdefault(column.feature, []).append(column.kept[before].coefficients)

    monkeypatch.setattr(SweptColumn, "keep", note)
    monkeypatch.setattr(ColumnTrees, "signal", lambda trees: 0.0)
    found = fit_joint(imputer.model_, imputer.schema_.encode(_wrap(holed)).numbers, seed=0)
    assert first
    for feature, firsts in first.items():
        assert len(firsts) == 5
        # Those of numbers are moved, all of a column alike.
        apart = np.diff(found.columns[feature].coefficients[:5], axis=0)
        np.testing.assert_allclose(apart, np.diff(firsts, axis=0), rtol=1e-9, atol=1e-12)


def test_kept_coefficients_of_all_columns_count_rows_alike(monkeypatch):
    """Each is the regression in the table as it was drawn last, rows weighted alike."""
    random = np.random.default_rng(0)
    complete = random.multivariate_normal(np.zeros(3), np.full((3, 3), 0.6) + 0.4 * np.eye(3), 200)
    holed = np.where(random.random(complete.shape) < 0.2, np.nan, complete)
    settings = {"max_steps": 20, "rounds": 0}
    imputer = GrapeImputer("fast", settings=settings, random_state=0).fit(holed)
    monkeypatch.setattr(ColumnTrees, "signal", lambda trees: 0.0)
    monkeypatch.setattr(regression, "draw_widths", lambda *_: np.inf)
    checked = []
    keep = SweptColumn.keep

    def check(column, weights, products):
        keep(column, weights, products)
        others = np.delete(column.work.scaled.astype(np.float64), column.feature, axis=1)
        inputs = np.column_stack([np.ones(200), others])
        root = np.sqrt(weights[:, [0]])
        target = column.work.scaled[:, column.feature].astype(np.float64)
        expected = np.linalg.lstsq(inputs * root, target * root[:, 0], rcond=None)[0]
        np.testing.assert_allclose(column.kept[-1].coefficients, expected, atol=1e-3)
        checked.append(weights)

    monkeypatch.setattr(SweptColumn, "keep", check)
    numbers = imputer.schema_.encode(_wrap(holed)).numbers
    fit_joint(imputer.model_, numbers, seed=0)
    assert len(checked) == 60
    assert checked[0] is checked[1] is checked[2]
    assert checked[3] is not checked[0]
    monkeypatch.setattr(gibbs, "MOST_TOGETHER", 0)
    fit_joint(imputer.model_, numbers, seed=0)
    assert len(checked) == 120


def test_cells_that_are_missing_together_are_spread_as_the_column_is(quick):
    """However closely they go along with each other."""
    random = np.random.default_rng(0)
    table = random.normal(size=(500, 1)) + 0.1 * random.normal(size=(500, 2))
    table[:200] = np.nan
    table[200:300, 0] = np.nan
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    drawn = np.stack(imputer.sample(table, 5, random_state=0))
    together, alone = drawn[:, :200], drawn[:, 200:300]
    spread = together.std(axis=1).mean(axis=0) / np.nanstd(table, axis=0)
    assert np.abs(spread - 1).max() < 0.2
    assert np.corrcoef(together.reshape(-1, 2).T)[0, 1] > 0.95
    assert (alone[:, :, 0] - alone[:, :, 1]).std() < 0.3
    part = imputer.sample(table[:50], 1, random_state=0)[0]
    np.testing.assert_array_equal(part, drawn[0, :50])


def test_draws_of_a_long_table_keep_what_is_not_linear(monkeypatch):
    monkeypatch.setattr(gibbs, "MANY_ROWS", 1_000)
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 2_500))
    complete = np.stack([a, b, a * b + 0.3 * random.normal(size=a.size)], axis=1)
    holed = np.where(random.random(complete.shape) < 0.25, np.nan, complete)
    settings = {"max_steps": 60, "rounds": 1, "trees": 6, "trial_trees": 6}
    imputer = GrapeImputer("fast", settings=settings, random_state=0).fit(holed)
    assert gibbs.leaves_little_open(np.isnan(holed))

    def product(table):
        return np.corrcoef(table[:, 0] * table[:, 1], table[:, 2])[0, 1]

    drawn = [product(each) for each in imputer.sample(holed, 3, random_state=0)]
    assert all(column.forest is not None for column in imputer.uncertainty_.sampler.columns)
    assert np.mean(drawn) > product(complete) - 0.15


def test_only_long_tables_with_most_pairs_of_cells_leave_little_open(monkeypatch):
    monkeypatch.setattr(gibbs, "MANY_ROWS", 100)
    missing = np.zeros((200, 3), dtype=bool)
    assert gibbs.leaves_little_open(missing)
    assert not gibbs.leaves_little_open(missing[:99])
    missing[:70, 1] = True
    assert gibbs.leaves_little_open(missing)
    # Each column has most of its cells, but few rows have both.
    missing[-70:, 2] = True
    assert not gibbs.leaves_little_open(missing)


@pytest.mark.parametrize("share", [0.085, 0.115])
def test_a_start_draws_as_the_whole_column_does(share, quick, monkeypatch):
    """Whether values are frequent may look different in the rows of the start."""
    monkeypatch.setattr(gibbs, "MANY_ROWS", 100)
    monkeypatch.setattr(gibbs, "START_ROWS", 300)
    random = np.random.default_rng(0)
    table = 100 + random.normal(size=(1_000, 1)) + random.normal(size=(1_000, 2))
    table[random.random(1_000) < share, 1] = 90.5
    table[random.random(1_000) < 0.3, 1] = np.nan
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    drawn = []
    redraw = SweptColumn.redraw_like

    def note(column, other):
        assert other.as_donors == column.as_donors
        redraw(column, other)
        drawn.append(column.work.values[column.holes, column.feature].copy())
        assert not column.levels.size

    monkeypatch.setattr(SweptColumn, "redraw_like", note)
    for seed in range(6):
        fit_joint(imputer.model_, table, seed=seed)
    assert len(drawn) == 12
    for values in drawn:
        assert 95 < np.median(values) < 103
        assert np.unique(values).size > 5


def test_draws_of_a_long_table_do_not_depend_on_what_a_poor_network_guessed():
    random = np.random.default_rng(3)
    x = random.multivariate_normal(np.zeros(3), 0.5 + 0.5 * np.eye(3), size=20_000)
    y = x @ [1.0, -1.0, 0.5] + random.normal(size=20_000)
    complete = np.column_stack([x, y])
    holed = complete.copy()
    holes = random.random((20_000, 3)) < 0.3
    holed[:, [0, 1, 3]] = np.where(holes, np.nan, holed[:, [0, 1, 3]])
    poor = {"width": 8, "edge_width": 8, "head_width": 8, "layers": 1, "max_steps": 10, "rounds": 0}
    imputer = GrapeImputer("fast", settings=poor, random_state=0).fit(holed)

    def slopes(table):
        return np.linalg.lstsq(table[:, :3], table[:, 3])[0]

    drawn = [slopes(table) for table in imputer.sample_each(holed, 5, random_state=0)]
    off = np.mean(drawn, axis=0) - slopes(complete)
    # A standard error of the complete table is .01; what a few sweeps leave of the guess, .04.
    assert np.abs(off).max() < 0.02


def test_large_trees_are_grown_only_where_small_ones_find_something(quick, monkeypatch):
    random = np.random.default_rng(0)
    x = random.uniform(-3, 3, 600)
    table = np.stack([x, x**2 + 0.1 * random.normal(size=600), random.normal(size=600)], axis=1)
    table[random.random(table.shape) < 0.2] = np.nan
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    monkeypatch.setattr(column_trees, "TREE_ROWS", 400)
    monkeypatch.setattr(column_trees, "TRIAL_ROWS", 100)
    grown = {0: [], 1: [], 2: []}
    grow_one = ColumnTrees._grow_one

    def note(trees, cells):
        grown[({0, 1, 2} - set(trees.reads)).pop()].append(cells.size)
        return grow_one(trees, cells)

    monkeypatch.setattr(ColumnTrees, "_grow_one", note)
    found = fit_joint(imputer.model_, table, seed=0).columns
    assert found[1].forest is not None
    assert found[2].forest is None
    assert grown[1][:3] == [100] * 3
    assert set(grown[2]) == {100}
    assert len(grown[2]) <= 3
    assert min(grown[1][3:]) > 200


def test_columns_of_few_cells_are_learned_from_some_rows(quick, monkeypatch):
    random = np.random.default_rng(0)
    table = random.normal(size=(600, 3))
    table[1:, 2] = np.nan
    table[random.random(600) < 0.3, 0] = np.nan
    monkeypatch.setattr("grapefill.uncertainty.gibbs.FEWEST_ROWS", 50)
    monkeypatch.setattr("grapefill.uncertainty.gibbs.LEARNED_ROWS", 50)
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    for drawn in imputer.sample(table, 3, random_state=0):
        assert np.isfinite(drawn).all()
        assert (drawn[:, 2] == table[0, 2]).all()


@pytest.mark.parametrize("count", [0, -1, 2.5, True, "3"])
def test_a_bad_number_of_draws(imputer, holed, count):
    with pytest.raises(ConfigError, match="n_imputations"):
        imputer.sample(holed, count)


def test_a_model_without_draws_says_so(imputer, holed):
    other = clone(imputer)
    other.__dict__.update(imputer.__dict__)
    other._draws = None
    with pytest.raises(InputError, match="Fit it again"):
        other.sample(holed, 2)


def test_damaged_draws_are_refused(imputer):
    tensors = imputer.uncertainty_.tensors()
    assert Uncertainty.from_tensors({}, imputer.model_) is None
    broken = {
        name: tensor[..., :-1] if "inputs" in name else tensor for name, tensor in tensors.items()
    }
    with pytest.raises(ValueError, match="regression"):
        Uncertainty.from_tensors(broken, imputer.model_)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [1.0, None], "b": ["x", None]}),
        pd.DataFrame({"a": [None, 1.0, 1.0], "b": ["x", "x", None]}),
        pd.DataFrame({"a": [1e300, -1e300, None, 1e290], "b": [0.0, 0.0, 0.0, None]}),
        pd.DataFrame({"only": ["u", "v", None, "w", "u"]}),
        pd.DataFrame({"one": [None, True], "two": pd.array([3, None], dtype="Int64")}),
    ],
)
def test_tiny_and_extreme_tables(quick, table):
    imputer = GrapeImputer("fast", settings=quick | {"max_steps": 2}, random_state=0).fit(table)
    for drawn in imputer.sample(table, 3, random_state=0):
        assert not drawn.isna().any().any()


def test_many_categories_are_drawn_by_the_chances_of_the_model(tmp_path):
    rng = np.random.default_rng(0)
    towns = rng.integers(70, size=600)
    table = pd.DataFrame({"town": [f"town {code}" for code in towns], "x": towns + rng.random(600)})
    table["town"] = table["town"].astype("category").mask(rng.random(600) < 0.2)
    imputer = GrapeImputer("fast", settings={"max_steps": 20, "trees": 2}, random_state=0)
    draws = imputer.fit(table).sample(table, 3, random_state=0)
    holes = table["town"].isna()
    assert not draws[0].isna().any(axis=None)
    assert (draws[0]["town"] != draws[1]["town"])[holes].mean() > 0.5
    imputer.save(tmp_path / "m.grape")
    again = GrapeImputer.load(tmp_path / "m.grape").sample(table, 3, random_state=0)
    pd.testing.assert_frame_equal(again[2], draws[2])
