r"""Draws of all missing cells of a row together, from a chain of regressions and trees.

A missing number is drawn as

.. math:: x_j = z_{-j}^\top \beta_j^{(k)} + r,

where :math:`z_{-j}` are the other cells of the row as they are by then, :math:`\beta^{(k)}` is a
draw from the posterior of the regression, one for every imputation, and :math:`r` is what the
regression left over in an observed cell of the column. A skew column is regressed on a curved scale
(`grapefill.uncertainty.curves`). Where what is left over depends on the other
cells, trees predict it, and :math:`r` is what these in turn left over in a row that they had not
seen, of about the same prediction. A column that repeats some values gets the value of such a row.
To numbers, categories that are too many to be inputs add effects (`grapefill.uncertainty.groups`).
A missing category is drawn from the probabilities of a logistic regression or from the votes of
trees. A few sweeps over the columns make the cells of a row go along with each other. They start
from the fills, numbers off by errors that go along with each other (`grapefill.uncertainty.start`).

The regressions keep estimates from drawn tables free of the bias that trees have towards the
middle; the trees follow what is not linear.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from grapefill.training.parameters import starting
from grapefill.trees.forest import Forest
from grapefill.uncertainty.chance import spread_uniforms, uniforms
from grapefill.uncertainty.choosing import choose_alike, choose_category, choose_donor, choose_vote
from grapefill.uncertainty.curves import Curve
from grapefill.uncertainty.design import closest_of
from grapefill.uncertainty.groups import Effects
from grapefill.uncertainty.logistic import category_chances
from grapefill.uncertainty.reach import Bend, Ends, Reach
from grapefill.uncertainty.remainders import Trust
from grapefill.uncertainty.start import errors_together

if TYPE_CHECKING:
    import numpy.typing as npt

    from grapefill.table.arrays import FloatArray, IntArray
    from grapefill.trees import Guess
    from grapefill.uncertainty.design import Design

SWEEPS = 4


@dataclass(frozen=True)
class ColumnDraws:
    """How the cells of one column are drawn.

    Parameters
    ----------
    inputs : ndarray of int
        The inputs that the regression reads, among them the constant. Without any, cells are drawn
        from the probabilities that the model gives.
    coefficients : ndarray of shape (draws, inputs) or (draws, inputs, categories - 1)
        Draws from the posterior of the regression, of scaled numbers or of log odds.
    spreads : ndarray of shape (draws,)
        By how much what is left over is larger than in the pool, drawn with the coefficients.
    pool : ndarray
        What is left over in observed cells, or the values of these; empty for categories.
    levels : ndarray
        What was predicted of the same cells, in order; empty where that does not matter.
    forest : Forest or None
        Trees whose leaves hold a remainder or a category.
    linear : float
        For categories, how often the regression is asked, not the trees. For numbers, whether what
        is in the pool is added to a prediction (1) or is the value itself (0).
    low, high : float
        The range of what may be drawn.
    trust : Trust
        How far trees are believed that hold remainders.
    sharpness : float
        How far trees are believed that hold categories; see `choose_vote`.
    values : ndarray
        The only numbers that may be drawn, in order; empty if others may.
    bends : tuple of Bend
        What becomes of numbers near the low end and near the high one.
    blur : float
        Where values of observed cells are drawn, which difference of two predictions tells nothing,
        in units of how far predictions are off.
    groups : tuple of Effects
        What categories add that are too many to be inputs.
    """

    inputs: IntArray
    coefficients: FloatArray
    spreads: FloatArray
    pool: FloatArray
    levels: FloatArray
    forest: Forest | None
    linear: float
    low: float
    high: float
    trust: Trust = field(default_factory=Trust)
    sharpness: float = 1.0
    values: FloatArray = field(default_factory=lambda: np.empty(0))
    bends: tuple[Bend, Bend] = (Bend(), Bend())
    blur: float = 0.0
    groups: tuple[Effects, ...] = ()


@dataclass(frozen=True)
class Joint:
    """Draws for the missing cells of rows.

    Parameters
    ----------
    design : Design
        Inputs of the regressions.
    columns : tuple of ColumnDraws
        One for every feature.
    covariance : ndarray of shape (numbers, numbers)
        How the scaled columns of numbers go along with each other.
    trace : ndarray of shape (sweeps, features)
        The mean of the drawn cells of every feature after each sweep that they were learned by, of
        categories the share of the most frequent one, NaN without holes; whoever looks at it sees
        whether the chain has settled. Without sweeps where nobody noted it.
    """

    design: Design
    columns: tuple[ColumnDraws, ...]
    covariance: FloatArray
    trace: FloatArray

    def draw(
        self, numbers: FloatArray, guess: Guess, rows: IntArray, *, seed: int, number: int
    ) -> FloatArray:
        """Draw the missing cells of some rows.

        Parameters
        ----------
        numbers : ndarray of shape (rows, features)
            Encoded rows, NaN where a cell is not observed.
        guess : Guess
            What is believed about them, to start from.
        rows : ndarray of int
            Positions of the rows in their table.
        seed : int
            Source of all randomness.
        number : int
            Which imputation it is.

        Returns
        -------
        ndarray of shape (rows, features)
            Without holes.
        """
        missing = np.isnan(numbers)
        several = missing.sum(axis=1) > 1
        work = Work(self.design, self._start(numbers, guess, rows, seed, number))
        for sweep in range(SWEEPS):
            # A single hole depends on observed cells only.
            use = missing if sweep == SWEEPS - 1 else missing & several[:, None]
            for j, column in enumerate(self.columns):
                cells = np.flatnonzero(use[:, j])
                if cells.size and column.inputs.size:
                    asked = _Cells(j, cells, rows[cells], number, (seed, sweep))
                    work.put(j, cells, _draw(column, work, asked))
        return work.values

    def _start(
        self, numbers: FloatArray, guess: Guess, rows: IntArray, seed: int, number: int
    ) -> FloatArray:
        """Return rows whose holes are filled with a first draw: each by itself may be like that."""
        missing = np.isnan(numbers)
        values = np.where(missing, guess.value, numbers)
        for j, k in enumerate(self.design.n_categories):
            cells = np.flatnonzero(missing[:, j])
            if k and cells.size:
                chance = uniforms(rows[cells], seed, number, j)
                values[cells, j] = choose_category(guess.chances[j][cells], chance)
        features = [j for j, k in enumerate(self.design.n_categories) if not k]
        together = np.flatnonzero(missing[:, features].sum(axis=1) > 1)
        if together.size:
            holes = missing[together][:, features]
            errors = errors_together(self.covariance, holes, rows[together], seed, number, SWEEPS)
            for at, j in enumerate(features):
                cells, error = together[holes[:, at]], errors[holes[:, at], at]
                column, scaled = self.columns[j], self.design.scaled(j, values[cells, j])
                off = self.design.undo(j, scaled + error)
                values[cells, j] = np.clip(off, column.low, column.high)
        return values

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return plain arrays, by name, for a model file."""
        named: dict[str, npt.NDArray[Any]] = {"covariance": self.covariance, "trace": self.trace}
        named |= {f"{j}.curve": curve.array() for j, curve in self.design.curves.items()}
        for j, column in enumerate(self.columns):
            named |= {
                f"{j}.inputs": column.inputs,
                f"{j}.coefficients": column.coefficients,
                f"{j}.spreads": column.spreads,
                f"{j}.pool": column.pool,
                f"{j}.levels": column.levels,
                f"{j}.values": column.values,
                f"{j}.low_bend": np.stack(column.bends[0]),
                f"{j}.high_bend": np.stack(column.bends[1]),
                f"{j}.settings": np.array(
                    [column.linear, column.low, column.high, column.sharpness, column.blur]
                ),
                f"{j}.trust": np.array(astuple(column.trust)),
            }
            named |= {f"{j}.groups.{each.feature}": each.drawn for each in column.groups}
            if column.forest is not None:
                parts = column.forest.arrays() | {
                    "columns": np.array(column.forest.columns, dtype=np.int32)
                }
                named |= {f"{j}.trees.{name}": array for name, array in parts.items()}
        return named

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]], design: Design) -> Self:
        """Rebuild from `arrays`; raises ValueError if they do not fit."""
        columns = []
        curves = {
            j: Curve.from_array(arrays[f"{j}.curve"])
            for j, k in enumerate(design.n_categories)
            if not k and f"{j}.curve" in arrays
        }
        design = replace(design, curves=curves)
        for j, k in enumerate(design.n_categories):
            mine = starting(arrays, f"{j}.")
            trees = starting(mine, "trees.")
            forest = None
            if trees:
                read = tuple(trees.pop("columns").tolist())
                if not set(read) <= set(range(len(design.n_categories))):
                    raise ValueError("a tree of the draws reads columns that are not there")
                forest = Forest.from_arrays(trees, read, k)
            inputs, coefficients, pool = mine["inputs"], mine["coefficients"], mine["pool"]
            if not np.isin(inputs, np.arange(design.width)).all():
                raise ValueError("a regression reads inputs that are not there")
            if not k and not inputs.size:
                raise ValueError("a regression of numbers has no inputs")
            shapes = [(inputs.size, k - 1), (inputs.size, k)] if k else [(inputs.size,)]
            if coefficients.shape[1:] not in shapes or not coefficients.shape[0]:
                raise ValueError("the coefficients of a regression do not fit its inputs")
            spreads = mine.get("spreads", np.ones(coefficients.shape[0]))
            if spreads.shape != coefficients.shape[:1] or not (spreads > 0).all():
                raise ValueError("the spreads of a regression do not fit its coefficients")
            if not np.isfinite(coefficients).all() or not np.isfinite(pool).all():
                raise ValueError("not all numbers of a regression are finite")
            # Models that were saved before say nothing about the last of them.
            settings = mine["settings"].tolist()
            linear, low, high, sharpness, blur = settings + [1.0, 0.0][len(settings) - 3 :]
            if not sharpness >= 1:
                raise ValueError("how far votes on categories are believed is below 1")
            if not 0 <= blur < np.inf:
                raise ValueError("a difference of predictions that tells nothing is no number")
            levels, values = mine["levels"], mine.get("values", np.empty(0))
            if not np.isfinite(values).all() or (np.diff(values) <= 0).any():
                raise ValueError("the values of a column are not in order")
            if levels.size not in (0, pool.size) or (np.diff(levels) < 0).any():
                raise ValueError("the levels of a column are not in order")
            if (k and forest is None and linear < 1) or (not k and not pool.size):
                raise ValueError("a column has nothing to draw from")
            if forest is not None and not k and not levels.size:
                raise ValueError("a column has trees and no levels")
            way = (
                pool,
                levels,
                forest,
                linear,
                low,
                high,
                _trust(mine, 0 if forest is None else len(forest.trees)),
                sharpness,
                values,
                _bends(mine),
                blur,
                _groups(mine, design.n_categories, coefficients.shape[0]),
            )
            columns.append(ColumnDraws(inputs, coefficients, spreads, *way))
        covariance = arrays["covariance"]
        if covariance.shape != (len(design.numbers),) * 2 or not np.isfinite(covariance).all():
            raise ValueError("the covariance does not fit the columns")
        trace = arrays.get("trace", np.empty((0, len(columns))))
        if trace.ndim != 2 or trace.shape[1] != len(columns):
            raise ValueError("the trace of the draws does not fit the columns")
        return cls(design, tuple(columns), covariance, trace)


