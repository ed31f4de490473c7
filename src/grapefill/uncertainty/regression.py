r"""Linear regression with draws of its coefficients.

A draw from the posterior of :math:`y = X\beta + \varepsilon` is

.. math:: \sigma^2 \sim \frac{RSS}{\chi^2_{n-d}}, \quad
          \beta \sim \mathcal N(\hat\beta, \sigma^2 (X^\top X + \Lambda)^{-1}),

which is what R's mice calls ``norm``. :math:`\Lambda` is the precision of a prior
(`grapefill.uncertainty.shrinkage`), and :math:`d` counts coefficients as far as rows tell them.
Draws of several regressions that belong together come from the Bayesian bootstrap instead (Rubin
1981): each row counts as often as a number :math:`w_i` from an exponential distribution says, the
same number in all of them. To first order that is

.. math:: \beta = \hat\beta + (X^\top X + \Lambda)^{-1}
          \left(X^\top ((w - 1) \circ (y - X\hat\beta)) + \sigma \Lambda^{1/2} z\right),

where :math:`z` are standard normal numbers. `grapefill.uncertainty.logistic` has categories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs

from grapefill.uncertainty.shrinkage import draw_widths, precisions

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray

# Share of its own sum of squares that is added to that of every input, so that it can be inverted.
RIDGE = 1e-5


class Fit(NamedTuple):
    """What regression says.

    Parameters
    ----------
    best : ndarray of shape (inputs,)
        The most probable coefficients.
    drawn : ndarray of the same shape
        A draw from their posterior.
    left : ndarray of shape (rows,)
        What is left over in every row.
    root : ndarray of shape (inputs, inputs)
        The Cholesky factor of what rows and prior tell about the coefficients.
    grow : float
        By how much errors are larger than what is left over in rows that were regressed on.
    spread : float
        By how much errors are larger than that, as drawn from the posterior.
    widths : ndarray of shape (inputs - 1,) or float
        How wide the priors of the slopes are; see `grapefill.uncertainty.shrinkage`.
    pulled : ndarray of shape (inputs,)
        The errors of that prior: the standard deviation of what pulls coefficients.
    """

    best: FloatArray
    drawn: FloatArray
    left: FloatArray
    root: FloatArray
    grow: float = 1.0
    spread: float = 1.0
    widths: FloatArray | float = np.inf
    pulled: FloatArray = np.empty(0)

    def reweighted(
        self, inputs: FloatArray, weights: FloatArray, random: np.random.Generator
    ) -> FloatArray:
        """Return the coefficients if rows count more or less than once, to first order.

        The prior counts once, like rows more that have errors; these are drawn.

        Parameters
        ----------
        inputs : ndarray of shape (rows, inputs)
            As in the regression.
        weights : ndarray of shape (rows, draws)
            How often every row counts.
        random : Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape (draws, inputs)
        """
        pulls = inputs.T @ ((weights - 1) * (self.grow * self.left)[:, None])
        if self.pulled.any():
            pulls += self.pulled[:, None] * random.standard_normal(pulls.shape)
        return self.best + solve(self.root, pulls).T


def solve(root: FloatArray, wanted: FloatArray) -> FloatArray:
    """Solve a system whose matrix has this upper Cholesky factor."""
    # Many small ones are solved, where scipy's checks would take longer than the work.
    found: FloatArray = dpotrs(root, wanted)[0]
    return found


def fit_linear(
    inputs: FloatArray,
    target: FloatArray,
    random: np.random.Generator,
    *,
    widths: FloatArray | float | None = np.inf,
) -> Fit:
    """Regress a number on inputs, the first of which is constant.

    Parameters
    ----------
    inputs : ndarray of shape (rows, inputs)
        What is regressed on.
    target : ndarray of shape (rows,)
        The number.
    random : Generator
        Source of all randomness.
    widths : ndarray of shape (inputs - 1,), float or None
        How wide the priors of the slopes are, None to find that out; infinite is none.

    Examples
    --------
    >>> inputs = np.column_stack([np.ones(50), np.arange(50.0)])
    >>> fit = fit_linear(inputs, 1 + 2 * inputs[:, 1], np.random.default_rng(0))
    >>> fit.best.round(1).tolist()
    [1.0, 2.0]
    """
    rows, count = inputs.shape
    products, wanted = inputs.T @ inputs, inputs.T @ target
    if widths is None:
        widths = draw_widths(products, wanted, float(target @ target), random)
    prior = precisions(products, widths)
    root = cholesky(_raised(products, prior), _ridge(rows, count))
    best = solve(root, wanted)
    left = target - inputs @ best
    free = max(1.0, rows - count + _held_by(prior, root))
    sigma = np.sqrt(float(np.square(left).sum()) / random.chisquare(free))
    apart = dtrtrs(root, random.standard_normal(count))[0]
    grow = min(float(np.sqrt(rows / free)), 2.0) if rows > 2 else 1.0
    size = float(np.sqrt(np.square(left).mean()))
    spread = min(float(sigma) / size, 2.0 * grow) if size > 0 and rows > 2 else 1.0
    pulled = grow * size * np.sqrt(prior)
    return Fit(best, best + sigma * apart, left, root, grow, spread, widths, pulled)


def solve_products(
    products: FloatArray,
    rows: int,
    *,
    widths: FloatArray | float = np.inf,
    errors: FloatArray | None = None,
) -> FloatArray:
    """Return the coefficients in the regression of the last of some inputs on the others.

    Parameters
    ----------
    products : ndarray of shape (inputs, inputs)
        Sums over rows of products of inputs, whatever rows count for.
    rows : int
        How many rows there are.
    widths : ndarray of shape (inputs - 2,) or float
        How wide the priors of the slopes are.
    errors : ndarray of shape (inputs - 1,) or None
        What is drawn of the pull of the priors, which counts like a row more for every slope: the
        errors of these rows.
    """
    known, wanted = products[:-1, :-1], products[:-1, -1]
    prior = precisions(known, widths)
    root = cholesky(_raised(known, prior), _ridge(rows, prior.size))
    return solve(root, wanted if errors is None else wanted + np.sqrt(prior) * errors)


def _raised(matrix: FloatArray, by: FloatArray) -> FloatArray:
    """Return a matrix whose diagonal is larger."""
    found = matrix.copy()
    found[np.diag_indices_from(found)] += by
    return found


def _held_by(prior: FloatArray, root: FloatArray) -> float:
    """Return how many coefficients a prior holds, each as far as rows do not tell it."""
    if not prior.any():
        return 0.0
    inverse: FloatArray = dpotri(root)[0]
    return float(prior @ np.diag(inverse))


def _ridge(rows: int, width: int) -> float:
    """Return by which share the diagonal is raised."""
    return RIDGE + 0.1 * (width / rows) ** 2


def cholesky(matrix: FloatArray, ridge: float) -> FloatArray:
    """Return the upper Cholesky factor of a matrix, its diagonal raised until there is one."""
    diagonal = np.diag(matrix).copy()
    if not np.isfinite(diagonal).all():
        raise ValueError("a regression was given numbers that are not finite")
    least = max(float(diagonal.max()), 1.0) * 1e-12
    for _ in range(20):
        raised = matrix.copy()
        raised[np.diag_indices_from(raised)] += ridge * diagonal + least
        root, failed = dpotrf(raised)
        if not failed:
            found: FloatArray = root
            return found
        ridge, least = max(10 * ridge, 1e-8), 10 * least
    return np.diag(np.sqrt(diagonal + 1.0))
