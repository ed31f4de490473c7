"""impute, fit and apply: a filled file, a model, a summary."""

import datetime
import math
import re
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grapefill.cli.columns import Plan
from grapefill.files import read_table


def test_impute(cli, houses, quick, changed):
    filled = houses.with_name("filled.csv")
    result = cli("impute", houses, "-o", filled, *quick)
    assert result.code == 0
    changes = changed(houses, filled)
    assert changes
    assert all(was == "" and now for was, now in changes)
    assert ",," not in filled.read_text()
    # How many cells were filled, how well, and where they are.
    assert f"{len(changes)} cells were filled in" in result.out
    assert f"The filled table: {filled}" in result.out
    row = next(line for line in result.out.splitlines() if line.startswith("area "))
    assert re.search(r"area +continuous +\d+ +[\d.]+ +[\d.]+ +only 8 cells", row)
    assert "% wrong" in result.out
    assert " days " in result.out
    assert "held out of training" in result.out


def test_values_are_written_like_their_column(cli, houses, quick):
    filled = houses.with_name("filled.csv")
    cli("impute", houses, "-o", filled, *quick)
    patterns = [r"\d{3}", r"\d+\.\d", r"\d", r"gas|wood", r"2024-\d\d-\d\d", r"yes|no", r"\d+"]
    for line in filled.read_text().splitlines()[1:]:
        for cell, pattern in zip(line.split(","), patterns, strict=True):
            assert re.fullmatch(pattern, cell), line


def test_the_same_seed_gives_the_same_file(cli, houses, quick):
    paths = [houses.with_name(name) for name in ("a.csv", "b.csv", "c.csv")]
    for path, seed in zip(paths, ("1", "1", "2"), strict=True):
        assert cli("impute", houses, "-o", path, "--seed", seed, *quick).code == 0
    one, again, other = (path.read_bytes() for path in paths)
    assert one == again
    assert one != other


def test_default_output_and_overwrite(cli, houses, quick):
    result = cli("impute", houses, *quick)
    filled = houses.with_name("houses-filled.csv")
    assert result.code == 0
    assert filled.exists()
    result = cli("impute", houses, *quick)
    assert result.code == 1
    assert "exists already" in result.err
    assert cli("impute", houses, "--overwrite", *quick).code == 0


def test_quiet(cli, houses, quick):
    result = cli("impute", houses, "--quiet", *quick)
    assert (result.code, result.out, result.err) == (0, "", "")


