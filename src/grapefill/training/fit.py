"""A model is fitted: the network is trained, trees are tried, chosen and grown."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import torch

from grapefill.errors import warn
from grapefill.graph import block_size
from grapefill.nn.heads import CustomEdgeHead
from grapefill.training.choice import choose_shares
from grapefill.training.loop import Trainer
from grapefill.training.progress import Progress
from grapefill.trees import Growth

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from torch import Tensor

    from grapefill.graph import Layout
    from grapefill.training.model import GrapeModel
    from grapefill.training.progress import Callback, History
    from grapefill.trees import Guess

    FloatArray = npt.NDArray[np.float64]

# Trees are grown on no more rows and cells than that, drawn by chance.
TREE_ROWS = 50_000
TREE_CELLS = 1_000_000
# With a time limit, the share of it that the network may use when trees follow, and the share that
# may be over when their trial ends.
NETWORK_TIME = 0.6
TRIAL_TIME = 0.75


def fit_model(
    model: GrapeModel,
    numbers: FloatArray,
    *,
    generator: torch.Generator,
    layout: Layout = "auto",
    time_limit: float | None = None,
    callbacks: Sequence[Callback] = (),
) -> History:
    """Fit a model to the encoded rows of a table.

    The network is trained with some observed cells held out. Before these join the others for the
    last part of the training, its predictions of them are put aside. They are compared with those
    of a few trees that have not seen them either, which gives the weight of the network in every
    column. In the end the trees are grown again, on all cells.

    Parameters
    ----------
    model : GrapeModel
        Fitted in place: network, states, chain and trials.
    numbers : ndarray of shape (rows, features)
        Encoded rows, NaN where a cell is not observed.
    generator : torch.Generator
        Source of all randomness.
    layout : {"auto", "dense", "edges"}
        Layout of the training graphs.
    time_limit : float or None
        Seconds for all of it.
    callbacks : sequence of callable
        Each is called with a `Progress` after every step and every forest.
    """
    started = time.perf_counter()
    stack = _Stack(model, numbers, generator) if _wants_trees(model) else None
    trainer = Trainer(
        model.network,
        model.cells(numbers),
        model.preset.training,
        generator=generator,
        layout=layout,
        time_limit=time_limit if stack is None or time_limit is None else NETWORK_TIME * time_limit,
        callbacks=callbacks,
        started=started,
        on_rejoin=None if stack is None else stack.put_aside,
    )
    history = trainer.run()
    model.states = model.freeze_states(numbers)
    if stack is not None and history.stopped != "interrupted":
        try:
            stack.grow(history, callbacks, started, time_limit)
        except KeyboardInterrupt:
            history.stopped = "interrupted"
            warn("Fitting was interrupted while trees were grown; the network is used without.")
    return history


def _wants_trees(model: GrapeModel) -> bool:
    """Whether trees can be tried: without held-out cells nobody could tell if they are any good."""
    preset = model.preset
    return (
        preset.forest.rounds > 0
        and preset.training.validation > 0
        and preset.training.rejoin < 1
        and 1 < model.features.count <= preset.forest.most_columns
        and not isinstance(model.network.o_edge, CustomEdgeHead)
    )


class _Stack:
    """The trees of a model, from the trial to the chain."""

    def __init__(self, model: GrapeModel, numbers: FloatArray, generator: torch.Generator) -> None:
        self.model = model
        self.numbers = numbers
        self.seed = int(torch.randint(2**31, (), generator=generator))
        n_rows = numbers.shape[0]
        most = min(TREE_ROWS, block_size(model.features, TREE_CELLS))
        self.rows: slice | npt.NDArray[np.int64] = slice(None)
        if n_rows > most:
            order = torch.randperm(n_rows, generator=generator)[:most]
            self.rows = np.sort(order.numpy())
        self.held_out: npt.NDArray[np.bool_] | None = None
        self.network: Guess | None = None

    def put_aside(self, held_out: Tensor) -> None:
        """Keep what the network says while it has not seen the held-out cells."""
        hidden = held_out.cpu().numpy()
        shown = np.where(hidden, np.nan, self.numbers)
        states = self.model.freeze_states(shown)
        self.held_out = hidden[self.rows]
        self.network = self.model.predict_network(shown[self.rows], states=states)

    def grow(
        self,
        history: History,
        callbacks: Sequence[Callback],
        started: float,
        time_limit: float | None,
    ) -> None:
        """Try the trees on the held-out cells, then grow them on all."""
        if self.network is None or self.held_out is None:
            return
        model, config = self.model, self.model.preset.forest
        numbers = self.numbers[self.rows]
        n_categories = model.features.n_categories
        none = np.zeros(model.features.count)

        def report(done: int, planned: int) -> None:
            seconds = time.perf_counter() - started
            step, loss = len(history.step), history.loss[-1]
            validation = history.validation[-1] if history.validation else None
            left = (seconds - before) / done * (planned - done)
            for callback in callbacks:
                callback(Progress(step, step, loss, validation, seconds, left, stage="trees"))

        growth = Growth(config, n_categories, model.scaling, self.seed, report=report)
        before = time.perf_counter() - started
        growth.deadline = None if time_limit is None else started + TRIAL_TIME * time_limit
        shown = np.where(self.held_out, np.nan, numbers)
        tried, guess = growth.grow(shown, self.network, none, plan=config.trial_plan)
        shares, trials = choose_shares(
            numbers,
            self.held_out,
            self.network,
            guess,
            n_categories=n_categories,
            tried={j for forests in tried.rounds for j in forests},
        )
        before = time.perf_counter() - started
        growth.deadline = None if time_limit is None else started + time_limit
        chain, _ = growth.grow(numbers, model.predict_network(numbers), shares)
        model.trials = trials
        model.chain = chain if any(chain.rounds) else None
