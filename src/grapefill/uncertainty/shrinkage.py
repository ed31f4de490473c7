r"""How far the slopes of a regression are drawn towards none, as the table itself tells.

Where most inputs have nothing to do with a column, slopes have a normal prior of variance
:math:`\sigma^2 t`, those of standardised inputs :math:`Z`. Not so those that are larger than a few
standard errors: a prior would make them flatter, and what is estimated from draws with them. They
are found one after the other, each by what the ones before leave over. How wide the prior is nobody
knows beforehand, but some widths make what was observed more probable than others: of :math:`n`
rows, with :math:`d` coefficients that are free, where :math:`y` and :math:`Z` are what these leave
over,

.. math:: p(y \mid t) \propto |I + t Z^\top Z|^{-1/2}
          \left(y^\top (I + t Z Z^\top)^{-1} y\right)^{-(n-d)/2}.

So :math:`t` is drawn from its posterior, out of a grid from slopes that are none to slopes that are
as large as they look. What columns seem to have in common by chance is not taken for a relation.
Whether most inputs have nothing to do with a column is told by a first :math:`t`, drawn for all of
its slopes: where they are large on average none has a prior, for a small one may matter, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import BoolArray, FloatArray

# Widths that are possible, times the number of rows, and how many of them are tried.
NARROWEST, WIDEST, WIDTHS = 2e-3, 1e6, 60
# Slopes that are larger than so many standard errors have no prior; nor has any, if all of them are
# so large on average.
LARGE = 2.0
# An input that varies less than that counts as if it varied so much.
LEAST_VARIANCE = 1e-6
# What rounding may leave of a sum of squares.
ROUNDING = 1e-12
# Of what varies by less than such a share beside other inputs, nothing can be told.
TOLD_BY_OTHERS = 1e-6


def draw_widths(
    products: FloatArray, wanted: FloatArray, squares: float, random: np.random.Generator
) -> FloatArray:
    """Draw how wide the priors of slopes are.

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
    ndarray of shape (inputs - 1,)
        Variances of the slopes of standardised inputs, in units of that of the errors; infinite
        where a slope is large, or where there is nothing to tell it by.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> inputs = np.column_stack([np.ones(200), random.normal(size=(200, 40))])
    >>> target = 0.5 * inputs[:, 1] + random.normal(size=200)
    >>> widths = draw_widths(inputs.T @ inputs, inputs.T @ target, target @ target, random)
    >>> bool(np.isinf(widths[0])), int(np.isfinite(widths[1:]).sum()) > 30
    (True, True)
    """
    rows = float(products[0, 0])
    found = np.full(products.shape[0] - 1, np.inf)
    total = squares - wanted[0] ** 2 / max(rows, 1.0)
    if not found.size or rows < 3 or not total > 0:
        return found
    deviations = np.sqrt(_variances(products))
    centred = products[1:, 1:] - np.outer(products[0, 1:], products[0, 1:]) / rows
    along = (wanted[1:] - products[0, 1:] * wanted[0] / rows) / deviations
    together = centred / np.outer(deviations, deviations)
    if np.isinf(_draw(together, along, total, (rows, 1), random)):
        return found
    small, left = _without_large(together, along, total, rows)
    if small.any():
        n_free = 1 + int(np.count_nonzero(~small))
        width = _draw(together[np.ix_(small, small)], along[small], left, (rows, n_free), random)
        found[small] = width
    return found


def _without_large(
    together: FloatArray, along: FloatArray, total: float, rows: float
) -> tuple[BoolArray, float]:
    """Find the inputs whose slopes are large, and take out of all others what these tell.

    Parameters
    ----------
    together : ndarray of shape (inputs, inputs)
        Sums over rows of products of standardised inputs; changed in place.
    along : ndarray of shape (inputs,)
        Of products with the target; changed in place.
    total : float
        Of squares of the target.
    rows : float
        How many rows there are.

    Returns
    -------
    tuple of ndarray of bool and float
        Which slopes are small, and the sum of squares of what the large ones leave over.
    """
    small = np.ones(along.size, dtype=bool)
    least = np.maximum(TOLD_BY_OTHERS * np.diag(together), ROUNDING * rows)
    smallest = ROUNDING * total
    while (free := rows - 2 - np.count_nonzero(~small)) > 0:
        sizes = np.diag(together)
        usable = small & (sizes > least)
        gains = np.where(usable, along**2 / np.where(usable, sizes, 1.0), 0.0)
        at = int(gains.argmax())
        left = max(total - float(gains[at]), smallest)
        if gains[at] <= LARGE**2 * left / free:
            break
        small[at] = False
        row = together[at] / np.sqrt(sizes[at])
        along -= row * (along[at] / np.sqrt(sizes[at]))
        together -= np.outer(row, row)
        total = left
        if total <= smallest:
            break
    return small, total


def _draw(
    together: FloatArray,
    along: FloatArray,
    total: float,
    counts: tuple[float, int],
    random: np.random.Generator,
) -> float:
    """Draw a width for slopes whose sums are given as in `_without_large`.

    With how many rows and coefficients without a prior there are; infinite if slopes are large.
    """
    rows, n_free = counts
    sizes, axes = np.linalg.eigh(together)
    sizes = np.maximum(sizes, ROUNDING * rows)
    explained = np.square(axes.T @ along) / sizes
    left = max(total - float(explained.sum()), ROUNDING * total)
    widths = np.geomspace(NARROWEST / rows, WIDEST / rows, WIDTHS)
    growth = 1 + widths[:, None] * sizes
    inside = left + (explained / growth).sum(axis=1)
    unlikely = np.log(growth).sum(axis=1) + max(rows - n_free, 1.0) * np.log(inside)
    chances = np.exp(0.5 * (unlikely.min() - unlikely)).cumsum()
    drawn = float(widths[np.searchsorted(chances, random.random() * chances[-1])])
    return drawn if drawn * rows < LARGE**2 else float(np.inf)


def precisions(products: FloatArray, widths: FloatArray | float) -> FloatArray:
    """Return what the prior adds to the diagonal of the products of inputs.

    Examples
    --------
    >>> inputs = np.array([[1.0, 3.0], [1.0, -1.0]])
    >>> precisions(inputs.T @ inputs, 0.5)
    array([0., 8.])
    """
    return np.append(0.0, _variances(products) / widths)


def _variances(products: FloatArray) -> FloatArray:
    """Return the variances of all inputs but the constant."""
    rows = products[0, 0]
    found = np.diag(products)[1:] / rows - np.square(products[0, 1:] / rows)
    larger: FloatArray = np.maximum(found, LEAST_VARIANCE)
    return larger
