"""Fitting a model: the network, then trees, if there is anything to judge them by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from grapefill.errors import GrapefillWarning
from grapefill.nn import NetworkConfig
from grapefill.table import Schema, Table
from grapefill.training import Preset, Progress, TrainingConfig
from grapefill.training.choice import choose_shares
from grapefill.training.fit import fit_model
from grapefill.training.model import GrapeModel
from grapefill.trees import Forest, ForestConfig, Growth

PRESET = Preset(
    NetworkConfig(layers=1, width=4, edge_width=4, head_width=4),
    TrainingConfig(epochs=8, validation=0.2, rejoin=0.5),
    ForestConfig(rounds=2, trees=4, early_trees=2, trial_trees=3),
)
ROWS, COLUMNS = 60, 3
# What a fit without limits reports: the trial and two rounds, each for every column.
FORESTS = 3 * COLUMNS


@pytest.fixture(autouse=True)
def short_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the trial have one round, which keeps the counting simple."""
    monkeypatch.setattr(ForestConfig, "trial_plan", property(lambda self: (self.trial_trees,)))


def make_table(n_columns: int = COLUMNS) -> Any:
    """Return columns that go together, the last of several as codes of categories."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=ROWS)
    numbers = x[:, None] + 0.1 * rng.normal(size=(ROWS, n_columns))
    if n_columns > 1:
        numbers[:, -1] = np.digitize(x, [-0.5, 0.5])
    numbers[rng.random(numbers.shape) < 0.2] = np.nan
    return numbers


def fit(
    table: Any = None,
    *,
    kinds: Any = None,
    o_edge: Any = None,
    time_limit: float | None = None,
    callbacks: Any = (),
    **settings: Any,
) -> tuple[GrapeModel, Any]:
    """Fit a small model and return it with the numbers it was fitted to."""
    table = Table.wrap(make_table() if table is None else table)
    last = {COLUMNS - 1: "categorical"} if table.n_columns == COLUMNS else {}
    schema = Schema.infer(table, kinds=last if kinds is None else kinds)
    encoded = schema.encode(table)
    generator = torch.Generator().manual_seed(0)
    model = GrapeModel.create(
        schema, encoded.numbers, PRESET.change(**settings), generator=generator, o_edge=o_edge
    )
    model.history = fit_model(
        model, encoded.numbers, generator=generator, time_limit=time_limit, callbacks=callbacks
    )
    return model, encoded.numbers


def n_trees(model: GrapeModel) -> list[dict[int, int]]:
    """Return the trees of every column, round by round."""
    assert model.chain is not None
    return [{j: len(forest.trees) for j, forest in r.items()} for r in model.chain.rounds]


def force_shares(monkeypatch: pytest.MonkeyPatch, *shares: float) -> None:
    """Choose these shares where trees were tried, whatever the trial says."""

    def choose(*args: Any, tried: Any, **options: Any) -> Any:
        forced = [share if j in tried else 1.0 for j, share in enumerate(shares)]
        return np.array(forced), choose_shares(*args, tried=tried, **options)[1]

    monkeypatch.setattr("grapefill.training.stack.choose_shares", choose)


def test_a_fitted_model_has_states_chain_and_trials() -> None:
    model, numbers = fit()
    assert torch.equal(model.states.final, model.freeze_states(numbers).final)
    assert n_trees(model) == [dict.fromkeys(range(COLUMNS), 2), dict.fromkeys(range(COLUMNS), 4)]
    assert len(model.trials) == COLUMNS
    assert all(0 < trial.cells < ROWS / 2 for trial in model.trials)
    assert [trial.share for trial in model.trials] == model.chain.shares.tolist()
    # Eight steps leave the network far behind the trees.
    assert all(trial.trees < trial.network for trial in model.trials)
    assert not model.network.training
    refined, network = model.predict(numbers), model.predict_network(numbers)
    holes = np.isnan(numbers)
    assert (refined.value[~holes] == network.value[~holes]).all()
    assert (refined.value[holes] != network.value[holes]).mean() > 0.5


def test_a_network_alone_has_held_out_cells_too() -> None:
    model, numbers = fit(rounds=0)
    assert model.chain is None
    assert model.trials == ()
    cells = np.bincount(model.held_out.feature, minlength=COLUMNS)
    assert ((cells > 0) & (cells < ROWS / 2)).all()
    assert (model.predict(numbers).value == model.predict_network(numbers).value).all()


def test_all_cells_of_an_only_column_tell_how_far_off_its_fill_is() -> None:
    model, numbers = fit(make_table(1), validation=0.0)
    holes = np.isnan(numbers[:, 0])
    assert model.held_out.truth.tolist() == numbers[~holes, 0].tolist()
    filled = model.predict(numbers).value[holes, 0]
    assert set(model.held_out.guess.tolist()) == set(filled.tolist())


def test_same_seed_same_chain() -> None:
    first, second = (fit()[0].chain.arrays() for _ in range(2))
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])


def test_trees_follow_the_chosen_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    force_shares(monkeypatch, 0.25, 1, 0)
    model, _ = fit()
    assert model.chain.shares.tolist() == [0.25, 1, 0]
    assert n_trees(model) == [{0: 2, 2: 2}, {0: 4, 2: 4}]


def test_there_is_no_chain_when_the_network_wins_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    force_shares(monkeypatch, 1, 1, 1)
    model, _ = fit()
    assert model.chain is None
    assert len(model.trials) == COLUMNS


def record(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[Any]:
    """Return a list that will hold the arguments of every call of a method."""
    calls: list[Any] = []
    method = getattr(owner, name)

    def recording(self: Any, *args: Any, **options: Any) -> Any:
        calls.append(args)
        return method(self, *args, **options)

    monkeypatch.setattr(owner, name, recording)
    return calls


def test_the_trial_does_not_see_the_held_out_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: dict[str, Any] = {}

    def choose(numbers: Any, held_out: Any, network: Any, trees: Any, **options: Any) -> Any:
        judged.update(held_out=held_out, network=network)
        return choose_shares(numbers, held_out, network, trees, **options)

    monkeypatch.setattr("grapefill.training.stack.choose_shares", choose)
    frozen = record(monkeypatch, GrapeModel, "freeze_states")
    asked = record(monkeypatch, GrapeModel, "predict_network")
    grown = record(monkeypatch, Growth, "grow")
    _, numbers = fit()
    held_out = judged["held_out"]
    assert held_out.any(axis=0).all()
    assert not (held_out & np.isnan(numbers)).any()
    shown = np.where(held_out, np.nan, numbers)
    alone = asked.pop(1)[0]
    for trial, final in (frozen, asked, grown):
        np.testing.assert_array_equal(trial[0], shown)
        np.testing.assert_array_equal(final[0], numbers)
    # Then each of them is hidden by itself, feature by feature.
    feature, row = np.nonzero(held_out.T)
    expected = numbers[row]
    expected[np.arange(row.size), feature] = np.nan
    np.testing.assert_array_equal(alone, expected)
    # The trial starts with the network as it was then, the chain with the final one.
    assert grown[0][1] is judged["network"]
    assert not np.array_equal(grown[0][1].value, grown[1][1].value)


# A column of three categories takes the place of three.
@pytest.mark.parametrize("limit", [("TREE_ROWS", 25), ("TREE_CELLS", 25 * 5 + 1)])
def test_trees_grow_on_some_rows_of_a_large_table(
    limit: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"grapefill.training.stack.{limit[0]}", limit[1])
    grown = record(monkeypatch, Growth, "grow")
    _, numbers = fit()
    sample = grown[1][0]
    assert sample.shape == (25, COLUMNS)
    at = [next(i for i in range(ROWS) if np.array_equal(numbers[i], row, True)) for row in sample]
    assert at == sorted(set(at)) != list(range(25))


@pytest.mark.parametrize(
    "case",
    [
        {"rounds": 0},
        {"validation": 0.0},
        {"rejoin": 1.0},
        {"most_columns": COLUMNS - 1},
        {"table": make_table(1)},
        {"o_edge": torch.nn.Linear(8, 1), "kinds": {2: "continuous"}},
    ],
    ids=lambda case: next(iter(case)),
)
def test_there_are_no_trees_without_need_or_means_to_judge_them(case: dict[str, Any]) -> None:
    seen: list[Progress] = []
    model, numbers = fit(callbacks=[seen.append], **case)
    assert model.chain is None
    assert model.trials == ()
    assert {progress.stage for progress in seen} == {"network"}
    np.testing.assert_array_equal(
        model.predict(numbers).value, model.predict_network(numbers).value
    )


def test_as_many_columns_as_allowed_are_fine() -> None:
    model, _ = fit(most_columns=COLUMNS)
    assert model.chain is not None


def rests_on_network(model: Any) -> None:
    """Check that a model knows how far off its network is by itself."""
    assert model.chain is None
    assert {(trial.trees, trial.share) for trial in model.trials} == {(None, 1.0)}
    assert [trial.network for trial in model.trials] == [trial.blend for trial in model.trials]
    assert model.held_out.feature.size > 0
    assert model.held_out.votes.shape[1] == 0
    assert np.isnan(model.held_out.spread).all()


# Before and after the held-out cells join the others.
@pytest.mark.parametrize("step", [2, 6])
def test_after_an_interruption_no_trees_grow(step: int) -> None:
    seen: list[str] = []

    def interrupt(progress: Progress) -> None:
        seen.append(progress.stage)
        if progress.step == step:
            raise KeyboardInterrupt

    with pytest.warns(GrapefillWarning, match="interrupted"):
        model, numbers = fit(callbacks=[interrupt])
    assert model.history.stopped == "interrupted"
    rests_on_network(model)
    assert seen == ["network"] * step
    assert np.isfinite(model.predict(numbers).value).all()


def test_trees_are_reported_after_the_network() -> None:
    seen: list[Progress] = []
    model, _ = fit(callbacks=[seen.append])
    assert [progress.stage for progress in seen] == ["network"] * 8 + ["trees"] * FORESTS
    trees = seen[8:]
    assert {(p.step, p.steps, p.loss) for p in trees} == {(8, 8, model.history.loss[-1])}
    assert {p.validation for p in trees} == {model.history.validation[-1]}
    seconds = [progress.seconds for progress in seen]
    assert seconds == sorted(seconds)
    assert len(model.history.step) == 8


class Clock:
    """A clock that only moves by a second for every tree, and as much as asked for every step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, step: float = 0.0) -> None:
        self.now, self.step = 1000.0, step
        true_grow = Forest.grow

        def slow_grow(*args: Any, **options: Any) -> Forest:
            self.now += options["n_trees"]
            return true_grow(*args, **options)

        monkeypatch.setattr(Forest, "grow", slow_grow)
        for module in (
            "training.fit",
            "training.stack",
            "training.loop",
            "training.course",
            "trees.growth",
        ):
            monkeypatch.setattr(f"grapefill.{module}.time", self)

    def perf_counter(self) -> float:
        return self.now

    def tick(self, progress: Progress) -> None:
        if progress.stage == "network":
            self.now += self.step


