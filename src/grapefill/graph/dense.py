r"""The dense layout: every cell has a place in a block, a mask says which cells are edges.

Messages, edge states and predictions are blocks of shape (n_observations, n_features, width). No
index is followed: what a node sends is broadcast along an axis, what a node receives is a masked
reduction along the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from grapefill.graph.attributes import EdgeAttributes, finish

if TYPE_CHECKING:
    from grapefill.graph.cells import Cells, Slots


class DensePairs:
    """Every pair of an observation and a feature, as a block."""

    def __init__(self, n_observations: int, n_features: int) -> None:
        self.n_observations = n_observations
        self.n_features = n_features

    def spread(self, observations: Tensor | None, features: Tensor | None) -> Tensor:
        """Return ``observations[i] + features[j]`` for every pair, shape (n, m, width)."""
        if observations is None:
            assert features is not None
            return features.expand(self.n_observations, *features.shape)
        if features is None:
            return observations[:, None].expand(-1, self.n_features, -1)
        return observations[:, None] + features

    def concatenate(self, observations: Tensor, features: Tensor) -> Tensor:
        """Return ``concat(observations[i], features[j])`` for every pair."""
        shape = (self.n_observations, self.n_features, -1)
        return torch.cat([observations[:, None].expand(shape), features.expand(shape)], dim=-1)

    def of_feature(self, block: Tensor, feature: int) -> Tensor:
        """Return the part of a block that belongs to one feature."""
        return block[:, feature]

    def pick(self, matrix: Tensor) -> Tensor:
        """Read a (n_observations, n_features) matrix at the pairs."""
        return matrix


class DenseGraph(DensePairs, EdgeAttributes):
    """A graph as a block of cells with a mask.

    Parameters
    ----------
    cells : Cells
        The observed cells are the edges.
    slots : Slots
        The numbering of the edge attributes.
    """

    def __init__(self, cells: Cells, slots: Slots) -> None:
        DensePairs.__init__(self, cells.n_observations, cells.n_features)
        EdgeAttributes.__init__(self, cells.value, cells.slots(slots))
        self._edge = cells.observed.to(cells.value.dtype)
        self._at_observation = self._edge.sum(1, keepdim=True)
        self._at_feature = self._edge.sum(0)[:, None]

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return int(self._edge.sum())

    def to_observations(self, messages: Tensor, how: str) -> Tensor:
        """Aggregate the messages that reach every observation, shape (n, width)."""
        if how == "max":
            return _masked_max(messages, self._edge, dim=1)
        total = torch.bmm(self._edge[:, None], messages)[:, 0]
        return total / self._at_observation.clamp(min=1) if how == "mean" else total

    def to_features(self, messages: Tensor, how: str) -> Tensor:
        """Aggregate the messages that reach every feature, shape (m, width)."""
        return finish(*self.feature_totals(messages, how), how)

    def feature_totals(self, messages: Tensor, how: str) -> tuple[Tensor, Tensor]:
        """Return the unfinished aggregate of every feature and its number of edges.

        Totals of several blocks of rows add up (or, for ``"max"``, have a maximum) before
        `finish` makes the aggregate of the whole table.
        """
        if how == "max":
            return _masked_max(messages, self._edge, dim=0, empty=-torch.inf), self._at_feature
        # One small matrix product per feature beats multiplying the block by the mask.
        total = torch.bmm(self._edge.t()[:, None], messages.transpose(0, 1))[:, 0]
        return total, self._at_feature


def _masked_max(messages: Tensor, edge: Tensor, *, dim: int, empty: float = 0.0) -> Tensor:
    """Return the maximum over the edges along one axis, ``empty`` where there is none."""
    masked = messages.masked_fill(edge[..., None] == 0, -torch.inf)
    highest = masked.amax(dim)
    return torch.where(torch.isinf(highest), highest.new_tensor(empty), highest)
