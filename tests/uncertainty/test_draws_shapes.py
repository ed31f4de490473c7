"""Draws of columns that are not as a plain regression takes them to be."""

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeImputer
from grapefill.table import Scaling
from grapefill.trees.forest import Forest
from grapefill.uncertainty.curves import Curve, choose_curve, may_be_skew
from grapefill.uncertainty.design import Design
from grapefill.uncertainty.joint import _trust
from grapefill.uncertainty.remainders import LEAST_SIZE, Trust, what_is_left

SETTINGS = {"max_steps": 5, "rounds": 0}
ROWS = 1_500


def drawn(table, draws=5):
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    return imputer.sample(table, draws, random_state=0)


def incomes(random):
    age = random.normal(size=ROWS)
    return pd.DataFrame(
        {"age": age, "income": np.exp(10 + 0.8 * age + 0.6 * random.normal(size=ROWS))}
    )


@pytest.mark.parametrize("mechanism", ["mcar", "mar"])
def test_a_skew_column_keeps_its_mean_and_its_correlations(mechanism):
    random = np.random.default_rng(3)
    table = incomes(random)
    chance = 0.3 if mechanism == "mcar" else 1 / (1 + np.exp(1 - 1.2 * table["age"]))
    holed = table.assign(income=table["income"].where(random.random(ROWS) > chance))
    found = drawn(holed)
    means = [each["income"].mean() / table["income"].mean() for each in found]
    assert abs(np.mean(means) - 1) < 0.06
    correlations = [np.log(each["income"]).corr(each["age"]) for each in found]
    assert abs(np.mean(correlations) - np.log(table["income"]).corr(table["age"])) < 0.02
    assert min(each["income"].min() for each in found) >= holed["income"].min()


def test_errors_that_grow_are_drawn_so():
    ratios, off = [], []
    # How much trees see of it differs from table to table.
    for seed in (4, 5, 6):
        random = np.random.default_rng(seed)
        a, b = random.normal(size=(2, ROWS))
        y = a + np.exp(0.8 * b) * random.normal(size=ROWS)
        table = pd.DataFrame({"a": a, "b": b, "y": y})
        holes = random.random(ROWS) < 0.3
        errors = np.stack(
            [each["y"] - a for each in drawn(table.mask(holes[:, None] & [False, False, True]))]
        )
        calm, wild = b < -0.7, b > 0.7
        ratio = errors[:, holes & wild].std() / errors[:, holes & calm].std()
        ratios.append(ratio / ((y - a)[wild].std() / (y - a)[calm].std()))
        correlations = [np.corrcoef(a, a + error)[0, 1] for error in errors]
        off.append(np.mean(correlations) - np.corrcoef(a, y)[0, 1])
    # Errors alike in all rows would make it about .15.
    assert 0.33 < np.mean(ratios) < 1.3
    assert np.abs(off).max() < 0.04


def test_a_model_file_keeps_the_curves(tmp_path):
    random = np.random.default_rng(5)
    table = incomes(random).mask(random.random((ROWS, 2)) < 0.2)
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    before = imputer.sample(table, 2, random_state=1)
    assert imputer.uncertainty_.sampler.design.curves
    imputer.save(tmp_path / "model.safetensors")
    after = GrapeImputer.load(tmp_path / "model.safetensors").sample(table, 2, random_state=1)
    for one, other in zip(before, after, strict=True):
        pd.testing.assert_frame_equal(one, other)


def test_curves_are_for_skew_columns_only():
    random = np.random.default_rng(6)
    normal = random.normal(size=800)
    outlier = np.where(np.arange(800) < 3, 60.0, normal)
    inputs = np.column_stack([np.ones(800), random.normal(size=800)])
    assert choose_curve(normal, normal, inputs) is None
    assert choose_curve(outlier, outlier, inputs) is None
    assert not may_be_skew(np.exp(normal).round())
    assert not may_be_skew(normal)
    assert may_be_skew(np.exp(normal))
    assert not may_be_skew(1e160 * normal)
    curve = choose_curve(-np.exp(normal), -np.exp(normal), inputs)
    assert curve is not None
    assert curve.sign == -1


def test_a_skew_column_is_an_input_twice_and_its_values_come_back():
    curve = Curve(1.0, -1.0, 0.1, 0.0, 1.0)
    design = Design((0, 0), Scaling(np.array([2.0, 0.0]), np.array([2.0, 1.0])), {0: curve})
    values = np.array([[0.5, 1.0], [9.0, 2.0]])
    inputs = design.inputs(values)
    assert inputs.shape == (2, 4)
    np.testing.assert_allclose(inputs[:, 2], [-0.75, 3.5])
    np.testing.assert_allclose(design.undo(0, inputs[:, 1]), values[:, 0])
    assert design.numbers == [1, 3]
    assert design.others(0).tolist() == [0, 3]


@pytest.mark.parametrize(
    "parameters", [[1, 0, 1, 0], [1, 0, 0, 0, 1], [2, 0, 1, 0, 1], [1, 0, np.nan, 0, 1]]
)
def test_a_broken_curve_is_refused(parameters):
    with pytest.raises(ValueError, match="curved scale"):
        Curve.from_array(np.array(parameters, dtype=float))


def test_trees_that_say_nothing_are_not_believed():
    random = np.random.default_rng(7)
    rest, votes = random.normal(size=2_000), random.normal(size=(2_000, 8))
    unseen = random.random(votes.shape) < 0.6
    unseen[:, 0] = True
    found = what_is_left(rest, np.ones((2_000, 1)), votes, unseen, random, asked=5)
    assert found.trust.share < 0.15
    assert found.trust.slope == 0
    assert abs(found.left.std() - 1) < 0.05
    entirely = what_is_left(
        rest, np.ones((2_000, 1)), votes, unseen, random, asked=5, entirely=True
    )
    assert entirely.trust.share == 1


