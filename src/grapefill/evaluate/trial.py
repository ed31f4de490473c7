"""Known cells are hidden several times, and every method fills them."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import ConfigError, InputError, warn
from grapefill.evaluate.comparison import Comparison, Record, TriedColumn, rank
from grapefill.evaluate.masks import MECHANISMS, check_rate, draw_holes
from grapefill.evaluate.metrics import cell_errors, constant_errors
from grapefill.evaluate.task import Task
from grapefill.settings import check_word, draw_seed
from grapefill.table import Scaling, Schema, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grapefill.evaluate.methods import Method
    from grapefill.table import Kind
    from grapefill.table.arrays import BoolArray

__all__ = ["Step", "compare_methods"]


@dataclass(frozen=True)
class Step:
    """Where a comparison stands: one method is about to fill the table, or all are done.

    Parameters
    ----------
    done, steps : int
        Fillings done, and fillings planned.
    method : str
        The method that comes next; empty at the end.
    repeat : int
        Which repeat it belongs to, from 1.
    seconds, seconds_left : float
        Time since the start, and the estimated time until the end; the latter is NaN until every
        method has been tried once.
    """

    done: int
    steps: int
    method: str
    repeat: int
    seconds: float
    seconds_left: float


def compare_methods(
    X: Any,
    methods: Mapping[str, Method],
    *,
    rate: float,
    repeats: int,
    mechanism: str,
    max_rows: int | None,
    kinds: Mapping[Any, Kind | str] | None,
    missing_values: Any,
    callbacks: Sequence[Callable[[Step], None]],
    random_state: int | np.random.Generator | np.random.RandomState | None,
) -> Comparison:
    """Compare methods on a table; the parameters are described at `grapefill.compare`."""
    check_word("mechanism", mechanism, MECHANISMS)
    check_rate(rate)
    _require_count("repeats", repeats, 1)
    if max_rows is not None:
        _require_count("max_rows", max_rows, 2)
    table = Table.wrap(X, missing_values=missing_values)
    seed = draw_seed(random_state)
    base, schema = _fillable_part(table, kinds, max_rows, seed)
    trial = _Trial(base, schema, methods, rate, mechanism)
    finished = trial.run(_seeds(seed, repeats), callbacks)
    columns = tuple(
        TriedColumn(column.name, column.kind.value, int(hidden))
        for column, hidden in zip(schema.columns, trial.hidden_counts(finished), strict=True)
    )
    return Comparison(
        methods=rank(
            trial.records,
            trial.places[:finished],
            constant=trial.constant,
            discrete=trial.discrete,
            labels=trial.labels,
        ),
        columns=columns,
        rate=float(rate),
        mechanism=mechanism,
        repeats=finished,
        rows=base.n_rows,
        rows_given=table.n_rows,
    )


class _Trial:
    """A table, and what the methods did to it so far."""

    def __init__(
        self,
        base: Table,
        schema: Schema,
        methods: Mapping[str, Method],
        rate: float,
        mechanism: str,
    ) -> None:
        self.base, self.schema, self.methods = base, schema, methods
        self.rate, self.mechanism = rate, mechanism
        self.numbers = schema.encode(base).numbers
        self.labels = [column.name for column in schema.columns]
        self.discrete = np.array([column.kind.is_discrete for column in schema.columns])
        categories = np.flatnonzero(self.discrete).tolist()
        self.scaling = Scaling.fit(self.numbers, "minmax", discrete=categories)
        self.constant = constant_errors(self.scaling.apply(self.numbers), self.discrete)
        self.varying = np.flatnonzero(self.constant > 0)
        if not self.varying.size:
            raise InputError("Every column is constant, so there is nothing to compare.")
        self.records = {name: Record([], []) for name in methods}
        self.places: list[BoolArray] = []

    def run(
        self, seeds: Sequence[tuple[int, int]], callbacks: Sequence[Callable[[Step], None]]
    ) -> int:
        """Try all methods with the holes of all seeds; return the number of repeats finished."""
        clock = _Clock(list(self.methods), len(seeds), callbacks)
        for repeat, (holes_seed, method_seed) in enumerate(seeds, start=1):
            task = self._task(holes_seed)
            try:
                for name, method in self.methods.items():
                    clock.tick(repeat)
                    self._try(name, method, task, method_seed)
            except KeyboardInterrupt:
                if repeat == 1:
                    raise
                warn(f"The comparison was interrupted; it rests on {repeat - 1} repeats.")
                return repeat - 1
        clock.tick(len(seeds))
        return len(seeds)

    def hidden_counts(self, finished: int) -> Any:
        """Return how many cells were hidden in each column, over all finished repeats."""
        return sum(hidden.sum(axis=0) for hidden in self.places[:finished])

    def _task(self, seed: int) -> Task:
        hidden = draw_holes(
            self.numbers, self.rate, self.mechanism, columns=self.varying.tolist(), seed=seed
        )
        if not hidden.any():
            raise ConfigError(
                f"rate={self.rate} hides no cell of this table of {len(hidden)} rows. Raise it."
            )
        self.places.append(hidden)
        native = self.base.emptied({j: np.flatnonzero(hidden[:, j]) for j in range(len(hidden.T))})
        numbers = np.where(hidden, np.nan, self.numbers)
        return Task(native, self.schema, numbers, hidden)

    def _try(self, name: str, method: Method, task: Task, seed: int) -> None:
        record = self.records[name]
        if record.failure:
            return
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                _ignore_convergence()
                filled = method.fill(task, seed)
        except Exception as error:  # a method that fails must not end the comparison
            record.failure = f"{type(error).__name__}: {error}"
            return
        record.seconds.append(time.perf_counter() - start)
        errors = cell_errors(
            self.scaling.apply(self.numbers), self.scaling.apply(filled), self.discrete
        )
        record.errors.append(errors[task.hidden])


class _Clock:
    """Tells callbacks how far the comparison is."""

    def __init__(
        self, methods: Sequence[str], repeats: int, callbacks: Sequence[Callable[[Step], None]]
    ) -> None:
        self.plan = list(methods) * repeats
        self.callbacks = callbacks
        self.started = self.last = time.perf_counter()
        self.took: dict[str, float] = {}
        self.done = -1

    def tick(self, repeat: int) -> None:
        """Tell of the next step."""
        now = time.perf_counter()
        if self.done >= 0:
            self.took[self.plan[self.done]] = now - self.last
        self.last = now
        self.done += 1
        rest = self.plan[self.done :]
        left = float(sum(self.took.get(method, float("nan")) for method in rest))
        name = rest[0] if rest else ""
        step = Step(self.done, len(self.plan), name, repeat, now - self.started, left)
        for callback in self.callbacks:
            callback(step)


def _fillable_part(
    table: Table, kinds: Mapping[Any, Kind | str] | None, max_rows: int | None, seed: int
) -> tuple[Table, Schema]:
    """Return some rows of the columns that can be filled, and what these are."""
    whole = Schema.infer(table, kinds=kinds)
    if max_rows is not None and table.n_rows > max_rows:
        random = np.random.default_rng([seed, 2])
        table = table.take(np.sort(random.choice(table.n_rows, max_rows, replace=False)))
    kept = [j for j in whole.features if not table.missing(j).all()]
    if len(kept) < 2:
        raise InputError(
            "Methods can be compared on two or more columns that can be filled; this table has "
            f"{len(kept)}."
        )
    # A mark for missing cells is not one for every imputer.
    marked = table.emptied({j: np.flatnonzero(table.missing(j)) for j in kept})
    part = Table.wrap(Table.wrap(marked).rebuild({}, kept))
    names = part.names or range(part.n_columns)
    # Some rows may look as if they were of another kind than all of them.
    same = {name: whole.columns[j].kind for name, j in zip(names, kept, strict=True)}
    return part, Schema.infer(part, kinds=same)


def _seeds(seed: int, repeats: int) -> list[tuple[int, int]]:
    drawn = np.random.default_rng([seed, 3]).integers(2**31 - 1, size=(repeats, 2))
    return [(holes, method) for holes, method in drawn.tolist()]


def _require_count(name: str, value: object, least: int) -> None:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]
        raise ConfigError(f"{name} must be a whole number of at least {least}, got {value!r}.")


def _ignore_convergence() -> None:
    from sklearn.exceptions import ConvergenceWarning

    warnings.simplefilter("ignore", ConvergenceWarning)
