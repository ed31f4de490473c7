"""Draws: what a statistician would check before publishing from them."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from grapefill import GrapeImputer, pool
from grapefill.uncertainty.chance import uniforms
from grapefill.uncertainty.choosing import choose_alike

SETTINGS = {"max_steps": 5, "rounds": 0}


def fitted(table, **settings):
    return GrapeImputer("fast", settings=SETTINGS | settings, random_state=0).fit(table)


def test_numbers_for_one_purpose_are_not_those_for_another():
    rows = np.arange(50)
    keys = [(3, 1), (3, 1, 0), (3, 1, 0, 0), (3, 1, 4), (3, 1, 4, 0), (3, 1, 4, 0, 0, 0)]
    drawn = {tuple(uniforms(rows, *key)) for key in keys}
    assert len(drawn) == len(keys)


def test_draws_know_the_groups_that_fills_know():
    random = np.random.default_rng(0)
    effect, group = random.normal(size=40), np.arange(1_200) % 40
    x = effect[group] + 0.3 * random.normal(size=group.size)
    table = pd.DataFrame({"x": x, "group": pd.Categorical(group.astype(str))})
    holes = random.random(group.size) < 0.3
    table.loc[holes, "x"] = np.nan
    drawn = np.stack([each["x"][holes] for each in fitted(table).sample(table, 3, random_state=0)])
    slope = np.polyfit(np.tile(effect[group[holes]], 3), drawn.ravel(), 1)[0]
    assert abs(slope - 1) < 0.1
    assert (drawn - effect[group[holes]]).std() < 0.4


def test_categories_that_are_missing_by_a_number_are_drawn_as_often_as_they_are():
    random = np.random.default_rng(1)
    x = random.normal(size=4_000)
    logits = np.stack([0 * x, 1.0 + 2.0 * x, 1.0 - 2.0 * x], axis=1)
    codes = (softmax(logits, axis=1).cumsum(axis=1) < random.random((x.size, 1))).sum(axis=1)
    table = pd.DataFrame({"x": x, "kind": np.array(["a", "b", "c"])[codes]})
    holed = table.assign(kind=table["kind"].where(random.random(x.size) > 1 / (1 + np.exp(-2 * x))))
    shares, means = [], []
    for drawn in fitted(holed).sample_each(holed, 5, random_state=0):
        shares.append((drawn["kind"] == "a").mean())
        means.append(drawn["x"][drawn["kind"] == "a"].mean())
    middle = table["kind"] == "a"
    assert abs(np.mean(shares) - middle.mean()) < 0.015
    assert abs(np.mean(means) - table["x"][middle].mean()) < 0.08


def test_the_variance_of_what_is_left_over_is_uncertain_too():
    between = []
    for seed in range(25):
        random = np.random.default_rng(seed)
        x = random.normal(size=200)
        y = x + random.normal(size=200)
        table = np.column_stack([x, np.where(np.arange(200) % 2, y, np.nan)])
        estimates = []
        for drawn in fitted(table).sample_each(table, 20, random_state=seed):
            slope, constant = np.polyfit(drawn[:, 0], drawn[:, 1], 1)
            estimates.append(np.log(np.var(drawn[:, 1] - slope * drawn[:, 0] - constant)))
        between.append(np.var(estimates, ddof=1))
    # Half of it would do if the observed cells told the variance exactly.
    assert 0.007 < np.mean(between) < 0.013


def test_means_over_draws_are_less_a_matter_of_chance_than_draws(holed, imputer):
    def means(seed):
        drawn = imputer.sample_each(holed, 20, random_state=seed)
        return [each[["a", "b"]].mean() for each in drawn]

    found = np.array([means(seed) for seed in range(6)])
    # Of 20 draws that have nothing to do with each other it would be about 1.
    by_chance = found.std(axis=1, ddof=1).mean(axis=0) / np.sqrt(20)
    assert (found.mean(axis=1).std(axis=0, ddof=1) < 0.6 * by_chance).all()


def test_draws_of_wide_tables_know_how_little_is_known_of_a_row():
    random = np.random.default_rng(0)
    table = random.normal(size=(150, 4)) @ random.normal(size=(4, 204))
    table += 0.5 * random.normal(size=table.shape)
    holed = np.where(random.random(table.shape) < 0.3, np.nan, table)
    imputer = fitted(holed, max_steps=40)
    holed[:20] = np.nan
    drawn = np.stack(imputer.sample(holed, 10, random_state=0))[:, :20].reshape(-1, 204)
    assert 0.8 < np.median(drawn.std(axis=0) / table.std(axis=0)) < 1.25


def test_rare_columns_of_wide_tables_vary(monkeypatch):
    monkeypatch.setattr("grapefill.uncertainty.wide.FACTOR_ROWS", 50)
    random = np.random.default_rng(0)
    table = random.normal(size=(300, 3)) @ random.normal(size=(3, 205))
    table[30:, 0] = np.nan
    drawn = np.stack(fitted(table).sample(table, 5, random_state=0))[:, 30:, 0]
    assert np.median(drawn.std(axis=0)) > 1e-6


def test_whole_numbers_may_be_names_in_another_order():
    estimates, variances = pd.Series({1: 10.0, 0: 20.0}), pd.Series({0: 0.2, 1: 0.1})
    pooled = pool([estimates] * 3, [variances] * 3)
    assert pooled.names == ("1", "0")
    np.testing.assert_allclose(pooled.within, [0.1, 0.2])
    by_model = pool.fit(lambda _: (estimates, variances), [1, 2, 3])
    np.testing.assert_allclose(by_model.within, [0.1, 0.2])
    counted = pool([pd.Series([1.0, 2.0])] * 2, [pd.Series([0.1, 0.2])] * 2)
    assert counted.names == ("x0", "x1")


def test_intervals_of_less_coverage_hold_as_much_as_they_say():
    held, coverages = [], [0.3, 0.5, 0.7]
    for seed in range(3):
        random = np.random.default_rng(seed)
        common = random.normal(size=(800, 1))
        complete = common + random.normal(size=(800, 4))
        holes = random.random(complete.shape) < 0.25
        holed = np.where(holes, np.nan, complete)
        imputer = fitted(holed, max_steps=100)
        ends = [imputer.interval(holed, coverage) for coverage in coverages]
        held.append([((low <= complete) & (complete <= up))[holes].mean() for low, up in ends])
    np.testing.assert_allclose(np.mean(held, axis=0), coverages, atol=0.045)


def test_a_logit_of_several_categories_is_pooled():
    import statsmodels.formula.api as smf

    random = np.random.default_rng(0)
    tables = [
        pd.DataFrame({"x": random.normal(size=200), "kind": random.integers(3, size=200)})
        for _ in range(2)
    ]
    models = [smf.mnlogit("kind ~ x", table).fit(disp=0) for table in tables]
    pooled = pool.fit(lambda model: model, models)
    assert pooled.names == ("Intercept [0]", "x [0]", "Intercept [1]", "x [1]")
    expected = np.mean([model.params.to_numpy().T.ravel() for model in models], axis=0)
    np.testing.assert_allclose(pooled.estimate, expected)


@pytest.mark.parametrize("kind", ["two values", "five values", "counts"])
def test_columns_of_few_whole_numbers_go_along_as_they_should(kind):
    off = []
    for seed in range(2):
        random = np.random.default_rng(seed)
        base = random.normal(size=(1_200, 1)) + random.normal(size=(1_200, 4))
        complete = {
            "two values": (base > 0).astype(float),
            "five values": np.digitize(base, [-1.5, -0.5, 0.5, 1.5]) + 1.0,
            "counts": random.poisson(np.exp(base / 2)).astype(float),
        }[kind]
        table = np.where(random.random(complete.shape) < 0.3, np.nan, complete)
        drawn = fitted(table).sample(table, 5, random_state=0)
        assert set(np.unique(drawn)) <= set(np.unique(complete))
        apart = np.mean([np.corrcoef(each.T) for each in drawn], axis=0) - np.corrcoef(complete.T)
        off.append(apart[~np.eye(4, dtype=bool)].mean())
    # Rounded to whole numbers, they would go along too little, by .05 to .1.
    assert abs(np.mean(off)) < 0.03


def test_like_predictions_are_the_closest_and_any_of_the_same():
    levels = np.repeat([0.0, 1.0, 2.0], [40, 30, 30])
    chance = (np.arange(1_000) + 0.5) / 1_000
    for predicted, first, last in [(-9.0, 0, 39), (0.4, 0, 39), (0.9, 40, 69), (1.2, 40, 69)]:
        chosen = choose_alike(levels, np.full(1_000, predicted), chance, within=9.0)
        assert (chosen.min(), chosen.max()) == (first, last)
    alone = choose_alike(np.arange(100.0), np.full(1_000, 50.2), chance, within=9.0)
    assert sorted(set(alone)) == [48, 49, 50, 51, 52]
    assert (choose_alike(np.array([3.0]), np.full(1_000, 1.0), chance, within=9.0) == 0).all()


def test_cells_of_another_cluster_are_not_alike():
    levels = np.repeat([0.0, 1.0], 50) + np.linspace(0, 0.01, 100)
    chance = (np.arange(1_000) + 0.5) / 1_000
    # The last of the first cluster is closest; of the five around it two are of the other.
    chosen = choose_alike(levels, np.full(1_000, 0.02), chance, within=0.1)
    assert sorted(set(chosen)) == [47, 48, 49]
    # However far off the closest one is, there is one.
    assert set(choose_alike(levels, np.full(1_000, 0.45), chance, within=0.1)) <= set(range(50))


def test_predictions_that_cannot_be_told_apart_are_alike():
    levels = np.arange(100.0)
    chance = np.linspace(0, 1, 1_000, endpoint=False)
    few = choose_alike(levels, np.full(1_000, 50.2), chance, within=9.0)
    assert set(few) == set(range(48, 53))
    more = choose_alike(levels, np.full(1_000, 50.2), chance, within=9.0, blur=20.0)
    assert set(more) == set(range(30, 71))
    # Each as often as the others.
    assert np.ptp(np.bincount(more)[30:]) <= 1
    same = choose_alike(levels, np.full(1_000, 50.2), chance, within=9.0, blur=0.5)
    np.testing.assert_array_equal(same, few)