def test_pipe(spawn, houses, quick):
    process = spawn(
        "impute",
        "-",
        *quick,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate(houses.read_bytes(), timeout=120)
    assert process.returncode == 0, err
    assert out.startswith(b"id,area,rooms")
    assert len(out.splitlines()) == 81
    assert b"cells were filled" in err
    assert b"Training" not in err  # no bar without a terminal


def test_columns(cli, houses, quick, tmp_path):
    filled = tmp_path / "filled.csv"
    options = ["--ignore", "id,sold", "--categorical", "rooms", "--bounds", "price=30000:"]
    result = cli("impute", houses, "-o", filled, "--indicator", *options, *quick)
    assert result.code == 0
    assert result.err.startswith("Note: Of 74 observed cells of column 'price', 7 are outside")
    assert result.err.count("\n") == 1
    lines = [line.split(",") for line in filled.read_text().splitlines()]
    header, body = lines[0], lines[1:]
    assert header[:7] == ["id", "area", "rooms", "heating", "sold", "garden", "price"]
    assert header[7:] == [
        f"missingindicator_{name}"
        for name in ["area", "rooms", "heating", "sold", "garden", "price"]
    ]
    assert any(row[4] == "" for row in body)
    before = [line.split(",") for line in houses.read_text().splitlines()][1:]
    for old, new in zip(before, body, strict=True):
        assert new[7:] == ["1" if cell == "" else "0" for cell in old[1:]]
        if old[6] == "":
            assert float(new[6]) >= 30000
    assert re.search(r"sold +passthrough +0 of \d+", result.out)
    assert re.search(r"rooms +categorical", result.out)


def test_cells_that_stay_empty_are_told(cli, houses, quick):
    before = [line.split(",") for line in houses.read_text().splitlines()][1:]
    empty = sum(row[4] == "" for row in before)
    model = houses.with_name("m.grape")
    result = cli("impute", houses, "--ignore", "id,sold", "--model", model, *quick)
    assert f"{empty} cells are still empty: 'sold' ({empty})." in result.out
    # A column that the model does not know stays as it is, too.
    more = houses.with_name("more.csv")
    header, *lines = houses.read_text().splitlines()
    new = [f"{line},{'' if at else 'x'}" for at, line in enumerate(lines)]
    more.write_text("\n".join([f"{header},note", *new]) + "\n")
    result = cli("apply", model, more)
    assert f"cells are still empty: 'sold' ({empty}), 'note' (79)." in result.out
    assert re.search(r"note +not used +0 of 79", result.out)


def test_nothing_is_said_of_empty_cells_where_there_are_none(cli, houses, quick):
    assert "still empty" not in cli("impute", houses, *quick).out


def test_limits_are_no_values(cli, make_csv, quick):
    table = [[str(k), str(2 * k) if k % 4 else "", ""] for k in range(40)]
    path = make_csv("holes.csv", table, ["a", "x", "none"])
    limits = ("--bounds", "x=0:5", "--bounds", "none=0:5")
    result = cli("impute", path, "--ignore", "x", *limits, *quick)
    assert result.code == 1
    assert "--bounds and --ignore both name the column 'x'" in result.err
    # A column without any value stays empty, too.
    assert cli("impute", path, *limits, *quick).code == 0
    filled = path.with_name("holes-filled.csv").read_text().splitlines()[1:]
    assert all(line.split(",")[1] and line.endswith(",") for line in filled)


def test_what_is_left_empty_is_not_held():
    before = pa.table({"x": [None, float("nan"), 9.0, None]})
    after = pa.table({"x": [None, float("nan"), 9.0, 7.0]})
    held = Plan(bounds={"x": (0.0, 5.0)}).hold(before, after)["x"].to_pylist()
    assert held[0] is None
    assert math.isnan(held[1])
    assert held[2:] == [9.0, 5.0]


def test_levels(cli, make_csv, rows, quick, tmp_path):
    table = [[str(k), ["small", "medium", "large", ""][k % 4]] for k in range(40)]
    path = make_csv("sizes.csv", table, ["n", "size"])
    result = cli("impute", path, "--ordinal", "size=small,medium,large", *quick)
    assert result.code == 0
    assert re.search(r"size +ordinal +10", result.out)
    filled = path.with_name("sizes-filled.csv").read_text()
    assert set(re.findall("[a-z]{5,}", filled)) == {"small", "medium", "large"}


def test_marks(cli, houses, quick, tmp_path):
    marked = tmp_path / "marked.csv"
    marked.write_text(houses.read_text().replace(",,", ",-999,").replace(",\n", ",-999\n"))
    result = cli("impute", marked, "--na", "-999", *quick)
    assert result.code == 0
    assert "-999" not in (tmp_path / "marked-filled.csv").read_text()


def test_notes_are_shown_once_and_in_our_words(cli, make_csv, rows, quick):
    table = [[*row, "", f"text {k}"] for k, row in enumerate(rows(60))]
    header = ["id", "area", "rooms", "heating", "sold", "garden", "price", "none", "remark"]
    result = cli("impute", make_csv("more.csv", table, header), *quick)
    assert result.code == 0
    assert "Note: These columns have no value and stay empty: 'none'." in result.err
    assert result.err.count("pass through unchanged") == 1
    assert "Add --ignore id,remark to accept this" in result.err


def test_nothing_missing(cli, make_csv, quick, monkeypatch):
    path = make_csv("full.csv", [[str(k), str(k * 2)] for k in range(30)], ["a", "b"])
    # There is nothing to train for.
    monkeypatch.setattr("grapefill.imputer.GrapeImputer.fit", None)
    result = cli("impute", path, *quick)
    assert result.code == 0
    assert "No cell was missing; the table is unchanged." in result.out
    assert path.with_name("full-filled.csv").read_bytes() == path.read_bytes()


def test_a_model_is_learned_where_nothing_is_missing(cli, make_csv, quick, tmp_path):
    path = make_csv("full.csv", [[str(k), str(k * 2)] for k in range(30)], ["a", "b"])
    result = cli("impute", path, "--model", tmp_path / "a.grape", *quick)
    assert "No cell was missing; the table is unchanged." in result.out
    assert (tmp_path / "a.grape").exists()


def test_a_time_limit_that_ends_the_training_is_told(cli, houses, quick):
    result = cli("impute", houses, "--time-limit", "0.01")
    assert result.code == 0
    assert re.search(r"--time-limit ended the training after \d+ steps?\. With more", result.err)
    assert "ended the training" not in cli("impute", houses, "--overwrite", *quick).err


def test_nothing_there(cli, make_csv, quick):
    path = make_csv("none.csv", [["", ""]] * 3, ["a", "b"])
    result = cli("impute", path, *quick)
    assert result.code == 1
    assert "has no values at all" in result.err


def test_other_formats(cli, houses, quick, tmp_path):
    result = cli("impute", houses, "-o", tmp_path / "filled.parquet", *quick)
    assert result.code == 0
    table = pq.read_table(tmp_path / "filled.parquet")
    assert [str(kind) for kind in table.schema.types] == [
        "string",
        "double",
        "int64",
        "string",
        "date32[day]",
        "bool",
        "int64",
    ]
    assert sum(column.null_count for column in table.columns) == 0


def test_report_and_model(cli, houses, quick, tmp_path):
    report, model = tmp_path / "report.html", tmp_path / "houses.grape"
    filled = tmp_path / "filled.csv"
    result = cli("impute", houses, "-o", filled, "--report", report, "--model", model, *quick)
    assert result.code == 0
    assert "houses.csv" in report.read_text()
    assert f"The report:       {report}" in result.out
    assert f"The model:        {model}" in result.out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "filled.csv",
        "houses.csv",
        "houses.grape",
        "report.html",
    ]
    # The same table filled with the model that was kept is the same file.
    assert cli("apply", model, houses, "-o", tmp_path / "again.csv").code == 0
    assert (tmp_path / "again.csv").read_bytes() == filled.read_bytes()


