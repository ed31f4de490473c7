"""Labels, values and errors as text, for messages, summaries and model files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.column import Column

__all__ = ["describe_error", "some_of", "storable_label"]

_SECONDS = {"D": 86_400.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SPANS = (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def describe_error(error: float, column: Column) -> str:
    """Return how far off the values of a column are, in its own unit."""
    if column.categories is not None and column.kind.is_discrete:
        return f"{error:.0%} wrong"
    if column.unit:
        seconds = error * _SECONDS.get(column.unit, 1.0)
        name, length = next((each for each in _SPANS if seconds >= each[1]), _SPANS[-1])
        return f"{_three_digits(seconds / length)} {name}"
    return _three_digits(error)


def _three_digits(number: float) -> str:
    """Return a rounded number, without an exponent as long as it can be read.

    Examples
    --------
    >>> _three_digits(0.01234), _three_digits(12.345), _three_digits(12345), _three_digits(1e12)
    ('0.0123', '12.3', '12,300', '1e+12')
    """
    rounded = float(f"{number:.3g}")
    return f"{rounded:,.0f}" if 1e3 <= abs(rounded) < 1e9 else f"{rounded:.3g}"


def some_of(values: Sequence[Any], most: int = 5) -> str:
    """List the first of many values for a message.

    Examples
    --------
    >>> some_of(["a", "b", "c"], most=2)
    "'a', 'b', ..."
    """
    shown = ", ".join(map(repr, values[:most]))
    return shown + (", ..." if len(values) > most else "")


def storable_label(label: Any) -> Any:
    """Return a column label as JSON can keep it; what JSON has no word for goes by its text.

    Examples
    --------
    >>> storable_label(np.int64(3)), storable_label(("a", 1))
    (3, "('a', 1)")
    """
    if isinstance(label, np.generic):
        label = label.item()
    return label if isinstance(label, str | int) else str(label)
