"""A model is fitted: the network is trained, other parts are tried, chosen and fitted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import torch

from grapefill.errors import warn
from grapefill.nn.heads import CustomEdgeHead
from grapefill.training.held_out import HeldOut
from grapefill.training.loop import Trainer
from grapefill.training.model import GrapeModel
from grapefill.training.stack import Blend, Stack, wants_parts
from grapefill.training.team import ALONE, Team
from grapefill.trees import Guess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.graph import Layout
    from grapefill.table.arrays import FloatArray
    from grapefill.training.checkpoint import Checkpoint
    from grapefill.training.progress import Callback, History
    from grapefill.training.stream import StreamedRows

# With a time limit, the share of it that the network may use when trees follow.
NETWORK_TIME = 0.6


def fit_model(
    model: GrapeModel,
    numbers: FloatArray,
    *,
    generator: torch.Generator,
    layout: Layout = "auto",
    time_limit: float | None = None,
    callbacks: Sequence[Callback] = (),
    label_weights: FloatArray | None = None,
    checkpoint: Checkpoint | None = None,
    stream: StreamedRows | None = None,
    team: Team = ALONE,
) -> History:
    """Fit a model to the encoded rows of a table.

    The network is trained with some observed cells held out. Before these join the others for the
    last part of the training, its predictions of them are put aside. They are compared with those
    of factors (in tables of many columns) and of a few trees that have not seen them either, which
    gives the weight of every part in every column. In the end factors are fitted and trees are
    grown again, on all cells.

    Parameters
    ----------
    model : GrapeModel
        Fitted in place: network, states, linear part, chain and trials.
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
    label_weights : ndarray of shape (rows,) or None
        How much the label of a row counts; None for all the same.
    checkpoint : Checkpoint or None
        Where the state of training is kept until the fit is complete, so that it can go on.
    stream : StreamedRows or None
        Where all rows are, if ``numbers`` are only a sample of them. The network is trained on all
        rows and its states are those of all rows; other parts are tried and fitted on the sample.
    team : Team
        The processes that fit together. Only the first one's model has all parts in the end.
    """
    started = time.perf_counter()
    stack, network_limit = None, time_limit
    if _wants_trial(model):
        if time_limit is not None and wants_parts(model):
            network_limit = NETWORK_TIME * time_limit
        stack = Stack(
            model,
            numbers,
            generator,
            started=started,
            time_limit=time_limit,
            label_weights=label_weights,
        )
    trainer = Trainer(
        model.network,
        model.cells(numbers),
        model.preset.training,
        generator=generator,
        layout=layout,
        time_limit=network_limit,
        callbacks=callbacks,
        started=started,
        n_labels=model.n_labels,
        label_weights=None
        if label_weights is None
        else torch.from_numpy(label_weights.astype(np.float32)).to(model.device),
        on_rejoin=None if stack is None or team.rank else stack.put_aside,
        checkpoint=checkpoint,
        stream=stream,
        team=team,
    )
    history = trainer.run()
    if stream is None:
        model.states = model.freeze_states(numbers)
    else:
        model.states = model.freeze_streamed(stream.encoded, gather=team.gather)
    if team.rank:
        return history
    if model.features.count == 1 and not model.n_labels:
        model.held_out = _only_column(model, numbers)
    if stack is not None and history.stopped != "interrupted":
        try:
            stack.grow(history, callbacks)
        except KeyboardInterrupt:
            history.stopped = "interrupted"
            warn("Fitting was interrupted while trees were grown; the network is used without.")
    if stack is not None and history.stopped == "interrupted":
        if stack.start is None and trainer.held_out.any():
            stack.ask_network(trainer.held_out)
        stack.rest_on_start()
    if checkpoint is not None and history.stopped != "interrupted":
        checkpoint.complete()
    return history


def _wants_trial(model: GrapeModel) -> bool:
    """Whether what the network says about held-out cells is put aside.

    Other parts are tried on them, and an imputer's intervals go by them. A user's own O_edge or
    O_node is meant to do it by itself.
    """
    return (
        (wants_parts(model) or (model.features.count > 1 and not model.n_labels))
        and model.preset.training.validation > 0
        and model.preset.training.rejoin < 1
        and not isinstance(model.network.o_edge, CustomEdgeHead)
        and not (model.network.o_node is not None and model.network.o_node.custom)
    )


def _only_column(model: GrapeModel, numbers: FloatArray) -> HeldOut:
    """Return the observed cells of the only column, with what a missing one is filled with.

    There is nothing else in their rows to go by, so it hardly matters that the network saw them.
    """
    one = model.predict(np.full((1, 1), np.nan))
    chances = {j: np.repeat(chance, len(numbers), axis=0) for j, chance in one.chances.items()}
    fill = Guess(np.repeat(one.value, len(numbers), axis=0), chances)
    return HeldOut.collect(numbers, ~np.isnan(numbers), fill, fill, np.ones(1))


def hold_out_again(
    model: GrapeModel, numbers: FloatArray, *, share: float, seed: int
) -> HeldOut | None:
    """Train a model like another one as far as its trial, with other cells held out.

    Parameters
    ----------
    model : GrapeModel
        The other one, which stays as it is.
    numbers : ndarray of shape (rows, features)
        The encoded rows that it was fitted to.
    share : float
        Which share of the observed cells is held out.
    seed : int
        Source of all randomness.

    Returns
    -------
    HeldOut or None
        What was predicted of the cells; None if such a model has no trial.
    """
    if not _wants_trial(model):
        return None
    # Whoever asks may have turned gradients off.
    with torch.inference_mode(False), torch.enable_grad():
        return _try_again(model, numbers, share, torch.Generator().manual_seed(seed))


def _try_again(
    model: GrapeModel, numbers: FloatArray, share: float, generator: torch.Generator
) -> HeldOut | None:
    preset = model.preset.change(validation=share)
    again = GrapeModel.create(
        model.schema, numbers, preset, generator=generator, scaling=model.scaling
    )
    again.to(model.device)
    stack = Stack(
        again,
        numbers,
        generator,
        started=time.perf_counter(),
        time_limit=None,
        label_weights=None,
        # Like the fills: the cells are to tell how far off these are.
        blend=Blend.of(model),
    )
    history = Trainer(
        again.network,
        again.cells(numbers),
        preset.training,
        generator=generator,
        on_rejoin=stack.put_aside,
        ends_at_rejoin=True,
    ).run()
    if stack.start is None:
        return None
    stack.try_parts(history)
    return again.held_out
