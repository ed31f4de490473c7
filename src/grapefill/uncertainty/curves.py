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
    from grapefill.table.arrays import FloatArray

# Shifts, relative to the distance of the median from the end.
SHIFTS = 0.02 * 3.0 ** np.arange(-8, 5)
# What the log likelihood gains by a curve that is used, at least, and per cell; how much of that
# shows without the other columns.
LEAST_GAIN, GAIN_PER_CELL, SHOWS = 10.0, 0.2, 0.3
# Share of the far end of a column that is not looked at.
OUTLYING = 0.01
# Inputs of a regression for every row, at most.
INPUTS_PER_ROW = 0.25
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


def choose_curve(observed: FloatArray, scaled: FloatArray, inputs: FloatArray) -> Curve | None:
    """Return the curve on which a column is best regressed on others, if that gains much.

    Parameters
    ----------
    observed : ndarray of shape (cells,)
        The observed numbers of the column.
    scaled : ndarray of shape (rows,)
        Those of some rows.
    inputs : ndarray of shape (rows, inputs)
        The other columns of these, the constant first.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> inputs = np.column_stack([np.ones(500), random.normal(size=500)])
    >>> straight = inputs[:, 1] + random.normal(size=500)
    >>> choose_curve(straight, straight, inputs) is None
    True
    >>> choose_curve(np.exp(straight), np.exp(straight), inputs).sign
    1.0
    """
    if not scaled.size:
        return None
    if inputs.shape[1] > INPUTS_PER_ROW * scaled.size:
        # With so many, a regression fits whatever the scale is.
        inputs = inputs[:, :1]
    choices = []
    for sign in (1.0, -1.0):
        usual = sign * scaled <= _farthest(observed, sign)
        curves, alone = _candidates(observed, sign), _gains_alone(observed, sign)
        # All observed numbers tell about where, the rows with their inputs whether and which.
        if alone.max(initial=0.0) > 0:
            at = int(alone.argmax())
            curves = curves[max(0, at - 1) : at + 2]
        choices.append(_best(curves, scaled[usual], inputs[usual]))
    gain, found = max(choices, key=itemgetter(0))
    return found if gain > max(LEAST_GAIN, GAIN_PER_CELL * scaled.size) else None


def may_be_skew(observed: FloatArray) -> bool:
    """Whether a column may get a curve, as far as it can be seen without the others."""
    if np.unique(observed).size < FEWEST_VALUES:
        return False
    least = SHOWS * max(LEAST_GAIN, GAIN_PER_CELL * observed.size)
    return any(_gains_alone(observed, sign).max(initial=0.0) > least for sign in (1.0, -1.0))


def _farthest(observed: FloatArray, sign: float) -> float:
    """Return up to where values are looked at: a few of them far out make no curve."""
    return float(np.quantile(sign * observed, 1 - OUTLYING))


def _end_and_shifts(observed: FloatArray, sign: float) -> tuple[float, FloatArray]:
    end = sign * float((sign * observed).min())
    shifts = SHIFTS * abs(float(np.median(observed)) - end)
    return end, shifts[shifts > 0].astype(np.float64)


def _candidates(observed: FloatArray, sign: float) -> list[Curve]:
    end, shifts = _end_and_shifts(observed, sign)
    curves = []
    for shift in shifts.tolist():
        logs = np.log(sign * (observed - end) + shift)
        curves.append(Curve(sign, end, shift, float(logs.mean()), float(logs.std())))
    return curves


def _gains_alone(observed: FloatArray, sign: float) -> FloatArray:
    """Return what every candidate gains over a straight scale, without the other columns."""
    end, shifts = _end_and_shifts(observed, sign)
    usual = observed[sign * observed <= _farthest(observed, sign)]
    unit = max(float(np.ptp(usual)), 1e-300)
    straight = -np.log(unit) - 0.5 * np.log(max(float((usual / unit).var()), 1e-300))
    logs = np.log((sign * (usual - end))[:, None] + shifts)
    # The mean is what turns the density of a logarithm into one of the number.
    curved = -logs.mean(axis=0) - 0.5 * np.log(np.maximum(logs.var(axis=0), 1e-300))
    gains: FloatArray = usual.size * (curved - straight)
    return gains


def _best(
    curves: list[Curve], scaled: FloatArray, inputs: FloatArray
) -> tuple[float, Curve | None]:
    """Return what the most probable curve gains over a straight scale, and that curve."""
    unit = max(float(np.ptp(scaled)), 1e-300)
    targets = np.stack([scaled / unit, *(curve.apply(scaled) for curve in curves)], axis=1)
    if inputs.shape[1] > 1:
        left = targets - inputs @ lstsq(inputs, targets, lapack_driver="gelsy")[0]
    else:
        left = targets - targets.mean(axis=0)
    size = np.maximum(np.square(left).mean(axis=0), 1e-12 * targets.var(axis=0) + 1e-300)
    # What turns the density of a target into one of the number.
    middles = targets.mean(axis=0)[1:].tolist()
    slopes = [-np.log(unit)] + [
        -(curve.center + middle * curve.scale) - np.log(curve.scale)
        for curve, middle in zip(curves, middles, strict=True)
    ]
    likely = scaled.size * (np.array(slopes) - 0.5 * np.log(size))
    best = int(np.argmax(likely))
    return float(likely[best] - likely[0]), curves[best - 1] if best else None