# The trial takes 9 seconds and must end in three quarters of the time, the rounds take 6 and 12.
@pytest.mark.parametrize(
    ("time_limit", "rounds", "end"),
    [(27, 2, 27), (26, 1, 15), (15, 1, 15), (14, 0, 9)],
)
def test_rounds_that_would_not_make_it_are_left_out(
    time_limit: float, rounds: int, end: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    force_shares(monkeypatch, 0, 0, 0)
    clock = Clock(monkeypatch)
    model, _ = fit(time_limit=time_limit)
    assert (0 if model.chain is None else len(model.chain.rounds)) == rounds
    assert clock.now - 1000 == end
    assert [trial.trees is None for trial in model.trials] == [False] * COLUMNS
    assert model.history.stopped == "finished"


def test_progress_tells_the_time_left_for_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """First that of the trial, then that of the chain."""
    force_shares(monkeypatch, 0, 0, 0)
    Clock(monkeypatch)
    seen: list[Progress] = []
    fit(callbacks=[seen.append])
    trees = [progress for progress in seen if progress.stage == "trees"]
    assert [progress.seconds for progress in trees] == [3, 6, 9, 11, 13, 15, 19, 23, 27]
    left = [progress.seconds_left for progress in trees]
    assert left == pytest.approx([6, 3, 0, 10, 8, 6, 5, 2.8, 0])


def test_columns_that_were_not_tried_stay_with_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    force_shares(monkeypatch, 0, 0, 0)
    Clock(monkeypatch)
    # After the first column 3 of the 5.25 seconds of the trial are over; the next needs 3 more.
    model, numbers = fit(time_limit=7)
    assert model.chain.shares.tolist() == [0, 1, 1]
    assert n_trees(model) == [{0: 2}]
    refined, network = model.predict(numbers), model.predict_network(numbers)
    np.testing.assert_array_equal(refined.value[:, 1:], network.value[:, 1:])


def test_the_network_leaves_time_for_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, step=1.0)
    model, _ = fit(time_limit=100, epochs=1000, callbacks=[clock.tick])
    assert model.history.stopped == "time limit"
    assert 55 < model.history.seconds[-1] <= 60
    assert len(model.chain.rounds) == 2


