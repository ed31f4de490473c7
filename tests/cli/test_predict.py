"""predict: the rows of a new table with predictions behind them."""

import re

import pytest


@pytest.fixture
def new(make_csv, rows):
    return make_csv("new.csv", [row[:6] for row in rows(9, seed=4)], HEADER[:6])


@pytest.fixture
def whole(make_csv, rows):
    return make_csv("new.csv", rows(9, seed=4))


HEADER = ["id", "area", "rooms", "heating", "sold", "garden", "price"]


def test_numbers(cli, houses, new, quick, tmp_path):
    output, model = tmp_path / "predictions.csv", tmp_path / "price.grape"
    result = cli("predict", houses, new, "--target", "price", "-o", output, "-m", model, *quick)
    assert result.code == 0
    lines = output.read_text().splitlines()
    before = new.read_text().splitlines()
    assert lines[0] == before[0] + ",price_predicted"
    for line, old in zip(lines[1:], before[1:], strict=True):
        assert line.startswith(old + ",")
        assert 10_000 < float(line.rpartition(",")[2]) < 200_000
    assert "9 rows were predicted." in result.out
    assert f"The predictions: {output}" in result.out
    assert "was off by" in result.out
    again = tmp_path / "again.csv"
    assert cli("apply", model, new, "-o", again).code == 0
    assert again.read_bytes() == output.read_bytes()


@pytest.mark.parametrize("target", ["heating", "garden"])
def test_categories(cli, houses, whole, quick, target):
    new = whole
    result = cli("predict", houses, new, "--target", target, *quick)
    assert result.code == 0
    lines = [
        line.split(",") for line in new.with_name("new-predicted.csv").read_text().splitlines()
    ]
    words = {"heating": ["gas", "wood"], "garden": ["no", "yes"]}[target]
    expected = [f"{target}_predicted", *(f"{target}_probability_{word}" for word in words)]
    assert lines[0] == HEADER + expected
    for line in lines[1:]:
        best, *chances = line[7:]
        assert best == words[[float(c) for c in chances].index(max(map(float, chances)))]
        assert sum(map(float, chances)) == pytest.approx(1, abs=1e-3)
    assert "predicted wrong" in result.out


def test_zero_and_one_are_categories(cli, make_csv, quick):
    table = [[str(k % 10), str(int(k % 10 > 4))] for k in range(60)]
    train = make_csv("train.csv", table, ["x", "y"])
    new = make_csv("new.csv", [["1"], ["8"]], ["x"])
    assert cli("predict", train, new, "--target", "y", *quick).code == 0
    head = new.with_name("new-predicted.csv").read_text().splitlines()[0]
    assert head == "x,y_predicted,y_probability_0,y_probability_1"
    assert (
        cli(
            "predict", train, new, "--target", "y", "--task", "regression", "--overwrite", *quick
        ).code
        == 0
    )
    head = new.with_name("new-predicted.csv").read_text().splitlines()[0]
    assert head == "x,y_predicted"


def test_decimal_comma(cli, tmp_path, quick):
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    train.write_text("x;y\n" + "".join(f"{k},5;{k},25\n" for k in range(40)))
    new.write_text("x\n1,5\n2,5\n")
    new.write_text("x;z\n1,5;a\n2,5;b\n")
    result = cli("predict", train, new, "--target", "y", *quick)
    assert result.code == 0
    lines = (tmp_path / "new-predicted.csv").read_text().splitlines()
    assert lines[0] == "x;z;y_predicted"
    assert re.fullmatch(r"1,5;a;\d+(,\d+)?", lines[1])


def test_columns_that_only_one_table_has(cli, houses, make_csv, quick):
    new = make_csv("new.csv", [["50", "?"], ["90", "?"]], ["area", "other"])
    result = cli("predict", houses, new, "--target", "price", *quick)
    assert result.code == 0
    assert "are not used: 'id', 'rooms', 'heating', 'sold', 'garden'" in result.err
    new = make_csv("none.csv", [["50"]], ["size"])
    result = cli("predict", houses, new, "--target", "price", *quick)
    assert result.code == 1
    assert "has none of the columns" in result.err


