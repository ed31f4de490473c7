"""Draws for tables of many columns: errors that go along with each other as factors say.

Where columns are many, no chain of regressions is affordable. A few factors tell which errors of a
row go together; their posterior, given the observed cells of the row, is drawn from, and what is
drawn is scaled to the errors on held-out cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from grapefill.factors import Factors
from grapefill.uncertainty.chance import normals, uniforms
from grapefill.uncertainty.choosing import choose_category
from grapefill.uncertainty.design import choose_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from grapefill.table.arrays import FloatArray, IntArray
    from grapefill.training.model import GrapeModel
    from grapefill.trees import Guess

RANK = 10
FACTOR_ROWS, USUAL_ROWS = 5_000, 300
# Cells of the average column that the size of a column's errors is drawn towards.
PRIOR_CELLS = 10


@dataclass(frozen=True)
class WideDraws:
    """Draws for the missing cells of rows with many columns.

    Parameters
    ----------
    factors : Factors
        Which errors go together; of scaled numbers.
    size : ndarray of shape (features,)
        Standard deviation of the errors, in the units of the encoded numbers.
    low, high : ndarray of shape (features,)
        The range of the observed numbers.
    usual : ndarray of shape (columns of the factors,)
        The variance that factors leave open in the average row: errors are so large there, and
        larger in rows of which less is known. Empty where nobody noted it; all rows are alike then.
    """

    factors: Factors
    size: FloatArray
    low: FloatArray
    high: FloatArray
    usual: FloatArray

    @classmethod
    def fit(cls, model: GrapeModel, numbers: FloatArray, *, seed: int) -> Self:
        """Learn which errors go together, and how large they are."""
        low, high = np.nanmin(numbers, axis=0), np.nanmax(numbers, axis=0)
        numbers = numbers[choose_rows(numbers, FACTOR_ROWS, np.random.default_rng(seed))]
        columns = np.array(model.features.continuous, dtype=np.int64)
        seen = ~np.isnan(numbers[:, columns]).all(axis=0)
        if seen.any():
            factors = Factors.fit(model.scaled(numbers), columns[seen], rank=RANK)
        else:
            factors = Factors(columns[seen], np.empty(0), np.empty((0, 1)), np.empty(0))
        usual = _usual_variance(factors, numbers[:USUAL_ROWS])
        return cls(factors, _error_sizes(model, factors), low, high, usual)

    def draw(
        self, numbers: FloatArray, guess: Guess, rows: IntArray, *, seed: int, number: int
    ) -> FloatArray:
        """Draw the missing cells of some rows; see `Joint.draw`."""
        missing = np.isnan(numbers)
        values = np.where(missing, guess.value, numbers)
        columns, loadings = self.factors.columns, self.factors.loadings
        known = ~missing[:, columns]
        rank = loadings.shape[1]
        hidden = np.stack([normals(rows, seed, number, 0, k) for k in range(rank)], axis=1)
        # The square root of the posterior covariance turns independent numbers into a draw.
        precise = (loadings / self.factors.noise[:, None])[:, :, None] * loadings[:, None, :]
        for at in range(rows.size):
            system = precise[known[at]].sum(axis=0) + np.eye(rank)
            root = np.linalg.cholesky(np.linalg.inv(system))
            common = root @ hidden[at]
            spread = self.usual
            if not spread.size:
                spread = np.square(loadings @ root).sum(axis=1) + self.factors.noise
            own = normals(columns, seed, number, 1, int(rows[at])) * np.sqrt(self.factors.noise)
            error = (loadings @ common + own) / np.sqrt(spread) * self.size[columns]
            drawn = np.clip(values[at, columns] + error, self.low[columns], self.high[columns])
            values[at, columns] = np.where(known[at], values[at, columns], drawn)
        for j, chances in guess.chances.items():
            cells = np.flatnonzero(missing[:, j])
            chance = uniforms(rows[cells], seed, number, 2, j)
            values[cells, j] = choose_category(chances[cells], chance)
        return values

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return plain arrays, by name, for a model file."""
        named = {f"factors.{name}": array for name, array in self.factors.arrays().items()}
        rest = {"size": self.size, "low": self.low, "high": self.high, "usual": self.usual}
        return named | rest

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]], n_features: int) -> Self:
        """Rebuild from `arrays`; raises ValueError if they do not fit."""
        parts = {
            name.removeprefix("factors."): array
            for name, array in arrays.items()
            if name.startswith("factors.")
        }
        rest = {name: arrays[name] for name in ("size", "low", "high")}
        if any(array.shape != (n_features,) for array in rest.values()):
            raise ValueError("the sizes of errors do not fit the columns")
        factors = Factors.from_arrays(parts, n_features)
        usual = arrays.get("usual", np.empty(0))
        if usual.shape not in ((0,), factors.columns.shape) or not (usual > 0).all():
            raise ValueError("the usual size of errors does not fit the factors")
        return cls(factors, **rest, usual=usual)


def _usual_variance(factors: Factors, numbers: FloatArray) -> FloatArray:
    """Return the variance of every column that the known cells of rows leave open, on average."""
    loadings, rank = factors.loadings, factors.loadings.shape[1]
    known = (~np.isnan(numbers[:, factors.columns])).astype(np.float64)
    precise = (loadings / factors.noise[:, None])[:, :, None] * loadings[:, None, :]
    posterior = np.linalg.inv(np.tensordot(known, precise, axes=1) + np.eye(rank)).mean(axis=0)
    left_open: FloatArray = ((loadings @ posterior) * loadings).sum(axis=1) + factors.noise
    return left_open


def _error_sizes(model: GrapeModel, factors: Factors) -> FloatArray:
    """Return the size of the errors of every feature, by held-out cells where there are any."""
    scale = model.scaling.scale
    size = np.ones(scale.size)
    size[factors.columns] = np.sqrt(factors.noise)
    if model.held_out is not None and model.held_out.feature.size:
        cells = model.held_out
        with np.errstate(over="ignore", invalid="ignore"):
            off = np.square((cells.truth - cells.guess) / scale[cells.feature])
        off = np.minimum(np.nan_to_num(off, nan=1.0, posinf=1.0), 100.0)
        mine = np.isin(cells.feature, factors.columns)
        pooled = off[mine].mean() if mine.any() else 1.0
        total = np.bincount(cells.feature, off, minlength=scale.size)
        count = np.bincount(cells.feature, minlength=scale.size)
        size = np.sqrt((total + PRIOR_CELLS * pooled) / (count + PRIOR_CELLS))
    result: FloatArray = size * scale
    return result
