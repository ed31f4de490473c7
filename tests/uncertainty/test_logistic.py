"""Coefficients of categories, and what becomes of them if rows count more or less than once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from grapefill.uncertainty.logistic import PRECISION, category_chances, fit_logistic

ROWS = 600


def choose(chances, random):
    return (chances.cumsum(axis=1) < random.random((len(chances), 1))).sum(axis=1).astype(float)


@pytest.fixture(params=[2, 3, 5])
def table(request):
    """Inputs, codes, the number of categories and the coefficients that they were made with."""
    random = np.random.default_rng(2)
    inputs = np.column_stack([np.ones(ROWS), random.normal(size=(ROWS, 2))])
    beta = random.normal(size=(3, request.param - 1))
    codes = choose(category_chances(inputs @ beta, request.param), random)
    return inputs, codes, request.param, beta


def precision(inputs, chances):
    """Return what rows and prior tell about all coefficients, one category after the other."""
    n_inputs, n_categories = inputs.shape[1], chances.shape[1]
    whole = PRECISION * np.eye(n_inputs * n_categories).reshape((n_categories, n_inputs) * 2)
    for a in range(n_categories):
        for b in range(n_categories):
            weight = chances[:, a] * ((a == b) - chances[:, b])
            whole[a, :, b] += inputs.T @ (inputs * weight[:, None])
    return whole.reshape((n_inputs * n_categories,) * 2)


def test_coefficients_are_where_their_likelihood_ends_to_rise(table):
    inputs, codes, n_categories, beta = table
    fit = fit_logistic(inputs, codes, n_categories)
    truth = codes[:, None] == np.arange(n_categories)
    np.testing.assert_allclose(fit.chances, category_chances(inputs @ fit.best, n_categories))
    np.testing.assert_allclose(fit.left, truth - fit.chances)
    # A step of Newton's method would be small, and the prior pulls a little.
    assert np.abs(inputs.T @ fit.left).max() < 1.5
    assert np.abs(fit.best - beta).max() < 0.7


@pytest.mark.parametrize("far", [0.1, 3.0])
def test_from_another_fit_it_is_the_same(table, far):
    inputs, codes, n_categories, _ = table
    random = np.random.default_rng(4)
    # Other inputs, and fewer rows.
    others = inputs[:300] + far * np.array([0, 1, 1]) * random.normal(size=(300, 3))
    near = fit_logistic(others, codes[:300], n_categories)
    usual = fit_logistic(inputs, codes, n_categories)
    again = fit_logistic(inputs, codes, n_categories, near=near)
    apart = np.linalg.inv(precision(inputs, usual.chances)).reshape((n_categories, 3) * 2)
    errors = np.array([[apart[a, i, a, i] for a in range(1, n_categories)] for i in range(3)])
    assert (np.abs(again.best - usual.best) < 0.3 * np.sqrt(errors)).all()


def test_rows_move_the_coefficients_of_all_categories_together(table):
    inputs, codes, n_categories, _ = table
    fit = fit_logistic(inputs, codes, n_categories)
    weights = np.random.default_rng(0).exponential(size=(ROWS, 3))
    for found, weight in zip(fit.reweighted(inputs, weights), weights.T, strict=True):
        pull = inputs.T @ ((weight - 1)[:, None] * fit.left)
        moved = np.linalg.solve(precision(inputs, fit.chances), pull.T.ravel())
        moved = moved.reshape(n_categories, 3).T
        exact = moved[:, 1:] - moved[:, :1]
        assert np.abs(found - fit.best - exact).max() < 0.02 * np.abs(exact).max()


def test_to_first_order_they_are_those_of_a_regression_with_weights():
    random = np.random.default_rng(0)
    inputs = np.column_stack([np.ones(2_000), random.normal(size=(2_000, 2))])
    codes = (inputs @ [0.3, 1.0, -0.5] + random.normal(size=2_000) > 0).astype(float)
    # A little more or less than once, so that the first order is nearly all.
    weights = 1 + 0.2 * (random.exponential(size=(2_000, 3)) - 1)
    fit = fit_logistic(inputs, codes, 2)
    for found, weight in zip(fit.reweighted(inputs, weights), weights.T, strict=True):

        def loss(beta, weight=weight):
            log_odds = inputs @ beta
            return weight @ (np.logaddexp(0, log_odds) - codes * log_odds) + PRECISION / 2 * (
                beta @ beta
            )

        usual = minimize(loss, fit.best[:, 0], args=(np.ones(2_000),), method="BFGS").x
        exact = minimize(loss, fit.best[:, 0], method="BFGS").x - usual
        assert np.abs(found[:, 0] - fit.best[:, 0] - exact).max() < 0.2 * np.abs(exact).max()


def few_rows(random, rows=120):
    inputs = np.column_stack([np.ones(rows), random.normal(size=(rows, 4))])
    chances = category_chances(inputs @ [[-1.0], [1.0], [-1.0], [0.5], [0.0]], 2)
    return inputs, choose(chances, random)


def test_slopes_of_few_rows_are_not_too_large_on_average():
    random = np.random.default_rng(6)
    found, most = [], []
    for _ in range(300):
        inputs, codes = few_rows(random)
        found.append(fit_logistic(inputs, codes, 2).best[1:4, 0])
        model = LogisticRegression(C=1e6).fit(inputs[:, 1:], codes)
        most.append(model.coef_[0, :3])
    truth = np.array([1.0, -1.0, 0.5])
    assert (np.abs(np.mean(found, axis=0) - truth) < 0.05).all()
    assert (np.sign(truth) * (np.mean(most, axis=0) - truth) > 0.02).all()


@pytest.mark.parametrize("n_categories", [2, 5])
def test_categories_are_as_frequent_as_they_were(n_categories):
    random = np.random.default_rng(7)
    inputs = np.column_stack([np.ones(500), random.normal(size=(500, 20))])
    codes = np.zeros(500)
    rare = np.array([4, 8, 3, 12])[: n_categories - 1]
    codes[: rare.sum()] = np.repeat(np.arange(1, n_categories), rare)
    random.shuffle(codes)
    fit = fit_logistic(inputs, codes, n_categories)
    np.testing.assert_allclose(fit.chances.sum(axis=0)[1:], rare, rtol=0.1, atol=0.3)


def test_nested_categories_differ_as_much_as_they_should():
    random = np.random.default_rng(8)
    inputs = np.column_stack([np.ones(1_500), random.normal(size=(1_500, 4))])
    # Which half is told sharply, which category of it not at all.
    half = random.random(1_500) < 1 / (1 + np.exp(-10 * inputs[:, 1]))
    codes = 3.0 * half + random.integers(3, size=1_500)
    fit = fit_logistic(inputs, codes, 6)
    weights = random.exponential(size=(1_500, 40))
    inverse = np.linalg.inv(precision(inputs, fit.chances))
    exact = []
    for weight in weights.T:
        pull = inputs.T @ ((weight - 1)[:, None] * fit.left)
        moved = (inverse @ pull.T.ravel()).reshape(6, 5).T
        exact.append(moved[:, 1:] - moved[:, :1])
    spread = fit.reweighted(inputs, weights).std(axis=0)
    np.testing.assert_allclose(spread, np.std(exact, axis=0), rtol=0.03)


def test_coefficients_differ_as_much_as_their_likelihood_leaves_open():
    random = np.random.default_rng(3)
    inputs = np.column_stack([np.ones(800), random.normal(size=800)])
    codes = random.integers(3, size=800).astype(float)
    fit = fit_logistic(inputs, codes, 3)
    again = fit.reweighted(inputs, random.exponential(size=(800, 4_000)))
    # Of three equally frequent categories, log odds have a variance of 6 over the rows.
    np.testing.assert_allclose(again.var(axis=0), 6 / 800, rtol=0.15)


def test_categories_that_are_told_apart_without_fail_stay_apart():
    random = np.random.default_rng(5)
    place = random.uniform(-1, 1, size=400)
    inputs = np.column_stack([np.ones(400), place])
    codes = (place > 0).astype(float)
    fit = fit_logistic(inputs, codes, 2)
    for beta in fit.reweighted(inputs, random.exponential(size=(400, 20))):
        assert np.isfinite(beta).all()
        told = category_chances(inputs @ beta, 2).argmax(axis=1) == codes
        assert told[np.abs(place) > 0.1].all()


def test_a_single_category_is_certain():
    inputs, weights = np.ones((20, 1)), np.ones((20, 2))
    fit = fit_logistic(inputs, np.zeros(20), 1)
    assert fit.reweighted(inputs, weights).shape == (2, 1, 0)
    assert fit_logistic(inputs, np.zeros(20), 1, near=fit).best.shape == (1, 0)
    np.testing.assert_array_equal(category_chances(inputs @ fit.best, 1), np.ones((20, 1)))


def test_probabilities_of_earlier_models_are_one_against_the_rest():
    logits = np.array([[0.0, 1.0, -1.0]])
    chances = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(category_chances(logits, 3), chances / chances.sum())
