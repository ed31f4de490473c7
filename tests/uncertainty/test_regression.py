"""Coefficients if rows count more or less than once."""

from __future__ import annotations

import numpy as np
import pytest

from grapefill.uncertainty.regression import fit_linear, solve_products


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    inputs = np.column_stack([np.ones(2_000), random.normal(size=(2_000, 2))])
    target = inputs @ [0.3, 1.0, -0.5] + random.normal(size=2_000)
    # A little more or less than once, so that the first order is nearly all.
    return inputs, target, 1 + 0.2 * (random.exponential(size=(2_000, 3)) - 1)


def test_numbers(rows):
    inputs, target, weights = rows
    random = np.random.default_rng(0)
    fit = fit_linear(inputs, target, random)
    np.testing.assert_allclose(fit.reweighted(inputs, np.ones((2_000, 1)), random), [fit.best])
    together = np.column_stack([inputs, target])
    for found, weight in zip(fit.reweighted(inputs, weights, random), weights.T, strict=True):
        exact = solve_products(together.T @ (together * weight[:, None]), 2_000)
        assert np.abs(found - exact).max() < 0.1 * np.abs(exact - fit.best).max()
