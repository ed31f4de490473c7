"""Intervals hold the truth as often as they should; distributions agree with them."""

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeImputer
from grapefill.errors import ConfigError, InputError
from grapefill.uncertainty.belief import Cells, Fills, NumberColumn, bring_closer, fit_columns
from grapefill.uncertainty.calibration import shared_level
from grapefill.uncertainty.quantiles import GRID, nested, quantile_grid, shortest


@pytest.fixture(scope="module")
def simulated():
    """A complete table with a column that is sometimes 0, and one of categories, and its holes."""
    random = np.random.default_rng(0)
    n = 900
    z = random.normal(size=n)
    complete = pd.DataFrame(
        {
            "even": z + 0.5 * random.normal(size=n),
            "uneven": z + np.exp(z / 2) * random.normal(size=n),
            "often_zero": np.where(random.random(n) < 0.5, 0.0, np.exp(z)),
            "word": np.where(z + 0.5 * random.normal(size=n) > 0, "up", "down"),
            "steps": random.integers(0, 6, n) / 5,
        }
    )
    return complete, complete.mask(random.random(complete.shape) < 0.3)


@pytest.fixture(scope="module")
def fitted(simulated):
    settings = {"max_steps": 150, "rounds": 1, "trees": 8, "trial_trees": 8}
    return GrapeImputer("fast", settings=settings, random_state=0).fit(simulated[1])


def test_coverage(simulated, fitted):
    complete, holed = simulated
    intervals = fitted.interval(holed, 0.9)
    lower, upper = intervals
    covered = []
    for name in ("even", "uneven", "often_zero", "steps"):
        rows = holed[name].isna()
        inside = (lower[name] <= complete[name] + 1e-9) & (complete[name] - 1e-9 <= upper[name])
        covered.append(inside[rows].mean())
        assert (lower[name] <= upper[name]).all()
        assert (lower[name] == upper[name])[~rows].all()
    assert min(covered) > 0.82
    assert 0.86 < np.mean(covered) < 0.96
    words = intervals.sets["word"]
    assert set(words) == set(np.flatnonzero(holed["word"].isna()))
    assert np.mean([complete["word"].iloc[row] in chosen for row, chosen in words.items()]) > 0.85


def test_ordered_categories_have_ends_and_sets(simulated, quick):
    complete = simulated[0]["even"].to_frame()
    grades = ["none", "few", "some", "many"]
    complete["grade"] = pd.cut(complete["even"], 4, labels=grades)
    holed = complete.mask(np.random.default_rng(1).random(complete.shape) < 0.2)
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(holed)
    intervals = imputer.interval(holed, 0.95)
    sets = intervals.sets["grade"]
    assert set(sets) == set(np.flatnonzero(holed["grade"].isna()))
    for row, chosen in sets.items():
        low, high = (grades.index(end["grade"].iloc[row]) for end in intervals)
        assert list(chosen) == grades[low : high + 1]
    assert {len(chosen) for chosen in sets.values()} > {1}


def test_more_coverage_holds_less(simulated, fitted):
    names = ["even", "uneven", "often_zero"]
    inner = fitted.interval(simulated[1], 0.3)
    for coverage in (0.5, 0.8, 0.95, 0.99):
        outer = fitted.interval(simulated[1], coverage)
        assert (outer[0][names] <= inner[0][names]).all(axis=None)
        assert (outer[1][names] >= inner[1][names]).all(axis=None)
        assert (outer[0][names] < inner[0][names]).any(axis=None)
        inner = outer


def test_intervals_of_a_grid_are_nested():
    random = np.random.default_rng(0)
    grid = np.sort(random.lognormal(size=(50, GRID.size)), axis=1)
    masses = GRID[::7].tolist()
    for less, more in itertools.pairwise(masses):
        inner, outer = nested(grid, less), nested(grid, more)
        assert (outer[0] <= inner[0]).all()
        assert (outer[1] >= inner[1]).all()
    short, middle = shortest(grid, 0.5), grid[:, [50, 150]].T
    assert (short[1] - short[0] <= middle[1] - middle[0]).all()
    assert (short[1] - short[0] < 0.8 * (middle[1] - middle[0])).any()


