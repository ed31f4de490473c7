"""Rows as the inputs of a regression: a constant, scaled numbers, indicators of categories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from grapefill.table import Scaling
    from grapefill.table.arrays import FloatArray, IntArray

# A scaled number farther out than that counts as being there.
FARTHEST = 20.0
# A column of more categories has no indicators.
MOST_INDICATORS = 64
# Among some rows of a table are so many with a cell of every column, if there are.
FEWEST_CELLS = 20


@dataclass(frozen=True)
class Design:
    """Where the features are among the inputs.

    Parameters
    ----------
    n_categories : tuple of int
        For every feature, 0 for numbers or the number of categories.
    scaling : Scaling
        How numbers are scaled.

    Examples
    --------
    >>> from grapefill.table import Scaling
    >>> design = Design((0, 3), Scaling(np.array([1.0, 0.0]), np.array([2.0, 1.0])))
    >>> design.inputs(np.array([[3.0, 2.0], [1.0, 0.0]]))
    array([[1., 1., 0., 1.],
           [1., 0., 0., 0.]])
    """

    n_categories: tuple[int, ...]
    scaling: Scaling

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """The inputs of every feature."""
        places, start = [], 1
        for k in self.n_categories:
            width = 1 if not k else k - 1 if k <= MOST_INDICATORS else 0
            places.append(slice(start, start + width))
            start += width
        return tuple(places)

    @cached_property
    def numbers(self) -> list[int]:
        """The inputs that are numbers, in the order of their features."""
        return [
            place.start for place, k in zip(self.places, self.n_categories, strict=True) if not k
        ]

    @property
    def width(self) -> int:
        """Number of inputs, with the constant."""
        return int(self.places[-1].stop)

    def inputs(self, values: FloatArray) -> FloatArray:
        """Return the inputs of rows without holes."""
        inputs = np.ones((values.shape[0], self.width))
        everywhere = np.arange(values.shape[0])
        for j in range(values.shape[1]):
            self.put(inputs, everywhere, j, values[:, j])
        return inputs

    def put(self, inputs: FloatArray, rows: IntArray, feature: int, values: FloatArray) -> None:
        """Write the values of a feature into the inputs of some rows."""
        place, k = self.places[feature], self.n_categories[feature]
        if not k:
            inputs[rows, place.start] = self.scaled(feature, values)
        elif place.stop > place.start:
            inputs[rows, place] = values[:, None] == np.arange(1, k)

    def scaled(self, feature: int, values: FloatArray) -> FloatArray:
        """Return the scaled values of a feature of numbers."""
        return np.clip(self.scaling.of(feature).apply(values), -FARTHEST, FARTHEST)

    def others(self, feature: int) -> IntArray:
        """Return the inputs that do not come from a feature."""
        place = self.places[feature]
        return np.delete(np.arange(self.width), np.arange(place.start, place.stop))


def some_rows(numbers: FloatArray, most: int, random: np.random.Generator) -> FloatArray:
    """Return about so many rows of a table, drawn by chance, with cells of every column.

    Examples
    --------
    >>> numbers = np.column_stack([np.arange(1_000.0), np.full(1_000, np.nan)])
    >>> numbers[700, 1] = 7.0
    >>> some = some_rows(numbers, 50, np.random.default_rng(0))
    >>> some.shape[0] in (50, 51), float(np.nanmax(some[:, 1]))
    (True, 7.0)
    """
    if numbers.shape[0] <= most:
        return numbers
    chosen = random.choice(numbers.shape[0], most, replace=False)
    cells = (~np.isnan(numbers[chosen])).sum(axis=0)
    for j in np.flatnonzero(cells < FEWEST_CELLS):
        known = np.flatnonzero(~np.isnan(numbers[:, j]))
        chosen = np.concatenate([chosen, random.permutation(known)[:FEWEST_CELLS]])
    return numbers[np.unique(chosen)]
