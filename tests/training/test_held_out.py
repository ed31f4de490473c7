"""Held-out cells that are kept with a model."""

from __future__ import annotations

import numpy as np

from grapefill.training.held_out import MOST_KEPT, HeldOut
from grapefill.trees import Guess


def test_long_columns_keep_some_cells_from_all_over_the_table() -> None:
    numbers = np.arange(4000.0).reshape(2000, 2)
    held_out = np.zeros(numbers.shape, dtype=bool)
    held_out[::2, 0] = True
    held_out[[3, 70], 1] = True
    guess = Guess(numbers + 1, {})
    kept = HeldOut.collect(numbers, held_out, guess, guess, np.ones(2))
    long, short = kept.of(0), kept.of(1)
    assert long.truth.size == np.unique(long.truth).size == MOST_KEPT
    assert np.isin(long.truth, numbers[held_out[:, 0], 0]).all()
    assert long.truth.min() == numbers[0, 0]
    assert long.truth.max() == numbers[1998, 0]
    np.testing.assert_array_equal(short.truth, numbers[[3, 70], 1])
    np.testing.assert_array_equal(kept.guess, kept.truth + 1)
