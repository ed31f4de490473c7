"""What an imputer learns about uncertainty besides its model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from grapefill.errors import warn
from grapefill.training.held_out import HeldOut
from grapefill.training.parameters import starting
from grapefill.uncertainty.belief import Fills
from grapefill.uncertainty.design import Design, choose_rows
from grapefill.uncertainty.gibbs import fit_joint, learns_quickly
from grapefill.uncertainty.joint import Joint
from grapefill.uncertainty.trials import FurtherTrials
from grapefill.uncertainty.wide import WideDraws

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

    from grapefill.table.arrays import FloatArray
    from grapefill.training.model import GrapeModel

# Tables with more columns are drawn from factors.
MOST_COLUMNS = 200
# Values of a column that are kept, and the share of its cells below which they count as repeated.
MOST_VALUES = 2_000
REPEATED = 0.2
# A column of so many values at most is calibrated by how frequent each is.
FEW_VALUES = 30
PREFIX = "uncertainty."
# Rows with holes, and holes of a column, that tell how far apart votes are.
FILLED_ROWS = 600
MOST_FILLS = 300
# Rows that are put aside for it.
MOST_ROWS = 50_000


@dataclass(frozen=True)
class Unlearned:
    """What is needed to learn how to draw cells, put aside at fit: not everybody draws.

    See `ready` for where it is learned right away.

    Parameters
    ----------
    numbers : ndarray of shape (rows, features)
        Encoded rows; of very many only some, drawn by chance.
    seed : int
        Source of all randomness.
    quick : bool
        Whether to learn from few rows.
    whole : bool
        Whether the model was fitted to these rows, all of them and nothing else.
    fills : dict of int to Fills or None
        See `some_fills`; None until that is needed.
    """

    numbers: FloatArray
    seed: int
    quick: bool
    whole: bool
    fills: dict[int, Fills] | None = None

    @classmethod
    def put_aside(cls, numbers: FloatArray, *, seed: int, quick: bool, whole: bool) -> Self:
        """Keep rows of a table that a model was trained on."""
        whole = whole and numbers.shape[0] <= MOST_ROWS
        numbers = numbers[choose_rows(numbers, MOST_ROWS, np.random.default_rng(seed))]
        return cls(numbers, seed, quick, whole)

    def ready(self, model: GrapeModel) -> Unlearned | Uncertainty:
        """Do what takes little time after a fit, and would be much of that of a first draw.

        From a long table that is learning itself, from others what the model fills in.
        """
        aside = replace(self, fills=some_fills(model, self.numbers, self.seed))
        by_regressions = self.whole and not self.quick and model.features.count <= MOST_COLUMNS
        quickly = by_regressions and learns_quickly(model, self.numbers, self.seed)
        return aside.learn(model) if quickly else aside

    def forget_fills(self) -> Self:
        """Return the same without what a model filled in, which is another one now."""
        return replace(self, fills=None)

    def learn(self, model: GrapeModel) -> Uncertainty:
        """Learn from the rows, with the model that was trained on them."""
        learned = Uncertainty.fit(
            model,
            self.numbers,
            some_fills(model, self.numbers, self.seed) if self.fills is None else self.fills,
            seed=self.seed,
            quick=self.quick,
        )
        if self.quick or not self.whole:
            return learned
        return replace(learned, trials=FurtherTrials.if_needed(model, self.numbers, self.seed))


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
    shares : dict of int to ndarray
        How frequent every category is, and every number of a column of only a few, in order.
    counts : ndarray of shape (features,)
        How many cells were observed; infinite where nobody knows.
    fills : dict of int to Fills
        For features of numbers, what some missing cells are filled with.
    trials : FurtherTrials or None
        For more held-out cells than the model has, if these are few.
    """

    sampler: Joint | WideDraws
    observed: dict[int, FloatArray]
    repeats: npt.NDArray[np.bool_]
    shares: dict[int, FloatArray]
    counts: FloatArray
    fills: dict[int, Fills]
    trials: FurtherTrials | None = None

    @classmethod
    def fit(
        cls,
        model: GrapeModel,
        numbers: FloatArray,
        fills: dict[int, Fills],
        *,
        seed: int,
        quick: bool = False,
    ) -> Self:
        """Learn from the encoded rows of a table, with the model that was trained on them.

        Parameters
        ----------
        model : GrapeModel
            The model.
        numbers : ndarray of shape (rows, features)
            Encoded rows, NaN where a cell is not observed.
        fills : dict of int to Fills
            What some missing cells are filled with; see `some_fills`.
        seed : int
            Source of all randomness.
        quick : bool
            Whether to learn draws from at most 2,000 rows.
        """
        counts = (~np.isnan(numbers)).sum(axis=0).astype(np.float64)
        numbers = _with_guesses(model, numbers, np.flatnonzero(counts == 0).tolist())
        observed, shares, repeats = {}, {}, np.zeros(numbers.shape[1], dtype=bool)
        for j in model.features.discrete:
            shares[j] = shares_of(numbers[:, j], np.arange(model.features.n_categories[j]))
        for j in model.features.continuous:
            column = numbers[:, j]
            known = np.unique(column[~np.isnan(column)])
            repeats[j] = known.size <= REPEATED * (~np.isnan(column)).sum()
            repeats[j] &= known.size <= MOST_VALUES
            if repeats[j] and known.size <= FEW_VALUES:
                shares[j] = shares_of(column, known)
            if known.size > MOST_VALUES:
                at = np.linspace(0, known.size - 1, MOST_VALUES).round().astype(int)
                # Every tenth of whole numbers would look like tens.
                at[1:-1:2] -= 1
                known = known[np.unique(at)]
            observed[j] = known
        sampler: Joint | WideDraws
        if model.features.count > MOST_COLUMNS:
            sampler = WideDraws.fit(model, numbers, seed=seed)
        else:
            sampler = fit_joint(model, numbers, seed=seed, quick=quick)
        return cls(sampler, observed, repeats, shares, counts, fills)

    def held_out(self, model: GrapeModel, *, further: bool = True) -> HeldOut | None:
        """Return the held-out cells of a model, and further ones if they are few.

        Parameters
        ----------
        model : GrapeModel
            The model.
        further : bool
            Whether to make the trials that this takes; without, those are used that were made.
        """
        if self.trials is None:
            return model.held_out
        return self.trials.held_out(model) if further else self.trials.found or model.held_out

    def tensors(self) -> dict[str, Tensor]:
        """Return tensors, by name, for a model file."""
        arrays = {f"draws.{name}": array for name, array in self.sampler.arrays().items()}
        arrays |= {f"observed.{j}": values for j, values in self.observed.items()}
        arrays |= {f"shares.{j}": shares for j, shares in self.shares.items()}
        arrays |= {f"fills.{j}": np.stack(fills) for j, fills in self.fills.items()}
        arrays |= {"repeats": self.repeats, "counts": self.counts}
        if self.trials is not None and self.trials.found is None:
            arrays["trials.numbers"] = self.trials.numbers
            arrays["trials.seed"] = np.array([self.trials.seed])
        elif self.trials is not None and self.trials.found is not None:
            found = self.trials.found.arrays()
            arrays |= {f"trials.found.{name}": array for name, array in found.items()}
        return {
            PREFIX + name: torch.from_numpy(np.ascontiguousarray(array))
            for name, array in arrays.items()
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], model: GrapeModel) -> Self | None:
        """Rebuild from the tensors of a model file; None if it has no such part."""
        arrays = {name: tensor.numpy() for name, tensor in starting(tensors, PREFIX).items()}
        if not arrays:
            return None
        draws = starting(arrays, "draws.")
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
        trials = _restored_trials(starting(arrays, "trials."), count)
        # Earlier model files have none of these.
        shares = {int(j): values for j, values in starting(arrays, "shares.").items()}
        counts = arrays.get("counts", np.full(count, np.inf))
        fills = {int(j): values for j, values in starting(arrays, "fills.").items()}
        sizes = dict(enumerate(model.features.n_categories))
        sizes |= {j: values.size for j, values in observed.items()}
        fits = counts.shape == (count,) and (counts >= 0).all() and set(fills) <= set(observed)
        fits &= all(v.ndim == 2 and v.shape[0] == 2 for v in fills.values())
        if not fits or any(v.shape != (sizes.get(j),) for j, v in shares.items()):
            raise ValueError("the counts and fills do not fit the columns")
        some = {j: Fills(*values) for j, values in fills.items()}
        return cls(sampler, observed, arrays["repeats"], shares, counts, some, trials)


