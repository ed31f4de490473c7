r"""Linear and logistic regression with draws of their coefficients.

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

where :math:`z` are standard normal numbers.

So are all draws of a multinomial logit. A normal around the mode of its posterior, as in mice's
``polyreg``, is wide where categories are told apart without fail, and would mix them up.
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
# Precision of the prior of a logistic coefficient: no coefficient runs away where categories are
# told apart without error.
PRECISION = 0.05
NEWTON_STEPS, STEPS_FROM_NEAR = 12, 5
# So many coefficients of categories are drawn together.
MOST_TOGETHER = 400
CLOSE = 1e-6
FARTHEST = 500.0
# Standard errors that make no difference.
ENOUGH = 0.1


class Fit(NamedTuple):
    """What regression says.

    Parameters
    ----------
    best : ndarray of shape (inputs,) or (inputs, categories - 1)
        The most probable coefficients; of categories, those of all but the first.
    drawn : ndarray of the same shape
        A draw from their posterior; of categories there are those of `reweighted` only.
    left : ndarray of shape (rows,) or (rows, categories - 1)
        What is left over in every row.
    roots : tuple of ndarray
        The Cholesky factor of the precision of all coefficients, one category after the other. In
        many categories one factor for each, as if they did not go together.
    grow : float
        By how much errors are larger than what is left over in rows that were regressed on.
    spread : float
        By how much errors are larger than that, as drawn from the posterior.
    widths : ndarray of shape (inputs - 1,) or float
        How wide the priors of the slopes are; see `grapefill.uncertainty.shrinkage`.
    pulled : ndarray of shape (inputs,) or (0,)
        Of numbers, the errors of that prior: the standard deviation of what pulls coefficients.
    """

    best: FloatArray
    drawn: FloatArray
    left: FloatArray
    roots: tuple[FloatArray, ...]
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
        ndarray of shape (draws, inputs) or (draws, inputs, categories - 1)
        """
        rows, draws = weights.shape
        if not self.roots:
            return np.repeat(self.best[None], draws, axis=0)
        left = self.grow * self.left.reshape(rows, -1)
        pulls = [inputs.T @ ((weights - 1) * left[:, [at]]) for at in range(left.shape[1])]
        if self.pulled.any():
            pulls[0] += self.pulled[:, None] * random.standard_normal((self.pulled.size, draws))
        moved = _solve(self.roots, np.stack(pulls)).transpose(2, 1, 0)
        found: FloatArray = self.best + moved.reshape(draws, *self.best.shape)
        return found


def _solve(roots: tuple[FloatArray, ...], pulls: FloatArray) -> FloatArray:
    """Return what moves coefficients by some pulls, shape (categories, inputs, draws)."""
    if len(roots) == 1:
        return _solve_one(roots[0], np.concatenate(pulls)).reshape(pulls.shape)
    return np.stack([_solve_one(root, pull) for root, pull in zip(roots, pulls, strict=True)])


def _solve_one(root: FloatArray, wanted: FloatArray) -> FloatArray:
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
    root = _root(_raised(products, prior), _ridge(rows, count))
    best = _solve_one(root, wanted)
    left = target - inputs @ best
    free = max(1.0, rows - count + _held_by(prior, root))
    sigma = np.sqrt(float(np.square(left).sum()) / random.chisquare(free))
    apart = dtrtrs(root, random.standard_normal(count))[0]
    grow = min(float(np.sqrt(rows / free)), 2.0) if rows > 2 else 1.0
    size = float(np.sqrt(np.square(left).mean()))
    spread = min(float(sigma) / size, 2.0 * grow) if size > 0 and rows > 2 else 1.0
    pulled = grow * size * np.sqrt(prior)
    return Fit(best, best + sigma * apart, left, (root,), grow, spread, widths, pulled)


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
    root = _root(_raised(known, prior), _ridge(rows, prior.size))
    return _solve_one(root, wanted if errors is None else wanted + np.sqrt(prior) * errors)


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


