"""What the networks of the baselines share: perceptrons with weights from a given generator."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import nn


def perceptron(
    sizes: tuple[int, ...], activation: type[nn.Module], generator: torch.Generator
) -> nn.Sequential:
    """Return a perceptron with Xavier's normal weights, no activation at the end."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layer = nn.Linear(inputs, outputs)
        with torch.no_grad():
            nn.init.xavier_normal_(layer.weight, generator=generator)
            layer.bias.zero_()
        layers += [layer, activation()]
    return nn.Sequential(*layers[:-1])


def batches(rows: int, size: int, steps: int, generator: torch.Generator) -> list[torch.Tensor]:
    """Return the rows of every step, each row once before any comes again."""
    found: list[torch.Tensor] = []
    while len(found) < steps:
        order = torch.randperm(rows, generator=generator)
        found += list(order.tensor_split(-(-rows // size)))
    return found[:steps]


def unit_scale(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least value of every column, and its range."""
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    return low, np.where(high > low, high - low, 1.0)
