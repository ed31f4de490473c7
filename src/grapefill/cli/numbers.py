"""Options for columns of numbers: limits of what is filled in, and what is added to it."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any

from grapefill.cli.names import find_column
from grapefill.cli.values import read_delta, read_limits
from grapefill.errors import ConfigError, warn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Limits", "as_value", "find_bounds", "find_deltas"]

Limits = tuple[float | None, float | None]


def find_bounds(given: Sequence[str], frame: Any, kinds: Mapping[str, str]) -> dict[str, Limits]:
    """Return the limits of columns.

    Parameters
    ----------
    given : sequence of str
        What --bounds says.
    frame : pyarrow.Table
        The columns, whose cells may not be known yet.
    kinds : mapping of str to str
        What other options say that columns are.
    """
    bounds: dict[str, Limits] = {}
    for each in given:
        named, ends = read_limits(each)
        name = find_column(named, frame.column_names, "--bounds")
        if name in bounds:
            raise ConfigError(
                f"--bounds names the column {name!r} twice. Give both ends at once, as in "
                f"{name}=0:10."
            )
        bounds[name] = ends
    for name, ends in bounds.items():
        _require_numbers(frame[name], name, "--bounds")
        _require_room(frame[name], name, ends)
        _warn_of_far_limits(frame[name], name, ends)
        _require_filled(name, kinds, "--bounds")
    return bounds


def find_deltas(given: Sequence[str], frame: Any, kinds: Mapping[str, str]) -> dict[str, float]:
    """Return what is added to columns.

    Parameters
    ----------
    given : sequence of str
        What --delta says.
    frame : pyarrow.Table
        The columns, whose cells may not be known yet.
    kinds : mapping of str to str
        What other options say that columns are.
    """
    found: dict[str, float] = {}
    for each in given:
        named, amount = read_delta(each)
        name = find_column(named, frame.column_names, "--delta")
        if name in found:
            raise ConfigError(f"--delta names the column {name!r} twice. Give it one number.")
        _require_numbers(frame[name], name, "--delta")
        _require_filled(name, kinds, "--delta")
        found[name] = amount
    return found


def as_value(limit: float, column: Any, *, up: bool) -> Any:
    """Return a limit as a value of a column; for integers the next one inside."""
    pa: Any = import_module("pyarrow")
    if not pa.types.is_integer(column.type):
        return pa.scalar(limit, column.type)
    least, most = _range_of(column)
    return pa.scalar(min(max(_whole(limit, column, up=up), least), most), column.type)


def _require_numbers(column: Any, name: str, option: str) -> None:
    """Refuse a column of something else than numbers; one without a value may hold them."""
    types: Any = import_module("pyarrow").types
    numbers = [types.is_integer, types.is_floating, types.is_null]
    if option == "--delta":
        # Limits are compared with floats, which decimals are not.
        numbers.append(types.is_decimal)
    if not any(are_numbers(column.type) for are_numbers in numbers):
        raise ConfigError(
            f"{option} names the column {name!r}, which holds no numbers. Leave it out."
        )


def _require_filled(name: str, kinds: Mapping[str, str], option: str) -> None:
    """Refuse a column that is to stay as it is."""
    if kinds.get(name) == "passthrough":
        raise ConfigError(
            f"{option} and --ignore both name the column {name!r}, which is not filled in then. "
            "Choose one of them."
        )


def _require_room(column: Any, name: str, ends: Limits) -> None:
    """Refuse limits between which there is nothing that a column of integers can hold."""
    pa: Any = import_module("pyarrow")
    if not pa.types.is_integer(column.type):
        return
    low, high = (_whole(end, column, up=up) for end, up in zip(ends, (True, False), strict=True))
    least, most = _range_of(column)
    if max(low, least) > min(high, most):
        raise ConfigError(
            f"--bounds leaves no whole number for the column {name!r}, which holds nothing else. "
            "Widen them."
        )


def _warn_of_far_limits(column: Any, name: str, ends: Limits) -> None:
    """Tell of limits that observed values do not keep."""
    from grapefill.files.changes import find_missing

    pc: Any = import_module("pyarrow.compute")
    missing = find_missing(column)
    if missing.all():
        return
    known = column.filter(~missing)
    seen = pc.min_max(known).as_py()
    low, high = ends
    if low is not None and low > seen["max"]:
        end = low
    elif high is not None and high < seen["min"]:
        end = high
    else:
        # Arrow refuses to compare large integers with floats.
        numbers = known.to_numpy()
        below = 0 if low is None else int((numbers < low).sum())
        above = 0 if high is None else int((numbers > high).sum())
        if below + above:
            are = "is" if below + above == 1 else "are"
            warn(
                f"Of {len(known):,} observed cells of column {name!r}, {below + above:,} {are} "
                f"outside of --bounds: {below:,} below and {above:,} above. The column goes from "
                f"{seen['min']:g} to {seen['max']:g}. Observed cells stay as they are; check them, "
                "or the limits."
            )
        return
    warn(
        f"--bounds leaves out every observed value of column {name!r}, from {seen['min']:g} to "
        f"{seen['max']:g}: all that is filled in will be about {end:g}. Check the limits."
    )


def _range_of(column: Any) -> tuple[int, int]:
    """Return the least and the largest number that a column of integers can hold."""
    import numpy as np

    held = np.iinfo(column.type.to_pandas_dtype())
    return int(held.min), int(held.max)


def _whole(limit: float | None, column: Any, *, up: bool) -> int:
    """Return the next integer inside a limit; without one, the last that a column can hold."""
    if limit is None:
        return _range_of(column)[0 if up else 1]
    return math.ceil(limit) if up else math.floor(limit)
