r"""How far the slopes of a regression are drawn towards none, as the table itself tells.

Slopes of standardised inputs :math:`Z` have a normal prior of variance :math:`\sigma^2 t`. How wide
it is nobody knows beforehand, but some make what was observed more probable than others: with
:math:`n` rows, and a flat prior of the constant and of :math:`\log\sigma`,

.. math:: p(y \mid t) \propto |I + t Z^\top Z|^{-1/2}
          \left(y^\top (I + t Z Z^\top)^{-1} y\right)^{-(n-1)/2}.

So :math:`t` is drawn from its posterior, out of a grid from slopes that are none to slopes that are
as large as they look. Where columns have nothing to do with each other, what they seem to have by
chance is not taken for a relation. Slopes that are larger than a few standard errors stay as they
are: a prior would make them a little flatter, and what is estimated from draws with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray

# Widths that are possible, times the number of rows, and how many of them are tried.
NARROWEST, WIDEST, WIDTHS = 2e-3, 1e6, 60
# Slopes that are larger than so many standard errors on average have no prior.
LARGE = 2.0
# An input that varies less than that counts as if it varied so much.
LEAST_VARIANCE = 1e-6
# What rounding may leave of a sum of squares.
ROUNDING = 1e-12


def draw_width(
    products: FloatArray, wanted: FloatArray, squares: float, random: np.random.Generator
) -> float:
    """Draw how wide the prior of slopes is.

    Parameters
    ----------
    products : ndarray of shape (inputs, inputs)
        Sums over rows of the products of inputs, the first of which is constant.
    wanted : ndarray of shape (inputs,)
        Sums over rows of the products of inputs and the target.
    squares : float
        Sum over rows of the square of the target.
    random : Generator
        Source of randomness.

    Returns
    -------
    float
        Variance of a slope per standard deviation of its input, in units of that of the errors;
        infinite where slopes are large, or where there is nothing to tell it by.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> inputs = np.column_stack([np.ones(500), random.normal(size=(500, 8))])
    >>> for slope in (0.0, 1.0):
    ...     target = slope * inputs[:, 1:].sum(axis=1) + random.normal(size=500)
    ...     width = draw_width(inputs.T @ inputs, inputs.T @ target, target @ target, random)
    ...     print(width < 1 / 500)
    True
    False
    """
    rows = float(products[0, 0])
    if products.shape[0] < 2 or rows < 3:
        return float(np.inf)
    deviations = np.sqrt(_variances(products))
    centred = products[1:, 1:] - np.outer(products[0, 1:], products[0, 1:]) / rows
    along = (wanted[1:] - products[0, 1:] * wanted[0] / rows) / deviations
    total = squares - wanted[0] ** 2 / rows
    if not total > 0:
        return float(np.inf)
    sizes, axes = np.linalg.eigh(centred / np.outer(deviations, deviations))
    sizes = np.maximum(sizes, ROUNDING * rows)
    explained = np.square(axes.T @ along) / sizes
    left = max(total - float(explained.sum()), ROUNDING * total)
    widths = np.geomspace(NARROWEST / rows, WIDEST / rows, WIDTHS)
    growth = 1 + widths[:, None] * sizes
    unlikely = np.log(growth).sum(axis=1) + (rows - 1) * np.log(
        left + (explained / growth).sum(axis=1)
    )
    chances = np.exp(0.5 * (unlikely.min() - unlikely)).cumsum()
    drawn = float(widths[np.searchsorted(chances, random.random() * chances[-1])])
    return drawn if drawn * rows < LARGE**2 else float(np.inf)


def precisions(products: FloatArray, width: float) -> FloatArray:
    """Return what the prior adds to the diagonal of the products of inputs.

    Examples
    --------
    >>> inputs = np.array([[1.0, 3.0], [1.0, -1.0]])
    >>> precisions(inputs.T @ inputs, 0.5)
    array([0., 8.])
    """
    return np.append(0.0, _variances(products) / width)


def _variances(products: FloatArray) -> FloatArray:
    """Return the variances of all inputs but the constant."""
    rows = products[0, 0]
    found = np.diag(products)[1:] / rows - np.square(products[0, 1:] / rows)
    larger: FloatArray = np.maximum(found, LEAST_VARIANCE)
    return larger