@pytest.mark.parametrize("command", ["impute", "fit", "predict"])
def test_training_that_was_cut_off_goes_on(cli, houses, quick, monkeypatch, command):
    tmp_path = houses.parent
    model, filled = tmp_path / "houses.grape", tmp_path / "filled.csv"
    arguments = (command, houses, "--model", model, *quick, "--checkpoint-every", "0.000001s")
    if command != "fit":
        arguments += ("-o", filled)
    if command == "predict":
        arguments += (houses, "--target", "price")

    def result():
        """Return what the model does to a table; it knows how long training took."""
        if command == "fit":
            assert cli("apply", model, houses, "-o", filled).code == 0
        content = filled.read_bytes()
        filled.unlink()
        model.unlink()
        return content

    assert cli(*arguments).code == 0
    undisturbed = result()
    steps = []

    def power_cut(_, progress):
        steps.append(progress.step)
        if len(steps) == 8:
            raise SystemError("the lights went out")

    monkeypatch.setattr("grapefill.cli.terminal.Bar.train", power_cut)
    assert cli(*arguments).code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "houses.csv",
        "houses.grape.checkpoint",
    ]
    first = len(steps)
    again = cli(*arguments)
    assert again.code == 0
    assert "Training was cut off before and goes on from step 8." in again.err
    assert steps[first] > 1  # it did not start afresh
    assert not (tmp_path / "houses.grape.checkpoint").exists()
    assert result() == undisturbed


@pytest.fixture
def model(cli, houses, quick, tmp_path):
    path = tmp_path / "houses.grape"
    result = cli("fit", houses, "--model", path, "--na", "-999", "--bounds", "area=:100", *quick)
    assert result.code == 0
    assert "filled by" in result.out
    return path


