r"""Processes that train one network on different rows, with torch.distributed.

A feature's state depends on its messages from all rows. Each process sums those of its own rows;
the sums and counts are added up over the processes, and gradients flow back through that addition:

.. math::

    n_v = \frac{\sum_w \sum_{u \in U_w} m_{uv}}{\sum_w |U_w|}, \qquad
    \frac{\partial L}{\partial m_{uv}} = \frac{1}{\sum_w |U_w|}
    \sum_w \frac{\partial L_w}{\partial n_v}

So the network computes what one process with all rows would compute, up to rounding. What crosses
the network in a step is features x width numbers per layer, forward and back, and the gradient of
the weights: it does not grow with the number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, distributed
from torch.autograd import Function

from grapefill.graph.attributes import finish

if TYPE_CHECKING:
    from grapefill.graph import Graph

__all__ = ["SharedGraph", "TorchTeam"]

_HOW = {"sum": distributed.ReduceOp.SUM, "max": distributed.ReduceOp.MAX}


class TorchTeam:
    """The processes of the running torch.distributed group."""

    def __init__(self) -> None:
        self.rank = distributed.get_rank()
        self.size = distributed.get_world_size()
        self._on_gpu = distributed.get_backend() == "nccl"

    def share(self, graph: Graph) -> Graph:
        """Return a graph whose features also hear from the rows of the others."""
        return SharedGraph(graph, self) if self.size > 1 else graph

    def gather(self, tensor: Tensor, how: str) -> Tensor:
        """Replace a tensor by the ``"sum"`` or ``"max"`` over all processes, and return it."""
        if self.size == 1:
            return tensor
        if self._on_gpu and tensor.device.type == "cpu":
            moved = tensor.cuda()
            distributed.all_reduce(moved, _HOW[how])
            return tensor.copy_(moved)
        distributed.all_reduce(tensor, _HOW[how])
        return tensor

    def agree(self, number: float) -> float:
        """Return what the first process says."""
        if self.size == 1:
            return number
        device = "cuda" if self._on_gpu else "cpu"
        said = torch.tensor([number], dtype=torch.float64, device=device)
        distributed.broadcast(said, 0)
        return float(said)


class SharedGraph:
    """The graph of some rows, whose features also hear from the rows of other processes.

    Parameters
    ----------
    graph : Graph
        The graph of this process's rows.
    team : TorchTeam
        The processes.
    """

    def __init__(self, graph: Graph, team: TorchTeam) -> None:
        self._graph = graph
        self._team = team
        self._count: Tensor | None = None
        self.n_observations = graph.n_observations
        self.n_features = graph.n_features

    @property
    def n_edges(self) -> int:
        """Number of edges of this process."""
        return self._graph.n_edges

    def spread(self, observations: Tensor | None, features: Tensor | None) -> Tensor:
        """Return ``observations[i] + features[j]`` for every edge."""
        return self._graph.spread(observations, features)

    def concatenate(self, observations: Tensor, features: Tensor) -> Tensor:
        """Return ``concat(observations[i], features[j])`` for every edge."""
        return self._graph.concatenate(observations, features)

    def of_feature(self, values: Tensor, feature: int) -> Tensor:
        """Return the part of per-edge values that belongs to one feature."""
        return self._graph.of_feature(values, feature)

    def pick(self, matrix: Tensor) -> Tensor:
        """Read a (n_observations, n_features) matrix at the edges."""
        return self._graph.pick(matrix)

    def attribute(self, table: Tensor) -> Tensor:
        """Return ``table @ (value * one_hot(slot))`` for every edge."""
        return self._graph.attribute(table)

    def slot_rows(self, table: Tensor) -> Tensor:
        """Return ``table[slot]`` for every edge."""
        return self._graph.slot_rows(table)

    def to_observations(self, messages: Tensor, how: str) -> Tensor:
        """Aggregate the messages that reach every observation."""
        return self._graph.to_observations(messages, how)

    def to_features(self, messages: Tensor, how: str) -> Tensor:
        """Aggregate the messages that reach every feature, from the rows of all processes."""
        return finish(*self.feature_totals(messages, how), how)

    def feature_totals(self, messages: Tensor, how: str) -> tuple[Tensor, Tensor]:
        """Return the unfinished aggregate of every feature and its number of edges."""
        total, count = self._graph.feature_totals(messages, how)
        if self._count is None:
            self._count = self._team.gather(count.clone(), "sum")
        word = "max" if how == "max" else "sum"
        total = _Gathered.apply(total, self._team, word)  # type: ignore[no-untyped-call]
        return total, self._count


class _Gathered(Function):
    """The sum or maximum over all processes, with gradient."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, team: TorchTeam, how: str) -> Tensor:
        gathered = team.gather(tensor.detach().clone(), how)
        ctx.team = team
        ctx.highest = None
        if how == "max":
            # The gradient of a maximum goes to whoever had it, in equal parts.
            ctx.highest = (tensor == gathered).to(tensor)
        return gathered

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None]:
        gradient = ctx.team.gather(gradients[0].contiguous().clone(), "sum")
        if ctx.highest is not None:
            holders = ctx.team.gather(ctx.highest.clone(), "sum")
            gradient = gradient * ctx.highest / holders.clamp(min=1)
        return gradient, None, None
