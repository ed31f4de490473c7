"""Draws, intervals and fills of whole tables, as numbers per column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from grapefill.errors import ConfigError, InputError
from grapefill.table import Kind
from grapefill.trees.work import threads
from grapefill.uncertainty.cells import by_feature, pieces, point_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grapefill.table import Schema
    from grapefill.table.arrays import FloatArray, IntArray
    from grapefill.training.fill import Part
    from grapefill.uncertainty.cells import Beliefs
    from grapefill.uncertainty.fitted import Uncertainty

    Numbers = dict[int, tuple[IntArray, FloatArray]]
    """For columns with holes, the rows and their encoded numbers."""

# Fewer rows are not worth a thread of their own.
FEWEST_ROWS = 500


class Interval(tuple[Any, Any]):
    """The ends of intervals: two tables, ``lower, upper = interval``.

    Attributes
    ----------
    lower, upper : table
        The caller's table with every hole filled by an end of its interval; categories without an
        order by the most probable one.
    sets : dict
        For every column of categories with holes, a dict from the position of a row to the
        categories that belong into its set: the most probable one first, or from the lower end to
        the upper one if they have an order.
    """

    sets: dict[Any, dict[int, tuple[Any, ...]]]

    def __new__(
        cls, lower: Any, upper: Any, sets: dict[Any, dict[int, tuple[Any, ...]]]
    ) -> Interval:
        """Make a pair with sets beside it."""
        pair = super().__new__(cls, (lower, upper))
        pair.sets = sets
        return pair

    def __getnewargs__(self) -> tuple[Any, Any, dict[Any, dict[int, tuple[Any, ...]]]]:
        """Return what copies and pickles are made of."""
        return self[0], self[1], self.sets

    @property
    def lower(self) -> Any:
        """The table of lower ends."""
        return self[0]

    @property
    def upper(self) -> Any:
        """The table of upper ends."""
        return self[1]


def check_coverage(coverage: Any) -> float:
    """Return a coverage as a float, or raise."""
    if isinstance(coverage, bool) or not isinstance(coverage, int | float | np.floating):
        raise ConfigError(f"coverage must be a number between 0 and 1, got {coverage!r}.")
    if not 0 < coverage < 1:
        raise ConfigError(f"coverage must be between 0 and 1, got {coverage!r}.")
    return float(coverage)


def check_count(n_imputations: Any) -> int:
    """Return a number of imputations, or raise."""
    whole = isinstance(n_imputations, int | np.integer) and not isinstance(n_imputations, bool)
    if not whole or n_imputations < 1:
        raise ConfigError(f"n_imputations must be at least 1, got {n_imputations!r}.")
    return int(n_imputations)


def collect(schema: Schema, parts: Sequence[Part], values: Callable[[Part, int], Any]) -> Numbers:
    """Return the numbers of all missing cells, column by column.

    Parameters
    ----------
    schema : Schema
        The columns.
    parts : sequence of Part
        Rows with holes.
    values : callable
        Takes a part and a feature and returns the numbers of the feature's holes in it.
    """
    found: Numbers = {}
    numbers = by_feature(parts, len(schema.features), values)
    for at, j in enumerate(schema.features):
        rows = [part.rows[part.holes[:, at]] for part in parts]
        if any(each.size for each in rows):
            found[j] = (np.concatenate(rows), np.concatenate(numbers[at]))
    return found


def point_fills(schema: Schema, parts: Sequence[Part]) -> Numbers:
    """Return the fills themselves."""
    return collect(schema, parts, lambda part, at: part.guess.value[part.holes[:, at], at])


def other_fills(beliefs: Beliefs, parts: Sequence[Part], fill: str) -> Numbers:
    """Return the medians, means or modes of the missing cells' distributions."""

    def values(part: Part, at: int) -> FloatArray:
        if at in beliefs.chances:
            top: FloatArray = part.guess.value[part.holes[:, at], at]
            return top
        return point_of(beliefs.grid(part, at), fill)

    return collect(beliefs.model.schema, pieces(parts), values)


def drawn_fills(
    uncertainty: Uncertainty, schema: Schema, parts: Sequence[Part], *, seed: int, number: int
) -> Numbers:
    """Return one draw of all missing cells.

    Every row is drawn as if it were alone, so that some can be drawn in each thread.
    """

    def draw(part: Part) -> FloatArray:
        return uncertainty.sampler.draw(
            part.numbers, part.guess, part.rows, seed=seed, number=number
        )

    most = max(FEWEST_ROWS, -(-sum(part.rows.size for part in parts) // torch.get_num_threads()))
    some = [piece for part in parts for piece in part.pieces(most)]
    with threads() as pool:
        drawn = {id(part): values for part, values in zip(some, pool.map(draw, some), strict=True)}
    return collect(schema, some, lambda part, at: drawn[id(part)][part.holes[:, at], at])


def interval_ends(
    beliefs: Beliefs, parts: Sequence[Part], coverage: float
) -> tuple[Numbers, Numbers]:
    """Return the lower and upper ends of intervals for all missing cells."""
    parts = pieces(parts)

    def ends(part: Part, at: int) -> FloatArray:
        if at in beliefs.chances:
            top: FloatArray = part.guess.value[part.holes[:, at], at]
            return np.stack([top, top], axis=1)
        return np.stack(beliefs.ends(part, at, coverage), axis=1)

    both = collect(beliefs.model.schema, parts, ends)
    lower = {j: (rows, each[:, 0]) for j, (rows, each) in both.items()}
    upper = {j: (rows, each[:, 1]) for j, (rows, each) in both.items()}
    return lower, upper


def interval_sets(
    beliefs: Beliefs, parts: Sequence[Part], coverage: float, names: Mapping[int, Any]
) -> dict[Any, dict[int, tuple[Any, ...]]]:
    """Return the sets of categories for missing cells, by the label of their column."""
    schema = beliefs.model.schema
    sets: dict[Any, dict[int, tuple[Any, ...]]] = {
        names[schema.features[j]]: {} for j in beliefs.chances
    }
    for part in pieces(parts):
        for at in beliefs.chances:
            j = schema.features[at]
            categories = schema.columns[j].categories
            assert categories is not None
            rows = part.rows[part.holes[:, at]].tolist()
            for row, each in zip(rows, beliefs.sets(part, at, coverage), strict=True):
                sets[names[j]][row] = tuple(categories[code] for code in each)
    return {name: mine for name, mine in sets.items() if mine}


def ordered_sets(
    schema: Schema, lower: Numbers, upper: Numbers, names: Mapping[int, Any]
) -> dict[Any, dict[int, tuple[Any, ...]]]:
    """Return the categories between the ends of intervals, where categories have an order."""
    sets: dict[Any, dict[int, tuple[Any, ...]]] = {}
    for j, (rows, low) in lower.items():
        column = schema.columns[j]
        if column.categories is None or column.kind is not Kind.ORDINAL:
            continue
        first, last = (np.rint(end).astype(np.int64).tolist() for end in (low, upper[j][1]))
        sets[names[j]] = {
            row: column.categories[a : b + 1]
            for row, a, b in zip(rows.tolist(), first, last, strict=True)
        }
    return sets


def require_draws(uncertainty: Uncertainty | None) -> Uncertainty:
    """Return what draws are made from, or say why there is nothing."""
    if uncertainty is None:
        raise InputError(
            "This imputer cannot draw: its file was written by a version of grapefill without "
            "draws. Fit it again."
        )
    return uncertainty
