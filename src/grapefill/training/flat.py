"""The parameters of a network as one vector: an optimiser step is one call and not fifty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Iterator


class FlatParameters:
    """One vector that a network's parameters, and their gradients, are views of.

    Parameters
    ----------
    network : nn.Module
        Its parameters move into the vector and are views of it until `release`.

    Examples
    --------
    >>> layer = nn.Linear(2, 1)
    >>> flat = FlatParameters(layer)
    >>> layer(torch.ones(1, 2)).sum().backward()
    >>> flat.vector.grad.tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, network: nn.Module) -> None:
        self._parameters = [p for p in network.parameters() if p.requires_grad]
        values = [p.detach().flatten() for p in self._parameters]
        self.vector = nn.Parameter(torch.cat(values))
        self.vector.grad = torch.zeros_like(self.vector)
        views = zip(
            self._parameters,
            self._views(self.vector.data),
            self._views(self.vector.grad),
            strict=True,
        )
        for parameter, value, gradient in views:
            parameter.data = value
            parameter.grad = gradient

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        assert self.vector.grad is not None
        self.vector.grad.zero_()

    def release(self) -> None:
        """Give every parameter memory of its own again, and drop the gradients."""
        for parameter in self._parameters:
            parameter.data = parameter.data.clone()
            parameter.grad = None

    def _views(self, vector: Tensor) -> Iterator[Tensor]:
        parts = torch.split(vector, [p.numel() for p in self._parameters])
        for parameter, part in zip(self._parameters, parts, strict=True):
            yield part.view(parameter.shape)
