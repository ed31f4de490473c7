"""What the edges of a graph carry, and how a node gathers messages, in any layout."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812


class EdgeAttributes:
    """The attribute ``value * one_hot(slot)`` of every edge, without ever writing out the one-hot.

    Parameters
    ----------
    value : Tensor
        One number per edge, in the layout of the graph.
    slots : Tensor or None
        One slot per edge, or a shape that broadcasts to it; None when all have slot 0.
    """

    def __init__(self, value: Tensor, slots: Tensor | None) -> None:
        self.value = value
        self.slots = slots

    def attribute(self, table: Tensor) -> Tensor:
        """Return ``table @ (value * one_hot(slot))`` per edge; ``table`` is (width, slots)."""
        if self.slots is None:
            return self.value[..., None] * table[:, 0]
        return self.value[..., None] * F.embedding(self.slots, table.t())

    def slot_rows(self, table: Tensor) -> Tensor:
        """Return ``table[slot]`` per edge, or what broadcasts; ``table`` is (slots, width)."""
        return table[0] if self.slots is None else F.embedding(self.slots, table)


class Spreading(Protocol):
    """Pairs of nodes, in any layout."""

    def spread(self, observations: Tensor | None, features: Tensor | None) -> Tensor:
        """Return ``observations[i] + features[j]`` for every pair."""


def add_nodes(
    pairs: Spreading, total: Tensor, observations: Tensor | None, features: Tensor | None
) -> None:
    """Add ``observations[i] + features[j]`` to every pair of ``total``, in place."""
    if observations is not None:
        total.add_(pairs.spread(observations, None))
    if features is not None:
        total.add_(pairs.spread(None, features))


def finish(total: Tensor, count: Tensor, how: str) -> Tensor:
    """Turn totals over all edges of a node into its aggregate; a node with no edge gets zeros."""
    if how == "mean":
        return total / count.clamp(min=1)
    if how == "max":
        return torch.where(count > 0, total, torch.zeros_like(total))
    return total
