"""Holes made on purpose: their rate, and what they depend on."""

from __future__ import annotations

import numpy as np
import pytest

from grapefill.errors import ConfigError
from grapefill.evaluate import MECHANISMS, draw_mask


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(4000, 6)) ** 3
    numbers[:, 5] = 7.0
    return numbers


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.7])
def test_the_rate_is_met_in_every_column_with_holes(table, mechanism, rate) -> None:
    mask = draw_mask(table, rate, mechanism, seed=3)
    holed = mask.any(axis=0)
    assert holed.any() == (rate > 0)
    np.testing.assert_allclose(mask[:, holed].mean(axis=0), rate, atol=0.03)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_seed_decides(table, mechanism) -> None:
    first = draw_mask(table, 0.3, mechanism, seed=1)
    assert (first == draw_mask(table, 0.3, mechanism, seed=1)).all()
    assert (first != draw_mask(table, 0.3, mechanism, seed=2)).any()


def test_mnar_depends_on_the_value_itself(table) -> None:
    mask = draw_mask(table, 0.3, "mnar", seed=0)
    for j in range(5):
        gone, left = np.median(table[mask[:, j], j]), np.median(table[~mask[:, j], j])
        assert abs(gone - left) > 0.2


def test_mar_depends_on_columns_that_stay(table) -> None:
    mask = draw_mask(table, 0.3, "mar", seed=0)
    stay = np.flatnonzero(~mask.any(axis=0))
    assert stay.size == 2
    for j in np.flatnonzero(mask.any(axis=0)):
        gaps = [abs(np.corrcoef(mask[:, j], table[:, k])[0, 1]) for k in stay if k != 5]
        assert max(gaps) > 0.1


def test_mcar_depends_on_nothing(table) -> None:
    mask = draw_mask(table, 0.3, "mcar", seed=0)
    assert abs(np.corrcoef(mask[:, 0], table[:, 0])[0, 1]) < 0.05


def test_cells_that_are_missing_already_do_no_harm(table) -> None:
    holed = np.where(np.random.default_rng(0).random(table.shape) < 0.5, np.nan, table)
    for mechanism in MECHANISMS:
        assert 0.1 < draw_mask(holed, 0.3, mechanism).mean() < 0.4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 1.0}, "rate must be at least 0 and below 1, got 1.0"),
        ({"rate": 0.3, "mechanism": "random"}, "mechanism must be one of 'mcar', 'mar', 'mnar'"),
    ],
)
def test_bad_arguments(table, arguments, message) -> None:
    with pytest.raises(ConfigError, match=message):
        draw_mask(table, **arguments)


def test_mar_needs_a_column_to_depend_on() -> None:
    with pytest.raises(ConfigError, match="at least two columns"):
        draw_mask(np.ones((5, 1)), 0.3, "mar")
