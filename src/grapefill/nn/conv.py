r"""One round of message passing on the bipartite graph.

.. math::

    n_v^{(l)} &= \mathrm{AGG}\big(\sigma(P^{(l)} \cdot [h_u^{(l-1)}, e_{uv}^{(l-1)}])
                 \mid u \in \mathcal{N}(v)\big) \\
    h_v^{(l)} &= \sigma(Q^{(l)} \cdot [n_v^{(l)}, h_v^{(l-1)}]) \\
    e_{uv}^{(l)} &= \sigma(W^{(l)} \cdot [h_u^{(l)}, h_v^{(l)}, e_{uv}^{(l-1)}])

A message reads its source node and its edge. Every map of a concatenation is split into a node
part, computed once per node, and an edge part. With directed edges an edge has a state for each
direction and W reads (source, target, edge); otherwise it has one and W reads (observation,
feature, edge).

Shapes: observations (n, width), features (m, width), edges in the graph's layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from grapefill.graph.attributes import add_nodes
from grapefill.nn.config import NetworkConfig, linear

if TYPE_CHECKING:
    from grapefill.graph import Graph


class EdgeState(NamedTuple):
    """The states of the edges; None stands for the attributes the graph came with."""

    to_observations: Tensor | None
    to_features: Tensor | None


class BipartiteConv(nn.Module):
    """One layer: messages P, node update Q, edge update W.

    Parameters
    ----------
    node_inputs, edge_inputs : int
        Widths of the incoming node and edge states.
    config : NetworkConfig
        The architecture.
    update_edges : bool
        Whether a later layer reads the edges; the last layer has no W.
    generator : torch.Generator
        Where the weights are drawn from.
    """

    def __init__(
        self,
        node_inputs: int,
        edge_inputs: int,
        config: NetworkConfig,
        *,
        update_edges: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.config = config
        self.node_inputs = node_inputs
        width = config.width

        def pair() -> tuple[nn.Linear, nn.Linear]:
            return (
                linear(node_inputs + edge_inputs, width, generator),
                linear(width + node_inputs, width, generator),
            )

        self.message, self.update = pair()
        if not config.shared_directions:
            self.message_to_features, self.update_features = pair()
        if update_edges:
            self.edge_update: nn.Linear | None = linear(
                2 * width + edge_inputs, config.edge_width, generator
            )
        else:
            self.edge_update = None
        self.norm = None
        if config.normalization == "layer":
            self.norm = nn.LayerNorm(width, dtype=torch.float32)
        self.activation = config.make_activation()
        if isinstance(self.activation, nn.ReLU):
            self.activation = nn.ReLU(inplace=True)

    def forward(
        self, graph: Graph, observations: Tensor, features: Tensor, edges: EdgeState
    ) -> tuple[Tensor, Tensor, EdgeState]:
        """Run the layer on a whole graph; returns new observations, features and edges."""
        new_observations = self.observe(graph, observations, features, edges.to_observations)
        messages = self.messages_to_features(graph, observations, edges.to_features)
        received = graph.to_features(messages, self.config.aggregation)
        new_features = self.update_feature_nodes(features, received)
        return (
            new_observations,
            new_features,
            self.update_edges(graph, new_observations, new_features, edges),
        )

    def observe(
        self, graph: Graph, observations: Tensor, features: Tensor, edges: Tensor | None
    ) -> Tensor:
        """Return the new states of the observations, which hear from the features."""
        messages = self._messages(graph, self.message, edges, features=features)
        received = graph.to_observations(messages, self.config.aggregation)
        return self._update(self.update, received, observations)

    def messages_to_features(
        self, graph: Graph, observations: Tensor, edges: Tensor | None
    ) -> Tensor:
        """Return the messages from observations to features, one per edge."""
        shared = self.config.shared_directions
        message = self.message if shared else self.message_to_features
        return self._messages(graph, message, edges, observations=observations)

    def update_feature_nodes(self, features: Tensor, received: Tensor) -> Tensor:
        """Return the new states of the features, given what they received."""
        shared = self.config.shared_directions
        return self._update(self.update if shared else self.update_features, received, features)

    def update_edges(
        self,
        graph: Graph,
        observations: Tensor,
        features: Tensor,
        edges: EdgeState,
        *,
        observations_only: bool = False,
    ) -> EdgeState:
        """Return the new states of the edges.

        Encoding rows against fixed features needs only the edges towards observations
        (``observations_only``).
        """
        if self.edge_update is None:
            return edges
        if not self.config.directed_edges:
            both = self._edge_update(
                graph, observations, features, edges.to_observations, from_features=False
            )
            return EdgeState(both, both)
        to_observations = self._edge_update(
            graph, observations, features, edges.to_observations, from_features=True
        )
        if observations_only:
            return EdgeState(to_observations, None)
        to_features = self._edge_update(
            graph, observations, features, edges.to_features, from_features=False
        )
        return EdgeState(to_observations, to_features)

    def _messages(
        self,
        graph: Graph,
        message: nn.Linear,
        edges: Tensor | None,
        *,
        observations: Tensor | None = None,
        features: Tensor | None = None,
    ) -> Tensor:
        node_weight, edge_weight = message.weight.tensor_split((self.node_inputs,), dim=1)

        def node_part(states: Tensor | None) -> Tensor | None:
            return None if states is None else F.linear(states, node_weight, message.bias)

        total = _edge_part(graph, edges, edge_weight)
        add_nodes(graph, total, node_part(observations), node_part(features))
        return self._activate(total)

    def _edge_update(
        self,
        graph: Graph,
        observations: Tensor,
        features: Tensor,
        edges: Tensor | None,
        *,
        from_features: bool,
    ) -> Tensor:
        assert self.edge_update is not None
        width = self.config.width
        source, target, edge = self.edge_update.weight.tensor_split((width, 2 * width), dim=1)
        for_observation, for_feature = (target, source) if from_features else (source, target)
        total = _edge_part(graph, edges, edge)
        add_nodes(
            graph,
            total,
            F.linear(observations, for_observation, self.edge_update.bias),
            F.linear(features, for_feature),
        )
        return self._activate(total)

    def _update(self, update: nn.Linear, received: Tensor, states: Tensor) -> Tensor:
        for_message, for_node = update.weight.tensor_split((self.config.width,), dim=1)
        total = F.linear(received, for_message) + F.linear(states, for_node, update.bias)
        # The sum is left without activation, or residual states could only grow. The first
        # layer has nothing to add to when nodes start narrower or wider.
        residual = self.config.residual and self.node_inputs == self.config.width
        new = total + states if residual else self._activate(total)
        if self.config.normalization == "l2":
            return F.normalize(new, dim=-1)
        return new if self.norm is None else self.norm(new)

    def _activate(self, total: Tensor) -> Tensor:
        activated: Tensor = self.activation(total)
        return activated


def _edge_part(graph: Graph, edges: Tensor | None, weight: Tensor) -> Tensor:
    """Return the linear map of the edges' states, or of the attributes before the first layer."""
    return graph.attribute(weight) if edges is None else F.linear(edges, weight)
