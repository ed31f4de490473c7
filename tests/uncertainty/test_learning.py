"""How draws are learned: from what was put aside at fit, on any number of threads."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from grapefill import GrapeImputer
from grapefill.errors import GrapefillWarning
from grapefill.table import Table
from grapefill.training.model import GrapeModel
from grapefill.uncertainty import fitted, gibbs
from grapefill.uncertainty.fitted import Uncertainty, Unlearned, some_fills
from grapefill.uncertainty.gibbs import fit_joint


@pytest.fixture
def long(monkeypatch):
    """Let a small table count as a long one."""
    monkeypatch.setattr(gibbs, "MANY_ROWS", 100)
    monkeypatch.setattr(gibbs, "START_ROWS", 60)


@pytest.fixture
def numbers(imputer, holed):
    return imputer.schema_.encode(Table.wrap(holed)).numbers


def ready(imputer, numbers, *, quick=False, whole=True):
    return Unlearned.put_aside(numbers, seed=3, quick=quick, whole=whole).ready(imputer.model_)


def assert_same(one, other):
    one, other = one.arrays(), other.arrays()
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.mark.usefixtures("long")
def test_a_long_table_is_learned_at_fit(imputer, numbers):
    learned = ready(imputer, numbers)
    assert isinstance(learned, Uncertainty)
    assert_same(learned.sampler, fit_joint(imputer.model_, numbers, seed=3))


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("way", [{"quick": True}, {"whole": False}])
def test_a_part_of_a_table_is_learned_when_it_is_needed(imputer, numbers, way):
    assert isinstance(ready(imputer, numbers, **way), Unlearned)


def test_a_short_table_is_learned_when_it_is_needed(imputer, numbers):
    assert isinstance(ready(imputer, numbers), Unlearned)


@pytest.mark.usefixtures("long")
def test_so_is_one_of_which_few_rows_can_be_afforded(imputer, numbers, monkeypatch):
    monkeypatch.setattr(gibbs, "MOST_WORK", 1.0)
    monkeypatch.setattr(gibbs, "FEWEST_ROWS", 80)
    assert isinstance(ready(imputer, numbers), Unlearned)


def test_some_fills_are_put_aside(imputer, numbers):
    aside, expected = ready(imputer, numbers), some_fills(imputer.model_, numbers, 3)
    assert aside.fills
    assert aside.fills.keys() == expected.keys()
    learned = aside.learn(imputer.model_)
    for j, fills in expected.items():
        np.testing.assert_array_equal(learned.fills[j].guess, fills.guess)
        np.testing.assert_array_equal(learned.fills[j].spread, fills.spread)


@pytest.mark.usefixtures("long")
def test_the_number_of_threads_makes_no_difference(monkeypatch):
    random = np.random.default_rng(0)
    table = random.normal(size=(600, 4))
    table[:, 3] = table[:, 0] * table[:, 1] + 0.1 * table[:, 3]
    table[random.random(table.shape) < 0.1] = np.nan
    monkeypatch.setattr(gibbs, "START_ROWS", 500)
    settings = {"max_steps": 5, "rounds": 0}
    model = GrapeImputer("fast", settings=settings, random_state=0).fit(table).model_
    before, learned = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            learned.append(fit_joint(model, table, seed=1))
    finally:
        torch.set_num_threads(before)
    assert_same(*learned)
    assert any(column.forest is not None for column in learned[0].columns)


@pytest.mark.usefixtures("long")
def test_it_is_the_rows_that_are_learned_from_which_count(imputer, numbers, monkeypatch):
    monkeypatch.setattr(gibbs, "LEARNED_ROWS", 120)
    numbers = np.vstack([numbers, np.full((5 * len(numbers), numbers.shape[1]), np.nan)])
    seen = []
    monkeypatch.setattr(gibbs, "leaves_little_open", lambda missing: seen.append(missing) or False)
    gibbs.learns_quickly(imputer.model_, numbers, 5)
    fit_joint(imputer.model_, numbers, seed=5)
    np.testing.assert_array_equal(*seen)


def test_fills_are_those_of_the_network_as_it_was_trained_further(quick):
    table = np.random.default_rng(0).normal(size=(80, 1)) + np.zeros((80, 3))
    table[::3, 1] = np.nan
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    with torch.no_grad():
        for weights in imputer.network_.parameters():
            weights.mul_(1.5)
    imputer.refresh(table)
    aside = imputer._draws
    expected = some_fills(imputer.model_, aside.numbers, aside.seed)
    for j, fills in imputer.uncertainty_.fills.items():
        np.testing.assert_array_equal(fills.guess, expected[j].guess)


@pytest.mark.usefixtures("long")
def test_an_interrupt_while_a_long_table_is_learned_loses_nothing(imputer, holed, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    usual = clone(imputer).fit(holed)
    assert isinstance(usual._draws, Uncertainty)
    with monkeypatch.context() as patch:
        patch.setattr(fitted, "fit_joint", interrupted)
        other = clone(imputer).fit(holed)
    assert isinstance(other._draws, Unlearned)
    assert_same(other.uncertainty_.sampler, usual.uncertainty_.sampler)


def test_an_interrupt_after_training_loses_nothing(quick, monkeypatch):
    table = np.random.default_rng(0).normal(size=(80, 1)) + np.zeros((80, 3))
    table[::3, 1] = np.nan

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fitted, "some_fills", interrupted)
        imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    usual = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    np.testing.assert_array_equal(
        imputer.sample(table, 1, random_state=0), usual.sample(table, 1, random_state=0)
    )


# Before and after the held-out cells join the others, and while trees are grown.
@pytest.mark.parametrize("calls", [3, 9, 11])
def test_an_interrupted_fit_draws_and_tells_how_far_off_it_is(quick, calls, tmp_path):
    table = np.random.default_rng(0).normal(size=(120, 1)) + np.zeros((120, 3))
    table += 0.1 * np.random.default_rng(1).normal(size=table.shape)
    table[::3, 1] = np.nan
    seen = []

    def interrupt(progress):
        seen.append(progress.stage)
        if len(seen) == calls:
            raise KeyboardInterrupt

    settings = quick | {"max_steps": 10, "rejoin": 0.5, "validation": 0.2}
    imputer = GrapeImputer("fast", settings=settings, random_state=0, callbacks=[interrupt])
    with pytest.warns(GrapefillWarning, match="interrupted"):
        imputer.fit(table)
    assert seen[-1] == ("trees" if calls > 10 else "network")
    (drawn,) = imputer.sample(table, 1, random_state=0)
    assert np.corrcoef(drawn[::3, 0], drawn[::3, 1])[0, 1] > 0.9
    lower, upper = imputer.interval(table, 0.9)
    assert (lower[::3, 1] < upper[::3, 1]).all()
    imputer.set_params(callbacks=None).save(tmp_path / "m.grape")
    again = GrapeImputer.load(tmp_path / "m.grape")
    np.testing.assert_array_equal(again.sample(table, 1, random_state=0)[0], drawn)
    np.testing.assert_array_equal(again.interval(table, 0.9)[0], lower)


def test_a_fit_that_is_interrupted_while_cells_are_put_aside(quick, monkeypatch):
    table = np.random.default_rng(0).normal(size=(120, 1)) + np.zeros((120, 3))
    table[::3, 1] = np.nan
    usual, calls = GrapeModel.predict_network, []

    def interrupted(*args, **options):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return usual(*args, **options)

    # Some rows only are looked at.
    monkeypatch.setattr("grapefill.training.stack.TREE_ROWS", 100)
    monkeypatch.setattr(GrapeModel, "predict_network", interrupted)
    with pytest.warns(GrapefillWarning, match="interrupted"):
        imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    assert len(imputer.model_.trials) == 3
    lower, upper = imputer.interval(table, 0.9)
    assert (lower[::3, 1] < upper[::3, 1]).all()
