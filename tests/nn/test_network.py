"""The network's layouts, ways through it, symmetries and heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from grapefill.errors import ConfigError
from grapefill.graph import Cells, EdgeGraph, Features, build_pairs
from grapefill.nn import GrapeNetwork, NetworkConfig
from grapefill.nn.fused import DirectedEdges, FusedConv, pair_scores

CONFIGS: dict[str, dict[str, Any]] = {
    "paper": {},
    "max": {"aggregation": "max"},
    "sum": {"aggregation": "sum", "activation": "tanh"},
    "ours": {
        "normalization": "layer",
        "residual": True,
        "directed_edges": False,
        "shared_directions": False,
        "value_embedding": True,
        "feature_init": "embedding",
        "post_layers": False,
        "own_outputs": True,
        "edge_width": 6,
    },
    "residual from one-hot": {"residual": True, "own_outputs": True},
    "linear head": {"head_width": 0, "normalization": "none", "activation": "silu"},
}
MIXED = (0, 3, 0, 2)


def make(config: str, n_categories: tuple[int, ...] = MIXED, seed: int = 0) -> GrapeNetwork:
    settings = {"width": 8, "edge_width": 8, "head_width": 8} | CONFIGS[config]
    generator = torch.Generator().manual_seed(seed)
    return GrapeNetwork(Features(n_categories), NetworkConfig(**settings), generator)


def make_cells(network: GrapeNetwork, n: int = 30, seed: int = 0) -> Cells:
    rng = np.random.default_rng(seed)
    sizes = network.features.n_categories
    columns = [rng.integers(k, size=n) if k else rng.normal(size=n) for k in sizes]
    numbers = np.column_stack(columns).astype(float)
    numbers[rng.random(numbers.shape) < 0.4] = np.nan
    numbers[0] = np.nan
    return Cells.from_numbers(numbers, network.features)


def everything(network: GrapeNetwork, cells: Cells, layout: Any) -> dict[str, torch.Tensor]:
    """Return predictions of all cells, flattened to be comparable between layouts."""
    graph = network.graph(cells, layout)
    observations, features = network.encode(graph)
    pairs = build_pairs(torch.ones_like(cells.observed), layout)
    prediction = network.predict(observations, features, pairs)
    outputs = {"value": prediction.value.flatten(), "observations": observations}
    return outputs | {f"logits{j}": logits for j, logits in prediction.logits.items()}


@pytest.mark.parametrize("n_categories", [MIXED, (0, 0, 0), (2, 3)])
@pytest.mark.parametrize("config", CONFIGS)
def test_layouts_give_the_same_numbers_and_gradients(
    config: str, n_categories: tuple[int, ...]
) -> None:
    network = make(config, n_categories)
    cells = make_cells(network)
    gradients = []
    outputs = []
    for layout in ("dense", "edges"):
        network.zero_grad()
        output = everything(network, cells, layout)
        outputs.append(output)
        sum(part.square().sum() for part in output.values()).backward()
        gradients.append(
            {k: p.grad.clone() for k, p in network.named_parameters() if p.grad is not None}
        )
    assert outputs[0].keys() == outputs[1].keys()
    for name, expected in outputs[0].items():
        torch.testing.assert_close(outputs[1][name], expected, atol=1e-5, rtol=1e-5)
    assert gradients[0].keys() == gradients[1].keys()
    for name, expected in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], expected, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("layout", ["dense", "edges"])
@pytest.mark.parametrize("config", CONFIGS)
def test_fixed_feature_states_give_the_whole_graph_s_numbers(config: str, layout: Any) -> None:
    network = make(config).eval()
    cells = make_cells(network)
    blocks = [cells.take(slice(start, start + 7)) for start in range(0, 30, 7)]
    with torch.inference_mode():
        expected, features = network.encode(network.graph(cells, layout))
        states = network.feature_states(lambda: (network.graph(block, layout) for block in blocks))
        graph = network.graph(cells, layout)
        observations = network.encode_observations(graph, states)
    torch.testing.assert_close(states.final, features, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(observations, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("layout", ["dense", "edges"])
@pytest.mark.parametrize("config", CONFIGS)
def test_permuted_rows_give_permuted_results(config: str, layout: Any) -> None:
    network = make(config, (0, 0, 0)).eval()
    cells = make_cells(network)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = everything(network, cells, layout)["value"].view(30, 3)[order]
        permuted = everything(network, cells.take(order), layout)["value"].view(30, 3)
    torch.testing.assert_close(permuted, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("layout", ["dense", "edges"])
@pytest.mark.parametrize("config", CONFIGS)
def test_missing_values_are_never_read(config: str, layout: Any) -> None:
    network = make(config).eval()
    cells = make_cells(network)
    assert cells.code is not None
    other = Cells(
        torch.where(cells.observed, cells.value, 99.0),
        torch.where(cells.observed, cells.code, 1),
        cells.observed,
    )
    with torch.inference_mode():
        expected = everything(network, cells, layout)
        read = everything(network, other, layout)
    for name, values in expected.items():
        torch.testing.assert_close(read[name], values)


def test_the_fused_layer_has_the_right_gradient() -> None:
    network = make("paper", (0, 0, 0)).double()
    cells = make_cells(network)
    cells = Cells(cells.value.double(), None, cells.observed)
    graph = network.graph(cells, "edges")
    assert isinstance(graph, EdgeGraph)
    edges = DirectedEdges(graph)
    edges.mean_weight = edges.mean_weight.double()
    generator = torch.Generator().manual_seed(0)
    nodes = torch.randn(33, 8, generator=generator, dtype=torch.double, requires_grad=True)
    states = torch.rand(2, graph.n_edges, 8, generator=generator, dtype=torch.double)
    conv = network.convs[1]
    parameters = (conv.message, conv.update, conv.edge_update)
    weights = [tensor for layer in parameters for tensor in (layer.weight, layer.bias)]

    def layer(*inputs: torch.Tensor) -> Any:
        return FusedConv.apply(*inputs, edges)

    inputs = (nodes, states.requires_grad_(), *weights)
    assert torch.autograd.gradcheck(layer, inputs, fast_mode=True)


def test_many_features_start_from_a_learned_embedding() -> None:
    few, many = NetworkConfig().one_hot_features(256), NetworkConfig().one_hot_features(257)
    assert (few, many) == (True, False)
    network = GrapeNetwork(
        Features((0,) * 300), NetworkConfig(width=4, edge_width=4), torch.Generator()
    )
    assert isinstance(network.feature_init, nn.Parameter)
    assert network.feature_init.shape == (300, 4)


def test_same_generator_same_weights_and_the_global_one_is_left_alone() -> None:
    before = torch.get_rng_state()
    first, second = make("ours", seed=3), make("ours", seed=3)
    assert torch.equal(before, torch.get_rng_state())
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)


def test_own_heads() -> None:
    features = Features((0, 3))
    config = NetworkConfig(width=8, edge_width=8)
    o_edge = nn.Sequential(nn.Linear(16, 5), nn.Tanh(), nn.Linear(5, 4))
    o_node = nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 4))
    labels = Features((0, 3))
    network = GrapeNetwork(
        features, config, torch.Generator(), o_edge=o_edge, labels=labels, o_node=o_node
    )
    cells = make_cells(network)
    dense = everything(network, cells, "dense")
    edges = everything(network, cells, "edges")
    torch.testing.assert_close(dense["value"], edges["value"], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(dense["logits1"], edges["logits1"], atol=1e-5, rtol=1e-5)
    predicted = network.predict_labels(network.predict_cells(cells))
    assert predicted.value.shape == (30, 2)
    assert {j: logits.shape for j, logits in predicted.logits.items()} == {1: (30, 3)}


def test_an_own_head_of_the_wrong_width_is_refused() -> None:
    network = GrapeNetwork(
        Features((0, 3)),
        NetworkConfig(width=8, edge_width=8),
        torch.Generator(),
        o_edge=nn.Linear(16, 1),
    )
    with pytest.raises(ConfigError, match="returns 1 outputs per cell, this table needs 4"):
        network(make_cells(network))


def test_an_own_head_with_the_wrong_inputs_is_refused() -> None:
    config = NetworkConfig(width=8, edge_width=8)
    network = GrapeNetwork(Features((0,)), config, torch.Generator(), o_edge=nn.Linear(5, 1))
    with pytest.raises(ConfigError, match="first layer needs 16 inputs"):
        network(make_cells(network))


def test_a_single_category_is_certain() -> None:
    network = make("paper", (1,))
    torch.testing.assert_close(network(make_cells(network)), torch.ones(30, 1))


def test_another_default_dtype_changes_nothing() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        network = make("ours")
        assert network(make_cells(network)).dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_feature_states_are_no_part_of_the_network() -> None:
    network = make("ours")
    cells = make_cells(network)
    states = network.feature_states(lambda: [network.graph(cells, "dense")])
    before = [state.clone() for state in states.layers]
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(1)
    for state, expected in zip(states.layers, before, strict=True):
        assert torch.equal(state, expected)
    final = network.encode_observations(network.graph(cells, "dense"), states)
    final.sum().backward()
    assert network.convs[0].message.weight.grad is not None


def test_imputed_rows_hold_numbers_and_probabilities() -> None:
    network = make("paper")
    rows = network(make_cells(network))
    assert rows.shape == (30, 1 + 3 + 1 + 2)
    torch.testing.assert_close(rows[:, 1:4].sum(1), torch.ones(30))
    torch.testing.assert_close(rows[:, 5:].sum(1), torch.ones(30))


def test_pair_scores_have_the_right_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = ((5, 3), (4, 3), (3,))
    inputs = [
        torch.randn(shape, generator=generator, dtype=torch.double, requires_grad=True)
        for shape in shapes
    ]
    assert torch.autograd.gradcheck(pair_scores, inputs)


@pytest.mark.parametrize(
    "wrong", [{"layers": 0}, {"width": 0}, {"head_width": -1}, {"aggregation": "median"}]
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        NetworkConfig(**wrong)
