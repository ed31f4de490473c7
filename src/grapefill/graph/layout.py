"""Which layout a graph gets, and how to build it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from grapefill.graph.dense import DenseGraph, DensePairs
from grapefill.graph.edges import EdgeGraph, PairList

if TYPE_CHECKING:
    from torch import Tensor

    from grapefill.graph.cells import Cells, Slots

Layout = Literal["auto", "dense", "edges"]


class Pairs(Protocol):
    """Pairs of an observation and a feature, in some layout."""

    n_observations: int
    n_features: int

    def spread(self, observations: Tensor | None, features: Tensor | None) -> Tensor:
        """Return ``observations[i] + features[j]`` for every pair."""

    def concatenate(self, observations: Tensor, features: Tensor) -> Tensor:
        """Return ``concat(observations[i], features[j])`` for every pair."""

    def of_feature(self, values: Tensor, feature: int) -> Tensor:
        """Return the part of per-pair values that belongs to one feature."""

    def pick(self, matrix: Tensor) -> Tensor:
        """Read a (n_observations, n_features) matrix at the pairs."""


class Graph(Pairs, Protocol):
    """A bipartite graph, in some layout; its pairs are its edges."""

    @property
    def n_edges(self) -> int:
        """Number of edges."""

    def attribute(self, table: Tensor) -> Tensor:
        """Return ``table @ (value * one_hot(slot))`` for every edge."""

    def slot_rows(self, table: Tensor) -> Tensor:
        """Return ``table[slot]`` for every edge."""

    def to_observations(self, messages: Tensor, how: str) -> Tensor:
        """Aggregate the messages that reach every observation."""

    def to_features(self, messages: Tensor, how: str) -> Tensor:
        """Aggregate the messages that reach every feature."""

    def feature_totals(self, messages: Tensor, how: str) -> tuple[Tensor, Tensor]:
        """Return the unfinished aggregate of every feature and its number of edges."""


def choose_layout(layout: Layout, density: float) -> Literal["dense", "edges"]:
    """Choose a layout.

    Parameters
    ----------
    layout : {"auto", "dense", "edges"}
        What the user asked for.
    density : float
        Edges divided by cells, counted after edge dropout.

    Returns
    -------
    {"dense", "edges"}
        With ``"auto"``: the dense block when at least half of the cells are edges, the edge list
        otherwise. Following an index costs about as much as computing one cell in vain, so the
        list wins when more than every second cell would be computed in vain.

    Examples
    --------
    >>> choose_layout("auto", 0.7), choose_layout("auto", 0.01), choose_layout("dense", 0.01)
    ('dense', 'edges', 'dense')
    """
    if layout == "auto":
        return "dense" if density >= 0.5 else "edges"
    return layout


def build_graph(cells: Cells, slots: Slots, layout: Literal["dense", "edges"]) -> Graph:
    """Make the graph of some rows in the given layout."""
    if layout == "dense":
        return DenseGraph(cells, slots)
    return EdgeGraph(cells, slots)


def build_pairs(wanted: Tensor, layout: Literal["dense", "edges"]) -> Pairs:
    """Make the pairs at which a prediction is wanted; the dense layout predicts every cell."""
    n_observations, n_features = wanted.shape
    if layout == "dense":
        return DensePairs(n_observations, n_features)
    observation, feature = wanted.nonzero(as_tuple=True)
    return PairList(observation, feature, n_observations, n_features)
