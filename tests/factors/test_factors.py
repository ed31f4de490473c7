"""Factor analysis of rows with holes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grapefill.errors import ConfigError
from grapefill.factors import FactorConfig, Factors

COLUMNS = 12


def planted(
    rows: int = 150, columns: int = COLUMNS, *, rank: int = 2, noise: float = 0.1, seed: int = 0
) -> tuple[Any, Any]:
    """Return columns that are mixtures of a few hidden numbers, and the same with holes."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns))
    truth += noise * rng.normal(size=truth.shape)
    return truth, np.where(rng.random(truth.shape) < 0.3, np.nan, truth)


def fit(numbers: Any, rank: int = 4, columns: Any = None) -> Factors:
    columns = np.arange(numbers.shape[1]) if columns is None else np.array(columns)
    return Factors.fit(numbers, columns, rank=rank)


def errors(factors: Factors, truth: Any, numbers: Any) -> tuple[float, float]:
    """Return the errors of factors and of the columns' means where cells are missing."""
    holes = np.isnan(numbers)
    found = np.abs(factors.predict(numbers) - truth)[holes].mean()
    return found, np.abs(np.nanmean(numbers, axis=0) - truth)[holes].mean()


@pytest.mark.parametrize("rank", [2, 4, 8])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_planted_structure_is_found_in_old_and_new_rows(rank: int, seed: int) -> None:
    """And factors that are too many do no harm."""
    truth, numbers = planted(300)
    factors = fit(numbers[:150], rank)
    rows = slice(0, 150) if seed == 0 else slice(150, 300)
    found, by_mean = errors(factors, truth[rows], numbers[rows])
    assert found < 0.15 * by_mean


@pytest.mark.parametrize("rows", [40, 150])
def test_factors_that_explain_nothing_fade_away(rows: int) -> None:
    truth, numbers = planted(rows, noise=0.5)
    factors = fit(numbers, 8)
    strength = np.linalg.svd(factors.loadings, compute_uv=False)
    assert strength[1] > 1
    assert strength[2] < 0.1
    found, _ = errors(factors, truth, numbers)
    assert found < 1.05 * errors(fit(numbers, 2), truth, numbers)[0]


def test_too_few_factors_are_worse() -> None:
    truth, numbers = planted(rank=3)
    one, three = (errors(fit(numbers, rank), truth, numbers)[0] for rank in (1, 3))
    assert three < 0.4 * one


def test_noise_alone_is_not_explained() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(40, COLUMNS))
    numbers = np.where(rng.random(truth.shape) < 0.3, np.nan, truth)
    found, by_mean = errors(fit(numbers, 8), truth, numbers)
    assert found < 1.1 * by_mean


def test_a_noisy_column_counts_for_less() -> None:
    truth, numbers = planted(300)
    noise = 5 * np.random.default_rng(1).normal(size=300)
    numbers[:, 0] += noise
    factors = fit(numbers, 2)
    assert factors.noise[0] > 20 * factors.noise[1:].max()
    found, by_mean = errors(factors, truth, numbers)
    assert found < 0.5 * by_mean


def test_rows_do_not_depend_on_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    _, numbers = planted()
    factors = fit(numbers)
    together = factors.predict(numbers)
    apart = np.vstack([factors.predict(numbers[i : i + 1]) for i in range(150)])
    np.testing.assert_allclose(apart, together, atol=1e-10)
    order = np.random.default_rng(0).permutation(150)
    np.testing.assert_allclose(factors.predict(numbers[order]), together[order], atol=1e-10)
    monkeypatch.setattr("grapefill.factors.analysis.BLOCK_NUMBERS", 7 * 16)
    np.testing.assert_allclose(factors.predict(numbers), together, atol=1e-10)


def test_a_row_without_any_cell_is_the_center() -> None:
    _, numbers = planted()
    factors = fit(numbers)
    found = factors.predict(np.full((2, COLUMNS), np.nan))
    np.testing.assert_allclose(found, np.tile(factors.center, (2, 1)), atol=1e-12)
    np.testing.assert_allclose(factors.center, np.nanmean(numbers, axis=0), atol=0.3)
    assert factors.predict(np.empty((0, COLUMNS))).shape == (0, COLUMNS)


def test_only_the_chosen_columns_are_read_and_predicted() -> None:
    truth, numbers = planted()
    columns = [7, 0, 3, 5, 9]
    factors = fit(numbers, 2, columns)
    found = factors.predict(numbers)
    assert found.shape == (150, 5)
    holes = np.isnan(numbers[:, columns])
    assert np.abs(found - truth[:, columns])[holes].mean() < 0.5 * np.abs(truth).mean()
    others = np.setdiff1d(np.arange(COLUMNS), columns)
    spoiled = numbers.copy()
    spoiled[:, others] = 1e6
    np.testing.assert_array_equal(factors.predict(spoiled), found)
    np.testing.assert_array_equal(fit(spoiled, 2, columns).loadings, factors.loadings)


