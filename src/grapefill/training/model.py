"""A fitted model: columns, scaling, network and feature states, without any estimator around it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from grapefill.errors import ConfigError, InputError
from grapefill.graph import Cells, Features, Graph, block_size, build_pairs, row_blocks
from grapefill.nn import FeatureStates, GrapeNetwork
from grapefill.table import Scaling, Schema
from grapefill.table.scaling import FARTHEST
from grapefill.trees import Chain, Guess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt
    from torch import Tensor, nn

    from grapefill.factors import Factors
    from grapefill.nn import Prediction
    from grapefill.training.choice import ColumnTrial
    from grapefill.training.config import Preset
    from grapefill.training.held_out import HeldOut

# Rows of a block, so that the states of its cells stay in a processor's cache.
BLOCK_CELLS = 8_192
FEWEST_BLOCK_ROWS, MOST_BLOCK_ROWS = 16, 1_024


@dataclass(frozen=True)
class LinearPart:
    """Factors, and the weight of the network against them for every feature."""

    factors: Factors
    shares: npt.NDArray[np.float64]


@dataclass
class GrapeModel:
    """Everything that is needed to fill rows of a table.

    Parameters
    ----------
    schema : Schema
        The columns at fit.
    preset : Preset
        Architecture and training recipe, with the user's changes.
    features : Features
        What is predicted: the imputable columns, followed by the labels.
    scaling : Scaling
        Scaling of the numbers of these.
    network : GrapeNetwork
        The network.
    layout : {"dense", "edges"}
        Layout of the graphs that rows are encoded in.
    states : FeatureStates or None
        The states of the features on the graph of the training table, once trained.
    linear : LinearPart or None
        Factors that what the network says is blended with, if there are any.
    chain : Chain or None
        Trees that refine what the network says, if there are any.
    trials : tuple of ColumnTrial
        How network and trees did on held-out cells, feature by feature, if that was tried.
    held_out : HeldOut or None
        These cells, and what the blend says about them, if there were any.
    n_labels : int
        How many of the features are labels. They are nodes of the graph, or outputs of O_node.
    """

    schema: Schema
    preset: Preset
    features: Features
    scaling: Scaling
    network: GrapeNetwork
    layout: Literal["dense", "edges"] = "dense"
    states: FeatureStates | None = None
    linear: LinearPart | None = None
    chain: Chain | None = None
    trials: tuple[ColumnTrial, ...] = ()
    held_out: HeldOut | None = None
    n_labels: int = 0

    @classmethod
    def create(
        cls,
        schema: Schema,
        numbers: npt.NDArray[np.float64],
        preset: Preset,
        *,
        generator: torch.Generator,
        labels: tuple[int, ...] = (),
        o_edge: nn.Module | None = None,
        o_node: nn.Module | None = None,
        scaling: Scaling | None = None,
    ) -> GrapeModel:
        """Make an untrained model for a table.

        Parameters
        ----------
        schema : Schema
            The columns.
        numbers : ndarray of shape (rows, features)
            Encoded rows, followed by the labels if there are any.
        preset : Preset
            Architecture and training recipe.
        generator : torch.Generator
            Where the weights are drawn from.
        labels : tuple of int
            For every label, 0 if it is a number, or how many classes it has.
        o_edge, o_node : torch.nn.Module or None
            The user's own heads; copies of them become part of the model.
        scaling : Scaling or None
            The scaling, if ``numbers`` are only some of the rows; learned from them when None.
        """
        features = describe_features(schema, labels)
        if scaling is None:
            scaling = Scaling.fit(numbers, preset.training.scaling, discrete=features.discrete)
        if preset.network.labels == "node" and labels == (0,) and o_node is None:
            # The authors do not scale the label. Several must have one scale to share a loss.
            scaling = scaling.in_own_units([features.count - 1])
        network = make_network(features, labels, preset, generator, o_edge=o_edge, o_node=o_node)
        return cls(schema, preset, features, scaling, network, n_labels=len(labels))

    def continued(self, preset: Preset) -> GrapeModel:
        """Return a copy to go on training with another recipe; this model stays as it is."""
        if preset.network != self.preset.network:
            raise ConfigError(
                "warm_start goes on training the network of the previous fit, but the settings "
                "now ask for another architecture. Set warm_start=False to start afresh."
            )
        network = copy.deepcopy(self.network)
        return replace(
            self,
            preset=preset,
            network=network,
            states=None,
            linear=None,
            chain=None,
            trials=(),
            held_out=None,
        )

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return self.network.feature_init.device

    @property
    def block_rows(self) -> int:
        """Rows that are encoded together.

        Always as many, with empty rows added: in the dense layout the same shapes run the same
        arithmetic, so the result for a row does not depend on how many rows come with it. With
        edge lists it may differ by rounding.
        """
        return min(MOST_BLOCK_ROWS, block_size(self.features, BLOCK_CELLS, least=FEWEST_BLOCK_ROWS))

    def to(self, device: torch.device) -> None:
        """Move network and states to a device."""
        self.network.to(device)
        if self.states is not None:
            layers = tuple(state.to(device) for state in self.states.layers)
            self.states = FeatureStates(layers, self.states.final.to(device))

    def cells(self, numbers: npt.NDArray[np.float64]) -> Cells:
        """Turn encoded numbers into tensors."""
        return Cells.from_numbers(self.scaled(numbers), self.features, device=self.device)

    def node_cells(self, numbers: npt.NDArray[np.float64]) -> Cells:
        """Turn encoded numbers into tensors, without labels that are not nodes of the graph."""
        return self.cells(numbers).columns(slice(self.network.features.count))

    def without_labels(self, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the encoded rows of a table with columns for the labels, which are not known."""
        unknown = np.full((numbers.shape[0], self.n_labels), np.nan)
        return np.hstack([numbers, unknown]) if self.n_labels else numbers

    def scaled(self, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Scale encoded numbers, none of them too far out."""
        scaled = self.scaling.apply(numbers)
        continuous = list(self.features.continuous)
        scaled[:, continuous] = np.clip(scaled[:, continuous], -FARTHEST, FARTHEST)
        return scaled

    def freeze_states(self, numbers: npt.NDArray[np.float64]) -> FeatureStates:
        """Return the states of the features on the graph of these rows."""
        return self.freeze_streamed(lambda: [numbers])

    def freeze_streamed(
        self,
        parts: Callable[[], Iterable[npt.NDArray[np.float64]]],
        *,
        gather: Callable[[Tensor, str], Tensor] | None = None,
    ) -> FeatureStates:
        """Return the states of the features on the graph of all rows that come in parts.

        Parameters
        ----------
        parts : callable
            Gives consecutive parts of the encoded rows, anew at every call. How the rows are cut
            makes no difference.
        gather : callable or None
            See `GrapeNetwork.feature_states`.
        """

        def graphs() -> Iterator[Graph]:
            for numbers in regular_parts(parts(), self.block_rows):
                for rows in row_blocks(numbers.shape[0], self.block_rows):
                    cells = self.node_cells(numbers[rows]).pad(self.block_rows)
                    yield self.network.graph(cells, self.layout)

        # Not inference_mode: its tensors could not take part in a caller's own training.
        with torch.no_grad():
            return self.network.feature_states(graphs, gather=gather)

    def predict(
        self,
        numbers: npt.NDArray[np.float64],
        *,
        states: FeatureStates | None = None,
        labels_only: bool = False,
    ) -> Guess:
        """Predict the cells of some rows.

        Parameters
        ----------
        numbers : ndarray of shape (rows, features)
            Encoded rows, NaN where a cell is not observed.
        states : FeatureStates or None
            States of the features to encode the rows against; those of the training table when
            None.
        labels_only : bool
            Whether only the labels matter, which takes less time.

        Returns
        -------
        Guess
            Predictions in the units of ``numbers``. Trees only look at missing cells; for an
            observed one it is what the network says.
        """
        guess = self.predict_start(numbers, states=states)
        if self.chain is None:
            return guess
        return self.chain.refine(numbers, guess, labels_only=labels_only)

    def predict_start(
        self, numbers: npt.NDArray[np.float64], *, states: FeatureStates | None = None
    ) -> Guess:
        """Predict every cell of some rows by network and factors, without trees."""
        guess = self.predict_network(numbers, states=states)
        return guess if self.linear is None else self.with_factors(guess, self.linear, numbers)

    def with_factors(
        self, guess: Guess, linear: LinearPart, numbers: npt.NDArray[np.float64]
    ) -> Guess:
        """Blend what the network says about some rows with what factors say."""
        columns = linear.factors.columns
        share, value = linear.shares[columns], guess.value.copy()
        says = self.factor_values(linear.factors, numbers)
        value[:, columns] = share * value[:, columns] + (1 - share) * says
        return Guess(value, guess.chances)

    def factor_values(
        self, factors: Factors, numbers: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Return what factors say about their columns, in the units of ``numbers``."""
        largest = np.finfo(np.float64).max
        scaling = self.scaling.of(factors.columns)
        return np.clip(scaling.undo(factors.predict(self.scaled(numbers))), -largest, largest)

    def predict_network(
        self, numbers: npt.NDArray[np.float64], *, states: FeatureStates | None = None
    ) -> Guess:
        """Predict every cell of some rows by the network alone; see `predict`."""
        states = self.states if states is None else states
        if states is None:
            raise InputError("The model has not been trained.")
        value = np.empty_like(numbers)
        n_rows = numbers.shape[0]
        chances = {
            j: np.empty((n_rows, self.features.n_categories[j])) for j in self.features.discrete
        }
        with torch.inference_mode():
            for rows in row_blocks(n_rows, self.block_rows):
                prediction = self._predict_block(numbers[rows], states)
                part = rows.stop - rows.start
                value[rows] = prediction.value[:part].cpu()
                for j, logits in prediction.logits.items():
                    chances[j][rows] = logits[:part].double().softmax(-1).cpu()
        # What is too large for a float must not meet a weight of 0.
        largest = np.finfo(np.float64).max
        value = np.clip(self.scaling.undo(value), -largest, largest)
        for j, chance in chances.items():
            value[:, j] = chance.argmax(-1)
        return Guess(value, chances)

    def _predict_block(self, numbers: npt.NDArray[np.float64], states: FeatureStates) -> Prediction:
        cells = self.node_cells(numbers).pad(self.block_rows)
        graph = self.network.graph(cells, self.layout)
        observations = self.network.encode_observations(graph, states)
        everywhere = build_pairs(cells.observed, "dense")
        prediction = self.network.predict(observations, states.final, everywhere)
        if self.network.o_node is None:
            return prediction
        return prediction.beside(self.network.predict_labels(prediction))


def regular_parts(
    parts: Iterable[npt.NDArray[np.float64]], size: int
) -> Iterator[npt.NDArray[np.float64]]:
    """Yield the same rows in parts whose lengths are multiples of ``size``, but for the last.

    Examples
    --------
    >>> [len(part) for part in regular_parts([np.ones((5, 1)), np.ones((4, 1))], 3)]
    [3, 6]
    """
    rest = None
    for part in parts:
        rows = part if rest is None or not len(rest) else np.concatenate([rest, part])
        whole = len(rows) - len(rows) % size
        if whole:
            yield rows[:whole]
        rest = rows[whole:]
    if rest is not None and len(rest):
        yield rest


def describe_features(schema: Schema, labels: tuple[int, ...] = ()) -> Features:
    """Return the imputable columns of a table, followed by the labels."""
    columns = [schema.columns[j] for j in schema.features]
    n_categories = tuple(
        len(column.categories) if column.kind.is_discrete and column.categories else 0
        for column in columns
    )
    return Features(n_categories + labels)


def make_network(
    features: Features,
    labels: tuple[int, ...],
    preset: Preset,
    generator: torch.Generator,
    *,
    o_edge: nn.Module | None,
    o_node: nn.Module | None,
) -> GrapeNetwork:
    """Return an untrained network for some features and labels; the user's heads are copied."""
    as_nodes = preset.network.labels == "feature"
    nodes = features.n_categories[: features.count - (0 if as_nodes else len(labels))]
    return GrapeNetwork(
        Features(nodes),
        preset.network,
        generator,
        o_edge=copy.deepcopy(o_edge),
        labels=Features(labels) if labels and not as_nodes else None,
        o_node=copy.deepcopy(o_node),
    )
