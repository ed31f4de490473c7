"""The chain: rounds of forests that refine a guess column by column."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from grapefill.table import Scaling
from grapefill.trees import Chain, Forest, ForestConfig, Growth, Guess, LineForest

# Numbers, a column of three categories, numbers of another scale, noise.
KINDS = (0, 3, 0, 0)
BLEND = np.array([0.0, 0.25, 0.5, 0.0])
CONFIG = ForestConfig(rounds=2, trees=6, early_trees=3)


def make_truth(n_rows: int, *, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    columns = [x, np.digitize(x, [-0.5, 0.5]), 1000 + 50 * x, rng.normal(size=n_rows)]
    return np.column_stack(columns)


def make_rows(n_rows: int = 150, *, seed: int = 0) -> tuple[Any, Any]:
    truth = make_truth(n_rows, seed=seed)
    holes = np.random.default_rng([seed, 1]).random(truth.shape) < 0.25
    return truth, np.where(holes, np.nan, truth)


def dull_guess(numbers: Any) -> Guess:
    """Return what a poor network says: medians, and a slight preference for the last category."""
    value = np.tile(np.nanmedian(numbers, axis=0), (len(numbers), 1))
    value[:, 1] = 2
    return Guess(value, {1: np.tile([0.3, 0.3, 0.4], (len(numbers), 1))})


def make_growth(numbers: Any, n_categories: tuple[int, ...] = KINDS, **changes: Any) -> Growth:
    discrete = [j for j, k in enumerate(n_categories) if k]
    scaling = Scaling.fit(numbers, "standard", discrete=discrete)
    return replace(Growth(CONFIG, n_categories, scaling, seed=0), **changes)


def grow(shares: Any = BLEND, **changes: Any) -> tuple[Chain, Guess]:
    _, numbers = make_rows()
    return make_growth(numbers, **changes).grow(numbers, dull_guess(numbers), shares)


def assert_same(first: Guess, second: Guess) -> None:
    np.testing.assert_array_equal(first.value, second.value)
    np.testing.assert_array_equal(first.chances[1], second.chances[1])


def n_nodes(chain: Chain) -> int:
    return sum(tree.node_count for r in chain.rounds for f in r.values() for tree in f.trees)


def test_trees_beat_the_guess_they_start_with() -> None:
    chain, _ = grow(np.zeros(4))
    truth, numbers = make_rows(seed=1)
    before = dull_guess(numbers)
    after = chain.refine(numbers, before)
    for j in (0, 2):
        holes = np.isnan(numbers[:, j])
        errors = [np.abs(guess.value - truth)[holes, j].mean() for guess in (before, after)]
        assert errors[1] < 0.4 * errors[0]
    holes = np.isnan(numbers[:, 1])
    hits = [(guess.value == truth)[holes, 1].mean() for guess in (before, after)]
    assert hits[0] < 0.5
    assert hits[1] > 0.75


def test_refining_repeats_what_was_done_while_growing() -> None:
    chain, grown = grow()
    _, numbers = make_rows()
    assert_same(chain.refine(numbers, dull_guess(numbers)), grown)


def test_only_missing_cells_are_refined() -> None:
    chain, _ = grow()
    _, numbers = make_rows(seed=1)
    guess, seen = dull_guess(numbers), ~np.isnan(numbers)
    refined = chain.refine(numbers, guess)
    np.testing.assert_array_equal(refined.value[seen], guess.value[seen])
    np.testing.assert_array_equal(refined.chances[1][seen[:, 1]], guess.chances[1][seen[:, 1]])
    assert (refined.value[~seen] != guess.value[~seen]).mean() > 0.7
    # Nothing was written to what came in.
    assert_same(guess, dull_guess(numbers))


def test_a_table_without_holes_stays_as_it_is() -> None:
    chain, _ = grow()
    truth, numbers = make_rows()
    assert_same(chain.refine(truth, dull_guess(numbers)), dull_guess(numbers))


def test_categories_come_with_chances() -> None:
    chain, _ = grow()
    _, numbers = make_rows(seed=1)
    refined = chain.refine(numbers, dull_guess(numbers))
    holes = np.isnan(numbers[:, 1])
    np.testing.assert_allclose(refined.chances[1].sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(refined.value[holes, 1], refined.chances[1][holes].argmax(axis=1))
    # A quarter of what the network says remains, whatever the trees vote for.
    assert (refined.chances[1][holes] >= 0.25 * np.array([0.3, 0.3, 0.4]) - 1e-12).all()


def test_a_row_is_refined_alike_alone_and_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grapefill.trees.forest.FEWEST_VISITS", 0)
    chain, _ = grow()
    _, numbers = make_rows(40, seed=1)
    guess = dull_guess(numbers)
    together = chain.refine(numbers, guess)
    for i in range(40):
        row = slice(i, i + 1)
        alone = chain.refine(numbers[row], Guess(guess.value[row], {1: guess.chances[1][row]}))
        np.testing.assert_array_equal(alone.value, together.value[row])
        np.testing.assert_array_equal(alone.chances[1], together.chances[1][row])


def test_a_chain_depends_on_its_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grapefill.trees.forest.FEWEST_VISITS", 0)
    guesses = []
    for threads in (1, 3):
        monkeypatch.setattr(
            "grapefill.trees.growth.threads", lambda n=threads: ThreadPoolExecutor(n)
        )
        guesses.append(grow()[1])
    assert_same(*guesses)
    assert not np.array_equal(grow(seed=1)[1].value, guesses[0].value)


def test_a_column_left_to_the_network_gets_no_trees() -> None:
    chain, grown = grow(np.array([0.0, 1.0, 1.0, 0.5]))
    _, numbers = make_rows()
    guess = dull_guess(numbers)
    assert [set(forests) for forests in chain.rounds] == [{0, 3}] * 2
    np.testing.assert_array_equal(grown.value[:, 1:3], guess.value[:, 1:3])
    np.testing.assert_array_equal(grown.chances[1], guess.chances[1])
    holes = np.isnan(numbers)
    assert (grown.value[:, 0] != guess.value[:, 0])[holes[:, 0]].all()


def test_the_network_has_its_share_in_a_blend() -> None:
    """The first column to be predicted sees the same inputs, whatever its own share."""
    _, numbers = make_rows()
    guess, holes = dull_guess(numbers), np.isnan(numbers[:, 0])
    values = {}
    for share in (0.0, 0.25):
        growth = make_growth(numbers)
        _, grown = growth.grow(numbers, guess, np.array([share, 1, 1, 1]), plan=[4])
        values[share] = grown.value[holes, 0]
    blend = 0.25 * guess.value[holes, 0] + 0.75 * values[0.0]
    np.testing.assert_allclose(values[0.25], blend, rtol=1e-12)


def test_numbers_beyond_float32_are_as_good_as_far_away() -> None:
    chain, _ = grow()
    numbers = make_truth(4, seed=1)
    guess = dull_guess(numbers)
    numbers[:, 2] = np.nan
    refined = []
    for far in (1e3, 1e300):
        numbers[:, 0] = [far, -far, far, -far]
        refined.append(chain.refine(numbers, guess))
    assert_same(*refined)


def test_arrays_hold_all_of_a_chain() -> None:
    chain, _ = grow(np.array([0.0, 0.25, 1.0, 0.5]))
    again = Chain.from_arrays(chain.arrays(), KINDS, chain.scaling)
    assert [set(forests) for forests in again.rounds] == [{0, 1, 3}] * 2
    assert again.rounds[0][3].columns == (0, 1, 2)
    _, numbers = make_rows(seed=1)
    guess = dull_guess(numbers)
    assert_same(again.refine(numbers, guess), chain.refine(numbers, guess))


def test_rounds_and_features_are_read_in_order() -> None:
    """A file gives them in the order of their names, where 10 comes before 2."""
    _, numbers = make_rows()
    wide = np.tile(numbers[:, :1], 12)
    growth = make_growth(wide, (0,) * 12)
    guess = Guess(np.zeros_like(wide), {})
    chain, _ = growth.grow(wide, guess, np.zeros(12), plan=[1] * 11)
    by_name = dict(sorted(chain.arrays().items()))
    again = Chain.from_arrays(by_name, (0,) * 12, chain.scaling)
    assert [list(forests) for forests in again.rounds] == [list(range(12))] * 11


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"shares": np.zeros(3)}, "3 shares for 4 features", id="too few shares"),
        pytest.param({"shares": np.zeros((4, 1))}, "shares", id="shares of another shape"),
        pytest.param({"powers": np.ones(3)}, "powers", id="too few powers"),
        pytest.param({"powers": np.zeros(4)}, "powers", id="powers of 0"),
        pytest.param({"0.2.columns": np.array([0, 1, 4])}, "not there", id="unknown input"),
        pytest.param({"0.2.columns": np.array([0, -1, 3])}, "not there", id="negative input"),
        pytest.param({"0.2.columns": np.array([0])}, "outside", id="fewer inputs than trees read"),
        pytest.param({"0.more.size": np.zeros(1)}, "invalid literal", id="a name without numbers"),
        pytest.param({"extra": np.zeros(1)}, "unpack", id="a name of another kind"),
    ],
)
def test_damaged_arrays_are_refused(changes: dict[str, Any], message: str) -> None:
    chain, _ = grow()
    with pytest.raises(ValueError, match=message):
        Chain.from_arrays(chain.arrays() | changes, KINDS, chain.scaling)


@pytest.mark.parametrize("gone", ["0", "1"])
def test_a_missing_round_is_noticed(gone: str) -> None:
    chain, _ = grow(config=replace(CONFIG, rounds=3))
    kept = {k: v for k, v in chain.arrays().items() if not k.startswith(f"{gone}.")}
    with pytest.raises(ValueError, match="a round is missing"):
        Chain.from_arrays(kept, KINDS, chain.scaling)


def test_a_forest_for_an_unknown_column_is_refused() -> None:
    chain, _ = grow()
    moved = {k.replace("0.3.", "0.4."): v for k, v in chain.arrays().items()}
    with pytest.raises(ValueError, match="not there"):
        Chain.from_arrays(moved, KINDS, chain.scaling)


def test_every_forest_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    grow(np.array([0, 0, 0, 1.0]), report=lambda done, planned: seen.append((done, planned)))
    assert seen == [(done, 6) for done in range(1, 7)]


def test_after_the_deadline_nothing_grows() -> None:
    chain, grown = grow(deadline=0.0)
    assert chain.rounds == []
    assert_same(grown, dull_guess(make_rows()[1]))


class Clock:
    """A clock that only moves when trees grow, by a second for each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        true_grow = Forest.grow

        def slow_grow(*args: Any, **options: Any) -> Forest:
            self.now += options["n_trees"]
            return true_grow(*args, **options)

        monkeypatch.setattr(Forest, "grow", slow_grow)
        monkeypatch.setattr("grapefill.trees.growth.time", self)

    def perf_counter(self) -> float:
        return self.now


