r"""Skew columns on a curved scale, on which a regression of them is what it is taken to be.

Incomes, prices and concentrations have errors that grow with their size. A regression of such a
column predicts values that there are not, below zero say, and what it leaves over differs from row
to row. On the scale

.. math:: z = \log(\pm (x - x_0) + s),

with :math:`x_0` the end of the column and a shift :math:`s`, errors may be alike. Which scale is
the most probable one is known from a regression on the other columns (Box and Cox: An analysis of
transformations, 1964). The larger the shift, the straighter it is.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.linalg import lstsq

if TYPE_CHECKING:
    from grapefill.table.arrays import BoolArray, FloatArray

# Shifts, relative to the distance of the median from the end.
SHIFTS = 0.02 * 3.0 ** np.arange(5)
# What the log likelihood gains by a curve that is used, at least, and per cell; how much of that
# shows without the other columns.
LEAST_GAIN, GAIN_PER_CELL, SHOWS = 10.0, 0.2, 0.3
# Share of the far end of a column that is not looked at.
OUTLYING = 0.01
# Different values of a column that may get a curve.
FEWEST_VALUES = 30


@dataclass(frozen=True)
class Curve:
    """A curved scale for the scaled numbers of a column.

    Parameters
    ----------
    sign : float
        1 where large values are far apart, -1 where small ones are.
    end : float
        The other end of the column.
    shift : float
        The larger, the straighter.
    center, scale : float
        Of the logarithms.

    Examples
    --------
    >>> curve = Curve(1.0, 0.0, 1.0, 0.0, 1.0)
    >>> curve.apply(np.array([0.0, np.e - 1]))
    array([0., 1.])
    >>> curve.undo(curve.apply(np.array([0.5, 20.0])))
    array([ 0.5, 20. ])
    """

    sign: float
    end: float
    shift: float
    center: float
    scale: float

    def apply(self, scaled: FloatArray) -> FloatArray:
        """Return numbers on the curved scale; those beyond the end are little beyond it there."""
        apart = np.maximum(self.sign * (scaled - self.end) + self.shift, 0.5 * self.shift)
        curved: FloatArray = (np.log(apart) - self.center) / self.scale
        return curved

    def undo(self, curved: FloatArray) -> FloatArray:
        """Turn numbers back; one too large for a float becomes infinite."""
        with np.errstate(over="ignore"):
            apart = np.exp(curved * self.scale + self.center)
        scaled: FloatArray = self.end + self.sign * (apart - self.shift)
        return scaled

    def array(self) -> FloatArray:
        """Return the parameters, for a model file."""
        return np.array(astuple(self))

    @classmethod
    def from_array(cls, parameters: FloatArray) -> Self:
        """Rebuild from `array`; raises ValueError if it does not fit."""
        if parameters.shape != (5,) or not np.isfinite(parameters).all():
            raise ValueError("the curved scale of a column is not made of five numbers")
        curve = cls(*parameters.tolist())
        if abs(curve.sign) != 1 or curve.shift <= 0 or curve.scale <= 0:
            raise ValueError("the curved scale of a column is none")
        return curve


def choose_curve(scaled: FloatArray, inputs: FloatArray) -> Curve | None:
    """Return the curve on which a column is best regressed on others, if that gains much.

    Parameters
    ----------
    scaled : ndarray of shape (rows,)
        The observed numbers of the column.
    inputs : ndarray of shape (rows, inputs)
        The other columns, the constant first.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> inputs = np.column_stack([np.ones(500), random.normal(size=500)])
    >>> straight = inputs[:, 1] + random.normal(size=500)
    >>> choose_curve(straight, inputs) is None, choose_curve(np.exp(straight), inputs).sign
    (True, 1.0)
    """
    least = max(LEAST_GAIN, GAIN_PER_CELL * scaled.size)
    choices = []
    for sign in (1.0, -1.0):
        usual = _usual(scaled, sign)
        choices.append(_best(_candidates(scaled, sign), scaled[usual], inputs[usual]))
    gain, found = max(choices, key=itemgetter(0))
    return found if gain > least else None


def may_be_skew(scaled: FloatArray) -> bool:
    """Whether a column may get a curve, as far as it can be seen without the others."""
    if np.unique(scaled).size < FEWEST_VALUES:
        return False
    least = SHOWS * max(LEAST_GAIN, GAIN_PER_CELL * scaled.size)
    for sign in (1.0, -1.0):
        some = scaled[_usual(scaled, sign)]
        if _best(_candidates(scaled, sign), some, np.ones((some.size, 1)))[0] > least:
            return True
    return False


def _usual(scaled: FloatArray, sign: float) -> BoolArray:
    """Return which values are not far out: a few of these make no curve."""
    usual: BoolArray = sign * scaled <= np.quantile(sign * scaled, 1 - OUTLYING)
    return usual


def _candidates(scaled: FloatArray, sign: float) -> list[Curve]:
    end = sign * float((sign * scaled).min())
    curves, shifts = [], SHIFTS * abs(float(np.median(scaled)) - end)
    for shift in shifts[shifts > 0].tolist():
        logs = np.log(sign * (scaled - end) + shift)
        curves.append(Curve(sign, end, shift, float(logs.mean()), float(logs.std())))
    return curves


def _best(
    curves: list[Curve], scaled: FloatArray, inputs: FloatArray
) -> tuple[float, Curve | None]:
    """Return what the most probable curve gains over a straight scale, and that curve."""
    targets = np.stack([scaled, *(curve.apply(scaled) for curve in curves)], axis=1)
    if inputs.shape[1] > 1:
        left = targets - inputs @ lstsq(inputs, targets, lapack_driver="gelsy")[0]
    else:
        left = targets - targets.mean(axis=0)
    size = np.maximum(np.square(left).mean(axis=0), 1e-12 * targets.var(axis=0) + 1e-300)
    # What turns the density of a curved number into one of the number.
    slopes = [0.0, *(-curve.center - np.log(curve.scale) for curve in curves)]
    likely = scaled.size * (np.array(slopes) - 0.5 * np.log(size))
    best = int(np.argmax(likely))
    return float(likely[best] - likely[0]), curves[best - 1] if best else None
