"""Tables of other formats in a workbook: nothing is changed without a word."""

import datetime
import re

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grapefill.errors import GrapefillWarning, OutputError
from grapefill.files.table_file import read_table

# What the second row is called.
PLACES = {"a.csv": "Line 3", "a.jsonl": "Line 2", "a.parquet": "Row 2"}


@pytest.fixture
def sheet_of(tmp_path):
    """Write the table of a file to a workbook and return its sheet."""

    def convert(file, table=None):
        path = tmp_path / "converted.xlsx"
        file.write(path, file.frame if table is None else table)
        return openpyxl.load_workbook(path).active

    return convert


def test_text_that_begins_like_a_formula_stays_text(read, filled, sheet_of):
    file = read("=a,b\n=1+1,1\n,2\n=SUM(B2:B3),3\n")
    sheet = sheet_of(file, filled(file.frame))
    cells = [(cell.value, cell.data_type) for cell in sheet["A"]]
    assert cells == [("=a", "s"), ("=1+1", "s"), ("=1+1", "s"), ("=SUM(B2:B3)", "s")]


def test_long_integers_are_text(read, filled, sheet_of):
    file = read("a,b,c\n-1234567890123456,1,x\n999999999999999,2,x\n,3,x\n")
    match = "15 digits of a number; those with more are written as text: 'a'."
    with pytest.warns(GrapefillWarning, match=match):
        sheet = sheet_of(file, filled(file.frame, a=1234567890123457))
    values = [cell.value for cell in sheet["A"]]
    assert values == ["a", "-1234567890123456", 999999999999999, "1234567890123457"]


def test_times_with_a_zone_are_in_utc(read, sheet_of):
    file = read("t,b\n2024-02-29T10:00:00+02:00,1\n,2\n")
    with pytest.warns(GrapefillWarning, match="no time zones; .* written in UTC: 't'."):
        sheet = sheet_of(file)
    assert sheet["A2"].value == datetime.datetime(2024, 2, 29, 8)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x" * 32_768, "has more than 32,767 characters"),
        ("x\x07", "has control characters"),
        ("x\x1fy", "has control characters"),
    ],
)
@pytest.mark.parametrize("name", PLACES)
def test_texts_that_no_cell_holds(read, tmp_path, name, cell, message):
    file = read(f"a,b\nx,1\n{cell},2\n")
    file.write(tmp_path / name, file.frame)
    file = read_table(tmp_path / name)
    match = rf"{PLACES[name]} of {re.escape(file.name)}, column 'a', {message}"
    with pytest.raises(OutputError, match=match):
        file.check_target(tmp_path / "out.xlsx")
    assert file.check_target(tmp_path / "out.csv").format == "delimited"


def test_texts_that_a_cell_just_holds(read, sheet_of):
    longest = "x" * 32_767
    assert sheet_of(read(f'a,b\n{longest},1\n"x\ty\nz",2\n'))["A2"].value == longest


def test_too_many_columns(read, tmp_path):
    lines = [",".join(f"{word}{k}" for k in range(16_385)) for word in ("c", "1")]
    file = read("\n".join(lines))
    with pytest.raises(OutputError, match=r"1 rows and 16,385 columns. A sheet .* 16,384"):
        file.check_target(tmp_path / "out.xlsx")


def test_names_and_categories_that_no_cell_holds(read, tmp_path):
    with pytest.raises(OutputError, match=r"The name 'a.x07' of a column of .* has control"):
        read("a\x07,b\nx,1\n").check_target(tmp_path / "out.xlsx")
    path = tmp_path / "coded.parquet"
    pq.write_table(pa.table({"a": pa.array(["x", "y\x07"]).dictionary_encode()}), path)
    with pytest.raises(OutputError, match=r"Row 2 of .*, column 'a', has control characters"):
        read_table(path).check_target(tmp_path / "out.xlsx")
