"""The original implementation's numbers, stored with its weights, are reproduced."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from grapefill.graph import Cells, Features, build_pairs
from grapefill.nn import GrapeNetwork, NetworkConfig

GOLDEN = Path(__file__).parent.parent / "golden"
SHA256 = {
    "impute_max": "7cee9bdcc5462309e2d0b03f6e16dcd283816e115559273a2f31dd2ef3fbd9db",
    "impute_mean": "391f07a2c99ae9c351a11b7424ae82fdc2596d4f3e697ab15ff72ed4cbec10b4",
    "impute_sum": "42b291dda8753212098d5f1599b327b6df60614b359fc049a9cec26ed0ca84e3",
    "label_mean": "d07afbacc64a1b13123d1482d74032df7c3d9c4ae6fae375061eabb38a7092d5",
}


def load_network(stored: dict[str, np.ndarray], *, aggregation: str) -> GrapeNetwork:
    """Build a network with the stored weights, which have the original implementation's names."""
    layers = sum(name.endswith("message_lin.weight") for name in stored)
    two_layer_head = "o_edge.layers.1.0.weight" in stored
    config = NetworkConfig(
        layers=layers,
        width=16,
        edge_width=16,
        aggregation=aggregation,
        head_width=16 if two_layer_head else 0,
    )
    names = {}
    for layer in range(layers):
        ours = f"convs.{layer}"
        names[f"{ours}.message"] = f"gnn.convs.{layer}.message_lin"
        names[f"{ours}.update"] = f"gnn.convs.{layer}.agg_lin"
        if layer < layers - 1:
            names[f"{ours}.edge_update"] = f"gnn.edge_update_mlps.{layer}.0"
    names |= {"post.0": "gnn.node_post_mlp.0.0", "post.2": "gnn.node_post_mlp.1"}
    if two_layer_head:
        names |= {"o_edge.hidden": "o_edge.layers.0.0", "o_edge.output": "o_edge.layers.1.0"}
    else:
        names |= {"o_edge.output": "o_edge.layers.0.0", "o_node.output": "o_node.layers.0.0"}
    network = GrapeNetwork(
        Features((0,) * stored["X"].shape[1]),
        config,
        torch.Generator(),
        labels=None if two_layer_head else Features((0,)),
    )
    weights = {
        f"{ours}.{part}": torch.from_numpy(stored[f"{theirs}.{part}"])
        for ours, theirs in names.items()
        for part in ("weight", "bias")
    }
    network.load_state_dict(weights)
    return network


@pytest.mark.parametrize("layout", ["dense", "edges"])
@pytest.mark.parametrize("name", list(SHA256))
def test_original_numbers_are_reproduced(name: str, layout: str) -> None:
    with np.load(GOLDEN / f"{name}.npz") as file:
        stored = dict(file)
    network = load_network(stored, aggregation=name.split("_")[1])
    cells = Cells(torch.from_numpy(stored["X"]), None, torch.from_numpy(stored["mask"]))
    graph = network.graph(cells, layout)
    with torch.inference_mode():
        observations, features = network.encode(graph)
        everywhere = build_pairs(torch.ones_like(cells.observed), layout)
        prediction = network.predict(observations, features, everywhere)
    embeddings = torch.cat([observations, features]).numpy()
    np.testing.assert_allclose(embeddings, stored["node_embeddings"], atol=1e-5, rtol=0)
    predicted = prediction.value.reshape(stored["X"].shape)
    np.testing.assert_allclose(predicted.numpy(), stored["D_hat"], atol=1e-5, rtol=0)
    if "y_hat" in stored:
        with torch.inference_mode():
            imputed = type(prediction)(predicted, {})
            labels = network.predict_labels(imputed).value[:, 0]
        np.testing.assert_allclose(labels.numpy(), stored["y_hat"], atol=1e-5, rtol=0)


@pytest.mark.parametrize(("name", "expected"), SHA256.items())
def test_stored_files_are_unaltered(name: str, expected: str) -> None:
    assert hashlib.sha256((GOLDEN / f"{name}.npz").read_bytes()).hexdigest() == expected