def _with_guesses(model: GrapeModel, numbers: FloatArray, features: list[int]) -> FloatArray:
    """Return rows with guesses where a feature has no value at all, as in rows that came later."""
    if not features:
        return numbers
    schema = model.schema
    names = [repr(schema.columns[schema.features[j]].name) for j in features]
    warn(
        f"The rows that the model was fitted to last have no value in {', '.join(names)}. Draws "
        "and intervals go by what was guessed there, and vary too little."
    )
    guess, numbers = model.predict(numbers), numbers.copy()
    for j in features:
        chances = guess.chances.get(j)
        numbers[:, j] = guess.value[:, j] if chances is None else chances.argmax(axis=1)
    return numbers


def shares_of(column: FloatArray, values: npt.NDArray[Any]) -> FloatArray:
    """Return how frequent values are in a column, of what is not missing.

    Examples
    --------
    >>> shares_of(np.array([1.0, np.nan, 3.0, 1.0]), np.array([1.0, 2.0, 3.0])).round(2)
    array([0.67, 0.  , 0.33])
    """
    known = column[~np.isnan(column)]
    counts = np.bincount(np.searchsorted(values, known), minlength=values.size)
    return counts / max(1, known.size)


def some_fills(model: GrapeModel, numbers: FloatArray, seed: int) -> dict[int, Fills]:
    """Return what some missing cells are filled with, and how far apart votes on them are."""
    holed = numbers[np.isnan(numbers[:, list(model.features.continuous)]).any(axis=1)]
    if model.chain is None or not holed.shape[0]:
        return {}
    rows = holed[choose_rows(holed, FILLED_ROWS, np.random.default_rng(seed))]
    guess = model.predict(rows)
    found = {}
    for j in model.features.continuous:
        if guess.spread is not None:
            holes = np.isnan(rows[:, j]) & np.isfinite(guess.spread[:, j])
            at = np.flatnonzero(holes)[:MOST_FILLS]
            found[j] = Fills(guess.value[at, j], guess.spread[at, j])
    return {j: fills for j, fills in found.items() if fills.guess.size}


def _restored_trials(arrays: dict[str, npt.NDArray[Any]], count: int) -> FurtherTrials | None:
    """Rebuild trials that were made, or are to be made; raises ValueError if they do not fit."""
    found = starting(arrays, "found.")
    if found:
        return FurtherTrials(np.empty((0, count)), 0, HeldOut.from_arrays(found, count))
    if not arrays:
        return None
    numbers, seed = arrays["numbers"], arrays["seed"]
    if numbers.ndim != 2 or numbers.shape[1] != count or not numbers.shape[0]:
        raise ValueError("the rows for further trials do not fit the columns")
    return FurtherTrials(numbers.astype(np.float64), int(seed[0]))
