"""What options say about columns is kept, or refused before any training."""

import json

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grapefill.cli.arguments import Columns
from grapefill.cli.columns import Plan
from grapefill.files import read_table

LEVELS = ["None", "Low", "High", ""]


@pytest.fixture
def untrained(monkeypatch):
    """Let training fail."""
    monkeypatch.setattr("grapefill.cli.impute.train", None)


@pytest.fixture
def levels(make_csv, tmp_path):
    """A table with a level called None, as a file of some format."""

    def make(suffix):
        rows = [[str(k), LEVELS[k % 4]] for k in range(40)]
        path = make_csv("levels.csv", rows, ["n", "level"])
        if suffix == ".csv":
            return path
        book = openpyxl.Workbook()
        book.active.append(["n", "level"])
        for number, level in rows:
            book.active.append([int(number), level or None])
        book.save(path.with_suffix(suffix))
        return path.with_suffix(suffix)

    return make


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_level_called_none(cli, levels, quick, suffix):
    path = levels(suffix)
    model, filled, again = (path.with_name(f"{n}{suffix}") for n in ("m", "filled", "again"))
    order = ("--ordinal", "level=None,Low,High")
    result = cli("impute", path, *order, "--model", model, "-o", filled, *quick)
    assert result.code == 0, result.err
    assert "10 cells were filled" in result.out
    assert cli("apply", model, path, "-o", again).code == 0
    types = {"level": {"type": "text", "levels": LEVELS[:3]}}
    for name in (filled, again):
        found = read_table(name, types=types).frame["level"].to_pylist()
        assert [level for k, level in enumerate(found) if LEVELS[k % 4]] == LEVELS[:3] * 10
        assert set(found[3::4]) <= set(LEVELS[:3])


def test_codes_in_json(cli, tmp_path, quick):
    codes, path, filled = [1234, 567, None], tmp_path / "zip.jsonl", tmp_path / "filled.jsonl"
    lines = [json.dumps({"zip": codes[k % 3], "n": k}) for k in range(30)]
    path.write_text("\n".join(lines) + "\n")
    assert cli("impute", path, "--text", "zip", "-o", filled, *quick).code == 0
    after = filled.read_text().splitlines()
    assert [line for k, line in enumerate(after) if k % 3 < 2] == [
        line for k, line in enumerate(lines) if k % 3 < 2
    ]
    assert {json.loads(line)["zip"] for line in after[2::3]} <= {1234, 567}


@pytest.mark.usefixtures("untrained")
def test_columns_that_cannot_be_text(cli, tmp_path, houses):
    path = tmp_path / "zip.parquet"
    pq.write_table(pa.table({"zip": [1, None, 3], "s": ["x", "y", "z"]}), path)
    result = cli("impute", path, "--text", "zip,s")
    assert result.code == 1
    assert "--text names the column 'zip', whose cells are int64 in the file" in result.err
    assert "Add --categorical instead" in " ".join(result.err.split())
    result = cli("impute", houses, "--text", "nope")
    assert result.code == 1
    assert "--text names the column 'nope', which is not there." in result.err


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    ("limits", "code", "message"),
    [
        (["rooms=0:inf"], 2, "names no limits"),
        (["rooms=-inf:5"], 2, "names no limits"),
        (["area=nan:"], 2, "names no limits"),
        (["rooms=0.2:0.8"], 1, "no whole number for the column 'rooms'"),
        (["rooms=1e30:"], 1, "no whole number for the column 'rooms'"),
        (["rooms=:-1e30"], 1, "no whole number for the column 'rooms'"),
        (["rooms=0:", "rooms=:9"], 1, "--bounds names the column 'rooms' twice"),
    ],
)
def test_limits_that_cannot_be_kept(cli, houses, limits, code, message):
    options = [word for limit in limits for word in ("--bounds", limit)]
    result = cli("impute", houses, *options)
    assert result.code == code
    assert message in result.err


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    ("limits", "end"),
    [("area=500:900", "500"), ("area=500:", "500"), ("rooms=:0", "0"), ("area=0:900", None)],
)
def test_limits_far_from_what_is_observed(cli, houses, limits, end):
    notes = cli("impute", houses, "--bounds", limits).err
    assert ("leaves out every observed value of column" in notes) == (end is not None)
    assert end is None or f"all that is filled in will be about {end}." in notes


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ("val=2:6", "column 'val', 5 are outside of --bounds: 2 below and 3 above."),
        ("val=2.5:", "column 'val', 3 are outside of --bounds: 3 below and 0 above."),
        ("val=:8.5", "column 'val', 1 is outside of --bounds: 0 below and 1 above."),
        ("val=0:9", None),
        ("val=0:", None),
    ],
)
def test_limits_that_some_observed_values_do_not_keep(cli, make_csv, limits, words):
    rows = [[str(k), "ab"[k % 2]] for k in range(10)] + [["", "a"]]
    notes = cli("impute", make_csv("table.csv", rows, ["val", "c"]), "--bounds", limits).err
    assert ("outside of --bounds" in notes) == (words is not None)
    assert words is None or f"Of 10 observed cells of {words} The column goes from 0 to 9." in notes


