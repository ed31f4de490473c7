"""Labels in the training loop: when they are hidden, what counts, what a step looks at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from grapefill.graph import Cells, Features, build_pairs
from grapefill.nn import GrapeNetwork, NetworkConfig, Prediction
from grapefill.training import Trainer, TrainingConfig
from grapefill.training.loss import cell_loss

SMALL = NetworkConfig(layers=1, width=8, edge_width=8, head_width=8)
CATEGORIES = (0, 3, 0)


def make_trainer(
    n_rows: int = 60,
    *,
    categories: tuple[int, ...] = CATEGORIES,
    labels: tuple[int, ...] = (0,),
    how: str = "feature",
    known: float = 1.0,
    label_weights: Any = None,
    **settings: Any,
) -> Trainer:
    """Return a trainer of a table whose last columns are labels, known in some rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n_rows)
    columns = [np.digitize(x, np.linspace(-1, 1, k - 1)) if k else x for k in categories + labels]
    numbers = np.column_stack(columns).astype(np.float64)
    numbers[:, : len(categories)][rng.random((n_rows, len(categories))) < 0.2] = np.nan
    numbers[rng.random(n_rows) >= known, len(categories) :] = np.nan
    whole = Features(categories + labels)
    nodes = whole if how == "feature" else Features(categories)
    generator = torch.Generator().manual_seed(1)
    network = GrapeNetwork(
        nodes, SMALL, generator, labels=None if how == "feature" else Features(labels)
    )
    return Trainer(
        network,
        Cells.from_numbers(numbers, whole),
        TrainingConfig(**({"epochs": 20, "learning_rate": 0.01} | settings)),
        generator=generator,
        n_labels=len(labels),
        label_weights=label_weights,
    )


def recorded(thing: Any, name: str) -> list[Any]:
    """Return a list that will hold what a method of a thing is given."""
    calls: list[Any] = []
    method = getattr(thing, name)

    def record(*args: Any, **options: Any) -> Any:
        calls.append((*args, options))
        return method(*args, **options)

    setattr(thing, name, record)
    return calls


class TestDropout:
    @pytest.mark.parametrize("rate", [0.1, 0.9, 1.0])
    def test_labels_are_hidden_at_their_own_rate(self, rate: float) -> None:
        trainer = make_trainer(4000, label_dropout=rate, dropout=(0.3, 0.3), labels=(0, 2))
        dropped = trainer.batches.drop(trainer.cells)
        seen = trainer.cells.observed
        shares = dropped.sum(0) / seen.sum(0)
        np.testing.assert_allclose(shares[:3], 0.3, atol=0.03)
        np.testing.assert_allclose(shares[3:], rate, atol=0.03)
        assert not (dropped & ~seen).any()

    def test_whatever_the_rate_of_the_row(self) -> None:
        """A row that loses many cells need not lose its label."""
        trainer = make_trainer(4000, categories=(0,) * 10, label_dropout=0.5, dropout=(0.0, 0.9))
        dropped = trainer.batches.drop(trainer.cells)
        lost = dropped[:, :10].sum(1) / trainer.cells.observed[:, :10].sum(1).clamp(min=1)
        many, few = dropped[lost > 0.6, 10], dropped[lost < 0.3, 10]
        assert abs(float(many.float().mean()) - float(few.float().mean())) < 0.08

    @pytest.mark.parametrize("loss_on", ["observed", "dropped"])
    def test_without_labels_nothing_is_special(self, loss_on: str) -> None:
        trainer = make_trainer(labels=(), loss_on=loss_on)
        dropped = trainer.batches.drop(trainer.cells)
        assert dropped.shape == (60, 3)
        assert np.isfinite(trainer.run().loss).all()


