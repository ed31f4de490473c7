"""How far draws go beyond what was observed."""

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeImputer
from grapefill.uncertainty.reach import Bend, Reach, reach_of

SETTINGS = {"max_steps": 5, "rounds": 0}


def drawn_from(table, count=5, **parameters):
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0, **parameters).fit(table)
    return imputer.sample(table, count, random_state=0)


def missing_by(x, random):
    return random.random(x.size) < 1 / (1 + np.exp(-2 * x))


@pytest.mark.parametrize("whole", [False, True])
def test_what_is_missing_by_another_column_is_drawn_as_large_as_it_is(whole):
    random = np.random.default_rng(0)
    x, z, noise = random.normal(size=(3, 800))
    y = 2 * x + z + 0.7 * noise
    if whole:
        y = np.rint(20 * y)
    holes = missing_by(x, random)
    table = pd.DataFrame({"x": x, "z": z, "y": np.where(holes, np.nan, y)})
    draws = drawn_from(table)
    slopes = [np.linalg.lstsq(table[["x", "z"]].assign(one=1), d["y"])[0] for d in draws]
    complete = np.linalg.lstsq(table[["x", "z"]].assign(one=1), y)[0]
    np.testing.assert_allclose(np.mean(slopes, axis=0), complete, atol=0.12 * (20 if whole else 1))
    assert max(d["y"].max() for d in draws) > table["y"].max()
    assert all((d["y"] % 1 == 0).all() for d in draws) is whole


def test_limits_of_the_user_hold_there_too():
    random = np.random.default_rng(0)
    x = random.normal(size=400)
    y = np.where(missing_by(x, random), np.nan, 2 * x + 0.5 * random.normal(size=400))
    table = pd.DataFrame({"x": x, "y": y})
    limit = np.nanmax(y) + 0.1
    for drawn in drawn_from(table, constraints={"y": {"max": limit}}):
        assert np.nanmax(y) < drawn["y"].max() <= limit


def test_small_integers_stay_what_their_type_can_hold():
    random = np.random.default_rng(0)
    x = random.normal(size=600)
    y = np.clip(np.rint(200 + 20 * x + 3 * random.normal(size=600)), 0, 255)
    y[y.argmax()] = 253
    y[y > 253] = 252
    table = pd.DataFrame({"x": x, "y": pd.array(y.astype(int), dtype="UInt8")})
    table.loc[missing_by(x, random) & (y < 253), "y"] = pd.NA
    for drawn in drawn_from(table):
        assert drawn["y"].dtype == "UInt8"


def test_what_is_positive_stays_positive():
    random = np.random.default_rng(0)
    x = random.normal(size=500)
    y = 3 + x + 0.5 * random.normal(size=500)
    y[y < 0.1] = 0.1 + random.random((y < 0.1).sum())
    table = pd.DataFrame({"x": x, "y": np.where(missing_by(-x, random), np.nan, y)})
    for drawn in drawn_from(table):
        assert drawn["y"].min() > table["y"].min() / 2


@pytest.mark.parametrize("rows", [600, 3_000])
def test_draws_do_not_heap_at_the_ends_of_shares(rows):
    random = np.random.default_rng(0)
    x, noise = random.normal(size=(2, rows))
    share = 100 / (1 + np.exp(-x - noise))
    holes = random.random(rows) < 0.25
    table = pd.DataFrame({"x": x, "share": np.where(holes, np.nan, share)})
    drawn = np.concatenate([each["share"][holes] for each in drawn_from(table)])
    assert (drawn <= table["share"].min()).mean() < 0.005
    assert (drawn >= table["share"].max()).mean() < 0.005
    assert 0.8 < drawn.std() / share[holes].std() < 1.1


