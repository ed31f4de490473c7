"""From cells to the numbers on the graph's edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import warn
from grapefill.table.arrays import BoolArray, FloatArray, counts_in_unit, offsets
from grapefill.table.kinds import Form
from grapefill.table.text import some_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from grapefill.table.cells import ColumnCells
    from grapefill.table.column import Column
    from grapefill.table.table import Table

__all__ = ["Encoded", "Strangers", "encode_table", "join_strangers", "warn_strangers"]

_SHOWN = 3

Strangers = dict[str, list[Any]]
"""Names of columns and the values in them that were not there at fit."""


@dataclass(frozen=True)
class Encoded:
    """A table as numbers, one column for each feature node.

    Parameters
    ----------
    numbers : ndarray of float64, shape (rows, features)
        Values, counts or codes; NaN where there is no edge.
    observed : ndarray of bool, same shape
        Where the observation has an edge to the feature.
    unseen : ndarray of bool, same shape
        Where a category stands that fit never saw: no edge, yet nothing to fill.
    strangers : dict of str to list
        These categories, by the name of their column.
    """

    numbers: FloatArray
    observed: BoolArray
    unseen: BoolArray
    strangers: Strangers = field(default_factory=dict)

    @property
    def fillable(self) -> BoolArray:
        """Where a cell is missing and is to be filled."""
        return ~(self.observed | self.unseen)


def encode_table(
    table: Table, columns: Sequence[Column], features: Sequence[int], *, far: bool = False
) -> Encoded:
    """Encode the feature columns of a table, numbers far out as they are or as counted to learn."""
    shape = (table.n_rows, len(features))
    numbers = np.empty(shape)
    observed = np.empty(shape, dtype=bool)
    unseen = np.zeros(shape, dtype=bool)
    strangers: Strangers = {}
    for at, j in enumerate(features):
        column, cells = columns[j], table.cells(j)
        missing = cells.missing
        if missing.all():
            numbers[:, at] = np.nan
        else:
            encoded = _encode_column(column, cells)
            numbers[:, at] = encoded if far else column.within_ends(encoded)
            np.copyto(numbers[:, at], np.nan, where=missing)
            if column.categories is not None:
                np.greater(np.isnan(encoded), missing, out=unseen[:, at])
                if unseen[:, at].any():
                    strangers[column.name] = _strange_values(cells, column)
        observed[:, at] = ~(missing | unseen[:, at])
    return Encoded(numbers, observed, unseen, strangers)


def join_strangers(parts: Iterable[Mapping[str, list[Any]]]) -> Strangers:
    """Put together what the parts of a table have of unseen categories, each named once.

    Examples
    --------
    >>> join_strangers([{"color": ["red"]}, {"color": ["red", "blue"]}])
    {'color': ['red', 'blue']}
    """
    joined: dict[str, dict[Any, None]] = {}
    for part in parts:
        for name, values in part.items():
            joined.setdefault(name, {}).update(dict.fromkeys(values))
    return {name: list(values) for name, values in joined.items()}


def warn_strangers(strangers: Mapping[str, list[Any]]) -> None:
    """Warn once of all unseen categories, if there are any."""
    if not strangers:
        return
    listed = ", ".join(f"{name!r} ({some_of(found, _SHOWN)})" for name, found in strangers.items())
    warn(
        f"Categories that were not there at fit, in column {listed}. These cells stay as they are "
        "and the network does not see them. Fit again on a table that has them to make use of "
        "them."
    )


def _encode_column(column: Column, cells: ColumnCells) -> FloatArray:
    """One column's numbers, NaN at unseen categories, arbitrary where missing."""
    if column.categories is not None:
        codes = cells.codes(column.categories)
        numbers = codes.astype(np.float64)
        numbers[codes < 0] = np.nan
        return numbers
    if column.unit:
        return offsets(counts_in_unit(cells.instants(), column.unit), column.origin)
    if column.origin == 0:
        return cells.numbers()
    if cells.storage.form is Form.INTEGER:
        return offsets(cells.integers(), column.origin)
    return cells.numbers() - column.origin


def _strange_values(cells: ColumnCells, column: Column) -> list[Any]:
    """Return the values fit did not see."""
    known = set(column.categories or ())
    return [value for value in cells.distinct() if value not in known]
