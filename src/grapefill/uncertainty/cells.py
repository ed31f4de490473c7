"""Beliefs about the missing cells of a table, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from grapefill.errors import InputError
from grapefill.table.kinds import Form
from grapefill.uncertainty.belief import Cells, Fills, NumberColumn, bring_closer, fit_columns
from grapefill.uncertainty.calibration import CAREFUL, Calibration, as_frequent, shared_level
from grapefill.uncertainty.company import Company
from grapefill.uncertainty.joint import Joint
from grapefill.uncertainty.limits import Limits
from grapefill.uncertainty.little_known import LittleKnown, fewest_known
from grapefill.uncertainty.quantiles import GRID, nested, quantile_grid, shortest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grapefill.table.arrays import Array, BoolArray, FloatArray, IntArray
    from grapefill.table.column import Column
    from grapefill.training.fill import Part
    from grapefill.training.held_out import HeldOut
    from grapefill.training.model import GrapeModel
    from grapefill.uncertainty.fitted import Uncertainty

T = TypeVar("T")

# Rows whose beliefs are worked out together, and their cells: about 50 MB.
BLOCK, BLOCK_CELLS = 4_096, 163_840
# The coverage by which rows are told apart of which little is known.
USUAL = 0.9


class Beliefs:
    """What held-out cells tell about the errors of a model.

    Parameters
    ----------
    model : GrapeModel
        A trained model with held-out cells.
    uncertainty : Uncertainty or None
        Which values columns have, if that is known.
    further : bool
        Whether to make further trials if the held-out cells are few; see `Uncertainty.held_out`.
    """

    def __init__(
        self, model: GrapeModel, uncertainty: Uncertainty | None = None, *, further: bool = True
    ) -> None:
        held_out = model.held_out
        if uncertainty is not None:
            held_out = uncertainty.held_out(model, further=further)
        if held_out is None or not held_out.feature.size:
            raise InputError(
                "No cells were held out when the model was fitted, so nobody knows how far off it "
                'is. Fit with settings={"validation": 0.1, "rejoin": 0.8} or another preset'
                ", without an o_edge of your own"
                ", and to a table with more observed cells if it has only a few."
            )
        self.model = model
        self.features = list(model.features.continuous)
        self.numbers = self._number_columns(held_out, uncertainty)
        if uncertainty is not None:
            none = Fills(np.empty(0), np.empty(0))
            bring_closer(self.numbers, [uncertainty.fills.get(j, none) for j in self.features])
        self.calibration: Calibration = fit_columns(self.numbers)
        sampler = None if uncertainty is None else uncertainty.sampler
        fewest = {j: fewest_known(held_out.of(j).known) for j in range(len(model.schema.features))}
        # Of a row of very many columns something is known.
        self.little_known = LittleKnown(sampler if isinstance(sampler, Joint) else None, fewest)
        cells = {j: held_out.of(j) for j in model.features.discrete}
        self.chances = {j: mine.chance for j, mine in cells.items()}
        self.company = {j: Company.of(1 - mine.chance, mine.beside) for j, mine in cells.items()}
        self.absent = {j: self.company[j].is_absent(mine.beside) for j, mine in cells.items()}
        shares = {} if uncertainty is None else uncertainty.shares
        self.stand_for = {
            j: as_frequent(mine.truth.astype(np.int64), shares[j])
            for j, mine in cells.items()
            if j in shares
        }

    def _number_columns(
        self, held_out: HeldOut, uncertainty: Uncertainty | None
    ) -> list[NumberColumn]:
        scale = self.model.scaling.scale
        numbers = np.isin(held_out.feature, self.features)
        with np.errstate(over="ignore", invalid="ignore"):
            off = np.abs(held_out.truth - held_out.guess) / scale[held_out.feature]
        off = off[numbers & np.isfinite(off)]
        typical = float(off.mean()) if off.size else 1.0
        columns = []
        for j in self.features:
            mine = held_out.of(j)
            column = self.model.schema.columns[self.model.schema.features[j]]
            repeated = shares = None
            n_observed = np.inf if uncertainty is None else float(uncertainty.counts[j])
            if uncertainty is not None and uncertainty.repeats[j]:
                repeated, shares = uncertainty.observed[j], uncertainty.shares.get(j)
            cells = Cells(mine.guess, mine.spread, mine.votes, mine.known, mine.beside)
            columns.append(
                NumberColumn(
                    mine.truth,
                    cells,
                    column.lower,
                    column.upper,
                    typical=typical * float(scale[j]),
                    repeated=repeated,
                    shares=shares,
                    n_observed=n_observed,
                )
            )
        return columns

    def grid(self, part: Part, feature: int) -> FloatArray:
        """Return the quantiles of the missing cells of a column of numbers, of one of `pieces`."""
        column = self.numbers[self.features.index(feature)]
        rows = np.flatnonzero(part.holes[:, feature])
        if not rows.size:
            return np.empty((0, GRID.size))
        beside = ~np.isnan(part.numbers[rows])
        votes = np.empty((rows.size, 0))
        if self.model.chain is not None:
            values = np.where(beside, part.numbers[rows], part.guess.value[rows])
            votes = self.model.chain.votes(values, feature)
        spread = part.guess.spread
        cells = Cells(
            part.guess.value[rows, feature],
            np.full(rows.size, np.nan) if spread is None else spread[rows, feature],
            votes,
            beside.sum(axis=1).astype(np.float64),
            beside,
        )
        grid = quantile_grid(column.mixture(cells))
        return self.little_known.widen(part, feature, grid, column.low, column.high)

    def chances_of(self, part: Part, feature: int) -> FloatArray:
        """Return the probabilities of categories of the missing cells of a column."""
        chances = part.guess.chances[feature][part.holes[:, feature]]
        return self.little_known.soften(part, feature, chances)

    def told(self, part: Part, feature: int) -> FloatArray:
        """Return the probabilities of missing cells if it has categories, else their quantiles."""
        return (self.chances_of if feature in self.chances else self.grid)(part, feature)

    def ends(self, part: Part, feature: int, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of intervals for the missing cells of a column of numbers."""
        mass = self.calibration.mass(coverage, self.features.index(feature))
        grid, few = self.grid(part, feature), self.little_known.cells(part, feature)
        low, high = nested(grid, mass)
        # What was enough for held-out cells may be too little for these.
        low[few], high[few] = nested(grid[few], max(mass, coverage))
        return low, high

    def sets(self, part: Part, feature: int, coverage: float) -> list[tuple[int, ...]]:
        """Return the sets of categories for the missing cells of a column."""
        beside = ~np.isnan(part.numbers[part.holes[:, feature]])
        least, usual = (self.least_chances(feature, beside, share) for share in (coverage, USUAL))
        # Held-out cells do not tell what is enough for these.
        usual[self.little_known.cells(part, feature)] = np.inf
        chances = self.chances_of(part, feature)
        return category_sets(chances, coverage, least=least, usual=usual)

    def least_chances(self, feature: int, beside: BoolArray, coverage: float) -> FloatArray:
        """Return the probability from which on a category belongs into the set of a cell.

        Parameters
        ----------
        feature : int
            Whose cells.
        beside : ndarray of bool, shape (cells, features)
            Which cells of their rows are known.
        coverage : float
            How often a set should hold the truth.
        """
        absent = self.company[feature].is_absent(beside)
        least = np.zeros(absent.size)
        for kind in np.unique(absent).tolist():
            least[absent == kind] = self._least_chance(feature, coverage, absent=kind)
        return least

    def _least_chance(self, feature: int, coverage: float, *, absent: bool) -> float:
        """Return it for cells of which those columns are known that tell them, or of which not."""
        alike = {j: mine == absent for j, mine in self.absent.items()}
        each = [self.chances[j][mine] for j, mine in alike.items()]
        everyone = np.concatenate([np.empty(0), *each])
        if not everyone.size:
            return 0.0
        own = -self.chances[feature][alike[feature]]
        counts = self.stand_for.get(feature)
        counts = None if counts is None else counts[alike[feature]]
        return max(0.0, -shared_level(own, -everyone, coverage, counts, careful=CAREFUL))


