"""The observed cells of a wide table as a list: memory grows with them, not with the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from grapefill.graph.cells import Slots

__all__ = ["EdgeCells"]


@dataclass(frozen=True)
class EdgeCells:
    """Rows of a table of numbers, of which only the observed cells are stored.

    Parameters
    ----------
    observation, feature : Tensor of int, shape (edges,)
        Row and column of every observed cell, sorted by row and then by column.
    value : Tensor of shape (edges,)
        Its scaled value.
    n_observations, n_features : int
        Shape of the table.

    Examples
    --------
    >>> row, column = torch.tensor([0, 0, 2]), torch.tensor([1, 3, 0])
    >>> cells = EdgeCells(row, column, torch.tensor([0.5, 1.0, 2.0]), 3, 4)
    >>> cells.take(torch.tensor([2, 0])).value.tolist()
    [2.0, 0.5, 1.0]
    """

    observation: Tensor
    feature: Tensor
    value: Tensor
    n_observations: int
    n_features: int

    @cached_property
    def at_observation(self) -> Tensor:
        """Number of observed cells of every row."""
        return torch.bincount(self.observation, minlength=self.n_observations)

    @cached_property
    def at_feature(self) -> Tensor:
        """Number of observed cells of every column."""
        return torch.bincount(self.feature, minlength=self.n_features)

    @cached_property
    def _ends(self) -> Tensor:
        return self.at_observation.cumsum(0)

    @property
    def density(self) -> float:
        """Share of the cells that are observed."""
        return self.value.shape[0] / max(1, self.n_observations * self.n_features)

    def edges_of(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the edges of some rows, row by row, and for each edge which of the rows it is."""
        counts = self.at_observation[rows]
        starts = self._ends[rows] - counts
        which = torch.repeat_interleave(torch.arange(rows.shape[0], device=rows.device), counts)
        before = counts.cumsum(0) - counts
        edges = torch.arange(which.shape[0], device=rows.device) + (starts - before)[which]
        return edges, which

    def take(self, rows: Tensor) -> EdgeCells:
        """Return some of the rows, in the order given."""
        edges, which = self.edges_of(rows)
        return EdgeCells(
            which, self.feature[edges], self.value[edges], rows.shape[0], self.n_features
        )

    def hide(self, hidden: Tensor) -> EdgeCells:
        """Return the cells without the edges that ``hidden`` marks."""
        kept = ~hidden
        return EdgeCells(
            self.observation[kept],
            self.feature[kept],
            self.value[kept],
            self.n_observations,
            self.n_features,
        )

    def slots(self, slots: Slots) -> Tensor | None:
        """Return the slot of every edge, None when all have slot 0."""
        if not any(slots.first):
            return None
        return torch.tensor(slots.first, device=self.value.device)[self.feature]
