"""The training loop: what a step sees, when training ends, which weights remain."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

from grapefill.errors import ConfigError, GrapefillError, GrapefillWarning
from grapefill.graph import Cells, Features
from grapefill.nn import GrapeNetwork, NetworkConfig
from grapefill.training import (
    History,
    Preset,
    Progress,
    ProgressBar,
    Trainer,
    TrainingConfig,
    get_preset,
)
from grapefill.training.batches import hold_out

SMALL = NetworkConfig(layers=2, width=8, edge_width=8, head_width=8)


def make_trainer(
    n_rows: int = 60,
    n_categories: tuple[int, ...] = (0, 0, 3),
    callbacks: Any = (),
    time_limit: float | None = None,
    layout: Any = "auto",
    **settings: Any,
) -> Trainer:
    rng = np.random.default_rng(0)
    x = rng.normal(size=n_rows)
    columns = [
        (x > 0).astype(float) + (x > 1) if k else x + 0.1 * j for j, k in enumerate(n_categories)
    ]
    numbers = np.column_stack(columns)
    numbers[rng.random(numbers.shape) < 0.2] = np.nan
    features = Features(n_categories)
    generator = torch.Generator().manual_seed(0)
    return Trainer(
        GrapeNetwork(features, SMALL, generator),
        Cells.from_numbers(numbers, features),
        TrainingConfig(**({"epochs": 20, "learning_rate": 0.01} | settings)),
        generator=generator,
        layout=layout,
        time_limit=time_limit,
        callbacks=callbacks,
    )


@pytest.mark.parametrize("layout", ["dense", "edges"])
@pytest.mark.parametrize("loss_on", ["observed", "dropped"])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_loss_falls(layout: str, loss_on: str, loss: str) -> None:
    trainer = make_trainer(layout=layout, loss_on=loss_on, loss=loss, epochs=150)
    history = trainer.run()
    assert history.stopped == "finished"
    assert history.step == list(range(1, 151))
    assert np.mean(history.loss[-10:]) < 0.7 * np.mean(history.loss[:10])


@pytest.mark.parametrize(
    ("n_rows", "settings", "threads"),
    [(60, {}, 1), (6_000, {"batch_rows": 100}, 1), (6_000, {}, 2)],
)
def test_small_steps_run_in_one_thread(n_rows: int, settings: Any, threads: int) -> None:
    """Those of other sizes as they are told to, and so does everything afterwards."""
    seen = set()

    def look(_: Progress) -> None:
        seen.add(torch.get_num_threads())

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        make_trainer(n_rows, callbacks=[look], max_steps=2, **settings).run()
        assert seen == {threads}
        assert torch.get_num_threads() == 2
        with pytest.raises(GrapefillError, match="diverged"):
            make_trainer(n_rows, learning_rate=1e30, **settings).run()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_same_seed_same_history_in_both_layouts() -> None:
    dense = make_trainer(layout="dense").run()
    edges = make_trainer(layout="edges").run()
    again = make_trainer(layout="edges").run()
    assert edges.loss == again.loss
    np.testing.assert_allclose(dense.loss, edges.loss, rtol=1e-4)


def test_a_dropped_edge_is_an_observed_one_and_rates_vary_by_row() -> None:
    trainer = make_trainer(n_rows=4000, n_categories=(0,) * 10, dropout=(0.1, 0.6))
    dropped = trainer.batches.drop(trainer.cells)
    assert not (dropped & ~trainer.cells.observed).any()
    share = dropped.sum() / trainer.cells.observed.sum()
    assert 0.32 < float(share) < 0.38
    # With one rate for all rows the share in a row would vary by .48 / sqrt(10) = .15 only.
    by_row = dropped.sum(1) / trainer.cells.observed.sum(1).clamp(min=1)
    assert float(by_row[trainer.cells.observed.sum(1) == 10].std()) > 0.19


def test_an_epoch_visits_every_row_once_in_batches_of_like_size() -> None:
    trainer = make_trainer(n_rows=61, batch_rows=20, epochs=2)
    batches = list(islice(trainer.batches(trainer.held_out, after=0), 8))
    assert [len(batch) for batch in batches] == [16, 15, 15, 15] * 2
    for epoch in (batches[:4], batches[4:]):
        assert sorted(torch.cat(epoch).tolist()) == list(range(61))


def test_held_out_cells_are_observed_hidden_and_leave_every_feature_something() -> None:
    trainer = make_trainer(n_rows=3, validation=0.9)
    assert not (trainer.held_out & trainer.cells.observed).any()
    assert (trainer.held_out | trainer.cells.observed).equal(trainer.truth.observed)
    had = trainer.truth.observed.any(0)
    assert trainer.cells.observed.any(0).equal(had)


def test_best_weights_are_restored() -> None:
    def spoil(progress: Progress) -> None:
        """Ruin the weights after the first half, so that later validations are worse."""
        if progress.step > 20:
            with torch.no_grad():
                for parameter in trainer.network.parameters():
                    parameter.mul_(1.5)

    trainer = make_trainer(validation=0.2, epochs=40, patience=40, callbacks=[spoil])
    history = trainer.run()
    assert history.best_step <= 21
    assert min(history.validation) < history.validation[-1]
    expected = min(history.validation)
    assert trainer._validate(41) == pytest.approx(expected)


def test_early_stopping_ends_training() -> None:
    trainer = make_trainer(validation=0.3, epochs=4000, patience=2, learning_rate=0.5)
    assert trainer.run().stopped == "early stopping"
    assert len(trainer.history.step) < 4000


def test_time_limit_ends_training() -> None:
    trainer = make_trainer(epochs=10**6, time_limit=0.2)
    assert trainer.run().stopped == "time limit"


def test_interruption_keeps_the_best_so_far() -> None:
    def interrupt(progress: Progress) -> None:
        if progress.step == 7:
            raise KeyboardInterrupt

    trainer = make_trainer(validation=0.2, epochs=100, callbacks=[interrupt])
    with pytest.warns(GrapefillWarning, match="interrupted"):
        history = trainer.run()
    assert history.stopped == "interrupted"
    assert history.step[-1] == 7
    assert history.best_step in history.validation_step
    assert not trainer.network.training


def test_divergence_is_an_error() -> None:
    with pytest.raises(GrapefillError, match=r"Training diverged at step .* lower learning_rate"):
        make_trainer(learning_rate=1e30, epochs=50).run()


class OwnHead(torch.nn.Module):
    """A user's O_edge with dropout and a running statistic."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(16, 1, device="meta").to_empty(device="cpu")
        torch.nn.init.constant_(self.linear.weight, 0.1)
        torch.nn.init.zeros_(self.linear.bias)
        self.dropout = torch.nn.Dropout(0.5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.calls += 1
        return self.linear(self.dropout(states))


def test_a_user_s_module_keeps_its_statistics_and_has_its_own_randomness() -> None:
    def train() -> dict[str, torch.Tensor]:
        pattern = make_trainer(n_categories=(0, 0), average=0.9)
        generator = torch.Generator().manual_seed(0)
        network = GrapeNetwork(pattern.network.features, SMALL, generator, o_edge=OwnHead())
        Trainer(network, pattern.truth, pattern.config, generator=generator).run()
        return network.state_dict()

    before = torch.get_rng_state()
    first, second = train(), train()
    assert torch.equal(before, torch.get_rng_state())
    assert first["o_edge.module.calls"] == 20
    for name, weights in first.items():
        assert torch.equal(weights, second[name])


def test_a_step_that_needs_much_memory_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grapefill.training.loop.MOST_GIGABYTES", 1e-6)
    with pytest.warns(GrapefillWarning, match=r"takes about .* GB of memory.*batch_rows"):
        make_trainer()


def test_averaged_weights_are_used_in_the_end() -> None:
    trainer = make_trainer(average=0.9, epochs=30)
    trainer.run()
    assert trainer.weights.average is not None
    used = torch.cat([parameter.flatten() for parameter in trainer.network.parameters()])
    assert torch.equal(used, trainer.weights.average)


def test_parameters_have_memory_of_their_own_in_the_end() -> None:
    trainer = make_trainer()
    trainer.run()
    storages = {p.untyped_storage().data_ptr() for p in trainer.network.parameters()}
    assert len(storages) == len(list(trainer.network.parameters()))
    assert all(parameter.grad is None for parameter in trainer.network.parameters())


def test_cosine_schedule_warms_up_and_ends_at_zero() -> None:
    trainer = make_trainer(schedule="cosine", epochs=100, learning_rate=1.0)
    rates = [trainer.config.rate_after(trainer.clock.done(step, 100)) for step in range(1, 101)]
    assert rates[0] == pytest.approx(0.2)
    assert max(rates) == rates[4] == pytest.approx(1.0)
    assert rates[-1] == pytest.approx(0.0, abs=1e-6)


def test_progress_tells_steps_and_time_left() -> None:
    seen: list[Progress] = []
    make_trainer(epochs=5, callbacks=[seen.append]).run()
    assert [progress.step for progress in seen] == [1, 2, 3, 4, 5]
    assert seen[-1].seconds_left == 0
    assert all(progress.seconds > 0 for progress in seen)


def test_progress_bar_shows_losses(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar() as bar:
        bar(Progress(1, 2, 0.5, 0.25, 1.0, 1.0))
    shown = capsys.readouterr().out
    assert "Training" in shown
    assert "loss 0.5000" in shown
    assert "held-out 0.2500" in shown


def test_history_round_trip() -> None:
    history = make_trainer(epochs=3).run()
    assert History.from_dict(history.to_dict()) == history


def test_presets() -> None:
    paper = get_preset("paper")
    assert paper == Preset(NetworkConfig(), TrainingConfig())
    assert (paper.network.layers, paper.network.width, paper.network.aggregation) == (3, 64, "mean")
    assert (paper.training.epochs, paper.training.dropout) == (20_000, (0.3, 0.3))
    # Smaller for labels, with averaged weights.
    small = {"layers": 2, "width": 16, "edge_width": 16, "head_width": 0, "average": 0.999}
    assert get_preset("paper", labels=True) == paper.change(**small)
    for name in ("default", "fast", "paper"):
        preset = get_preset(name)
        assert Preset.from_dict(preset.to_dict()) == preset


def test_unknown_settings_and_presets_are_refused() -> None:
    with pytest.raises(ConfigError, match="'paper', 'default', 'fast'"):
        get_preset("best")
    with pytest.raises(ConfigError, match="Unknown setting 'widht'"):
        get_preset("paper").change(widht=3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"batch_rows": 0},
        {"dropout": (0.5, 0.2)},
        {"dropout": (0.0, 0.0), "loss_on": "dropped"},
        {"validation": 1.0},
        {"learning_rate": 0.0},
        {"loss": "cubic"},
    ],
)
def test_wrong_recipes_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        TrainingConfig(**wrong)