@pytest.mark.parametrize("loss_on", ["observed", "dropped"])
class TestNode:
    """With O_node labels are no edges, and nothing else counts."""

    def test_every_known_label_counts_in_every_step(self, loss_on: str) -> None:
        trainer = make_trainer(how="node", known=0.7, label_dropout=0.1, loss_on=loss_on)
        calls = recorded(trainer, "_loss")
        trainer.step(1, slice(None))
        wanted = calls[0][2]
        assert wanted[:, 3].equal(trainer.truth.observed[:, 3])
        assert 0 < wanted[:, 3].sum() < 60

    def test_the_graph_has_no_labels(self, loss_on: str) -> None:
        trainer = make_trainer(how="node", loss_on=loss_on)
        graph = trainer._graph(trainer.cells, "edges")
        assert graph.value.shape == (int(trainer.cells.observed[:, :3].sum()),)

    @pytest.mark.parametrize("labels", [(0,), (4,), (0, 0)])
    def test_the_values_of_cells_do_not_enter_the_loss(
        self, loss_on: str, labels: tuple[int, ...]
    ) -> None:
        """What features are said to hold is no truth to be compared with."""
        trainer = make_trainer(how="node", labels=labels, loss_on=loss_on)
        graph = trainer._graph(trainer.cells, "dense")
        states = trainer.network.encode(graph)
        everything = trainer.cells.observed
        cells = trainer.cells
        options: dict[str, Any] = {"rows": slice(None), "layout": "dense"}
        loss = trainer._loss(states, cells, everything, **options)
        value = cells.value.clone()
        value[:, :3] += 5
        other = Cells(value, cells.code, cells.observed)
        assert trainer._loss(states, other, everything, **options) == loss
        only_labels = everything.clone()
        only_labels[:, :3] = False
        assert trainer._loss(states, cells, only_labels, **options) == loss
        value = cells.value.clone()
        value[:, 3:] += 5
        moved = trainer._loss(
            states, Cells(value, cells.code, cells.observed), everything, **options
        )
        assert (moved != loss) == (labels[0] == 0)

    def test_no_label_no_gradient(self, loss_on: str) -> None:
        trainer = make_trainer(how="node", known=0.0, loss_on=loss_on)
        before = trainer.weights.flat.vector.detach().clone()
        assert trainer.step(1, slice(None)) == 0
        assert torch.equal(trainer.weights.flat.vector.detach(), before)

    def test_the_gradient_reaches_all_of_the_network(self, loss_on: str) -> None:
        trainer = make_trainer(how="node", labels=(4,), loss_on=loss_on)
        trainer.step(1, slice(None))
        for name, parameter in trainer.network.named_parameters():
            assert parameter.grad.abs().sum() > 0, name

    def test_loss_falls(self, loss_on: str) -> None:
        for labels in ((0,), (4,), (0, 0)):
            history = make_trainer(how="node", labels=labels, loss_on=loss_on, epochs=120).run()
            assert np.mean(history.loss[-10:]) < 0.7 * np.mean(history.loss[:10])


class TestHeldOut:
    def test_labels_are_held_out_like_cells(self) -> None:
        trainer = make_trainer(1000, validation=0.1, known=0.5)
        share = trainer.held_out.sum(0) / trainer.truth.observed.sum(0)
        assert ((share > 0.05) & (share < 0.16)).all()
        assert not (trainer.held_out & trainer.cells.observed).any()

    def test_with_o_node_only_labels(self) -> None:
        trainer = make_trainer(1000, how="node", validation=0.1, known=0.5, labels=(0, 2))
        assert not trainer.held_out[:, :3].any()
        share = trainer.held_out[:, 3:].sum(0) / trainer.truth.observed[:, 3:].sum(0)
        assert ((share > 0.05) & (share < 0.16)).all()
        # A held-out label is not learned from.
        calls = recorded(trainer, "_loss")
        trainer.step(1, slice(None))
        assert not (calls[0][2] & trainer.held_out).any()

    def test_a_known_label_is_always_left(self) -> None:
        trainer = make_trainer(3, how="node", validation=0.9)
        assert trainer.cells.observed[:, 3].any()

    @pytest.mark.parametrize("how", ["feature", "node"])
    def test_validation_is_the_loss_on_them(self, how: str) -> None:
        trainer = make_trainer(200, how=how, validation=0.3, labels=(4,))
        validation = trainer._validate(1)
        network, held_out = trainer.network, trainer.held_out
        network.eval()
        with torch.inference_mode():
            rows = held_out.any(1)
            graph = trainer._graph(trainer.cells.take(rows), "dense")
            states = network.encode(graph)
            expected = trainer._loss(
                states, trainer.truth.take(rows), held_out[rows], rows=slice(None), layout="dense"
            )
        assert validation == pytest.approx(float(expected), rel=1e-4)


