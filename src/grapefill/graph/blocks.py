"""Blocks of rows of a bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grapefill.graph.cells import Features


def block_size(features: Features, cells: int, *, least: int = 1) -> int:
    """Return how many rows have about so many cells; a discrete cell counts once per category.

    Examples
    --------
    >>> from grapefill.graph import Features
    >>> block_size(Features((0, 0)), 100), block_size(Features((0, 99)), 100)
    (50, 1)
    """
    return max(least, cells // max(1, features.places))


def row_blocks(n_rows: int, size: int) -> Iterator[slice]:
    """Yield consecutive slices of ``size`` rows.

    Examples
    --------
    >>> list(row_blocks(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))
