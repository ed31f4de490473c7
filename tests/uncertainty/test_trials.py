"""Small tables get further trials, so that there are cells enough to calibrate intervals by."""

import numpy as np
import pytest
import torch

from grapefill import GrapeImputer
from grapefill.errors import GrapefillError, GrapefillWarning
from grapefill.training.held_out import HeldOut
from grapefill.uncertainty import plots, trials
from grapefill.uncertainty.cells import Beliefs
from grapefill.uncertainty.fitted import Uncertainty
from grapefill.uncertainty.trials import SHARE, SMALL_SHARE, TRIALS


def counts(held_out, features):
    return np.bincount(held_out.feature, minlength=features)


def test_a_small_table_has_more_cells_to_go_by(imputer, holed):
    model, own = imputer.model_, imputer.model_.held_out
    before = {name: array.copy() for name, array in own.arrays().items()}
    found = imputer.uncertainty_.held_out(model)
    observed = holed.notna().sum().to_numpy()
    more = counts(found, 7) - counts(own, 7)
    assert (more > 0.6 * TRIALS * SHARE * observed).all()
    assert (more < 1.4 * TRIALS * SHARE * observed).all()
    # The model is as it was, and the work is done once.
    assert model.held_out is own
    for name, array in own.arrays().items():
        np.testing.assert_array_equal(array, before[name])
    assert imputer.uncertainty_.held_out(model) is found


def test_they_are_judged_like_the_first(imputer, holed):
    """What is said of a held-out cell is about as good as before, and not the truth."""
    found = imputer.uncertainty_.held_out(imputer.model_)
    for j, name in enumerate(holed):
        mine = found.of(j)
        if name == "word":
            assert set(mine.truth) <= {0.0, 1.0}
            assert 0.5 < mine.chance.mean() < 0.95
        else:
            assert set(mine.truth) <= set(holed[name].dropna().astype(float))
            assert (mine.truth != mine.guess).mean() > 0.5


def test_each_part_has_its_weight_in_the_fills(imputer, monkeypatch):
    """What trees say of a cell does not count in trials where it does not in the fills."""
    model = imputer.model_
    again = trials.FurtherTrials(imputer.uncertainty_.trials.numbers, 5)
    monkeypatch.setattr(model.chain, "shares", np.array([1.0, 0.0, *model.chain.shares[2:]]))
    new = again.held_out(model).arrays()
    later = np.arange(new["feature"].size) >= model.held_out.feature.size
    assert np.isnan(new["spread"][later & (new["feature"] == 0)]).all()
    assert np.isfinite(new["spread"][later & (new["feature"] == 1)]).all()


def test_factors_count_as_in_the_fills(quick):
    random = np.random.default_rng(0)
    numbers = random.normal(size=(120, 3)) @ random.normal(size=(3, 26))
    numbers += 0.3 * random.normal(size=numbers.shape)
    numbers[random.random(numbers.shape) < 0.2] = np.nan
    fitted = GrapeImputer("fast", settings=quick, random_state=0).fit(numbers)
    model = fitted.model_
    assert model.linear is not None
    found = trials.FurtherTrials(numbers, 0).held_out(model)
    errors = [np.abs(part.truth - part.guess).mean() for part in (found, model.held_out)]
    assert errors[0] < 1.5 * errors[1]


@pytest.mark.parametrize("gone", ["a", "word"])
def test_later_rows_without_any_value_of_a_column(gone, holed, quick):
    fitted = GrapeImputer("fast", settings=quick, random_state=0, warm_start=True).fit(holed)
    fitted.fit(holed.assign(**{gone: holed[gone].where([False] * len(holed))}))
    with pytest.warns(GrapefillWarning, match=f"no value in '{gone}'"):
        lower, upper = fitted.interval(holed)
    assert lower[gone].notna().all()
    assert (lower["b"] <= upper["b"]).all()
    assert fitted.sample(holed, 2)[1][gone].notna().all()


def test_the_seed_decides(imputer):
    first = imputer.uncertainty_.held_out(imputer.model_)
    again = trials.FurtherTrials(imputer.uncertainty_.trials.numbers, 0)
    same = trials.FurtherTrials(again.numbers, imputer.uncertainty_.trials.seed)
    np.testing.assert_array_equal(same.held_out(imputer.model_).guess, first.guess)
    assert not np.array_equal(again.held_out(imputer.model_).guess, first.guess)


@pytest.mark.parametrize("before", [False, True])
def test_a_file_has_what_they_need(before, holed, quick, tmp_path):
    """Their cells if these were asked for, and the rows to hold them out of if not."""
    fitted = GrapeImputer("fast", settings=quick, random_state=1).fit(holed)
    if before:
        fitted.interval(holed)
    fitted.save(tmp_path / "m.grape")
    again = GrapeImputer.load(tmp_path / "m.grape")
    assert (again.uncertainty_.trials.found is not None) is before
    assert again.uncertainty_.trials.numbers.shape[0] == (0 if before else len(holed))
    for mine, theirs in zip(fitted.interval(holed), again.interval(holed), strict=True):
        assert mine.equals(theirs)


