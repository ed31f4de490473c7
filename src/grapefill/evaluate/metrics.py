"""How wrong filled cells are: by how much numbers are off, whether categories are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    BoolArray = npt.NDArray[np.bool_]
    from grapefill.table.arrays import FloatArray

__all__ = ["cell_errors", "constant_errors", "paired_difference", "standard_error"]


def cell_errors(truth: FloatArray, guess: FloatArray, discrete: BoolArray) -> FloatArray:
    """Return the error of every cell: absolute for numbers, 0 or 1 for categories.

    Parameters
    ----------
    truth, guess : ndarray of shape (rows, columns)
        Numbers, and codes of categories. A code that is NaN in `guess` stands for a category that
        the table does not have, and is wrong.
    discrete : ndarray of bool, shape (columns,)
        Which columns are codes of categories.

    Returns
    -------
    ndarray of shape (rows, columns)

    Examples
    --------
    >>> truth, guess = np.array([[1.0, 2.0]]), np.array([[1.5, 0.0]])
    >>> cell_errors(truth, guess, np.array([False, True]))
    array([[0.5, 1. ]])
    """
    errors: FloatArray = np.where(discrete, truth != guess, np.abs(truth - guess))
    return errors


def constant_errors(numbers: FloatArray, discrete: BoolArray) -> FloatArray:
    """Return the mean error of the best constant of every column, the unit of its errors.

    Parameters
    ----------
    numbers : ndarray of shape (rows, columns)
        Numbers, and codes of categories; NaN where a cell is missing.
    discrete : ndarray of bool, shape (columns,)
        Which columns are codes of categories.

    Returns
    -------
    ndarray of shape (columns,)
        The mean distance of numbers from their median, the share of categories that are not the
        most frequent one; 0 for a constant column.

    Examples
    --------
    >>> table = np.array([[1.0, 0.0], [2.0, 1.0], [6.0, 1.0], [np.nan, 1.0]])
    >>> constant_errors(table, np.array([False, True])).round(2)
    array([1.67, 0.25])
    """
    errors = np.zeros(numbers.shape[1])
    for j, column in enumerate(numbers.T):
        known = column[~np.isnan(column)]
        if discrete[j]:
            errors[j] = 1 - np.unique(known, return_counts=True)[1].max() / known.size
        else:
            errors[j] = np.abs(known - np.median(known)).mean()
    return errors


def standard_error(values: FloatArray) -> float | None:
    """Return the standard error of the mean of some repeats, None if there is only one.

    Examples
    --------
    >>> standard_error(np.array([1.0, 3.0])), standard_error(np.array([1.0]))
    (1.0, None)
    """
    if values.size < 2:
        return None
    return float(values.std(ddof=1) / np.sqrt(values.size))


def paired_difference(
    first: FloatArray, second: FloatArray, *, confidence: float = 0.9
) -> tuple[float, float | None, bool]:
    """Compare two methods that were tried on the same holes.

    Parameters
    ----------
    first, second : ndarray of shape (repeats,)
        Errors of the two, repeat by repeat.
    confidence : float
        How sure one must be to tell them apart, by Student's t.

    Returns
    -------
    difference : float
        The mean of ``first - second``.
    error : float or None
        Its standard error, None with one repeat.
    tied : bool
        Whether the difference may be chance. With one repeat, only if there is none.

    Examples
    --------
    >>> paired_difference(np.array([3.0, 4.0, 5.0]), np.array([1.0, 2.1, 2.9]))[2]
    False
    >>> paired_difference(np.array([3.0, 4.0, 5.0]), np.array([1.0, 5.0, 4.5]))[2]
    True
    """
    from scipy.stats import t

    difference = first - second
    mean, error = float(difference.mean()), standard_error(difference)
    if error is None:
        return mean, None, mean == 0
    reach = float(t.ppf((1 + confidence) / 2, difference.size - 1)) * error
    return mean, error, abs(mean) <= reach
