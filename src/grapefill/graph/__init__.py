"""The bipartite graph of a table: observations and features are nodes, observed cells are edges."""

from grapefill.graph.blocks import block_size, row_blocks
from grapefill.graph.cells import Cells, Features, Slots
from grapefill.graph.dense import DenseGraph, DensePairs
from grapefill.graph.edges import EdgeGraph, PairList
from grapefill.graph.layout import Graph, Layout, Pairs, build_graph, build_pairs, choose_layout
from grapefill.graph.sparse import EdgeCells

__all__ = [
    "Cells",
    "DenseGraph",
    "DensePairs",
    "EdgeCells",
    "EdgeGraph",
    "Features",
    "Graph",
    "Layout",
    "PairList",
    "Pairs",
    "Slots",
    "block_size",
    "build_graph",
    "build_pairs",
    "choose_layout",
    "row_blocks",
]
