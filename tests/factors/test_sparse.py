"""Factors of a wide table of which little is observed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from grapefill.factors.sparse import fit_sparse_factors, predict_sparse


def made_up(observed: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a table in which some rows are higher than others, and where it is observed."""
    random = np.random.default_rng(seed)
    level = random.normal(size=(300, 1))
    table = level + random.normal(size=200) + 0.3 * random.normal(size=(300, 200))
    return table, random.random(table.shape) < observed


@pytest.mark.parametrize(("observed", "share"), [(0.02, 0.46), (0.01, 0.75)])
def test_a_row_is_as_high_in_columns_with_few_cells(observed: float, share: float) -> None:
    table, seen = made_up(observed)
    numbers = scipy.sparse.csr_matrix(np.where(seen, table, 0))
    factors = fit_sparse_factors(numbers, rank=1, seed=0)
    rows, columns = np.nonzero(~seen & (seen.sum(axis=0) > 0))
    predicted = predict_sparse(factors, numbers, rows, columns)
    truth = table[rows, columns]
    means = np.asarray(numbers.sum(axis=0)).ravel() / np.maximum(seen.sum(axis=0), 1)
    of_columns = np.abs(means[columns] - truth).mean()
    assert np.abs(predicted - truth).mean() < share * of_columns


def test_a_seed_gives_the_same_factors() -> None:
    table, seen = made_up(0.1)
    numbers = scipy.sparse.csr_matrix(np.where(seen, table, 0))
    first, second = (fit_sparse_factors(numbers, rank=2, seed=0) for _ in range(2))
    np.testing.assert_array_equal(first.loadings, second.loadings)


@pytest.mark.parametrize("table", [np.ones((8, 5)), np.arange(1.0, 9)[:, None], np.ones((1, 5))])
def test_no_factor_can_be_found(table: np.ndarray) -> None:
    numbers = scipy.sparse.csr_matrix(table)
    # So that what is left after the means of columns, which are drawn towards 0, is 0.
    numbers.data -= numbers.data.mean() if table.shape[1] > 1 else 0
    factors = fit_sparse_factors(numbers, rank=2, seed=0)
    assert not factors.loadings.any()
    found = predict_sparse(factors, numbers, np.array([0]), np.array([0]))
    np.testing.assert_array_equal(found, factors.center[[0]])
