r"""Multinomial logistic regression with draws of its coefficients.

The log odds of each category against the first are :math:`X\beta`. Draws come from the Bayesian
bootstrap (Rubin 1981): each row counts as often as a number :math:`w_i` from an exponential
distribution says, the same number in all regressions that belong together. To first order that is

.. math:: \beta = \hat\beta + (H + \lambda I)^{-1} X^\top \left((w - 1) \circ (y - p)\right),

where :math:`p` are the probabilities of the categories, :math:`y` is 1 for the one observed, and
:math:`H` is what rows tell about all coefficients together. A normal around the mode of the
posterior, as in mice's ``polyreg``, is wide where categories are told apart without fail, and would
mix them up.

Of few rows the most probable coefficients are too large on average, and the categories drawn by
them would go along with inputs too much. Where there are two categories, Firth (1993) takes that
off by adding a part of a count to either in every row,

.. math:: s h_i (1/2 - p_i),

with :math:`h_i` the leverage of a row. The constant is not to notice, or a rare category would be
drawn too often (Puhr et al., 2017): what is added is taken back by the same share of every row's
variance. :math:`s` is the share of the variance of categories that inputs leave open: where these
tell them without fail, nothing is added, for it would mix them up.

:math:`H` would be a matrix of all coefficients of all categories. It is never written down:
conjugate gradients need its products with a vector only, and what rows tell about each category
alone leads them there in a few steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

from grapefill.uncertainty.regression import cholesky, solve

if TYPE_CHECKING:
    from grapefill.table.arrays import BoolArray, FloatArray

# Precision of the prior of a coefficient: none runs away where categories are told apart without
# error.
PRECISION = 0.05
STEPS, STEPS_FROM_NEAR = 12, 8
CLOSE = 1e-6
FARTHEST = 500.0
# Standard errors that make no difference.
ENOUGH = 0.1
# Steps of conjugate gradients, and the share of a draw's way that is close enough.
GRADIENTS, NEAR = 60, 1e-3


class Odds(NamedTuple):
    """What a regression of categories says.

    Parameters
    ----------
    best : ndarray of shape (inputs, categories - 1)
        The most probable coefficients of all categories but the first.
    chances : ndarray of shape (rows, categories)
        The probabilities of all of them in every row.
    left : ndarray of shape (rows, categories)
        What is left over: 1 less that where a category was observed, 0 less that elsewhere.
    roots : tuple of ndarray
        For every category the Cholesky factor of what rows tell about its coefficients alone.
    """

    best: FloatArray
    chances: FloatArray
    left: FloatArray
    roots: tuple[FloatArray, ...]

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
        ndarray of shape (draws, inputs, categories - 1)
        """
        pulls = (inputs.T @ ((each - 1)[:, None] * self.left) for each in weights.T)
        moved = np.stack([self._moved(inputs, pull) for pull in pulls])
        found: FloatArray = self.best + moved[:, :, 1:] - moved[:, :, :1]
        return found

    def _moved(self, inputs: FloatArray, pull: FloatArray) -> FloatArray:
        """Return by how much a pull moves the coefficients of all categories, of its shape.

        All of them alike, the first like the others: so what is known of each alone leads closest.
        """
        moved = np.zeros_like(pull)
        closer = self._alone(pull)
        far = start = float((pull * closer).sum())
        way = closer
        for _ in range(GRADIENTS):
            if far <= NEAR**2 * start:
                break
            along = inputs @ way
            told = self.chances * (along - (self.chances * along).sum(axis=1, keepdims=True))
            back = inputs.T @ told + PRECISION * way
            step = far / float((way * back).sum())
            moved = moved + step * way
            pull = pull - step * back
            closer, before = self._alone(pull), far
            far = float((pull * closer).sum())
            way = closer + far / before * way
        return moved

    def _alone(self, pull: FloatArray) -> FloatArray:
        """Return what would move coefficients if categories did not go together."""
        pairs = zip(self.roots, pull.T, strict=True)
        return np.stack([solve(root, each) for root, each in pairs], axis=1)


