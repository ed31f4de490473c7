"""Both layouts of the graph hold the same edges and give the same aggregates."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grapefill.graph import (
    Cells,
    DenseGraph,
    EdgeGraph,
    Features,
    Slots,
    build_graph,
    build_pairs,
    choose_layout,
)


def random_cells(n: int, features: Features, *, seed: int, observed: float = 0.6) -> Cells:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, features.count))
    for j in features.discrete:
        numbers[:, j] = rng.integers(features.n_categories[j], size=n)
    numbers[rng.random(numbers.shape) >= observed] = np.nan
    return Cells.from_numbers(numbers, features)


def test_slots_are_shared_by_continuous_features_as_in_the_paper() -> None:
    slots = Slots(Features((0, 3, 0, 2)), shared=True)
    assert slots.count == 6
    assert slots.first == (0, 1, 0, 4)
    assert slots.of(1) == slice(1, 4)


def test_slots_of_their_own() -> None:
    slots = Slots(Features((0, 3, 0, 2)), shared=False)
    assert slots.count == Features((0, 3, 0, 2)).places == 7
    assert slots.first == (0, 1, 4, 5)


def test_only_discrete_features_need_no_slot_for_numbers() -> None:
    slots = Slots(Features((2, 2)), shared=True)
    assert slots.count == 4
    assert slots.first == (0, 2)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_categories", [(0, 3, 0), (0, 0, 0)])
def test_attribute_is_the_map_of_the_written_out_one_hot(
    n_categories: tuple[int, ...], shared: bool
) -> None:
    features = Features(n_categories)
    numbering = Slots(features, shared=shared)
    cells = random_cells(7, features, seed=1, observed=1.0)
    table = torch.randn(5, numbering.count)
    slots = cells.slots(numbering)
    slots = torch.zeros(1, dtype=torch.long) if slots is None else slots
    one_hot = torch.nn.functional.one_hot(slots.expand_as(cells.value), numbering.count)
    expected = (one_hot * cells.value[..., None]) @ table.t()
    dense = DenseGraph(cells, numbering).attribute(table)
    torch.testing.assert_close(dense, expected)
    edges = EdgeGraph(cells, numbering).attribute(table)
    torch.testing.assert_close(edges, expected.flatten(0, 1))


@given(
    n=st.integers(1, 12),
    m=st.integers(1, 5),
    observed=st.sampled_from([0.0, 0.3, 1.0]),
    how=st.sampled_from(["mean", "max", "sum"]),
    seed=st.integers(0, 1000),
)
def test_aggregates_are_the_same_in_both_layouts(
    n: int, m: int, observed: float, how: str, seed: int
) -> None:
    features = Features((0,) * m)
    cells = random_cells(n, features, seed=seed, observed=observed)
    messages = torch.randn(n, m, 4, generator=torch.Generator().manual_seed(seed))
    dense = DenseGraph(cells, Slots(features, shared=True))
    edges = EdgeGraph(cells, Slots(features, shared=True))
    listed = messages[cells.observed]
    assert dense.n_edges == edges.n_edges == int(cells.observed.sum())
    torch.testing.assert_close(
        dense.to_observations(messages, how), edges.to_observations(listed, how)
    )
    torch.testing.assert_close(dense.to_features(messages, how), edges.to_features(listed, how))


@pytest.mark.parametrize("how", ["mean", "max", "sum"])
def test_a_node_without_edges_receives_zeros(how: str) -> None:
    features = Features((0, 0))
    cells = Cells.from_numbers(np.array([[np.nan, np.nan], [1.0, np.nan]]), features)
    messages = -torch.ones(2, 2, 3)
    graph = DenseGraph(cells, Slots(features, shared=True))
    assert graph.to_observations(messages, how).tolist() == [[0.0] * 3, [-1.0] * 3]
    assert graph.to_features(messages, how).tolist() == [[-1.0] * 3, [0.0] * 3]


def test_pairs_pick_and_spread_alike() -> None:
    wanted = torch.tensor([[True, False], [True, True]])
    rows, columns = torch.randn(2, 3), torch.randn(2, 3)
    dense, listed = build_pairs(wanted, "dense"), build_pairs(wanted, "edges")
    matrix = torch.arange(4.0).view(2, 2)
    assert listed.pick(matrix).tolist() == [0.0, 2.0, 3.0]
    torch.testing.assert_close(listed.spread(rows, columns), dense.spread(rows, columns)[wanted])
    torch.testing.assert_close(
        listed.concatenate(rows, columns), dense.concatenate(rows, columns)[wanted]
    )


def test_layout_rule() -> None:
    assert choose_layout("auto", 0.8, purpose="training") == "dense"
    assert choose_layout("auto", 0.79, purpose="training") == "edges"
    assert choose_layout("auto", 0.4, purpose="filling") == "dense"
    assert choose_layout("auto", 0.39, purpose="filling") == "edges"
    assert choose_layout("edges", 1.0, purpose="filling") == "edges"


def test_build_graph_gives_the_layout_asked_for() -> None:
    features = Features((0, 2))
    cells = random_cells(3, features, seed=0)
    slots = Slots(features, shared=True)
    assert isinstance(build_graph(cells, slots, "dense"), DenseGraph)
    assert isinstance(build_graph(cells, slots, "edges"), EdgeGraph)


def test_padding_adds_empty_rows_only() -> None:
    cells = random_cells(3, Features((0, 2)), seed=0)
    padded = cells.pad(5)
    assert padded.n_observations == 5
    assert not padded.observed[3:].any()
    torch.testing.assert_close(padded.value[:3], cells.value)
    assert cells.pad(2) is cells
