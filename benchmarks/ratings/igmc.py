r"""IGMC (Zhang, Chen: Inductive matrix completion based on graph neural networks, ICLR 2020).

To predict a rating, look at its surroundings: the user, the item, the items that the user rated and
the users that rated the item, with all ratings among them but the one in question. Nodes start
from their role (user or item, in question or not), so nothing is learned of anybody in
particular. Four relational layers follow, and a perceptron on what the two nodes in question were
in each of them:

.. math::

    h_i^{(l)} = \tanh\Big(W_0 h_i^{(l-1)} + \sum_r \frac{1}{|N_i|} \sum_{j \in N_{i,r}}
        W_r h_j^{(l-1)}\Big), \qquad W_r = \sum_b a_{rb} V_b

Squared error, plus .001 times the squared differences of :math:`W_r` of adjacent levels; a fifth of
the edges of a surrounding is dropped in training; Adam at .001, 50 ratings a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

if TYPE_CHECKING:
    from benchmarks.ratings.data import Ratings

WIDTH = 32
LAYERS = 4
BASES = 4
ROLES = 4


class Surroundings(NamedTuple):
    """The surroundings of some ratings as one graph, every edge in both directions."""

    role: Tensor
    source: Tensor
    target: Tensor
    level: Tensor
    user: Tensor
    item: Tensor


class _Relational(nn.Module):
    def __init__(self, inputs: int, levels: int) -> None:
        super().__init__()
        self.own = nn.Linear(inputs, WIDTH)
        self.bases = nn.Parameter(torch.randn(BASES, inputs, WIDTH) * (inputs * BASES) ** -0.5)
        self.mixing = nn.Parameter(torch.randn(levels, BASES) * BASES**-0.5)

    def forward(self, states: Tensor, graph: Surroundings) -> Tensor:
        by_base = torch.einsum("ni,biw->nbw", states, self.bases)
        messages = torch.einsum("ebw,eb->ew", by_base[graph.source], self.mixing[graph.level])
        total = torch.zeros_like(by_base[:, 0]).index_add(0, graph.target, messages)
        count = torch.bincount(graph.target, minlength=len(states)).clamp(min=1)
        return torch.tanh(self.own(states) + total / count[:, None])

    def roughness(self) -> Tensor:
        """Return how much the maps of adjacent levels differ."""
        maps = torch.einsum("rb,biw->riw", self.mixing, self.bases)
        return (maps[1:] - maps[:-1]).square().sum()


class _Network(nn.Module):
    def __init__(self, levels: int) -> None:
        super().__init__()
        inputs = [ROLES] + [WIDTH] * (LAYERS - 1)
        self.layers = nn.ModuleList(_Relational(each, levels) for each in inputs)
        self.hidden = nn.Linear(2 * LAYERS * WIDTH, 128)
        self.output = nn.Linear(128, 1)

    def forward(self, graph: Surroundings) -> Tensor:
        states = F.one_hot(graph.role, ROLES).float()
        seen = []
        for layer in self.layers:
            states = layer(states, graph)
            seen.append(states)
        together = torch.cat(seen, dim=1)
        pair = torch.cat([together[graph.user], together[graph.item]], dim=1)
        hidden = F.dropout(F.relu(self.hidden(pair)), 0.5, self.training)
        said: Tensor = self.output(hidden)[:, 0]
        return said


@dataclass
class IGMC:
    """Predicts ratings from their surroundings.

    Parameters
    ----------
    seed : int
        Source of all randomness.
    steps, batch, rate
        Steps, ratings per step, learning rate.
    edge_dropout : float
        Share of the edges that a step hides.
    most_nodes : int
        At most so many users, and so many items, in a surrounding, drawn at random.
    """

    seed: int = 0
    steps: int = 4000
    batch: int = 50
    rate: float = 0.001
    edge_dropout: float = 0.2
    most_nodes: int = 100

    def fit_predict(self, train: Ratings, asked: Ratings) -> Tensor:
        """Return the predicted ratings of other pairs."""
        self._random = np.random.default_rng(self.seed)
        matrix = np.zeros((train.n_users, train.n_items), dtype=np.int16)
        matrix[train.user, train.item] = train.level + 1
        mean, spread = train.rating.mean(), train.rating.std()
        with torch.random.fork_rng([]):
            torch.manual_seed(self.seed)
            network = _Network(len(train.values))
            optimizer = torch.optim.Adam(network.parameters(), lr=self.rate)
            for step in range(self.steps):
                if step == self.steps * 3 // 4:
                    optimizer.param_groups[0]["lr"] = self.rate / 10
                rows = torch.from_numpy(self._random.choice(len(train), self.batch))
                chosen = train.take(rows)
                graph = self._surround(matrix, chosen, self.edge_dropout)
                loss = F.mse_loss(network(graph), (chosen.rating - mean) / spread)
                loss = loss + 0.001 * sum(layer.roughness() for layer in network.layers)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        network.eval()
        said = []
        with torch.no_grad():
            for rows in torch.arange(len(asked)).split(self.batch):
                said.append(network(self._surround(matrix, asked.take(rows), 0.0)))
        rating = torch.cat(said) * spread + mean
        return rating.clamp(asked.values[0], asked.values[-1])

    def _surround(self, matrix: np.ndarray, pairs: Ratings, dropout: float) -> Surroundings:
        roles, sources, targets, levels, user_at, item_at = [], [], [], [], [], []
        first = 0
        for user, item in zip(pairs.user.tolist(), pairs.item.tolist(), strict=True):
            users = self._others(np.flatnonzero(matrix[:, item]), user)
            items = self._others(np.flatnonzero(matrix[user]), item)
            block = matrix[np.ix_(users, items)]
            block[0, 0] = 0
            left, right = np.nonzero(block)
            levels.append(block[left, right] - 1)
            user_at.append(first)
            item_at.append(first + len(users))
            sources.append(left + first)
            targets.append(right + first + len(users))
            roles += [[0], np.full(len(users) - 1, 2), [1], np.full(len(items) - 1, 3)]
            first += len(users) + len(items)
        source, target, level = (
            torch.from_numpy(np.concatenate(each).astype(np.int64))
            for each in (sources, targets, levels)
        )
        if dropout:
            kept = torch.rand(len(level)) >= dropout
            source, target, level = source[kept], target[kept], level[kept]
        return Surroundings(
            torch.from_numpy(np.concatenate(roles).astype(np.int64)),
            torch.cat([source, target]),
            torch.cat([target, source]),
            torch.cat([level, level]),
            torch.tensor(user_at),
            torch.tensor(item_at),
        )

    def _others(self, nodes: np.ndarray, this: int) -> np.ndarray:
        """Return the node in question and the others, not too many."""
        others = nodes[nodes != this]
        if len(others) > self.most_nodes:
            others = self._random.choice(others, self.most_nodes, replace=False)
        return np.concatenate([[this], others])
