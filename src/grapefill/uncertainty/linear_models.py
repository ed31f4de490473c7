"""Variances of the coefficients of scikit-learn's linear models, which do not tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression

from grapefill.errors import InputError

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray


# Variance of the least certain label, below which classes are separated.
LEAST_OPEN = 1e-3


class Estimated(NamedTuple):
    """Coefficients, their variances, and the degrees of freedom that are left."""

    estimate: dict[str, float]
    variance: dict[str, float]
    df: float


def is_with_data(model: Any) -> bool:
    """Whether it is a model of scikit-learn with the table and the labels it was fitted to."""
    return isinstance(model, tuple) and len(model) == 3 and isinstance(model[0], BaseEstimator)


def variances_of(model: Any, X: Any, y: Any) -> Estimated:
    """Return the coefficients of a fitted model and their variances, by maximum likelihood.

    Parameters
    ----------
    model : LinearRegression or LogisticRegression
        Fitted to ``X`` and ``y``; without a penalty, which would shrink coefficients.
    X : table of numbers
        The inputs.
    y : array
        Numbers, or labels of two classes.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.1, 0.9, 2.1, 2.9])
    >>> found = variances_of(LinearRegression().fit(X, y), X, y)
    >>> {name: round(value, 3) for name, value in found.estimate.items()}, found.df
    ({'Intercept': 0.06, 'x0': 0.96}, 2.0)
    >>> round(found.variance["x0"], 5)
    0.0032
    """
    # What is made of these chooses or shrinks its coefficients.
    if type(model) not in (LinearRegression, LogisticRegression) or not hasattr(model, "coef_"):
        raise InputError(
            f"The variances of the coefficients of a {type(model).__name__} are not known. Return "
            "a fitted LinearRegression or LogisticRegression, or a pair (estimates, variances)."
        )
    if getattr(model, "positive", False):
        raise InputError("Coefficients that are held positive cannot be pooled by Rubin's rules.")
    coefficients = np.asarray(model.coef_, dtype=np.float64)
    try:
        inputs = np.asarray(X, dtype=np.float64)
        if len(inputs) != len(y):
            raise ValueError(f"it has {len(inputs)} rows, and y {len(y)}")
        inputs = inputs.reshape(len(y), -1)
    except (TypeError, ValueError) as error:
        raise InputError(
            "X must be a table of numbers with a row for every entry of y, without text and not "
            f"sparse: {str(error).rstrip('.')}."
        ) from error
    if coefficients.size != inputs.shape[1]:
        raise InputError(
            f"The model has {coefficients.size} coefficients for {inputs.shape[1]} columns. Fit it "
            "to one column of numbers, or to labels of two classes."
        )
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    names = names or [f"x{k}" for k in range(inputs.shape[1])]
    values = coefficients.ravel()
    if model.fit_intercept:
        names, values = ["Intercept", *names], np.append(model.intercept_, values)
        inputs = np.column_stack([np.ones(inputs.shape[0]), inputs])
    df = float(inputs.shape[0] - inputs.shape[1])
    if df <= 0:
        raise InputError(
            f"{inputs.shape[0]} rows are too few for {inputs.shape[1]} coefficients: nothing is "
            "left to tell their variances by."
        )
    if isinstance(model, LinearRegression):
        left = np.asarray(y, dtype=np.float64).ravel() - inputs @ values
        information = inputs.T @ inputs * (df / max(float(left @ left), 1e-300))
    else:
        information = _information(model, inputs, inputs @ values)
    try:
        variance = np.diag(np.linalg.inv(information))
    except np.linalg.LinAlgError as error:
        raise InputError(
            "Some columns of the model determine each other. Leave one out."
        ) from error
    return Estimated(
        dict(zip(names, values.tolist(), strict=True)),
        dict(zip(names, variance.tolist(), strict=True)),
        df,
    )


def _information(model: LogisticRegression, inputs: FloatArray, logits: FloatArray) -> FloatArray:
    """Return what a logistic regression tells about its coefficients."""
    shrunk = np.isfinite(model.C) and getattr(model, "penalty", None) is not None
    if shrunk or model.class_weight is not None:
        raise InputError(
            "The coefficients of this LogisticRegression are changed by its "
            f"{'penalty' if shrunk else 'class_weight'}, so Rubin's rules do not hold. Fit it with "
            f"{'C=np.inf' if shrunk else 'class_weight=None'}."
        )
    open_ = expit(logits) * expit(-logits)
    if open_.max() < LEAST_OPEN:
        raise InputError(
            "The columns of the model tell the classes without fail, so that its coefficients have "
            "no bounds. Leave one out."
        )
    found: FloatArray = inputs.T @ (inputs * open_[:, None])
    return found
