"""Coefficients if rows count more or less than once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from grapefill.uncertainty.regression import (
    PRECISION,
    fit_linear,
    fit_logistic,
    solve_products,
)


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


def test_categories(rows):
    inputs, target, weights = rows
    codes = (target > 0).astype(float)
    fit = fit_logistic(inputs, codes, 2)
    random = np.random.default_rng(0)
    for found, weight in zip(fit.reweighted(inputs, weights, random), weights.T, strict=True):

        def loss(beta, weight=weight):
            log_odds = inputs @ beta
            return weight @ (np.logaddexp(0, log_odds) - codes * log_odds) + PRECISION / 2 * (
                beta @ beta
            )

        exact = minimize(loss, fit.best[:, 0], method="BFGS").x
        assert np.abs(found[:, 0] - exact).max() < 0.2 * np.abs(exact - fit.best[:, 0]).max()
