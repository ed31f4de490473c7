"""Little's test gives published values, and p-values that mean what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grapefill.evaluate import LittleTest, little_test
from grapefill.evaluate.little import MOST_COLUMNS

AIRQUALITY = Path(__file__).parent / "data" / "airquality.csv"


@pytest.fixture(scope="module")
def air() -> np.ndarray:
    """Daily air quality in New York, May to September 1973: R's data set `airquality`."""
    return np.genfromtxt(AIRQUALITY, delimiter=",", skip_header=1, missing_values="NA")


def test_published_values(air: np.ndarray) -> None:
    found = little_test(air)
    # The tests of R's naniar expect these of mcar_test(airquality).
    assert found.statistic == pytest.approx(35.1061288689702, rel=1e-6)
    assert (found.degrees, found.patterns) == (14, 4)
    assert found.p_value == pytest.approx(0.00141778113856683, rel=1e-6)
    assert "chi2(14) = 35.11, p = 0.0014. Cells are hardly missing" in str(found)


def test_a_row_without_a_value_changes_nothing(air: np.ndarray) -> None:
    more = np.vstack([air, np.full(6, np.nan)])
    assert little_test(more).statistic == pytest.approx(little_test(air).statistic, rel=1e-9)


def test_units_do_not_matter(air: np.ndarray) -> None:
    scaled = air * [1e-9, 1e200, 1.0, -5.0, 3.0, 1e6] + [0, 0, 1e5, 0, 0, 0]
    assert little_test(scaled).statistic == pytest.approx(little_test(air).statistic, rel=1e-5)


def test_sums_constants_and_empty_columns_are_left_out(air: np.ndarray) -> None:
    rows = len(air)
    total = air[:, 2] * 2 + air[:, 3]
    more = np.column_stack([air, np.ones(rows), np.full(rows, np.nan), total, air[:, 1] * 3 - 1])
    found = little_test(more, list("abcdefghij"))
    assert found.degrees == 14
    assert found.statistic == pytest.approx(little_test(air).statistic, rel=1e-3)
    assert len(found.columns) == 6
    assert "Left out, since others determine them" in found.notes[0]


def _tables(make: str, *, by_value: bool, count: int) -> list[float]:
    found = []
    for seed in range(count):
        random = np.random.default_rng(seed)
        noise = random.normal(size=(150, 5))
        noise = np.exp(noise) if make == "lognormal" else noise
        table = noise @ np.random.default_rng(1).normal(size=(5, 5))
        chance = np.full((150, 5), 0.15)
        if by_value:
            chance *= 2 * (table[:, :1].argsort(axis=0).argsort(axis=0) / 150)
        chance[:, 0] = 0 if by_value else 0.15
        table[random.random((150, 5)) < chance] = np.nan
        result = little_test(table)
        assert result.p_value is not None
        assert result.p_adjusted is not None
        assert result.p_value > 0.1 or result.p_adjusted >= result.p_value
        found.append(result.p_adjusted if make == "lognormal" else result.p_value)
    return found


@pytest.mark.parametrize("make", ["normal", "lognormal"])
def test_under_mcar_p_values_are_about_uniform(make: str) -> None:
    p = np.array(_tables(make, by_value=False, count=200))
    assert np.mean(p < 0.05) <= 0.1
    assert 0.35 <= np.mean(p < 0.5) <= 0.65
    assert np.mean(p > 0.9) >= 0.02


@pytest.mark.parametrize("make", ["normal", "lognormal"])
def test_under_mar_p_values_are_small(make: str) -> None:
    p = np.array(_tables(make, by_value=True, count=40))
    assert np.mean(p < 0.05) > 0.5


def test_heavy_tails_are_adjusted_for() -> None:
    random = np.random.default_rng(2)
    table = np.exp(2 * random.normal(size=(500, 8)))
    table[random.random(table.shape) < 0.15] = np.nan
    found = little_test(table)
    assert abs(found.p_adjusted - 0.5) < abs(found.p_value - 0.5)
    shown = str(LittleTest(40.0, 20, 0.005, 0.2, patterns=9, rows=99, columns=("a", "b")))
    assert "p = 0.0050, adjusted for heavy tails p = 0.2000. No sign that cells" in shown


def test_wide_tables_use_some_columns_and_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grapefill.evaluate.little.MOST_WORK", 4e6)
    random = np.random.default_rng(0)
    table = random.normal(size=(400, 40))
    table[:, 5:][random.random((400, 35)) < 0.2] = np.nan
    found = little_test(table)
    assert len(found.columns) == MOST_COLUMNS
    assert "x0" not in found.columns
    assert found.p_value > 0.001
    assert found.notes == (
        "Only the 30 columns with the most missing cells took part.",
        "On a sample of 148 rows.",
    )
    assert little_test(table) == found


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (np.array([[1.0], [np.nan]]), "two columns of numbers"),
        (np.ones((9, 3)), "two columns of numbers"),
        (np.arange(20.0).reshape(10, 2) ** 2, "no cell of a column of numbers is missing"),
        (np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, 1.0]]), "3 rows are too few for 2"),
        (
            np.column_stack([np.arange(20.0), np.where(np.arange(20) > 15, np.nan, np.arange(20))]),
            "multiples of one",
        ),
        (
            np.vstack([np.random.default_rng(0).normal(size=(9, 2)), [[np.nan, np.nan]]]),
            "all rows have the same cells missing",
        ),
    ],
)
def test_reasons_why_it_cannot_be_made(table: np.ndarray, reason: str) -> None:
    found = little_test(table)
    assert found.statistic is found.p_value is found.degrees is None
    assert reason in found.reason
    assert str(found).startswith("Little's test cannot be made: ")