class TestRejoining:
    @pytest.fixture
    def joined(self) -> list[Any]:
        return []

    def test_held_out_cells_join_when_most_is_done(self, joined: list[Any]) -> None:
        trainer = make_trainer(validation=0.2, rejoin=0.75, epochs=40, patience=40)
        trainer.on_rejoin = lambda held_out: joined.append((held_out, len(trainer.history.step)))
        hidden = trainer.held_out.clone()
        history = trainer.run()
        ((held_out, at),) = joined
        assert held_out.equal(hidden)
        assert hidden.any()
        assert at == 30
        assert len(history.step) == 40
        assert max(history.validation_step) == 30
        assert trainer.cells.observed.equal(trainer.truth.observed)

    def test_the_network_is_averaged_and_at_rest_meanwhile(self, joined: list[Any]) -> None:
        trainer = make_trainer(validation=0.2, rejoin=0.5, epochs=20, average=0.9)

        def look(held_out: torch.Tensor) -> None:
            joined.append(trainer.network.training)
            assert trainer.weights.average is not None
            assert torch.equal(trainer.weights.flat.vector.detach(), trainer.weights.average)

        trainer.on_rejoin = look
        trainer.run()
        assert joined == [False]

    def test_early_stopping_shortens_the_rest_in_proportion(self, joined: list[Any]) -> None:
        trainer = make_trainer(
            validation=0.3, rejoin=0.5, epochs=4000, patience=2, learning_rate=0.5
        )
        trainer.on_rejoin = lambda _: joined.append(len(trainer.history.step))
        history = trainer.run()
        assert history.stopped == "early stopping"
        assert len(history.step) == 2 * joined[0] < 4000
        assert history.best_step == history.step[-1]

    @pytest.mark.parametrize("patience", [2, 40])
    def test_training_may_end_there(self, patience: int, joined: list[Any]) -> None:
        trainer = make_trainer(
            validation=0.3, rejoin=0.5, epochs=60, patience=patience, learning_rate=0.5
        )
        trainer.ends_at_rejoin = True
        trainer.on_rejoin = lambda _: joined.append(len(trainer.history.step))
        history = trainer.run()
        assert joined == [len(history.step)]
        assert len(history.step) == 30 if patience == 40 else len(history.step) < 30

    def test_an_interruption_of_such_a_training_is_passed_on(self) -> None:
        def interrupt(_: Progress) -> None:
            raise KeyboardInterrupt

        trainer = make_trainer(validation=0.3, rejoin=0.5)
        trainer.ends_at_rejoin, trainer.callbacks = True, [interrupt]
        with pytest.raises(KeyboardInterrupt):
            trainer.run()

    def test_cells_that_never_join_are_not_given_away(self, joined: list[Any]) -> None:
        trainer = make_trainer(validation=0.2, rejoin=1.0)
        trainer.on_rejoin = joined.append
        trainer.run()
        assert not joined

    def test_time_counts_as_well_as_steps(
        self, joined: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trainer = make_trainer(validation=0.2, rejoin=0.6, epochs=1000, time_limit=100.0)
        trainer.clock.started = 0.0
        now = iter(range(10_000))
        monkeypatch.setattr("grapefill.training.course.time.perf_counter", lambda: next(now) / 4)
        trainer.on_rejoin = lambda _: joined.append(len(trainer.history.step))
        history = trainer.run()
        assert history.stopped == "time limit"
        assert 0 < joined[0] < len(history.step) < 1000


def test_large_tables_hold_out_only_as_many_as_it_takes() -> None:
    trainer = make_trainer(n_rows=3000, n_categories=(0, 0), validation=0.5)
    held_out = trainer.held_out.sum(0)
    assert ((held_out > 150) & (held_out < 250)).all()


@pytest.mark.parametrize(("n_rows", "expected"), [(60_000, 1_200), (300_000, 2_000)])
def test_long_tables_hold_out_a_small_share(n_rows: int, expected: int) -> None:
    cells = Cells(torch.zeros(n_rows, 2), None, torch.ones(n_rows, 2, dtype=torch.bool))
    held_out = hold_out(cells, 0.1, torch.Generator().manual_seed(0)).sum(0)
    assert ((held_out - expected).abs() < 0.15 * expected).all()


def test_the_bar_says_when_trees_are_grown(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar() as bar:
        bar(Progress(1, 1, 0.5, None, 1.0, 0.0))
        bar(Progress(1, 1, 0.5, None, 2.0, 1.0, stage="trees"))
    assert "Growing trees" in capsys.readouterr().out
