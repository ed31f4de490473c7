"""Rows as the inputs of a regression: a constant, scaled numbers, indicators of categories.

A skew column is there twice: curved, as it is regressed itself, and straight, so that others keep
what they have to do with the number as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from grapefill.uncertainty.curves import Curve, choose_curve, may_be_skew

if TYPE_CHECKING:
    from grapefill.table import Scaling
    from grapefill.table.arrays import BoolArray, FloatArray, IntArray

# A scaled number farther out than that counts as being there.
FARTHEST = 50.0
# A column of more categories has no indicators.
MOST_INDICATORS = 64
# Among some rows of a table are so many with a cell of every column, if there are.
FEWEST_CELLS = 20
# Curves are chosen by so many rows, over and over, for one depends on the others. Those without
# holes are taken, if there are so many, and so many for every input: what fills the holes may be
# far off. Otherwise it is all rows.
ROWS_FOR_CURVES, PASSES = 2_000, 2
FEWEST_ROWS, ROWS_PER_INPUT = 100, 5
# A column in which some value is as frequent as that is not curved; observed values are drawn.
FREQUENT = 0.1
# A list of values: each comes so often on average, as would show in the first cells, and no more
# than such a share of what could be between the ends is there, by the digits that most cells have,
# out of so many.
CELLS_PER_VALUE, SOME = 10, 1_000
SPARSE, MOSTLY, FINEST, CLOSE = 0.3, 0.95, 7, 1e-6
LEAST_RANGE = 1e-290


@dataclass(frozen=True)
class Design:
    """Where the features are among the inputs.

    Parameters
    ----------
    n_categories : tuple of int
        For every feature, 0 for numbers or the number of categories.
    scaling : Scaling
        How numbers are scaled.
    curves : dict of int to Curve
        Of the features that are skew.

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
    curves: dict[int, Curve] = field(default_factory=dict)

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """The inputs of every feature."""
        places, start = [], 1
        for j, k in enumerate(self.n_categories):
            width = k - 1 if k <= MOST_INDICATORS else 0
            if not k:
                width = 2 if j in self.curves else 1
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
            if feature in self.curves:
                inputs[rows, place.start + 1] = self._straight(feature, values)
        elif place.stop > place.start:
            inputs[rows, place] = values[:, None] == np.arange(1, k)

    def scaled(self, feature: int, values: FloatArray) -> FloatArray:
        """Return the scaled values of a feature of numbers."""
        if feature not in self.curves:
            return self._straight(feature, values)
        curved = self.curves[feature].apply(self.scaling.of(feature).apply(values))
        return np.clip(curved, -FARTHEST, FARTHEST)

    def _straight(self, feature: int, values: FloatArray) -> FloatArray:
        return np.clip(self.scaling.of(feature).apply(values), -FARTHEST, FARTHEST)

    def undo(self, feature: int, scaled: FloatArray) -> FloatArray:
        """Turn scaled values of a feature back."""
        if feature in self.curves:
            scaled = self.curves[feature].undo(scaled)
        return self.scaling.of(feature).undo(scaled)

    def curved(self, values: FloatArray, missing: BoolArray) -> Design:
        """Return a design with curves for features that are skew.

        Parameters
        ----------
        values : ndarray of shape (rows, features)
            Rows whose holes are filled.
        missing : ndarray of bool of the same shape
            The holes.
        """
        observed = {
            j: self.scaling.of(j).apply(_some_and_ends(values[~missing[:, j], j]))
            for j, k in enumerate(self.n_categories)
            if not k
        }
        skew = {j: numbers for j, numbers in observed.items() if _is_skew(numbers)}
        some = np.flatnonzero(~missing.any(axis=1))
        if some.size < max(FEWEST_ROWS, ROWS_PER_INPUT * self.width):
            some = np.arange(values.shape[0])
        some = some[_evenly(some.size)]
        values, missing, design = values[some], missing[some], self
        for _ in range(PASSES):
            for j, numbers in skew.items():
                known = ~missing[:, j]
                inputs = design.inputs(values[known])[:, design.others(j)]
                scaled = self.scaling.of(j).apply(values[known, j])
                found = choose_curve(numbers, scaled, inputs)
                others = {at: curve for at, curve in design.curves.items() if at != j}
                design = replace(design, curves=others | ({j: found} if found else {}))
        return design

    def others(self, feature: int) -> IntArray:
        """Return the inputs that do not come from a feature."""
        place = self.places[feature]
        return np.delete(np.arange(self.width), np.arange(place.start, place.stop))