@pytest.mark.usefixtures("untrained")
def test_limits_for_large_integers(cli, make_csv):
    rows = [[str(2**60 + k), "ab"[k % 2]] for k in range(10)] + [["-1", "a"]]
    notes = cli("impute", make_csv("table.csv", rows, ["n", "c"]), "--bounds", "n=0:").err
    assert "Of 11 observed cells of column 'n', 1 is outside of --bounds" in notes


@pytest.mark.parametrize("limits", ["n=0:1e30", "n=-1e30:9", "n=-1e30:1e30"])
def test_limits_that_an_integer_never_reaches(make_csv, limits):
    file = read_table(make_csv("n.csv", [["1", "x"], ["", "y"]], ["n", "s"]))
    plan = Plan.make(Columns(bounds=(limits,)), file)
    after = file.frame.set_column(0, "n", pa.array([1, 5]))
    assert plan.hold(file.frame, after)["n"].to_pylist() == [1, 5]


@pytest.mark.usefixtures("untrained")
def test_a_workbook_that_cannot_be_written(cli, make_csv, tmp_path):
    path = make_csv("bell.csv", [["x", "1"], ["ring\a", ""]], ["a", "b"])
    result = cli("impute", path, "-o", tmp_path / "bell.xlsx")
    assert result.code == 1
    words = " ".join(result.err.split())
    assert "Line 3 of" in words
    assert "column 'a', has control characters" in words
    assert not (tmp_path / "bell.xlsx").exists()


def test_rules_and_deltas_hold_in_files_and_models(cli, make_csv, quick, tmp_path):
    rows = [[str(k % 9), "" if k % 3 else str(k % 9 + 2), str(k % 5)] for k in range(60)]
    path = make_csv("table.csv", rows, ["low", "high", "x"])
    plain, ruled, again = (tmp_path / f"{name}.csv" for name in ("plain", "ruled", "again"))
    model = tmp_path / "a.grape"
    assert cli("impute", path, "-o", plain, *quick).code == 0
    options = ("--rule", "high >= low + 7", "--delta", "high=1", "--model", model)
    result = cli("impute", path, "-o", ruled, *options, *quick)
    assert result.code == 0
    assert "20 rows break the rule 'high >= low + 7' and stay so" in result.err
    assert cli("apply", model, path, "-o", again).code == 0
    assert again.read_bytes() == ruled.read_bytes()
    assert plain.read_bytes() != ruled.read_bytes()
    for was, line in zip(rows, ruled.read_text().splitlines()[1:], strict=True):
        low, high, _ = map(int, line.split(","))
        assert high >= low + 7 if was[1] == "" else str(high) == was[1]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--rule", "area >= rom"), 1, "--rule names the column 'rom', which the table"),
        (("--rule", "area > heating"), 1, "--rule names the column 'heating', which does not hold"),
        (("--rule", "area"), 1, "The rule 'area' cannot be read"),
        (("--delta", "area"), 2, "names no number. Write it like income=-500."),
        (("--delta", "aera=1"), 1, "--delta names the column 'aera', which is not there. Did you"),
        (("--delta", "area=1", "--delta", "area=2"), 1, "--delta names the column 'area' twice"),
        (("--delta", "heating=1"), 1, "--delta names the column 'heating', which holds no numbers"),
        (("--delta", "sold=1"), 1, "--delta names the column 'sold', which holds no numbers"),
        (("--delta", "area=1", "--ignore", "area"), 1, "--delta and --ignore both name the column"),
        (("--delta", "rooms=1", "--categorical", "rooms"), 1, "--delta names the column 'rooms'"),
    ],
)
@pytest.mark.usefixtures("untrained")
def test_rules_and_deltas_that_cannot_be(cli, houses, options, code, words):
    result = cli("impute", houses, *options)
    assert result.code == code
    assert words in " ".join(result.err.split())


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--delta", "area,price=5", "--delta takes one column, and 'area,price' names 2. Give --d"),
        ("--bounds", "area, price=0:5", "--bounds takes one column, and 'area, price' names 2."),
        ("--ordinal", "heating,garden=a,b", "--ordinal takes one column, and 'heating,garden' na"),
        ("--delta", "area,prices=5", "--delta names the column 'area,prices', which is not there."),
        ("--target", "area,price", "--target takes one column, and 'area,price' names 2. Choose o"),
    ],
)
def test_options_that_take_one_column(cli, houses, option, value, words):
    command = ("predict", houses, houses) if option == "--target" else ("impute", houses)
    result = cli(*command, option, value)
    assert result.code == 1
    assert words in result.err


