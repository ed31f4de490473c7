"""Whether settings of a wrong type or an impossible value are named before they do harm."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pytest

from grapefill.errors import ConfigError
from grapefill.settings import check_fields, check_word, draw_seed

Shape = Literal["round", "square"]


@dataclass(frozen=True)
class Inner:
    depth: int = 1


@dataclass(frozen=True)
class Everything:
    count: int = 3
    rate: float = 0.5
    flag: bool = True
    name: str = "a"
    shape: Shape = "round"
    limit: int | None = None
    seconds: float | None = None
    style: Literal["bold", "thin"] | None = None
    span: tuple[float, float] = (0.1, 0.6)
    pair: tuple[int, str] = (1, "a")
    inner: Inner = Inner()


def test_the_defaults_fit():
    assert check_fields(Everything()) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", -(10**30)),
        ("rate", 1),
        ("rate", -1e308),
        ("rate", np.float64(0.5)),
        ("flag", False),
        ("name", ""),
        ("shape", "square"),
        ("limit", 3),
        ("seconds", 2),
        ("style", "thin"),
        ("span", (0, 1)),
        ("inner", Inner(2)),
    ],
)
def test_values_that_fit(name, value):
    assert check_fields(replace(Everything(), **{name: value})) is None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("count", 8.0, "a whole number, got 8.0."),
        ("count", True, "a whole number, got True."),
        ("count", "8", "a whole number, got '8'."),
        ("count", None, "a whole number, got None."),
        ("rate", math.nan, "a finite number, got nan."),
        ("rate", math.inf, "a finite number, got inf."),
        ("rate", -math.inf, "a finite number, got -inf."),
        ("rate", 10**400, "a finite number, got 1000"),
        ("rate", False, "a finite number, got False."),
        ("rate", "0.5", "a finite number, got '0.5'."),
        ("rate", 1j, "a finite number, got 1j."),
        ("flag", 1, "True or False, got 1."),
        ("flag", "yes", "True or False, got 'yes'."),
        ("flag", None, "True or False, got None."),
        ("name", b"a", "text, got b'a'."),
        ("shape", "oval", "one of 'round', 'square', got 'oval'."),
        ("shape", ["round"], "one of 'round', 'square', got ['round']."),
        ("shape", None, "one of 'round', 'square', got None."),
        ("limit", 3.0, "a whole number or None, got 3.0."),
        ("limit", False, "a whole number or None, got False."),
        ("seconds", math.nan, "a finite number or None, got nan."),
        ("style", "wide", "one of 'bold', 'thin' or None, got 'wide'."),
        ("span", 0.3, "a tuple of 2 finite numbers, got 0.3."),
        ("span", (0.3,), "a tuple of 2 finite numbers, got (0.3,)."),
        ("span", (0.1, 0.2, 0.3), "a tuple of 2 finite numbers, got (0.1, 0.2, 0.3)."),
        ("span", (0.1, math.nan), "a tuple of 2 finite numbers, got (0.1, nan)."),
        ("span", [0.1, 0.2], "a tuple of 2 finite numbers, got [0.1, 0.2]."),
        ("pair", (1, 2), "a tuple of a whole number, text, got (1, 2)."),
        ("inner", {"depth": 1}, "an instance of Inner, got {'depth': 1}."),
    ],
)
def test_values_that_do_not(name, value, expected):
    message = re.escape(f"Everything.{name} must be {expected}")
    with pytest.raises(ConfigError, match=f"^{message}"):
        check_fields(replace(Everything(), **{name: value}))


@pytest.mark.parametrize(
    ("name", "value"), [("count", np.int64(8)), ("rate", np.float32(8)), ("flag", np.bool_(True))]
)
def test_numbers_of_numpy_come_with_advice(name, value):
    with pytest.raises(ConfigError, match=r"Call its item\(\) for a number of Python"):
        check_fields(replace(Everything(), **{name: value}))


def test_an_array_is_no_word():
    with pytest.raises(ConfigError, match="shape must be one of"):
        check_fields(replace(Everything(), shape=np.array(["round", "square"])))
    with pytest.raises(ConfigError, match="shape must be one of"):
        check_word("shape", np.array(["round", "square"]), ("round", "square"))


def test_words():
    check_word("color", "red", ("red", "blue"))
    with pytest.raises(ConfigError, match=r"^color must be one of 'red', 'blue', got 'green'\.$"):
        check_word("color", "green", ("red", "blue"))


def test_the_first_wrong_field_is_named():
    with pytest.raises(ConfigError, match=r"Everything\.count"):
        check_fields(Everything(count=1.5, name=3))


def test_inherited_fields_are_checked():
    @dataclass(frozen=True)
    class More(Inner):
        flag: bool = True

    with pytest.raises(ConfigError, match=r"More\.depth must be a whole number"):
        check_fields(More(depth=1.5))


@dataclass
class Odd:
    anything: Any = None


@dataclass
class Listed:
    numbers: list[int] = field(default_factory=list)


@dataclass
class Levels:
    level: Literal[1, 2] = 1


@pytest.mark.parametrize("config", [Odd(), Listed(), Levels()])
def test_a_hint_it_does_not_know_is_a_mistake_of_ours(config):
    with pytest.raises(TypeError, match="cannot be checked"):
        check_fields(config)


def test_seeds():
    assert draw_seed(7) == np.random.RandomState(7).randint(2**31 - 1)
    assert draw_seed(np.random.default_rng(7)) == draw_seed(np.random.default_rng(7))
    assert draw_seed(np.random.default_rng(7)) != draw_seed(np.random.default_rng(8))
    assert draw_seed(None) != draw_seed(None)
    with pytest.raises(ConfigError, match="Generator or RandomState of numpy, or None, got 'x'"):
        draw_seed("x")
