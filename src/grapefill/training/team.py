"""Who trains together: one process, or several that each have some of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from grapefill.graph import Graph

__all__ = ["ALONE", "Alone", "Team"]


class Team(Protocol):
    """Processes with the same weights and different rows.

    Attributes
    ----------
    rank : int
        The number of this process, from 0.
    size : int
        How many there are.
    """

    rank: int
    size: int

    def share(self, graph: Graph) -> Graph:
        """Return a graph whose features also hear from the rows of the others."""

    def gather(self, tensor: Tensor, how: str) -> Tensor:
        """Return the ``"sum"`` or ``"max"`` over all processes, without gradient."""

    def agree(self, number: float) -> float:
        """Return what the first process says, so that all decide the same."""


class Alone:
    """A team of one, in which nothing has to be shared."""

    rank = 0
    size = 1

    def share(self, graph: Graph) -> Graph:
        """Return the graph."""
        return graph

    def gather(self, tensor: Tensor, how: str) -> Tensor:
        """Return the tensor."""
        del how
        return tensor

    def agree(self, number: float) -> float:
        """Return the number."""
        return number


ALONE = Alone()
