"""The blend of network and trees, chosen on held-out cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grapefill.training.choice import (
    PRIOR_CELLS,
    ColumnTrial,
    choose_powers,
    choose_shares,
    clearly_better,
)
from grapefill.trees import Guess

ROWS, HELD_OUT = 120, 40


def make_truth(n_columns: int) -> Any:
    return np.random.default_rng(0).normal(size=(ROWS, n_columns))


def first_rows(*cells: int) -> Any:
    """Hold out so many cells of each column."""
    return np.arange(ROWS)[:, None] < np.array(cells)


def choose(truth: Any, held_out: Any, network: Any, trees: Any) -> tuple[Any, Any]:
    """Choose for columns of numbers; guesses are given by how far off they are."""
    n_categories = (0,) * truth.shape[1]
    guesses = Guess(truth + network, {}), Guess(truth + trees, {})
    return choose_shares(truth, held_out, *guesses, n_categories=n_categories)


def test_a_column_goes_to_who_is_right() -> None:
    held_out = first_rows(HELD_OUT, HELD_OUT)
    shares, trials = choose(make_truth(2), held_out, network=[0, 1], trees=[1, 0])
    assert shares.tolist() == [1, 0]
    assert [trial.share for trial in trials] == [1, 0]


@pytest.mark.parametrize(
    ("network", "trees", "share"),
    [(1, -1, 0.5), (1, -3, 0.75), (-3, 1, 0.25), (2, 1, 0), (1, 1, 0)],
)
def test_errors_in_opposite_directions_cancel(network: float, trees: float, share: float) -> None:
    """And of equals the one that trusts the trees most is taken."""
    shares, (trial,) = choose(make_truth(1), first_rows(HELD_OUT), network, trees)
    assert shares.tolist() == [share]
    assert trial.blend == pytest.approx(abs(share * network + (1 - share) * trees), abs=1e-12)


@pytest.mark.parametrize("better", ["network", "trees"])
def test_a_column_without_held_out_cells_follows_the_pool(better: str) -> None:
    off = {"network": [0, 0, 1], "trees": [1, 1, 0]}
    if better == "trees":
        off = {"network": off["trees"], "trees": off["network"]}
    shares, trials = choose(make_truth(3), first_rows(HELD_OUT, HELD_OUT, 0), **off)
    expected = float(better == "network")
    assert shares.tolist() == [expected] * 3
    assert trials[2] == ColumnTrial(0, None, None, None, None, expected)


def test_a_few_cells_do_not_outweigh_the_pool() -> None:
    def share_of_last(cells: int) -> float:
        # In three of the four columns the network is right, and as far from the trees.
        shares, _ = choose(
            make_truth(4),
            first_rows(HELD_OUT, HELD_OUT, HELD_OUT, cells),
            network=[0, 0, 0, 1],
            trees=[1, 1, 1, 0],
        )
        return shares[-1]

    assert share_of_last(PRIOR_CELLS // 4) == 1
    assert share_of_last(PRIOR_CELLS) == 0


def test_units_have_no_say_in_the_pool() -> None:
    truth = make_truth(4) * [1e6, 1, 1, 1]
    shares, _ = choose(
        truth,
        first_rows(HELD_OUT, HELD_OUT, HELD_OUT, 0),
        network=[0, 1, 1, 0],
        trees=[1e6, 0, 0, 0],
    )
    assert shares.tolist() == [1, 0, 0, 0]


def test_a_constant_column_needs_no_unit() -> None:
    truth = np.full((ROWS, 1), 7.0)
    shares, (trial,) = choose(truth, first_rows(HELD_OUT), network=0, trees=1)
    assert shares.tolist() == [1]
    assert (trial.constant, trial.network, trial.trees) == (0, 0, 1)


def test_a_column_at_the_end_of_float64_follows_the_pool() -> None:
    truth = make_truth(2)
    truth[:, 1] = np.where(np.arange(ROWS) % 2, 1.7e308, -1.7e308)
    network, trees = Guess(truth * [1, -1], {}), Guess(truth + np.array([1, 0]), {})
    held_out = first_rows(HELD_OUT, 1)
    shares, trials = choose_shares(truth, held_out, network, trees, n_categories=(0, 0))
    assert shares.tolist() == [1, 1]
    assert (trials[1].cells, trials[1].network, trials[1].trees) == (1, None, 0)


def as_guess(chances: Any) -> Guess:
    chances = np.array(chances, dtype=np.float64)
    return Guess(chances.argmax(axis=1)[:, None].astype(np.float64), {0: chances})


@pytest.mark.parametrize(
    ("network", "trees", "share"),
    [
        # All of them have the right category on top.
        pytest.param([0.9, 0.1, 0.0], [0.5, 0.3, 0.2], 1, id="the network is more confident"),
        pytest.param([0.5, 0.3, 0.2], [0.9, 0.1, 0.0], 0, id="the trees are more confident"),
        pytest.param([0.6, 0.4, 0.0], [0.6, 0.0, 0.4], 0.5, id="they doubt differently"),
    ],
)
def test_categories_are_judged_by_their_chances(
    network: list[float], trees: list[float], share: float
) -> None:
    shares, (trial,) = choose_shares(
        np.zeros((ROWS, 1)),
        first_rows(HELD_OUT),
        as_guess([network] * ROWS),
        as_guess([trees] * ROWS),
        n_categories=(3,),
    )
    assert shares.tolist() == [share]
    assert (trial.network, trial.trees, trial.blend) == (0, 0, 0)


def test_cells_that_count_more_decide() -> None:
    """The network is right in a third of the rows, the trees in the others."""
    third = np.arange(ROWS)[:, None] % 3 == 0
    off = np.where(third, 0.0, 1.0), np.where(third, 1.0, 0.0)
    truth = make_truth(2)
    guesses = [Guess(truth + each, {}) for each in off]
    weights = {1: np.where(third[:, 0], 9.0, 0.5)}
    held_out = first_rows(HELD_OUT, HELD_OUT)
    shares, trials = choose_shares(truth, held_out, *guesses, n_categories=(0, 0), weights=weights)
    assert shares.tolist() == [0, 1]
    # What is reported are plain means.
    assert trials[1].network == trials[0].network == pytest.approx(2 / 3, abs=0.02)


def test_what_was_not_tried_has_no_error() -> None:
    truth = make_truth(2)
    held_out = first_rows(HELD_OUT, HELD_OUT)
    guesses = Guess(truth + 1, {}), Guess(truth, {})
    shares, trials = choose_shares(truth, held_out, *guesses, n_categories=(0, 0), tried={0})
    assert shares.tolist() == [0, 1]
    assert [trial.trees for trial in trials] == [0, None]
    assert [trial.network for trial in trials] == pytest.approx([1, 1])


def test_the_trial_of_numbers() -> None:
    # Of the cells that are not held out the median is 10.
    truth = np.array([[12.0], [16.0], [0.0], [10.0], [30.0], [np.nan]])
    held_out = np.arange(6)[:, None] < 2
    network = Guess(np.array([[13.0], [20.0], [99], [99], [99], [99]]), {})
    trees = Guess(np.array([[11.0], [12.0], [-99], [-99], [-99], [-99]]), {})
    shares, trials = choose_shares(truth, held_out, network, trees, n_categories=(0,))
    assert trials == (ColumnTrial(2, constant=4, network=2.5, trees=2.5, blend=0, share=0.5),)
    assert shares.tolist() == [0.5]


def test_the_trial_of_categories() -> None:
    # Of the cells that are not held out most are 1.
    truth = np.array([[0.0], [0.0], [1.0], [2.0], [1.0], [1.0], [0.0], [np.nan]])
    held_out = np.arange(8)[:, None] < 4
    sure = np.eye(3)
    network = as_guess(sure[[0, 0, 1, 1, 2, 2, 2, 2]])
    trees = as_guess(sure[[0, 1, 2, 0, 0, 0, 0, 0]])
    shares, (trial,) = choose_shares(truth, held_out, network, trees, n_categories=(3,))
    # The Brier score is 5 (1 - share)^2 + share^2 + 1, where the last cell is wrong in two ways.
    assert trial == ColumnTrial(4, constant=0.75, network=0.25, trees=0.75, blend=0.25, share=0.75)
    assert shares.tolist() == [0.75]


def test_columns_of_both_kinds_share_a_pool() -> None:
    truth = np.column_stack([make_truth(1), np.zeros(ROWS), np.zeros(ROWS)])
    right, wrong = np.tile([1.0, 0.0], (ROWS, 1)), np.tile([0.0, 1.0], (ROWS, 1))
    network = Guess(truth, {1: right, 2: wrong})
    trees = Guess(truth + 1, {1: wrong, 2: right})
    held_out = first_rows(HELD_OUT, HELD_OUT, 0)
    shares, trials = choose_shares(truth, held_out, network, trees, n_categories=(0, 2, 2))
    assert shares.tolist() == [1, 1, 1]
    assert [trial.cells for trial in trials] == [HELD_OUT, HELD_OUT, 0]


@pytest.mark.parametrize(
    ("gain", "noise", "fewest", "expected"),
    [(0.5, 0.1, 1, True), (0.0, 0.1, 1, False), (0.01, 0.1, 1, False), (0.5, 0.1, 41, False)],
)
def test_only_a_clear_gain_on_enough_cells_counts(
    gain: float, noise: float, fewest: int, expected: bool
) -> None:
    truth = make_truth(1)
    rule = truth + 1 + noise * np.random.default_rng(1).normal(size=truth.shape)
    cells = first_rows(HELD_OUT)
    better = clearly_better(truth, cells, truth + 1 - gain, rule, (0,), fewest=fewest)
    assert better.tolist() == [expected]


def test_categories_follow_the_rule() -> None:
    truth = make_truth(1)
    assert not clearly_better(truth, first_rows(HELD_OUT), truth, truth + 1, (3,)).any()


@pytest.mark.parametrize(
    ("said", "cells", "expected"),
    [
        pytest.param(0.6, ROWS, (1.5, 4.0), id="too timid"),
        pytest.param(0.97, ROWS, (0.4, 0.8), id="too bold"),
        pytest.param(0.8, ROWS, (0.9, 1.1), id="right"),
        pytest.param(0.6, 5, (1.0, 1.5), id="little is known"),
        pytest.param(0.6, 0, (1.0, 1.0), id="nothing is known"),
    ],
)
def test_probabilities_are_made_to_agree_with_what_happens(
    said: float, cells: int, expected: tuple[float, float]
) -> None:
    """Four fifths of the rows are of the category that is said to be the more likely."""
    truth = (np.arange(ROWS) % 5 == 4).astype(float)[:, None]
    chances = np.tile([said, 1 - said], (ROWS, 1))
    power = choose_powers(truth, first_rows(cells), {0: chances})[0]
    assert expected[0] <= power <= expected[1]


def test_cells_that_count_more_have_more_say_in_powers() -> None:
    truth = (np.arange(ROWS) % 5 == 4).astype(float)[:, None]
    chances, cells = np.tile([0.8, 0.2], (ROWS, 1)), first_rows(ROWS)
    rare = {0: 1 + 3 * truth[:, 0]}
    assert choose_powers(truth, cells, {0: chances}, rare)[0] < 0.5