def test_wider_where_less_is_known(simulated, fitted):
    complete, holed = simulated
    lower, upper = fitted.interval(holed, 0.9)
    rows = holed["uneven"].isna() & holed["even"].notna()
    width = (upper["uneven"] - lower["uneven"])[rows]
    high = complete["even"][rows] > complete["even"][rows].median()
    assert width[high].mean() > 1.1 * width[~high].mean()


def test_distributions(simulated, fitted):
    complete, holed = simulated
    found = fitted.predict_distribution(holed)
    assert set(found) == set(complete)
    column = found["even"]
    assert column.rows.tolist() == np.flatnonzero(holed["even"].isna()).tolist()
    truth = complete["even"].to_numpy()[column.rows]
    quantiles = column.quantile([0.1, 0.5, 0.9])
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert abs((truth <= quantiles[:, 2]).mean() - 0.9) < 0.07
    assert np.array_equal(column.median(), column.quantile(0.5))
    below = column.probability(0.0)
    assert ((below >= 0) & (below <= 1)).all()
    assert abs(below.mean() - (truth <= 0).mean()) < 0.1
    zeros = found["often_zero"]
    exact = zeros.probability(0.0) - zeros.probability(-1e-9)
    assert 0.3 < exact.mean() < 0.65
    words = found["word"]
    assert words.categories == ("down", "up")
    np.testing.assert_allclose(words.chances.sum(axis=1), 1)
    np.testing.assert_array_equal(words.probability("up"), words.chances[:, 1])
    with pytest.raises(InputError, match="categories"):
        words.quantile(0.5)
    with pytest.raises(InputError, match="no category 'left'"):
        words.probability("left")
    with pytest.raises(InputError, match="between 0 and 1"):
        column.quantile(50)


@pytest.mark.parametrize("fill", ["median", "mean", "mode"])
def test_other_point_fills(simulated, fitted, fill):
    holed = simulated[1]
    column = fitted.predict_distribution(holed)["even"]
    try:
        filled = fitted.set_params(fill=fill).transform(holed)
    finally:
        fitted.set_params(fill="best")
    expected = getattr(column, fill)()
    np.testing.assert_allclose(filled["even"].to_numpy()[column.rows], expected)
    assert set(filled["word"]) == {"up", "down"}


def test_no_holes(simulated, fitted):
    complete = simulated[0]
    lower, upper = intervals = fitted.interval(complete)
    pd.testing.assert_frame_equal(lower, complete)
    pd.testing.assert_frame_equal(upper, complete)
    assert intervals.sets == {}
    assert fitted.predict_distribution(complete) == {}


@pytest.mark.parametrize("coverage", [0, 1, 90, "high", None, True])
def test_bad_coverage(simulated, fitted, coverage):
    with pytest.raises(ConfigError, match="coverage"):
        fitted.interval(simulated[1], coverage)


def test_without_held_out_cells_there_are_no_intervals():
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[::5, 0] = np.nan
    settings = {"epochs": 2, "width": 8, "edge_width": 8}
    imputer = GrapeImputer("paper", settings=settings, random_state=0).fit(X)
    assert len(imputer.sample(X, 2, random_state=0)) == 2
    with pytest.raises(InputError, match="No cells were held out"):
        imputer.interval(X)
    # What the message advises.
    imputer.set_params(settings=settings | {"epochs": 20, "validation": 0.1, "rejoin": 0.8})
    lower, upper = imputer.fit(X).interval(X)
    assert (lower[::5, 0] < upper[::5, 0]).all()


