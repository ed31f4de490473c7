"""Whether a table has the columns of the table at fit.

The phrases of scikit-learn's own validation are kept, since its estimator checks look for
them; ours follow them and say what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grapefill.errors import InputError, SchemaError, warn
from grapefill.table.infer import first_infinity, infinity_message
from grapefill.table.kinds import Form
from grapefill.table.text import some_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.cells import ColumnCells
    from grapefill.table.column import Column
    from grapefill.table.kinds import Storage
    from grapefill.table.table import Table

__all__ = ["are_feature_names", "check_columns", "check_names"]

_SHOWN = 5


def are_feature_names(names: Sequence[Any] | None) -> bool:
    """Whether labels are feature names in scikit-learn's sense: there, and all of them text.

    Examples
    --------
    >>> are_feature_names(("a", "b")), are_feature_names((0, 1)), are_feature_names(None)
    (True, False, False)
    """
    return bool(names) and all(isinstance(name, str) for name in names or ())


def check_names(
    fitted: Sequence[Any] | None, names: Sequence[Any] | None, *, estimator: str
) -> None:
    """Compare the labels with those at fit.

    Raises
    ------
    SchemaError
        For missing, extra or reordered columns.
    """
    was_named, is_named = are_feature_names(fitted), are_feature_names(names)
    if is_named and not was_named:
        warn(f"X has feature names, but {estimator} was fitted without feature names", UserWarning)
    elif was_named and not is_named:
        warn(
            f"X does not have valid feature names, but {estimator} was fitted with feature names",
            UserWarning,
        )
    elif fitted is not None and names is not None and tuple(fitted) != tuple(names):
        raise SchemaError(_difference(fitted, names))


def _difference(fitted: Sequence[Any], names: Sequence[Any]) -> str:
    """List the differences as scikit-learn does."""
    unexpected = sorted(map(str, set(names) - set(fitted)))
    lacking = sorted(map(str, set(fitted) - set(names)))
    message = "The feature names should match those that were passed during fit.\n"
    if unexpected:
        message += "Feature names unseen at fit time:\n" + _bullets(unexpected)
    if lacking:
        message += "Feature names seen at fit time, yet now missing:\n" + _bullets(lacking)
    if not unexpected and not lacking:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message + "Select the columns of the table at fit, in their order."


def _bullets(names: Sequence[str]) -> str:
    lines = [f"- {name}\n" for name in names[:_SHOWN]]
    return "".join(lines) + ("- ...\n" if len(names) > _SHOWN else "")


def check_columns(columns: Sequence[Column], table: Table, *, estimator: str) -> None:
    """Compare number and types of the columns with those at fit.

    Raises
    ------
    SchemaError
        For another number of columns, or one of another type.
    InputError
        For infinities.
    """
    if table.n_columns != len(columns):
        raise SchemaError(
            f"X has {table.n_columns} features, but {estimator} is expecting {len(columns)} "
            "features as input. Pass the columns of the table at fit, in their order."
        )
    for j, column in enumerate(columns):
        if column.imputable:
            _check_column(column, table.cells(j))


def _check_column(column: Column, cells: ColumnCells) -> None:
    """Compare one column with what it was."""
    storage = cells.storage
    if storage.form is Form.DATETIME:
        _check_zone(column, storage)
    if cells.missing.all():
        return
    family = storage.family
    if family != column.family:
        raise SchemaError(
            f"Column {column.name!r} is {storage.dtype} ({family}), but was {column.dtype} "
            f"({column.family}) at fit. Convert it to its type at fit."
        )
    row = first_infinity(cells)
    if row is not None:
        raise InputError(infinity_message(column.name, row))
    if storage.closed and cells.missing.any():
        _check_declared(column, storage.dtype, storage.declared or ())


def _check_zone(column: Column, storage: Storage) -> None:
    """Require times with a time zone, or without one, as at fit. Days have none in any case."""
    if column.zoned is None or column.zoned == storage.zoned or "D" in (column.unit, storage.unit):
        return
    now, advice = (
        ("has a time zone", "Convert it to times without one, in the zone of those at fit.")
        if storage.zoned
        else ("has no time zone", "Say which one its times are in, in text with Z for UTC.")
    )
    raise SchemaError(
        f"Column {column.name!r} {now} ({storage.dtype}), unlike at fit ({column.dtype}). {advice}"
    )


def _check_declared(column: Column, dtype: str, declared: tuple[object, ...]) -> None:
    """Require room for every category that may be filled in."""
    known = set(declared)
    lacking = [value for value in column.categories or () if value not in known]
    if lacking:
        raise SchemaError(
            f"Column {column.name!r} is of a {dtype} dtype without the categories "
            f"{some_of(lacking)}, which were there at fit and may be filled in. Cast it to the "
            "dtype at fit."
        )