# The rounds take four columns times 2, 2 and 5 seconds.
@pytest.mark.parametrize(
    ("deadline", "forests", "end"),
    [
        (100, [4, 4, 4], 36),
        (36, [4, 4, 4], 36),
        (35, [4, 4], 16),
        (15, [4], 8),
        # How long the first round takes is only known once it has begun.
        (5, [2], 4),
    ],
)
def test_rounds_that_would_not_make_it_are_left_out(
    deadline: float, forests: list[int], end: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    config = ForestConfig(rounds=3, trees=5, early_trees=2)
    chain, grown = grow(config=config, deadline=deadline)
    assert [len(round_) for round_ in chain.rounds] == forests
    assert clock.now == end
    _, numbers = make_rows()
    again = Chain.from_arrays(chain.arrays(), KINDS, chain.scaling)
    assert_same(again.refine(numbers, dull_guess(numbers)), grown)


def test_the_speed_is_remembered_from_one_growth_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    _, numbers = make_rows()
    growth = make_growth(numbers)
    growth.grow(numbers, dull_guess(numbers), BLEND, plan=[1])
    # What happens between the two does not count.
    clock.now = 100
    growth.deadline = 115
    chain, _ = growth.grow(numbers, dull_guess(numbers), BLEND, plan=[4, 1])
    assert chain.rounds == []
    growth.deadline = 116
    chain, _ = growth.grow(numbers, dull_guess(numbers), BLEND, plan=[4, 1])
    assert [len(forests) for forests in chain.rounds] == [4]


def test_a_wide_table_is_read_where_columns_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grapefill.trees.work.MOST_INPUTS", 2)
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(100, 7))
    numbers[:, 3] = -50 * numbers[:, 0] + rng.normal(size=100)
    numbers[:, 4] = 7.0
    numbers[:, 5] *= 1000
    numbers[:, 6] = numbers[:, 0] + 0.5 * rng.normal(size=100)
    numbers[:9, 0] = np.nan
    # Not scaled, as codes of categories would not be.
    growth = make_growth(numbers, (0,) * 7, scaling=Scaling(np.zeros(7), np.ones(7)))
    shares = np.array([0.0, *[1.0] * 6])
    chain, _ = growth.grow(numbers, Guess(np.zeros_like(numbers), {}), shares)
    assert chain.rounds[0][0].columns == (3, 6)
    again = Chain.from_arrays(chain.arrays(), (0,) * 7, chain.scaling)
    assert again.rounds[1][0].columns == (3, 6)


