r"""The edge-list layout: only the edges that exist, for sparse graphs.

Edges are sorted by observation, then by feature. Messages, edge states and predictions have shape
(n_edges, width). What reaches a node is a sum over a segment of a list of edges:
``embedding_bag`` is the fastest segment sum that torch has on a CPU, so both directions keep
their edge order and segment borders ready for it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from grapefill.graph.attributes import EdgeAttributes, finish
from grapefill.graph.sparse import EdgeCells

if TYPE_CHECKING:
    from grapefill.graph.cells import Cells, Slots


class PairList:
    """Some pairs of an observation and a feature, as two lists of indices."""

    def __init__(
        self, observation: Tensor, feature: Tensor, n_observations: int, n_features: int
    ) -> None:
        self.observation = observation
        self.feature = feature
        self.n_observations = n_observations
        self.n_features = n_features

    def spread(self, observations: Tensor | None, features: Tensor | None) -> Tensor:
        """Return ``observations[i] + features[j]`` for every pair, shape (pairs, width)."""
        if observations is None:
            assert features is not None
            return features.index_select(0, self.feature)
        if observations.shape[0] == 1 < self.n_observations:
            at_pairs = observations.expand(self.observation.shape[0], -1)
        else:
            at_pairs = observations.index_select(0, self.observation)
        if features is None:
            return at_pairs
        return at_pairs + features.index_select(0, self.feature)

    def concatenate(self, observations: Tensor, features: Tensor) -> Tensor:
        """Return ``concat(observations[i], features[j])`` for every pair."""
        return torch.cat([self.spread(observations, None), self.spread(None, features)], dim=-1)

    def of_feature(self, values: Tensor, feature: int) -> Tensor:
        """Return the part of per-pair values that belongs to one feature."""
        return values[self.feature == feature]

    def pick(self, matrix: Tensor) -> Tensor:
        """Read a (n_observations, n_features) matrix at the pairs."""
        return matrix[self.observation, self.feature]


class EdgeGraph(PairList, EdgeAttributes):
    """A graph as a list of its edges.

    Parameters
    ----------
    cells : Cells or EdgeCells
        The observed cells are the edges.
    slots : Slots
        The numbering of the edge attributes.
    """

    def __init__(self, cells: Cells | EdgeCells, slots: Slots) -> None:
        self._observed: Tensor | None = None
        if isinstance(cells, EdgeCells):
            PairList.__init__(
                self, cells.observation, cells.feature, cells.n_observations, cells.n_features
            )
            EdgeAttributes.__init__(self, cells.value, cells.slots(slots))
            self.at_observation, self.at_feature = cells.at_observation, cells.at_feature
            return
        observation, feature = cells.observed.nonzero(as_tuple=True)
        PairList.__init__(self, observation, feature, cells.n_observations, cells.n_features)
        slot = cells.slots(slots)
        if slot is not None:
            slot = slot[feature] if slot.ndim == 1 else self.pick(slot)
        EdgeAttributes.__init__(self, self.pick(cells.value), slot)
        self.at_observation = cells.observed.sum(1)
        self.at_feature = cells.observed.sum(0)
        self._observed = cells.observed

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.value.shape[0]

    @cached_property
    def by_feature(self) -> Tensor:
        """The edges' numbers, sorted by feature and then by observation."""
        if self._observed is None:
            return torch.argsort(self.feature, stable=True)
        number = (self._observed.flatten().cumsum(0) - 1).view_as(self._observed)
        return number.t()[self._observed.t()]

    @cached_property
    def observation_ends(self) -> Tensor:
        """Where the segment of every observation ends in the list of edges."""
        return self.at_observation.cumsum(0)

    @cached_property
    def feature_ends(self) -> Tensor:
        """Where the segment of every feature ends in `by_feature`."""
        return self.at_feature.cumsum(0)

    def to_observations(self, messages: Tensor, how: str) -> Tensor:
        """Aggregate the messages that reach every observation, shape (n, width)."""
        total = _segments(messages, self.observation, self.n_observations, how)
        return finish(total, self.at_observation[:, None], how)

    def to_features(self, messages: Tensor, how: str) -> Tensor:
        """Aggregate the messages that reach every feature, shape (m, width)."""
        return finish(*self.feature_totals(messages, how), how)

    def feature_totals(self, messages: Tensor, how: str) -> tuple[Tensor, Tensor]:
        """Return the unfinished aggregate of every feature and its number of edges."""
        total = _segments(messages, self.feature, self.n_features, how)
        return total, self.at_feature[:, None]


def _segments(messages: Tensor, node: Tensor, n_nodes: int, how: str) -> Tensor:
    """Sum (or take the maximum of) the messages of every node."""
    if how == "max":
        index = node[:, None].expand_as(messages)
        start = messages.new_full((n_nodes, messages.shape[1]), -torch.inf)
        return start.scatter_reduce(0, index, messages, "amax")
    start = messages.new_zeros(n_nodes, messages.shape[1])
    return start.index_add(0, node, messages)
