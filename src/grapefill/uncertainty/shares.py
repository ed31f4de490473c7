"""How frequent the values of a column are that has few of them, observed and in draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from grapefill.uncertainty.panels import SMALL, is_whole, label_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.arrays import FloatArray
    from grapefill.table.column import Column

__all__ = ["Shares", "find_shares"]

# Values that there is room for; of more categories, the most frequent ones.
MOST_VALUES = 8


class Shares(NamedTuple):
    """How frequent values are.

    Parameters
    ----------
    names : list of str
        The values, in their order.
    observed : ndarray of shape (values,)
        Their shares of the observed cells.
    drawn : ndarray of shape (draws, values)
        Their shares of the missing cells in every draw.
    """

    names: list[str]
    observed: FloatArray
    drawn: FloatArray

    def write_names(self, axes: Any) -> None:
        """Write the values beside the y axis, from top to bottom."""
        names = [label_of(name) for name in self.names]
        axes.set_yticks(range(len(names)), names, parse_math=False, fontsize=SMALL)
        axes.invert_yaxis()


def find_shares(column: Column, observed: FloatArray, draws: Sequence[FloatArray]) -> Shares | None:
    """Return how frequent the values of a column are; None if it has too many for that.

    Parameters
    ----------
    column : Column
        The column.
    observed : ndarray
        Its observed numbers.
    draws : sequence of ndarray
        The numbers of its holes in every draw.
    """
    if column.categories is not None:
        values = np.arange(len(column.categories), dtype=np.float64)
        names = [str(value) for value in column.categories]
    else:
        values = np.unique(np.concatenate([observed, *draws]))
        if values.size > MOST_VALUES or not is_whole(column):
            return None
        names = [str(round(value) + column.origin) for value in values.tolist()]
    shares = np.stack([_counts(values, each) / max(1, each.size) for each in (observed, *draws)])
    if values.size > MOST_VALUES:
        often = np.argsort(-(shares[0] + shares[1:].mean(axis=0)), kind="stable")
        kept, rest = np.sort(often[: MOST_VALUES - 1]), often[MOST_VALUES - 1 :]
        names = [*(names[at] for at in kept), f"{rest.size} others"]
        shares = np.column_stack([shares[:, kept], shares[:, rest].sum(axis=1)])
    return Shares(names, shares[0], shares[1:])


def _counts(values: FloatArray, numbers: FloatArray) -> FloatArray:
    places = np.searchsorted(values, np.rint(numbers))
    return np.bincount(places, minlength=values.size).astype(np.float64)