def _trust(arrays: dict[str, npt.NDArray[Any]], n_trees: int) -> Trust:
    """Return how far trees are believed; entirely by models that were saved before."""
    parameters = arrays.get("trust", np.array(astuple(Trust())))
    if parameters.shape not in ((3,), (4,)) or not np.isfinite(parameters).all():
        raise ValueError("how far trees are believed is not four numbers")
    # All trees were asked then.
    share, base, slope, asked = [*parameters.tolist(), 0.0][:4]
    if asked not in range(n_trees + 1):
        raise ValueError("more trees are asked in a draw than there are")
    return Trust(share, base, slope, int(asked))


def _bends(arrays: dict[str, npt.NDArray[Any]]) -> tuple[Bend, Bend]:
    """Return what becomes of draws near the ends; nothing in models that were saved before."""
    found = [arrays.get(f"{end}_bend", np.empty((2, 0))) for end in ("low", "high")]
    for each in found:
        if each.ndim != 2 or each.shape[0] != 2 or not np.isfinite(each).all():
            raise ValueError("how draws are bent near an end is not pairs of numbers")
        if (np.diff(each) < 0).any():
            raise ValueError("how draws are bent near an end is not in order")
    low, high = (Bend(*each) for each in found)
    return low, high


def _groups(
    arrays: dict[str, npt.NDArray[Any]], n_categories: tuple[int, ...], draws: int
) -> tuple[Effects, ...]:
    """Return what categories add; nothing in models that were saved before."""
    found = []
    for name, drawn in starting(arrays, "groups.").items():
        if name not in map(str, np.flatnonzero(n_categories)):
            raise ValueError("a column without categories has effects of these")
        if drawn.shape != (draws, n_categories[int(name)]):
            raise ValueError("the effects of categories do not fit these")
        if drawn.dtype.kind != "f" or not np.isfinite(drawn).all():
            raise ValueError("not all effects of categories are finite numbers")
        found.append(Effects(int(name), drawn))
    return tuple(found)


