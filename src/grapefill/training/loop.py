"""The training loop."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from grapefill.errors import GrapefillError, warn
from grapefill.graph import (
    Cells,
    Graph,
    Layout,
    block_size,
    build_pairs,
    choose_layout,
    row_blocks,
)
from grapefill.nn.heads import CustomEdgeHead
from grapefill.training.flat import FlatParameters
from grapefill.training.loss import cell_loss
from grapefill.training.progress import Callback, History, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grapefill.graph import Pairs
    from grapefill.nn import GrapeNetwork, Prediction
    from grapefill.training.config import TrainingConfig

BLOCK_CELLS = 65_536
VALIDATIONS = 40
# Enough to tell one way of filling a column from another.
MOST_HELD_OUT = 200
# A validation looks at no more rows than that, the ones with held-out cells.
VALIDATION_ROWS = 4_096
# Share of the held-out error that counts as an improvement for early stopping.
LEAST_GAIN = 1e-3
WARM_UP = 0.05
MOST_GIGABYTES = 8


class Trainer:
    """Trains a network on the cells of a table.

    Parameters
    ----------
    network : GrapeNetwork
        Trained in place.
    cells : Cells
        The table.
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
    on_rejoin : callable or None
        Called with the mask of the held-out cells just before they join the others, while the
        network has its averaged weights and is in evaluation mode.
    """

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
        on_rejoin: Callable[[Tensor], None] | None = None,
    ) -> None:
        self.network = network
        self.config = config
        self.generator = generator
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.started = time.perf_counter() if started is None else started
        self.on_rejoin = on_rejoin
        self.history = History()
        self.held_out = self._hold_out(cells)
        self.cells = cells.hide(self.held_out)
        self.truth = cells
        observed = float(self.cells.observed.float().mean())
        kept = observed * (1 - sum(config.dropout) / 2)
        self.layout = choose_layout(layout, kept, purpose="training")
        self.pair_layout = choose_layout(layout, observed, purpose="filling")
        self.steps = config.steps(cells.n_observations)
        self._warn_of_memory(observed)
        if not any(parameter.requires_grad for parameter in network.parameters()):
            network.requires_grad_(True)
        self.parameters = FlatParameters(network)
        self.optimizer = torch.optim.AdamW(
            [self.parameters.vector],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            fused=cells.value.device.type in ("cpu", "cuda"),
        )
        self.average = self.parameters.vector.detach().clone() if config.average else None
        self._best: tuple[float, dict[str, Tensor]] | None = None
        _keep_freed_memory()

    def run(self) -> History:
        """Train until the steps or the time are used up, held-out error stops falling, or Ctrl-C.

        The network ends with the weights of the lowest held-out error when cells are held out,
        otherwise with the last (or averaged) ones.
        """
        self.network.train()
        try:
            with self._own_randomness():
                self._loop()
        except KeyboardInterrupt:
            if not self.history.step:
                raise
            self.history.stopped = "interrupted"
            warn("Training was interrupted; the weights so far are used.")
        self._finish()
        return self.history

    def _loop(self) -> None:
        every = max(1, self.steps // VALIDATIONS)
        validation: float | None = None
        holding = bool(self.held_out.any())
        goal, worse = math.inf, 0
        for step, rows in enumerate(self._batches(), start=1):
            loss = self.step(step, rows)
            if not math.isfinite(loss):
                raise GrapefillError(
                    f"Training diverged at step {step}: the loss is {loss}. Try a lower "
                    'learning_rate, for example settings={"learning_rate": '
                    f"{self.config.learning_rate / 10:g}}}."
                )
            if holding and (step % every == 0 or step == self.steps):
                validation = self._validate(step)
                worse = 0 if validation < goal else worse + 1
                goal = min(goal, validation * (1 - LEAST_GAIN))
            seconds = time.perf_counter() - self.started
            self._report(step, loss, validation, seconds)
            if holding and worse >= self.config.patience:
                self.history.stopped = "early stopping"
                if self.config.rejoin == 1:
                    return
                self.steps = max(step + 1, round(step / self.config.rejoin))
            if holding and self.config.rejoin < 1 and self._done(step) >= self.config.rejoin:
                self._rejoin()
                holding = False
            if step >= self.steps:
                return
            if self._out_of_time(seconds, step):
                self.history.stopped = "time limit"
                return

    def _rejoin(self) -> None:
        """Let the held-out cells join the others; their truth is no longer a test."""
        if self.on_rejoin is not None:
            with self._averaged():
                self.network.eval()
                self.on_rejoin(self.held_out)
                self.network.train()
        self.cells = self.truth
        self._best = None
        self.history.best_step = 0

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        """Keep a user's module, which may hold dropout, from the global generator."""
        if not isinstance(self.network.o_edge, CustomEdgeHead):
            yield
            return
        seed = int(torch.randint(2**31, (), generator=self.generator))
        device = self.cells.value.device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            yield

    def _warn_of_memory(self, observed: float) -> None:
        """Say so before a step asks for more memory than most machines have."""
        rows = min(self.config.batch_rows or self.cells.n_observations, self.cells.n_observations)
        network = self.network.config
        edges = rows * self.cells.n_features * (observed if self.layout == "edges" else 1)
        # Each direction keeps a message and an edge state per layer, and their gradients.
        numbers = edges * 4 * (network.width + network.edge_width) * network.layers
        gigabytes = 4 * numbers / 1e9
        if gigabytes > MOST_GIGABYTES:
            warn(
                f"A training step on all {rows:,} rows takes about {gigabytes:.0f} GB of memory. "
                'Set settings={"batch_rows": 4096} to train on batches.'
            )

    def _hold_out(self, cells: Cells) -> Tensor:
        """Choose the held-out cells, leaving every feature at least one observed cell."""
        if not self.config.validation:
            return torch.zeros_like(cells.observed)
        chance = torch.rand(cells.observed.shape, generator=self.generator)
        enough = MOST_HELD_OUT / cells.observed.sum(0).clamp(min=1)
        rate = enough.clamp(max=self.config.validation)
        held_out = (chance.to(cells.observed.device) < rate) & cells.observed
        all_gone = held_out.sum(0) == cells.observed.sum(0)
        return held_out & ~all_gone

    def _batches(self) -> Iterator[Tensor | slice]:
        """Yield the rows of every step; an epoch visits every row once, in batches of like size."""
        n_rows = self.cells.n_observations
        size = min(n_rows, self.config.batch_rows or n_rows)
        while True:
            if size == n_rows:
                yield slice(None)
                continue
            order = torch.randperm(n_rows, generator=self.generator).to(self.cells.value.device)
            yield from order.tensor_split(-(-n_rows // size))

    def step(self, step: int, rows: Tensor | slice) -> float:
        """Take one step on some rows and return its loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate(self._done(step))
        whole = isinstance(rows, slice)
        cells = self.cells if whole else self.cells.take(rows)
        dropped = self._drop(cells)
        wanted = cells.observed if self.config.loss_on == "observed" else dropped
        graph = self.network.graph(cells.hide(dropped), self.layout)
        observations, features = self.network.encode(graph)
        pairs = build_pairs(wanted, self.pair_layout)
        prediction = self.network.predict(observations, features, pairs)
        loss = self._loss(prediction, pairs, cells, wanted)
        self.parameters.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.config.clip:
            nn.utils.clip_grad_norm_(self.parameters.vector, self.config.clip)
        self.optimizer.step()
        self._update_average(step)
        return float(loss.detach())

    def _loss(self, prediction: Prediction, pairs: Pairs, cells: Cells, wanted: Tensor) -> Tensor:
        return cell_loss(
            prediction,
            pairs,
            cells,
            wanted=wanted,
            features=self.network.features,
            kind=self.config.loss,
        )

    def _drop(self, cells: Cells) -> Tensor:
        """Return the edges that dropout removes in this step."""
        low, high = self.config.dropout
        chance = torch.rand(cells.observed.shape, generator=self.generator)
        rate = torch.full((cells.n_observations, 1), high)
        if low < high:
            rate.uniform_(low, high, generator=self.generator)
        return (chance < rate).to(cells.observed.device) & cells.observed

    def _done(self, step: int) -> float:
        """Return which share of training is over, in steps or in time, whichever ends first."""
        done = step / self.steps
        if self.time_limit is None:
            return done
        return min(1.0, max(done, (time.perf_counter() - self.started) / self.time_limit))

    def _learning_rate(self, done: float) -> float:
        peak = self.config.learning_rate
        if self.config.schedule == "constant":
            return peak
        if done <= WARM_UP:
            return peak * done / WARM_UP
        return peak * 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))

    def _update_average(self, step: int) -> None:
        if self.average is None:
            return
        # A short memory at first, or the random start would linger in the average.
        decay = min(self.config.average, step / (step + 10))
        self.average.lerp_(self.parameters.vector.detach(), 1 - decay)

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Put the averaged weights into the network, and the trained ones back in the end."""
        if self.average is None:
            yield
            return
        vector = self.parameters.vector.data
        trained = vector.clone()
        vector.copy_(self.average)
        try:
            yield
        finally:
            vector.copy_(trained)

    def _validate(self, step: int) -> float:
        """Return the loss on the held-out cells and remember the best weights."""
        network = self.network
        rows = self.held_out.any(1).nonzero()[:VALIDATION_ROWS, 0]
        shown, truth, wanted = self.cells.take(rows), self.truth.take(rows), self.held_out[rows]
        blocks = list(row_blocks(rows.shape[0], block_size(network.features, BLOCK_CELLS)))

        def graphs() -> Iterator[Graph]:
            for block in blocks:
                yield network.graph(shown.take(block), self.pair_layout)

        total = 0.0
        with self._averaged():
            network.eval()
            with torch.inference_mode():
                states = network.feature_states(graphs)
                for block, graph in zip(blocks, graphs(), strict=True):
                    pairs = build_pairs(wanted[block], self.pair_layout)
                    observations = network.encode_observations(graph, states)
                    prediction = network.predict(observations, states.final, pairs)
                    loss = self._loss(prediction, pairs, truth.take(block), wanted[block])
                    total += float(loss) * int(wanted[block].sum())
            network.train()
            validation = total / int(wanted.sum())
            if self._best is None or validation < self._best[0]:
                self._best = (validation, _copy_weights(network))
                self.history.best_step = step
        self.history.validation_step.append(step)
        self.history.validation.append(validation)
        return validation

    def _finish(self) -> None:
        if self._best is None and self.average is not None:
            self.parameters.vector.data.copy_(self.average)
        self.parameters.release()
        if self._best is not None:
            self.network.load_state_dict(self._best[1])
        if not self.history.best_step and self.history.step:
            self.history.best_step = self.history.step[-1]
        self.network.eval()

    def _report(self, step: int, loss: float, validation: float | None, seconds: float) -> None:
        self.history.step.append(step)
        self.history.loss.append(loss)
        self.history.seconds.append(seconds)
        left = seconds / step * (self.steps - step)
        if self.time_limit is not None:
            left = min(left, max(0.0, self.time_limit - seconds))
        progress = Progress(step, self.steps, loss, validation, seconds, left)
        for callback in self.callbacks:
            callback(progress)

    def _out_of_time(self, seconds: float, step: int) -> bool:
        """Whether the next step would, on average, end after the time limit."""
        return self.time_limit is not None and seconds * (step + 1) / step > self.time_limit


def _keep_freed_memory() -> None:
    """Let the C library keep the memory of a step for the next one.

    glibc hands freed memory back to the system and faults it in again, page by page, until it has
    seen a larger block freed; up to 32 MB it then keeps twice as much. A step is a tenth faster.
    """
    torch.empty(31 * 2**20, dtype=torch.uint8)


def _copy_weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}
