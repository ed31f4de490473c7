r"""The two heads of the paper.

.. math::

    \hat D_{uv} = O_{edge}([h_u^{(L)}, h_v^{(L)}]), \qquad
    \hat Y_u = O_{node}(\hat D_{u \cdot})

Shapes: observations (n, width) and features (m, width) give one number per pair for continuous
features and one row of logits per pair for discrete ones; an imputed row gives a label.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from grapefill.errors import ConfigError
from grapefill.graph import DensePairs, Features, PairList, Pairs, Slots
from grapefill.nn.config import NetworkConfig, linear
from grapefill.nn.fused import pair_scores


@dataclass(frozen=True)
class Prediction:
    """What O_edge says about some pairs.

    Parameters
    ----------
    value : Tensor
        One number per pair, in the layout of the pairs; meaningless at discrete features.
    logits : dict of int to Tensor
        For every discrete feature, one row of logits for each of its pairs.
    """

    value: Tensor
    logits: dict[int, Tensor]

    def beside(self, other: Prediction) -> Prediction:
        """Return dense predictions with those of further columns on their right."""
        shift = self.value.shape[1]
        logits = self.logits | {j + shift: each for j, each in other.logits.items()}
        return Prediction(torch.cat([self.value, other.value], dim=1), logits)

    def imputed_rows(self, features: Features) -> Tensor:
        """Return the completed rows: a number or category probabilities for every feature.

        Only for predictions of all pairs. The features keep their order; a discrete feature takes
        as many places as it has categories.
        """
        parts = [
            self.logits[j].softmax(-1) if j in self.logits else self.value[:, j : j + 1]
            for j in range(features.count)
        ]
        return torch.cat(parts, dim=1) if self.logits else self.value


class EdgeHead(nn.Module):
    """O_edge as a perceptron with one hidden layer, or a linear map when ``head_width`` is 0."""

    def __init__(
        self, features: Features, config: NetworkConfig, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.slots = Slots(features, shared=not config.own_outputs)
        width = 2 * config.width
        self.hidden = linear(width, config.head_width, generator) if config.head_width else None
        self.activation = config.make_activation()
        self.output = linear(config.head_width or width, self.slots.count, generator)
        self._relu = config.activation == "relu"
        first = torch.tensor(self.slots.first)
        self.register_buffer("first_slot", first, persistent=False)
        self.first_slot: Tensor

    def forward(self, observations: Tensor, features: Tensor, pairs: Pairs) -> Prediction:
        """Predict the pairs from the final states of their nodes."""
        if self._fusible(pairs, observations):
            assert self.hidden is not None
            left, right = self._node_parts(observations, features)
            value = pair_scores(left, right, self.output.weight[0]) + self.output.bias[0]
            return Prediction(value, {})
        states = self._states(observations, features, pairs)
        logits = {}
        for j in self.slots.features.discrete:
            slots = self.slots.of(j)
            logits[j] = F.linear(
                pairs.of_feature(states, j), self.output.weight[slots], self.output.bias[slots]
            )
        return Prediction(self._values(states, pairs), logits)

    def _fusible(self, pairs: Pairs, observations: Tensor) -> bool:
        one_output = self.slots.count == 1 and not self.slots.features.discrete
        dense = isinstance(pairs, DensePairs)
        on_cpu = observations.device.type == "cpu"
        return self.hidden is not None and self._relu and one_output and dense and on_cpu

    def _node_parts(self, observations: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        assert self.hidden is not None
        for_observation, for_feature = self.hidden.weight.tensor_split(2, dim=1)
        return (
            F.linear(observations, for_observation, self.hidden.bias),
            F.linear(features, for_feature),
        )

    def _states(self, observations: Tensor, features: Tensor, pairs: Pairs) -> Tensor:
        if self.hidden is None:
            return pairs.concatenate(observations, features)
        states: Tensor = self.activation(pairs.spread(*self._node_parts(observations, features)))
        return states

    def _values(self, states: Tensor, pairs: Pairs) -> Tensor:
        if not self.slots.features.continuous:
            return states.new_zeros(states.shape[:-1])
        if self.slots.shared:
            return F.linear(states, self.output.weight[:1], self.output.bias[:1])[..., 0]
        weight, bias = self.output.weight[self.first_slot], self.output.bias[self.first_slot]
        if isinstance(pairs, PairList):
            rows = weight.index_select(0, pairs.feature)
            return (states * rows).sum(-1) + bias.index_select(0, pairs.feature)
        return torch.einsum("nmd,md->nm", states, weight) + bias


class CustomEdgeHead(nn.Module):
    """O_edge as the user's own module.

    Parameters
    ----------
    module : nn.Module
        Maps the concatenated states of an observation and a feature, shape (..., 2 * width), to
        one number for continuous features (if there are any) followed by a logit for each category
        of each discrete feature.
    features : Features
        The feature nodes.
    """

    def __init__(self, module: nn.Module, features: Features) -> None:
        super().__init__()
        self.module = module
        self.slots = Slots(features, shared=True)

    def forward(self, observations: Tensor, features: Tensor, pairs: Pairs) -> Prediction:
        """Predict the pairs from the final states of their nodes."""
        states = pairs.concatenate(observations, features)
        outputs = _ask(self.module, states, self.slots.count, name="O_edge", per="cell")
        logits = {
            j: pairs.of_feature(outputs, j)[:, self.slots.of(j)]
            for j in self.slots.features.discrete
        }
        return Prediction(outputs[..., 0], logits)


class NodeHead(nn.Module):
    """O_node as a linear map of the imputed row, or the user's own module.

    Parameters
    ----------
    features : Features
        The feature nodes, which make the imputed row.
    labels : Features
        The labels: numbers, or classes.
    generator : torch.Generator
        Where the weights are drawn from.
    module : nn.Module or None
        Maps imputed rows, shape (n, places of the features), to one number for a label that is a
        number and a logit for each class of one that is not.
    """

    def __init__(
        self,
        features: Features,
        labels: Features,
        generator: torch.Generator,
        module: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.labels = labels
        self.custom = module is not None
        if module is None:
            module = linear(features.places, labels.places, generator)
        self.output = module

    def forward(self, imputed_rows: Tensor) -> Prediction:
        """Predict the labels of completed rows, as cells of a table with a column for each."""
        outputs = _ask(self.output, imputed_rows, self.labels.places, name="O_node", per="row")
        sizes = [max(k, 1) for k in self.labels.n_categories]
        parts = torch.split(outputs, sizes, dim=1)
        value = torch.cat([part[:, :1] for part in parts], dim=1)
        return Prediction(value, {j: parts[j] for j in self.labels.discrete})


def _ask(module: nn.Module, inputs: Tensor, outputs: int, *, name: str, per: str) -> Tensor:
    """Return what a module says, if it takes these inputs and gives so many outputs."""
    try:
        answer: Tensor = module(inputs)
    except RuntimeError as error:
        raise ConfigError(
            f"The given {name} module cannot take inputs of shape {tuple(inputs.shape)}: its first "
            f"layer needs {inputs.shape[-1]} inputs ({error})."
        ) from error
    if answer.shape[-1] != outputs:
        raise ConfigError(
            f"The given {name} module returns {answer.shape[-1]} outputs per {per}, this table "
            f"needs {outputs}. Give its last layer that many outputs."
        )
    return answer
