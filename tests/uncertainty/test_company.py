"""Intervals where the columns that tell a cell are missing too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeImputer
from grapefill.training import held_out
from grapefill.training.together import missing_together
from grapefill.uncertainty.cells import category_sets
from grapefill.uncertainty.company import Company

CITIES = {
    "Paris": "FR",
    "Lyon": "FR",
    "Nice": "FR",
    "Rome": "IT",
    "Milan": "IT",
    "Oslo": "NO",
    "Berlin": "DE",
    "Bonn": "DE",
    "Graz": "AT",
}


def fitted(table):
    return GrapeImputer("fast", random_state=0, settings={"max_steps": 100}).fit(table)


def weights(random, rows):
    height = random.normal(170, 10, rows)
    weight = 70 + 0.8 * (height - 170) + random.normal(0, 10, rows)
    return pd.DataFrame({"height": height, "kg": weight, "lb": 2.20462 * weight})


def places(random, rows):
    city = random.choice(list(CITIES), rows)
    country = [CITIES[each] for each in city]
    return pd.DataFrame({"city": city, "country": country, "x": random.normal(size=rows)})


def held(lower, upper, truth, rows):
    inside = (lower["kg"] <= truth["kg"]) & (truth["kg"] <= upper["kg"])
    return float(inside[rows].mean())


def test_numbers_that_are_missing_together():
    random = np.random.default_rng(0)
    complete = weights(random, 300)
    missing = random.random(300) < 0.35
    table = complete.copy()
    table.loc[missing, ["kg", "lb"]] = np.nan
    lower, upper = fitted(table).interval(table, 0.9)
    # Where one is observed the other is too, and tells it.
    assert held(lower, upper, complete, missing) > 0.8


def test_errors_that_are_told_are_those_of_cells_missing_together():
    random = np.random.default_rng(1)
    complete = weights(random, 400)
    table, page = complete.copy(), random.random(400) < 0.3
    table.loc[page, ["kg", "lb"]] = np.nan
    imputer = fitted(table)
    off = (imputer.transform(table)["kg"] - complete["kg"])[page].abs().mean()
    trial = imputer.model_.trials[list(table).index("kg")]
    assert trial.error == trial.alone == pytest.approx(off, rel=0.3)
    # With lb in sight, as it never is where kg is missing, it looks easy.
    assert trial.blend < 0.7 * trial.alone


def test_numbers_that_are_missing_together_now_and_then():
    random = np.random.default_rng(0)
    complete = weights(random, 500)
    table = complete.mask(random.random(complete.shape) < 0.2)
    lower, upper = fitted(table).interval(table, 0.9)
    both = table["kg"].isna() & table["lb"].isna()
    one = table["kg"].isna() & ~both
    assert held(lower, upper, complete, both) > 0.75
    assert held(lower, upper, complete, one) > 0.85
    wide = (upper["kg"] - lower["kg"]).groupby(both).mean()
    assert wide[True] > 5 * (upper["kg"] - lower["kg"])[one].mean()


@pytest.mark.parametrize("always", [True, False])
def test_categories_that_are_missing_together(always):
    random = np.random.default_rng(0)
    complete = places(random, 400)
    if always:
        table = complete.copy()
        table.loc[random.random(400) < 0.3, ["city", "country"]] = None
    else:
        table = complete.mask(random.random(complete.shape) < 0.2)
    found = fitted(table).interval(table, 0.9)
    both = np.flatnonzero(table["city"].isna() & table["country"].isna())
    for name in ("city", "country"):
        sets = {row: found.sets[name][row] for row in both}
        assert np.mean([complete[name][row] in each for row, each in sets.items()]) > 0.75
        assert np.mean([len(each) for each in sets.values()]) > 3
    told = np.flatnonzero(table["country"].isna() & table["city"].notna())
    assert np.mean([len(found.sets["country"][row]) for row in told] or [1.0]) < 1.5


def test_sets_of_rows_of_which_little_is_known_are_nested():
    random = np.random.default_rng(0)
    chances = random.dirichlet(np.ones(5), 200)
    usual = np.full(200, 0.5)
    before: list[tuple[int, ...]] = [()] * 200
    for coverage, least in [(0.3, 0.9), (0.5, 0.8), (0.8, 0.6), (0.9, 0.5), (0.95, 0.1)]:
        sets = category_sets(chances, coverage, least=np.full(200, least), usual=usual)
        assert all(set(less) <= set(more) for less, more in zip(before, sets, strict=True))
        assert all(sets)
        before = sets


def test_holes_by_chance_hide_nothing_else():
    random = np.random.default_rng(0)
    missing = random.random((2_000, 6)) < 0.3
    assert missing_together(missing, np.repeat(np.arange(6), 50), random).mean() < 0.01


def test_pages_are_hidden_as_often_as_they_are_missing():
    random = np.random.default_rng(0)
    page = random.random((2_000, 1)) < 0.2
    missing = (page & np.array([[True, True, True, False]])) | (random.random((2_000, 4)) < 0.1)
    feature = np.zeros(1_000, dtype=np.int64)
    hidden = missing_together(missing, feature, random)
    assert not hidden[:, 0].any()
    assert not hidden[:, 3].any()
    seen = missing[~missing[:, 0]][:1_000]
    for other in (1, 2):
        share = (hidden[: len(seen), other] | seen[:, other]).mean()
        assert share == pytest.approx(missing[missing[:, 0], other].mean(), abs=0.06)
    # All or nothing of the page, mostly.
    assert (hidden[:, 1] == hidden[:, 2]).mean() > 0.85


def test_several_columns_that_tell_the_same_are_company():
    random = np.random.default_rng(0)
    beside = random.random((600, 5)) < 0.6
    told = beside[:, 1] | beside[:, 3]
    company = Company.of(np.where(told, 0.1, 1.0) * random.exponential(size=600), beside)
    assert set(company.features) == {1, 3}
    np.testing.assert_array_equal(company.is_absent(beside), ~told)
    assert company.unknown > 5 * company.known


def test_there_is_no_company_where_it_makes_no_difference():
    random = np.random.default_rng(0)
    for _ in range(20):
        sizes, beside = random.exponential(size=100), random.random((100, 10)) < 0.7
        assert Company.of(sizes, beside) == Company()
    nobody = Company.of(np.ones(3), np.zeros((3, 0), dtype=bool))
    np.testing.assert_array_equal(nobody.sizes(np.zeros((3, 0), dtype=bool)), np.ones(3))


def test_cells_of_an_earlier_model_and_of_new_trials_are_joined(tmp_path):
    random = np.random.default_rng(0)
    table = weights(random, 80).mask(random.random((80, 3)) < 0.2)
    imputer = fitted(table)
    assert imputer.uncertainty_.trials is not None
    imputer.save(tmp_path / "model.grape")
    again = GrapeImputer.load(tmp_path / "model.grape")
    model = again.model_
    nothing = model.held_out.beside[:, :0]
    model.held_out = replace(model.held_out, beside=nothing)
    lower, upper = again.interval(table, 0.9)
    assert (lower["kg"] <= upper["kg"]).all()


def test_what_is_known_beside_cells_is_not_kept_of_very_many(monkeypatch):
    monkeypatch.setattr(held_out, "MOST_BESIDE", 10)
    table = weights(np.random.default_rng(0), 120)
    table.loc[::4, ["kg", "lb"]] = np.nan
    imputer = fitted(table)
    assert imputer.model_.held_out.beside.shape[1] == 0
    lower, upper = imputer.interval(table, 0.9)
    assert (lower["kg"] <= upper["kg"]).all()
