r"""GC-MC (van den Berg, Kipf, Welling: Graph convolutional matrix completion, 2017).

Every user and item has a weight vector of its own for every level r; a node's state stacks the
means of what it receives by level, and a dense layer follows. Where friends of a user or items like
an item are known, :math:`f_i` are their shares, and have a dense layer of their own; users and
items do not share dense layers:

.. math::

    h_i = \mathrm{ReLU}\Big(\Big\Vert_r \frac{1}{|N_i|} \sum_{j \in N_{i,r}} W_r x_j\Big), \qquad
    z_i = W h_i + V\, \mathrm{ReLU}(U f_i + b), \qquad
    p(r | u, v) \propto \exp(z_u^\top Q_r z_v), \quad Q_r = \sum_s a_{rs} P_s

Cross-entropy on all ratings, whole nodes dropped at random, Adam at .01, predictions are
expectations. Widths as in the authors' code for these sets: 500 before and 75 after the dense
layer, 64 for side information. Its published figures are with side information.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.ratings.data import Ratings, root_mean_square

EVERY = 10
SIDE = 64


class Side(nn.Module):
    """What side information adds to the states of users or items; 0 if there is none."""

    def __init__(self, graph: Tensor | None, width: int) -> None:
        super().__init__()
        self.graph = graph
        if graph is not None:
            self.first = nn.Linear(graph.shape[1], SIDE)
            self.second = nn.Linear(SIDE, width, bias=False)

    def forward(self, dropout: float) -> Tensor:
        if self.graph is None:
            return torch.zeros(())
        state = F.relu(torch.sparse.mm(self.graph, self.first.weight.T) + self.first.bias)
        added: Tensor = self.second(F.dropout(state, dropout, self.training))
        return added


class Network(nn.Module):
    """States of users and items, and the levels of pairs of them."""

    def __init__(self, ratings: Ratings, hidden: int, width: int, bases: int) -> None:
        super().__init__()
        levels = len(ratings.values)
        self.part = max(1, hidden // levels)
        for name, nodes in (("users", ratings.n_users), ("items", ratings.n_items)):
            weight = nn.Parameter(torch.empty(levels, nodes, self.part))
            setattr(self, name, nn.init.normal_(weight, std=(2 / (nodes + self.part)) ** 0.5))
        self.user_dense = nn.Linear(levels * self.part, width, bias=False)
        self.item_dense = nn.Linear(levels * self.part, width, bias=False)
        sides = [ratings.like_users, ratings.like_items]
        if any(side is not None for side in sides):
            # Without a graph on one side, everybody there is like nobody else.
            sizes = (ratings.n_users, ratings.n_items)
            sides = [
                torch.eye(size).to_sparse() if side is None else side
                for side, size in zip(sides, sizes, strict=True)
            ]
        self.like_users, self.like_items = Side(sides[0], width), Side(sides[1], width)
        self.bilinear = nn.Parameter(torch.empty(bases, width, width))
        nn.init.orthogonal_(self.bilinear)
        self.mixing = nn.Parameter(torch.randn(levels, bases) * 0.1)

    def forward(self, graph: Ratings, pairs: Ratings, dropout: float) -> Tensor:
        to_users = (graph.item, graph.user, graph.n_users)
        to_items = (graph.user, graph.item, graph.n_items)
        users = self._receive(self.items, *to_users, level=graph.level, dropout=dropout)
        items = self._receive(self.users, *to_items, level=graph.level, dropout=dropout)
        users = self.user_dense(users) + self.like_users(dropout)
        items = self.item_dense(items) + self.like_items(dropout)
        left, right = users[pairs.user], items[pairs.item]
        each = torch.stack([(left @ base * right).sum(1) for base in self.bilinear], dim=1)
        return each @ self.mixing.T

    def _receive(
        self,
        weight: Tensor,
        source: Tensor,
        target: Tensor,
        targets: int,
        *,
        level: Tensor,
        dropout: float,
    ) -> Tensor:
        levels, nodes, part = weight.shape
        kept = F.dropout(torch.ones(nodes), dropout, self.training)
        messages = weight.reshape(levels * nodes, part)[level * nodes + source]
        messages = messages * kept[source, None]
        slot = target * levels + level
        total = torch.zeros(targets * levels, part).index_add(0, slot, messages)
        count = torch.bincount(target, minlength=targets).clamp(min=1)
        state = F.relu(total.view(targets, levels * part) / count[:, None])
        return F.dropout(state, dropout, self.training)


@dataclass
class GCMC:
    """Predicts ratings by graph convolutional matrix completion.

    Parameters
    ----------
    seed : int
        Source of all randomness.
    steps : int
        At most so many, each on all ratings; a tenth of them, held out at first, tells how many.
    hidden, width, bases, dropout, rate
        As in the authors' code.
    """

    seed: int = 0
    steps: int = 400
    hidden: int = 500
    width: int = 75
    bases: int = 2
    dropout: float = 0.7
    rate: float = 0.01

    def fit_predict(self, train: Ratings, asked: Ratings) -> Tensor:
        """Return the predicted ratings of other pairs."""
        rest, held_out = train.split(0.1, torch.Generator().manual_seed(self.seed))
        errors = self._train(rest, held_out, self.steps)[1]
        self.chosen_steps = EVERY * (errors.index(min(errors)) + 1) if errors else self.steps
        network, _ = self._train(train, None, self.chosen_steps)
        return self._predict(network, train, asked)

    def _train(
        self, ratings: Ratings, watch: Ratings | None, steps: int
    ) -> tuple[Network, list[float]]:
        errors: list[float] = []
        with torch.random.fork_rng([]):
            torch.manual_seed(self.seed)
            network = Network(ratings, self.hidden, self.width, self.bases)
            optimizer = torch.optim.Adam(network.parameters(), lr=self.rate)
            for step in range(1, steps + 1):
                loss = F.cross_entropy(network(ratings, ratings, self.dropout), ratings.level)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if watch is not None and step % EVERY == 0:
                    errors.append(root_mean_square(self._predict(network, ratings, watch), watch))
        return network, errors

    def _predict(self, network: Network, train: Ratings, asked: Ratings) -> Tensor:
        network.eval()
        with torch.no_grad():
            said = network(train, asked, 0.0)
        network.train()
        return said.softmax(1) @ asked.values
