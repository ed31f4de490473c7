"""Effects of categories that are too many to be inputs of a regression."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeImputer
from grapefill.table import Scaling
from grapefill.uncertainty.design import MOST_INDICATORS, Design
from grapefill.uncertainty.groups import MOST_GROUPS, ROWS_PER_GROUP, Group, Groups
from grapefill.uncertainty.joint import Joint

SETTINGS = {"max_steps": 40, "rounds": 1}


def _hospitals(seed, *, count=100, rows=15, noise=1.0):
    random = np.random.default_rng(seed)
    code = np.repeat(np.arange(count), rows)
    x = random.normal(size=code.size)
    y = 0.7 * x + random.normal(size=count)[code] + random.normal(0, noise, code.size)
    complete = pd.DataFrame({"hospital": [f"h{each}" for each in code], "x": x, "y": y})
    table = complete.copy()
    table.loc[random.random(code.size) < 0.4, "y"] = np.nan
    table.loc[random.random(code.size) < 0.2, "x"] = np.nan
    return complete, table


def _between(table):
    """Return how much hospitals differ, without what chance adds, and how much patients do."""
    left = table["y"] - 0.7 * table["x"]
    groups = left.groupby(table["hospital"])
    within = float(groups.var().mean())
    return float(groups.mean().var() - within / groups.size().mean()), within


@pytest.fixture(scope="module")
def hospitals():
    complete, table = _hospitals(0)
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    return complete, table, imputer


def test_draws_keep_what_hospitals_have_in_common(hospitals):
    complete, table, imputer = hospitals
    between, within = _between(complete)
    drawn = np.mean([_between(each) for each in imputer.sample(table, 5, random_state=0)], axis=0)
    # Without effects half of it is lost, and patients differ more.
    assert abs(drawn[0] / between - 1) < 0.15
    assert abs(drawn[1] / within - 1) < 0.1


def test_effects_are_uncertain(hospitals):
    _, table, imputer = hospitals
    (effects,) = imputer.uncertainty_.sampler.columns[2].groups
    assert effects.drawn.shape == (20, 100)
    # About nine observed rows each, of variance 1, in units of the column's spread.
    expected = 1 / np.sqrt(9 + 1) / table["y"].std()
    assert 0.8 < effects.drawn.std(axis=0).mean() / expected < 1.3


def test_models_keep_effects(hospitals, tmp_path):
    _, table, imputer = hospitals
    imputer.save(tmp_path / "model.grape")
    again = GrapeImputer.load(tmp_path / "model.grape")
    for old, new in zip(
        imputer.sample(table, 2, random_state=3),
        again.sample(table, 2, random_state=3),
        strict=True,
    ):
        pd.testing.assert_frame_equal(old, new)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("2.groups.0", lambda effects: effects[:, 1:]),
        ("2.groups.0", lambda effects: effects[1:]),
        ("2.groups.0", lambda effects: effects * np.nan),
        ("2.groups.9", lambda effects: effects),
        ("2.groups.1", lambda effects: effects[:, :0]),
        ("2.groups.00", lambda effects: effects),
        ("2.groups.x", lambda effects: effects),
        ("2.groups.0", lambda effects: effects * 1j),
    ],
)
def test_effects_that_do_not_fit_are_refused(hospitals, name, damage):
    joint = hospitals[2].uncertainty_.sampler
    arrays = joint.arrays()
    effects = damage(arrays.pop("2.groups.0"))
    Joint.from_arrays(arrays, joint.design)
    with pytest.raises(ValueError, match="effects"):
        Joint.from_arrays(arrays | {name: effects}, joint.design)


def test_a_row_is_drawn_alike_alone_and_among_others(hospitals):
    _, table, imputer = hospitals
    whole = imputer.sample(table, 1, random_state=0)[0]
    pd.testing.assert_frame_equal(imputer.sample(table[:40], 1, random_state=0)[0], whole[:40])


def test_effects_given_how_much_they_vary():
    random = np.random.default_rng(0)
    group = Group(0, 3, random)
    group._variance = 4.0
    codes, left = np.array([0] * 8 + [1]), np.array([1.0] * 8 + [6.0])
    drawn = np.stack([group.draw(codes, left, 2.0) for _ in range(20_000)])
    # Precision of the mean 8 / 2 and 1 / 2, of the prior 1 / 4; nothing is known of the third.
    np.testing.assert_allclose(drawn.mean(axis=0), [4 / 4.25, 3 / 0.75, 0.0], atol=0.05)
    np.testing.assert_allclose(drawn.var(axis=0), [1 / 4.25, 1 / 0.75, 4.0], rtol=0.05)


def test_effects_that_are_none_vanish():
    random = np.random.default_rng(1)
    codes = random.integers(100, size=2_000)
    group, sizes = Group(0, 100, random), []
    for _ in range(60):
        group.redraw(codes, random.normal(size=2_000), 1.0)
        sizes.append(group.effects.std())
    assert np.mean(sizes[30:]) < 0.15


@pytest.mark.parametrize("left", [np.zeros(300), np.full(300, 1e-200)])
def test_nothing_left_over_has_no_effects(left):
    group = Group(0, 70, np.random.default_rng(0))
    for _ in range(5):
        group.redraw(np.arange(300) % 70, left, 0.0)
    assert np.isfinite(group.effects).all()
    assert np.abs(group.effects).max() < 1e-100


def test_which_columns_have_effects():
    random = np.random.default_rng(0)
    counts = (0, MOST_INDICATORS, MOST_INDICATORS + 1, MOST_GROUPS, MOST_GROUPS + 1, 2)
    design = Design(counts, Scaling(np.zeros(6), np.ones(6)))

    def features(missing, feature=0):
        return [each.feature for each in Groups(design, feature, missing, random).each]

    many = np.zeros((ROWS_PER_GROUP * (MOST_GROUPS + 1), 6), dtype=bool)
    assert features(many) == [2, 3]
    assert features(many, 5) == []
    few = ROWS_PER_GROUP * (MOST_INDICATORS + 1)
    assert features(many[:few]) == [2]
    assert features(many[: few - 1]) == []
    # Rows without the category tell nothing of it.
    unknown = many.copy()
    unknown[: 1 + many.shape[0] // 2, 2] = True
    assert features(unknown) == [3]


def test_guessed_categories_have_no_say():
    """What is guessed may be a few categories, which would get the rows of many."""
    complete, table = _hospitals(1, noise=0.4)
    random = np.random.default_rng(0)
    unknown = random.random(len(table)) < 0.3
    table.loc[unknown, "hospital"] = None
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    asked = table["y"].isna() & table["x"].notna() & ~unknown
    draws = imputer.sample(table, 5, random_state=0)
    off = [(each["y"] - complete["y"])[asked].std() for each in draws]
    # Errors of the truth and of the draw, .4 each, and what is not known of effects.
    assert np.mean(off) < 0.68


def test_two_columns_that_say_the_same_are_not_told_apart():
    random = np.random.default_rng(2)
    design = Design((0, 70, 70), Scaling(np.zeros(3), np.ones(3)))
    codes = np.repeat(np.arange(70.0), 10)
    values = np.column_stack([np.zeros(700), codes, codes])
    left = random.normal(size=70)[codes.astype(int)] + random.normal(size=700)
    groups = Groups(design, 0, np.zeros((700, 3), dtype=bool), random)
    kept, rows = [], np.arange(700)
    for sweep in range(400):
        groups.redraw(values, rows, left - groups.of(values, rows), 1.0)
        if sweep >= 50:
            drawn = groups.draw(values, rows, left - groups.of(values, rows), 1.0)
            kept.append(drawn[0] + drawn[1])
    # As of one column: errors of variance 1 in ten rows.
    assert abs(np.std(kept, axis=0).mean() - np.sqrt(1 / 11)) < 0.02


@pytest.mark.parametrize("kind", ["answers", "amounts", "bent"])
def test_draws_of_other_kinds_of_numbers_keep_it_too(kind):
    """Observed values, curved scales and trees."""
    complete, table = _hospitals(3)
    if kind == "answers":
        complete["y"] = np.clip(np.rint(3 + 0.8 * complete["y"]), 1, 5)
    elif kind == "amounts":
        complete["y"] = np.exp(complete["y"])
    else:
        complete["y"] += np.square(complete["x"])
    table["y"] = complete["y"].where(table["y"].notna())
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    draws = imputer.sample(table, 5, random_state=0)

    def between(each):
        y = np.log(each["y"]) if kind == "amounts" else each["y"]
        groups = y.groupby(each["hospital"])
        return groups.mean().var() - groups.var().mean() / 15

    assert abs(np.mean([between(each) for each in draws]) / between(complete) - 1) < 0.25