def test_a_single_column_has_the_intervals_of_its_values():
    values = np.random.default_rng(0).normal(size=150)
    table = pd.DataFrame({"a": np.where(np.arange(150) % 3 == 0, np.nan, values)})
    observed = table["a"].dropna()
    imputer = GrapeImputer("fast", settings={"max_steps": 30}, random_state=0).fit(table)
    lower, upper = (end["a"][::3].unique() for end in imputer.interval(table, 0.8))
    assert lower.size == upper.size == 1
    assert 0.7 < ((lower[0] <= observed) & (observed <= upper[0])).mean() < 0.95
    median = imputer.predict_distribution(table)["a"].median()
    assert np.abs((observed < median[0]).mean() - 0.5) < 0.15
    filled = imputer.set_params(fill="median").transform(table)["a"]
    assert filled.notna().all()


def test_a_single_column_of_categories_has_sets():
    table = pd.DataFrame({"a": [*"pppq", None] * 20})
    imputer = GrapeImputer("fast", settings={"max_steps": 30}, random_state=0).fit(table)
    for coverage, expected in ((0.6, ("p",)), (0.9, ("p", "q"))):
        assert set(imputer.interval(table, coverage).sets["a"].values()) == {expected}
    chances = imputer.predict_distribution(table)["a"].probability("p")
    assert ((chances > 0.6) & (chances < 0.9)).all()


def test_no_rows_have_no_intervals(simulated, fitted):
    intervals = fitted.interval(simulated[1].iloc[:0])
    for end in intervals:
        pd.testing.assert_frame_equal(end, simulated[1].iloc[:0])
    assert intervals.sets == {}


def test_bad_fill():
    with pytest.raises(ConfigError, match="fill must be one of"):
        GrapeImputer(fill="worst").fit([[1.0, 2.0], [3.0, 4.0]])


def test_a_level_of_few_cells():
    everyone = np.linspace(0, 1, 101)
    # Without cells of its own a column is like all together, and a little more careful.
    assert 0.9 < shared_level(np.empty(0), everyone, 0.9) < 1
    # Many cells of its own outweigh the others.
    own = np.linspace(0, 0.1, 2_000)
    assert 0.09 < shared_level(own, everyone, 0.9) < 0.1
    # A column of two values needs the larger one, not something between them.
    own = np.repeat([0.5, 0.96], [40, 10])
    assert shared_level(own, np.full(300, 0.7), 0.9) == 0.96
    # More than the cells can tell of.
    assert shared_level(np.full(20, 0.5), everyone, 0.999) == np.inf


def foretold(guess, spread=np.nan):
    """Return cells without votes."""
    guess = np.asarray(guess, dtype=float)
    nothing = np.full(guess.size, np.nan)
    none = np.empty((guess.size, 0))
    return Cells(guess, np.full(guess.size, spread), none, nothing, none.astype(bool))


def test_hard_values_count_as_often_as_they_occur():
    """The end of a column is seldom held out by chance: intervals reach it nonetheless."""
    values, shares = np.arange(4.0), np.full(4, 0.25)
    truth = np.repeat(values, [20, 20, 20, 2])
    masses = []
    for known in (None, shares):
        column = NumberColumn(
            truth, foretold(np.full(62, 1.2)), 0, 3, typical=1.0, repeated=values, shares=known
        )
        masses.append(fit_columns([column]).mass(0.9, 0))
    low, high = nested(quantile_grid(column.mixture(foretold([1.2]))), masses[1])
    assert (low[0], high[0]) == (0, 3)
    assert masses[0] < masses[1]


def test_few_observed_cells_promise_less():
    random = np.random.default_rng(0)
    guess = random.uniform(0, 100, 200)
    masses = [
        fit_columns(
            [NumberColumn(guess + random.uniform(-1, 1, 200), foretold(guess), 0, 100, **about)]
        ).mass(0.9, 0)
        for about in ({"typical": 0.5}, {"typical": 0.5, "n_observed": 60.0})
    ]
    assert masses[0] < masses[1]


