"""What a table holds that may not be meant so is told before it is learned."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grapefill.cli.terminal import as_option

LEARNING = pytest.mark.parametrize(
    "command",
    [
        ("impute", "{path}", "-o", "{out}"),
        ("fit", "{path}", "--model", "{out}"),
        ("predict", "{path}", "{path}", "--target", "n", "-o", "{out}"),
    ],
    ids=lambda command: command[0],
)
"""Commands that learn from a table, whose column n is a target."""


@pytest.fixture
def untrained(monkeypatch):
    """Let training fail, after all notes on the table."""
    monkeypatch.setattr("grapefill.cli.impute.train", None)
    monkeypatch.setattr("grapefill.cli.predict.train", None)


@pytest.fixture
def marked(make_csv):
    """A table with -999 in two of its columns."""
    rows = [[str(k), "-999.0" if k % 10 == 3 else f"{k}.5", str(k % 7)] for k in range(50)]
    rows[7][0] = "-999"
    rows[8][2] = ""
    return make_csv("marked.csv", rows, ["n", "score", "z"])


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    "command",
    [
        ("impute", "{path}", "-o", "{out}"),
        ("fit", "{path}", "--model", "{out}"),
        ("predict", "{path}", "{path}", "--target", "z", "-o", "{out}"),
        ("compare", "{path}", "--methods", "mean", "--repeats", "1"),
    ],
    ids=lambda command: command[0],
)
def test_numbers_that_may_mean_missing(cli, marked, tmp_path, command):
    out = tmp_path / "out.csv"
    given = [word.format(path=marked, out=out) for word in command]
    notes = cli(*given).err
    assert (
        "-999 stands far from all other numbers of columns 'n' (1 cell), 'score' (5 cells)" in notes
    )
    assert "add --na -999;" in notes
    assert "stands far" not in cli(*given, "--na", "-999").err
    if command[0] != "predict":
        assert "'score'" not in cli(*given, "--ignore", "score").err


@pytest.mark.usefixtures("untrained")
def test_numbers_that_are_values_elsewhere(cli, make_csv):
    rows = [["99" if k == 5 else str(k % 5), str(90 + k % 20), "ab9"[k % 3]] for k in range(60)]
    for k in range(0, 60, 3):
        rows[k][2] = "99"
    path = make_csv("codes.csv", rows, ["q1", "age", "code"])
    notes = cli("impute", path).err
    assert "99 stands far from all other numbers of column 'q1' (1 cell)" in notes
    assert "99 is also in columns 'age' (3 cells), 'code' (20 cells), which would become" in notes
    assert "empty the cells of 'q1' instead." in notes
    assert "is also in" not in cli("impute", path, "--ignore", "age,code").err


@pytest.mark.usefixtures("untrained")
def test_large_marks_have_no_one_spelling(cli, make_csv):
    rows = [["1e30" if k == 3 else str(k), "99999999" if k == 5 else str(k)] for k in range(30)]
    notes = cli("impute", make_csv("big.csv", rows, ["a", "b"])).err
    assert "1e+30 stands far" in notes
    assert "add --na and the number as the file has it" in notes
    assert "add --na 99999999;" in notes


@pytest.mark.usefixtures("untrained")
@LEARNING
def test_words_that_may_mean_missing(cli, make_csv, tmp_path, command):
    towns = ["Ulm", "Bonn", "Unknown", "", "N.A."]
    wants = ["yes", "no", "maybe", "Prefer not to say", "Don\u2019t know", "Unknown", "-"]
    rows = [[str(k), towns[k % 5], wants[k % 7]] for k in range(70)]
    path = make_csv("words.csv", rows, ["n", "town", "wants"])
    given = [word.format(path=path, out=tmp_path / "out.csv") for word in command]
    notes = cli(*given).err
    assert "'Unknown' in columns 'town' (14 cells), 'wants' (10 cells), " in notes
    assert " and 'Prefer not to say' in column 'wants' (10 cells) may mean missing." in notes
    assert "add --na N.A. --na Unknown --na 'Don\u2019t know' --na 'Prefer not to say';" in notes
    assert "--na -;" not in notes
    less = cli(*given, *("--na=Unknown", "--na=N.A.", "--na=Don\u2019t know")).err
    assert "Note: 'Prefer not to say' in column 'wants' (10 cells) may mean missing." in less
    assert "otherwise it is learned" in less
    assert "may mean missing" not in cli(*given, "--only-na").err


@pytest.mark.usefixtures("untrained")
def test_words_that_are_levels_or_free_text(cli, make_csv):
    rows = [[["none", "some", "much"][k % 3], f"text {k}" if k else "none"] for k in range(60)]
    path = make_csv("levels.csv", rows, ["pain", "remark"])
    assert "'none' in column 'pain' (20 cells) may mean missing" in cli("impute", path).err
    assert "mean missing" not in cli("impute", path, "--ordinal", "pain=none,some,much").err


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize("command", ["impute", "describe", "compare"])
def test_marks_that_no_cell_has(cli, marked, command):
    given = [command, marked, "--na", "-999", "--na", "-99", "--na", "n=99"]
    notes = cli(*given, *(("--methods", "mean") if command == "compare" else ())).err
    assert f"Note: --na -99 was found in no cell of '{marked}'. Check how the file" in notes
    assert "--na n=99 was found in no cell" in notes
    assert "The option names no column: write --na 99, for all of them." in notes
    assert "--na -999 was found" not in notes


@pytest.mark.usefixtures("untrained")
def test_marks_that_one_of_two_files_has(cli, marked, make_csv):
    new = make_csv("new.csv", [["1", "k.A."], ["2", "3.5"]], ["n", "score"])
    options = ("--target", "z", "--na", "k.A.", "--na", "-999", "--na", "-1")
    notes = cli("predict", marked, new, *options).err
    assert notes.count("was found in no cell of") == 1
    assert f"--na -1 was found in no cell of '{marked}' and '{new}'." in notes


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize("command", ["impute", "predict"])
def test_words_in_more_than_one_case(cli, make_csv, command):
    towns, cars = ["Berlin", "Bonn", "berlin", "Berlin", "Bonn"], ["yes", "YES", "maybe", "Yes"]
    rows = [[str(k), towns[k % 5], cars[k % 4], "yYnN"[k % 4]] for k in range(60)]
    path = make_csv("cases.csv", rows, ["n", "town", "car", "bike"])
    given = [path] if command == "impute" else [path, path, "--target", "n"]
    notes = cli(command, *given).err
    assert (
        "as different categories: 'Berlin' (24 cells) and 'berlin' (12 cells) in column 'town'; "
        "'YES' (15 cells), 'Yes' (15 cells) and 'yes' (15 cells) in column 'car'. Write them in "
        "one way if they are the same." in notes
    )
    assert "'bike'" not in notes


def test_describe_tells_of_words_in_more_than_one_case(cli, make_csv):
    rows = [[word, str(k)] for k, word in enumerate(["Ulm", "ulm", "Bonn", "Ulm"] * 5)]
    remarks = cli("describe", make_csv("cases.csv", rows, ["town", "n"])).out
    assert "has 'Ulm' and 'ulm', which differ in upper and lower case only" in remarks


@pytest.fixture
def ticked(make_csv):
    """A table with two boxes to tick, and a column that is known to have one value."""
    rows = [
        [str(k), "x" if k % 3 else "", "Yes" if k % 2 else "", "DE" if k else "", "1"]
        for k in range(50)
    ]
    return make_csv("ticked.csv", rows, ["n", "has car", "has_dog", "country", "one"])


@pytest.mark.usefixtures("untrained")
@LEARNING
def test_boxes_that_are_ticked_or_empty(cli, ticked, tmp_path, command):
    given = [word.format(path=ticked, out=tmp_path / "out.csv") for word in command]
    notes = cli(*given).err
    assert "Columns 'has car' ('x'), 'has_dog' ('Yes') have only one value each; an empty" in notes
    assert "add --ignore 'has car,has_dog' to leave them as they are." in notes
    if command[0] != "predict":
        notes = cli(*given, "--ignore", "has_dog").err
        assert "Column 'has car' has only the value 'x'; an empty cell may mean no." in notes
        assert "only" not in cli(*given, "--ignore", "has car,has_dog").err


@pytest.mark.usefixtures("untrained")
def test_boxes_in_a_file_with_types(cli, tmp_path):
    path = tmp_path / "ticked.parquet"
    columns = {
        "n": [1.5, 2.5, 3.5],
        "b": [True, None, True],
        "one": [1, None, 1],
        "no": [0, 0, None],
    }
    pq.write_table(pa.table(columns), path)
    assert "Columns 'b' (true), 'one' (1) have only one value each" in cli("impute", path).err


def test_describe_tells_of_boxes(cli, ticked):
    remarks = cli("describe", ticked).out.partition("Remarks")[2].partition("Patterns")[0]
    assert remarks.count("has the same value in all observed cells; an empty cell may mean no") == 2
    assert remarks.count("has the same value in all observed cells") == 4


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize("command", ["impute", "describe"])
def test_rows_without_any_value(cli, make_csv, command):
    rows = [[str(k), "ab"[k % 2], f"{k}.5"] for k in range(30)]
    rows[4] = ["", "a", ""]
    result = cli(command, make_csv("whole.csv", rows, ["n", "c", "x"]))
    assert "no value at all" not in result.err
    path = make_csv("blank.csv", [*rows, *[[" ", "", "NA"]] * 5], ["n", "c", "x"])
    notes = cli(command, path).err
    assert f"5 rows have no value at all in '{path}': line 32, line 33, line 34, ..." in notes
    assert "Delete them if they are blank lines" in notes
    path.write_text(path.read_text().rstrip(", NA\n") + "\n,,\n")
    assert "A row has no value at all" in cli(command, path).err


@pytest.mark.usefixtures("untrained")
def test_rows_of_one_column(cli, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("x\n" + "\n".join(["1", '""', "2"] * 10) + "\n")
    assert "no value at all" not in cli("impute", path).err


def test_describe_says_everything_once(cli, make_csv):
    rows = [[f"${k}.50", "abc-"[k % 4], "-999" if k == 3 else str(k)] for k in range(40)]
    path = make_csv("odd.csv", rows, ["price", "class", "n"])
    result = cli("describe", path)
    assert "Column 'price' of" in result.err
    assert "Column 'class' (10 cells) of" in result.err
    remarks = result.out.partition("Remarks")[2].partition("Patterns")[0]
    assert "stored as text" not in remarks
    assert "'-' in 10 cells" not in remarks
    assert "-999 in 1 cell," in remarks
    quiet = cli("describe", path, "--quiet")
    assert quiet.err == ""
    assert "stored as text" in quiet.out
    assert "'-' in 10 cells" in quiet.out
    assert "'-' in 10 cells" in cli("describe", path, "--json").out


def test_dates_that_python_cannot_hold(cli, tmp_path):
    far = pa.array([5_000_000 + k for k in range(40)], pa.int32()).cast(pa.date32())
    fine = pa.array([10**18 + k for k in range(40)], pa.int64()).cast(pa.timestamp("ns"))
    numbers = [None, *map(float, range(39))]
    table = pa.table({"day": far, "at": fine, "n": numbers, "word": ["x", "y"] * 20})
    pq.write_table(table, tmp_path / "far.parquet")
    assert cli("describe", tmp_path / "far.parquet").code == 0


@pytest.mark.usefixtures("untrained")
def test_names_like_options_can_be_pasted(cli, make_csv, tmp_path):
    rows = [[str(k), "x" if k % 3 else ""] for k in range(40)]
    path = make_csv("ticks.csv", rows, ["n", "-flag"])
    command = "impute", path, "-o", tmp_path / "out.csv"
    assert as_option("--ignore", ["-flag"]) == "--ignore=-flag"
    assert "--ignore=-flag" in cli(*command).err
    assert "'-flag'" not in cli(*command, "--ignore=-flag").err


def test_not_a_number_is_no_mark(cli, tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"a": 1, "b": "x"}\n{"a": NaN, "b": "y"}\n{"a": 3, "b": "x"}\n' * 9)
    assert "--na zz was found in no cell" in cli("describe", path, "--na", "zz").err
