r"""Which cells of a table go missing, by one of the three mechanisms of Rubin (1976).

- MCAR, completely at random: every cell alike.
- MAR, at random: by the values of other columns, which themselves stay observed.
- MNAR, not at random: by the value that goes missing itself, say high incomes.

For MAR and MNAR the chance of a cell is logistic, :math:`\sigma(a + b\,s)`, in a score s that has
mean 0 and spread 1, with the intercept a such that the rate comes out as asked for. Scores are made
of ranks, so that a few extreme values do not decide alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from grapefill.errors import ConfigError
from grapefill.settings import check_word

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]

MECHANISMS = ("mcar", "mar", "mnar")
# Share of the columns that stay observed under MAR, and how much the chance depends on the score.
DRIVERS = 0.3
STRENGTH = 2.0


def draw_mask(
    numbers: FloatArray, rate: float, mechanism: str = "mcar", *, seed: int = 0
) -> npt.NDArray[np.bool_]:
    """Draw the cells that go missing.

    Parameters
    ----------
    numbers : ndarray of shape (rows, columns)
        The table; NaN where something is missing already. Such a cell may be drawn too.
    rate : float
        Share of the cells that go missing; under MAR, of the columns that may have holes.
    mechanism : {"mcar", "mar", "mnar"}
        Why they go missing.
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
    if not 0 <= rate < 1:
        raise ConfigError(f"rate must be at least 0 and below 1, got {rate!r}.")
    random = np.random.default_rng(seed)
    if mechanism == "mcar":
        return random.random(numbers.shape) < rate
    scores = _standardised(rankdata(numbers, axis=0, nan_policy="omit"))
    n_columns = numbers.shape[1]
    if mechanism == "mnar":
        scores = scores * random.choice([-1.0, 1.0], size=n_columns)
        holed = np.arange(n_columns)
    else:
        if n_columns < 2:
            raise ConfigError("Missing at random needs at least two columns: one to depend on.")
        n_drivers = min(n_columns - 1, max(1, round(DRIVERS * n_columns)))
        drivers = random.choice(n_columns, n_drivers, replace=False)
        holed = np.setdiff1d(np.arange(n_columns), drivers)
        weights = random.normal(size=(n_drivers, holed.size))
        scores = _standardised(scores[:, drivers] @ weights)
    mask = np.zeros(numbers.shape, dtype=bool)
    for at, j in enumerate(holed):
        mask[:, j] = random.random(numbers.shape[0]) < _chances(scores[:, at], rate)
    return mask


def _standardised(numbers: FloatArray) -> FloatArray:
    """Return the columns with mean 0 and spread 1; 0 where a cell is missing or a column flat."""
    known = ~np.isnan(numbers)
    count = np.maximum(known.sum(axis=0), 1)
    zero = np.where(known, numbers, 0.0)
    centered = np.where(known, zero - zero.sum(axis=0) / count, 0.0)
    spread = np.sqrt(np.square(centered).sum(axis=0) / count)
    return centered / np.where(spread > 0, spread, 1.0)


def _chances(score: FloatArray, rate: float) -> FloatArray:
    """Return the chance of every cell, the rate on average."""
    if rate == 0 or not score.size:
        return np.zeros_like(score)
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        chances = 1 / (1 + np.exp(-(middle + STRENGTH * score)))
        low, high = (middle, high) if chances.mean() < rate else (low, middle)
    return chances