class TestStepCells:
    def test_fewer_rows_at_first(self) -> None:
        trainer = make_trainer(2000, step_cells=1_500)
        assert trainer.batches.column_share == 1
        cells = trainer.batches.rows * float(trainer.cells.observed.float().mean()) * 4
        assert cells == pytest.approx(1_500, rel=0.01)
        assert make_trainer(2000, step_cells=10**6).batches.rows == 2000
        assert make_trainer(2000, step_cells=10**6, batch_rows=300).batches.rows == 300

    @pytest.mark.parametrize("how", ["feature", "node"])
    def test_then_whole_columns_are_left_out_but_never_labels(self, how: str) -> None:
        trainer = make_trainer(300, categories=(0,) * 40, labels=(0, 3), how=how, step_cells=2_000)
        assert trainer.batches.rows == 256
        assert 0.1 < trainer.batches.column_share < 0.4
        calls = recorded(trainer, "_loss")
        sizes, seen = [], set()
        for step in range(1, 31):
            trainer.step(step, torch.arange(256))
            cells = calls[-1][1]
            used = cells.observed.any(0)
            # A column is there as it is, or not at all.
            assert cells.observed[:, used].equal(trainer.cells.observed[:256][:, used])
            assert used[-2:].all()
            sizes.append(int(cells.observed[:, :-2].sum()))
            seen |= set(used.nonzero()[:, 0].tolist())
        assert 0.7 * 2_000 < np.mean(sizes) < 1.1 * 2_000
        assert len(seen) > 35
        assert all(loss > 0 for loss in trainer.run().loss)

    def test_at_least_two_columns(self) -> None:
        trainer = make_trainer(300, categories=(0,) * 40, labels=(), step_cells=1)
        left_out = trainer.batches.columns_left_out()
        assert int((~left_out).sum()) == 2

    def test_a_table_in_one_step_is_left_whole(self) -> None:
        trainer = make_trainer(step_cells=10**6)
        calls = recorded(trainer.batches, "drop")
        trainer.step(1, slice(None))
        assert calls[0][0].observed.equal(trainer.cells.observed)


class TestWeights:
    @pytest.mark.parametrize("layout", ["dense", "edges"])
    def test_the_loss_is_a_weighted_mean(self, layout: Any) -> None:
        features = Features((0, 2))
        cells = Cells.from_numbers(np.array([[1.0, 0], [4.0, 1], [np.nan, 0]]), features)
        wanted = cells.observed
        pairs = build_pairs(wanted, layout)
        logits = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 0.0]])
        value = torch.tensor([[0.0, 9.0], [0.0, 9.0], [9.0, 9.0]])
        prediction = Prediction(value if layout == "dense" else pairs.pick(value), {1: logits})
        weight = torch.tensor([[1.0, 3.0], [0.5, 0.0], [100.0, 2.0]])
        options: dict[str, Any] = {"wanted": wanted, "features": features}
        loss = cell_loss(prediction, pairs, cells, kind="absolute", weight=weight, **options)
        surprise = np.log1p(np.exp(-2.0)), np.log1p(np.exp(2.0)), np.log(2)
        total = 1 * 1.0 + 0.5 * 4.0 + 3 * surprise[0] + 0 * surprise[1] + 2 * surprise[2]
        assert float(loss) == pytest.approx(total / (1 + 0.5 + 3 + 0 + 2), rel=1e-6)
        same = [
            cell_loss(prediction, pairs, cells, kind="squared", weight=w, **options)
            for w in (None, torch.ones_like(weight), torch.full_like(weight, 7.0))
        ]
        torch.testing.assert_close(torch.stack(same), same[0].expand(3))

    @pytest.mark.parametrize("how", ["feature", "node"])
    def test_they_are_those_of_the_rows_of_a_batch(self, how: str) -> None:
        weights = torch.arange(1.0, 61.0)
        trainer = make_trainer(how=how, label_weights=weights, batch_rows=20)
        rows = torch.tensor([7, 3, 50])
        weight = trainer._weight(trainer.cells.take(rows), rows)
        assert weight is not None
        assert weight[:, 3].tolist() == [8, 4, 51]
        assert (weight[:, :3] == 1).all()
        assert np.isfinite(trainer.run().loss).all()
