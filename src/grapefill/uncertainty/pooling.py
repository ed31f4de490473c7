r"""Rubin's rules: one estimate, with an honest standard error, from several imputations.

With estimates :math:`Q_k` and variances :math:`U_k` from :math:`m` imputed tables,

.. math::

    \bar Q = \tfrac1m \sum Q_k, \quad \bar U = \tfrac1m \sum U_k, \quad
    B = \tfrac1{m-1} \sum (Q_k - \bar Q)^2, \quad T = \bar U + (1 + \tfrac1m) B .

Degrees of freedom are those of Barnard and Rubin (Small-sample degrees of freedom with multiple
imputation, Biometrika 1999), the fraction of missing information is as in R's mice.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from grapefill.errors import InputError, warn
from grapefill.lines import align
from grapefill.uncertainty.coefficients import (
    as_names,
    coefficients_of,
    has_converged,
    has_left_out,
    in_order,
    labels_of,
    places_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from grapefill.table.arrays import FloatArray

# Below that share of variance due to the holes, degrees of freedom would overflow (as in mice).
LEAST_LAMBDA = 1e-4
FEWEST = 2


@dataclass(frozen=True)
class Pooled:
    """Pooled estimates, each with what is needed to judge it.

    Parameters
    ----------
    names : tuple of str
        What the estimates are called.
    estimate : ndarray of shape (estimates,)
        The pooled estimates.
    within, between, total : ndarray of shape (estimates,)
        Variance within imputations, between them, and in all.
    df : ndarray of shape (estimates,)
        Degrees of freedom.
    df_complete : float
        Degrees of freedom that the complete table would have had.
    n_imputations : int
        How many imputations there were.

    Examples
    --------
    >>> result = pool([[1.0, 5.0], [1.2, 5.2], [1.1, 4.9]], [[0.04, 0.09]] * 3)
    >>> result.estimate.round(3).tolist(), result.std_error.round(3).tolist()
    ([1.1, 5.033], [0.231, 0.348])
    """

    names: tuple[str, ...]
    estimate: FloatArray
    within: FloatArray
    between: FloatArray
    total: FloatArray
    df: FloatArray
    df_complete: float
    n_imputations: int

    @property
    def std_error(self) -> FloatArray:
        """Standard errors of the estimates."""
        return np.sqrt(self.total)

    @property
    def statistic(self) -> FloatArray:
        """Estimates in units of their standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.estimate / self.std_error

    @property
    def p_value(self) -> FloatArray:
        """Two-sided p-values of the hypothesis that an estimate is 0."""
        values: FloatArray = 2 * stats.t.sf(np.abs(self.statistic), self.df)
        return values

    @property
    def increase(self) -> FloatArray:
        """Relative increase in variance due to the holes."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return (1 + 1 / self.n_imputations) * self.between / self.within

    @property
    def missing_share(self) -> FloatArray:
        """Share of the variance that is due to the holes, mice's lambda."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return (1 + 1 / self.n_imputations) * self.between / self.total

    @property
    def missing_information(self) -> FloatArray:
        """Fraction of missing information."""
        r = self.increase
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(r), 1.0, (r + 2 / (self.df + 3)) / (r + 1))

    def interval(self, coverage: float = 0.95) -> FloatArray:
        """Return confidence intervals, shape (estimates, 2).

        Parameters
        ----------
        coverage : float
            How often such an interval should hold the true value.
        """
        if not isinstance(coverage, Real) or not 0 < coverage < 1:
            raise InputError(f"coverage must be a number between 0 and 1, got {coverage!r}.")
        half = stats.t.ppf(0.5 + coverage / 2, self.df) * self.std_error
        return np.stack([self.estimate - half, self.estimate + half], axis=1)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return a column per figure, for a data frame: ``pd.DataFrame(result.to_dict())``."""
        low, high = self.interval().T
        figures = {
            "estimate": self.estimate,
            "std_error": self.std_error,
            "statistic": self.statistic,
            "df": self.df,
            "p_value": self.p_value,
            "low": low,
            "high": high,
            "within": self.within,
            "between": self.between,
            "total": self.total,
            "increase": self.increase,
            "missing_share": self.missing_share,
            "missing_information": self.missing_information,
        }
        listed: dict[str, list[Any]] = {"term": list(self.names)}
        return listed | {name: values.tolist() for name, values in figures.items()}

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, width: int | None = None) -> str:
        """Return a table of the estimates.

        Parameters
        ----------
        width : int or None
            How many letters a line may have; names that leave no room for figures get a line of
            their own. None for one line per estimate, however long it is.
        """
        shown = ("estimate", "std_error", "df", "p_value", "low", "high", "missing_information")
        columns = self.to_dict()
        # All of it would not fit into a line of a terminal.
        rows = [["term", *shown[:-1], "missing_info"]]
        for at, name in enumerate(self.names):
            rows.append([name, *(f"{columns[figure][at]:.4g}" for figure in shown)])
        return "\n".join(align(rows, right=range(1, len(rows[0])), fold=width))


class _Pool:
    """Rubin's rules, for arrays (`pool(...)`) and for models (`pool.fit(...)`)."""

    def __call__(
        self,
        estimates: Any,
        variances: Any,
        *,
        df_complete: float = np.inf,
        names: Sequence[str] | None = None,
    ) -> Pooled:
        """Pool estimates that were made on several imputations of one table.

        Parameters
        ----------
        estimates : array of shape (imputations,) or (imputations, estimates)
            What was estimated on every imputed table. A data frame, or a list of dicts or Series
            of pandas, tells the names too.
        variances : array of the same shape
            The squared standard errors; if both have names, they are matched by these.
        df_complete : float, default=inf
            Degrees of freedom that the complete table would have had: its rows less the number of
            coefficients. With infinity, the table counts as large.
        names : sequence of str or None
            What the estimates are called, if they do not tell.

        Returns
        -------
        Pooled

        Examples
        --------
        >>> from grapefill import pool
        >>> float(pool([2.0, 2.2, 1.9], [0.1, 0.12, 0.11], df_complete=97).estimate[0].round(3))
        2.033
        """
        labels, others = as_names(_names_of(estimates), _names_of(variances))
        values, spread = _checked(estimates, labels), _checked(variances, others)
        if labels is not None and others is not None:
            spread = spread[:, places_of(list(map(str, others)), list(map(str, labels)))]
        if values.shape != spread.shape:
            raise InputError(
                f"estimates have shape {values.shape}, variances {spread.shape}. Give one variance "
                "for each estimate."
            )
        if (spread < 0).any():
            raise InputError("A variance is negative. Give squared standard errors.")
        if not isinstance(df_complete, Real) or not df_complete > 0:
            raise InputError(f"df_complete must be a positive number, got {df_complete!r}.")
        if names is None:
            names = labels or others or [f"x{k}" for k in range(values.shape[1])]
        names = list(names)
        if len(names) != values.shape[1]:
            raise InputError(f"There are {len(names)} names for {values.shape[1]} estimates.")
        m = values.shape[0]
        within, between = spread.mean(axis=0), values.var(axis=0, ddof=1)
        total = within + (1 + 1 / m) * between
        return Pooled(
            tuple(map(str, names)),
            values.mean(axis=0),
            within,
            between,
            total,
            _degrees_of_freedom(m, between, total, float(df_complete)),
            float(df_complete),
            m,
        )

    def fit(
        self,
        model_factory: Callable[[Any], Any] | Any,
        imputations: Iterable[Any],
        *,
        df_complete: float | None = None,
    ) -> Pooled:
        """Fit a model to every imputed table and pool its coefficients.

        Parameters
        ----------
        model_factory : callable
            Takes an imputed table and returns a fitted model: results of statsmodels, or anything
            with ``params`` and ``bse`` (standard errors), and ``df_resid`` if it has one. Or
            ``(model, X, y)`` with a LinearRegression or LogisticRegression of scikit-learn, and
            what it was fitted to. Or a pair of estimates and variances, as arrays, or by name as
            dicts or Series of pandas. Coefficients are matched by their names.
        imputations : iterable of tables
            The imputed tables, as `GrapeImputer.sample` gives them; one is in memory at a time.
        df_complete : float or None
            Degrees of freedom that the complete table would have had; None takes ``df_resid`` of
            the models, or infinity.

        Returns
        -------
        Pooled

        Examples
        --------
        >>> tables = [np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.5, 3.0])]
        >>> mean = lambda table: ({"mean": table.mean()}, {"mean": table.var(ddof=1) / table.size})
        >>> pool.fit(mean, tables).names
        ('mean',)
        >>> from sklearn.linear_model import LinearRegression
        >>> tables = [np.random.default_rng(seed).normal(size=(30, 2)) for seed in range(5)]
        >>> def linear(table):
        ...     X, y = table[:, :1], table[:, 1]
        ...     return LinearRegression().fit(X, y), X, y
        >>> pool.fit(linear, tables).names
        ('Intercept', 'x0')
        """
        if not callable(model_factory) or isinstance(model_factory, type):
            raise InputError(
                "model_factory must be a function that takes a table and returns a fitted model, "
                f"got {_word_for(model_factory)}. It comes first, and the tables second."
            )
        if callable(imputations):
            raise InputError(
                "imputations must be several tables, as sample(X) gives them, got "
                f"{_word_for(imputations)}."
            )
        if hasattr(imputations, "columns"):
            raise InputError(
                "imputations must be several tables, as sample(X) gives them, not one long table."
            )
        estimates, variances, names, degrees = [], [], None, []
        rows: list[float | None] = []
        astray: list[int] = []
        holed: list[int] = []
        for number, table in enumerate(imputations, start=1):
            model = model_factory(table)
            found = coefficients_of(model)
            if not has_converged(model):
                astray.append(number)
            if has_left_out(model):
                holed.append(number)
            if names is None:
                names = found.names
            coefficients = found.in_order_of(names)
            if coefficients is None:
                raise InputError(
                    f"The model of imputation {number} has other coefficients than the first: "
                    f"{list(found.names)} instead of {list(names)}. Categories that are "
                    "missing in some imputations make other dummy columns: declare them all."
                )
            rows.append(coefficients.rows)
            estimates.append(coefficients.estimate)
            variances.append(coefficients.variance)
            degrees.append(coefficients.df)
        counts = sorted({count for count in rows if count is not None})
        if holed:
            warn(
                f"The models of {len(holed)} of {len(rows)} imputations left out rows with missing "
                f"cells (first imputation {holed[0]}): what they say is of the others. Give tables "
                "that are filled, as sample(X) does."
            )
        elif len(counts) > 1:
            warn(
                f"The models are of {counts[0]:g} to {counts[-1]:g} rows. If you did not choose "
                "rows by an imputed column, cells are missing in some tables: models leave out "
                "such rows."
            )
        if astray:
            warn(
                f"The models of {len(astray)} of {len(rows)} imputations did not converge (first "
                f"imputation {astray[0]}): their estimates may be anything. A column may tell the "
                "outcome without fail, or be determined by others."
            )
        if df_complete is None:
            df_complete = float(min(degrees, default=np.inf))
        return self(estimates, variances, df_complete=df_complete, names=names)


