"""What a file was read as is told where it may not be what was meant."""

import subprocess
from pathlib import Path

import openpyxl
import pytest


@pytest.fixture
def make_workbook(tmp_path):
    """Write a workbook of some sheets, with the same table in each."""

    def make(name, sheets):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for title in sheets:
            sheet = book.create_sheet(title)
            sheet.append(["x", "y"])
            for k in range(30):
                sheet.append([k, 2 * k])
        path = tmp_path / name
        book.save(path)
        return path

    return make


def test_the_first_of_several_sheets(cli, make_workbook):
    book = make_workbook("book.xlsx", ["answers", "notes"])
    result = cli("describe", book)
    assert result.code == 0
    assert "The workbook has 2 sheets, of which the first, 'answers', was read." in result.err
    assert "Add --sheet to read another." in result.err
    assert cli("describe", book, "--sheet", "1").err == ""
    assert cli("describe", make_workbook("one.xlsx", ["answers"])).err == ""


@pytest.mark.parametrize("first", [[], [["x", "y"]]])
def test_a_first_sheet_without_rows(cli, make_workbook, first):
    path = make_workbook("book.xlsx", ["answers", "more"])
    book = openpyxl.load_workbook(path)
    sheet = book.create_sheet("cover", 0)
    for row in first:
        sheet.append(row)
    book.save(path)
    result = cli("describe", path)
    assert result.code == 1
    assert result.err.startswith("Error: Sheet 'cover' of ")
    assert "The workbook also has 'answers', 'more'. Add --sheet and a name" in result.err
    assert cli("describe", path, "--sheet", "more").code == 0


@pytest.mark.parametrize("text", ["a b\n1 2\n3 4\n", "a:b\n1:2\n3:4\n", "a   b\n1   2\n30  4\n"])
def test_one_column_that_may_be_several(cli, tmp_path, text):
    path = tmp_path / "table.txt"
    path.write_text(text)
    result = cli("describe", path)
    assert "was read as one column, " in result.err
    assert "add --delimiter" in result.err
    result = cli("describe", path, "--no-header")
    assert "was read as one column, " in result.err


@pytest.mark.parametrize(
    "text", ["a\n1\n2\n", "my day\n2024-01-01\n2024-01-02\n", "a\nred\nblue\n"]
)
def test_one_column(cli, tmp_path, text):
    path = tmp_path / "table.txt"
    path.write_text(text)
    assert "--delimiter" not in cli("describe", path).err


def test_options_for_one_of_two_files(cli, make_workbook, make_csv, quick):
    book = make_workbook("book.xlsx", ["first", "second"])
    table = make_csv("table.csv", [["1"], ["2"]], ["x"])
    options = ("--target", "y", "--sheet", "second")
    assert cli("predict", book, table, *options, *quick).code == 0
    result = cli("predict", table, table, *options, "--overwrite")
    assert result.code == 1
    assert "--sheet is for Excel workbooks only." in result.err


def test_no_standard_input_or_output(cli, houses, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert "There is no standard input to read." in cli("impute", "-").err
    monkeypatch.setattr("grapefill.cli.work.sys.stdout", None)
    result = cli("impute", houses, "-o", "-")
    assert result.code == 1
    assert "There is no standard output to write to." in result.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_no_space(spawn, houses):
    with Path("/dev/full").open("w") as full:
        process = spawn("describe", houses, stdout=full, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err.decode().startswith("Error: There is no space left where the output goes.")


def test_words_that_may_be_values(cli, make_csv):
    path = make_csv("table.csv", [["red", "1"], ["NA", "2"], ["", "3"], ["blue", "4"]], ["a", "b"])
    result = cli("describe", path)
    assert result.code == 0
    note = " ".join(result.err.split())
    assert "has empty cells, and cells with 'NA', which stand for missing cells too" in note
    assert "If they are values, add --only-na." in note
    assert cli("describe", path, "--only-na").err == ""
    path = make_csv("full.csv", [["red", "1"], ["NA", "2"], ["blue", "4"]], ["a", "b"])
    assert cli("describe", path).err == ""


@pytest.mark.parametrize("option", [("--day-first",), ("--month-first",), ("--decimal", ",")])
def test_options_for_texts_in_json(cli, tmp_path, option):
    path = tmp_path / "table.jsonl"
    path.write_text('{"d": "01/02/2024", "x": "1,234"}\n{"d": "03/04/2024", "x": "5,678"}\n')
    result = cli("describe", path, *option)
    assert result.code == 0
    assert ("do not tell whether day or month comes first" in result.err) is (len(option) == 2)
