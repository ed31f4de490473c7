"""A fitted model: columns, scaling, network and feature states, without any estimator around it."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from grapefill.errors import ConfigError, InputError
from grapefill.graph import Cells, Features, Graph, block_size, build_pairs, row_blocks
from grapefill.nn import FeatureStates, GrapeNetwork
from grapefill.nn.heads import CustomEdgeHead
from grapefill.table import Encoded, Scaling, Schema
from grapefill.training.choice import ColumnTrial
from grapefill.training.config import Preset
from grapefill.trees import Chain, Guess

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    from torch import Tensor, nn

    from grapefill.nn import Prediction

# Rows of a block, so that the states of its cells stay in a processor's cache.
BLOCK_CELLS = 8_192
FEWEST_BLOCK_ROWS, MOST_BLOCK_ROWS = 16, 1_024
# A scaled number at fit cannot be farther out unless there are a hundred million rows. In a new
# row it can, and must not leave the range of float32.
FARTHEST = 1e4


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
        The feature nodes.
    scaling : Scaling
        Scaling of the numbers.
    network : GrapeNetwork
        The network.
    layout : {"dense", "edges"}
        Layout of the graphs that rows are encoded in.
    states : FeatureStates or None
        The states of the features on the graph of the training table, once trained.
    chain : Chain or None
        Trees that refine what the network says, if there are any.
    trials : tuple of ColumnTrial
        How network and trees did on held-out cells, feature by feature, if that was tried.
    """

    schema: Schema
    preset: Preset
    features: Features
    scaling: Scaling
    network: GrapeNetwork
    layout: Literal["dense", "edges"] = "dense"
    states: FeatureStates | None = None
    chain: Chain | None = None
    trials: tuple[ColumnTrial, ...] = ()

    @classmethod
    def create(
        cls,
        schema: Schema,
        encoded: Encoded,
        preset: Preset,
        *,
        generator: torch.Generator,
        o_edge: nn.Module | None = None,
    ) -> GrapeModel:
        """Make an untrained model for a table; a copy of ``o_edge`` becomes part of it."""
        features = describe_features(schema)
        scaling = Scaling.fit(encoded.numbers, preset.training.scaling, discrete=features.discrete)
        network = GrapeNetwork(features, preset.network, generator, o_edge=copy.deepcopy(o_edge))
        return cls(schema, preset, features, scaling, network)

    def continued(self, preset: Preset) -> GrapeModel:
        """Return a copy to go on training with another recipe; this model stays as it is."""
        if preset.network != self.preset.network:
            raise ConfigError(
                "warm_start goes on training the network of the previous fit, but the settings "
                "now ask for another architecture. Set warm_start=False to start afresh."
            )
        network = copy.deepcopy(self.network)
        return replace(self, preset=preset, network=network, states=None, chain=None, trials=())

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
        scaled = self.scaling.apply(numbers)
        continuous = list(self.features.continuous)
        scaled[:, continuous] = np.clip(scaled[:, continuous], -FARTHEST, FARTHEST)
        return Cells.from_numbers(scaled, self.features, device=self.device)

    def freeze_states(self, numbers: npt.NDArray[np.float64]) -> FeatureStates:
        """Return the states of the features on the graph of these rows."""

        def graphs() -> Iterator[Graph]:
            for rows in row_blocks(numbers.shape[0], self.block_rows):
                cells = self.cells(numbers[rows]).pad(self.block_rows)
                yield self.network.graph(cells, self.layout)

        # Not inference_mode: its tensors could not take part in a caller's own training.
        with torch.no_grad():
            return self.network.feature_states(graphs)

    def predict(
        self, numbers: npt.NDArray[np.float64], *, states: FeatureStates | None = None
    ) -> Guess:
        """Predict the cells of some rows.

        Parameters
        ----------
        numbers : ndarray of shape (rows, features)
            Encoded rows, NaN where a cell is not observed.
        states : FeatureStates or None
            States of the features to encode the rows against; those of the training table when
            None.

        Returns
        -------
        Guess
            Predictions in the units of ``numbers``. Trees only look at missing cells; for an
            observed one it is what the network says.
        """
        guess = self.predict_network(numbers, states=states)
        return guess if self.chain is None else self.chain.refine(numbers, guess)

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
        cells = self.cells(numbers).pad(self.block_rows)
        graph = self.network.graph(cells, self.layout)
        observations = self.network.encode_observations(graph, states)
        everywhere = build_pairs(cells.observed, "dense")
        return self.network.predict(observations, states.final, everywhere)

    def tensors(self) -> dict[str, Tensor]:
        """Return everything of the model that is a tensor, by name, for a model file."""
        assert self.states is not None
        named = {f"network.{name}": t for name, t in self.network.state_dict().items()}
        named |= {f"states.{i}": t for i, t in enumerate(self.states.layers)}
        named |= {
            "states.final": self.states.final,
            "scaling.center": torch.from_numpy(self.scaling.center),
            "scaling.scale": torch.from_numpy(self.scaling.scale),
        }
        if self.chain is not None:
            arrays = self.chain.arrays()
            named |= {f"chain.{name}": torch.from_numpy(array) for name, array in arrays.items()}
        return {name: tensor.detach().cpu().contiguous() for name, tensor in named.items()}

    def description(self) -> dict[str, Any]:
        """Return what is neither a tensor nor the schema, as plain JSON values."""
        return {
            "preset": self.preset.to_dict(),
            "layout": self.layout,
            "own_o_edge": isinstance(self.network.o_edge, CustomEdgeHead),
            "trials": [asdict(trial) for trial in self.trials],
        }

    @classmethod
    def restore(
        cls,
        schema: Schema,
        description: dict[str, Any],
        tensors: dict[str, Tensor],
        *,
        o_edge: nn.Module | None = None,
    ) -> GrapeModel:
        """Rebuild a model from `description` and `tensors`; ``o_edge`` is copied."""
        if description["own_o_edge"] and o_edge is None:
            raise ConfigError(
                "The model was fitted with an O_edge module of your own. "
                "Pass the same module as load(path, o_edge=...)."
            )
        if o_edge is not None and not description["own_o_edge"]:
            raise ConfigError("The model was fitted without an O_edge module. Load it without.")
        preset = Preset.from_dict(description["preset"])
        features = describe_features(schema)
        if not features.count:
            raise ValueError("the schema has no column to impute")
        network = GrapeNetwork(
            features, preset.network, torch.Generator(), o_edge=copy.deepcopy(o_edge)
        )
        weights = {
            name.removeprefix("network."): tensor
            for name, tensor in tensors.items()
            if name.startswith("network.")
        }
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            if o_edge is None:
                raise
            raise ConfigError(
                f"The weights in the file do not fit the given O_edge module: {error}. Pass a "
                "module built like the one at fit."
            ) from error
        network.eval()
        layers = tuple(tensors[f"states.{i}"] for i in range(preset.network.layers + 1))
        states = FeatureStates(layers, tensors["states.final"])
        center, scale = tensors["scaling.center"], tensors["scaling.scale"]
        expected = {
            "states.0": (layers[0], tuple(network.feature_init.shape)),
            "scaling.center": (center, (features.count,)),
            "scaling.scale": (scale, (features.count,)),
        }
        final = (features.count, preset.network.width)
        rest = [*layers[1:], states.final]
        expected |= {f"states.{i}": (state, final) for i, state in enumerate(rest, start=1)}
        for name, (tensor, shape) in expected.items():
            if tuple(tensor.shape) != shape:
                raise ValueError(f"{name} has shape {tuple(tensor.shape)}, not {shape}")
        scaling = Scaling(center.numpy(), scale.numpy())
        prefix = "chain."
        arrays = {k.removeprefix(prefix): t.numpy() for k, t in tensors.items() if k[:6] == prefix}
        chain = Chain.from_arrays(arrays, features.n_categories, scaling) if arrays else None
        trials = tuple(ColumnTrial(**trial) for trial in description["trials"])
        return cls(
            schema, preset, features, scaling, network, description["layout"], states, chain, trials
        )


def describe_features(schema: Schema) -> Features:
    """Return the feature nodes of a table."""
    columns = [schema.columns[j] for j in schema.features]
    return Features(
        tuple(
            len(column.categories) if column.kind.is_discrete and column.categories else 0
            for column in columns
        )
    )