def test_a_column_of_many_categories_is_left_to_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("grapefill.trees.growth.MOST_CATEGORIES", 2)
    seen: list[tuple[int, int]] = []
    chain, grown = grow(np.zeros(4), report=lambda *counts: seen.append(counts))
    assert [set(forests) for forests in chain.rounds] == [{0, 2, 3}] * 2
    assert seen[-1] == (6, 6)
    _, numbers = make_rows()
    np.testing.assert_array_equal(grown.value[:, 1], dull_guess(numbers).value[:, 1])


@pytest.mark.parametrize(("factor", "shift"), [(1e-9, 0.0), (1.0, 1e9), (1e200, 0.0)])
def test_units_do_not_matter(factor: float, shift: float) -> None:
    truth, numbers = make_rows()
    units = [(1.0, 0.0), (factor, shift)]
    errors = []
    for times, plus in units:
        changed = numbers * [times, 1, 1, 1] + [plus, 0, 0, 0]
        growth = make_growth(changed)
        _, grown = growth.grow(changed, dull_guess(changed), np.zeros(4))
        error = np.abs((grown.value[:, 0] - plus) / times - truth[:, 0])
        errors.append(error[np.isnan(numbers[:, 0])].mean())
    assert errors[1] == pytest.approx(errors[0], rel=0.05)