@pytest.mark.parametrize("noise", [0.1, 40.0])
def test_votes_that_agree_more_than_in_the_trial(noise):
    """A fill is a little closer to the truth for it, unless nothing foretells the column."""
    random = np.random.default_rng(0)
    truth = random.uniform(0, 100, 300)
    guess = truth + noise * random.normal(size=300)
    widths = {}
    for spread in (0.2, 1.0, 5.0):
        column = NumberColumn(truth, foretold(guess, 1.0), 0.0, 100.0, typical=noise)
        fit_columns([column])
        bring_closer([column], [Fills(guess, np.full(300, spread))])
        grid = quantile_grid(column.mixture(foretold([50.0], spread)))
        widths[spread] = float(np.subtract(*shortest(grid, 0.9)[::-1])[0])
    if noise < 1:
        assert widths[0.2] < 0.9 * widths[1.0] < 0.8 * widths[5.0]
        assert widths[5.0] < 2 * widths[1.0]
    else:
        assert widths[0.2] > 0.9 * widths[5.0]


def test_votes_are_compared_on_like_fills():
    """Where only small values are missing, on which votes agree, nothing has changed."""
    random = np.random.default_rng(0)
    truth = random.uniform(0, 100, 300)
    cells = foretold(truth + random.normal(size=300))._replace(spread=0.01 + truth / 100)
    column = NumberColumn(truth, cells, 0.0, 100.0, typical=1.0)
    fit_columns([column])
    small = np.linspace(2, 12, 40)
    bring_closer([column], [Fills(small, 0.01 + small / 100)])
    assert 0.97 < column.closer <= 1.0
    assert column.apart > 0.6
    for nothing in (Fills(np.empty(0), np.empty(0)), Fills(small, np.zeros(40))):
        other = NumberColumn(truth, cells, 0.0, 100.0, typical=1.0)
        bring_closer([other], [nothing])
        assert (other.closer, other.apart) == (1.0, 1.0)


def test_a_belief_by_hand():
    """Errors of one size, far from each other: the interval is as wide as nine tenths of them."""
    random = np.random.default_rng(0)
    guess = random.uniform(0, 100, 400)
    truth = guess + random.uniform(-1, 1, 400)
    column = NumberColumn(truth, foretold(guess), 0.0, 100.0, typical=0.5)
    calibration = fit_columns([column])
    grid = quantile_grid(column.mixture(foretold([50.0])))
    assert (np.diff(grid) >= 0).all()
    low, high = shortest(grid, calibration.mass(0.9, 0))
    assert 1.5 < high[0] - low[0] < 2.3
    assert low[0] < 50 < high[0]


def test_probabilities_of_values_that_are_no_floats(quick):
    random = np.random.default_rng(0)
    z = random.normal(size=90)
    table = pd.DataFrame(
        {
            "z": z,
            "big": pd.array(np.where(z > 0, 2**60 + 1, 2**60 + 101), dtype="Int64"),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta((100 * z).round(), "D"),
            "long": pd.to_timedelta((100 * z).round(), "D"),
            "zone": pd.Timestamp("2020-01-01", tz="UTC") + pd.to_timedelta((100 * z).round(), "D"),
            "size": pd.Categorical(
                np.select([z < -0.5, z < 0.5], ["low", "middle"], "high"),
                ["low", "middle", "high"],
                ordered=True,
            ),
        }
    )
    for name in list(table)[1:]:
        table.loc[random.random(90) < 0.2, name] = None
    found = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    found = found.predict_distribution(table)
    for name, values in {
        "big": [2**60 - 5, 2**60 + 50, 2**60 + 101],
        "day": [pd.Timestamp("1900-01-01"), "2020-01-01", np.datetime64("2100-01-01")],
        "long": [pd.Timedelta(-999, "D"), pd.Timedelta(0), pd.Timedelta(999, "D")],
        "zone": [pd.Timestamp("1900-01-01", tz="Asia/Tokyo"), "2020-01-01", "2100-01-01"],
    }.items():
        none, some, everything = (found[name].probability(value) for value in values)
        assert (none == 0).all()
        assert (everything == 1).all()
        assert 0.05 < some.mean() < 0.95
    sizes = [found["size"].probability(word) for word in ("low", "middle", "high")]
    assert (sizes[0] <= sizes[1]).all()
    assert (sizes[2] == 1).all()
    for name, value in (("day", "yesterday"), ("long", object()), ("size", "huge"), ("z", 1)):
        if name in found:
            with pytest.raises(InputError, match=name):
                found[name].probability(value)