pool = _Pool()


def _word_for(given: Any) -> str:
    """Return a short word for what was given instead of something else."""
    return given.__name__ if isinstance(given, type) else f"a {type(given).__name__}"


def _names_of(given: Any) -> list[Any] | None:
    """Return the names of a data frame's columns, or of the entries of dicts or Series."""
    if hasattr(given, "columns"):
        # In pyarrow, columns are the cells.
        names = list(getattr(given, "column_names", given.columns))
    elif isinstance(given, list | tuple) and given:
        names = labels_of(given[0]) or []
    else:
        return None
    return names


def _checked(values: Any, labels: list[Any] | None) -> FloatArray:
    """Return estimates or variances as an array of shape (imputations, estimates)."""
    if labels is not None and isinstance(values, list | tuple):
        values = [in_order(each, labels) for each in values]
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Estimates and variances must be numbers, as many from every imputation: {error}."
        ) from error
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"Expected an array of shape (imputations, estimates), got {array.shape}.")
    if array.shape[0] < FEWEST:
        raise InputError(
            f"The spread between imputations needs at least {FEWEST} of them, better 20; there "
            f"{'is 1' if array.shape[0] == 1 else 'are 0'}."
        )
    astray = np.argwhere(~np.isfinite(array))
    if astray.size:
        number, at = astray[0].tolist()
        name = f"x{at}" if labels is None else labels[at]
        raise InputError(
            f"An estimate or a variance is not a finite number: that of {str(name)!r} in "
            f"imputation {number + 1} is {array[number, at]}."
        )
    return array


def _degrees_of_freedom(
    m: int, between: FloatArray, total: FloatArray, df_complete: float
) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.maximum((1 + 1 / m) * between / total, LEAST_LAMBDA)
    share = np.where(np.isfinite(share), share, LEAST_LAMBDA)
    large: FloatArray = (m - 1) / np.square(share)
    if np.isinf(df_complete):
        return large
    observed = (df_complete + 1) / (df_complete + 3) * df_complete * (1 - share)
    result: FloatArray = large * observed / (large + observed)
    return result
