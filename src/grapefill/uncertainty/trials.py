"""Further held-out cells for small tables, whose own are too few to calibrate intervals by.

A column of 200 rows has twenty held-out cells, and two of them decide what 90% are; in one of 800
rows it is eight of eighty, and which eight is chance still. So models like the fitted one are
trained with other cells held out, as in cross-validation (cross-conformal prediction; Vovk:
Cross-conformal predictors, 2015), when intervals are first asked for.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from grapefill.errors import GrapefillError
from grapefill.training.fit import hold_out_again
from grapefill.training.held_out import HeldOut

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray
    from grapefill.training.model import GrapeModel

# Where most columns have fewer held-out cells than that, and the table has not many cells, so many
# trials are made.
FEW_CELLS, SMALL_TABLE, TRIALS = 50, 20_000, 3
# One is made where there are fewer than that, up to a larger table.
ENOUGH_CELLS, LARGE_TABLE = 150, 40_000
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
    found : HeldOut or None
        The held-out cells of the model and of the trials, once they were made.
    """

    numbers: FloatArray
    seed: int
    found: HeldOut | None = field(default=None, repr=False)

    @classmethod
    def if_needed(cls, model: GrapeModel, numbers: FloatArray, seed: int) -> Self | None:
        """Return trials for a model, or None if it has cells enough or the table is large."""
        trials = cls(numbers, seed)
        return trials if trials.needed(model) else None

    def needed(self, model: GrapeModel) -> int:
        """Return how many trials it takes."""
        if model.held_out is None:
            return 0
        counts = np.bincount(model.held_out.feature, minlength=model.features.count)
        cells = float(np.median(counts))
        if cells < FEW_CELLS and self.numbers.size <= SMALL_TABLE:
            return TRIALS
        return int(cells < ENOUGH_CELLS and self.numbers.size <= LARGE_TABLE)

    def held_out(self, model: GrapeModel) -> HeldOut:
        """Return the held-out cells of a model and of the further trials."""
        assert model.held_out is not None
        if self.found is None:
            cells = [model.held_out]
            seeds = np.random.SeedSequence((self.seed, 2)).generate_state(self.needed(model))
            for seed in seeds.tolist():
                # A training that diverges by bad luck is no reason to give nothing.
                with contextlib.suppress(GrapefillError):
                    trial = hold_out_again(model, self.numbers, share=SHARE, seed=seed)
                    cells += [] if trial is None else [trial]
            self.found = HeldOut.joined(cells)
        return self.found
