"""The graph neural network: message passing, heads, configuration. Knows nothing of estimators."""

from grapefill.nn.config import NetworkConfig
from grapefill.nn.conv import BipartiteConv, EdgeState
from grapefill.nn.heads import EdgeHead, NodeHead, Prediction
from grapefill.nn.network import FeatureStates, GrapeNetwork

__all__ = [
    "BipartiteConv",
    "EdgeHead",
    "EdgeState",
    "FeatureStates",
    "GrapeNetwork",
    "NetworkConfig",
    "NodeHead",
    "Prediction",
]
