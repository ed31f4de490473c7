"""The training loop."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from grapefill.errors import GrapefillError, warn
from grapefill.graph import (
    Cells,
    Graph,
    Layout,
    block_size,
    choose_layout,
    row_blocks,
)
from grapefill.nn.heads import CustomEdgeHead
from grapefill.training.batches import Batches, hold_out
from grapefill.training.checkpoint import Saved
from grapefill.training.course import Clock, Course
from grapefill.training.device import threads_for
from grapefill.training.loss import states_loss
from grapefill.training.parameters import starting
from grapefill.training.progress import Callback, History, Progress
from grapefill.training.team import ALONE, Team
from grapefill.training.weights import Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grapefill.nn import GrapeNetwork
    from grapefill.training.checkpoint import Checkpoint
    from grapefill.training.config import TrainingConfig
    from grapefill.training.stream import StreamedBatch, StreamedRows

BLOCK_CELLS = 65_536
VALIDATIONS = 40
# A validation looks at no more rows than that, the ones with held-out cells.
VALIDATION_ROWS = 4_096
VALIDATION_CELLS = 131_072
MOST_GIGABYTES = 8


class Trainer:
    """Trains a network on the cells of a table.

    Parameters
    ----------
    network : GrapeNetwork
        Trained in place.
    cells : Cells
        The table, its last columns the labels if there are any.
    config : TrainingConfig
        The recipe.
    generator : torch.Generator
        Source of all randomness.
    layout : {"auto", "dense", "edges"}
        Layout of the training graphs.
    time_limit : float or None
        Seconds after which training stops.
    callbacks : sequence of callable
        Each is called with a `Progress` after every step.
    started : float or None
        ``time.perf_counter()`` from when the time limit counts; None for now.
    n_labels : int
        How many of the columns are labels.
    label_weights : Tensor of shape (rows,) or None
        How much the label of a row counts.
    on_rejoin : callable or None
        Called with the mask of the held-out cells just before they join the others, while the
        network has its averaged weights and is in evaluation mode.
    ends_at_rejoin : bool
        Whether training ends when held-out cells would join the others.
    checkpoint : Checkpoint or None
        Where the state of training is kept; if it holds one of this training, it goes on from
        there.
    stream : StreamedRows or None
        Where the rows to train on come from; ``cells`` are then a sample of them, on which the
        error on held-out cells is measured.
    team : Team
        The processes that train together; with more than one, ``stream`` gives each other rows.
    """

    batches_kind = Batches

    def __init__(
        self,
        network: GrapeNetwork,
        cells: Cells,
        config: TrainingConfig,
        *,
        generator: torch.Generator,
        layout: Layout = "auto",
        time_limit: float | None = None,
        callbacks: Sequence[Callback] = (),
        started: float | None = None,
        n_labels: int = 0,
        label_weights: Tensor | None = None,
        on_rejoin: Callable[[Tensor], None] | None = None,
        ends_at_rejoin: bool = False,
        checkpoint: Checkpoint | None = None,
        stream: StreamedRows | None = None,
        team: Team = ALONE,
    ) -> None:
        self.network = network
        self.team = team
        self.config = config
        self.generator = generator
        self.callbacks = callbacks
        self.clock = Clock(time_limit, time.perf_counter() if started is None else started, team)
        self.n_labels = n_labels
        self.label_weights = label_weights
        self.on_rejoin = on_rejoin
        self.ends_at_rejoin = ends_at_rejoin
        self.history = History()
        self.held_out = self._hold_out(cells)
        self.cells = cells.hide(self.held_out)
        self.truth = cells
        observed = self._density(self.cells)
        self.batches = self.batches_kind(
            self.cells,
            config,
            generator,
            observed=observed,
            n_labels=n_labels,
            labels_are_edges=network.o_node is None,
            stream=stream,
        )
        seen = observed * self.batches.column_share
        kept = seen * (1 - sum(config.dropout) / 2)
        self.layout = choose_layout(layout, kept, purpose="training")
        self.step_pair_layout = choose_layout(layout, seen, purpose="filling")
        self.pair_layout = choose_layout(layout, observed, purpose="filling")
        self.steps = self.planned_steps = config.steps(self.batches.n_rows)
        self._warn_of_memory(observed)
        if not any(parameter.requires_grad for parameter in network.parameters()):
            network.requires_grad_(True)
        self.weights = Weights(network, config.average)
        self.optimizer = torch.optim.AdamW(
            [self.weights.flat.vector],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            fused=cells.value.device.type in ("cpu", "cuda"),
        )
        self._course = Course(holding=bool(self.held_out.any()))
        self._at_rejoin: Tensor | None = None
        self.checkpoint = checkpoint
        _keep_freed_memory()

    def run(self) -> History:
        """Train until the steps or the time are used up, held-out error stops falling, or Ctrl-C.

        The network ends with the weights of the lowest held-out error when cells are held out,
        otherwise with the last (or averaged) ones.
        """
        self.network.train()
        try:
            with self._own_randomness():
                saved = None if self.checkpoint is None else self.checkpoint.read()
                if saved is not None:
                    self._restore(saved)
                if not self._course.done:
                    with threads_for(self._cells_of_a_step()):
                        self._loop()
                    self._course.done = True
                    if self.checkpoint is not None:
                        self.checkpoint.write(self._saved())
        except KeyboardInterrupt:
            if not self.history.step or self.ends_at_rejoin:
                raise
            self.history.stopped = "interrupted"
            warn("Training was interrupted; the weights so far are used.")
        self._finish()
        return self.history

    def _loop(self) -> None:
        course = self._course
        every = max(1, self.planned_steps // VALIDATIONS)
        if course.step >= self.steps:
            return
        batches = self.batches(self.held_out, after=course.step)
        for step, rows in enumerate(batches, start=course.step + 1):
            loss = self.step(step, rows)
            if not math.isfinite(loss):
                raise GrapefillError(
                    f"Training diverged at step {step}: the loss is {loss}. Try a lower "
                    'learning_rate, for example settings={"learning_rate": '
                    f"{self.config.learning_rate / 10:g}}}."
                )
            course.step = step
            if course.holding and (step % every == 0 or step == self.steps):
                course.validated(self._validate(step))
            seconds = self.clock.seconds
            self._report(step, loss, course.validation, seconds)
            if course.holding and course.worse >= self.config.patience:
                self.history.stopped = "early stopping"
                if self.config.rejoin == 1:
                    return
                self.steps = max(step + 1, round(step / self.config.rejoin))
            rejoin = self.config.rejoin
            if course.holding and rejoin < 1 and self.clock.done(step, self.steps) >= rejoin:
                self._rejoin()
                if self.ends_at_rejoin:
                    return
            if self.checkpoint is not None and self.team.rank == 0 and self.checkpoint.due:
                self.checkpoint.write(self._saved())
            if step >= self.steps:
                return
            if self.clock.out_after(step, seconds):
                self.history.stopped = "time limit"
                return

    def _rejoin(self) -> None:
        """Let the held-out cells join the others; their truth is no longer a test."""
        self._put_aside(self.weights.smooth.clone())
        self.cells = self.truth
        self.weights.best = None
        self._course.holding = False
        self.history.best_step = 0

    def _put_aside(self, weights: Tensor) -> None:
        """Show the network as it was before the held-out cells joined."""
        self._at_rejoin = weights
        if self.on_rejoin is None:
            return
        with self.weights.put_in(weights):
            self.network.eval()
            self.on_rejoin(self.held_out)
            self.network.train()

    def _saved(self) -> Saved:
        """Return the state of training."""
        state = self.optimizer.state[self.weights.flat.vector]
        tensors = {
            **self.weights.tensors(),
            "generator": self.generator.get_state(),
            "global_generator": torch.get_rng_state(),
            **{f"optimizer.{name}": tensor for name, tensor in state.items()},
            **{f"coming.{at}": rows for at, rows in enumerate(self.batches.coming)},
        }
        if self._at_rejoin is not None:
            tensors["at_rejoin"] = self._at_rejoin
        values: dict[str, Any] = {
            "course": asdict(self._course),
            "history": self.history.to_dict(),
            "steps": self.steps,
            "seconds": self.clock.seconds,
            "best": self.weights.best and self.weights.best[0],
        }
        return Saved(tensors, values)

    def _restore(self, saved: Saved) -> None:
        """Go back to a state of training."""
        tensors, values = saved.tensors, saved.values
        device = self.cells.value.device
        self.weights.restore(tensors, values["best"])
        self.optimizer.state[self.weights.flat.vector] = {
            name: tensor.to(device) for name, tensor in starting(tensors, "optimizer.").items()
        }
        coming = starting(tensors, "coming.")
        self.batches.coming = [coming[str(at)].to(device) for at in range(len(coming))]
        self._course = Course(**values["course"])
        self.history = History.from_dict(values["history"])
        self.steps = values["steps"]
        self.clock.started = time.perf_counter() - values["seconds"]
        if "at_rejoin" in tensors:
            self._put_aside(tensors["at_rejoin"].to(device))
            self.cells = self.truth
        self.generator.set_state(tensors["generator"])
        if isinstance(self.network.o_edge, CustomEdgeHead):
            torch.set_rng_state(tensors["global_generator"])

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        """Keep a user's module, which may hold dropout, from the global generator."""
        o_edge, o_node = self.network.o_edge, self.network.o_node
        if not isinstance(o_edge, CustomEdgeHead) and (o_node is None or not o_node.custom):
            yield
            return
        seed = int(torch.randint(2**31, (), generator=self.generator))
        device = self.cells.value.device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            yield

    def _warn_of_memory(self, observed: float) -> None:
        """Say so before a step asks for more memory than most machines have."""
        rows, network = self.batches.rows, self.network.config
        density = observed * self.batches.column_share if self.layout == "edges" else 1
        edges = rows * self.cells.n_features * density
        # Each direction keeps a message and an edge state per layer, and their gradients.
        numbers = edges * 4 * (network.width + network.edge_width) * network.layers
        gigabytes = 4 * numbers / 1e9
        if gigabytes > MOST_GIGABYTES:
            warn(
                f"A training step on all {rows:,} rows takes about {gigabytes:.0f} GB of memory. "
                'Set settings={"batch_rows": 4096} to train on batches.'
            )

    def _cells_of_a_step(self) -> int:
        columns = self.network.features.count * self.batches.column_share
        return int(self.batches.rows * columns)

    def _hold_out(self, cells: Cells) -> Tensor:
        """Choose the held-out cells; with O_node they are labels."""
        return hold_out(
            cells,
            self.config.validation,
            self.generator,
            n_labels=self.n_labels,
            only_labels=self.network.o_node is not None,
        )

    def _density(self, cells: Cells) -> float:
        """Return the share of the cells that are observed."""
        return float(cells.observed.float().mean())

    def _wanted(self, cells: Cells, dropped: Tensor) -> Tensor:
        """Return the cells that the loss is taken on."""
        return cells.observed if self.config.loss_on == "observed" else dropped

    def step(self, step: int, rows: Tensor | slice | StreamedBatch) -> float:
        """Take one step on some rows and return its loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.rate_after(self.clock.done(step, self.steps))
        holding = self._course.holding
        cells, dropped, rows = self.batches.look_at(self.cells, rows, holding=holding)
        wanted = self._wanted(cells, dropped)
        graph = self.team.share(self._graph(cells.hide(dropped), self.layout))
        states = self.network.encode(graph)
        loss = self._loss(states, cells, wanted, rows=rows, layout=self.step_pair_layout)
        if self.team.size > 1:
            # Of a mean over the cells of all, this is the part of our cells.
            count = wanted.sum().double()
            loss = loss * (count / self.team.gather(count.clone(), "sum").clamp(min=1)).to(loss)
        flat = self.weights.flat
        flat.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        total = loss.detach()
        if self.team.size > 1:
            assert flat.vector.grad is not None
            self.team.gather(flat.vector.grad, "sum")
            total = self.team.gather(total.clone(), "sum")
        if self.config.clip:
            nn.utils.clip_grad_norm_(flat.vector, self.config.clip)
        self.optimizer.step()
        self.weights.update_average(step)
        return float(total)

    def _graph(self, cells: Cells, layout: Literal["dense", "edges"]) -> Graph:
        """Make the graph of some cells, without labels that are not nodes."""
        return self.network.graph(cells.columns(slice(self.network.features.count)), layout)

    def _loss(
        self,
        states: tuple[Tensor, Tensor],
        cells: Cells,
        wanted: Tensor,
        *,
        rows: Tensor | slice,
        layout: Literal["dense", "edges"],
    ) -> Tensor:
        """Return the loss of what the states of observations and features say about some cells."""
        return states_loss(
            self.network,
            states,
            cells,
            wanted,
            layout=layout,
            kind=self.config.loss,
            weight=self._weight(cells, rows),
        )

    def _weight(self, cells: Cells, rows: Tensor | slice) -> Tensor | None:
        """Return how much each cell counts, or None when all count the same."""
        if self.label_weights is None:
            return None
        weight = torch.ones_like(cells.value)
        weight[:, -self.n_labels :] = self.label_weights[rows][:, None]
        return weight

    def _validate(self, step: int) -> float:
        """Return the loss on the held-out cells and remember the best weights."""
        network = self.network
        most = min(VALIDATION_ROWS, block_size(network.features, VALIDATION_CELLS, least=64))
        rows = self.held_out.any(1).nonzero()[:most, 0]
        shown, truth, wanted = self.cells.take(rows), self.truth.take(rows), self.held_out[rows]
        blocks = list(row_blocks(rows.shape[0], block_size(network.features, BLOCK_CELLS)))

        def graphs() -> Iterator[Graph]:
            for block in blocks:
                yield self._graph(shown.take(block), self.pair_layout)

        total = 0.0
        with self.weights.put_in(self.weights.average):
            network.eval()
            with torch.inference_mode():
                states = network.feature_states(graphs)
                for block, graph in zip(blocks, graphs(), strict=True):
                    observations = network.encode_observations(graph, states)
                    loss = self._loss(
                        (observations, states.final),
                        truth.take(block),
                        wanted[block],
                        rows=rows[block],
                        layout=self.pair_layout,
                    )
                    total += float(loss) * int(wanted[block].sum())
            network.train()
            validation = self.team.agree(total / int(wanted.sum()))
            self._remember_best(step, validation)
        return validation

    def _remember_best(self, step: int, validation: float) -> None:
        """Take note of a validation, and of the weights in the network if they are the best."""
        if self.weights.remember(validation):
            self.history.best_step = step
        self.history.validation_step.append(step)
        self.history.validation.append(validation)

    def _finish(self) -> None:
        self.weights.settle()
        if not self.history.best_step and self.history.step:
            self.history.best_step = self.history.step[-1]
        self.network.eval()

    def _report(self, step: int, loss: float, validation: float | None, seconds: float) -> None:
        self.history.step.append(step)
        self.history.loss.append(loss)
        self.history.seconds.append(seconds)
        left = self.clock.left(step, self.steps, seconds)
        progress = Progress(step, self.steps, loss, validation, seconds, left)
        for callback in self.callbacks:
            callback(progress)


def _keep_freed_memory() -> None:
    """Let the C library keep the memory of a step for the next one.

    glibc hands freed memory back to the system and faults it in again, page by page, until it has
    seen a larger block freed; up to 32 MB it then keeps twice as much. A step is a tenth faster.
    """
    torch.empty(31 * 2**20, dtype=torch.uint8)
