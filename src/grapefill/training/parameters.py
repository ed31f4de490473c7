"""The parameters of an estimator as a model file can hold them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import torch

from grapefill.table import Kind
from grapefill.table.marks import read_mark
from grapefill.table.text import storable_label
from grapefill.training.config import Preset

T = TypeVar("T")


def starting(named: Mapping[str, T], prefix: str) -> dict[str, T]:
    """Return what has a name that starts with a prefix, by the rest of its name.

    Examples
    --------
    >>> starting({"best.a": 1, "best.b": 2, "last.a": 3}, "best.")
    {'a': 1, 'b': 2}
    """
    return {
        name.removeprefix(prefix): value for name, value in named.items() if name.startswith(prefix)
    }


def to_plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as plain JSON values.

    A `random_state` that is not a whole number has no place in a file and becomes None.

    Examples
    --------
    >>> to_plain({"kinds": {0: Kind.ORDINAL}, "missing_values": np.int64(-1)})
    {'kinds': [[0, 'ordinal']], 'missing_values': -1}
    """
    return {name: _storable(name, value) for name, value in parameters.items()}


def from_plain(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Undo `to_plain`.

    Examples
    --------
    >>> from_plain({"kinds": [[0, "ordinal"]], "width": 3})
    {'kinds': {0: 'ordinal'}, 'width': 3}
    """
    parameters = dict(stored)
    if isinstance(parameters.get("preset"), dict):
        parameters["preset"] = Preset.from_dict(parameters["preset"])
    for name in ("kinds", "constraints", "delta", "class_weight"):
        # A word such as "balanced" is no list of pairs.
        if not isinstance(parameters.get(name), str | None):
            parameters[name] = dict(parameters[name])
    if parameters.get("settings") is not None:
        parameters["settings"] = plain_settings(parameters["settings"])
    return parameters


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with Python's numbers for numpy's and tuples for lists.

    A search over a grid gives the former, a file of settings the latter.

    Examples
    --------
    >>> plain_settings({"width": np.int64(8), "dropout": [0.1, 0.2]})
    {'width': 8, 'dropout': (0.1, 0.2)}
    """
    return {
        name: tuple(map(_scalar, value)) if isinstance(value, list | tuple) else _scalar(value)
        for name, value in settings.items()
    }


def _storable(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "missing_values":
        mark = read_mark(value)
        # NA and NaT have no word in JSON, and count as missing whatever the mark is.
        return math.nan if mark is None else mark
    if name == "kinds":
        # Pairs, since JSON would turn the position 0 into the name "0".
        return [[storable_label(label), str(Kind(kind))] for label, kind in value.items()]
    if name in ("constraints", "delta"):
        return [[storable_label(label), _plain(given)] for label, given in value.items()]
    if name == "class_weight" and isinstance(value, Mapping):
        return [[_class(label), _scalar(weight)] for label, weight in value.items()]
    if name == "rules":
        return list(value)
    if name == "settings":
        return plain_settings(value)
    if name == "random_state":
        return int(value) if isinstance(value, numbers.Integral) else None
    if isinstance(value, Preset):
        return value.to_dict()
    return str(value) if isinstance(value, torch.device) else _scalar(value)


def _plain(given: Any) -> Any:
    """Return what is wanted of one column: a word, a number, or a dict of numbers and lists."""
    if not isinstance(given, Mapping):
        return _scalar(given)
    return {
        key: _scalar(value)
        if isinstance(value, str) or not isinstance(value, Iterable)
        else [_scalar(item) for item in value]
        for key, value in given.items()
    }


def _class(label: Any) -> Any:
    """Return a class as JSON can keep it, and as the labels of a model file keep it."""
    label = _scalar(label)
    return label if isinstance(label, str | bool | int | float) else str(label)


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
