"""Labels and values as text: a few of them for a message, one of them for a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["some_of", "storable_label"]


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
