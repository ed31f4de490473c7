"""Draws keep what columns have to do with each other without fail."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeImputer
from grapefill.uncertainty.choosing import choose_vote
from grapefill.uncertainty.design import closest_of, values_of_list


def fitted(table, **settings):
    return GrapeImputer("fast", random_state=0, settings={"max_steps": 60} | settings).fit(table)


def test_numbers_that_others_tell_exactly_are_drawn_exactly():
    random = np.random.default_rng(0)
    lever = random.integers(0, 9, 400).astype(float)
    complete = pd.DataFrame(
        {
            "lever": lever,
            "speed": 3 + 3 * lever,
            "heat": 2 * lever + 0.1 * random.normal(size=400),
            "other": random.normal(size=400),
        }
    )
    table = complete.mask(random.random(complete.shape) < 0.25)
    drawn = fitted(table).sample(table, 5, random_state=1)
    told = table["lever"].isna() & table["speed"].notna()
    wrong = [(each["lever"] != complete["lever"])[told].mean() for each in drawn]
    assert np.mean(wrong) < 0.01


def test_categories_that_others_tell_exactly_are_hardly_drawn_wrong():
    random = np.random.default_rng(0)
    city = random.integers(12, size=600)
    complete = pd.DataFrame(
        {
            "city": [f"city {each}" for each in city],
            "country": [f"country {each % 4}" for each in city],
            "x": random.normal(size=600),
        }
    )
    table = complete.mask(random.random(complete.shape) < 0.25)
    drawn = fitted(table).sample(table, 5, random_state=1)
    told = table["country"].isna() & table["city"].notna()
    wrong = [(each["country"] != complete["country"])[told].mean() for each in drawn]
    # A normal around coefficients that run away draws one in ten of them wrong.
    assert np.mean(wrong) < 0.05


def test_categories_of_ranges_are_mostly_in_their_range():
    random = np.random.default_rng(0)
    age = random.gamma(9, 5, 800).round()
    complete = pd.DataFrame(
        {
            "age": age,
            "group": np.array(["young", "middle", "older", "old"])[
                np.searchsorted([30, 45, 60], age)
            ],
            "income": np.exp(9 + 0.02 * age + 0.4 * random.normal(size=800)),
        }
    )
    table = complete.mask(random.random(complete.shape) < 0.2)
    imputer = fitted(table)
    drawn = imputer.sample(table, 5, random_state=1)
    told = table["group"].isna() & table["age"].notna()
    wrong = [(each["group"] != complete["group"])[told].mean() for each in drawn]
    assert np.mean(wrong) < 0.15


def test_trees_are_believed_where_no_regression_tells_a_category():
    """December and January are far apart as numbers."""
    random = np.random.default_rng(0)
    month = random.integers(1, 13, 800)
    seasons = np.array(["winter", "spring", "summer", "autumn"])
    warmth = 10 - 8 * np.cos(2 * np.pi * month / 12) + 3 * random.normal(size=800)
    complete = pd.DataFrame(
        {"month": month.astype(float), "season": seasons[month % 12 // 3], "warmth": warmth}
    )
    table = complete.mask(random.random(complete.shape) < 0.2)
    imputer = fitted(table)
    drawn = imputer.sample(table, 5, random_state=1)
    told = table["season"].isna() & table["month"].notna()
    wrong = [(each["season"] != complete["season"])[told].mean() for each in drawn]
    assert np.mean(wrong) < 0.03
    assert imputer.uncertainty_.sampler.columns[1].sharpness > 1


def test_only_prices_of_the_list_are_drawn():
    random = np.random.default_rng(0)
    prices = np.array([0.99, 2.49, 3.95, 7.95, 12.5, 13.75, 19.9, 24.95, 31.4, 49.0, 62.5, 80.25])
    product = random.integers(prices.size, size=600)
    complete = pd.DataFrame(
        {"product": [f"p{each}" for each in product], "price": prices[product]}
    ).assign(amount=lambda t: t["price"] * random.integers(1, 6, 600))
    table = complete.mask(random.random(complete.shape) < 0.2)
    imputer = fitted(table)
    for drawn in [*imputer.sample(table, 3, random_state=1), *imputer.sample(table[:9], 1)]:
        assert np.isin(drawn["price"], prices).all()


def test_a_column_that_says_the_same_leaves_cells_as_uncertain_as_they_are():
    spreads = []
    for redundant in (True, False):
        random = np.random.default_rng(0)
        height = random.normal(170, 10, 300)
        weight = 70 + 0.8 * (height - 170) + random.normal(0, 10, 300)
        table = pd.DataFrame({"height": height, "kg": weight, "lb": 2.20462 * weight})
        missing = random.random(300) < 0.4
        table.loc[missing, ["kg", "lb"]] = np.nan
        table = table if redundant else table.drop(columns="lb")
        drawn = fitted(table).sample(table, 20, random_state=0)
        spreads.append(np.stack([each["kg"][missing] for each in drawn]).std(axis=0).mean())
    # .8 of it if draws are learned from fills that lie close together.
    assert spreads[0] == pytest.approx(spreads[1], rel=0.1)


class Votes:
    """Ten trees, each of which says the same of all rows."""

    n_categories = 3

    def __init__(self, votes):
        self.trees = [OneVote(vote) for vote in votes]

    def votes(self, inputs):
        return np.concatenate([tree.predict(inputs) for tree in self.trees], axis=1)


class OneVote:
    def __init__(self, vote):
        self.vote = vote

    def predict(self, inputs):
        return np.full((len(inputs), 1), self.vote)


@pytest.mark.parametrize(("sharpness", "share"), [(1.0, 0.2), (2.0, 0.04 / 0.68), (6.0, 0.0002)])
def test_sharp_votes_are_for_what_most_trees_say(sharpness, share):
    forest = Votes([0.0] * 2 + [2.0] * 8)
    chance = (np.arange(20_000) + 0.5) / 20_000
    chosen = choose_vote(forest, np.empty((20_000, 1), dtype=np.float32), chance, sharpness)
    assert set(chosen) == {0.0, 2.0}
    assert (chosen == 0).mean() == pytest.approx(share, abs=0.001)


@pytest.mark.parametrize("size", [1e-300, 1e-310, 1e300, 1.7e308])
def test_lists_of_values_of_any_size(size):
    values = np.repeat(np.array([0.1, 0.47, 0.8, 1.0]) * size, 20)
    found = values_of_list(values)
    assert set(found) <= set(values)
    if found.size:
        np.testing.assert_array_equal(closest_of(found, values), values)
