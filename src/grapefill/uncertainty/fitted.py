"""What an imputer learns about uncertainty besides its model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import torch

from grapefill.uncertainty.design import Design
from grapefill.uncertainty.gibbs import fit_joint
from grapefill.uncertainty.joint import Joint
from grapefill.uncertainty.trials import FurtherTrials
from grapefill.uncertainty.wide import WideDraws

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

    from grapefill.table.arrays import FloatArray
    from grapefill.training.held_out import HeldOut
    from grapefill.training.model import GrapeModel

# Tables with more columns are drawn from factors.
MOST_COLUMNS = 100
# Values of a column that are kept, and the share of its cells below which they count as repeated.
MOST_VALUES = 2_000
REPEATED = 0.2
PREFIX = "uncertainty."
# Rows that are put aside for it.
MOST_ROWS = 50_000


@dataclass(frozen=True)
class Unlearned:
    """What is needed to learn how to draw cells, put aside at fit: not everybody draws.

    Parameters
    ----------
    numbers : ndarray of shape (rows, features)
        Encoded rows; of very many only some, drawn by chance.
    seed : int
        Source of all randomness.
    quick : bool
        Whether to learn from few rows.
    """

    numbers: FloatArray
    seed: int
    quick: bool

    @classmethod
    def put_aside(cls, numbers: FloatArray, *, seed: int, quick: bool) -> Self:
        """Keep rows of a table that a model was trained on."""
        if numbers.shape[0] > MOST_ROWS:
            random = np.random.default_rng(seed)
            numbers = numbers[np.sort(random.choice(numbers.shape[0], MOST_ROWS, replace=False))]
        return cls(numbers, seed, quick)

    def learn(self, model: GrapeModel) -> Uncertainty:
        """Learn from the rows, with the model that was trained on them."""
        return Uncertainty.fit(model, self.numbers, seed=self.seed, quick=self.quick)


@dataclass(frozen=True)
class Uncertainty:
    """How cells are drawn, and which values columns have.

    Parameters
    ----------
    sampler : Joint or WideDraws
        Draws missing cells.
    observed : dict of int to ndarray
        For every feature of numbers the values that were observed, in order and each once; of very
        many only some, evenly.
    repeats : ndarray of bool, shape (features,)
        Whether a column has a few values again and again.
    trials : FurtherTrials or None
        For more held-out cells than the model has, if these are few.
    """

    sampler: Joint | WideDraws
    observed: dict[int, FloatArray]
    repeats: npt.NDArray[np.bool_]
    trials: FurtherTrials | None = None

    @classmethod
    def fit(cls, model: GrapeModel, numbers: FloatArray, *, seed: int, quick: bool = False) -> Self:
        """Learn from the encoded rows of a table, with the model that was trained on them.

        Parameters
        ----------
        model : GrapeModel
            The model.
        numbers : ndarray of shape (rows, features)
            Encoded rows, NaN where a cell is not observed.
        seed : int
            Source of all randomness.
        quick : bool
            Whether to learn draws from at most 2,000 rows, and to do without further trials.
        """
        observed, repeats = {}, np.zeros(numbers.shape[1], dtype=bool)
        for j in model.features.continuous:
            column = numbers[:, j]
            known = np.unique(column[~np.isnan(column)])
            repeats[j] = known.size <= REPEATED * (~np.isnan(column)).sum()
            repeats[j] &= known.size <= MOST_VALUES
            if known.size > MOST_VALUES:
                known = known[np.linspace(0, known.size - 1, MOST_VALUES).round().astype(int)]
            observed[j] = known
        sampler: Joint | WideDraws
        if model.features.count > MOST_COLUMNS:
            sampler = WideDraws.fit(model, numbers, seed=seed)
        else:
            sampler = fit_joint(model, numbers, seed=seed, quick=quick)
        trials = None if quick else FurtherTrials.if_needed(model, numbers, seed)
        return cls(sampler, observed, repeats, trials)

    def held_out(self, model: GrapeModel) -> HeldOut | None:
        """Return the held-out cells of a model, and further ones if they are few."""
        return model.held_out if self.trials is None else self.trials.held_out(model)

    def tensors(self) -> dict[str, Tensor]:
        """Return tensors, by name, for a model file."""
        arrays = {f"draws.{name}": array for name, array in self.sampler.arrays().items()}
        arrays |= {f"observed.{j}": values for j, values in self.observed.items()}
        arrays["repeats"] = self.repeats
        if self.trials is not None:
            arrays["trials.numbers"] = self.trials.numbers
            arrays["trials.seed"] = np.array([self.trials.seed])
        return {
            PREFIX + name: torch.from_numpy(np.ascontiguousarray(array))
            for name, array in arrays.items()
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], model: GrapeModel) -> Self | None:
        """Rebuild from the tensors of a model file; None if it has no such part."""
        arrays = {
            name.removeprefix(PREFIX): tensor.numpy()
            for name, tensor in tensors.items()
            if name.startswith(PREFIX)
        }
        if not arrays:
            return None
        draws = {
            name.removeprefix("draws."): array
            for name, array in arrays.items()
            if name.startswith("draws.")
        }
        count = model.features.count
        sampler: Joint | WideDraws
        if "size" in draws:
            sampler = WideDraws.from_arrays(draws, count)
        else:
            design = Design(model.features.n_categories, model.scaling)
            sampler = Joint.from_arrays(draws, design)
        observed = {j: arrays[f"observed.{j}"] for j in model.features.continuous}
        if arrays["repeats"].shape != (count,) or not all(v.size for v in observed.values()):
            raise ValueError("the observed values do not fit the columns")
        trials = None
        if "trials.numbers" in arrays:
            numbers = arrays["trials.numbers"]
            if numbers.ndim != 2 or numbers.shape[1] != count or model.held_out is None:
                raise ValueError("the rows for further trials do not fit the columns")
            trials = FurtherTrials(numbers, int(arrays["trials.seed"][0]))
        return cls(sampler, observed, arrays["repeats"], trials)
