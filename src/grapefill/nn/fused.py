r"""The paper's layer with its backward pass written out, for edge lists on a CPU.

`BipartiteConv` says what a layer computes; this module computes the same numbers in less time
when the configuration is the paper's (ReLU, mean, shared and directed edges, L2-normalised nodes).
Observations and features are stacked into one list of N = n + m nodes, the two directions into one
list of 2E edges: first those towards observations, then those towards features.

With :math:`z` the messages, :math:`\bar n` their mean at each node and :math:`u` the new states,

.. math::

    z = \sigma(P_h h[src] + P_e e), \quad
    u = \mathrm{normalize}\,\sigma(Q_n \bar n + Q_h h), \quad
    e' = \sigma(W_s u[src] + W_t u[dst] + W_e e)

What is saved is memory traffic and calls: node parts once per node, both gathers of an edge update
in one pass, segment sums by ``embedding_bag``, ReLU and its gradient in place, gradients added by
the matrix product that makes them.

Shapes: h (N, k), e (2, E, c), u (N, width), e' (2, E, edge width).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import Function

if TYPE_CHECKING:
    from grapefill.graph import EdgeGraph

_relu_gradient_ = torch.ops.aten.threshold_backward.grad_input


class DirectedEdges:
    """Both directions of an edge list, with what the segment sums need."""

    def __init__(self, graph: EdgeGraph) -> None:
        n_edges, n_observations = graph.n_edges, graph.n_observations
        n_nodes = n_observations + graph.n_features
        feature_node = graph.feature + n_observations
        forward_order = torch.arange(n_edges)
        self.source = torch.cat([feature_node, graph.observation])
        self.target = torch.cat([graph.observation, feature_node])
        self.of_target = torch.cat([forward_order, graph.by_feature + n_edges])
        self.of_source = torch.cat([forward_order + n_edges, graph.by_feature])
        start = torch.zeros(1, dtype=torch.long)
        self.borders = torch.cat([start, graph.observation_ends, graph.feature_ends + n_edges])
        self.both_ends = torch.stack([self.source, self.target + n_nodes], dim=1).view(-1)
        self.end_borders = torch.arange(0, 4 * n_edges + 1, 2)
        degree = torch.cat([graph.at_observation, graph.at_feature])
        self.mean_weight = degree.clamp(min=1).float().reciprocal_()[:, None]

    def sum_at_target(self, edges: Tensor) -> Tensor:
        """Sum edge values at the node that each edge leads to."""
        return _segment_sum(edges.flatten(0, 1), self.of_target, self.borders)

    def sum_at_source(self, edges: Tensor) -> Tensor:
        """Sum edge values at the node that each edge comes from."""
        return _segment_sum(edges.flatten(0, 1), self.of_source, self.borders)

    def add_ends(self, sources_then_targets: Tensor) -> Tensor:
        """Return ``first_half[source] + second_half[target]`` for every edge."""
        sums = _segment_sum(sources_then_targets, self.both_ends, self.end_borders)
        return sums.view(2, -1, sums.shape[1])

    def at_source(self, nodes: Tensor) -> Tensor:
        """Return the row of the node that each edge comes from."""
        return nodes.index_select(0, self.source).view(2, -1, nodes.shape[1])

    def at_target(self, nodes: Tensor) -> Tensor:
        """Return the row of the node that each edge leads to."""
        return nodes.index_select(0, self.target).view(2, -1, nodes.shape[1])


def _segment_sum(table: Tensor, index: Tensor, borders: Tensor) -> Tensor:
    """Sum the rows ``table[index]`` between consecutive borders."""
    sums: Tensor = torch.embedding_bag(
        table, index, borders, False, 0, False, None, include_last_offset=True
    )[0]
    return sums


# One product per direction: torch gives each thread one, which beats sharing a single product.
def _product(edges: Tensor, weight: Tensor, total: Tensor | None = None) -> Tensor:
    """Return ``edges @ weight``, added in place to ``total`` if there is one."""
    weights = weight.expand(2, -1, -1)
    return torch.bmm(edges, weights) if total is None else total.baddbmm_(edges, weights)


def _inner_product(left: Tensor, right: Tensor) -> Tensor:
    """Return the sum over all edges of the outer products of their rows."""
    return torch.bmm(left.transpose(1, 2), right).sum(0)


class FusedConv(Function):
    """One layer; inputs ``h, e, P, bias_P, Q, bias_Q, W, bias_W, edges``; W may be None."""

    @staticmethod
    def forward(  # noqa: PLR0917 - torch passes the inputs by position
        ctx: Any,
        h: Tensor,
        e: Tensor,
        p: Tensor,
        p_bias: Tensor,
        q: Tensor,
        q_bias: Tensor,
        w: Tensor | None,
        w_bias: Tensor | None,
        edges: DirectedEdges,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the new nodes and edges."""
        inputs, width = h.shape[1], p.shape[0]
        at_nodes = torch.addmm(p_bias, h, p[:, :inputs].t())
        z = _product(e, p[:, inputs:].t(), edges.at_source(at_nodes)).relu_()
        mean = edges.sum_at_target(z).mul_(edges.mean_weight)
        u = torch.addmm(q_bias, h, q[:, width:].t()).addmm_(mean, q[:, :width].t()).relu_()
        length = torch.linalg.vector_norm(u, dim=1, keepdim=True)
        inverse = length.clamp_(min=1e-12).reciprocal_()
        u.mul_(inverse)
        new_e = None
        if w is not None:
            assert w_bias is not None
            n_nodes = h.shape[0]
            ends = u.new_empty(2 * n_nodes, w.shape[0])
            torch.addmm(w_bias, u, w[:, :width].t(), out=ends[:n_nodes])
            torch.mm(u, w[:, width : 2 * width].t(), out=ends[n_nodes:])
            new_e = _product(e, w[:, 2 * width :].t(), edges.add_ends(ends)).relu_()
        ctx.save_for_backward(h, e, p, q, w, z, mean, u, inverse, new_e)
        ctx.edges = edges
        return u, new_e

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        """Return the gradients of the inputs."""
        u_grad, new_e_grad = gradients
        h, e, p, q, w, z, mean, u, inverse, new_e = ctx.saved_tensors
        edges: DirectedEdges = ctx.edges
        inputs, width = h.shape[1], p.shape[0]
        h_needed, e_needed = ctx.needs_input_grad[:2]
        h_grad = e_grad = w_grad = w_bias_grad = None
        if w is not None:
            # The gradient of the edges comes fresh from the next layer and is read only here.
            delta = new_e_grad
            _relu_gradient_(delta, new_e, 0, grad_input=delta)
            at_source, at_target = edges.sum_at_source(delta), edges.sum_at_target(delta)
            w_grad = torch.cat(
                [at_source.t() @ u, at_target.t() @ u, _inner_product(delta, e)], dim=1
            )
            w_bias_grad = at_source.sum(0)
            if e_needed:
                e_grad = _product(delta, w[:, 2 * width :])
            u_grad = torch.addmm(u_grad, at_source, w[:, :width])
            u_grad.addmm_(at_target, w[:, width : 2 * width])
        # The gradient of u = v / |v| is what remains of it across u, divided by |v|.
        along = (u_grad * u).sum(1, keepdim=True)
        v_grad = torch.addcmul(u_grad, u, along, value=-1).mul_(inverse)
        _relu_gradient_(v_grad, u, 0, grad_input=v_grad)
        q_grad = torch.cat([v_grad.t() @ mean, v_grad.t() @ h], dim=1)
        mean_grad = (v_grad @ q[:, :width]).mul_(edges.mean_weight)
        delta = edges.at_target(mean_grad)
        _relu_gradient_(delta, z, 0, grad_input=delta)
        at_source = edges.sum_at_source(delta)
        p_grad = torch.cat([at_source.t() @ h, _inner_product(delta, e)], dim=1)
        if h_needed:
            h_grad = (v_grad @ q[:, width:]).addmm_(at_source, p[:, :inputs])
        if e_needed:
            e_grad = _product(delta, p[:, inputs:], e_grad)
        return (
            h_grad,
            e_grad,
            p_grad,
            at_source.sum(0),
            q_grad,
            v_grad.sum(0),
            w_grad,
            w_bias_grad,
            None,
        )


class _PairScores(Function):
    """``relu(left[i] + right[j]) @ weight`` for all pairs."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, weight: Tensor) -> Tensor:
        states = (left[:, None] + right).relu_()
        ctx.save_for_backward(states, weight)
        return torch.mv(states.flatten(0, 1), weight).view(states.shape[:2])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor, Tensor]:
        scores_grad = gradients[0].contiguous()
        states, weight = ctx.saved_tensors
        weight_grad = torch.mv(states.flatten(0, 1).t(), scores_grad.flatten())
        delta = scores_grad[..., None] * weight
        _relu_gradient_(delta, states, 0, grad_input=delta)
        return delta.sum(1), delta.sum(0), weight_grad


def pair_scores(left: Tensor, right: Tensor, weight: Tensor) -> Tensor:
    """Return ``relu(left[i] + right[j]) @ weight`` for all pairs, shape (n, m)."""
    scores: Tensor = _PairScores.apply(left, right, weight)  # type: ignore[no-untyped-call]
    return scores
