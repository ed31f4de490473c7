"""What is fitted beside and on top of the network: factors, and trees for labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from grapefill.factors import FactorConfig, Factors
from grapefill.nn import NetworkConfig
from grapefill.table import Schema, Table
from grapefill.training import Preset, TrainingConfig
from grapefill.training.choice import choose_shares
from grapefill.training.fit import fit_model
from grapefill.training.model import GrapeModel
from grapefill.training.stack import Stack
from grapefill.training.summary import summarise
from grapefill.trees import Forest, ForestConfig, Growth, LineForest

PRESET = Preset(
    NetworkConfig(layers=1, width=4, edge_width=4, head_width=4, labels="feature"),
    TrainingConfig(epochs=8, validation=0.2, rejoin=0.5, scaling="standard"),
    ForestConfig(),
    FactorConfig(most_factors=8, fewest_columns=8),
)
TREES = {"rounds": 1, "trees": 4, "trial_trees": 4}
ROWS, COLUMNS = 80, 10


def make_table(*, rank: int = 2) -> Any:
    """Return columns that are mixtures of a few hidden numbers, the last as categories."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(ROWS, rank)) @ rng.normal(size=(rank, COLUMNS)) + 50
    numbers[:, -1] = np.digitize(numbers[:, -1], [49.5, 50.5])
    numbers[rng.random(numbers.shape) < 0.15] = np.nan
    return numbers


def make_model(numbers: Any, labels: tuple[int, ...] = (), **settings: Any) -> GrapeModel:
    features = numbers[:, : numbers.shape[1] - len(labels)]
    kinds = {COLUMNS - 1: "categorical"} if features.shape[1] == COLUMNS else {}
    schema = Schema.infer(Table.wrap(features), kinds=kinds)
    generator = torch.Generator().manual_seed(0)
    preset = PRESET.change(**settings)
    return GrapeModel.create(schema, numbers, preset, generator=generator, labels=labels)


def fit(
    numbers: Any = None,
    labels: tuple[int, ...] = (),
    *,
    time_limit: float | None = None,
    label_weights: Any = None,
    **settings: Any,
) -> tuple[GrapeModel, Any]:
    numbers = make_table() if numbers is None else numbers
    model = make_model(numbers, labels, **settings)
    fit_model(
        model,
        numbers,
        generator=torch.Generator().manual_seed(1),
        time_limit=time_limit,
        label_weights=label_weights,
    )
    return model, numbers


@pytest.fixture
def fitted_factors(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, int]]:
    """Return a list that will hold the rows, columns and ranks that factors are fitted to."""
    calls: list[tuple[Any, Any, int]] = []
    true_fit = Factors.fit

    def recording(scaled: Any, columns: Any, *, rank: int) -> Factors:
        calls.append((scaled, columns, rank))
        return true_fit(scaled, columns, rank=rank)

    monkeypatch.setattr(Factors, "fit", recording)
    return calls