def drawn_from_guess(n_categories: int) -> ColumnDraws:
    """Return draws of a column by the probabilities that the model gives, for many categories."""
    none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
    coefficients = np.empty((1, 0, n_categories - 1))
    return ColumnDraws(none, coefficients, np.ones(1), nothing, nothing, None, 1.0, 0.0, 0.0)


class Work:
    """Rows whose holes are being drawn."""

    def __init__(self, design: Design, values: FloatArray) -> None:
        self.design = design
        self.values = values
        self.inputs = design.inputs(values)
        # What trees read: codes for categories.
        self.scaled = np.column_stack(
            [self._readable(j, values[:, j]) for j in range(values.shape[1])]
        ).astype(np.float32)

    def put(self, feature: int, cells: IntArray, values: FloatArray) -> None:
        """Write drawn values."""
        self.values[cells, feature] = values
        self.design.put(self.inputs, cells, feature, values)
        self.scaled[cells, feature] = self._readable(feature, values)

    def _readable(self, feature: int, values: FloatArray) -> FloatArray:
        return values if self.design.n_categories[feature] else self.design.scaled(feature, values)

    def linear(self, column: ColumnDraws, cells: IntArray, beta: FloatArray) -> FloatArray:
        """Return what a regression says about some rows, each as if it were alone."""
        inputs = self.inputs.take(cells, axis=0).take(column.inputs, axis=1)
        # A matrix product may round a row differently among others.
        said: FloatArray = np.einsum("ij,j...->i...", inputs, beta)
        return said

    def trees_read(self, forest: Forest, cells: IntArray) -> npt.NDArray[np.float32]:
        """Return the inputs of a forest for some rows."""
        return self.scaled.take(cells, axis=0).take(forest.columns, axis=1)


