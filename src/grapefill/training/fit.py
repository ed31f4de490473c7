"""A model is fitted: the network is trained, other parts are tried, chosen and fitted."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from grapefill.errors import warn
from grapefill.factors import Factors
from grapefill.graph import block_size
from grapefill.nn.heads import CustomEdgeHead
from grapefill.training.choice import FEWEST_FOR_LINES, choose_powers, choose_shares, clearly_better
from grapefill.training.held_out import HeldOut
from grapefill.training.loop import Trainer
from grapefill.training.model import LinearPart
from grapefill.training.progress import Progress
from grapefill.training.team import ALONE, Team
from grapefill.trees import Growth, Guess

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from torch import Tensor

    from grapefill.graph import Layout
    from grapefill.table.arrays import FloatArray
    from grapefill.training.checkpoint import Checkpoint
    from grapefill.training.choice import ColumnTrial
    from grapefill.training.model import GrapeModel
    from grapefill.training.progress import Callback, History
    from grapefill.training.stream import StreamedRows
    from grapefill.trees import Chain

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
    stack = None
    if _wants_more(model):
        stack = _Stack(
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
        time_limit=time_limit if stack is None or time_limit is None else NETWORK_TIME * time_limit,
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
    if stack is not None and history.stopped != "interrupted":
        try:
            stack.grow(history, callbacks)
        except KeyboardInterrupt:
            history.stopped = "interrupted"
            warn("Fitting was interrupted while trees were grown; the network is used without.")
    if checkpoint is not None and history.stopped != "interrupted":
        checkpoint.complete()
    return history


def _wants_more(model: GrapeModel) -> bool:
    """Whether other parts than the network can be tried.

    Without held-out cells nobody could tell if they are any good, and a user's own O_edge or O_node
    is meant to do it by itself.
    """
    return (
        (_wants_trees(model) or _wants_factors(model))
        and model.preset.training.validation > 0
        and model.preset.training.rejoin < 1
        and not isinstance(model.network.o_edge, CustomEdgeHead)
        and not (model.network.o_node is not None and model.network.o_node.custom)
    )


def _wants_trees(model: GrapeModel) -> bool:
    forest = model.preset.forest
    return forest.rounds > 0 and 1 < model.features.count <= forest.most_columns


def _wants_factors(model: GrapeModel) -> bool:
    config = model.preset.factors
    return bool(config.ranks) and len(model.features.continuous) >= config.fewest_columns


class _Stack:
    """What is beside and on top of the network: factors and trees, from the trial to the fit."""

    def __init__(
        self,
        model: GrapeModel,
        numbers: FloatArray,
        generator: torch.Generator,
        *,
        started: float,
        time_limit: float | None,
        label_weights: FloatArray | None,
    ) -> None:
        self.model = model
        self.numbers = numbers
        self.started = started
        self.trial_deadline = None if time_limit is None else started + TRIAL_TIME * time_limit
        self.deadline = None if time_limit is None else started + time_limit
        self.seed = int(torch.randint(2**31, (), generator=generator))
        self.label_weights = label_weights
        self.held_out: npt.NDArray[np.bool_] | None = None
        self.start: Guess | None = None
        self.trials: tuple[ColumnTrial, ...] = ()
        self.rank = 0
        self.factor_shares = np.ones(model.features.count)

    def put_aside(self, held_out: Tensor) -> None:
        """Keep what the network says while it has not seen the held-out cells."""
        hidden = held_out.cpu().numpy()
        rows = self._choose_rows(np.asarray(hidden.any(axis=1)))
        self.held_out, self.numbers = hidden[rows], self.numbers[rows]
        if self.label_weights is not None:
            self.label_weights = self.label_weights[rows]
        shown = np.where(self.held_out, np.nan, self.numbers)
        states = self.model.freeze_states(shown)
        self.start = self.model.predict_network(shown, states=states)
        if _wants_factors(self.model):
            self._try_factors(shown)

    @property
    def _weights(self) -> dict[int, FloatArray]:
        """How much the cells of the labels count, if they do not all count the same."""
        if self.label_weights is None:
            return {}
        count = self.model.features.count
        return dict.fromkeys(range(count - self.model.n_labels, count), self.label_weights)

    def _choose_rows(self, held_out: npt.NDArray[np.bool_]) -> slice | npt.NDArray[np.int64]:
        """Choose the rows for the other parts: with held-out cells, with labels, then any."""
        features, n_rows = self.model.features, self.numbers.shape[0]
        most = min(TREE_ROWS, block_size(features, TREE_CELLS))
        if n_rows <= most:
            return slice(None)
        first_label = features.count - self.model.n_labels
        labelled = (~np.isnan(self.numbers[:, first_label:])).any(axis=1)
        order = np.random.default_rng(self.seed).random(n_rows) - 2 * held_out - labelled
        return np.sort(np.argpartition(order, most)[:most])

    def _try_factors(self, shown: FloatArray) -> None:
        """Choose how many factors there are, and their weights beside the network."""
        assert self.start is not None
        assert self.held_out is not None
        model, start = self.model, self.start
        numbers = self.numbers
        best, value = np.inf, start.value
        for rank in model.preset.factors.ranks:
            before = time.perf_counter()
            factors = self._fit_factors(shown, rank)
            columns = factors.columns
            tried = start.value.copy()
            tried[:, columns] = model.factor_values(factors, shown)
            # Differences of numbers near the end of float64 are infinite: no reason to go on.
            with np.errstate(over="ignore", invalid="ignore"):
                off = np.abs(tried - numbers)[:, columns] / model.scaling.scale[columns]
            off = off[self.held_out[:, columns]]
            error = float(off.mean()) if off.size else np.inf
            if not error < best:
                break
            best, value, self.rank = error, tried, rank
            now = time.perf_counter()
            # The next one takes about twice as long.
            if self.trial_deadline is not None and now + 2 * (now - before) > self.trial_deadline:
                break
        if not self.rank:
            return
        self.factor_shares, self.trials = choose_shares(
            numbers,
            self.held_out,
            start,
            Guess(value, start.chances),
            n_categories=model.features.n_categories,
            tried=model.features.continuous,
            weights=self._weights,
        )
        share = self.factor_shares
        self.start = Guess(share * start.value + (1 - share) * value, start.chances)

    def _fit_factors(self, numbers: FloatArray, rank: int) -> Factors:
        most = self.model.preset.factors.factor_rows
        if numbers.shape[0] > most:
            chosen = np.random.default_rng(self.seed).choice(numbers.shape[0], most, replace=False)
            numbers = numbers[np.sort(chosen)]
        columns = np.array(self.model.features.continuous)
        seen = ~np.isnan(numbers[:, columns]).all(axis=0)
        return Factors.fit(self.model.scaled(numbers), columns[seen], rank=rank)

    def grow(self, history: History, callbacks: Sequence[Callback]) -> None:
        """Fit the factors to all cells; try the trees on the held-out cells, grow them on all."""
        if self.start is None or self.held_out is None:
            return
        model, config = self.model, self.model.preset.forest
        numbers = self.numbers
        none = np.zeros(model.features.count)
        model.trials = tuple(map(_of_factors, self.trials))
        if (self.factor_shares < 1).any():
            model.linear = LinearPart(self._fit_factors(numbers, self.rank), self.factor_shares)
        model.held_out = HeldOut.collect(numbers, self.held_out, self.start, self.start, none)
        if not _wants_trees(model):
            return
        n_categories = model.features.n_categories

        def report(done: int, planned: int) -> None:
            seconds = time.perf_counter() - self.started
            step, loss = len(history.step), history.loss[-1]
            validation = history.validation[-1] if history.validation else None
            left = (seconds - before) / done * (planned - done)
            for callback in callbacks:
                callback(Progress(step, step, loss, validation, seconds, left, stage="trees"))

        growth = Growth(
            config,
            n_categories,
            model.scaling,
            self.seed,
            report=report,
            weights=self._weights,
            n_labels=model.n_labels,
        )
        before = time.perf_counter() - self.started
        growth.deadline = self.trial_deadline
        shown = np.where(self.held_out, np.nan, numbers)
        tried, guess = growth.grow(shown, self.start, none, plan=config.trial_plan)
        guess, trimmed, smooth = self._choose_form(growth, shown, tried, guess)
        shares, trials = choose_shares(
            numbers,
            self.held_out,
            self.start,
            guess,
            n_categories=n_categories,
            tried={j for forests in tried.rounds for j in forests},
            weights=self._weights,
        )
        powers = np.ones(shares.size)
        blends = {
            j: shares[j] * mine + (1 - shares[j]) * guess.chances[j]
            for j, mine in self.start.chances.items()
        }
        for j, power in choose_powers(numbers, self.held_out, blends, self._weights).items():
            powers[j] = power
        model.held_out = HeldOut.collect(
            numbers, self.held_out, self.start, guess, shares, powers=powers, chain=tried
        )
        before = time.perf_counter() - self.started
        growth.deadline = self.deadline
        start = model.predict_start(numbers)
        chain, _ = growth.grow(numbers, start, shares, trimmed=trimmed, smooth=smooth)
        chain.powers = powers
        if model.trials:
            trials = tuple(map(_joined, model.trials, trials))
        model.trials = trials
        model.chain = chain if any(chain.rounds) else None

    def _choose_form(
        self, growth: Growth, shown: FloatArray, tried: Chain, guess: Guess
    ) -> tuple[Guess, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Choose in which columns votes are trimmed, and in which leaves have lines instead.

        The middle half of the votes guards against a tree that is far off. The mean of all of
        them, or lines, do better where others determine a column smoothly. Trees that were tried
        are replaced where they have lines.
        """
        assert self.held_out is not None
        assert guess.plain is not None
        assert guess.spread is not None
        n_categories = self.model.features.n_categories
        judged = (self.numbers, self.held_out)
        trimmed = ~clearly_better(*judged, guess.plain, guess.value, n_categories)
        value, spread = np.where(trimmed, guess.value, guess.plain), guess.spread
        smooth = np.zeros_like(trimmed)
        found = growth.try_lines(shown, replace(guess, value=value), self.held_out)
        if found is not None:
            lines, forests = found
            smooth = clearly_better(
                *judged, lines.value, value, n_categories, fewest=FEWEST_FOR_LINES
            )
            value = np.where(smooth, lines.value, value)
            assert lines.spread is not None
            spread = np.where(smooth, lines.spread, spread)
            tried.rounds[-1] |= {j: forests[j] for j in np.flatnonzero(smooth).tolist()}
        return replace(guess, value=value, spread=spread), trimmed | smooth, smooth


def _of_factors(trial: ColumnTrial) -> ColumnTrial:
    """Return a trial of network and factors, which was made as one of network and trees."""
    return replace(trial, factors=trial.trees, factor_share=1 - trial.share, trees=None, share=1.0)


def _joined(first: ColumnTrial, second: ColumnTrial) -> ColumnTrial:
    """Return the trial of trees against network and factors, with what these did alone."""
    return replace(
        second,
        network=first.network,
        factors=first.factors,
        factor_share=first.factor_share,
    )
