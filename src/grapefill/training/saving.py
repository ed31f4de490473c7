"""What of a fitted model goes into a file, and a model from what a file holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from grapefill.errors import ConfigError
from grapefill.factors import Factors
from grapefill.nn import FeatureStates
from grapefill.nn.heads import CustomEdgeHead
from grapefill.table import Scaling
from grapefill.training.choice import ColumnTrial
from grapefill.training.config import Preset
from grapefill.training.held_out import HeldOut
from grapefill.training.model import GrapeModel, LinearPart, describe_features, make_network
from grapefill.training.parameters import starting
from grapefill.trees import Chain

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor, nn

    from grapefill.nn import GrapeNetwork
    from grapefill.table import Schema


def model_tensors(model: GrapeModel) -> dict[str, Tensor]:
    """Return everything of a model that is a tensor, by name."""
    assert model.states is not None
    named = {f"network.{name}": t for name, t in model.network.state_dict().items()}
    named |= {f"states.{i}": t for i, t in enumerate(model.states.layers)}
    named["states.final"] = model.states.final
    arrays = {"scaling.center": model.scaling.center, "scaling.scale": model.scaling.scale}
    parts: dict[str, dict[str, npt.NDArray[Any]]] = {}
    if model.held_out is not None:
        parts["held_out"] = model.held_out.arrays()
    if model.linear is not None:
        parts["linear"] = model.linear.factors.arrays() | {"shares": model.linear.shares}
    if model.chain is not None:
        parts["chain"] = model.chain.arrays()
    for part, its_arrays in parts.items():
        arrays |= {f"{part}.{name}": array for name, array in its_arrays.items()}
    named |= {name: torch.from_numpy(array) for name, array in arrays.items()}
    return {name: tensor.detach().cpu().contiguous() for name, tensor in named.items()}


def model_description(model: GrapeModel) -> dict[str, Any]:
    """Return what of a model is neither a tensor nor the schema, as plain JSON values."""
    network, features = model.network, model.features
    return {
        "preset": model.preset.to_dict(),
        "layout": model.layout,
        "own_o_edge": isinstance(network.o_edge, CustomEdgeHead),
        "own_o_node": network.o_node is not None and network.o_node.custom,
        "labels": list(features.n_categories[features.count - model.n_labels :]),
        "trials": [asdict(trial) for trial in model.trials],
    }


def restore_model(
    schema: Schema,
    description: dict[str, Any],
    tensors: dict[str, Tensor],
    *,
    o_edge: nn.Module | None = None,
    o_node: nn.Module | None = None,
) -> GrapeModel:
    """Rebuild a model from `model_description` and `model_tensors`; the user's heads are copied."""
    _check_heads(description, {"edge": o_edge, "node": o_node})
    preset = Preset.from_dict(description["preset"])
    labels = tuple(description["labels"])
    features = describe_features(schema, labels)
    if not features.count:
        raise ValueError("the schema has no column to impute")
    network = make_network(
        features, labels, preset, torch.Generator(), o_edge=o_edge, o_node=o_node
    )
    try:
        network.load_state_dict(starting(tensors, "network."))
    except RuntimeError as error:
        if o_edge is None and o_node is None:
            raise
        raise ConfigError(
            f"The weights in the file do not fit the given module: {error}. Pass a module "
            "built like the one at fit."
        ) from error
    network.eval()
    scaling = _restore_scaling(tensors, features.count)
    trees, held_out = _arrays(tensors, "chain."), _arrays(tensors, "held_out.")
    chain = None
    if trees:
        chain = Chain.from_arrays(trees, features.n_categories, scaling, len(labels))
    return GrapeModel(
        schema,
        preset,
        features,
        scaling,
        network,
        layout=description["layout"],
        states=_restore_states(tensors, network, preset),
        linear=_restore_linear(tensors, features.count),
        chain=chain,
        trials=tuple(ColumnTrial(**trial) for trial in description["trials"]),
        held_out=HeldOut.from_arrays(held_out, features.count) if held_out else None,
        n_labels=len(labels),
    )


def _check_heads(description: dict[str, Any], heads: dict[str, nn.Module | None]) -> None:
    """Require the user's own modules where the model had some, and only there."""
    for name, module in heads.items():
        if description[f"own_o_{name}"] and module is None:
            raise ConfigError(
                f"The model was fitted with an O_{name} module of your own. "
                f"Pass the same module as load(path, o_{name}=...)."
            )
        if module is not None and not description[f"own_o_{name}"]:
            raise ConfigError(f"The model was fitted without an O_{name} module. Load it without.")


def _restore_states(
    tensors: dict[str, Tensor], network: GrapeNetwork, preset: Preset
) -> FeatureStates:
    layers = tuple(tensors[f"states.{i}"] for i in range(preset.network.layers + 1))
    states = FeatureStates(layers, tensors["states.final"])
    _check_shape("states.0", layers[0], tuple(network.feature_init.shape))
    for i, state in enumerate([*layers[1:], states.final], start=1):
        _check_shape(f"states.{i}", state, (network.features.count, preset.network.width))
    return states


def _restore_scaling(tensors: dict[str, Tensor], count: int) -> Scaling:
    center, scale = tensors["scaling.center"], tensors["scaling.scale"]
    _check_shape("scaling.center", center, (count,))
    _check_shape("scaling.scale", scale, (count,))
    return Scaling(center.numpy(), scale.numpy())


def _restore_linear(tensors: dict[str, Tensor], count: int) -> LinearPart | None:
    arrays = _arrays(tensors, "linear.")
    if not arrays:
        return None
    shares = arrays.pop("shares")
    if shares.shape != (count,):
        raise ValueError(f"there are {shares.size} shares for {count} features")
    if not ((shares >= 0) & (shares <= 1)).all():
        raise ValueError("a share of the factors is not between 0 and 1")
    return LinearPart(Factors.from_arrays(arrays, count), shares)


def _check_shape(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, not {shape}")


def _arrays(tensors: dict[str, Tensor], prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {name: tensor.numpy() for name, tensor in starting(tensors, prefix).items()}
