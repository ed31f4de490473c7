r"""GRAPE on ratings, as in the paper's appendix: an edge list and learned feature embeddings.

The layers are grapefill's own (`grapefill.nn.conv`). A rating is an edge, either one-hot with
cross-entropy or a number with squared error. Items start from learned embeddings, users from one
state for all. Every step drops edges and learns from those dropped. O_edge reads
:math:`[h_u, h_v, h_u \odot h_v]`; one-hot ratings are decoded by their expectation or by the most
likely level, whichever is better on a tenth of the ratings that is held out at first. The same
tenth tells how many steps to take; then training starts afresh on all ratings, several times with
different seeds, and the predictions are averaged.

Most users and items have few ratings, and what a network must learn first is their means. With
`on_biases` it starts from there: an edge is the rest that `benchmarks.ratings.biases` leaves,
fitted anew in every step to the edges that dropout keeps, and O_edge, which starts at zero,
predicts the rest of the others. With `places` INIT knows where in the graph of all ratings to
learn from a node is, those included that a step hides. With `factor_rounds` the prediction is a
mean with that of `benchmarks.ratings.factors`; its weight is chosen on the held-out tenth, for a
single network.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.ratings.biases import FittedBiases, choose_strengths
from benchmarks.ratings.data import Ratings, root_mean_square
from benchmarks.ratings.factors import GraphFactors
from benchmarks.ratings.places import find_places
from grapefill.graph.attributes import EdgeAttributes, finish
from grapefill.graph.edges import PairList
from grapefill.nn import NetworkConfig
from grapefill.nn.config import linear, normal
from grapefill.nn.conv import BipartiteConv, EdgeState

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY = 10
# Weights of the network that are tried beside factors.
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


class RatingGraph(PairList, EdgeAttributes):
    """The graph of some ratings.

    Parameters
    ----------
    ratings : Ratings
        The edges.
    discrete : bool
        Whether an edge is a one-hot level or a number.
    """

    def __init__(
        self, ratings: Ratings, *, discrete: bool, biases: FittedBiases | None = None
    ) -> None:
        PairList.__init__(self, ratings.user, ratings.item, ratings.n_users, ratings.n_items)
        ones = torch.ones(len(ratings))
        self.biases = biases
        value = ones if discrete else self.scaled(ratings)
        EdgeAttributes.__init__(self, value, ratings.level if discrete else None)
        self.at_observation = torch.zeros(ratings.n_users).index_add(0, ratings.user, ones)
        self.at_feature = torch.zeros(ratings.n_items).index_add(0, ratings.item, ones)

    def scaled(self, ratings: Ratings) -> Tensor:
        """Return ratings as the network reads and predicts them, most between -1 and 1."""
        return (ratings.rating - self._centre(ratings)) / _unit(ratings)

    def unscaled(self, said: Tensor, pairs: Ratings) -> Tensor:
        """Return predictions as ratings."""
        rating = said * _unit(pairs) + self._centre(pairs)
        return rating.clamp(pairs.values[0], pairs.values[-1])

    def _centre(self, pairs: Ratings) -> Tensor:
        if self.biases is not None:
            return self.biases(pairs)
        return (pairs.values[0] + pairs.values[-1]) / 2

    def to_observations(self, messages: Tensor, how: str) -> Tensor:
        """Aggregate the messages that reach every user."""
        start = messages.new_zeros(self.n_observations, messages.shape[1])
        return finish(
            start.index_add(0, self.observation, messages), self.at_observation[:, None], how
        )

    def to_features(self, messages: Tensor, how: str) -> Tensor:
        """Aggregate the messages that reach every item."""
        start = messages.new_zeros(self.n_features, messages.shape[1])
        return finish(start.index_add(0, self.feature, messages), self.at_feature[:, None], how)


def _unit(ratings: Ratings) -> Tensor:
    return (ratings.values[-1] - ratings.values[0]) / 2


class RatingNetwork(nn.Module):
    """INIT, layers of message passing, and O_edge.

    Parameters
    ----------
    ratings : Ratings
        What it is to learn from.
    config : NetworkConfig
        Layers and widths.
    generator : torch.Generator
        Source of the first weights.
    discrete : bool
        Whether an edge is a one-hot level or a number.
    places : int
        Singular vectors that tell INIT where a node is.
    """

    def __init__(
        self,
        ratings: Ratings,
        config: NetworkConfig,
        generator: torch.Generator,
        *,
        discrete: bool,
        places: int = 0,
    ) -> None:
        super().__init__()
        self.discrete = discrete
        levels = len(ratings.values) if discrete else 1
        width, edge_inputs = config.width, levels
        self.user = normal(1, width, generator)
        self.items = normal(ratings.n_items, width, generator)
        found = find_places(ratings, places) if places else ()
        self.places = [torch.from_numpy(side).float() for side in found]
        self.from_places = nn.ModuleList(
            linear(side.shape[1], width, generator) for side in self.places
        )
        self.convs = nn.ModuleList()
        for layer in range(config.layers):
            last = layer == config.layers - 1
            self.convs.append(
                BipartiteConv(
                    width, edge_inputs, config, update_edges=not last, generator=generator
                )
            )
            edge_inputs = config.edge_width
        self.hidden = linear(3 * width, config.head_width, generator)
        self.output = linear(config.head_width, levels, generator)
        with torch.no_grad():
            self.output.weight.zero_()
            self.output.bias.zero_()
        self.activation = config.make_activation()

    def forward(self, graph: RatingGraph, pairs: Ratings, dropout: float = 0.0) -> Tensor:
        """Return logits of levels, or scaled ratings, of pairs of a user and an item."""
        users, items = self.user.expand(graph.n_observations, -1), self.items
        if self.from_places:
            of_users, of_items = self.from_places
            users, items = users + of_users(self.places[0]), items + of_items(self.places[1])
        edges = EdgeState(None, None)
        for conv in self.convs:
            users, items, edges = conv(graph, users, items, edges)
        left, right = users[pairs.user], items[pairs.item]
        together = torch.cat([left, right, left * right], dim=1)
        together = F.dropout(together, dropout, self.training)
        said: Tensor = self.output(self.activation(self.hidden(together)))
        return said if self.discrete else said[:, 0]


@dataclass
class GrapeRatings:
    """Predicts ratings by GRAPE's network.

    Parameters
    ----------
    seed : int
        Source of all randomness.
    discrete : bool
        One-hot ratings and cross-entropy, or numbers and squared error.
    steps : int
        At most so many, each on all ratings.
    edge_dropout, dropout : float
        Share of the edges that a step hides and learns from, and of the inputs of O_edge.
    members : int
        Networks whose predictions are averaged.
    on_biases : bool
        Whether numbers are what biases of users and items leave.
    places : int
        Singular vectors that tell INIT where a node is.
    factor_rounds : int
        Gibbs samples of the factors beside the network, which have places of their own; 0 for none.
    """

    seed: int = 0
    discrete: bool = True
    steps: int = 300
    layers: int = 2
    width: int = 64
    edge_dropout: float = 0.3
    dropout: float = 0.3
    rate: float = 0.005
    decay: float = 0.01
    members: int = 3
    on_biases: bool = False
    places: int = 0
    factor_rounds: int = 0

    def fit_predict(self, train: Ratings, asked: Ratings) -> Tensor:
        """Return the predicted ratings of other pairs."""
        generator = torch.Generator().manual_seed(self.seed)
        rest, held_out = train.split(0.1, generator)
        self.strengths = choose_strengths(rest, held_out) if self.on_biases else None
        watched: list[dict[str, Tensor]] = []
        self._train(
            rest,
            generator,
            watch=lambda network: watched.append(self._predict(network, rest, held_out)),
        )
        _, best, self.decoding = min(
            (root_mean_square(predicted, held_out), check, how)
            for check, said in enumerate(watched)
            for how, predicted in said.items()
        )
        self.chosen_steps = (best + 1) * EVERY
        predictions = []
        for _ in range(self.members):
            network = self._train(train, generator, stop=self.chosen_steps)
            predictions.append(self._predict(network, train, asked)[self.decoding])
        said = torch.stack(predictions).mean(0)
        if not self.factor_rounds:
            return said
        factors = GraphFactors(self.seed, self.factor_rounds)
        uneven, other = factors.choose(rest, held_out)
        mine = watched[best][self.decoding]
        self.share = min(
            SHARES, key=lambda w: root_mean_square(w * mine + (1 - w) * other, held_out)
        )
        other = factors.predict(train, asked, uneven=uneven)
        return self.share * said + (1 - self.share) * other

    def _train(
        self,
        ratings: Ratings,
        generator: torch.Generator,
        *,
        watch: Callable[[RatingNetwork], None] | None = None,
        stop: int | None = None,
    ) -> RatingNetwork:
        config = NetworkConfig(
            layers=self.layers,
            width=self.width,
            edge_width=32,
            activation="gelu",
            normalization="layer",
            residual=True,
            directed_edges=False,
            shared_directions=False,
        )
        network = RatingNetwork(
            ratings, config, generator, discrete=self.discrete, places=self.places
        )
        optimizer = torch.optim.AdamW(
            network.parameters(), lr=self.rate, weight_decay=self.decay, fused=True
        )
        warm_up = max(1, self.steps // 20)
        average = [parameter.detach().clone() for parameter in network.parameters()]
        for step in range(1, (stop or self.steps) + 1):
            for group in optimizer.param_groups:
                group["lr"] = self.rate * min(1, step / warm_up)
            hidden = torch.rand(len(ratings), generator=generator) < self.edge_dropout
            graph = self._graph(ratings.take(~hidden))
            loss = self._loss(network, graph, ratings.take(hidden))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            keep = min(0.95, step / (step + 10))
            for mean, parameter in zip(average, network.parameters(), strict=True):
                mean.lerp_(parameter.detach(), 1 - keep)
            if watch is not None and step % EVERY == 0:
                averaged = copy.deepcopy(network)
                _give(averaged, average)
                watch(averaged)
        _give(network, average)
        return network

    def _loss(self, network: RatingNetwork, graph: RatingGraph, wanted: Ratings) -> Tensor:
        said = network(graph, wanted, self.dropout)
        if self.discrete:
            return F.cross_entropy(said, wanted.level)
        return F.mse_loss(said, graph.scaled(wanted))

    def _graph(self, ratings: Ratings) -> RatingGraph:
        biases = None if self.strengths is None else FittedBiases(ratings, *self.strengths)
        return RatingGraph(ratings, discrete=self.discrete, biases=biases)

    def _predict(self, network: RatingNetwork, train: Ratings, asked: Ratings) -> dict[str, Tensor]:
        network.eval()
        graph = self._graph(train)
        with torch.no_grad():
            said = network(graph, asked)
        network.train()
        if not self.discrete:
            return {"expectation": graph.unscaled(said, asked)}
        return {
            "expectation": said.softmax(1) @ asked.values,
            "mode": asked.values[said.argmax(1)],
        }


def _give(network: nn.Module, weights: list[Tensor]) -> None:
    for parameter, given in zip(network.parameters(), weights, strict=True):
        parameter.data.copy_(given)
