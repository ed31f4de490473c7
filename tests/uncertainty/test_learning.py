"""How draws are learned: from what was put aside at fit, on any number of threads."""

import numpy as np
import pytest
import torch

from grapefill import GrapeImputer
from grapefill.errors import GrapefillWarning
from grapefill.table import Table
from grapefill.training.model import GrapeModel
from grapefill.uncertainty import fitted, gibbs
from grapefill.uncertainty.fitted import Unlearned, some_fills
from grapefill.uncertainty.gibbs import fit_joint


@pytest.fixture
def long(monkeypatch):
    """Let a small table count as a long one."""
    monkeypatch.setattr(gibbs, "MANY_ROWS", 100)
    monkeypatch.setattr(gibbs, "START_ROWS", 60)


@pytest.fixture
def numbers(imputer, holed):
    return imputer.schema_.encode(Table.wrap(holed)).numbers


def put_aside(imputer, numbers, *, quick=False, whole=True):
    aside = Unlearned.put_aside(numbers, seed=3, quick=quick, whole=whole)
    return aside.filled(imputer.model_)


def assert_same(one, other):
    one, other = one.arrays(), other.arrays()
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.mark.usefixtures("long")
def test_a_start_that_was_put_aside_is_what_would_be_predicted(imputer, numbers):
    aside = put_aside(imputer, numbers)
    assert aside.start.shape == (np.isnan(numbers).sum(),)
    learned = aside.learn(imputer.model_).sampler
    assert_same(learned, fit_joint(imputer.model_, numbers, seed=3))


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("way", [{"quick": True}, {"whole": False}])
def test_no_start_is_put_aside_where_it_would_not_be_used(imputer, numbers, way):
    assert put_aside(imputer, numbers, **way).start is None


def test_short_tables_start_from_fills_with_trees(imputer, numbers):
    assert put_aside(imputer, numbers).start is None


def test_some_fills_are_put_aside(imputer, numbers):
    aside, expected = put_aside(imputer, numbers), some_fills(imputer.model_, numbers, 3)
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
    start = np.zeros(np.isnan(table).sum())
    before, learned = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            learned.append(fit_joint(model, table, seed=1, start=start))
    finally:
        torch.set_num_threads(before)
    assert_same(*learned)
    assert any(column.forest is not None for column in learned[0].columns)


@pytest.mark.usefixtures("long")
def test_a_start_is_not_used_where_few_rows_can_be_afforded(imputer, numbers, monkeypatch):
    start = put_aside(imputer, numbers).start
    monkeypatch.setattr(gibbs, "LEARNED_ROWS", 80)
    monkeypatch.setattr(gibbs, "FEWEST_ROWS", 80)
    one, other = (fit_joint(imputer.model_, numbers, seed=3, start=each) for each in (start, None))
    assert_same(one, other)


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