@pytest.mark.parametrize("numbers", [torch.zeros(3, 6), torch.zeros(3), torch.zeros(0, 7)])
def test_a_file_with_other_rows_is_refused(numbers, imputer):
    tensors = imputer.uncertainty_.tensors()
    wrong = {name: tensor for name, tensor in tensors.items() if ".trials." not in name}
    wrong |= {"uncertainty.trials.numbers": numbers, "uncertainty.trials.seed": torch.zeros(1)}
    with pytest.raises(ValueError, match="further trials"):
        Uncertainty.from_tensors(wrong, imputer.model_)


def test_a_file_from_before_has_neither_counts_nor_fills(imputer, holed):
    older = ("uncertainty.counts", "uncertainty.fills.", "uncertainty.shares.")
    tensors = imputer.uncertainty_.tensors()
    left = {name: tensor for name, tensor in tensors.items() if not name.startswith(older)}
    assert len(left) < len(tensors) - 2
    again = Uncertainty.from_tensors(left, imputer.model_)
    assert np.isinf(again.counts).all()
    assert not again.fills
    beliefs = Beliefs(imputer.model_, again, further=False)
    assert 0 < beliefs.calibration.mass(0.9, 0) < 1
    for name in ("counts", "fills.0", "fills.99", "shares.5"):
        wrong = tensors | {f"uncertainty.{name}": torch.ones(3)}
        with pytest.raises(ValueError, match="counts and fills"):
            Uncertainty.from_tensors(wrong, imputer.model_)


@pytest.mark.parametrize(
    ("limits", "needed"),
    [
        ({}, [SHARE] * TRIALS),
        ({"FEW_CELLS": 1}, [SMALL_SHARE]),
        ({"SMALL_TABLE": 100}, [SMALL_SHARE]),
        ({"FEW_CELLS": 1, "ENOUGH_CELLS": 1}, []),
        ({"SMALL_TABLE": 100, "LARGE_TABLE": 100}, []),
    ],
)
def test_as_many_as_are_needed(limits, needed, imputer, monkeypatch):
    numbers = imputer.uncertainty_.trials.numbers
    for name, value in limits.items():
        monkeypatch.setattr(trials, name, value)
    again = trials.FurtherTrials.if_needed(imputer.model_, numbers, 0)
    assert ([] if again is None else again.shares(imputer.model_)) == needed


def test_enough_cells(holed, quick, monkeypatch):
    monkeypatch.setattr(trials, "ENOUGH_CELLS", 1)
    monkeypatch.setattr(trials, "FEW_CELLS", 1)
    fitted = GrapeImputer("fast", settings=quick, random_state=0).fit(holed)
    assert fitted.uncertainty_.trials is None
    assert fitted.uncertainty_.held_out(fitted.model_) is fitted.model_.held_out


@pytest.mark.parametrize("how", ["partial_fit", "warm_start"])
def test_a_model_of_other_rows_too_does_without(how, holed, quick):
    fitted = GrapeImputer("fast", settings=quick, random_state=0).fit(holed[:80])
    if how == "partial_fit":
        fitted.partial_fit(holed[80:])
    else:
        fitted.set_params(warm_start=True).fit(holed[20:])
    assert fitted.uncertainty_.trials is None
    lower, upper = fitted.interval(holed)
    assert (lower["a"] <= upper["a"]).all()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode, imputer):
    again = trials.FurtherTrials(imputer.uncertainty_.trials.numbers, 5)
    with mode():
        found = again.held_out(imputer.model_)
    assert found.truth.size > 2 * imputer.model_.held_out.truth.size


def test_ctrl_c_leaves_nothing_half_done(imputer, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    again = trials.FurtherTrials(imputer.uncertainty_.trials.numbers, 5)
    monkeypatch.setattr("grapefill.training.loop.Trainer._report", interrupt)
    with pytest.raises(KeyboardInterrupt):
        again.held_out(imputer.model_)
    assert again.found is None


def test_a_trial_that_fails_is_left_out(imputer, monkeypatch):
    def diverge(*args, **options):
        raise GrapefillError("Training diverged")

    again = trials.FurtherTrials(imputer.uncertainty_.trials.numbers, 5)
    monkeypatch.setattr(trials, "hold_out_again", diverge)
    found = again.held_out(imputer.model_)
    np.testing.assert_array_equal(found.truth, imputer.model_.held_out.truth)


def test_other_fills_and_plots_do_not_train(holed, quick, monkeypatch):
    def train(*args, **options):
        raise AssertionError

    fitted = GrapeImputer("fast", fill="median", settings=quick, random_state=0).fit(holed)
    assert fitted.uncertainty_.trials is not None
    monkeypatch.setattr(trials, "hold_out_again", train)
    fitted.transform(holed)
    plots.calibration(fitted)


def test_who_is_in_a_hurry_does_without(holed, quick):
    fitted = GrapeImputer("fast", settings=quick, time_limit=60, random_state=0).fit(holed)
    assert fitted.uncertainty_.trials is None


def test_joined_cells_keep_their_votes():
    def cells(feature, votes):
        numbers = np.arange(float(len(feature)))
        beside = np.ones((len(feature), 2), dtype=bool)
        return HeldOut(
            np.array(feature), numbers, numbers, numbers, numbers, np.array(votes), numbers, beside
        )

    both = HeldOut.joined([cells([0, 1], [[1.0], [2.0]]), cells([1], [[3.0, 4.0]])])
    assert both.feature.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(both.votes, [[1, np.nan], [2, np.nan], [3, 4]])