def test_sizes_that_trees_foretell_are_believed():
    random = np.random.default_rng(8)
    size = np.exp(random.normal(size=3_000))
    rest = size * random.normal(size=3_000)
    votes = size[:, None] * random.normal(size=(3_000, 12))
    unseen = np.ones(votes.shape, dtype=bool)
    found = what_is_left(rest, np.ones((3_000, 1)), votes, unseen, random, asked=12)
    assert found.trust.slope > 0
    again = found.left * found.trust.size(np.abs(votes).mean(axis=1))
    large, small = size > 2, size < 0.5
    assert 2 < again[large].std() / again[small].std() < 20
    assert Trust().size(np.array([0.0, 5.0])).tolist() == [1.0, 1.0]


def test_large_values_are_as_frequent_as_observed_where_errors_do_not_grow_with_them():
    random = np.random.default_rng(1)
    table = incomes(random)
    size = np.where(table["age"] > 0.8, 0.05, 0.7)
    income = np.exp(10 + 0.8 * table["age"] + size * random.normal(size=ROWS))
    missing = random.random(ROWS) < 0.3
    found = drawn(table.assign(income=income.where(~missing)))
    large = np.quantile(np.concatenate([each["income"][missing] for each in found]), 0.98)
    # Drawn on the logarithm's scale alone it is a tenth too large.
    assert abs(large / income.quantile(0.98) - 1) < 0.08


def test_trees_take_turns():
    random = np.random.default_rng(9)
    inputs = random.normal(size=(200, 1)).astype(np.float32)
    target = random.normal(size=200)
    forest = Forest.grow(inputs, target, columns=(0,), n_trees=8, seed=0)
    votes = forest.votes(inputs)
    told, sizes = Trust(0.5, 0.0, 1.0, asked=3).ask(forest, inputs, 2)
    np.testing.assert_allclose(told, 0.5 * votes[:, [6, 7, 0]].mean(axis=1))
    np.testing.assert_allclose(
        sizes, np.maximum(np.abs(votes[:, [6, 7, 0]]).mean(axis=1), LEAST_SIZE)
    )
    # As in models that were saved before.
    for turn in (0, 5):
        np.testing.assert_allclose(Trust().ask(forest, inputs, turn)[0], votes.mean(axis=1))


def test_how_far_trees_are_believed_is_read_from_earlier_files_too():
    assert _trust({}, 8) == Trust()
    assert _trust({"trust": np.array([0.5, 1.0, 0.0])}, 8) == Trust(0.5)
    assert _trust({"trust": np.array([0.5, 1.0, 0.0, 6.0])}, 8) == Trust(0.5, asked=6)
    for wrong in ([0.5, 1.0], [0.5, 1, 0, -1], [0.5, 1, 0, 0.9], [0.5, 1, 0, 9], [np.nan, 1, 0, 1]):
        with pytest.raises(ValueError, match="trees"):
            _trust({"trust": np.array(wrong, dtype=float)}, 8)


def test_errors_that_trees_share_differ_from_draw_to_draw():
    """Two columns that tell each other, and hardly anything else does: missing together."""
    random = np.random.default_rng(11)
    z = random.normal(size=(1_500, 2))
    x = np.abs(z[:, 0]) + 0.2 * z[:, 1] + 0.1 * random.normal(size=1_500)
    y = x**2 + 0.1 * random.normal(size=1_500)
    complete = pd.DataFrame({"x": x, "y": y, "one": z[:, 0], "two": z[:, 1]})
    missing = random.random(1_500) < 0.3
    table = complete.copy()
    table.loc[missing, ["x", "y"]] = np.nan
    found = np.stack([each.to_numpy()[missing, :2] for each in drawn(table, 20)])
    off = np.square(complete.to_numpy()[missing, :2] - found.mean(axis=0)).mean(axis=0)
    spread = found.var(axis=0, ddof=1).mean(axis=0) * 1.05
    # By trees that are all asked in every draw it is 1.6 to 1.8.
    assert ((spread > 0.8 * off) & (spread < 1.4 * off)).all()


def test_parts_of_a_sum_are_not_curved_though_they_are_skew():
    random = np.random.default_rng(3)
    x, y = np.exp(random.normal(size=(2, 400)))
    table = pd.DataFrame({"x": x, "y": y, "sum": x + y})
    holes = random.random(table.shape) < 0.3
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table.mask(holes))
    found = imputer.sample(table.mask(holes), 3, random_state=0)
    assert not imputer.uncertainty_.sampler.design.curves
    single = holes[:, 2] & (holes.sum(axis=1) == 1)
    off = np.stack([np.abs(each["sum"] - table["sum"])[single] for each in found])
    assert np.median(off) < 0.2


def test_a_very_skew_column_has_no_heap_at_its_end():
    random = np.random.default_rng(9)
    z = random.normal(size=1_000)
    x = np.exp(3 * (0.6 * z + 0.8 * random.normal(size=z.size)))
    holes = random.random(z.size) < 0.3
    found = drawn(pd.DataFrame({"x": np.where(holes, np.nan, x), "z": z}))
    values = np.stack([each["x"][holes] for each in found])
    assert (values == x[~holes].min()).mean() < 0.01
    assert abs(np.log(values).std() / np.log(x).std() - 1) < 0.15


def test_with_many_inputs_the_column_speaks_for_itself():
    random = np.random.default_rng(10)
    inputs = np.column_stack([np.ones(100), random.normal(size=(100, 95))])
    straight = inputs[:, 1:] @ random.normal(size=95)
    assert choose_curve(straight, straight, inputs) is None
    assert choose_curve(np.exp(straight / 5), np.exp(straight / 5), inputs) is not None