class TestApply:
    def test_new_rows(self, cli, model, make_csv, rows, changed):
        new = make_csv("new.csv", rows(12, seed=5))
        result = cli("apply", model, new)
        filled = new.with_name("new-filled.csv")
        assert result.code == 0
        assert changed(new, filled)
        assert ",," not in filled.read_text()
        assert "cells were filled" in result.out

    def test_columns_are_read_as_they_were(self, cli, model, make_csv):
        row = ["7", "-999", "", "", "2024-01-31", "", "50000"]
        new = make_csv("new.csv", [row])
        assert cli("apply", model, new).code == 0
        filled = new.with_name("new-filled.csv").read_text().splitlines()[1].split(",")
        assert filled[0] == "7"
        assert re.fullmatch(r"\d+\.\d", filled[1])
        assert float(filled[1]) <= 100
        assert re.fullmatch(r"\d", filled[2])
        assert filled[3] in ("gas", "wood")
        assert filled[5] in ("yes", "no")

    def test_other_order_and_other_columns(self, cli, model, tmp_path):
        new = tmp_path / "new.csv"
        new.write_text(
            "price,extra,garden,sold,heating,rooms,area,id\n50000,,yes,2024-01-31,gas,2,,x\n"
        )
        assert cli("apply", model, new).code == 0
        filled = (tmp_path / "new-filled.csv").read_text().splitlines()[1].split(",")
        assert filled[:6] == ["50000", "", "yes", "2024-01-31", "gas", "2"]
        assert filled[6]

    def test_lacking_columns(self, cli, model, make_csv):
        result = cli("apply", model, make_csv("new.csv", [["1", "2"]], ["id", "area"]))
        assert result.code == 1
        assert "lacks columns that the model was made from: 'rooms', 'heating'" in result.err

    def test_columns_in_other_case(self, cli, model, make_csv, rows):
        header = ["id", "Area", "rooms", "heating", "sold", "garden", "PRICE"]
        result = cli("apply", model, make_csv("new.csv", rows(3), header))
        assert result.code == 1
        assert "lacks columns that the model was made from: 'area', 'price'." in result.err
        assert "Did you mean 'Area' by 'area', 'PRICE' by 'price'?" in result.err
        assert "rename them." in result.err

    def test_columns_that_were_not_learned_from_may_be_lacking(
        self, cli, make_csv, rows, quick, monkeypatch
    ):
        table = [[*row, ""] for row in rows()]
        header = ["id", "area", "rooms", "heating", "sold", "garden", "price", "none"]
        train = make_csv("train.csv", table, header)
        model = train.with_name("model.grape")
        assert cli("fit", train, "--model", model, "--ignore", "id,sold", *quick).code == 0
        keep = [1, 2, 3, 5, 6]
        new = make_csv(
            "new.csv",
            [[row[k] for k in keep] for row in rows(12, seed=5)],
            [header[k] for k in keep],
        )
        result = cli("apply", model, new)
        assert result.code == 0, result.err
        assert "passthrough" not in result.out
        filled = new.with_name("new-filled.csv")
        content = filled.read_text()
        assert content.startswith("area,rooms,heating,garden,price\n")
        assert ",," not in content
        # The same for a file that is filled in parts.
        monkeypatch.setattr("grapefill.cli.stream.LARGE_BYTES", 10)
        assert cli("apply", model, new, "--overwrite").code == 0
        assert filled.read_text() == content
        columnar = new.with_suffix(".parquet")
        read_table(new).write(columnar, read_table(new).frame)
        assert cli("apply", model, columnar).code == 0
        names = pq.read_table(new.with_name("new-filled.parquet")).column_names
        assert names == [header[k] for k in keep]

    def test_wrong_cells(self, cli, model, make_csv, rows):
        table = rows(3)
        table[1][1] = "large"
        result = cli("apply", model, make_csv("new.csv", table))
        assert result.code == 1
        assert "Line 3 of" in result.err
        assert "column 'area': 'large' is not a number" in result.err
        assert "or add --na large if it stands for a missing one." in result.err

    def test_from_parquet(self, cli, houses, model, tmp_path, quick):
        file = read_table(houses)
        file.write(tmp_path / "houses.parquet", file.frame)
        assert cli("apply", model, tmp_path / "houses.parquet").code == 0
        table = pq.read_table(tmp_path / "houses-filled.parquet")
        assert sum(column.null_count for column in table.columns) == 0
        # And a model that was made from Parquet fills text.
        other = tmp_path / "other.grape"
        assert cli("fit", tmp_path / "houses.parquet", "--model", other, *quick).code == 0
        assert cli("apply", other, houses, "-o", tmp_path / "filled.csv").code == 0
        assert ",," not in (tmp_path / "filled.csv").read_text()

    def test_many_rows_are_filled_in_parts(self, cli, model, make_csv, rows, monkeypatch):
        new = make_csv("new.csv", rows(50, seed=3))
        assert cli("apply", model, new).code == 0
        whole = new.with_name("new-filled.csv").read_bytes()
        monkeypatch.setattr("grapefill.cli.work.SLICE", 7)
        assert cli("apply", model, new, "--overwrite").code == 0
        assert new.with_name("new-filled.csv").read_bytes() == whole


