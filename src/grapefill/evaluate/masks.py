r"""Which cells of a table go missing, by one of the three mechanisms of Rubin (1976).

- MCAR, completely at random: every cell alike.
- MAR, at random: by the values of other columns, which themselves stay observed.
- MNAR, not at random: by the value that goes missing itself, say high incomes.

For MAR and MNAR the chance of a cell is logistic, :math:`\sigma(a + b\,s)`, in a score s that has
mean 0 and spread 1, with the intercept a such that the rate comes out as asked for. Scores are made
of ranks, so that a few extreme values do not decide alone.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from grapefill.errors import ConfigError
from grapefill.settings import check_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    BoolArray = npt.NDArray[np.bool_]
    from grapefill.table.arrays import FloatArray

    IntArray = npt.NDArray[np.int64]

MECHANISMS = ("mcar", "mar", "mnar")
# Share of the columns that stay observed under MAR, and how much the chance depends on the score.
DRIVERS = 0.3
STRENGTH = 2.0


def draw_mask(
    numbers: FloatArray,
    rate: float,
    mechanism: str = "mcar",
    *,
    columns: Sequence[int] | None = None,
    seed: int = 0,
) -> BoolArray:
    """Draw the cells that go missing.

    Parameters
    ----------
    numbers : ndarray of shape (rows, columns)
        The table; NaN where something is missing already. Such a cell may be drawn too.
    rate : float
        Share of the observed cells that go missing in each column that may have holes.
    mechanism : {"mcar", "mar", "mnar"}
        Why they go missing.
    columns : sequence of int or None
        The columns that may have holes. None is all of them; under MAR, those that decide are then
        left out.
    seed : int
        Source of all randomness.

    Returns
    -------
    ndarray of bool, shape (rows, columns)

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(1000, 4))
    >>> draw_mask(table, 0.3, "mcar").mean().round(1)
    np.float64(0.3)
    >>> draw_mask(table, 0.3, "mar").any(axis=0)
    array([ True,  True,  True, False])
    """
    check_word("mechanism", mechanism, MECHANISMS)
    check_rate(rate)
    random = np.random.default_rng(seed)
    n_columns = numbers.shape[1]
    holed = np.arange(n_columns) if columns is None else np.unique(columns).astype(np.int64)
    if mechanism == "mcar":
        mask = random.random(numbers.shape) < rate
        mask[:, np.setdiff1d(np.arange(n_columns), holed)] = False
        return mask
    scores = _standardised(rankdata(numbers, axis=0, nan_policy="omit"))
    if mechanism == "mnar":
        scores = scores * random.choice([-1.0, 1.0], size=n_columns)
        scores = scores[:, holed]
    else:
        drivers = _draw_drivers(n_columns, holed, random)
        holed = np.setdiff1d(holed, drivers)
        weights = random.normal(size=(drivers.size, holed.size))
        scores = _standardised(scores[:, drivers] @ weights)
    mask = np.zeros(numbers.shape, dtype=bool)
    for at, j in enumerate(holed):
        chances = _chances(scores[:, at], rate, ~np.isnan(numbers[:, j]))
        mask[:, j] = random.random(numbers.shape[0]) < chances
    return mask


def draw_holes(
    numbers: FloatArray,
    rate: float,
    mechanism: str = "mcar",
    *,
    columns: Sequence[int] | None = None,
    allow_empty_rows: bool = False,
    seed: int = 0,
) -> BoolArray:
    """Draw observed cells that go missing, but never all of a column, or of a row.

    Parameters are those of `draw_mask`, and:

    Parameters
    ----------
    numbers, rate, mechanism, columns, seed
        As in `draw_mask`.
    allow_empty_rows : bool
        Whether a row may lose all of its cells.

    Returns
    -------
    ndarray of bool, shape (rows, columns)
        True only where the table has a value. Where all values of a column or row were drawn, one
        of them, chosen at random, stays.

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(5, 2))
    >>> draw_holes(table, 0.99).sum(axis=1)
    array([1, 1, 1, 1, 1])
    """
    known = ~np.isnan(numbers)
    mask = draw_mask(numbers, rate, mechanism, columns=columns, seed=seed) & known
    # A stream of its own, so that the cells drawn are those of draw_mask.
    random = np.random.default_rng([seed, 1])
    mask = _spare_one(mask.T, known.T, random).T
    return mask if allow_empty_rows else _spare_one(mask, known, random)


def check_rate(rate: object, name: str = "rate") -> None:
    """Raise when a share of cells is not a number from 0 to 1, without 1."""
    number = isinstance(rate, Real) and not isinstance(rate, bool)
    if not (number and 0 <= rate < 1):  # type: ignore[operator]
        raise ConfigError(f"{name} must be at least 0 and below 1, got {rate!r}.")


def _spare_one(mask: BoolArray, known: BoolArray, random: np.random.Generator) -> BoolArray:
    """Take a cell back in every row that would lose all its cells."""
    doomed = np.flatnonzero(known.any(axis=1) & ~(known & ~mask).any(axis=1))
    lots = random.random((doomed.size, mask.shape[1]))
    spared = mask.copy()
    spared[doomed, np.where(mask[doomed], lots, -1.0).argmax(axis=1)] = False
    return spared


def _draw_drivers(n_columns: int, holed: IntArray, random: np.random.Generator) -> IntArray:
    """Draw the columns that decide under MAR: those without holes, or else some of the others."""
    if n_columns < 2:
        raise ConfigError("Missing at random needs at least two columns: one to depend on.")
    others = np.setdiff1d(np.arange(n_columns), holed)
    most = others.size or n_columns - 1
    n_drivers = min(most, max(1, round(DRIVERS * n_columns)))
    return random.choice(others if others.size else n_columns, n_drivers, replace=False)


def _standardised(numbers: FloatArray) -> FloatArray:
    """Return the columns with mean 0 and spread 1; 0 where a cell is missing or a column flat."""
    known = ~np.isnan(numbers)
    count = np.maximum(known.sum(axis=0), 1)
    zero = np.where(known, numbers, 0.0)
    centered = np.where(known, zero - zero.sum(axis=0) / count, 0.0)
    spread = np.sqrt(np.square(centered).sum(axis=0) / count)
    return centered / np.where(spread > 0, spread, 1.0)


def _chances(score: FloatArray, rate: float, known: BoolArray) -> FloatArray:
    """Return the chance of every cell, the rate on average over the observed ones."""
    if rate == 0 or not known.any():
        return np.zeros_like(score)
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        chances = 1 / (1 + np.exp(-(middle + STRENGTH * score)))
        low, high = (middle, high) if chances[known].mean() < rate else (low, middle)
    return chances
