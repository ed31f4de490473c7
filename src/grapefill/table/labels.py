"""Labels: what is to be predicted, from any container, some of it not known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import narwhals.dependencies as libraries
import numpy as np
from sklearn.exceptions import DataConversionWarning

from grapefill.errors import InputError, warn
from grapefill.table.infer import is_free_text
from grapefill.table.kinds import Form, Kind
from grapefill.table.schema import Schema
from grapefill.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grapefill.table.arrays import Array, FloatArray

__all__ = ["Labels"]

Task = Literal["regression", "classification"]

NUMERIC = (Form.INTEGER, Form.FLOAT, Form.DECIMAL)


@dataclass(frozen=True)
class Labels:
    """What `fit` learns about the labels.

    Parameters
    ----------
    schema : Schema
        The labels as columns: one of categories, or one or more of numbers.
    task : {"regression", "classification"}
        What is predicted.
    flat : bool
        Whether labels came as one column without a second dimension, and leave so.

    Examples
    --------
    >>> labels, numbers = Labels.learn(["yes", None, "no"], task="classification", n_rows=3)
    >>> labels.classes.tolist(), numbers.tolist()
    (['no', 'yes'], [[1.0], [nan], [0.0]])
    """

    schema: Schema
    task: Task
    flat: bool

    @classmethod
    def learn(cls, y: Any, *, task: Task, n_rows: int) -> tuple[Self, FloatArray]:
        """Read labels; those that are NaN, None, NA or null are not known.

        Parameters
        ----------
        y : array, list, or Series, DataFrame or column of pandas, polars or pyarrow
            One label for each row; for regression there may be several columns.
        task : {"regression", "classification"}
            What is to be predicted.
        n_rows : int
            Rows of the table that they belong to.

        Returns
        -------
        Labels
            What was learned.
        ndarray of shape (rows, labels)
            Numbers, or positions among the classes; NaN where a label is not known.
        """
        table, flat = _as_table(y)
        _check_rows(table, n_rows)
        if task == "classification" and table.n_columns > 1:
            raise InputError(
                f"y has {table.n_columns} columns. Bad input shape {(n_rows, table.n_columns)}: "
                "classes are predicted one column at a time, so fit a classifier for each."
            )
        _check_values(table, task)
        schema = _learn_schema(table, task)
        numbers = schema.encode(table).numbers
        if task == "classification":
            seen = np.unique(numbers[~np.isnan(numbers)])
            if seen.size == 1:
                only = schema.columns[0].decode(seen).tolist()[0]
                raise InputError(
                    f"All known labels in y are of one class, {only!r}: there is nothing to tell "
                    "apart. A classifier needs at least two classes."
                )
            known = int(np.count_nonzero(~np.isnan(numbers)))
            if table.cells(0).storage.form is Form.TEXT and is_free_text(known, seen.size):
                raise InputError(
                    f"y holds {seen.size:,} different texts in {known:,} rows, like free text or "
                    "an identifier: hardly any could be learned from other rows. Group them into "
                    "fewer classes, or convert them if they are numbers written as text."
                )
            if not flat:
                warn(
                    "A column-vector y was passed when a 1d array was expected. Please change the "
                    "shape of y to (n_samples,), for example using ravel().",
                    DataConversionWarning,
                )
            flat = True
        return cls(schema, task, flat), numbers

    def encode(self, y: Any, *, n_rows: int) -> FloatArray:
        """Return further labels as numbers; a class that was not there at fit counts as missing."""
        table, _ = _as_table(y)
        _check_rows(table, n_rows)
        expected = len(self.schema.columns)
        if table.n_columns != expected:
            raise InputError(
                f"y has {table.n_columns} columns, at fit it had {expected}. Pass the same labels."
            )
        _check_values(table, self.task, some_known=False)
        return self.schema.encode(table).numbers

    @property
    def n_categories(self) -> tuple[int, ...]:
        """For every label, 0 if it is a number, or how many classes it has."""
        if self.task == "regression":
            return (0,) * len(self.schema.columns)
        return (self.classes.size,)

    @property
    def classes(self) -> Array:
        """The classes, sorted."""
        column = self.schema.columns[0]
        assert column.categories is not None
        return column.decode(np.arange(len(column.categories), dtype=np.float64))

    def numbers(self, values: FloatArray) -> FloatArray:
        """Return predicted numbers as labels, in the shape that labels had."""
        origin = np.array([column.origin for column in self.schema.columns], dtype=np.float64)
        values = values + origin
        return values[:, 0] if self.flat else values

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"schema": self.schema.to_dict(), "task": self.task, "flat": self.flat}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Rebuild labels from `to_dict`."""
        return cls(Schema.from_dict(stored["schema"]), stored["task"], bool(stored["flat"]))