def test_trees_of_a_large_table_are_cut_short() -> None:
    limit = n_nodes(grow()[0]) // 5
    chain, _ = grow(config=replace(CONFIG, most_nodes=limit))
    assert 0.3 * limit < n_nodes(chain) < 1.2 * limit


def test_weights_belong_to_a_column_and_to_the_rows_where_it_is_known() -> None:
    _, numbers = make_rows()
    known = np.flatnonzero(~np.isnan(numbers[:, 3]))
    weights = np.ones(150)
    weights[known[5]] = 1e9
    config = replace(CONFIG, most_nodes=1)
    chain, grown = grow(np.zeros(4), config=config, weights={3: weights})
    holes = np.isnan(numbers)
    # With so few nodes every leaf has many rows, and the heavy one is always drawn.
    assert (grown.value[holes[:, 3], 3] == numbers[known[5], 3]).all()
    plain, _ = grow(np.zeros(4), config=config)
    first, second = chain.rounds[0][0].arrays(), plain.rounds[0][0].arrays()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])


def test_columns_with_lines_among_columns_with_votes() -> None:
    _, numbers = make_rows()
    growth, smooth = make_growth(numbers), np.array([True, False, False, False])
    chain, grown = growth.grow(numbers, dull_guess(numbers), np.zeros(4), smooth=smooth)
    kinds = [{j: type(forest) for j, forest in forests.items()} for forests in chain.rounds]
    assert all(kind[0] is LineForest and kind[1] is kind[2] is Forest for kind in kinds)
    again = Chain.from_arrays(chain.arrays(), KINDS, growth.scaling)
    assert_same(again.refine(numbers, dull_guess(numbers)), grown)


def test_lines_are_tried_on_held_out_numbers_alone() -> None:
    truth, numbers = make_rows()
    held_out = np.zeros(numbers.shape, dtype=bool)
    held_out[:15, 0] = held_out[15:30, 2] = held_out[30:40, 1] = True
    shown, guess = np.where(held_out, np.nan, numbers), dull_guess(numbers)
    found = make_growth(numbers).try_lines(shown, guess, held_out)
    assert found is not None
    tried, forests = found
    assert forests.keys() == {0, 2}
    changed = tried.value != guess.value
    assert not changed[~held_out].any()
    assert not changed[:, 1].any()
    for j, rows in ((0, slice(15)), (2, slice(15, 30))):
        before, after = (np.abs(each.value - truth)[rows, j].mean() for each in (guess, tried))
        assert after < 0.6 * before