def category_sets(
    chances: FloatArray, coverage: float, *, least: FloatArray, usual: FloatArray
) -> list[tuple[int, ...]]:
    """Return the categories that are probable enough, the most probable one first.

    A row in which none is as probable as it usually is was unlike those that tell what is enough:
    less is known of it. It gets as many as are needed for the coverage together.

    Parameters
    ----------
    chances : ndarray of shape (cells, categories)
        Their probabilities.
    coverage : float
        How often a set should hold the truth.
    least : ndarray of shape (cells,)
        The probability that is enough for that.
    usual : ndarray of shape (cells,)
        The one that is enough for `USUAL` of the sets, whatever coverage is asked for: so a set of
        more coverage holds that of less.

    Examples
    --------
    >>> chances = np.array([[0.6, 0.1, 0.3], [0.05, 0.9, 0.05], [0.4, 0.3, 0.3]])
    >>> category_sets(chances, 0.6, least=np.full(3, 0.5), usual=np.full(3, 0.5))
    [(0,), (1,), (0, 1)]
    """
    order = np.argsort(-chances, axis=1, kind="stable")
    total = np.cumsum(np.take_along_axis(chances, order, axis=1), axis=1)
    together = np.minimum(1 + (total < coverage - 1e-9).sum(axis=1), chances.shape[1])
    enough = np.maximum(1, (chances >= least[:, None]).sum(axis=1))
    sizes = np.where(chances.max(axis=1) < usual, together, enough)
    return [tuple(row[:size].tolist()) for row, size in zip(order, sizes.tolist(), strict=True)]


