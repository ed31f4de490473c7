"""What the network is made of, as one frozen dataclass."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import nn

from grapefill.errors import ConfigError
from grapefill.settings import check_fields

Aggregation = Literal["mean", "max", "sum"]
Activation = Literal["relu", "gelu", "silu", "tanh"]
Normalization = Literal["l2", "layer", "none"]
Labels = Literal["node", "feature"]
FeatureInit = Literal["auto", "one_hot", "embedding"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}

# One-hot feature nodes make the first maps grow with the square of the number of features.
MOST_ONE_HOT_FEATURES = 256


@dataclass(frozen=True)
class NetworkConfig:
    """Architecture of a `GrapeNetwork`. The defaults are the paper's.

    Parameters
    ----------
    layers : int
        Rounds of message passing, the paper's L.
    width : int
        Hidden units of nodes and messages.
    edge_width : int
        Hidden units of edges.
    aggregation : {"mean", "max", "sum"}
        How a node gathers its messages, the paper's AGG.
    activation : {"relu", "gelu", "silu", "tanh"}
        The non-linearity everywhere.
    normalization : {"l2", "layer", "none"}
        What follows every node update.
    residual : bool
        Whether a node update is added to the node's previous state.
    directed_edges : bool
        Whether an edge has one state per direction, or one state for both.
    shared_directions : bool
        Whether observations and features use the same P and Q.
    value_embedding : bool
        Whether edges start from a learned embedding of their value, with weights of their own for
        every feature, instead of the value itself.
    feature_init : {"auto", "one_hot", "embedding"}
        First state of the feature nodes. ``"auto"`` is one-hot up to 256 features.
    post_layers : bool
        Whether a two-layer perceptron follows the last round.
    head_width : int
        Hidden units of O_edge; 0 makes it linear.
    own_outputs : bool
        Whether every continuous feature has an output vector of its own in O_edge.
    labels : {"node", "feature"}
        How labels are predicted, if there are any: by O_node from the imputed row, or as features
        whose cells are edges like all others, so that what is known of them helps to fill in the
        rest.

    Examples
    --------
    >>> NetworkConfig(layers=2, width=16, edge_width=16).layers
    2
    """

    layers: int = 3
    width: int = 64
    edge_width: int = 64
    aggregation: Aggregation = "mean"
    activation: Activation = "relu"
    normalization: Normalization = "l2"
    residual: bool = False
    directed_edges: bool = True
    shared_directions: bool = True
    value_embedding: bool = False
    feature_init: FeatureInit = "auto"
    post_layers: bool = True
    head_width: int = 64
    own_outputs: bool = False
    labels: Labels = "node"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("layers", "width", "edge_width"):
            if getattr(self, name) < 1:
                raise ConfigError(f"NetworkConfig.{name} must be at least 1.")
        if self.head_width < 0:
            raise ConfigError("NetworkConfig.head_width must be 0 (linear) or more.")

    def one_hot_features(self, n_features: int) -> bool:
        """Whether feature nodes start one-hot rather than from a learned embedding."""
        if self.feature_init == "auto":
            return n_features <= MOST_ONE_HOT_FEATURES
        return self.feature_init == "one_hot"

    def make_activation(self) -> nn.Module:
        """Return the non-linearity as a module."""
        return ACTIVATIONS[self.activation]()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)


def linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """Return ``nn.Linear`` with torch's usual initialisation, drawn from a given generator."""
    # Made without memory first: nn.Linear's own draw would touch the global generator.
    layer = nn.Linear(inputs, outputs, device="meta", dtype=torch.float32).to_empty(device="cpu")
    bound = inputs**-0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


def normal(rows: int, columns: int, generator: torch.Generator) -> nn.Parameter:
    """Return a parameter of standard normal numbers, drawn from a given generator."""
    return nn.Parameter(torch.randn(rows, columns, generator=generator, dtype=torch.float32))