def has_frequent(values: FloatArray) -> bool:
    """Whether some value makes up much of a column."""
    counts = np.unique(values, return_counts=True)[1]
    return bool(counts.max(initial=0) >= FREQUENT * values.size)


def values_of_list(values: FloatArray) -> FloatArray:
    """Return the few values that a column of numbers has, in order; none if others make sense too.

    These are like the prices of a list: each comes again and again, and the gaps between them are
    many times as wide as their digits would allow.

    Examples
    --------
    >>> prices, ages = np.array([0.99, 2.49, 7.95, 12.5]), np.arange(18, 66)
    >>> values_of_list(np.repeat(prices, 20))
    array([ 0.99,  2.49,  7.95, 12.5 ])
    >>> values_of_list(np.repeat(ages, 20)).size
    0
    """
    some = values[:SOME]
    if np.unique(some).size > some.size / 2 >= CELLS_PER_VALUE:
        return np.empty(0)
    distinct = np.unique(values)
    if distinct.size < 2 or values.size < CELLS_PER_VALUE * distinct.size:
        return np.empty(0)
    wide = float(distinct[-1] / 2 - distinct[0] / 2) * 2
    if not LEAST_RANGE < wide < np.inf:
        return np.empty(0)
    steps = wide / 10.0 ** (np.floor(np.log10(wide)) - np.arange(FINEST))
    along = (values - distinct[0])[:, None] / wide * steps
    fits = (np.abs(along - np.round(along)) < CLOSE).mean(axis=0) >= MOSTLY
    possible = steps[int(fits.argmax())] if fits.any() else steps[-1]
    return distinct if distinct.size <= SPARSE * (possible + 1) else np.empty(0)


def closest_of(values: FloatArray, numbers: FloatArray) -> FloatArray:
    """Return which of some values, in order, is closest to each of some numbers.

    Examples
    --------
    >>> closest_of(np.array([1.0, 2.0, 5.0]), np.array([-3.0, 1.6, 4.0, 9.0])).tolist()
    [1.0, 2.0, 5.0, 5.0]
    """
    found: FloatArray = values[np.searchsorted(values[1:] / 2 + values[:-1] / 2, numbers)]
    return found


def _evenly(size: int) -> IntArray:
    """Return places of some of so many entries."""
    return np.linspace(0, size - 1, min(size, ROWS_FOR_CURVES)).astype(np.int64)


def _some_and_ends(values: FloatArray) -> FloatArray:
    some = values[_evenly(values.size)]
    return np.append(some, [values.min(), values.max()]) if some.size < values.size else some


def _is_skew(scaled: FloatArray) -> bool:
    return bool(scaled.size) and not has_frequent(scaled) and may_be_skew(scaled)


def choose_rows(numbers: FloatArray, most: int, random: np.random.Generator) -> IntArray:
    """Choose about so many rows of a table by chance, with cells of every column among them.

    Examples
    --------
    >>> numbers = np.column_stack([np.arange(1_000.0), np.full(1_000, np.nan)])
    >>> numbers[700, 1] = 7.0
    >>> some = choose_rows(numbers, 50, np.random.default_rng(0))
    >>> some.size in (50, 51), 700 in some
    (True, True)
    """
    if numbers.shape[0] <= most:
        return np.arange(numbers.shape[0])
    chosen = random.choice(numbers.shape[0], most, replace=False)
    cells = (~np.isnan(numbers[chosen])).sum(axis=0)
    for j in np.flatnonzero(cells < FEWEST_CELLS):
        known = np.flatnonzero(~np.isnan(numbers[:, j]))
        chosen = np.concatenate([chosen, random.permutation(known)[:FEWEST_CELLS]])
    return np.unique(chosen)
