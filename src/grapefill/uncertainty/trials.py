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
# trials are made, each with such a share held out.
FEW_CELLS, SMALL_TABLE, TRIALS, SHARE = 50, 20_000, 3, 0.25
# One is made where there are fewer than that, up to a larger table. The less it holds out, the more
# its errors are like those of the model.
ENOUGH_CELLS, LARGE_TABLE, SMALL_SHARE = 150, 40_000, 0.15


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
        return trials if trials.shares(model) else None

    def shares(self, model: GrapeModel) -> list[float]:
        """Return which share of the cells every trial holds out."""
        if model.held_out is None:
            return []
        counts = np.bincount(model.held_out.feature, minlength=model.features.count)
        cells = float(np.median(counts))
        if cells < FEW_CELLS and self.numbers.size <= SMALL_TABLE:
            return [SHARE] * TRIALS
        enough = cells >= ENOUGH_CELLS or self.numbers.size > LARGE_TABLE
        return [] if enough else [SMALL_SHARE]

    def held_out(self, model: GrapeModel) -> HeldOut:
        """Return the held-out cells of a model and of the further trials."""
        assert model.held_out is not None
        if self.found is None:
            cells = [model.held_out]
            shares = self.shares(model)
            seeds = np.random.SeedSequence((self.seed, 2)).generate_state(len(shares)).tolist()
            for share, seed in zip(shares, seeds, strict=True):
                # A training that diverges by bad luck is no reason to give nothing.
                with contextlib.suppress(GrapefillError):
                    trial = hold_out_again(model, self.numbers, share=share, seed=seed)
                    cells += [] if trial is None else [trial]
            self.found = HeldOut.joined(cells)
        return self.found