def fit_logistic(
    inputs: FloatArray, codes: FloatArray, n_categories: int, *, near: Odds | None = None
) -> Odds:
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
    near : Odds or None
        A regression on much the same, to start from.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> inputs = np.column_stack([np.ones(5_000), random.normal(size=5_000)])
    >>> beta = np.array([[0.5, -1.0], [2.0, 1.0]])
    >>> codes = np.array([random.choice(3, p=p) for p in category_chances(inputs @ beta, 3)])
    >>> bool(np.abs(fit_logistic(inputs, codes, 3).best - beta).max() < 0.2)
    True
    """
    if n_categories == 1:
        certain = np.ones((inputs.shape[0], 1))
        alone = cholesky(_information(inputs, certain[:, 0]), 0.0)
        return Odds(np.zeros((inputs.shape[1], 0)), certain, 0 * certain, (alone,))
    truth = codes[:, None] == np.arange(n_categories)
    newton = _Newton(inputs, truth, near)
    before = np.inf
    for _ in range(STEPS if near is None else STEPS_FROM_NEAR):
        largest = newton.step()
        if largest < ENOUGH:
            break
        # What rows told elsewhere is good enough as long as it leads closer.
        newton.anew = near is None or largest > before / 2
        before = largest
    best = newton.beta[:, 1:] - newton.beta[:, :1]
    chances = category_chances(inputs @ best, n_categories)
    return Odds(best, chances, truth - chances, tuple(newton.roots))


class _Newton:
    """Coefficients that take steps, those of all categories alike.

    So none waits for the others to move away from a first one.

    Parameters
    ----------
    inputs : ndarray of shape (rows, inputs)
        What is regressed on.
    truth : ndarray of bool, shape (rows, categories)
        Which was observed.
    near : Odds or None
        A regression to start from.

    Attributes
    ----------
    anew : bool
        Whether the next step works out anew what rows tell.
    leverage : ndarray of shape (rows,)
        Of two categories, that of every row over its weight; without rows until it is worked out.
    """

    def __init__(self, inputs: FloatArray, truth: BoolArray, near: Odds | None) -> None:
        self.inputs, self.truth = inputs, truth
        self.beta = np.zeros((inputs.shape[1], truth.shape[1]))
        self.leverage = np.empty(0)
        self.roots: list[FloatArray] = [np.empty(0)] * truth.shape[1]
        self.anew = near is None
        if near is not None:
            self.beta[:, 1:] = near.best
            self.beta -= self.beta.mean(axis=1, keepdims=True)
            # Fewer rows tell less.
            share = np.sqrt(inputs.shape[0] / near.left.shape[0])
            self.roots = [share * root for root in near.roots]
        self.logits = np.asfortranarray(inputs @ self.beta)

    def step(self) -> float:
        """Move every category once; return by how many standard errors one moves at most."""
        largest = 0.0
        highest = self.logits.max(axis=1)
        odds = np.asfortranarray(np.exp(self.logits - highest[:, None]))
        total = odds.sum(axis=1)
        more = self._more(odds / total[:, None])
        for at in range(self.truth.shape[1]):
            chance = np.minimum(odds[:, at] / total, 1.0)
            if self.anew:
                self.roots[at] = cholesky(_information(self.inputs, chance * (1 - chance)), 0.0)
            pull = self.inputs.T @ (self.truth[:, at] + more[:, at] - chance)
            pull -= PRECISION * self.beta[:, at]
            step = solve(self.roots[at], pull)
            # Before it is shortened.
            largest = max(largest, float(pull @ step))
            # Newton's method overshoots where categories are nearly separate.
            step /= max(1.0, float(np.abs(step).max()) / 2)
            self.beta[:, at] += step
            self.logits[:, at] += self.inputs @ step
            total -= odds[:, at]
            odds[:, at] = np.exp(np.minimum(self.logits[:, at] - highest, FARTHEST))
            total = np.maximum(total, CLOSE) + odds[:, at]
        if self.anew:
            self.leverage = np.empty(0)
        return float(np.sqrt(largest))

    def _more(self, chances: FloatArray) -> FloatArray:
        """Return what is added to the categories of every row, shape (rows, categories)."""
        # At the first step from nowhere no leverage is known yet.
        if chances.shape[1] > 2 or not self.roots[0].size:
            return np.zeros_like(chances)
        if not self.leverage.size:
            apart = dtrtrs(self.roots[1], self.inputs.T, trans=1)[0]
            self.leverage = np.square(apart).sum(axis=0)
        left = chances[:, 0] * chances[:, 1]
        usual = chances.mean(axis=0)
        share = left.mean() / max(usual[0] * usual[1], CLOSE)
        more = share * self.leverage * left * (0.5 - chances[:, 1])
        more -= left * (more.sum() / max(left.sum(), CLOSE))
        return np.stack([-more, more], axis=1)


def _information(inputs: FloatArray, weight: FloatArray) -> FloatArray:
    """Return what rows tell about the coefficients of a category, with what is known before."""
    weight = np.maximum(weight, CLOSE)
    found: FloatArray = inputs.T @ (inputs * weight[:, None])
    return found + PRECISION * np.eye(inputs.shape[1])


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
