r"""Cells that are missing together: what else a held-out cell would not have beside it.

A questionnaire whose page was skipped has all its answers missing at once. Where such a column was
observed the others of the page are there too, and it is easily foretold; where it is missing it is
not. So for every held-out cell further cells of its row are hidden: those that a row lacks in which
the column is missing. With holes that have nothing to do with each other that would hide too much,
for a row lacks as many cells whether or not the column is observed. So a cell is hidden only with
the chance that makes up the difference,

.. math:: t = \frac{q_1 - q_0}{(1 - q_0) q_1},

where :math:`q_1` and :math:`q_0` are the shares of its column that are missing beside a missing
cell and beside an observed one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import BoolArray, FloatArray, IntArray

# Standard errors by which shares differ that are not the same.
ERRORS = 3.0
# Rows from which it is learned what is missing together.
MOST_ROWS = 20_000


def missing_together(
    missing: BoolArray, feature: IntArray, random: np.random.Generator
) -> BoolArray:
    """Choose what else to hide in the rows of held-out cells.

    Parameters
    ----------
    missing : ndarray of bool, shape (rows, features)
        The holes of the table.
    feature : ndarray of int, shape (cells,)
        Whose cells are held out.
    random : Generator
        Source of all randomness.

    Returns
    -------
    ndarray of bool, shape (cells, features)
        Never the held-out cell itself.

    Examples
    --------
    >>> page, alone = np.arange(300) % 3 == 0, np.arange(300) % 5 == 0
    >>> missing = np.stack([page, page, alone], axis=1)
    >>> missing_together(missing, np.array([0, 1, 2]), np.random.default_rng(0))
    array([[False,  True, False],
           [ True, False, False],
           [False, False, False]])
    """
    if len(missing) > MOST_ROWS:
        missing = missing[np.sort(random.permutation(len(missing))[:MOST_ROWS])]
    hidden = np.zeros((feature.size, missing.shape[1]), dtype=bool)
    for j in np.unique(feature).tolist():
        chance = _chances(missing, j)
        if not chance.any():
            continue
        mine = np.flatnonzero(feature == j)
        like = random.choice(np.flatnonzero(missing[:, j]), mine.size)
        # One number for all cells of a row: what is missing together is hidden together.
        hidden[mine] = missing[like] & (random.random((mine.size, 1)) < chance)
    return hidden


def _chances(missing: BoolArray, feature: int) -> FloatArray:
    """Return with which chance to hide what is missing beside a missing cell of a column."""
    beside = missing[:, feature]
    counts = int(beside.sum()), int((~beside).sum())
    if not min(counts):
        return np.zeros(missing.shape[1])
    there, elsewhere = missing[beside].mean(axis=0), missing[~beside].mean(axis=0)
    whole = missing.mean(axis=0)
    error = np.sqrt(whole * (1 - whole) * (1 / counts[0] + 1 / counts[1]))
    more = (there - elsewhere > ERRORS * error) & (elsewhere < 1)
    more[feature] = False
    usual = np.maximum((1 - elsewhere) * there, 1e-300)
    found: FloatArray = np.where(more, (there - elsewhere) / usual, 0.0)
    return found