class _Cells(NamedTuple):
    """Cells of one column to draw.

    Parameters
    ----------
    feature : int
        Whose cells.
    at : ndarray of int
        Their rows, by place.
    rows : ndarray of int
        The positions of these in their table.
    number : int
        Which imputation it is.
    key : tuple of int
        The source of randomness, and the sweep.
    """

    feature: int
    at: IntArray
    rows: IntArray
    number: int
    key: tuple[int, int]

    def which(self, kept: int) -> int:
        """Return which of the kept coefficients to draw by, the same for all columns.

        Imputations of other seeds begin elsewhere: one of each seed is as good as several of one.
        """
        return (self.number + self.key[0]) % kept

    def chance(self, purpose: int) -> FloatArray:
        """Return a number for every cell; in the last sweep spread evenly over imputations."""
        seed, sweep = self.key
        if sweep < SWEEPS - 1:
            return uniforms(self.rows, seed, self.number, sweep, self.feature, purpose)
        return spread_uniforms(self.rows, self.number, seed, self.feature, purpose)


def _draw(column: ColumnDraws, work: Work, cells: _Cells) -> FloatArray:
    """Draw some cells of one column."""
    if work.design.n_categories[cells.feature]:
        return _draw_category(column, work, cells)
    chance = cells.chance(0)
    which = cells.which(column.coefficients.shape[0])
    scaled = work.linear(column, cells.at, column.coefficients[which])
    for group in column.groups:
        scaled = scaled + group.of(work.values[cells.at, group.feature], which)
    size = np.ones(scaled.size)
    if column.forest is not None:
        read = work.trees_read(column.forest, cells.at)
        more, size = column.trust.ask(column.forest, read, cells.number + cells.key[0])
        scaled = scaled + more
    donors = not column.linear
    if column.levels.size:
        if donors:
            observed = work.design.scaled(cells.feature, column.pool)
            chosen = choose_donor(observed, column.levels, scaled, chance, column.blur)
        else:
            chosen = choose_alike(column.levels, scaled, chance)
        found = column.pool[chosen]
    else:
        found = column.pool[(chance * column.pool.size).astype(np.int64)]
    if donors:
        return found
    scaled = scaled + found * size * column.spreads[which]
    ends = Ends(Reach(column.low, column.high), *column.bends)
    drawn = ends.apply(work.design.undo(cells.feature, scaled))
    return closest_of(column.values, drawn) if column.values.size else drawn


def _draw_category(column: ColumnDraws, work: Work, cells: _Cells) -> FloatArray:
    drawn = np.empty(cells.at.size)
    asks_trees = cells.chance(1) >= column.linear
    chance = cells.chance(0)
    trees, rest = np.flatnonzero(asks_trees), np.flatnonzero(~asks_trees)
    if trees.size and column.forest is not None:
        read = work.trees_read(column.forest, cells.at[trees])
        drawn[trees] = choose_vote(column.forest, read, chance[trees], column.sharpness)
    if rest.size:
        beta = column.coefficients[cells.which(column.coefficients.shape[0])]
        logits = work.linear(column, cells.at[rest], beta)
        chances = category_chances(logits, work.design.n_categories[cells.feature])
        drawn[rest] = choose_category(chances, chance[rest])
    return drawn