def test_dates_end_where_the_observed_ones_do():
    random = np.random.default_rng(0)
    x = random.normal(size=300)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(
        np.rint(100 * x + 20 * random.random(300)), "D"
    )
    table = pd.DataFrame({"x": x, "day": pd.Series(day).mask(missing_by(x, random))})
    for drawn in drawn_from(table):
        assert drawn["day"].between(table["day"].min(), table["day"].max()).all()


def test_an_end_with_several_values_is_a_limit():
    some = np.array([1.0, 1.0, 2.0, 4.0])
    assert reach_of(some, some) == Reach(1.0, 5.5)
    assert reach_of(-some, -some) == Reach(-5.5, -1.0)


def test_an_end_that_draws_often_pass_is_a_limit():
    random = np.random.default_rng(0)
    shares = random.random(300)
    reach = reach_of(shares, shares + 0.1 * random.normal(size=300))
    assert reach == Reach(shares.min(), shares.max())


def test_ends_of_new_values_of_the_same_kind_are_open_as_a_rule():
    random = np.random.default_rng(0)
    opened = 0
    for _ in range(200):
        old, new = random.normal(size=(2, 150))
        opened += reach_of(old, new).high > old.max()
    assert opened >= 190


@pytest.mark.parametrize("values", [[5.0], [0.0, 1e308, -1e308], [0.0, 3.0]])
def test_any_numbers(values):
    values = np.array(values)
    reach = reach_of(values, values)
    assert np.isfinite(reach).all()
    assert reach.low <= values.min() <= values.max() <= reach.high
    if values.min() == 0:
        assert reach.low == 0


def test_draws_of_several_seeds_differ_as_much_as_several_of_one():
    random = np.random.default_rng(0)
    x = random.normal(size=120)
    y = np.where(random.random(120) < 0.6, np.nan, x + random.normal(size=120))
    table = np.column_stack([x, y])
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    of_one = [np.polyfit(*d.T, 1)[0] for d in imputer.sample(table, 20, random_state=0)]
    of_each = [
        np.polyfit(*imputer.sample(table, 1, random_state=seed)[0].T, 1)[0] for seed in range(20)
    ]
    assert 0.5 < np.std(of_each) / np.std(of_one) < 2


@pytest.mark.parametrize("dtype", ["Int64", "float64"])
def test_whole_numbers_that_are_positive_stay_so(dtype):
    random = np.random.default_rng(3)
    z = random.normal(size=300)
    days = np.clip(np.rint(14 + 6 * z + 2.5 * random.normal(size=300)), 2, None)
    days[z.argmin()] = 1
    holes = (random.random(300) < 0.3) | ((z < -1.3) & (random.random(300) < 0.9))
    holes[z.argmin()] = False
    table = pd.DataFrame({"days": pd.Series(days).astype(dtype).mask(holes), "z": z})
    draws = drawn_from(table, 10)
    assert min(drawn["days"].min() for drawn in draws) == 1


def test_integers_that_floats_just_hold_are_counted_from_where_they_were():
    random = np.random.default_rng(1)
    z = random.normal(size=400)
    number = (6.2e15 + 0.9e15 * (z + 0.5 * random.normal(size=400))).astype("int64")
    number = np.minimum(number, 2**53 - random.integers(1, 10**12, 400))
    table = pd.DataFrame({"number": pd.array(number, dtype="Int64"), "z": z})
    holes = random.random(400) < 0.3 + 0.5 * (z > 0.8)
    table.loc[holes, "number"] = pd.NA
    for drawn in drawn_from(table):
        assert drawn["number"].max() <= 2**53
        assert np.corrcoef(drawn["number"].astype(float)[holes], number[holes])[0, 1] > 0.5
        assert abs(drawn["number"].astype(float)[holes].mean() / number[holes].mean() - 1) < 0.1


