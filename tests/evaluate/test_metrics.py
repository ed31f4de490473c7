"""Errors of cells, and the uncertainty of their means."""

from __future__ import annotations

import numpy as np
import pytest

from grapefill.evaluate import cell_errors, constant_errors
from grapefill.evaluate.metrics import paired_difference, standard_error
from grapefill.evaluate.patterns import co_missing, group_rows
from grapefill.evaluate.text import join_words
from grapefill.lines import align


def test_an_unknown_category_is_wrong() -> None:
    truth, guess = np.array([[1.0], [1.0], [1.0]]), np.array([[1.0], [0.0], [np.nan]])
    errors = cell_errors(truth, guess, np.array([True]))
    assert errors[:, 0].tolist() == [0, 1, 1]


def test_a_constant_column_has_no_error() -> None:
    numbers = np.array([[5.0, 1.0], [5.0, 1.0], [np.nan, np.nan]])
    assert constant_errors(numbers, np.array([False, True])).tolist() == [0, 0]


def test_the_unit_is_the_error_of_the_median_and_the_most_frequent() -> None:
    random = np.random.default_rng(0)
    numbers = np.column_stack([random.lognormal(size=500), random.integers(0, 3, 500)])
    numbers[::7] = np.nan
    known = numbers[~np.isnan(numbers[:, 0])]
    units = constant_errors(numbers, np.array([False, True]))
    assert units[0] == pytest.approx(np.abs(known[:, 0] - np.median(known[:, 0])).mean())
    assert units[1] == pytest.approx(1 - np.bincount(known[:, 1].astype(int)).max() / len(known))


def test_pairing_takes_out_what_the_holes_did() -> None:
    hard = np.array([1.0, 2.0, 3.0])
    difference, error, tied = paired_difference(hard + np.array([0.1, 0.11, 0.09]), hard)
    assert difference == pytest.approx(0.1)
    assert error < 0.01 < standard_error(hard)
    assert not tied


def test_one_repeat_tells_nothing_of_chance() -> None:
    one = np.array([1.0])
    assert paired_difference(one, one) == (0.0, None, True)
    assert paired_difference(one + 1, one) == (1.0, None, False)


def test_patterns_of_wide_tables() -> None:
    random = np.random.default_rng(0)
    few = random.random((6, 150)) < 0.5
    which = random.integers(0, 6, 300)
    patterns, found, count = group_rows(few[which])
    assert len(patterns) == 6
    assert (patterns[found] == few[which]).all()
    assert sorted(count) == sorted(np.bincount(which))


def test_correlation_of_missing_cells_is_that_of_numpy() -> None:
    missing = np.random.default_rng(0).random((70_000, 4)) < [0.1, 0.5, 0.9, 0.3]
    missing[:, 3] ^= missing[:, 0]
    correlation, both = co_missing(missing)
    np.testing.assert_allclose(correlation, np.corrcoef(missing.T), atol=1e-9)
    assert both[0, 3] == (missing[:, 0] & missing[:, 3]).sum()


def test_words() -> None:
    assert align([["a", "1"], ["bb", "10"]]) == ["a   1", "bb  10"]
    assert join_words(["a", "b"]) == "a and b"