class TestFactors:
    def test_they_are_used_where_they_are_better(self) -> None:
        model, _ = fit()
        assert model.linear is not None
        assert model.linear.factors.columns.tolist() == list(range(COLUMNS - 1))
        assert (model.linear.shares[:-1] < 1).all()
        assert model.linear.shares[-1] == 1
        trials = model.trials
        assert [trial.factor_share for trial in trials] == (1 - model.linear.shares).tolist()
        assert all(trial.factors < 0.5 * trial.network for trial in trials[:-1])
        assert {(trial.trees, trial.share) for trial in trials} == {(None, 1.0)}
        assert (trials[-1].factors, trials[-1].factor_share) == (None, 0.0)

    def test_what_is_predicted_is_their_blend_with_the_network(self) -> None:
        model, numbers = fit()
        assert model.linear is not None
        model.linear.shares[:] = np.linspace(0, 1, COLUMNS)
        network, blend = model.predict_network(numbers), model.predict(numbers)
        factors = model.factor_values(model.linear.factors, numbers)
        share = np.linspace(0, 1, COLUMNS)[:-1]
        expected = share * network.value[:, :-1] + (1 - share) * factors
        np.testing.assert_allclose(blend.value[:, :-1], expected, rtol=1e-12)
        np.testing.assert_array_equal(blend.value[:, -1], network.value[:, -1])
        np.testing.assert_array_equal(blend.chances[COLUMNS - 1], network.chances[COLUMNS - 1])
        # In units of the table, where the factors are near the truth.
        seen = ~np.isnan(numbers[:, :-1])
        assert np.abs(factors - numbers[:, :-1])[seen].mean() < 0.2

    def test_the_trial_does_not_see_the_held_out_cells(self, fitted_factors: Any) -> None:
        model, numbers = fit()
        scaled = model.scaled(numbers)
        *trials, final = fitted_factors
        holes = np.isnan(trials[0][0])
        assert (holes & ~np.isnan(scaled)).any(axis=0).all()
        for rows, _, _ in trials:
            np.testing.assert_array_equal(rows, np.where(holes, np.nan, scaled))
        np.testing.assert_array_equal(final[0], scaled)

    def test_more_are_tried_until_it_gets_worse(self, fitted_factors: Any) -> None:
        model, _ = fit(most_factors=48)
        *tried, final = [rank for _, _, rank in fitted_factors]
        ranks = list(model.preset.factors.ranks)
        assert tried == ranks[: len(tried)]
        assert len(tried) < len(ranks)
        assert final in tried

    def test_rows_are_limited(self, fitted_factors: Any) -> None:
        fit(factor_rows=20)
        assert {len(rows) for rows, _, _ in fitted_factors} == {20}

    def test_when_time_is_over_one_number_of_factors_must_do(self, fitted_factors: Any) -> None:
        fit(time_limit=1e-9, epochs=1000)
        assert [rank for _, _, rank in fitted_factors][:2] in ([4], [4, 4])

    @pytest.mark.parametrize(
        "settings",
        [
            {"most_factors": 0},
            {"fewest_columns": COLUMNS},
            {"validation": 0.0},
            {"rejoin": 1.0},
        ],
        ids=lambda settings: next(iter(settings)),
    )
    def test_there_are_none_without_need_or_means_to_judge_them(
        self, settings: dict[str, Any], fitted_factors: Any
    ) -> None:
        model, numbers = fit(**settings)
        assert fitted_factors == []
        assert model.linear is None
        assert model.trials == ()
        network = model.predict_network(numbers)
        np.testing.assert_array_equal(model.predict(numbers).value, network.value)

    def test_there_are_none_where_the_network_wins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def choose(*args: Any, **options: Any) -> Any:
            return np.ones(COLUMNS), choose_shares(*args, **options)[1]

        monkeypatch.setattr("grapefill.training.stack.choose_shares", choose)
        model, _ = fit()
        assert model.linear is None
        assert len(model.trials) == COLUMNS

    def test_trees_start_from_the_blend(self, monkeypatch: pytest.MonkeyPatch) -> None:
        grown: list[Any] = []
        true_grow = Growth.grow

        def recording(self: Growth, numbers: Any, guess: Any, *args: Any, **options: Any) -> Any:
            grown.append(guess)
            return true_grow(self, numbers, guess, *args, **options)

        monkeypatch.setattr(Growth, "grow", recording)
        model, numbers = fit(**TREES)
        assert model.linear is not None
        np.testing.assert_array_equal(grown[-1].value, model.predict_start(numbers).value)
        assert np.abs(grown[-1].value - model.predict_network(numbers).value).max() > 0.1
        for trial in model.trials[:-1]:
            # The network alone, as it was without the factors.
            assert trial.factors < 0.5 * trial.network
            assert trial.trees is not None
        shares = 1 - np.array([trial.factor_share for trial in model.trials])
        np.testing.assert_array_equal(shares, model.linear.shares)

    def test_a_label_may_be_among_the_columns(self) -> None:
        rng = np.random.default_rng(0)
        numbers = rng.normal(size=(ROWS, 2)) @ rng.normal(size=(2, COLUMNS))
        numbers[rng.random(numbers.shape) < 0.15] = np.nan
        model, _ = fit(numbers, (0,))
        assert model.linear is not None
        assert COLUMNS - 1 in model.linear.factors.columns
        assert model.trials[-1].factors < 0.7 * model.trials[-1].constant

    def test_training_further_forgets_them(self) -> None:
        model, _ = fit()
        again = model.continued(model.preset)
        assert again.linear is None
        assert model.linear is not None