@pytest.mark.parametrize("high", [False, True])
def test_draws_do_not_heap_at_a_limit(high):
    random = np.random.default_rng(0)
    share = random.beta(0.5, 1, 500)
    share = 1 - share if high else share
    table = pd.DataFrame({"share": share, "x": random.normal(size=500) + share})
    missing = random.random(500) < 0.3
    table.loc[missing, "share"] = np.nan
    end = table["share"].max() if high else table["share"].min()
    drawn = np.concatenate([each["share"][missing] for each in drawn_from(table, 10)])
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    # One in ten of them, if they were put at the limit.
    assert (drawn == end).mean() < 0.03
    levels = [0.05, 0.95]
    known = table["share"].dropna()
    np.testing.assert_allclose(np.quantile(drawn, levels), np.quantile(known, levels), atol=0.05)


def test_bends_are_kept_in_model_files(tmp_path):
    random = np.random.default_rng(0)
    share = random.beta(0.5, 0.5, 300)
    table = pd.DataFrame({"share": share, "x": share + random.normal(size=300)})
    table = table.mask(random.random(table.shape) < 0.2)
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    before = imputer.sample(table, 2, random_state=0)
    assert any(bend.drawn.size for bend in imputer.uncertainty_.sampler.columns[0].bends)
    imputer.save(tmp_path / "model.grape")
    after = GrapeImputer.load(tmp_path / "model.grape").sample(table, 2, random_state=0)
    for one, other in zip(before, after, strict=True):
        pd.testing.assert_frame_equal(one, other)


def test_bends_of_long_columns_that_have_trees():
    random = np.random.default_rng(0)
    one, two = random.normal(size=(2, 6_000))
    often = random.random(6_000) < 0.2 + 0.6 * (one * two > 0)
    left = random.exponential(1e-2, 6_000)
    table = pd.DataFrame({"one": one, "two": two, "share": np.where(often, 1 - left, left)})
    missing = random.random(6_000) < 0.1
    truth = table["share"][missing].copy()
    table.loc[missing, "share"] = np.nan
    drawn = np.concatenate([each["share"][missing] for each in drawn_from(table, 2)])
    assert 0 <= drawn.min() <= drawn.max() <= 1
    np.testing.assert_allclose(
        np.quantile(drawn, [0.1, 0.9]), truth.quantile([0.1, 0.9]), atol=0.02
    )


def test_draws_that_are_as_frequent_as_observed_values_are_not_bent():
    observed = np.exp(np.random.default_rng(0).normal(size=60))
    apart = 1 + 1e-6 * np.arange(-4.5, 5)[:, None]
    bent = Bend.matching(observed, (apart * observed).ravel()).apply(observed)
    np.testing.assert_allclose(bent.min(), observed.min(), rtol=1e-3)
    assert abs(bent.mean() / observed.mean() - 1) < 0.01
    assert abs(bent.std() / observed.std() - 1) < 0.01


def test_the_farthest_draws_are_bent_though_they_are_the_same_and_infinite():
    observed = np.arange(1.0, 41.0)
    redrawn = np.concatenate([np.tile(observed, 9), np.full(40, 100.0)])
    assert Bend.matching(observed, redrawn).apply(np.array([100.0])) <= 40
    found = Bend.matching(observed, np.append(redrawn, [np.inf, -np.inf] * 20))
    assert np.isfinite(found.drawn).all()
    bent = found.apply(np.array([-np.inf, 5.0, np.inf]))
    assert 1 <= bent[0] < 2
    assert not np.isnan(bent).any()


def test_columns_near_the_largest_number_are_drawn(tmp_path):
    random = np.random.default_rng(0)
    x = random.normal(size=300)
    large = np.exp(2 * x + random.normal(size=300))
    table = pd.DataFrame({"x": x, "large": large / large.max() * 1.7e308})
    table = table.mask(random.random(table.shape) < 0.2)
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    before = imputer.sample(table, 2, random_state=0)
    assert np.isfinite(before[0].to_numpy()).all()
    imputer.save(tmp_path / "model.grape")
    after = GrapeImputer.load(tmp_path / "model.grape").sample(table, 2, random_state=0)
    pd.testing.assert_frame_equal(before[0], after[0])