@dataclass(frozen=True)
class ColumnDistribution:
    """What may be in the missing cells of one column.

    Parameters
    ----------
    name : str
        The column.
    rows : ndarray of int, shape (cells,)
        Positions of the rows whose cell is missing.
    grid : ndarray of shape (cells, levels) or None
        For numbers, the quantiles at 201 levels from 0 to 1. For categories that have an order,
        those of their positions.
    chances : ndarray of shape (cells, categories) or None
        For categories, their probabilities.
    column : Column
        How numbers become values of the column.
    """

    name: str
    rows: IntArray
    grid: FloatArray | None
    chances: FloatArray | None
    column: Column

    @property
    def _is_unordered(self) -> bool:
        return self.grid is None

    @property
    def categories(self) -> tuple[Any, ...] | None:
        """The categories that `chances` are about; None for numbers."""
        return None if self.chances is None else self.column.categories

    def quantile(self, level: float | FloatArray) -> Array:
        """Return quantiles in the values of the column.

        Parameters
        ----------
        level : float or array of shape (levels,)
            Between 0 and 1; rounded to half a per cent.

        Returns
        -------
        ndarray of shape (cells,) or (cells, levels)
        """
        try:
            levels = np.atleast_1d(np.asarray(level, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise InputError(f"level must be between 0 and 1, got {level!r}.") from error
        if not ((levels >= 0) & (levels <= 1)).all():
            raise InputError(f"level must be between 0 and 1, got {level!r}.")
        grid = self._numbers("quantile")
        found = grid[:, np.rint(levels * (GRID.size - 1)).astype(np.int64)]
        values = self.column.decode(found.ravel()).reshape(found.shape)
        return values[:, 0] if np.ndim(level) == 0 else values

    def probability(self, value: Any) -> FloatArray:
        """Return the probability of a category, or of a value not above ``value``.

        The latter is for numbers, dates, durations, and categories that have an order.

        Parameters
        ----------
        value : object
            As it is in the column: a number, a category, a date (in UTC if it has no time zone).

        Returns
        -------
        ndarray of shape (cells,)
        """
        number = number_of(self.column, value)
        if self._is_unordered:
            assert self.chances is not None
            return self.chances[:, int(number)]
        grid = Limits.of(self.column).project(self._numbers("probability"))
        below: FloatArray = (grid <= number).mean(axis=1)
        return below

    def median(self) -> Array:
        """Return the middle of every cell's distribution; of categories the most probable one."""
        return self.mode() if self._is_unordered else self.quantile(0.5)

    def mean(self) -> Array:
        """Return the expected values of numbers; of categories the most probable one."""
        if self._is_unordered:
            return self.mode()
        return self.column.decode(point_of(self._numbers("mean"), "mean"))

    def mode(self) -> Array:
        """Return the most probable values."""
        if self._is_unordered:
            assert self.chances is not None
            return self.column.decode(self.chances.argmax(axis=1).astype(np.float64))
        return self.column.decode(point_of(self._numbers("mode"), "mode"))

    def _numbers(self, what: str) -> FloatArray:
        if self.grid is None:
            raise InputError(
                f"Column {self.name!r} has categories, which have no {what}. Look at `chances`."
            )
        return self.grid


def number_of(column: Column, value: Any) -> float:
    """Return a value of a column as it is in the distributions of its cells.

    Raises
    ------
    InputError
        If it is no value of such a column.
    """
    if column.categories is not None:
        if value not in column.categories:
            raise InputError(f"Column {column.name!r} has no category {value!r}.")
        return float(column.categories.index(value))
    try:
        if not column.unit:
            return column.from_origin(value)
        if getattr(value, "tzinfo", None) is not None:
            value = value.astimezone(UTC).replace(tzinfo=None)
        letter, kind = (
            ("m", np.timedelta64) if column.form is Form.DURATION else ("M", np.datetime64)
        )
        count = kind(value).astype(f"{letter}8[{column.unit}]").astype(np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{value!r} cannot be compared with column {column.name!r}, which is {column.dtype}."
        ) from error
    return float(int(count) - column.origin)


def point_of(grid: FloatArray, fill: str) -> FloatArray:
    """Return one number for every cell from its quantiles: the median, the mean or the mode."""
    if fill == "mean":
        mean: FloatArray = grid[:, 1:-1].mean(axis=1)
        return mean
    if fill == "median":
        return grid[:, GRID.size // 2]
    # The middle of the shortest interval that holds a fifth.
    low, high = shortest(grid, 0.2)
    return low / 2 + high / 2


class Distribution(dict[Any, ColumnDistribution]):
    """The distributions of all missing cells of a table, by column."""

    def __repr__(self) -> str:
        listed = ", ".join(f"{name!r}: {each.rows.size} cells" for name, each in self.items())
        return f"Distribution({listed})"


def pieces(parts: Sequence[Part]) -> list[Part]:
    """Return parts of so many rows that beliefs about them are worked out together."""
    found: list[Part] = []
    for part in parts:
        most = BLOCK_CELLS // max(1, part.numbers.shape[1])
        found += part.pieces(max(1, min(BLOCK, most)))
    return found


def by_feature(
    parts: Sequence[Part], n_features: int, values: Callable[[Part, int], T]
) -> list[list[T]]:
    """Return what is said of the parts, for every feature; all of a part before the next one."""
    each = [[values(part, at) for at in range(n_features)] for part in parts]
    return [[mine[at] for mine in each] for at in range(n_features)]


def distributions(beliefs: Beliefs, parts: list[Part], names: Mapping[int, Any]) -> Distribution:
    """Return the distributions of the missing cells of some rows."""
    schema = beliefs.model.schema
    found = Distribution()
    parts = pieces(parts)
    told = by_feature(parts, len(schema.features), beliefs.told)
    for at, j in enumerate(schema.features):
        rows = np.concatenate([part.rows[part.holes[:, at]] for part in parts])
        if not rows.size:
            continue
        grid = chances = None
        if at in beliefs.chances:
            chances = np.concatenate(told[at])
        else:
            grid = np.concatenate(told[at])
        column = schema.columns[j]
        if grid is not None and column.categories is not None:
            codes = np.rint(np.clip(grid, column.lower, column.upper)).astype(np.int64)
            some = range(len(column.categories))
            chances = np.stack([(codes == code).mean(axis=1) for code in some], axis=1)
        found[names[j]] = ColumnDistribution(column.name, rows, grid, chances, column)
    return found
