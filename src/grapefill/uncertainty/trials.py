"""Further held-out cells for small tables, whose own are too few to calibrate intervals by.

A column of 200 rows has twenty held-out cells, and two of them decide what 90% are. So models like
the fitted one are trained with other cells held out, as in cross-validation (cross-conformal
prediction; Vovk: Cross-conformal predictors, 2015), when intervals are first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from grapefill.training.fit import hold_out_again
from grapefill.training.held_out import HeldOut

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray
    from grapefill.training.model import GrapeModel

# A column with fewer held-out cells than that needs more, in a table that trains in seconds.
FEWEST_CELLS = 50
MOST_CELLS = 50_000
TRIALS = 3
SHARE = 0.25


@dataclass
class FurtherTrials:
    """Trials that are made when their cells are needed.

    Parameters
    ----------
    numbers : ndarray of shape (rows, features)
        The encoded rows that the model was fitted to.
    seed : int
        Source of all randomness.
    """

    numbers: FloatArray
    seed: int
    _found: HeldOut | None = None

    @classmethod
    def if_needed(cls, model: GrapeModel, numbers: FloatArray, seed: int) -> Self | None:
        """Return trials for a model, or None if it has cells enough or the table is large."""
        if model.held_out is None or numbers.size > MOST_CELLS:
            return None
        counts = np.bincount(model.held_out.feature, minlength=model.features.count)
        return cls(numbers, seed) if counts.min() < FEWEST_CELLS else None

    def held_out(self, model: GrapeModel) -> HeldOut:
        """Return the held-out cells of a model and of the further trials."""
        assert model.held_out is not None
        if self._found is None:
            seeds = np.random.SeedSequence((self.seed, 2)).generate_state(TRIALS).tolist()
            trials = [hold_out_again(model, self.numbers, share=SHARE, seed=seed) for seed in seeds]
            cells = [trial for trial in trials if trial is not None]
            self._found = HeldOut.joined([model.held_out, *cells])
        return self._found
