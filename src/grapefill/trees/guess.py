"""What is believed about the cells of some rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from grapefill.table.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Guess:
    """A guess for every cell of some rows.

    Parameters
    ----------
    value : ndarray of shape (rows, features)
        A number, in the units of the encoded table, or the code of the most probable category.
    chances : dict of int to ndarray of shape (rows, categories)
        For every discrete feature, the probabilities of its categories.
    plain : ndarray of shape (rows, features) or None
        For numbers that trees voted on, the mean of all votes; elsewhere the same as ``value``.
    spread : ndarray of shape (rows, features) or None
        For numbers that trees voted on, half the width of the middle half of the votes; NaN
        elsewhere.
    """

    value: npt.NDArray[np.float64]
    chances: dict[int, npt.NDArray[np.float64]]
    plain: npt.NDArray[np.float64] | None = None
    spread: npt.NDArray[np.float64] | None = None

    def take(self, rows: IntArray | slice) -> Guess:
        """Return the guess for some of the rows."""
        return Guess(
            self.value[rows],
            {j: each[rows] for j, each in self.chances.items()},
            None if self.plain is None else self.plain[rows],
            None if self.spread is None else self.spread[rows],
        )


def sharpen(chances: FloatArray, power: float) -> FloatArray:
    """Return probabilities that are raised to a power, rows summing to 1 again.

    The order of the categories stays. Below 1 they come closer to each other, above 1 the largest
    gains (Guo, Pleiss, Sun, Weinberger: On calibration of modern neural networks, 2017).

    Examples
    --------
    >>> import numpy as np
    >>> sharpen(np.array([[0.2, 0.8]]), 2.0).round(3)
    array([[0.059, 0.941]])
    """
    # Relative to the largest, so that a row never vanishes.
    raised = (chances / chances.max(axis=1, keepdims=True)) ** power
    sharpened: FloatArray = raised / raised.sum(axis=1, keepdims=True)
    return sharpened
