"""The weights of a network while it is trained: the last ones, their average, the best so far."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from grapefill.training.flat import FlatParameters
from grapefill.training.parameters import starting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor, nn


class Weights:
    """What a network in training may end with.

    Parameters
    ----------
    network : nn.Module
        Its parameters are views of one vector until `settle`.
    decay : float
        How much of a running average of the weights is kept in a step; 0 for no average.

    Attributes
    ----------
    flat : FlatParameters
        The weights as they are trained.
    average : Tensor or None
        Their running average.
    best : (float, dict of str to Tensor) or None
        The lowest error on held-out cells, and the weights that had it.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.network = network
        self.decay = decay
        self.flat = FlatParameters(network)
        self.average = self.flat.vector.detach().clone() if decay else None
        self.best: tuple[float, dict[str, Tensor]] | None = None

    @property
    def smooth(self) -> Tensor:
        """The averaged weights, or the last ones where there is no average."""
        return self.flat.vector.data if self.average is None else self.average

    def update_average(self, step: int) -> None:
        """Let the average follow a step."""
        if self.average is None:
            return
        # A short memory at first, or the random start would linger in the average.
        decay = min(self.decay, step / (step + 10))
        self.average.lerp_(self.flat.vector.detach(), 1 - decay)

    @contextmanager
    def put_in(self, weights: Tensor | None) -> Iterator[None]:
        """Put some weights into the network, if any, and the trained ones back in the end."""
        if weights is None:
            yield
            return
        vector = self.flat.vector.data
        trained = vector.clone()
        vector.copy_(weights)
        try:
            yield
        finally:
            vector.copy_(trained)

    def remember(self, error: float) -> bool:
        """Keep the weights in the network if all before had a higher error, and say whether."""
        if self.best is not None and error >= self.best[0]:
            return False
        state = self.network.state_dict()
        self.best = error, {name: tensor.clone() for name, tensor in state.items()}
        return True

    def tensors(self) -> dict[str, Tensor]:
        """Return all weights by names, for `restore`."""
        named = {"vector": self.flat.vector.data}
        if self.average is not None:
            named["average"] = self.average
        if self.best is not None:
            named |= {f"best.{name}": tensor for name, tensor in self.best[1].items()}
        return named

    def restore(self, named: Mapping[str, Tensor], error: float | None) -> None:
        """Go back to weights that were kept, of which the best had some error."""
        vector = self.flat.vector.data
        vector.copy_(named["vector"])
        if self.average is not None:
            self.average.copy_(named["average"])
        if error is not None:
            best = starting(named, "best.")
            self.best = error, {name: each.to(vector.device) for name, each in best.items()}

    def settle(self) -> None:
        """Leave the network with the best weights; without any, with the averaged or last ones."""
        if self.best is None and self.average is not None:
            self.flat.vector.data.copy_(self.average)
        self.flat.release()
        if self.best is not None:
            self.network.load_state_dict(self.best[1])