@pytest.mark.parametrize(("rows", "columns"), [(3, 12), (100, 3), (1, 5), (5, 1), (2, 2)])
def test_no_more_factors_than_rows_or_columns(rows: int, columns: int) -> None:
    truth, numbers = planted(rows, columns)
    numbers[0] = truth[0]
    factors = fit(numbers, 48)
    assert factors.loadings.shape == (columns, min(rows, columns))
    assert np.isfinite(factors.predict(numbers)).all()


def test_a_column_with_one_observed_cell() -> None:
    truth, numbers = planted()
    numbers[:, 4] = np.nan
    numbers[20, 4] = truth[20, 4]
    factors = fit(numbers)
    found = factors.predict(numbers)
    assert np.isfinite(found).all()
    rest = np.delete(np.arange(COLUMNS), 4)
    holes = np.isnan(numbers[:, rest])
    error = np.abs(found - truth)[:, rest][holes].mean()
    assert error < 0.2 * np.abs(truth - truth.mean(axis=0))[:, rest][holes].mean()


def test_a_constant_column() -> None:
    _, numbers = planted()
    numbers[:, 2] = 0.0
    factors = fit(numbers)
    np.testing.assert_allclose(factors.predict(numbers)[:, 2], 0, atol=0.02)
    assert (factors.noise > 0).all()


def test_numbers_far_out_stay_finite() -> None:
    _, numbers = planted()
    factors = fit(numbers)
    assert np.isfinite(factors.predict(1e4 * np.sign(numbers))).all()


def test_a_fit_is_the_same_twice() -> None:
    _, numbers = planted()
    before = numbers.copy()
    first, second = fit(numbers), fit(numbers)
    for name, array in first.arrays().items():
        np.testing.assert_array_equal(array, second.arrays()[name])
    np.testing.assert_array_equal(numbers, before)


def test_arrays_hold_all_of_it() -> None:
    _, numbers = planted()
    factors = fit(numbers, 3, [7, 0, 3, 5, 9])
    again = Factors.from_arrays(factors.arrays(), COLUMNS)
    np.testing.assert_array_equal(again.predict(numbers), factors.predict(numbers))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"columns": np.arange(1, 13)}, "not there", id="a column too far"),
        pytest.param({"columns": np.arange(-1, 11)}, "not there", id="a negative column"),
        pytest.param({"columns": np.arange(11)}, "do not fit", id="too few columns"),
        pytest.param({"loadings": np.ones((11, 2))}, "loadings", id="too few loadings"),
        pytest.param({"loadings": np.ones(12)}, "loadings", id="flat loadings"),
        pytest.param({"center": np.ones(11)}, "center or noise", id="too few centers"),
        pytest.param({"noise": np.ones((12, 1))}, "center or noise", id="noise of another shape"),
        pytest.param({"noise": np.zeros(12)}, "not positive", id="no noise"),
        pytest.param({"noise": np.full(12, np.nan)}, "not positive", id="noise that is no number"),
        pytest.param({"center": np.full(12, np.nan)}, "finite", id="a center that is no number"),
        pytest.param({"loadings": np.full((12, 2), np.inf)}, "finite", id="infinite loadings"),
    ],
)
def test_damaged_arrays_are_refused(changes: dict[str, Any], message: str) -> None:
    _, numbers = planted()
    arrays = fit(numbers, 2).arrays() | changes
    with pytest.raises(ValueError, match=message):
        Factors.from_arrays(arrays, COLUMNS)


def test_a_missing_array_is_noticed() -> None:
    arrays = fit(planted()[1]).arrays()
    del arrays["noise"]
    with pytest.raises(KeyError):
        Factors.from_arrays(arrays, COLUMNS)


class TestConfig:
    @pytest.mark.parametrize(
        ("most", "ranks"),
        [
            (0, ()),
            (3, ()),
            (4, (4,)),
            (7, (4, 6)),
            (16, (4, 6, 8, 12, 16)),
            (17, (4, 6, 8, 12, 16)),
        ],
    )
    def test_ranks_never_exceed_the_most(self, most: int, ranks: tuple[int, ...]) -> None:
        assert FactorConfig(most_factors=most).ranks == ranks

    @pytest.mark.parametrize(
        "wrong", [{"most_factors": -1}, {"fewest_columns": 1}, {"factor_rows": 1}]
    )
    def test_wrong_ones_are_refused(self, wrong: dict[str, int]) -> None:
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            FactorConfig(**wrong)


@pytest.mark.parametrize("columns", [120, 220, 400])
def test_a_row_is_predicted_alike_among_others_and_alone(columns):
    random = np.random.default_rng(0)
    numbers = random.normal(size=(150, 3)) @ random.normal(size=(3, columns))
    numbers[random.random(numbers.shape) < 0.2] = np.nan
    factors = Factors.fit(numbers, np.arange(columns), rank=10)
    whole = factors.predict(numbers)
    for rows in (slice(0, 10), slice(3, 4), slice(71, 149)):
        np.testing.assert_array_equal(factors.predict(numbers[rows]), whole[rows])