class TestRowsForTrees:
    def stack(self, labelled: Any, held_out: Any, most: int, monkeypatch: Any) -> Any:
        """Return the rows that are chosen."""
        monkeypatch.setattr("grapefill.training.stack.TREE_ROWS", most)
        numbers = np.column_stack([np.arange(100.0), np.where(labelled, 1.0, np.nan)])
        model = make_model(numbers, (0,))
        generator = torch.Generator().manual_seed(0)
        stack = Stack(model, numbers, generator, started=0.0, time_limit=None, label_weights=None)
        return stack._choose_rows(held_out)

    def test_those_with_held_out_cells_come_first_then_those_with_labels(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = np.arange(100)
        held_out, labelled = rows % 10 == 0, rows % 4 == 0
        for most in (5, 20, 60):
            chosen = self.stack(labelled, held_out, most, monkeypatch)
            assert chosen.tolist() == sorted(set(chosen.tolist()))
            assert len(chosen) == most
            assert held_out[chosen].sum() == min(most, 10)
            # Five rows are both.
            assert (labelled | held_out)[chosen].sum() == min(most, 30)
        assert self.stack(labelled, held_out, 100, monkeypatch) == slice(None)

    def test_the_rest_is_drawn_by_chance(self, monkeypatch: pytest.MonkeyPatch) -> None:
        nothing = np.zeros(100, dtype=bool)
        chosen = self.stack(np.arange(100) < 3, nothing, 20, monkeypatch)
        assert {0, 1, 2} <= set(chosen.tolist())
        assert np.std(chosen[3:]) > 15

    def test_weights_stay_with_their_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("grapefill.training.stack.TREE_ROWS", 30)
        made: list[tuple[Any, Any]] = []
        true_grow = Growth.grow

        def recording(self: Growth, numbers: Any, *args: Any, **options: Any) -> Any:
            made.append((self.weights, numbers))
            return true_grow(self, numbers, *args, **options)

        monkeypatch.setattr(Growth, "grow", recording)
        table = make_table()[:, :3]
        label = np.linspace(1, 2, ROWS)
        fit(np.column_stack([table, label]), (0,), label_weights=label**2, **TREES)
        weights, numbers = made[-1]
        assert set(weights) == {3}
        assert numbers.shape == (30, 4)
        np.testing.assert_array_equal(weights[3], numbers[:, 3] ** 2)


def test_a_column_that_follows_others_smoothly_gets_lines() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, size=(1_500, 2))
    numbers = np.column_stack([x, np.sin(x[:, 0]) + x[:, 1], np.round(2 * x[:, 0])])
    numbers[np.random.default_rng(1).random(numbers.shape) < 0.1] = np.nan
    model, _ = fit(numbers, **TREES)
    assert model.chain is not None
    kinds = {j: type(forest) for j, forest in model.chain.rounds[-1].items()}
    assert kinds[2] is LineForest
    assert kinds[3] is Forest
    lines = summarise(model).splitlines()
    assert "trees of lines" in lines[3]
    assert "trees of lines" not in lines[4]


class TestHeldOut:
    """Cells that intervals are calibrated by, each predicted as a missing one would be."""

    def test_the_others_of_their_rows_are_in_sight(self) -> None:
        numbers = make_table()
        model, _ = fit(numbers, **TREES)
        assert model.held_out is not None
        for j in range(COLUMNS):
            mine = model.held_out.of(j)
            rows = [int(np.flatnonzero(numbers[:, j] == value)[0]) for value in mine.truth]
            if j < COLUMNS - 1:
                others = (~np.isnan(numbers[rows])).sum(axis=1) - 1
                np.testing.assert_array_equal(mine.known, others)
            assert mine.truth.size

    def test_not_where_that_would_take_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        numbers = make_table()
        alone, _ = fit(numbers, **TREES)
        monkeypatch.setattr("grapefill.training.stack.MOST_ALONE", 0)
        together, _ = fit(numbers, **TREES)
        assert alone.held_out is not None
        assert together.held_out is not None
        np.testing.assert_array_equal(alone.held_out.truth, together.held_out.truth)
        assert (together.held_out.known <= alone.held_out.known).all()
        assert together.held_out.known.mean() < alone.held_out.known.mean() - 0.5
        # What is chosen by these cells, and the fills, do not depend on it.
        assert all(trial.alone is None for trial in together.trials)
        assert tuple(replace(trial, alone=None) for trial in alone.trials) == together.trials
        np.testing.assert_array_equal(alone.predict(numbers).value, together.predict(numbers).value)

    def test_they_are_closer_than_those_held_out_together(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        random = np.random.default_rng(0)
        # Two of four columns tell the others, so that what is hidden besides matters.
        numbers = np.repeat(random.normal(size=(300, 2)), 2, axis=1)
        settings = {**TREES, "validation": 0.4, "fewest_columns": 99, "trees": 10}
        alone, _ = fit(numbers, **settings)
        monkeypatch.setattr("grapefill.training.stack.MOST_ALONE", 0)
        together, _ = fit(numbers, **settings)
        assert alone.held_out is not None
        assert together.held_out is not None
        off = [
            np.abs(held.truth - held.guess).mean() for held in (alone.held_out, together.held_out)
        ]
        assert off[0] < 0.7 * off[1]

    def test_labels_are_predicted_without_other_labels(self) -> None:
        numbers = make_table()[:, : COLUMNS - 1]
        model, _ = fit(numbers, labels=(0, 0), **TREES)
        assert model.held_out is not None
        observed = (~np.isnan(numbers)).sum(axis=1).mean()
        assert model.held_out.known.mean() < observed - 1
