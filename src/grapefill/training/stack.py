"""What is beside and on top of a network, tried on held-out cells and then fitted to all."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import torch

from grapefill.factors import Factors
from grapefill.graph import block_size
from grapefill.training.choice import FEWEST_FOR_LINES, choose_powers, choose_shares, clearly_better
from grapefill.training.held_out import HeldOut, kept_cells
from grapefill.training.model import LinearPart
from grapefill.training.progress import Progress
from grapefill.training.together import missing_together
from grapefill.trees import Growth, Guess

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt
    from torch import Tensor

    from grapefill.table.arrays import FloatArray
    from grapefill.training.choice import ColumnTrial
    from grapefill.training.model import GrapeModel
    from grapefill.training.progress import Callback, History
    from grapefill.trees import Chain

# Trees are grown on no more rows and cells than that, drawn by chance.
TREE_ROWS = 50_000
TREE_CELLS = 1_000_000
# With a time limit, the share of it that may be over when the trial of trees ends.
TRIAL_TIME = 0.75
# Held-out cells are predicted one by one if that takes no more numbers and categories than these.
MOST_ALONE = 2_000_000


def wants_trees(model: GrapeModel) -> bool:
    """Whether trees are to refine what the network says."""
    forest = model.preset.forest
    return forest.rounds > 0 and 1 < model.features.count <= forest.most_columns


def wants_factors(model: GrapeModel) -> bool:
    """Whether factors are to be tried beside the network."""
    config = model.preset.factors
    return bool(config.ranks) and len(model.features.continuous) >= config.fewest_columns


def wants_parts(model: GrapeModel) -> bool:
    """Whether there is to be anything besides the network."""
    return wants_trees(model) or wants_factors(model)


@dataclass(frozen=True)
class _Choice:
    """How trees are to be grown, as the trial suggests; see `Growth.grow` and `Chain`."""

    growth: Growth
    shares: FloatArray
    trimmed: npt.NDArray[np.bool_]
    smooth: npt.NDArray[np.bool_]
    powers: FloatArray
    trials: tuple[ColumnTrial, ...]


class Blend(NamedTuple):
    """How the parts of a fitted model are blended.

    Parameters
    ----------
    shares : ndarray of shape (features,)
        The weight of the network in every column.
    powers : ndarray of shape (features,)
        What the probabilities of categories are raised to.
    linear : LinearPart or None
        The factors beside the network.
    """

    shares: FloatArray
    powers: FloatArray
    linear: LinearPart | None

    @classmethod
    def of(cls, model: GrapeModel) -> Self:
        """Return how a fitted model does it."""
        if model.chain is None:
            ones = np.ones(model.features.count)
            return cls(ones, ones, model.linear)
        return cls(model.chain.shares, model.chain.powers, model.linear)


@dataclass
class _Alone:
    """Rows in which a single cell is held out, and what network and factors say without it.

    A missing cell is filled with the others of its row in sight. One that is held out together with
    others of its row would be farther off than that. Others that are missing when the column is are
    not in sight either; see `missing_together`.

    Parameters
    ----------
    numbers : ndarray of shape (cells, features)
        The row of every held-out cell that is kept, as far as it is in sight.
    held_out : ndarray of bool, shape (cells, features)
        Where it is.
    start : Guess
        What is said about it.
    """

    numbers: FloatArray
    held_out: npt.NDArray[np.bool_]
    start: Guess

    @property
    def shown(self) -> FloatArray:
        """The rows without the cells."""
        return np.where(self.held_out, np.nan, self.numbers)


class Stack:
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
        blend: Blend | None = None,
    ) -> None:
        self.model = model
        self.numbers = numbers
        self.started = started
        self.trial_deadline = None if time_limit is None else started + TRIAL_TIME * time_limit
        self.deadline = None if time_limit is None else started + time_limit
        # A network by itself is trained as if no cells were put aside.
        self.seed = int(torch.randint(2**31, (), generator=generator)) if wants_parts(model) else 0
        self.label_weights = label_weights
        self.blend = blend
        self.held_out: npt.NDArray[np.bool_] | None = None
        self.start: Guess | None = None
        self.alone: _Alone | None = None
        self._by_network: tuple[Guess, _Alone | None] | None = None
        self.trials: tuple[ColumnTrial, ...] = ()
        self.rank = 0
        self.factor_shares = np.ones(model.features.count)

    def put_aside(self, held_out: Tensor) -> None:
        """Keep what the network says while it has not seen the held-out cells, and try factors."""
        self.ask_network(held_out)
        assert self.held_out is not None
        shown = np.where(self.held_out, np.nan, self.numbers)
        if self.blend is not None:
            self._add_factors(shown, self.blend)
        elif wants_factors(self.model):
            self._try_factors(shown)

    def ask_network(self, held_out: Tensor) -> None:
        """Keep what the network says while it has not seen the held-out cells."""
        hidden = held_out.cpu().numpy()
        rows = self._choose_rows(np.asarray(hidden.any(axis=1)))
        hidden, numbers = hidden[rows], self.numbers[rows]
        shown = np.where(hidden, np.nan, numbers)
        states = self.model.freeze_states(shown)
        start, alone = self.model.predict_network(shown, states=states), None
        feature, row = kept_cells(hidden)
        # A label is not seen by what is predicted of another.
        if not self.model.n_labels and feature.size * self.model.features.places <= MOST_ALONE:
            single = np.arange(numbers.shape[1]) == feature[:, None]
            random = np.random.default_rng((self.seed, 1))
            beside = missing_together(np.isnan(self.numbers), feature, random)
            cells = np.where(beside, np.nan, numbers[row])
            said = self.model.predict_network(np.where(single, np.nan, cells), states=states)
            alone = _Alone(cells, single, said)
        weights = None if self.label_weights is None else self.label_weights[rows]
        by_network = start, None if alone is None else replace(alone)
        # At once in the end: an interruption before leaves everything as it was.
        self.numbers, self.label_weights, self.held_out = numbers, weights, hidden
        self.start, self.alone, self._by_network = start, alone, by_network

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
        best, value, chosen = np.inf, start.value, None
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
            best, value, self.rank, chosen = error, tried, rank, factors
            now = time.perf_counter()
            # The next one takes about twice as long.
            if self.trial_deadline is not None and now + 2 * (now - before) > self.trial_deadline:
                break
        if chosen is None:
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
        self._blend_in(LinearPart(chosen, self.factor_shares), shown)

    def _add_factors(self, shown: FloatArray, blend: Blend) -> None:
        """Blend the network with factors that were chosen before, if there are any."""
        if blend.linear is None:
            return
        factors = self._fit_factors(shown, blend.linear.factors.loadings.shape[1])
        self._blend_in(LinearPart(factors, blend.linear.shares), shown)

    def _blend_in(self, linear: LinearPart, shown: FloatArray) -> None:
        """Blend what the network says with what factors say."""
        assert self.start is not None
        self.start = self.model.with_factors(self.start, linear, shown)
        if self.alone is not None:
            self.alone.start = self.model.with_factors(self.alone.start, linear, self.alone.shown)

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
        if self.start is None:
            return
        model, numbers = self.model, self.numbers
        if (self.factor_shares < 1).any():
            model.linear = LinearPart(self._fit_factors(numbers, self.rank), self.factor_shares)
        choice = self.try_parts(history, callbacks)
        if choice is None:
            return
        choice.growth.deadline = self.deadline
        choice.growth.report = self._reporter(history, callbacks)
        start = model.predict_start(numbers)
        chain, _ = choice.growth.grow(
            numbers, start, choice.shares, trimmed=choice.trimmed, smooth=choice.smooth
        )
        chain.powers = choice.powers
        model.trials = choice.trials
        model.chain = chain if any(chain.rounds) else None

    def rest_on_start(self) -> None:
        """Keep in the model how it does on the held-out cells without trees.

        So much is left of a fit that was interrupted. If that was before factors were fitted, it is
        the network by itself.
        """
        if self._by_network is None:
            return
        assert self.held_out is not None
        model, one = self.model, np.ones(self.model.features.count)
        trials = tuple(map(_of_factors, self.trials))
        if model.linear is None:
            self.start, self.alone = self._by_network
            _, trials = choose_shares(
                self.numbers,
                self.held_out,
                self.start,
                self.start,
                n_categories=model.features.n_categories,
                tried=(),
                weights=self._weights,
            )
        model.held_out = self._collect(None, one, one, None)
        model.trials = self._with_alone(trials)

    def try_parts(self, history: History, callbacks: Sequence[Callback] = ()) -> _Choice | None:
        """Try the trees on the held-out cells, which are kept in the model.

        Parameters
        ----------
        history : History
            How the network was trained.
        callbacks : sequence of callable
            Each is called with a `Progress` after every forest.

        Returns
        -------
        _Choice or None
            How they are to be grown; None if there are to be none.
        """
        assert self.start is not None
        assert self.held_out is not None
        model, config = self.model, self.model.preset.forest
        numbers = self.numbers
        none = np.zeros(model.features.count)
        model.held_out = self._collect(None, none, np.ones(none.size), None)
        model.trials = self._with_alone(tuple(map(_of_factors, self.trials)))
        if not wants_trees(model):
            return None
        growth = Growth(
            config,
            model.features.n_categories,
            model.scaling,
            self.seed,
            deadline=self.trial_deadline,
            report=self._reporter(history, callbacks),
            weights=self._weights,
            n_labels=model.n_labels,
        )
        shown = np.where(self.held_out, np.nan, numbers)
        tried, guess = growth.grow(shown, self.start, none, plan=config.trial_plan)
        guess, trimmed, smooth = self._choose_form(growth, shown, tried, guess)
        shares, trials = choose_shares(
            numbers,
            self.held_out,
            self.start,
            guess,
            n_categories=model.features.n_categories,
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
        if self.blend is not None:
            shares, powers = self.blend.shares, self.blend.powers
        model.held_out = self._collect(guess, shares, powers, replace(tried, trimmed=trimmed))
        if model.trials:
            trials = tuple(map(_joined, model.trials, trials))
        return _Choice(growth, shares, trimmed, smooth, powers, self._with_alone(trials))

    def _with_alone(self, trials: tuple[ColumnTrial, ...]) -> tuple[ColumnTrial, ...]:
        """Return trials that also say how far off cells are that were held out by themselves."""
        if self.alone is None or self.model.held_out is None:
            return trials
        cells, features = self.model.held_out, self.model.features
        return tuple(
            replace(trial, alone=cells.of(j).error(categories=j in features.discrete))
            for j, trial in enumerate(trials)
        )

    def _collect(
        self, trees: Guess | None, shares: FloatArray, powers: FloatArray, chain: Chain | None
    ) -> HeldOut:
        """Collect the held-out cells, and what the parts say about them with these weights."""
        assert self.start is not None
        assert self.held_out is not None
        numbers, held_out, start = self.numbers, self.held_out, self.start
        if self.alone is not None:
            numbers, held_out, start = self.alone.numbers, self.alone.held_out, self.alone.start
            trees = None if chain is None else chain.refine(self.alone.shown, start)
        trees = start if trees is None else trees
        return HeldOut.collect(numbers, held_out, start, trees, shares, powers=powers, chain=chain)

    def _reporter(
        self, history: History, callbacks: Sequence[Callback]
    ) -> Callable[[int, int], None]:
        """Return what tells callbacks how many forests are done and how many are planned."""
        before = time.perf_counter() - self.started

        def report(done: int, planned: int) -> None:
            seconds = time.perf_counter() - self.started
            step, loss = len(history.step), history.loss[-1]
            validation = history.validation[-1] if history.validation else None
            left = (seconds - before) / done * (planned - done)
            for callback in callbacks:
                callback(Progress(step, step, loss, validation, seconds, left, stage="trees"))

        return report

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
