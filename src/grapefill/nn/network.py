r"""The whole network: INIT, L rounds of message passing, O_edge and O_node.

.. math::

    h_v^{(0)} = \begin{cases} \mathbf 1 & v \text{ an observation} \\
                \mathrm{OneHot} & v \text{ a feature} \end{cases}

There are two ways through it. `GrapeNetwork.encode` runs message passing on a whole graph, as in
training. `GrapeNetwork.encode_observations` encodes rows against feature states that
`GrapeNetwork.feature_states` has fixed, so that the result for a row does not depend on the other
rows. For the rows that the states were made of, both ways give the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor, nn

from grapefill.graph import (
    Cells,
    EdgeCells,
    EdgeGraph,
    Features,
    Graph,
    Pairs,
    Slots,
    build_graph,
    build_pairs,
)
from grapefill.graph.attributes import finish
from grapefill.nn.config import NetworkConfig, linear, normal
from grapefill.nn.conv import BipartiteConv, EdgeState
from grapefill.nn.fused import DirectedEdges, FusedConv
from grapefill.nn.heads import CustomEdgeHead, EdgeHead, NodeHead, Prediction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class FeatureStates(NamedTuple):
    """The states of the feature nodes, fixed: before and after every layer, and for the heads."""

    layers: tuple[Tensor, ...]
    final: Tensor


class GrapeNetwork(nn.Module):
    """The graph neural network of GRAPE.

    Parameters
    ----------
    features : Features
        The feature nodes.
    config : NetworkConfig
        The architecture.
    generator : torch.Generator
        Where the weights are drawn from.
    o_edge : nn.Module or None
        The user's own O_edge, see `CustomEdgeHead`.
    labels : Features or None
        The labels that O_node predicts, if there are any.
    o_node : nn.Module or None
        The user's own O_node, see `NodeHead`.

    Examples
    --------
    >>> network = GrapeNetwork(
    ...     Features((0, 0)), NetworkConfig(width=8, edge_width=8), torch.Generator().manual_seed(0)
    ... )
    >>> cells = Cells(torch.rand(5, 2), None, torch.ones(5, 2, dtype=torch.bool))
    >>> network(cells).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        features: Features,
        config: NetworkConfig,
        generator: torch.Generator,
        *,
        o_edge: nn.Module | None = None,
        labels: Features | None = None,
        o_node: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.features = features
        self.config = config
        width = config.width
        if config.one_hot_features(features.count):
            node_inputs = features.count
            self.register_buffer(
                "feature_init", torch.eye(node_inputs, dtype=torch.float32), persistent=False
            )
            self.feature_init: Tensor
        else:
            node_inputs = width
            self.feature_init = normal(features.count, width, generator)
        # An embedded value has weights of its own for every feature.
        self.slots = Slots(features, shared=not config.value_embedding)
        edge_inputs = self.slots.count
        if config.value_embedding:
            edge_inputs = config.edge_width
            self.slot_weight = normal(config.edge_width, self.slots.count, generator)
            self.slot_bias = normal(self.slots.count, config.edge_width, generator)
        self.convs = nn.ModuleList()
        for layer in range(config.layers):
            conv = BipartiteConv(
                node_inputs,
                edge_inputs,
                config,
                update_edges=layer < config.layers - 1,
                generator=generator,
            )
            self.convs.append(conv)
            node_inputs, edge_inputs = width, config.edge_width
        self.post: nn.Module = nn.Identity()
        if config.post_layers:
            self.post = nn.Sequential(
                linear(width, width, generator),
                config.make_activation(),
                linear(width, width, generator),
            )
        self.o_edge: nn.Module = (
            EdgeHead(features, config, generator)
            if o_edge is None
            else CustomEdgeHead(o_edge, features)
        )
        self.o_node = None
        if labels is not None:
            self.o_node = NodeHead(features, labels, generator, o_node)

    def forward(self, cells: Cells) -> Tensor:
        """Return the imputed rows of a table, for use inside a larger torch module.

        Parameters
        ----------
        cells : Cells
            Rows of a table.

        Returns
        -------
        Tensor of shape (n_observations, places)
            One place for a continuous feature, one per category for a discrete one.
        """
        prediction = self.predict_cells(cells)
        return prediction.imputed_rows(self.features)

    def predict_cells(self, cells: Cells) -> Prediction:
        """Predict every cell, from the graph of these rows alone."""
        observations, features = self.encode(self.graph(cells, "dense"))
        return self.predict(observations, features, build_pairs(cells.observed, "dense"))

    def graph(self, cells: Cells | EdgeCells, layout: Literal["dense", "edges"]) -> Graph:
        """Make the graph of some rows, as this network reads it."""
        if isinstance(cells, EdgeCells):
            return EdgeGraph(cells, self.slots)
        return build_graph(cells, self.slots, layout)

    def predict(self, observations: Tensor, features: Tensor, pairs: Pairs) -> Prediction:
        """Predict pairs of nodes from their final states."""
        prediction: Prediction = self.o_edge(observations, features, pairs)
        return prediction

    def predict_labels(self, prediction: Prediction) -> Prediction:
        """Predict labels from the imputed rows; ``prediction`` is of all pairs, densely."""
        assert self.o_node is not None, "this network was built without O_node"
        labels: Prediction = self.o_node(prediction.imputed_rows(self.features))
        return labels

    def encode(self, graph: Graph) -> tuple[Tensor, Tensor]:
        """Return the final states of observations and features of a whole graph."""
        if isinstance(graph, EdgeGraph) and self._fusible(graph):
            return self._encode_fused(graph)
        observations, features = self._first_observation(), self.feature_init
        edges = self._first_edges(graph)
        for conv in self.convs:
            observations, features, edges = conv(graph, observations, features, edges)
        return self.post(observations), self.post(features)

    def encode_observations(self, graph: Graph, states: FeatureStates) -> Tensor:
        """Return the final states of observations, given fixed states of the features."""
        observations, _ = self._observe(graph, states.layers, observations_only=True)
        final: Tensor = self.post(observations)
        return final

    def feature_states(
        self,
        blocks: Callable[[], Iterable[Graph]],
        *,
        gather: Callable[[Tensor, str], Tensor] | None = None,
    ) -> FeatureStates:
        """Return the states of the features on the graph of many rows, block by block.

        Parameters
        ----------
        blocks : callable
            Gives the graphs of consecutive blocks of rows, anew at every call: one pass over the
            table for each layer, so memory does not grow with the number of rows.
        gather : callable or None
            Puts the totals of processes that have other rows together: their ``"sum"``, or their
            ``"max"``.
        """
        how = self.config.aggregation
        states = [self.feature_init.detach().clone()]
        for conv in self.convs:
            assert isinstance(conv, BipartiteConv)
            total = count = None
            for graph in blocks():
                observations, edges = self._observe(graph, tuple(states))
                messages = conv.messages_to_features(graph, observations, edges.to_features)
                # On the CPU, since not every device has float64; a feature's totals are small.
                part, edge_count = (
                    each.detach().cpu().double() for each in graph.feature_totals(messages, how)
                )
                if total is None or count is None:
                    total, count = part, edge_count
                else:
                    total = torch.maximum(total, part) if how == "max" else total + part
                    count = count + edge_count
            assert total is not None, "no rows"
            assert count is not None, "no rows"
            if gather is not None:
                total = gather(total, "max" if how == "max" else "sum")
                count = gather(count, "sum")
            received = finish(total, count, how).to(states[-1])
            states.append(conv.update_feature_nodes(states[-1], received).detach())
        return FeatureStates(tuple(states), self.post(states[-1]).detach())

    def _observe(
        self, graph: Graph, states: tuple[Tensor, ...], *, observations_only: bool = False
    ) -> tuple[Tensor, EdgeState]:
        """Run as many layers as there are feature states to meet."""
        observations, edges = self._first_observation(), self._first_edges(graph)
        for conv, before, after in zip(self.convs, states[:-1], states[1:], strict=False):
            assert isinstance(conv, BipartiteConv)
            observations = conv.observe(graph, observations, before, edges.to_observations)
            edges = conv.update_edges(
                graph, observations, after, edges, observations_only=observations_only
            )
        return observations, edges

    def _first_observation(self) -> Tensor:
        """Return the state that all observations start from, as one row."""
        return self.feature_init.new_ones(1, self.feature_init.shape[1])

    def _first_edges(self, graph: Graph) -> EdgeState:
        if not self.config.value_embedding:
            return EdgeState(None, None)
        embedded = graph.attribute(self.slot_weight) + graph.slot_rows(self.slot_bias)
        state = nn.functional.relu(embedded)
        return EdgeState(state, state)

    def _fusible(self, graph: EdgeGraph) -> bool:
        config = self.config
        paper_like = (
            config.activation == "relu"
            and config.aggregation == "mean"
            and config.normalization == "l2"
            and config.directed_edges
            and config.shared_directions
            and not config.residual
            and not config.value_embedding
        )
        one_number = self.slots.count == 1
        return paper_like and one_number and graph.value.device.type == "cpu"

    def _encode_fused(self, graph: EdgeGraph) -> tuple[Tensor, Tensor]:
        first = self._first_observation().expand(graph.n_observations, -1)
        nodes = torch.cat([first, self.feature_init])
        values = graph.value.expand(2, -1)[..., None]
        directed = DirectedEdges(graph)
        for conv in self.convs:
            assert isinstance(conv, BipartiteConv)
            edge_update = conv.edge_update
            nodes, values = FusedConv.apply(  # type: ignore[no-untyped-call]
                nodes,
                values,
                conv.message.weight,
                conv.message.bias,
                conv.update.weight,
                conv.update.bias,
                None if edge_update is None else edge_update.weight,
                None if edge_update is None else edge_update.bias,
                directed,
            )
        final = self.post(nodes)
        return final[: graph.n_observations], final[graph.n_observations :]
