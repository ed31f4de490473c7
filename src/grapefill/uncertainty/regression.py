r"""Linear and logistic regression with draws of their coefficients.

A draw from the posterior of :math:`y = X\beta + \varepsilon` under a vague prior is

.. math:: \sigma^2 \sim \frac{RSS}{\chi^2_{n-d}}, \quad
          \beta \sim \mathcal N(\hat\beta, \sigma^2 (X^\top X + \Lambda)^{-1}),

which is what R's mice calls ``norm``. For categories it is a normal around the mode of the
posterior, one category against the rest. Draws of several regressions that belong together come
from the Bayesian bootstrap instead (Rubin 1981): each row counts as often as a number :math:`w_i`
from an exponential distribution says, the same number in all of them. To first order that is

.. math:: \beta = \hat\beta + (X^\top X + \Lambda)^{-1} X^\top ((w - 1) \circ (y - X\hat\beta)).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray

# Share of its own sum of squares that is added to that of every input, so that it can be inverted.
RIDGE = 1e-5
# Precision of the prior of a logistic coefficient: no coefficient runs away where categories are
# told apart without error.
PRECISION = 0.05
NEWTON_STEPS = 8
CLOSE = 1e-6


class Fit(NamedTuple):
    """What regression says.

    Parameters
    ----------
    best : ndarray of shape (inputs,) or (inputs, categories)
        The most probable coefficients.
    drawn : ndarray of the same shape
        A draw from their posterior.
    left : ndarray of shape (rows,) or (rows, categories)
        What is left over in every row.
    roots : tuple of ndarray of shape (inputs, inputs)
        The Cholesky factor of the precision of the coefficients, of each category.
    grow : float
        By how much errors are larger than what is left over in rows that were regressed on.
    """

    best: FloatArray
    drawn: FloatArray
    left: FloatArray
    roots: tuple[FloatArray, ...]
    grow: float = 1.0

    def reweighted(self, inputs: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the coefficients if rows count more or less than once, to first order.

        Parameters
        ----------
        inputs : ndarray of shape (rows, inputs)
            As in the regression.
        weights : ndarray of shape (rows, draws)
            How often every row counts.

        Returns
        -------
        ndarray of shape (draws, inputs) or (draws, inputs, categories)
        """
        rows, draws = weights.shape
        left = self.grow * self.left.reshape(rows, -1)
        moved = [
            cho_solve((root, False), inputs.T @ ((weights - 1) * left[:, [at]])).T
            for at, root in enumerate(self.roots)
        ]
        found: FloatArray = self.best + np.stack(moved, axis=-1).reshape(draws, *self.best.shape)
        return found


def fit_linear(inputs: FloatArray, target: FloatArray, random: np.random.Generator) -> Fit:
    """Regress a number on inputs, one of which is constant.

    Examples
    --------
    >>> inputs = np.column_stack([np.ones(50), np.arange(50.0)])
    >>> fit = fit_linear(inputs, 1 + 2 * inputs[:, 1], np.random.default_rng(0))
    >>> fit.best.round(1).tolist()
    [1.0, 2.0]
    """
    rows, width = inputs.shape
    root = _root(inputs.T @ inputs, _ridge(rows, width))
    best = cho_solve((root, False), inputs.T @ target)
    left = target - inputs @ best
    free = max(1, rows - width)
    sigma = np.sqrt(float(np.square(left).sum()) / random.chisquare(free))
    apart = solve_triangular(root, random.standard_normal(width))
    grow = min(float(np.sqrt(rows / free)), 2.0) if rows > 2 else 1.0
    return Fit(best, best + sigma * apart, left, (root,), grow)


def solve_products(products: FloatArray, rows: int) -> FloatArray:
    """Return the coefficients in the regression of the last of some inputs on the others.

    Parameters
    ----------
    products : ndarray of shape (inputs, inputs)
        Sums over rows of products of inputs, whatever rows count for.
    rows : int
        How many rows there are.
    """
    root = _root(products[:-1, :-1], _ridge(rows, products.shape[0] - 1))
    best: FloatArray = cho_solve((root, False), products[:-1, -1])
    return best


def fit_logistic(
    inputs: FloatArray,
    codes: FloatArray,
    n_categories: int,
    random: np.random.Generator,
    *,
    start: FloatArray | None = None,
) -> Fit:
    """Regress the indicators of categories on inputs; for two categories the last one only.

    Parameters
    ----------
    inputs : ndarray of shape (rows, inputs)
        One of them is constant.
    codes : ndarray of shape (rows,)
        The categories.
    n_categories : int
        How many there are.
    random : Generator
        Source of the draw.
    start : ndarray or None
        Coefficients to start from.
    """
    rows, width = inputs.shape
    wanted = [1] if n_categories == 2 else list(range(n_categories))
    best = np.zeros((width, len(wanted))) if start is None else start.copy()
    drawn, left, roots = np.empty_like(best), np.empty((rows, len(wanted))), []
    for at, code in enumerate(wanted):
        beta, truth = best[:, at], codes == code
        for _ in range(NEWTON_STEPS):
            chance = expit(inputs @ beta)
            weight = np.maximum(chance * (1 - chance), CLOSE)
            hessian = inputs.T @ (inputs * weight[:, None]) + PRECISION * np.eye(width)
            root = _root(hessian, 0.0)
            step = cho_solve((root, False), inputs.T @ (truth - chance) - PRECISION * beta)
            # Newton's method overshoots where categories are nearly separate.
            beta = beta + step / max(1.0, float(np.abs(step).max()) / 2)
            if np.abs(step).max() < 1e-3:
                break
        best[:, at], left[:, at] = beta, truth - chance
        roots.append(root)
        drawn[:, at] = beta + solve_triangular(root, random.standard_normal(width))
    return Fit(best, drawn, left, tuple(roots))


def category_chances(logits: FloatArray, n_categories: int) -> FloatArray:
    """Return the probabilities of categories, shape (rows, categories), from `fit_logistic`."""
    chances = expit(logits)
    if n_categories == 2:
        return np.hstack([1 - chances, chances])
    total: FloatArray = chances / np.maximum(chances.sum(axis=1, keepdims=True), 1e-300)
    return total


def expit(x: FloatArray) -> FloatArray:
    """Return the logistic function of numbers, however large."""
    result: FloatArray = 0.5 * (1 + np.tanh(0.5 * x))
    return result


def _ridge(rows: int, width: int) -> float:
    """Return by which share the diagonal is raised."""
    return RIDGE + 0.1 * (width / rows) ** 2


def _root(matrix: FloatArray, ridge: float) -> FloatArray:
    """Return the upper Cholesky factor of a matrix, its diagonal raised until there is one."""
    diagonal = np.diag(matrix).copy()
    least = max(float(diagonal.max()), 1.0) * 1e-12
    for _ in range(20):
        try:
            root: FloatArray = cholesky(matrix + np.diag(ridge * diagonal + least))
        except np.linalg.LinAlgError:
            ridge, least = max(10 * ridge, 1e-8), 10 * least
        else:
            return root
    return np.diag(np.sqrt(diagonal + 1.0))