def test_columns_in_other_case(cli, houses, make_csv, monkeypatch):
    monkeypatch.setattr("grapefill.cli.predict.train", None)
    new = make_csv("new.csv", [["3", "50.5"]], ["rooms", "Area"])
    result = cli("predict", houses, new, "--target", "price")
    assert "are not used: 'id', 'area', 'heating'" in result.err
    assert "Did you mean 'Area' by 'area'?" in result.err
    new = make_csv("new.csv", [["50.5"]], ["Area"])
    result = cli("predict", houses, new, "--target", "price")
    assert "none of the columns" in result.err
    assert "Did you mean 'Area' by 'area'?" in result.err
    assert "Did you mean 'price'?" in cli("predict", houses, new, "--target", "PRICE").err


def test_nothing_to_learn_from(cli, make_csv, rows, new, quick):
    train = make_csv("train.csv", [[*row[:6], ""] for row in rows(9)])
    result = cli("predict", train, new, "--target", "price", *quick)
    assert result.code == 1
    assert "Column 'price' of" in result.err
    assert "has no value, so there is nothing to learn from" in result.err


@pytest.mark.parametrize("target", ["price", "heating"])
def test_name_is_taken(cli, houses, make_csv, monkeypatch, target):
    """And that is said before the work, not after it."""
    name = {"price": "price_predicted", "heating": "heating_probability_wood"}[target]
    new = make_csv("new.csv", [["50", "1"]], ["area", name])
    monkeypatch.setattr("grapefill.cli.predict.train", None)
    result = cli("predict", houses, new, "--target", target)
    assert result.code == 1
    assert f"has a column '{name}' already" in result.err
    assert not new.with_name("new-predicted.csv").exists()


def test_limits(cli, houses, new, quick, tmp_path):
    output, model = tmp_path / "predictions.csv", tmp_path / "price.grape"
    options = ("--target", "price", "--bounds", "price=60000:70000", "-o", output, "-m", model)
    assert cli("predict", houses, new, *options, *quick).code == 0
    values = [float(line.rpartition(",")[2]) for line in output.read_text().splitlines()[1:]]
    assert min(values) == 60_000
    assert max(values) == 70_000
    assert cli("apply", model, new, "-o", tmp_path / "again.csv").code == 0
    assert (tmp_path / "again.csv").read_bytes() == output.read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--target", "price", "--bounds", "area=0:5"), "'area', of which nothing is predicted"),
        (("--target", "rooms", "--categorical", "rooms", "--bounds", "rooms=1:2"), "as a category"),
        (("--target", "price", "--ignore", "price"), "--ignore and --target both name 'price'"),
    ],
)
def test_what_makes_no_sense(cli, houses, new, options, message):
    result = cli("predict", houses, new, *options)
    assert result.code == 1
    assert message in result.err


def test_a_time_limit_that_ends_the_training_is_told(cli, houses, new):
    notes = cli("predict", houses, new, "--target", "price", "--time-limit", "0.01").err
    assert "--time-limit ended the training after" in notes
    assert "With more time, predictions would be closer." in notes


def test_ignored_columns_may_be_lacking(cli, houses, new, quick):
    model = houses.with_name("price.grape")
    options = ("--target", "price", "--ignore", "id", "--model", model)
    assert cli("predict", houses, new, *options, *quick).code == 0
    other = new.with_name("other.csv")
    other.write_text(re.sub("(?m)^[^,]*,", "", new.read_text()))
    result = cli("apply", model, other)
    assert result.code == 0, result.err
    without = [line.split(",") for line in new.with_name("other-predicted.csv").read_text().split()]
    whole = [line.split(",") for line in new.with_name("new-predicted.csv").read_text().split()]
    assert without == [line[1:] for line in whole]


def test_texts_that_are_nearly_all_different(cli, make_csv):
    table = [[str(k), f"${k}.50", "ab"[k % 2]] for k in range(40)]
    train = make_csv("train.csv", table, ["x", "fee", "class"])
    result = cli("predict", train, make_csv("new.csv", [["1"]], ["x"]), "--target", "fee")
    assert result.code == 1
    assert "Column 'fee' of" in result.err
    assert "has 40 different texts in 40 rows, like free text or an identifier" in result.err
    assert "Choose another --target" in result.err
