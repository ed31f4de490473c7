"""The paper's network as one would first write it: gather and scatter over directed edges.

The yardstick of `benchmarks.speed`: the same equations as preset "paper", both directions of every
edge in one list, concatenations written out, nothing computed ahead. It comes in two variants:
``nodes[index]``, as the original code has it, and ``index_select``, whose gradient torch computes
faster on a CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

if TYPE_CHECKING:
    from collections.abc import Callable


def _index(nodes: Tensor, index: Tensor) -> Tensor:
    return nodes[index]


def _select(nodes: Tensor, index: Tensor) -> Tensor:
    return nodes.index_select(0, index)


class PlainNetwork(nn.Module):
    """Three layers of message passing, mean aggregation, and O_edge."""

    def __init__(
        self,
        n_features: int,
        width: int = 64,
        layers: int = 3,
        gather: Callable[[Tensor, Tensor], Tensor] = _index,
    ) -> None:
        super().__init__()
        self.gather = gather
        self.messages, self.updates, self.edge_updates = (nn.ModuleList() for _ in range(3))
        node, edge = n_features, 1
        for _ in range(layers):
            self.messages.append(nn.Linear(node + edge, width))
            self.updates.append(nn.Linear(width + node, width))
            self.edge_updates.append(nn.Linear(2 * width + edge, width))
            node = edge = width
        self.post = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.o_edge = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, values: Tensor, kept: Tensor, wanted: Tensor) -> Tensor:
        """Predict the wanted cells from the kept ones."""
        n_rows, n_features = values.shape
        row, column = kept.nonzero(as_tuple=True)
        source = torch.cat([row, column + n_rows])
        target = torch.cat([column + n_rows, row])
        edges = values[row, column].repeat(2)[:, None]
        nodes = torch.cat([torch.ones(n_rows, n_features), torch.eye(n_features)])
        degree = torch.zeros(len(nodes)).index_add_(0, target, torch.ones(len(target)))
        for message, update, edge_update in zip(
            self.messages, self.updates, self.edge_updates, strict=True
        ):
            sent = F.relu(message(torch.cat([self.gather(nodes, source), edges], dim=1)))
            total = torch.zeros(len(nodes), sent.shape[1]).index_add_(0, target, sent)
            mean = total / degree.clamp(min=1)[:, None]
            nodes = F.normalize(F.relu(update(torch.cat([mean, nodes], dim=1))))
            ends = [self.gather(nodes, source), self.gather(nodes, target)]
            edges = F.relu(edge_update(torch.cat([*ends, edges], dim=1)))
        nodes = self.post(nodes)
        row, column = wanted.nonzero(as_tuple=True)
        ends = [self.gather(nodes, row), self.gather(nodes, column + n_rows)]
        cells: Tensor = self.o_edge(torch.cat(ends, dim=1))
        return cells[:, 0]


class PlainTraining:
    """Adam steps of the plain network on one table."""

    gather = staticmethod(_index)

    def __init__(self, values: Tensor, observed: Tensor, dropout: float = 0.3) -> None:
        self.values, self.observed, self.dropout = values, observed, dropout
        self.network = PlainNetwork(values.shape[1], gather=self.gather)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=0.001)

    def step(self) -> float:
        """Take one step over the whole table."""
        kept = self.observed & (torch.rand(self.values.shape) >= self.dropout)
        predicted = self.network(self.values, kept, self.observed)
        loss = F.mse_loss(predicted, self.values[self.observed])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


class PlainSelectTraining(PlainTraining):
    """The same with ``index_select``."""

    gather = staticmethod(_select)
