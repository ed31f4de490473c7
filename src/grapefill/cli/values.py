"""Options whose values have parts: times, limits, what is added to a column, settings."""

from __future__ import annotations

import math
import re
from typing import Any

from grapefill.errors import ConfigError

__all__ = ["read_delta", "read_limits", "read_seconds", "read_settings"]

_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


def read_seconds(text: str) -> float:
    """Return the seconds of a time.

    Examples
    --------
    >>> read_seconds("90"), read_seconds("1.5m")
    (90.0, 90.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(s|m|min|h)?\s*", text)
    if match is None or float(match[1]) == 0:
        raise ConfigError("Write it like 90, 90s, 5m or 1h.")
    return float(match[1]) * _UNITS[match[2] or ""]


def read_limits(text: str) -> tuple[str, tuple[float | None, float | None]]:
    """Return a column and its limits.

    Examples
    --------
    >>> read_limits("age=0:120"), read_limits("price=0:")
    (('age', (0.0, 120.0)), ('price', (0.0, None)))
    """
    name, equals, limits = text.rpartition("=")
    lower, colon, upper = limits.partition(":")
    try:
        if not equals or not colon:
            raise ValueError
        low = float(lower) if lower.strip() else None
        high = float(upper) if upper.strip() else None
        if not all(end is None or math.isfinite(end) for end in (low, high)):
            raise ValueError
    except ValueError:
        raise ConfigError(
            f"{text!r} names no limits, which are numbers. Write it like age=0:120, or price=0: "
            "for one limit."
        ) from None
    if low is not None and high is not None and low > high:
        raise ConfigError(f"{text!r} has its lower limit above its upper one.")
    return name, (low, high)


def read_delta(text: str) -> tuple[str, float]:
    """Return a column and what is added to it.

    Examples
    --------
    >>> read_delta("income=-500")
    ('income', -500.0)
    """
    name, equals, amount = text.rpartition("=")
    try:
        if not equals or not math.isfinite(float(amount)):
            raise ValueError
    except ValueError:
        raise ConfigError(f"{text!r} names no number. Write it like income=-500.") from None
    return name, float(amount)


def read_settings(texts: tuple[str, ...]) -> dict[str, Any]:
    """Return settings of a preset.

    Examples
    --------
    >>> read_settings(("max_steps=500", "width=32", "loss=absolute", "dropout=0.1,0.6"))
    {'max_steps': 500, 'width': 32, 'loss': 'absolute', 'dropout': (0.1, 0.6)}
    """
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"{text!r} is no setting. Write it like max_steps=500.")
        parts = [_value(part.strip()) for part in value.split(",")]
        settings[name.strip().replace("-", "_")] = parts[0] if len(parts) == 1 else tuple(parts)
    return settings


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
