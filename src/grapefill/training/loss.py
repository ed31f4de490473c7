"""The loss of a prediction on some cells: a regression loss or cross-entropy, cell by cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from grapefill.graph import build_pairs

if TYPE_CHECKING:
    from grapefill.graph import Cells, Features, Pairs
    from grapefill.nn import GrapeNetwork, Prediction


def cell_loss(
    prediction: Prediction,
    pairs: Pairs,
    cells: Cells,
    *,
    wanted: Tensor,
    features: Features,
    kind: Literal["squared", "absolute"],
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean loss over the wanted cells.

    Parameters
    ----------
    prediction : Prediction
        What O_edge says about ``pairs``.
    pairs : Pairs
        The predicted pairs; they contain all wanted cells.
    cells : Cells
        The true values.
    wanted : Tensor of bool, shape (n_observations, n_features)
        The cells that count.
    features : Features
        Which features are discrete.
    kind : {"squared", "absolute"}
        Loss of continuous cells.
    weight : Tensor of shape (n_observations, n_features) or None
        How much every cell counts; None for all the same.
    """
    counts = wanted if weight is None else wanted * weight
    numeric = counts
    if features.discrete:
        numeric = counts.clone()
        numeric[:, list(features.discrete)] = 0
    error = prediction.value - pairs.pick(cells.value)
    error = error.square() if kind == "squared" else error.abs()
    total = (error * pairs.pick(numeric)).sum()
    for j, logits in prediction.logits.items():
        assert cells.code is not None
        count = pairs.of_feature(pairs.pick(counts), j)
        code = pairs.of_feature(pairs.pick(cells.code), j)
        each = F.cross_entropy(logits, code, reduction="none")
        total = total + torch.where(count > 0, each * count, torch.zeros_like(each)).sum()
    return total / counts.sum().clamp(min=1 if weight is None else 1e-12)


def states_loss(
    network: GrapeNetwork,
    states: tuple[Tensor, Tensor],
    cells: Cells,
    wanted: Tensor,
    *,
    layout: Literal["dense", "edges"],
    kind: Literal["squared", "absolute"],
    weight: Tensor | None,
) -> Tensor:
    """Return the loss of what the states of observations and features say about some cells.

    Where O_node predicts labels, it reads the whole imputed row, and only the labels count.
    """
    if network.o_node is None:
        features, pairs = network.features, build_pairs(wanted, layout)
        prediction = network.predict(*states, pairs)
    else:
        nodes, labels = network.features.count, slice(network.features.count, None)
        everywhere = build_pairs(cells.observed[:, :nodes], "dense")
        prediction = network.predict_labels(network.predict(*states, everywhere))
        features, cells, wanted = network.o_node.labels, cells.columns(labels), wanted[:, labels]
        pairs = build_pairs(wanted, "dense")
        weight = None if weight is None else weight[:, labels]
    return cell_loss(
        prediction, pairs, cells, wanted=wanted, features=features, kind=kind, weight=weight
    )
