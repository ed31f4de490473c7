"""Coefficients and variances of fitted models, and of pairs that stand for one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import InputError
from grapefill.table.text import some_of
from grapefill.uncertainty.linear_models import is_with_data, variances_of

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray


@dataclass(frozen=True)
class Coefficients:
    """Coefficients of one model.

    Parameters
    ----------
    names : tuple of str
        What they are called.
    estimate, variance : ndarray of shape (coefficients,)
        Their estimates, and the variances of these.
    df : float
        Degrees of freedom that are left; infinity if the model does not tell.
    rows : float or None
        How many rows the model read, if it tells.
    """

    names: tuple[str, ...]
    estimate: FloatArray
    variance: FloatArray
    df: float
    rows: float | None

    def in_order_of(self, names: tuple[str, ...]) -> Coefficients | None:
        """Return the same in the order of some names; None if it has others, or one of them twice.

        Examples
        --------
        >>> some = Coefficients(("a", "b"), np.array([1.0, 2.0]), np.ones(2), 9.0, None)
        >>> some.in_order_of(("b", "a")).estimate.tolist()
        [2.0, 1.0]
        """
        if self.names == names:
            return self
        places = {name: at for at, name in enumerate(self.names)}
        if not len(places) == len(self.names) == len(names) or places.keys() != set(names):
            return None
        order = [places[name] for name in names]
        return replace(
            self, names=names, estimate=self.estimate[order], variance=self.variance[order]
        )


def coefficients_of(model: Any) -> Coefficients:
    """Read the coefficients of a fitted model."""
    df, rows = np.inf, None
    if isinstance(model, tuple) and len(model) == 2:
        estimate, variance = model
    elif is_with_data(model):
        estimate, variance, df = variances_of(*model)
        rows = float(len(model[2]))
    elif hasattr(model, "params") and hasattr(model, "bse"):
        estimate, variance = (_by_name(model, each) for each in (model.params, model.bse**2))
        df, count = float(getattr(model, "df_resid", np.inf)), getattr(model, "nobs", None)
        rows = float(count) if isinstance(count, Real) and np.isfinite(float(count)) else None
    else:
        raise InputError(
            f"A {type(model).__name__} has no standard errors to pool. Return results of "
            "statsmodels, (model, X, y) with a LinearRegression or LogisticRegression of "
            "scikit-learn, or a pair (estimates, variances)."
        )
    estimate, variance = _flat(estimate), _flat(variance)
    labels = labels_of(estimate)
    named = [labels_of(each) is not None for each in (estimate, variance)]
    if any(isinstance(each, Mapping) for each in (estimate, variance)) and not all(named):
        raise InputError("Only one of estimates and variances has names. Give both by name.")
    values, spread = _numbers_of(estimate), in_order(variance, labels)
    if labels is None:
        labels = [f"x{k}" for k in range(values.size)]
    return Coefficients(tuple(map(str, labels)), values, spread, df, rows)


def has_converged(model: Any) -> bool:
    """Whether a model has converged, as far as it says so."""
    told = getattr(model, "mle_retvals", None)
    told = told.get("converged") if isinstance(told, Mapping) else getattr(model, "converged", None)
    return not isinstance(told, bool | np.bool_) or bool(told)


def has_left_out(model: Any) -> bool:
    """Whether a model of statsmodels has left out rows in which something was missing."""
    left_out = getattr(
        getattr(getattr(model, "model", None), "data", None), "missing_row_idx", None
    )
    return left_out is not None and len(left_out) > 0


def _by_name(model: Any, figures: Any) -> Any:
    """Return figures by the names that a model of statsmodels has for them, if it has."""
    names = getattr(getattr(model, "model", None), "exog_names", None)
    if not isinstance(figures, np.ndarray) or figures.ndim != 1 or names is None:
        return figures
    distinct = len(set(names)) == len(names) == figures.size
    return dict(zip(names, figures.tolist(), strict=True)) if distinct else figures


def _flat(given: Any) -> Any:
    """Return a data frame of coefficients, one column for each category, as one by name."""
    if not hasattr(given, "columns") or not hasattr(given, "index"):
        return given
    return {
        f"{row} [{column}]": value
        for column in given.columns
        for row, value in given[column].items()
    }


def labels_of(given: Any) -> list[Any] | None:
    """Return what estimates or variances are called, if they say so."""
    if isinstance(given, Mapping):
        return list(given)
    if hasattr(given, "index") and not callable(given.index):
        return list(given.index)
    return None


def _numbers_of(given: Any) -> FloatArray:
    values = list(given.values()) if isinstance(given, Mapping) else given
    return np.atleast_1d(np.asarray(values, dtype=np.float64))


def in_order(variance: Any, labels: list[Any] | None) -> FloatArray:
    """Return variances in the order of the estimates' labels; without labels, in their own."""
    labels, own = as_names(labels, labels_of(variance))
    spread = _numbers_of(variance)
    if own is None or labels is None or own == labels:
        return spread
    return spread[places_of(own, labels)]


def as_names(
    labels: list[Any] | None, others: list[Any] | None
) -> tuple[list[Any] | None, list[Any] | None]:
    """Return the names of estimates and variances, None for what pandas counts by itself.

    Numbers are names where both have the same ones in another order.
    """
    if labels and others and labels != others and set(labels) == set(others):
        return labels, others
    counted = [names == list(range(len(names or ()))) for names in (labels, others)]
    return (None if counted[0] else labels, None if counted[1] else others)


def places_of(own: list[Any], labels: list[Any]) -> list[int]:
    """Return where variances are, by their own names, in the order of the estimates' names."""
    places = {label: at for at, label in enumerate(own)}
    if places.keys() != set(labels) or not len(places) == len(own) == len(labels):
        raise InputError(
            f"Estimates and variances have different names: {some_of(labels)} and {some_of(own)}. "
            "Give a variance by the name of every estimate."
        )
    return [places[label] for label in labels]