@pytest.mark.usefixtures("untrained")
def test_a_name_with_a_comma(cli, make_csv):
    path = make_csv("comma.csv", [["1.5", "x"], ["", "y"], ["4.5", "x"]], ['"a, b"', "c"])
    notes = cli("impute", path, "--bounds", "a, b=0:3", "--delta", "a, b=1").err
    assert "column 'a, b', 1 is outside of --bounds" in notes
    assert "takes one column" not in notes


@pytest.fixture
def table(make_csv):
    """Numbers, whole numbers, an empty column and an identifier."""
    rows = [[f"{k % 9}.5", "" if k % 3 else str(k % 7), "", str(k + 500)] for k in range(60)]
    return make_csv("table.csv", rows, ["a", "b", "none", "id"])


@pytest.mark.parametrize("folder", [False, True])
def test_options_of_columns_that_are_not_filled_with_numbers(cli, table, quick, folder):
    path, filled = table, table.with_name("table-filled.csv")
    if folder:
        path, filled = table.with_name("parts"), table.with_name("parts-filled") / "0.parquet"
        path.mkdir()
        frame = read_table(table).frame.set_column(2, "none", pa.nulls(60))
        pq.write_table(frame, path / filled.name)
    bounds = ("--bounds", "id=0:5000", "--bounds", "none=0:1", "--bounds", "b=0:3")
    options = ("--categorical", "b", "--delta", "none=1", *bounds)
    result = cli("impute", path, *options, *quick)
    assert result.code == 0, result.err
    after = read_table(filled).frame["b"].to_pylist()
    assert all(number <= 3 for k, number in enumerate(after) if k % 3)
    assert max(after) == 6


@pytest.mark.parametrize("option", [("--rule", "a >= zzz"), ("--delta", "id=1")])
def test_a_large_folder_is_refused_before_training(cli, table, tmp_path, monkeypatch, option):
    def fail(*_, **__):
        raise AssertionError("training has begun")

    monkeypatch.setattr("grapefill.training.learn.MEMORY_CELLS", 0)
    monkeypatch.setattr("grapefill.imputer.GrapeImputer._train", fail)
    (tmp_path / "parts").mkdir()
    pq.write_table(read_table(table).frame, tmp_path / "parts" / "0.parquet")
    result = cli("impute", tmp_path / "parts", *option)
    assert result.code == 1
    assert f"Error: {option[0]} names the column" in result.err


@pytest.mark.usefixtures("untrained")
def test_limits_without_a_whole_number(cli, tmp_path):
    path = tmp_path / "floats.parquet"
    pq.write_table(pa.table({"n": [1.0, 2.0, None, 5.0] * 9, "s": ["x", "y"] * 18}), path)
    result = cli("impute", path, "--bounds", "n=1.2:1.8", "--ordinal", "n")
    assert result.code == 1
    assert "No number of column 'n' is within --bounds." in result.err


def test_a_delta_between_two_steps(cli, table, quick):
    notes = cli("impute", table, "--delta", "b=0.4", *quick).err
    assert "Note: --delta of column 'b' is 0.4, but its values go in steps of 1:" in notes
    assert "What --draws writes moves by 0.4 on average." in notes


@pytest.fixture
def whole(make_csv):
    """A table without a hole, of which the last row has its numbers the other way round."""
    rows = [[str(k % 5), str(k % 5 + 2), "xyz"[k % 3]] for k in range(12)]
    return make_csv("whole.csv", [*rows, ["6", "3", "z"]], ["low", "high", "c"])


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--rule", "low >= zzz"), "--rule names the column 'zzz'"),
        (("--rule", "!!!"), "The rule '!!!' cannot be read"),
        (("--delta", "c=1"), "--delta names the column 'c', which holds no numbers"),
        (("--set", "max_stepz=5"), "max_stepz"),
        (("--device", "meta"), "--device 'meta' cannot be used here"),
    ],
)
def test_options_are_checked_where_nothing_is_missing(cli, whole, option, words):
    result = cli("impute", whole, *option)
    assert result.code == 1
    assert words in result.err
    assert not whole.with_name("whole-filled.csv").exists()


@pytest.mark.usefixtures("untrained")
def test_rules_are_held_against_a_table_where_nothing_is_missing(cli, whole):
    result = cli("impute", whole, "--rule", "low <= high", "--delta", "low=1")
    assert result.code == 0, result.err
    words = (
        "1 row breaks the rule 'low <= high' and stays so: its observed cells do. See line 14 of"
    )
    assert words in result.err
    assert whole.with_name("whole-filled.csv").read_bytes() == whole.read_bytes()
    assert cli("impute", whole, "--rule", "low <= high + 3", "--overwrite").err == ""
