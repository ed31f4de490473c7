"""Random numbers that belong to rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from grapefill.uncertainty import chance
from grapefill.uncertainty.chance import STRATA, spread_uniforms, uniforms
from grapefill.uncertainty.gibbs import DRAWS

ROWS = np.arange(2_000)


def test_a_row_has_its_numbers_whichever_come_with_it():
    some = np.array([7, 1_999, 3])
    for of in (uniforms, lambda rows, *key: spread_uniforms(rows, 4, *key)):
        np.testing.assert_array_equal(of(some, 1, 2), of(ROWS, 1, 2)[some])
        assert (of(some, 1, 2) != of(some, 1, 3)).all()


@pytest.mark.parametrize("number", [0, 7, STRATA - 1, STRATA, 3 * STRATA + 1])
def test_every_imputation_is_as_random_as_any(number):
    found = spread_uniforms(ROWS, number, 5, 1)
    assert 0 < found.min() < found.max() < 1
    assert kstest(found, "uniform").pvalue > 0.01


@pytest.mark.parametrize("first", [0, STRATA])
def test_a_row_is_in_every_part_once_in_a_block_of_imputations(first):
    numbers = np.stack([spread_uniforms(ROWS, first + k, 5) for k in range(STRATA)])
    parts = np.sort((STRATA * numbers).astype(int), axis=0)
    assert (parts == np.arange(STRATA)[:, None]).all()
    # So the mean of a block hardly varies.
    assert numbers.mean(axis=0).std() < 0.1 * np.sqrt(1 / 12 / STRATA)


def test_what_is_drawn_of_two_columns_does_not_go_along():
    one, other = (
        np.stack([spread_uniforms(ROWS, k, 5, column) for k in range(STRATA)]) - 0.5
        for column in (0, 1)
    )
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.02
    # Not within a row either, beyond what is chance among so few.
    together = 12 * (one * other).mean(axis=0)
    assert abs(together.mean()) < 0.03
    assert together.std() < 1.2 / np.sqrt(STRATA)


def test_blocks_of_imputations_differ():
    one, other = spread_uniforms(ROWS, 0, 5), spread_uniforms(ROWS, STRATA, 5)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.1


def test_numbers_are_below_one(monkeypatch):
    most = np.full(ROWS.size, np.iinfo(np.uint64).max)
    monkeypatch.setattr(chance, "_bits", lambda rows, *key: most)
    assert 0.99 < uniforms(ROWS, 1).max() < 1
    assert max(spread_uniforms(ROWS, number, 1).max() for number in range(STRATA)) < 1


def test_as_many_imputations_are_spread_as_coefficients_are_kept():
    assert STRATA == DRAWS
