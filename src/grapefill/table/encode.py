"""From cells to the numbers on the graph's edges."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grapefill.errors import GrapefillWarning
from grapefill.table.arrays import BoolArray, FloatArray, counts_in_unit, offsets
from grapefill.table.kinds import Form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.cells import Cells
    from grapefill.table.column import Column
    from grapefill.table.table import Table

__all__ = ["Encoded", "encode_table"]

_SHOWN = 3


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
    """

    numbers: FloatArray
    observed: BoolArray
    unseen: BoolArray

    @property
    def fillable(self) -> BoolArray:
        """Where a cell is missing and is to be filled."""
        return ~(self.observed | self.unseen)


def encode_table(
    table: Table, columns: Sequence[Column], features: Sequence[int], *, warn: bool = True
) -> Encoded:
    """Encode the feature columns of a table; one warning names all unseen categories."""
    shape = (table.n_rows, len(features))
    numbers = np.empty(shape)
    observed = np.empty(shape, dtype=bool)
    unseen = np.zeros(shape, dtype=bool)
    strangers = []
    for at, j in enumerate(features):
        column, cells = columns[j], table.cells(j)
        missing = cells.missing
        if missing.all():
            numbers[:, at] = np.nan
        else:
            encoded = _encode_column(column, cells)
            numbers[:, at] = encoded
            np.copyto(numbers[:, at], np.nan, where=missing)
            if column.categories is not None:
                np.greater(np.isnan(encoded), missing, out=unseen[:, at])
                if unseen[:, at].any():
                    strangers.append(f"{column.name!r} ({_values(cells, column)})")
        observed[:, at] = ~(missing | unseen[:, at])
    if strangers and warn:
        warnings.warn(
            "Categories that were not there at fit, in column " + ", ".join(strangers) + ". These "
            "cells stay as they are and the network does not see them. Fit again on a table that "
            "has them to make use of them.",
            GrapefillWarning,
            stacklevel=3,
        )
    return Encoded(numbers, observed, unseen)


def _encode_column(column: Column, cells: Cells) -> FloatArray:
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


def _values(cells: Cells, column: Column) -> str:
    """List a few of the values fit did not see."""
    known = set(column.categories or ())
    strange = [value for value in cells.distinct() if value not in known]
    shown = ", ".join(repr(value) for value in strange[:_SHOWN])
    return shown + (", ..." if len(strange) > _SHOWN else "")
