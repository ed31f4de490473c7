"""Slopes are drawn towards none as far as the table tells."""

from __future__ import annotations

import numpy as np
import pytest

from grapefill.uncertainty.regression import fit_linear, solve_products
from grapefill.uncertainty.shrinkage import LARGE, NARROWEST, WIDEST, WIDTHS, draw_width


def _rows(random, slopes, *, rows=200, noise=1.0):
    inputs = np.column_stack([np.ones(rows), random.normal(2.0, 3.0, size=(rows, len(slopes)))])
    return inputs, 5 + inputs[:, 1:] @ slopes + random.normal(0, noise, rows)


def _width(inputs, target, random):
    return draw_width(inputs.T @ inputs, inputs.T @ target, float(target @ target), random)


def test_widths_are_drawn_as_probable_as_they_make_what_was_observed():
    random = np.random.default_rng(0)
    inputs, target = _rows(random, [0.1, 0.0, -0.1], rows=30)
    z = inputs[:, 1:] - inputs[:, 1:].mean(axis=0)
    z /= z.std(axis=0)
    y = target - target.mean()
    widths = np.geomspace(NARROWEST, WIDEST, WIDTHS) / 30
    logs = []
    for width in widths:
        covariance = np.eye(30) + width * z @ z.T
        inside = y @ np.linalg.solve(covariance, y)
        logs.append(-0.5 * np.linalg.slogdet(covariance)[1] - 14.5 * np.log(inside))
    chances = np.exp(logs - np.max(logs))
    chances /= chances.sum()
    drawn = np.array([_width(inputs, target, random) for _ in range(4_000)])
    small = widths < LARGE**2 / 30
    found = [np.isclose(drawn, width).mean() for width in widths[small]]
    np.testing.assert_allclose(found, chances[small], atol=0.015)
    assert abs(np.isinf(drawn).mean() - chances[~small].sum()) < 0.03


def test_what_is_there_by_chance_is_no_relation():
    random = np.random.default_rng(1)
    straight, shrunk = [], []
    for _ in range(40):
        inputs, target = _rows(random, np.zeros(10))
        straight.append(fit_linear(inputs, target, random).best[1:])
        shrunk.append(fit_linear(inputs, target, random, width=None).best[1:])
    assert np.square(shrunk).mean() < 0.25 * np.square(straight).mean()


@pytest.mark.parametrize("noise", [1.0, 1e-6])
def test_what_is_a_relation_stays(noise):
    random = np.random.default_rng(2)
    slopes = np.array([0.5, -0.5, 0.3, 0.0])
    straight, shrunk = [], []
    for _ in range(40):
        inputs, target = _rows(random, slopes, noise=noise)
        straight.append(fit_linear(inputs, target, random).best[1:])
        shrunk.append(fit_linear(inputs, target, random, width=None).best[1:])
    error = np.std(straight, axis=0)
    # In standard errors.
    assert (np.abs(np.mean(shrunk, axis=0) - np.mean(straight, axis=0)) < 0.01 * error).all()


def test_draws_are_as_uncertain_as_the_posterior_of_slopes():
    random = np.random.default_rng(3)
    inputs, target = _rows(random, [0.05, 0.0], rows=100)
    width = 0.02
    fit = fit_linear(inputs, target, random, width=width)
    precision = inputs.T @ inputs + np.diag([0.0, *(inputs[:, 1:].var(axis=0) / width)])
    expected = np.square(fit.left).mean() * fit.grow**2 * np.linalg.inv(precision)
    weights = random.exponential(size=(100, 8_000))
    again = fit.reweighted(inputs, weights, random)
    # As uncertain as if errors were normal, which a hundred rows are not quite.
    np.testing.assert_allclose(again.var(axis=0), np.diag(expected), rtol=0.25)
    drawn = [fit_linear(inputs, target, random, width=width).drawn for _ in range(4_000)]
    np.testing.assert_allclose(np.var(drawn, axis=0), np.diag(expected), rtol=0.1)


def test_sums_of_products_are_shrunk_like_rows():
    random = np.random.default_rng(4)
    inputs, target = _rows(random, [0.2, 0.0, 0.1])
    together = np.column_stack([inputs, target])
    fit = fit_linear(inputs, target, random, width=0.01)
    found = solve_products(together.T @ together, 200, width=0.01)
    np.testing.assert_allclose(found, fit.best, rtol=1e-6)
    moved = solve_products(together.T @ together, 200, width=0.01, errors=np.array([9.0, 1, 0, 0]))
    # The prior has nothing to say about the constant, but what moves a slope moves it.
    assert moved[1] > found[1]


def test_coefficients_that_are_held_are_not_counted():
    """What is left over is no smaller because of inputs that tell nothing."""
    random = np.random.default_rng(5)
    grown, left = [], []
    for _ in range(40):
        inputs, target = _rows(random, np.zeros(20), rows=60)
        fit = fit_linear(inputs, target, random, width=1e-6)
        grown.append(fit.grow)
        left.append(np.square(fit.left * fit.grow).mean())
    assert max(grown) < 1.02
    assert abs(np.mean(left) - 1) < 0.1


def test_nothing_to_tell_a_width_by():
    random = np.random.default_rng(6)
    alone = np.ones((50, 1))
    assert _width(alone, np.arange(50.0), random) == np.inf
    inputs, _ = _rows(random, [1.0], rows=50)
    assert _width(inputs, np.zeros(50), random) == np.inf
    assert _width(inputs[:2], np.array([1.0, 2.0]), random) == np.inf
    # An input that does not vary is no input.
    still = np.column_stack([np.ones(50), np.full(50, 3.0)])
    assert np.isfinite(fit_linear(still, np.arange(50.0), random, width=None).best).all()