def test_demo(cli, tmp_path):
    """Also where there are files already, which are replaced only if that is asked for."""
    filled, table = (tmp_path / "demo" / name for name in ("penguins-filled.csv", "penguins.csv"))
    filled.parent.mkdir()
    filled.write_text("mine")
    result = cli("demo", "--folder", filled.parent)
    assert result.code == 1
    assert "penguins-filled.csv': the file exists already" in result.err
    assert not table.exists()
    result = cli("demo", "--folder", filled.parent, "--overwrite")
    assert result.code == 0
    assert "Palmer penguins: 344 rows, 8 columns, 19 empty cells" in result.out
    assert result.out.count("? →") == 19
    assert "every cell that had a value is as it was" in result.out
    assert filled.read_text() != "mine"
    table.write_text("mine")
    result = cli("demo", "--folder", filled.parent)
    assert "penguins.csv': the file exists already" in result.err
    assert table.read_text() == "mine"


def test_formulas_of_a_workbook_are_not_counted_as_filled(cli, tmp_path, quick):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["a", "b"])
    for row in range(2, 42):
        sheet.append([row, None if row == 9 else f"=A{row}*2" if row % 4 == 0 else 2 * row])
    book.save(tmp_path / "in.xlsx")
    result = cli("impute", tmp_path / "in.xlsx", "-o", tmp_path / "out.xlsx", *quick)
    assert result.code == 0
    assert "10 in 'b'" in result.err
    assert "1 of 11" in result.out
    assert "1 cell was filled" in result.out
    filled = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert filled["B4"].value == "=A4*2"
    assert isinstance(filled["B9"].value, int)


def test_times_with_a_zone_in_a_workbook(cli, quick, make_csv, tmp_path):
    """A workbook has none, so grapefill writes them in UTC, and reads them so again."""
    openpyxl = pytest.importorskip("openpyxl")
    days = [f"2024-06-{day:02d}T{day % 12:02d}:00:00Z" for day in range(1, 29)]
    cells = [[str(at), "" if at % 5 == 1 else day] for at, day in enumerate(days)]
    data, model = make_csv("z.csv", cells, ["at", "when"]), tmp_path / "m.grape"
    book = tmp_path / "filled.xlsx"
    assert cli("impute", data, "-m", model, "-o", book, *quick).code == 0
    sheet = openpyxl.load_workbook(book).active
    assert sheet["B2"].value.isoformat() == "2024-06-01T01:00:00"
    emptied = sheet["B4"].value
    sheet["B4"].value = None
    sheet.parent.save(tmp_path / "again.xlsx")
    result = cli("apply", model, tmp_path / "again.xlsx", "-o", tmp_path / "out.xlsx")
    assert result.code == 0
    assert "Workbooks know no time zones: times of 'when' are taken to be in UTC" in result.err
    again = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert again["B2"].value.isoformat() == "2024-06-01T01:00:00"
    assert abs(again["B4"].value - emptied) < datetime.timedelta(days=28)
