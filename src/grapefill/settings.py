"""Checks of settings: fields of config dataclasses, words, and sources of randomness."""

from __future__ import annotations

import difflib
import sys
from dataclasses import fields
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from grapefill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from _typeshed import DataclassInstance

__all__ = ["check_fields", "check_word", "closest_word", "draw_seed"]

# From there on a word is another one misspelt; "nope" and "income" have 0.6 in common.
ALIKE = 0.65

_NOUNS: dict[Any, tuple[str, str]] = {
    int: ("a whole number", "whole numbers"),
    float: ("a finite number", "finite numbers"),
    bool: ("True or False", "booleans"),
    str: ("text", "texts"),
    NoneType: ("None", "None"),
}


def check_fields(config: DataclassInstance) -> None:
    """Raise when a field of a dataclass does not hold what its type hint says.

    Parameters
    ----------
    config : dataclass instance
        Its hints may be ``int``, ``float``, ``bool``, ``str``, a ``Literal`` of words, a class, a
        tuple of such types, and any of these or None. A whole number is a float too, but neither
        True nor 8.0 is a whole number; a float must be finite.

    Raises
    ------
    ConfigError
        For the first field that does not fit.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int
    >>> check_fields(Size(8))
    >>> check_fields(Size(8.0))
    Traceback (most recent call last):
    grapefill.errors.ConfigError: Size.width must be a whole number, got 8.0.
    """
    hints = _hints(type(config))
    for field in fields(config):
        value, hint = getattr(config, field.name), hints[field.name]
        if not _fits(value, hint):
            # A scalar of numpy looks like a number in every way but its type.
            advice = " Call its item() for a number of Python." if hasattr(value, "item") else ""
            raise ConfigError(
                f"{type(config).__name__}.{field.name} must be {_describe(hint)}, got {value!r}."
                + advice
            )


def check_word(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise when a setting is not one of the allowed words.

    Examples
    --------
    >>> check_word("color", "blu", ("red", "blue"))
    Traceback (most recent call last):
    grapefill.errors.ConfigError: color must be one of 'red', 'blue', got 'blu'.
    """
    # An array compares by element, so it must not get as far as `in`.
    if not isinstance(value, str) or value not in allowed:
        raise ConfigError(f"{name} must be {_one_of(allowed)}, got {value!r}.")


def _hints(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    for name, hint in hints.items():
        if not _is_known(hint):
            raise TypeError(f"{cls.__name__}.{name} has the hint {hint}, which cannot be checked.")
    return hints


def _is_known(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return all(isinstance(word, str) for word in get_args(hint))
    if origin in (tuple, Union, UnionType):
        return all(_is_known(part) for part in get_args(hint))
    return isinstance(hint, type) and origin is None and hint is not Any


def _fits(value: object, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        return (
            isinstance(value, tuple)
            and len(value) == len(parts)
            and all(_fits(item, part) for item, part in zip(value, parts, strict=True))
        )
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        # Python compares an integer of any size with a float exactly, and NaN is never smaller.
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return abs(value) <= sys.float_info.max
    return isinstance(value, hint)


def _describe(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _one_of(parts)
    if origin in (Union, UnionType):
        return " or ".join(_describe(part) for part in parts)
    if origin is tuple:
        if len(set(parts)) == 1 and parts[0] in _NOUNS:
            return f"a tuple of {len(parts)} {_NOUNS[parts[0]][1]}"
        return "a tuple of " + ", ".join(_describe(part) for part in parts)
    return _NOUNS[hint][0] if hint in _NOUNS else f"an instance of {hint.__name__}"


def _one_of(words: tuple[str, ...]) -> str:
    return "one of " + ", ".join(map(repr, words))


def closest_word(word: str, words: Iterable[str]) -> str | None:
    """Return the word that was probably meant, in other case or misspelt; None if none is like it.

    Examples
    --------
    >>> closest_word("incmoe", ["age", "income"]), closest_word("nope", ["age", "income"])
    ('income', None)
    >>> closest_word("AGE", ["page", "Age"])
    'Age'
    """
    lowered = {each.casefold(): each for each in reversed(list(words))}
    if word.casefold() in lowered:
        return lowered[word.casefold()]
    close = difflib.get_close_matches(word.casefold(), list(lowered), 1, ALIKE)
    return lowered[close[0]] if close else None


def draw_seed(random_state: int | np.random.Generator | np.random.RandomState | None) -> int:
    """Draw a seed from a source of randomness.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        A whole number gives the same seed every time; generators of numpy go on, so that the next
        seed is another one; None takes what numpy draws from.

    Raises
    ------
    ConfigError
        If it is none of these.

    Examples
    --------
    >>> import numpy as np
    >>> draw_seed(3) == draw_seed(3)
    True
    >>> random = np.random.default_rng(3)
    >>> seeds = draw_seed(random), draw_seed(random)
    >>> seeds[0] == draw_seed(np.random.default_rng(3)), seeds[0] == seeds[1]
    (True, False)
    """
    import numpy as np
    from sklearn.utils import check_random_state

    most = 2**31 - 1
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(most))
    try:
        return int(check_random_state(random_state).randint(most))
    except ValueError as error:
        raise ConfigError(
            "random_state must be a whole number from 0 to 4294967295, a Generator or RandomState "
            f"of numpy, or None, got {random_state!r}."
        ) from error
