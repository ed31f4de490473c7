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


# Measured on a CPU. In training only the edges that dropout keeps count, and a step goes over each
# several times, forward and back; filling is a single pass, and preparing the list is part of it.
LEAST_DENSITY = {"training": 0.8, "filling": 0.4}


def choose_layout(
    layout: Layout, density: float, *, purpose: Literal["training", "filling"]
) -> Literal["dense", "edges"]:
    """Choose a layout.

    Parameters
    ----------
    layout : {"auto", "dense", "edges"}
        What the user asked for.
    density : float
        Edges divided by cells, counted after edge dropout.
    purpose : {"training", "filling"}
        What the graph is for.

    Returns
    -------
    {"dense", "edges"}
        With ``"auto"``: the dense block when at least 80% of the cells are edges in training, or
        40% in filling, and the edge list otherwise.

    Examples
    --------
    >>> (
    ...     choose_layout("auto", 0.7, purpose="filling"),
    ...     choose_layout("auto", 0.7, purpose="training"),
    ... )
    ('dense', 'edges')
    """
    if layout == "auto":
        return "dense" if density >= LEAST_DENSITY[purpose] else "edges"
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
