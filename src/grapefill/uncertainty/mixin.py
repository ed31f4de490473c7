"""What an imputer knows about its uncertainty: draws, intervals, distributions, constraints."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from sklearn.utils.validation import check_is_fitted

from grapefill.settings import draw_seed
from grapefill.table.column import Column
from grapefill.table.output import stack_tables
from grapefill.training.fill import Part, predict_holes
from grapefill.uncertainty.cells import Beliefs, Distribution, distributions
from grapefill.uncertainty.constraints import Constraints, decoded_draws
from grapefill.uncertainty.fitted import Uncertainty, Unlearned
from grapefill.uncertainty.shifts import Draw
from grapefill.uncertainty.tables import (
    Interval,
    check_count,
    check_coverage,
    drawn_fills,
    interval_ends,
    interval_sets,
    ordered_sets,
    require_draws,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np

    from grapefill.table import Schema, Table
    from grapefill.table.cells import Fill
    from grapefill.table.encode import Strangers
    from grapefill.training.model import GrapeModel
    from grapefill.uncertainty.tables import Numbers


class UncertaintyMixin:
    """Methods of an imputer beyond its one fill of every cell.

    Of the imputer it needs what is annotated here, `_checked_table` and `_output`.
    """

    graph_from: Literal["fit", "transform"]
    constraints: Mapping[Any, Any] | None
    rules: Sequence[str] | None
    delta: Mapping[Any, float] | None
    schema_: Schema
    model_: GrapeModel | None
    _draws: Uncertainty | Unlearned | None

    if TYPE_CHECKING:

        def _checked_table(self, X: Any) -> Table: ...
        def _output(self, table: Table, fills: dict[int, Fill]) -> Any: ...

    @property
    def uncertainty_(self) -> Uncertainty | None:
        """How missing cells are drawn. Learned at fit of a long table, else when first needed."""
        check_is_fitted(self)
        if isinstance(self._draws, Unlearned):
            assert self.model_ is not None
            self._draws = self._draws.learn(self.model_)
        return self._draws

    def sample(
        self,
        X: Any,
        n_imputations: int = 20,
        *,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        long: bool = False,
    ) -> Any:
        """Draw the missing cells of a table several times, for multiple imputation.

        Every draw is a table that could have been: its cells go along with each other, and differ
        between draws as much as the observed cells leave open. Fit the same model to each and pool
        the results with `grapefill.pool`.

        Numbers may be drawn that are beyond those observed at fit, where nothing says that these
        end at a limit; `transform` and `interval` stay within them.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit, as a rule the one at fit.
        n_imputations : int, default=20
            How many tables to draw. Coefficients are drawn 20 times, and more tables go through
            them again: what is pooled from 100 of them is not more certain than from 20.
        random_state : int, Generator, RandomState or None, default=None
            Pass an int, or a new generator of the same seed, for the same draws at every call.
            They belong to the positions of rows: a row gets the same draws whichever rows follow
            it, and others at another position.
        long : bool, default=False
            Whether to put the tables below each other, with columns ``.imp`` and ``.id`` in front
            that count tables and rows from 1, as R's mice does. Arrays of text or dates become
            arrays of objects then.

        Returns
        -------
        list of tables, or one table
            In the container of ``X``, or in the one that `set_output` asks for.

        Examples
        --------
        >>> import numpy as np
        >>> from grapefill import GrapeImputer
        >>> X = np.random.default_rng(0).normal(size=(60, 1)) + np.zeros((60, 2))
        >>> X[::4, 1] = np.nan
        >>> imputer = GrapeImputer("fast", random_state=0).fit(X)
        >>> draws = imputer.sample(X, 5, random_state=0)
        >>> len(draws), draws[0].shape, imputer.sample(X, 5, random_state=0, long=True).shape
        (5, (60, 2), (300, 4))
        """
        draws = list(self.sample_each(X, n_imputations, random_state=random_state))
        return stack_tables(draws) if long else draws

    def sample_each(
        self,
        X: Any,
        n_imputations: int = 20,
        *,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> Iterator[Any]:
        """Yield the tables of `sample` one after the other, so that one is in memory at a time.

        Parameters
        ----------
        X, n_imputations, random_state
            As in `sample`.

        Yields
        ------
        table
            In the container of ``X``.
        """
        check_is_fitted(self)
        table, count = self._checked_table(X), check_count(n_imputations)
        drawn = self._drawn_fills(table, count, draw_seed(random_state))
        return (self._output(table, fills) for fills in drawn)

    def _drawn_fills(self, table: Table, count: int, seed: int) -> Iterator[dict[int, Fill]]:
        """Yield the cells of one draw after the other, as values of their columns."""
        if self.model_ is None:
            yield from ({} for _ in range(count))
            return
        uncertainty = require_draws(self.uncertainty_)
        parts, finished = self._parts(table), self._finisher(table)
        for number in range(count):
            numbers = drawn_fills(uncertainty, self.schema_, parts, seed=seed, number=number)
            yield finished(numbers, Draw(seed, number))

    def interval(self, X: Any, coverage: float = 0.9) -> Interval:
        """Return intervals that hold the missing cells as often as asked for.

        They are calibrated on observed cells that were held out at fit, column by column
        (conformal prediction). A small table has few of them; then, the first time, one to three
        models like this one are trained with other cells held out, unless there is a
        ``time_limit``.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit.
        coverage : float, default=0.9
            How often the truth is to be inside.

        Returns
        -------
        lower, upper : tables
            In containers as `transform` gives them, the holes filled with the ends of their
            intervals. The pair
            has an attribute ``sets`` with the sets of categories for columns of these. Without an
            order, both tables hold the most probable category.

        Examples
        --------
        >>> import numpy as np
        >>> from grapefill import GrapeImputer
        >>> X = np.random.default_rng(0).normal(size=(60, 1)) + np.zeros((60, 2))
        >>> X[::4, 1] = np.nan
        >>> lower, upper = GrapeImputer("fast", random_state=0).fit(X).interval(X, 0.9)
        >>> bool((lower <= upper).all())
        True
        """
        check_is_fitted(self)
        table, coverage = self._checked_table(X), check_coverage(coverage)
        if self.model_ is None:
            filled = self._output(table, {})
            return Interval(filled, filled, {})
        beliefs, parts = self._beliefs(), self._parts(table)
        low, high = interval_ends(beliefs, parts, coverage)
        names = self._labels(table)
        sets = interval_sets(beliefs, parts, coverage, names)
        sets |= ordered_sets(self.schema_, low, high, names)
        lower, upper = self._finished_ends(table, low, high)
        return Interval(self._output(table, lower), self._output(table, upper), sets)

    def predict_distribution(self, X: Any) -> Distribution:
        """Return what may be in the missing cells, as quantiles and probabilities.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit.

        Returns
        -------
        Distribution
            A dict from the label of a column (its position for arrays) to a `ColumnDistribution`
            with ``rows``, ``quantile(level)``, ``median()``, ``mean()``, ``mode()``,
            ``probability(value)``, and ``chances`` of ``categories``.

        Examples
        --------
        >>> import numpy as np
        >>> from grapefill import GrapeImputer
        >>> X = np.random.default_rng(0).normal(size=(60, 1)) + np.zeros((60, 2))
        >>> X[::4, 1] = np.nan
        >>> column = GrapeImputer("fast", random_state=0).fit(X).predict_distribution(X)[1]
        >>> column.rows[:3].tolist(), column.quantile([0.05, 0.95]).shape
        ([0, 4, 8], (15, 2))
        """
        check_is_fitted(self)
        table = self._checked_table(X)
        parts = [] if self.model_ is None else self._parts(table)
        return (
            distributions(self._beliefs(), parts, self._labels(table)) if parts else Distribution()
        )

    def _parts(self, table: Table, strangers: list[Strangers] | None = None) -> list[Part]:
        """Return the rows of a table that have holes, with what the model says about them."""
        assert self.model_ is not None
        parts = predict_holes(self.model_, table, graph_from=self.graph_from, strangers=strangers)
        return list(parts)

    def _beliefs(self) -> Beliefs:
        assert self.model_ is not None
        return Beliefs(self.model_, self.uncertainty_)

    def _labels(self, table: Table) -> dict[int, Any]:
        return dict(enumerate(range(table.n_columns) if table.names is None else table.names))

    @property
    def _constrained(self) -> bool:
        return any((self.constraints, self.rules, self.delta))

    def _constraints(self, schema: Schema, uncertainty: Uncertainty | None) -> Constraints:
        return Constraints(schema, self.constraints, self.rules, self.delta, uncertainty)

    def _finished(self, table: Table, numbers: Numbers) -> dict[int, Fill]:
        """Return numbers as values of their columns, which obey the constraints."""
        return self._finisher(table)(numbers, None)

    def _finisher(self, table: Table) -> Callable[[Numbers, Draw | None], dict[int, Fill]]:
        """Return what does so with one draw after the other, and warns once for all of them."""
        columns = self.schema_.columns
        if self._constrained:
            encoded = self.schema_.encode(table, warn=False, far=True)
            return partial(self._fitted_constraints().finish, table, encoded)

        def decoded(numbers: Numbers, draw: Draw | None) -> dict[int, Fill]:
            decode = Column.decode if draw is None else decoded_draws
            return {j: (rows, decode(columns[j], values)) for j, (rows, values) in numbers.items()}

        return decoded

    def _finished_ends(
        self, table: Table, lower: Numbers, upper: Numbers
    ) -> tuple[dict[int, Fill], dict[int, Fill]]:
        """Return the ends of intervals as values of their columns."""
        if not self._constrained:
            return self._finished(table, lower), self._finished(table, upper)
        encoded = self.schema_.encode(table, warn=False, far=True)
        return self._fitted_constraints().finish_ends(table, encoded, lower, upper)

    def _fitted_constraints(self) -> Constraints:
        return self._constraints(self.schema_, require_draws(self.uncertainty_))