@pytest.mark.parametrize(
    "changes", [{"config": replace(CONFIG, line_trees=0)}, {"deadline": float("-inf")}]
)
def test_lines_are_not_tried_without_trees_or_time(changes: dict[str, Any]) -> None:
    _, numbers = make_rows()
    held_out = np.arange(len(numbers))[:, None] < np.array([9, 9, 9, 9])
    shown = np.where(held_out, np.nan, numbers)
    growth = make_growth(numbers, **changes)
    assert growth.try_lines(shown, dull_guess(numbers), held_out) is None


def test_a_wide_table_gets_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grapefill.trees.growth.MOST_LINE_INPUTS", 2)
    _, numbers = make_rows()
    held_out = np.arange(len(numbers))[:, None] < np.array([9, 9, 9, 9])
    assert make_growth(numbers).try_lines(numbers, dull_guess(numbers), held_out) is None


def test_powers_sharpen_the_chances_of_holes_alone() -> None:
    chain, _ = grow()
    _, numbers = make_rows(seed=1)
    guess, holes = dull_guess(numbers), np.isnan(numbers[:, 1])
    before = chain.refine(numbers, guess)
    after = replace(chain, powers=np.full(4, 2.0)).refine(numbers, guess)
    np.testing.assert_array_equal(after.value, before.value)
    np.testing.assert_array_equal(after.chances[1][~holes], before.chances[1][~holes])
    squared = before.chances[1][holes] ** 2
    expected = squared / squared.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(after.chances[1][holes], expected, rtol=1e-12)


def test_labels_come_first_and_have_more_trees_in_the_end() -> None:
    _, numbers = make_rows()
    growth = make_growth(numbers, n_labels=2, config=replace(CONFIG, label_trees=9))
    chain, _ = growth.grow(numbers, dull_guess(numbers), np.zeros(4))
    assert [list(forests) for forests in chain.rounds] == [[2, 3, 0, 1]] * 2
    counts = [[len(forest.trees) for forest in forests.values()] for forests in chain.rounds]
    assert counts == [[2, 2, 2, 2], [9, 9, 6, 6]]
    again = Chain.from_arrays(chain.arrays(), KINDS, chain.scaling, 2)
    assert [list(forests) for forests in again.rounds] == [[2, 3, 0, 1]] * 2


@pytest.mark.parametrize("shares", [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]])
def test_labels_alone_are_what_they_are_among_the_others(shares: list[float]) -> None:
    _, numbers = make_rows()
    growth, guess = make_growth(numbers, n_labels=2), dull_guess(numbers)
    chain, whole = growth.grow(numbers, guess, np.array(shares, dtype=float))
    alone = chain.refine(numbers, guess, labels_only=True)
    np.testing.assert_array_equal(alone.value[:, 2:], whole.value[:, 2:])
    # The last round of the others was left out.
    assert (alone.value[:, 0] != whole.value[:, 0]).any()


def test_labels_of_a_round_that_was_cut_short_are_those_of_the_round_before() -> None:
    _, numbers = make_rows()
    guess = dull_guess(numbers)
    chain, _ = make_growth(numbers, n_labels=1).grow(numbers, guess, np.zeros(4))
    chain.rounds[-1] = {}
    alone = chain.refine(numbers, guess, labels_only=True)
    np.testing.assert_array_equal(alone.value[:, 3], chain.refine(numbers, guess).value[:, 3])


@pytest.mark.parametrize(("share", "tried"), [(0.01, True), (0.2, False)])
def test_lines_are_not_tried_where_a_value_comes_again_and_again(share: float, tried: bool) -> None:
    _, numbers = make_rows(400)
    often = np.random.default_rng(2).random(400) < share
    numbers[often, 2] = 1000.0
    held_out = np.zeros(numbers.shape, dtype=bool)
    held_out[:60, 2] = ~np.isnan(numbers[:60, 2])
    shown = np.where(held_out, np.nan, numbers)
    found = make_growth(numbers).try_lines(shown, dull_guess(numbers), held_out)
    assert found is not None
    assert (2 in found[1]) is tried