@pytest.mark.parametrize("case", [{"rounds": 0}, {"validation": 0.0}, {"rejoin": 1.0}])
def test_without_trees_the_network_has_all_the_time(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, step=1.0)
    settings = {"epochs": 1000, "patience": 1000} | case
    model, _ = fit(time_limit=100, callbacks=[clock.tick], **settings)
    assert model.history.stopped == "time limit"
    assert 95 < model.history.seconds[-1] <= 100


def test_when_time_is_over_the_network_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, step=50.0)
    model, numbers = fit(time_limit=100, callbacks=[clock.tick])
    assert model.chain is None
    assert np.isfinite(model.predict(numbers).value).all()


def test_a_column_unknown_in_the_drawn_rows_stays_with_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("grapefill.training.stack.TREE_ROWS", 20)
    table = make_table()
    table[:, 1] = np.nan
    table[55:57, 1] = [101.0, 102.0]
    model, _ = fit(table)
    assert all(set(forests) <= {0, 2} for forests in model.chain.rounds)
    assert (model.trials[1].cells, model.trials[1].trees, model.trials[1].share) == (0, None, 1.0)


# In the trial, and after it.
@pytest.mark.parametrize("forests", [1, 2 * COLUMNS + 1])
def test_interrupted_trees_leave_the_network(forests: int) -> None:
    seen: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        if progress.stage == "trees":
            seen.append(progress)
            if len(seen) == forests:
                raise KeyboardInterrupt

    with pytest.warns(GrapefillWarning, match="while trees were grown"):
        model, _ = fit(callbacks=[interrupt])
    assert model.history.stopped == "interrupted"
    rests_on_network(model)
    assert model.states is not None


def test_columns_of_many_categories_are_reported_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("grapefill.trees.growth.MOST_CATEGORIES", 2)
    model, _ = fit()
    assert [trial.share for trial in model.trials] == model.chain.shares.tolist()
    assert model.chain.shares[2] == 1