def _as_table(y: Any) -> tuple[Table, bool]:
    """Return labels as a table, and whether they had one dimension."""
    if y is None:
        raise InputError(
            "fit requires y to be passed, but the target y is None. Pass the labels as y."
        )
    if libraries.is_pandas_series(y):
        return Table.wrap(y.to_frame("y")), True
    if libraries.is_polars_series(y):
        return Table.wrap(y.alias("y").to_frame()), True
    arrow = libraries.get_pyarrow()
    if arrow is not None and isinstance(y, arrow.Array | arrow.ChunkedArray):
        return Table.wrap(arrow.table({"y": y})), True
    if hasattr(y, "columns") or hasattr(y, "tocsr"):
        return Table.wrap(y), False
    array = _as_array(y)
    if array.ndim == 1:
        return Table.wrap(array.reshape(-1, 1)), True
    if array.ndim != 2:
        raise InputError(
            f"y should be a 1d array, got an array of shape {array.shape} instead. Pass one label "
            "for each row."
        )
    return Table.wrap(array), False


def _as_array(y: Any) -> Array:
    if isinstance(y, np.ma.MaskedArray):
        raise InputError(
            "Masked arrays are not read. Pass y.astype(float).filled(np.nan), so that masked "
            "labels are missing."
        )
    try:
        array = np.asarray(y)
    except ValueError as error:
        raise InputError(f"y does not make an array: {error}. Give one label per row.") from error
    if isinstance(y, list | tuple) and array.dtype.kind in "US":
        # Beside text, numpy would turn None into text too.
        objects = np.array(y, dtype=object)
        return array if all(isinstance(cell, str) for cell in objects.flat) else objects
    return array


def _check_rows(table: Table, n_rows: int) -> None:
    if table.n_rows != n_rows:
        raise InputError(
            f"X has {n_rows:,} rows, y has {table.n_rows:,} labels. Found input variables with "
            "inconsistent numbers of samples: give one label for each row, and leave it missing "
            "where it is not known."
        )


def _check_values(table: Table, task: Task, *, some_known: bool = True) -> None:
    """Refuse labels that cannot be learned from."""
    several = table.n_columns > 1
    for j in range(table.n_columns):
        of = f" in column {table.labels[j]!r}" if several else ""
        cells = table.cells(j)
        if cells.missing.all() and not some_known:
            continue
        if cells.missing.all():
            raise InputError(
                f"All labels in y are missing{of}: there is nothing to learn from. Give the "
                "labels of some rows."
            )
        form = cells.storage.form
        if form not in (*NUMERIC, Form.BOOLEAN) and task == "regression":
            raise InputError(
                f"y holds {cells.storage.dtype} values{of}, a regressor predicts numbers. Convert "
                "them, or use GrapeClassifier to predict classes."
            )
        if form not in (*NUMERIC, Form.BOOLEAN, Form.TEXT, Form.CATEGORY):
            raise InputError(
                f"Unknown label type: y holds {cells.storage.dtype} values. Pass text, integers or "
                "booleans as classes."
            )
        if form in (Form.FLOAT, Form.DECIMAL):
            _check_floats(table, j, task)


def _check_floats(table: Table, j: int, task: Task) -> None:
    known = np.flatnonzero(~table.missing(j))
    numbers = table.cells(j).numbers()[known]
    infinite = known[np.isinf(numbers)]
    if infinite.size:
        raise InputError(
            f"Input y contains infinity: the label of row {infinite[0]} is. Leave it missing where "
            "it is not known."
        )
    fractions = known[numbers != np.floor(numbers)]
    if task == "classification" and fractions.size:
        row = fractions[0]
        raise InputError(
            f"Unknown label type: continuous. The label of row {row} is "
            f"{table.cells(j).numbers()[row]:g}, which is no class. Use GrapeRegressor to predict "
            "numbers, or pass the classes as text."
        )


def _learn_schema(table: Table, task: Task) -> Schema:
    keys = range(table.n_columns) if table.names is None else table.names
    kinds = {key: _kind(table.cells(j).storage.form, task) for j, key in enumerate(keys)}
    schema = Schema.infer(table, kinds=kinds)
    if task == "regression":
        return schema.with_ends(table, what="labels")
    column = schema.columns[0]
    assert column.categories is not None
    try:
        classes = tuple(sorted(column.categories))
    except TypeError:
        classes = column.categories
    return replace(schema, columns=(replace(column, categories=classes),))


def _kind(form: Form, task: Task) -> Kind:
    if form is Form.BOOLEAN:
        return Kind.BOOLEAN
    return Kind.CONTINUOUS if task == "regression" else Kind.CATEGORICAL
