"""The training loop."""

from __future__ import annotations

import copy
import math
import time
import warnings
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from grapefill.errors import GrapefillError, GrapefillWarning
from grapefill.graph import Cells, Graph, Layout, build_graph, build_pairs, choose_layout
from grapefill.training.loss import cell_loss
from grapefill.training.progress import Callback, History, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grapefill.graph import Pairs
    from grapefill.nn import GrapeNetwork, Prediction
    from grapefill.training.config import TrainingConfig

BLOCK_CELLS = 65_536
VALIDATIONS = 40
WARM_UP = 0.05


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
    ) -> None:
        self.network = network
        self.config = config
        self.generator = generator
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.started = time.perf_counter() if started is None else started
        self.history = History()
        self.held_out = self._hold_out(cells)
        self.cells = cells.hide(self.held_out)
        self.truth = cells
        observed = float(self.cells.observed.float().mean())
        self.layout = choose_layout(layout, observed * (1 - sum(config.dropout) / 2))
        self.pair_layout = choose_layout(layout, observed)
        self.steps = config.steps(cells.n_observations)
        self.optimizer = torch.optim.AdamW(
            network.parameters(),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            fused=cells.value.device.type in ("cpu", "cuda"),
        )
        self.average = copy.deepcopy(network) if config.average else None
        if self.average is not None:
            self.average.requires_grad_(False)
        self._best: tuple[float, dict[str, Tensor]] | None = None

    def run(self) -> History:
        """Train until the steps or the time are used up, held-out error stops falling, or Ctrl-C.

        The network ends with the best weights: those with the lowest held-out error when cells
        are held out, otherwise the last (or averaged) ones.
        """
        start = self.started
        every = max(1, self.steps // VALIDATIONS)
        validation: float | None = None
        validate = bool(self.held_out.any())
        worse = 0
        self.network.train()
        try:
            for step, rows in enumerate(self._batches(), start=1):
                loss = self.step(step, rows)
                if not math.isfinite(loss):
                    raise GrapefillError(
                        f"Training diverged at step {step}: the loss is {loss}. Try a lower "
                        'learning_rate, for example settings={"learning_rate": '
                        f"{self.config.learning_rate / 10:g}}}."
                    )
                seconds = time.perf_counter() - start
                last = step == self.steps
                if validate and (step % every == 0 or last):
                    validation = self._validate(step)
                    worse = 0 if self.history.best_step == step else worse + 1
                    seconds = time.perf_counter() - start
                self._report(step, loss, validation, seconds)
                if worse >= self.config.patience:
                    self.history.stopped = "early stopping"
                    break
                if self._out_of_time(seconds, step) and not last:
                    self.history.stopped = "time limit"
                    break
        except KeyboardInterrupt:
            self.history.stopped = "interrupted"
            warnings.warn(
                "Training was interrupted; the best weights so far are used.",
                GrapefillWarning,
                stacklevel=3,
            )
        self._finish()
        return self.history

    def _hold_out(self, cells: Cells) -> Tensor:
        """Choose the held-out cells, leaving every feature at least one observed cell."""
        if not self.config.validation:
            return torch.zeros_like(cells.observed)
        chance = torch.rand(cells.observed.shape, generator=self.generator)
        held_out = (chance.to(cells.observed.device) < self.config.validation) & cells.observed
        all_gone = held_out.sum(0) == cells.observed.sum(0)
        return held_out & ~all_gone

    def _batches(self) -> Iterator[Tensor | slice]:
        """Yield the rows of every step; an epoch visits every row once, in batches of like size."""
        n_rows, size = self.cells.n_observations, self.config.batch_rows
        if size is None or size >= n_rows:
            for _ in range(self.steps):
                yield slice(None)
            return
        done = 0
        while done < self.steps:
            order = torch.randperm(n_rows, generator=self.generator).to(self.cells.value.device)
            for batch in order.tensor_split(-(-n_rows // size)):
                if done == self.steps:
                    return
                yield batch
                done += 1

    def step(self, step: int, rows: Tensor | slice) -> float:
        """Take one step on some rows and return its loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate(self._done(step))
        whole = isinstance(rows, slice)
        cells = self.cells if whole else self.cells.take(rows)
        dropped = self._drop(cells)
        wanted = cells.observed if self.config.loss_on == "observed" else dropped
        graph = build_graph(cells.hide(dropped), self.network.features, self.layout)
        observations, features = self.network.encode(graph)
        pairs = build_pairs(wanted, self.pair_layout)
        prediction = self.network.predict(observations, features, pairs)
        loss = self._loss(prediction, pairs, cells, wanted)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.config.clip:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip)
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
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.average.parameters()), list(self.network.parameters()), 1 - decay
            )

    def _validate(self, step: int) -> float:
        """Return the loss on the held-out cells and remember the best weights."""
        network = self._current()
        wanted = self.held_out
        with torch.inference_mode():
            network.eval()
            states = network.feature_states(self._graphs)
            total = 0.0
            for rows in row_blocks(self.cells):
                cells, part = self.cells.take(rows), wanted[rows]
                graph = build_graph(cells, network.features, self.pair_layout)
                pairs = build_pairs(part, self.pair_layout)
                observations = network.encode_observations(graph, states)
                prediction = network.predict(observations, states.final, pairs)
                loss = self._loss(prediction, pairs, self.truth.take(rows), part)
                total += float(loss) * int(part.sum())
            self.network.train()
        validation = total / int(wanted.sum())
        self.history.validation_step.append(step)
        self.history.validation.append(validation)
        if self._best is None or validation < self._best[0]:
            self._best = (validation, _copy_weights(network))
            self.history.best_step = step
        return validation

    def _graphs(self) -> Iterator[Graph]:
        for rows in row_blocks(self.cells):
            yield build_graph(self.cells.take(rows), self.network.features, self.pair_layout)

    def _current(self) -> GrapeNetwork:
        return self.network if self.average is None else self.average

    def _finish(self) -> None:
        if self._best is not None:
            self.network.load_state_dict(self._best[1])
        elif self.average is not None:
            self.network.load_state_dict(self.average.state_dict())
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


def row_blocks(cells: Cells) -> Iterator[slice]:
    """Yield slices of rows whose blocks of cells have a bounded size."""
    rows = max(1, BLOCK_CELLS // max(1, cells.n_features))
    for start in range(0, cells.n_observations, rows):
        yield slice(start, start + rows)


def _copy_weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}
