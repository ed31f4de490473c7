"""Slopes are drawn towards none as far as the table tells."""

from __future__ import annotations

import numpy as np
import pytest

from grapefill.uncertainty.regression import fit_linear, solve_products
from grapefill.uncertainty.shrinkage import LARGE, NARROWEST, WIDEST, WIDTHS, draw_widths


def _rows(random, slopes, *, rows=200, noise=1.0):
    inputs = np.column_stack([np.ones(rows), random.normal(2.0, 3.0, size=(rows, len(slopes)))])
    return inputs, 5 + inputs[:, 1:] @ slopes + random.normal(0, noise, rows)


def _widths(inputs, target, random):
    return draw_widths(inputs.T @ inputs, inputs.T @ target, float(target @ target), random)


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
    drawn = np.array([_widths(inputs, target, random)[0] for _ in range(4_000)])
    small = widths < LARGE**2 / 30
    found = [np.isclose(drawn, width).mean() for width in widths[small]]
    # Drawn twice: whether all slopes are small, and how small they are.
    share = chances[small].sum()
    np.testing.assert_allclose(found, share * chances[small], atol=0.015)
    assert abs(np.isinf(drawn).mean() - (1 - share**2)) < 0.03


def test_what_is_there_by_chance_is_no_relation():
    random = np.random.default_rng(1)
    straight, shrunk = [], []
    for _ in range(40):
        inputs, target = _rows(random, np.zeros(10))
        straight.append(fit_linear(inputs, target, random).best[1:])
        shrunk.append(fit_linear(inputs, target, random, widths=None).best[1:])
    assert np.square(shrunk).mean() < 0.4 * np.square(straight).mean()


@pytest.mark.parametrize("noise", [1.0, 1e-6])
def test_what_is_a_relation_stays(noise):
    random = np.random.default_rng(2)
    slopes = np.array([0.5, -0.5, 0.3, 0.0])
    straight, shrunk = [], []
    for _ in range(40):
        inputs, target = _rows(random, slopes, noise=noise)
        straight.append(fit_linear(inputs, target, random).best[1:])
        shrunk.append(fit_linear(inputs, target, random, widths=None).best[1:])
    straight, shrunk = np.array(straight)[:, :3], np.array(shrunk)[:, :3]
    # In standard errors.
    error = straight.std(axis=0)
    assert (np.abs(shrunk.mean(axis=0) - straight.mean(axis=0)) < 0.1 * error).all()


@pytest.mark.parametrize(
    ("rows", "count", "slope"), [(300, 75, 0.5), (1_000, 128, 0.5), (250, 60, 0.5)]
)
def test_a_large_slope_among_many_small_ones_stays(rows, count, slope):
    random = np.random.default_rng(7)
    straight, shrunk = [], []
    for _ in range(20):
        inputs = np.column_stack([np.ones(rows), random.normal(size=(rows, count))])
        target = slope * inputs[:, 1] + random.normal(size=rows)
        straight.append(fit_linear(inputs, target, random).best[1:])
        shrunk.append(fit_linear(inputs, target, random, widths=None).best[1:])
    straight, shrunk = np.array(straight), np.array(shrunk)
    assert abs(shrunk[:, 0].mean() / slope - 1) < 0.05
    assert np.square(shrunk[:, 1:]).mean() < 0.6 * np.square(straight[:, 1:]).mean()


def test_inputs_that_say_the_same_are_large_together():
    """Each by itself tells nothing that the other does not."""
    random = np.random.default_rng(8)
    inputs = np.column_stack([np.ones(300), random.normal(size=(300, 40))])
    inputs[:, 2] = inputs[:, 1] + 1e-3 * random.normal(size=300)
    target = inputs[:, 1] + random.normal(size=300)
    fit = fit_linear(inputs, target, random, widths=None)
    assert abs(fit.best[1] + fit.best[2] - 1) < 0.2


def test_draws_are_as_uncertain_as_the_posterior_of_slopes():
    random = np.random.default_rng(3)
    inputs, target = _rows(random, [0.05, 0.0], rows=100)
    width = 0.02
    fit = fit_linear(inputs, target, random, widths=width)
    precision = inputs.T @ inputs + np.diag([0.0, *(inputs[:, 1:].var(axis=0) / width)])
    expected = np.square(fit.left).mean() * fit.grow**2 * np.linalg.inv(precision)
    weights = random.exponential(size=(100, 8_000))
    again = fit.reweighted(inputs, weights, random)
    # As uncertain as if errors were normal, which a hundred rows are not quite.
    np.testing.assert_allclose(again.var(axis=0), np.diag(expected), rtol=0.25)
    drawn = [fit_linear(inputs, target, random, widths=width).drawn for _ in range(4_000)]
    np.testing.assert_allclose(np.var(drawn, axis=0), np.diag(expected), rtol=0.1)


def test_sums_of_products_are_shrunk_like_rows():
    random = np.random.default_rng(4)
    inputs, target = _rows(random, [0.2, 0.0, 0.1])
    together = np.column_stack([inputs, target])
    fit = fit_linear(inputs, target, random, widths=0.01)
    found = solve_products(together.T @ together, 200, widths=0.01)
    np.testing.assert_allclose(found, fit.best, rtol=1e-6)
    moved = solve_products(together.T @ together, 200, widths=0.01, errors=np.array([9.0, 1, 0, 0]))
    # The prior has nothing to say about the constant, but what moves a slope moves it.
    assert moved[1] > found[1]


def test_coefficients_that_are_held_are_not_counted():
    """What is left over is no smaller because of inputs that tell nothing."""
    random = np.random.default_rng(5)
    grown, left = [], []
    for _ in range(40):
        inputs, target = _rows(random, np.zeros(20), rows=60)
        fit = fit_linear(inputs, target, random, widths=1e-6)
        grown.append(fit.grow)
        left.append(np.square(fit.left * fit.grow).mean())
    assert max(grown) < 1.02
    assert abs(np.mean(left) - 1) < 0.1


def test_nothing_to_tell_a_width_by():
    random = np.random.default_rng(6)
    alone = np.ones((50, 1))
    assert _widths(alone, np.arange(50.0), random).size == 0
    inputs, _ = _rows(random, [1.0], rows=50)
    assert np.isinf(_widths(inputs, np.zeros(50), random)).all()
    assert np.isinf(_widths(inputs[:2], np.array([1.0, 2.0]), random)).all()
    # An input that does not vary is no input.
    still = np.column_stack([np.ones(50), np.full(50, 3.0)])
    assert np.isfinite(fit_linear(still, np.arange(50.0), random, widths=None).best).all()