def test_a_median_is_the_same_before_and_after_intervals(quick):
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 1)) + 0.3 * random.normal(size=(90, 3))
    X[::4, 1] = np.nan
    imputer = GrapeImputer("fast", settings=quick, random_state=0, fill="median").fit(X)
    before = imputer.transform(X)
    imputer.interval(X)
    np.testing.assert_array_equal(imputer.transform(X), before)
    np.testing.assert_array_equal(imputer.predict_distribution(X)[1].median(), before[::4, 1])


def test_intervals_can_be_copied(simulated, fitted):
    interval = fitted.interval(simulated[1], 0.9)
    for again in (pickle.loads(pickle.dumps(interval)), copy.deepcopy(interval)):
        pd.testing.assert_frame_equal(again.lower, interval.lower)
        assert again.sets == interval.sets


def test_intervals_are_wider_where_less_is_known():
    random = np.random.default_rng(0)

    def rows(count):
        return random.normal(size=(count, 1)) + 0.3 * random.normal(size=(count, 5))

    table, new = rows(300), rows(200)
    table[random.random(table.shape) < 0.3] = np.nan
    settings = {"max_steps": 200, "rounds": 0}
    imputer = GrapeImputer("fast", settings=settings, random_state=0).fit(table)
    widths = []
    for known in (0, 1, 4):
        asked = new.copy()
        asked[:, : 5 - known] = np.nan
        lower, upper = (end[:, 0] for end in imputer.interval(asked, 0.9))
        widths.append((upper - lower).mean())
        assert ((lower <= new[:, 0]) & (new[:, 0] <= upper)).mean() > 0.75
    assert widths[0] > 1.5 * widths[1] > 1.5 * widths[2]


def test_rows_without_any_known_cell_do_not_make_others_uncertain(quick):
    random = np.random.default_rng(0)
    x = random.normal(size=500)
    complete = np.stack([x, 3 * x + 0.05 * random.normal(size=500)], axis=1)
    missing = random.random(complete.shape) < 0.25
    holed = np.where(missing, np.nan, complete)
    settings = quick | {"max_steps": 60}
    imputer = GrapeImputer("fast", settings=settings, random_state=0).fit(holed)
    lower, upper = imputer.interval(holed, 0.9)
    inside = (lower <= complete) & (complete <= upper)
    width = (upper - lower) / complete.std(axis=0)
    nothing = missing & missing.all(axis=1)[:, None]
    other = missing & ~nothing
    assert inside[nothing].mean() > 0.7
    assert width[nothing].mean() > 2.5
    assert 0.85 < inside[other].mean() < 0.98
    assert width[other].mean() < 0.3


@pytest.mark.parametrize("cells", [25, 40])
def test_a_column_that_is_only_seen_alone_has_errors_of_its_own(cells, quick):
    random = np.random.default_rng(0)
    x = random.normal(size=240)
    complete = np.stack([x, x, x, random.normal(size=240)], axis=1)
    complete[:, :3] += 0.05 * random.normal(size=(240, 3))
    holed = complete.copy()
    holed[:cells, :3] = np.nan
    holed[cells:, 3] = np.nan
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(holed)
    lower, upper = imputer.interval(holed, 0.9)
    inside = (lower <= complete) & (complete <= upper)
    assert inside[cells:, 3].mean() > 0.8


def test_ordered_categories_have_probabilities(quick):
    random = np.random.default_rng(0)
    x = random.normal(size=200)
    size = pd.Categorical.from_codes(np.digitize(x, [-0.5, 0.5]), ["S", "M", "L"], ordered=True)
    table = pd.DataFrame({"x": x, "size": size})
    table.loc[::4, "size"] = None
    found = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    found = found.predict_distribution(table)["size"]
    assert found.categories == ("S", "M", "L")
    np.testing.assert_allclose(found.chances.sum(axis=1), 1)
    np.testing.assert_allclose(found.chances[:, :2].sum(axis=1), found.probability("M"))
    assert set(found.median()) <= {"S", "M", "L"}
