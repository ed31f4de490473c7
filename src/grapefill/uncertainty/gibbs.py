"""How the draws of a table are learned: data augmentation over its observed cells.

The table starts with the point fills, a long one in which any two columns are often seen together
with draws by what some of its rows tell. Sweep after sweep each column is regressed on the others
as they are by then, the coefficients are drawn from their posterior, and the holes of the column
are drawn anew. After some sweeps coefficients are kept, of all columns together for the table as it
is by then: they differ as much as the holes leave them uncertain, which is what makes imputations
proper (van Buuren: Flexible imputation of missing data, 2018).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from grapefill.trees.growth import MOST_CATEGORIES
from grapefill.trees.work import threads
from grapefill.uncertainty.column_trees import KEPT_TREES
from grapefill.uncertainty.design import Design, choose_rows
from grapefill.uncertainty.joint import Joint, Work, drawn_from_guess
from grapefill.uncertainty.relevant import MOST_INPUTS
from grapefill.uncertainty.start import covariance_of, errors_together
from grapefill.uncertainty.swept import SweptColumn

if TYPE_CHECKING:
    from collections.abc import Collection

    from grapefill.table.arrays import BoolArray, FloatArray, IntArray
    from grapefill.training.model import GrapeModel
    from grapefill.uncertainty.swept import Products

# Draws of the coefficients that are kept, sweeps before the first of them, and sweeps over which
# they are spread. A long table has fewer sweeps, several draws from each, and where to begin is
# found out on some of its rows.
DRAWS = 20
WARM_UP, WARM_UP_OF_MANY = 10, 1
SWEEPS, SWEEPS_OF_MANY = 40, 5
# A long table has so many rows, and such a share of them with both cells of whichever two columns:
# what is seen together less is known less well, and takes more sweeps.
MANY_ROWS = 5_000
LEAST_PAIRS = 0.4
# So many inputs are multiplied with each other at once for all columns.
MOST_TOGETHER = 256
START_ROWS, START_SWEEPS, START_TREES = 1_500, 10, 2
# How often covariances are worked out from fills that are off by what these tell.
START_STEPS = 5
# Fills know the observed cells of their rows, and trees would find out, so that these come later.
TREES_FROM = 2
# Learned from no more rows than that, nor from more multiplications per sweep.
LEARNED_ROWS = 20_000
MOST_WORK = 2e9
FEWEST_ROWS = 2_000


def fit_joint(
    model: GrapeModel,
    numbers: FloatArray,
    *,
    seed: int,
    quick: bool = False,
) -> Joint:
    """Learn to draw the missing cells of a table.

    Parameters
    ----------
    model : GrapeModel
        A trained model, for the fills to start from.
    numbers : ndarray of shape (rows, features)
        Encoded rows, NaN where a cell is not observed.
    seed : int
        Source of all randomness.
    quick : bool
        Whether to learn from few rows, which makes draws differ more than they have to.
    """
    random = np.random.default_rng(seed)
    design = Design(model.features.n_categories, model.scaling)
    ranges = np.nanmin(numbers, axis=0), np.nanmax(numbers, axis=0)
    rows = choose_rows(numbers, FEWEST_ROWS if quick else _affordable_rows(design), random)
    missing = np.isnan(numbers[rows])
    many = leaves_little_open(missing)
    # The trees of the model would guess better, but what is learned from some rows soon does.
    predict = model.predict_start if many else model.predict
    values = np.where(missing, predict(numbers[rows]).value, numbers[rows])
    # Dates end where the observed ones do.
    known = enumerate(model.schema.columns[at] for at in model.schema.features)
    free = {j for j, column in known if column.family == "number"}
    design = design.curved(values, missing)
    if not many:
        values = _apart(design, values, missing, seed)
    work = Work(design, values)
    columns = {
        j: SweptColumn(work, j, missing, random, may_exceed=j in free)
        for j, k in enumerate(design.n_categories)
        if k <= MOST_CATEGORIES
    }
    if many:
        _start(columns, work, missing, random)
    trace = _sweep(columns, work, missing, random, many=many)
    learned = tuple(
        columns[j].result(low, high) if j in columns else drawn_from_guess(k)
        for j, (k, low, high) in enumerate(zip(design.n_categories, *ranges, strict=True))
    )
    return Joint(design, learned, covariance_of(work.inputs[:, design.numbers]), trace)


def _sweep(
    columns: dict[int, SweptColumn],
    work: Work,
    missing: BoolArray,
    random: np.random.Generator,
    *,
    many: bool,
) -> FloatArray:
    """Go through the columns again and again, and keep draws; return the trace of a `Joint`."""
    keep, grow = _spread_over_sweeps(DRAWS, many=many), _spread_over_sweeps(KEPT_TREES, many=many)
    first = 0 if many else TREES_FROM
    usual, trace = _most_frequent(work.values, missing, work.design.n_categories), []
    for sweep in range(max(keep) + 1):
        if sweep == first:
            _start_trees(columns.values())
        for column in columns.values():
            # Without holes nothing depends on a column until something of it is kept.
            if column.holes.size or sweep == first or sweep in grow:
                if sweep != first:
                    column.regress()
                    if column.trees.are_used:
                        column.trees.grow(grow[sweep])
                if sweep <= first or sweep in grow:
                    column.look()
                column.redraw()
        trace.append(_means(np.where(usual >= 0, work.values == usual, work.values), missing))
        if sweep in keep:
            weights = random.exponential(size=(missing.shape[0], keep[sweep]))
            products = [_products(work.inputs, each) for each in weights.T]
            for column in columns.values():
                column.keep(weights, products)
    return np.stack(trace)


def _apart(design: Design, values: FloatArray, missing: BoolArray, seed: int) -> FloatArray:
    """Return rows whose fills are off by errors that go along with each other.

    Sweeps do not move cells apart that are missing together where one tells the other, and fills
    lie too close together. So do their covariances, until errors are added.
    """
    features = [j for j, k in enumerate(design.n_categories) if not k]
    holes = missing[:, features]
    if not (holes.sum(axis=1) > 1).any():
        return values
    fills = np.stack([design.scaled(j, values[:, j]) for j in features], axis=1)
    off = fills
    for step in range(START_STEPS):
        covariance = covariance_of(off)
        off = fills + errors_together(covariance, holes, np.arange(len(values)), seed, step)
    values = values.copy()
    for at, j in enumerate(features):
        mine, known = holes[:, at], values[~holes[:, at], j]
        values[mine, j] = np.clip(design.undo(j, off[mine, at]), known.min(), known.max())
    return values


def _most_frequent(
    values: FloatArray, missing: BoolArray, n_categories: tuple[int, ...]
) -> FloatArray:
    """Return the category of every feature that was observed most often, -1 for numbers."""
    return np.array(
        [
            np.bincount(values[~missing[:, j], j].astype(np.int64)).argmax() if k else -1.0
            for j, k in enumerate(n_categories)
        ]
    )


def _means(values: FloatArray, holes: BoolArray) -> FloatArray:
    """Return the mean of the holes of every feature, NaN without any."""
    count = holes.sum(axis=0)
    # Sums of the largest numbers would be infinite.
    total = np.where(holes, values / np.maximum(count, 1), 0.0).sum(axis=0)
    means: FloatArray = np.where(count > 0, total, np.nan)
    return means


def _products(inputs: FloatArray, weights: FloatArray) -> Products:
    """Return what gives the sums over weighted rows of the products of some inputs."""
    if inputs.shape[1] > MOST_TOGETHER:

        def products(some: IntArray) -> FloatArray:
            part = inputs[:, some]
            found: FloatArray = part.T @ (part * weights[:, None])
            return found

        return products
    together = inputs.T @ (inputs * weights[:, None])
    return lambda some: together[np.ix_(some, some)]


def learns_quickly(model: GrapeModel, numbers: FloatArray, seed: int) -> bool:
    """Whether a table is long for `fit_joint`, which then takes little time beside a fit."""
    most = _affordable_rows(Design(model.features.n_categories, model.scaling))
    # The rows that it will choose.
    rows = choose_rows(numbers, most, np.random.default_rng(seed))
    return leaves_little_open(np.isnan(numbers[rows]))


def _affordable_rows(design: Design) -> int:
    """Return how many rows may be learned from."""
    width = min(design.width, MOST_INPUTS)
    # A regression for every category, but none where there are too many.
    regressions = sum(max(1, k) for k in design.n_categories if k <= MOST_CATEGORIES)
    affordable = int(MOST_WORK / (max(1, regressions) * width**2))
    return min(LEARNED_ROWS, max(FEWEST_ROWS, affordable))


def leaves_little_open(missing: BoolArray) -> bool:
    """Whether there are many rows, and any two columns are seen together in enough of them."""
    rows = missing.shape[0]
    if rows < MANY_ROWS:
        return False
    seen = (~missing).astype(np.float32)
    return bool((seen.T @ seen).min() >= LEAST_PAIRS * rows)


def _start(
    columns: dict[int, SweptColumn], work: Work, missing: BoolArray, random: np.random.Generator
) -> None:
    """Draw all holes by regressions and trees that have settled on some of the rows."""
    rows = np.sort(random.permutation(missing.shape[0])[:START_ROWS])
    some = Work(work.design, work.values[rows])
    starts = {
        j: SweptColumn(some, j, missing[rows], random, like=column)
        for j, column in columns.items()
        if 0 < missing[rows, j].sum() < rows.size
    }
    for sweep in range(START_SWEEPS):
        if sweep == TREES_FROM:
            _start_trees(starts.values(), quick=True)
        for start in starts.values():
            if sweep != TREES_FROM:
                start.regress()
                if start.trees.are_used:
                    start.trees.grow(START_TREES)
            start.look()
            start.redraw()
    # Twice, for what is drawn first reads guesses.
    for j, start in [*starts.items()] * 2:
        columns[j].redraw_like(start)
        columns[j].trees.are_wanted &= start.trees.are_wanted


def _start_trees(columns: Collection[SweptColumn], *, quick: bool = False) -> None:
    """Regress all columns, and grow the first trees of what is left over, side by side."""
    for column in columns:
        column.regress()
        column.try_regression()
    with threads() as pool:
        for _ in pool.map(lambda column: column.trees.start(quick=quick), columns):
            pass


def _spread_over_sweeps(count: int, *, many: bool) -> Counter[int]:
    """Return in which sweeps how much of something is done."""
    first, sweeps = (WARM_UP_OF_MANY, SWEEPS_OF_MANY) if many else (WARM_UP, SWEEPS)
    return Counter((first + np.arange(count) * sweeps // count).tolist())
