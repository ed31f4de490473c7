"""The settings of the trees."""

from __future__ import annotations

from typing import Any

import pytest

from grapefill.errors import ConfigError
from grapefill.training import get_preset
from grapefill.trees import ForestConfig


def test_there_are_no_trees_unless_asked_for() -> None:
    assert ForestConfig().plan == ()
    assert get_preset("paper").forest == ForestConfig()
    assert get_preset("default").forest.plan != ()


def test_only_the_last_round_has_all_trees() -> None:
    assert ForestConfig(rounds=1, trees=9, early_trees=2).plan == (9,)
    assert ForestConfig(rounds=4, trees=9, early_trees=2).plan == (2, 2, 2, 9)


def test_settings_round_trip() -> None:
    config = ForestConfig(rounds=2, trees=5, input_share=1.0, most_columns=7)
    assert ForestConfig(**config.to_dict()) == config


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": -1},
        {"rounds": 1.0},
        {"trees": 0},
        {"early_trees": 0},
        {"trial_trees": 0},
        {"input_share": 0.0},
        {"input_share": 1.1},
        {"input_share": float("nan")},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"ForestConfig.*{next(iter(wrong))}"):
        ForestConfig(**wrong)


def test_a_trial_has_at_most_two_rounds() -> None:
    plans = [ForestConfig(rounds=k, early_trees=3, trial_trees=5).trial_plan for k in (1, 2, 4)]
    assert plans == [(5,), (3, 5), (3, 5)]
