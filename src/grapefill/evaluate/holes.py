"""Holes made on purpose, in a table of any container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import ConfigError, InputError
from grapefill.evaluate.masks import MECHANISMS, check_rate, draw_holes
from grapefill.settings import check_word, draw_seed
from grapefill.table import Kind, Schema, Table
from grapefill.table.kinds import Form

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grapefill.table.arrays import FloatArray

__all__ = ["ampute"]

# What the identifier rules turn into passthrough can go missing like any other column.
_READ_AS = {Form.TEXT: Kind.CATEGORICAL, Form.INTEGER: Kind.ORDINAL}


def ampute(
    X: Any,
    rate: float = 0.3,
    mechanism: str = "mcar",
    *,
    columns: Iterable[Any] | None = None,
    allow_empty_rows: bool = False,
    missing_values: Any = np.nan,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Any:
    """Make holes in a table, for example to see how well they can be filled.

    Parameters
    ----------
    X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
        The table. It may have holes already; they stay.
    rate : float, default=0.3
        Share of the observed cells that go missing in each column that may have holes, on average.
        Fewer do where a column or a row would otherwise lose all of its values.
    mechanism : {"mcar", "mar", "mnar"}, default="mcar"
        Why cells go missing. ``"mcar"``, completely at random: every cell alike. ``"mar"``, at
        random: by the values of other columns, which get no holes. ``"mnar"``, not at random: by
        the value that goes missing itself. Of a column without numbers, the order of its
        categories counts.
    columns : iterable of column labels or None, default=None
        The columns that may have holes, by name, or by position for arrays. None is every column
        that `GrapeImputer` fills; identifiers, for example, are left alone. Under ``"mar"`` the
        holes depend on the columns that are not named; if none is left, some of those named are
        kept for it.
    allow_empty_rows : bool, default=False
        Whether a row may lose all of its values.
    missing_values : int, float, str, np.nan, None or pandas.NA, default=np.nan
        A mark for cells that are missing already, besides NaN, None, NaT, NA and null.
    random_state : int, Generator, RandomState or None, default=None
        Pass an int for the same holes at every call.

    Returns
    -------
    same container as X
        A copy with more holes; lists of rows become an array. Values that stay are the same. Dtypes
        stay too, unless they have no missing cells: in pandas, integers become nullable integers
        (``int64`` to ``Int64``) and booleans nullable booleans; in an array, integers become
        floats, or objects where floats would round them, booleans and texts become objects.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [31, 45, 28, 60], "town": ["Ulm", "Ulm", "Bonn", "Ulm"]})
    >>> ampute(table, 0.5, random_state=0)
        age town
    0  <NA>  Ulm
    1    45  Ulm
    2    28  NaN
    3    60  Ulm
    """
    check_word("mechanism", mechanism, MECHANISMS)
    check_rate(rate)
    table = Table.wrap(X, missing_values=missing_values)
    schema = Schema.infer(table, warn=False)
    if columns is None:
        named = list(schema.features)
        if not named:
            raise InputError("No column can have holes by default. Name some with columns=[...].")
    else:
        named = _named(table, columns)
        schema = _readable(table, schema, named)
    places = sorted({*schema.features, *named})
    numbers = _numbers(table, schema, places, mechanism)
    if len(places) == 1 and rate > 0 and not allow_empty_rows:
        raise ConfigError(
            f"Every hole in {table.labels[places[0]]!r} would leave a row without a value. Allow "
            "it with allow_empty_rows=True."
        )
    mask = draw_holes(
        numbers,
        rate,
        mechanism,
        columns=[places.index(j) for j in named],
        allow_empty_rows=allow_empty_rows,
        seed=draw_seed(random_state),
    )
    return table.emptied({j: np.flatnonzero(mask[:, at]) for at, j in enumerate(places)})


def _named(table: Table, columns: Iterable[Any]) -> list[int]:
    if isinstance(columns, str):
        raise ConfigError(f"columns must be a list of columns. Pass [{columns!r}].")
    named = [table.position(label, "columns") for label in columns]
    if not named:
        raise ConfigError("columns names no column. Pass None for all that can be filled.")
    return named


def _readable(table: Table, schema: Schema, named: Sequence[int]) -> Schema:
    """Return a schema that has the named columns among its features where that is possible."""
    wanted = {}
    for j in named:
        column = schema.columns[j]
        if column.kind is Kind.PASSTHROUGH and column.form in _READ_AS:
            wanted[j if table.names is None else table.names[j]] = _READ_AS[column.form]
    return Schema.infer(table, kinds=wanted, warn=False) if wanted else schema


def _numbers(table: Table, schema: Schema, places: Sequence[int], mechanism: str) -> FloatArray:
    """Return columns as numbers; those that cannot be read only tell where they have a value."""
    encoded = dict(zip(schema.features, schema.encode(table).numbers.T, strict=True))
    for j in places:
        if j in encoded:
            continue
        if mechanism != "mcar" and not schema.columns[j].empty:
            raise InputError(
                f"Column {table.labels[j]!r} ({schema.columns[j].note}) has no order by which "
                f"cells could go missing. Leave it out, or use mechanism='mcar'."
            )
        encoded[j] = np.where(table.missing(j), np.nan, 0.0)
    return np.column_stack([encoded[j] for j in places])