def fit_logistic(
    inputs: FloatArray,
    codes: FloatArray,
    n_categories: int,
    *,
    start: FloatArray | None = None,
) -> Fit:
    """Regress categories on inputs: the log odds of each against the first.

    One category after the other takes a step of Newton's method, until none moves much any more.

    Parameters
    ----------
    inputs : ndarray of shape (rows, inputs)
        One of them is constant.
    codes : ndarray of shape (rows,)
        The categories.
    n_categories : int
        How many there are.
    start : ndarray or None
        Coefficients to start from.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> inputs = np.column_stack([np.ones(5_000), random.normal(size=5_000)])
    >>> beta = np.array([[0.5, -1.0], [2.0, 1.0]])
    >>> codes = np.array([random.choice(3, p=p) for p in category_chances(inputs @ beta, 3)])
    >>> bool(np.abs(fit_logistic(inputs, codes, 3).best - beta).max() < 0.2)
    True
    """
    width, others = inputs.shape[1], n_categories - 1
    if not others:
        nothing = np.zeros((width, 0))
        return Fit(nothing, nothing, np.empty((inputs.shape[0], 0)), ())
    # All categories alike, so that none waits for the others to move away from a first one.
    beta = np.zeros((width, n_categories))
    if start is not None:
        beta[:, 1:] = start
        beta -= beta.mean(axis=1, keepdims=True)
    logits = np.asfortranarray(inputs @ beta)
    truth = codes[:, None] == np.arange(n_categories)
    roots: list[FloatArray] = [np.empty(0)] * n_categories
    for number in range(NEWTON_STEPS if start is None else STEPS_FROM_NEAR):
        # Where it starts close, what rows tell is worked out once.
        anew = start is None or number == 0
        largest = 0.0
        highest = logits.max(axis=1)
        odds = np.asfortranarray(np.exp(logits - highest[:, None]))
        total = odds.sum(axis=1)
        for at in range(n_categories):
            chance = np.minimum(odds[:, at] / total, 1.0)
            if anew:
                roots[at] = _root(_information(inputs, chance * (1 - chance)), 0.0)
            pull = inputs.T @ (truth[:, at] - chance) - PRECISION * beta[:, at]
            step = _solve_one(roots[at], pull)
            # In standard errors, before it is shortened.
            largest = max(largest, float(pull @ step))
            # Newton's method overshoots where categories are nearly separate.
            step /= max(1.0, float(np.abs(step).max()) / 2)
            beta[:, at] += step
            logits[:, at] += inputs @ step
            total -= odds[:, at]
            odds[:, at] = np.exp(np.minimum(logits[:, at] - highest, FARTHEST))
            total = np.maximum(total, CLOSE) + odds[:, at]
        if largest < ENOUGH**2:
            break
    best = beta[:, 1:] - beta[:, :1]
    chances = category_chances(inputs @ best, n_categories)[:, 1:]
    together = _root_of_all(inputs, chances) if 1 < others <= MOST_TOGETHER // width else None
    found = tuple(roots[1:]) if together is None else (together,)
    return Fit(best, best, truth[:, 1:] - chances, found)


def _information(inputs: FloatArray, weight: FloatArray) -> FloatArray:
    """Return what rows tell about the coefficients of a category, with what is known before."""
    weight = np.maximum(weight, CLOSE)
    found: FloatArray = inputs.T @ (inputs * weight[:, None])
    return found + PRECISION * np.eye(inputs.shape[1])


def _root_of_all(inputs: FloatArray, chances: FloatArray) -> FloatArray:
    """Return the Cholesky factor of the precision of the coefficients of all categories."""
    width, others = inputs.shape[1], chances.shape[1]
    whole = np.zeros((others, width, others, width))
    for a in range(others):
        whole[a, :, a] = _information(inputs, chances[:, a] * (1 - chances[:, a]))
        for b in range(a):
            apart = inputs.T @ (inputs * (chances[:, a] * chances[:, b])[:, None])
            whole[a, :, b] = whole[b, :, a] = -apart
    return _root(whole.reshape(others * width, others * width), 0.0)


def category_chances(logits: FloatArray, n_categories: int) -> FloatArray:
    """Return the probabilities of categories, shape (rows, categories), from `fit_logistic`.

    Models that were saved before have log odds of each category against the rest.
    """
    if logits.shape[1] == n_categories:
        chances = expit(logits)
        total: FloatArray = chances / np.maximum(chances.sum(axis=1, keepdims=True), 1e-300)
        return total
    odds = np.hstack([np.zeros((logits.shape[0], 1)), logits])
    odds = np.exp(odds - odds.max(axis=1, keepdims=True))
    result: FloatArray = odds / odds.sum(axis=1, keepdims=True)
    return result


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
