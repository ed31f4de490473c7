import datetime
import io
import zipfile

import openpyxl
import pyarrow as pa
import pytest
from openpyxl.styles import Font

from grapefill.errors import GrapefillWarning, InputError
from grapefill.files.cells.formats import ColumnFormat
from grapefill.files.table_file import read_table

DAY = datetime.datetime(2024, 2, 29)


def workbook(rows, **more):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "data"
    for row in rows:
        sheet.append(row)
    for name, cells in more.items():
        other = book.create_sheet(name)
        for row in cells:
            other.append(row)
    return book


def content_of(book):
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def formulas_without_results():
    return pytest.warns(GrapefillWarning, match="has its formulas without results")


def cells_of(content, sheet="data"):
    book = openpyxl.load_workbook(io.BytesIO(content))
    return [list(row) for row in book[sheet].iter_rows(values_only=True)]


ROWS = [
    ["n", "x", "s", "ok", "d", "zip", "f"],
    [1, 1.5, "a", True, DAY, "007", "=A2*2"],
    [None, None, None, None, None, None, None],
    [None, 2.25, None, None, None, "NA", "=A4*2"],
    [3, "-", "b", False, DAY, None, "=A5*2"],
]


def test_only_holes_change(read, written):
    book = workbook(ROWS, notes=[["keep", "me"]])
    sheet = book["data"]
    sheet["C4"].font = Font(bold=True)
    for row in (2, 5):
        sheet[f"B{row}"].number_format = "0.00"
        sheet[f"E{row}"].number_format = "DD.MM.YYYY"
    sheet.column_dimensions["A"].width = 33
    with pytest.warns(GrapefillWarning, match=r"formula that has no result, or an error: 3 in 'f'"):
        file = read(content_of(book), "a.xlsx")
    assert [str(kind) for kind in file.frame.schema.types] == [
        "int64",
        "double",
        "string",
        "bool",
        "date32[day]",
        "string",
        "null",
    ]
    assert file.frame["x"].to_pylist() == [1.5, 2.25, None]
    new = {
        "n": 2,
        "x": 7.123456,
        "s": "c",
        "ok": True,
        "d": datetime.date(2024, 5, 6),
        "zip": "010",
    }
    frame = file.frame
    for j, (name, value) in enumerate(new.items()):
        frame = frame.set_column(j, name, frame[name].fill_null(value))
    with formulas_without_results():
        after = written(file, frame)
    cells = cells_of(after)
    assert cells[3] == [2, 2.25, "c", True, datetime.datetime(2024, 5, 6), "010", "=A4*2"]
    assert cells[4] == [3, 7.12, "b", False, DAY, "010", "=A5*2"]
    assert cells[:3] == ROWS[:3]
    assert cells_of(after, "notes") == [["keep", "me"]]
    sheet = openpyxl.load_workbook(io.BytesIO(after))["data"]
    assert sheet["C4"].font.bold
    assert sheet["E4"].number_format == "DD.MM.YYYY"
    assert sheet["B5"].number_format == "0.00"
    assert sheet.column_dimensions["A"].width == 33


def test_formulas_are_never_filled(read, written, tmp_path):
    # Without results, as openpyxl saves them, and beside the table.
    rows = [["a", "b"], [1, 5], [2, "=A3*2"], [3, None], [None, "=SUM(B2:B4)", None, "=B5"]]
    with pytest.warns(GrapefillWarning, match="no result, or an error: 1 in 'b'"):
        file = read(content_of(workbook(rows)), "a.xlsx")
    # The last row has no value.
    assert file.frame.to_pydict() == {"a": [1, 2, 3], "b": [5, None, None]}
    table = pa.table({"a": [1, 2, 3], "b": [5, 6, 7], "hole": [False, True, True]})
    with formulas_without_results():
        cells = cells_of(written(file, table))
    assert [row[1] for row in cells] == ["b", 5, "=A3*2", 7, "=SUM(B2:B4)"]
    assert [row[3:5] for row in cells[-2:]] == [[None, 1], ["=B5", None]]
    with pytest.warns(GrapefillWarning, match="their cells are empty there"):
        file.write(tmp_path / "a.csv", table)
    assert (tmp_path / "a.csv").read_text().splitlines()[2:] == ["2,,true", "3,7,true"]


def test_formulas_with_an_error_are_never_filled(read, written):
    content = content_of(workbook([["a", "b"], [1, 5], [0, "=1/A3"], [2, "=1/A4"], [3, None]]))
    parts = {"<f>1/A3</f><v />": (' t="e"', "#DIV/0!"), "<f>1/A4</f><v />": ("", "0.5")}
    before, buffer = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in before.namelist():
            part = before.read(name).decode()
            for old, (kind, result) in parts.items():
                new = old.replace("<v />", f"<v>{result}</v>")
                part = part.replace(f"><{old[1:]}", f"{kind}>{new}")
            archive.writestr(name, part)
    with pytest.warns(GrapefillWarning, match="no result, or an error: 1 in 'b'"):
        file = read(buffer.getvalue(), "a.xlsx")
    assert file.frame["b"].to_pylist() == [5, None, 0.5, None]
    table = pa.table({"b": [5.0, 6.0, 0.5, 7.0]})
    with formulas_without_results():
        cells = cells_of(written(file, table))
    assert [row[1] for row in cells] == ["b", 5, "=1/A3", "=1/A4", 7]


def test_other_formats_are_as_exact(read, tmp_path):
    file = read(content_of(workbook([["a", "n"], [1.25, 1], [None, 2]])), "a.xlsx")
    table = pa.table({"a": [1.25, 97.11499999999998], "n": [1, 2], "p": [0.123456, None]})
    shape = ColumnFormat("decimal", decimals=4, fixed=False)
    file.write(tmp_path / "b.csv", table, formats={"p": shape})
    assert (tmp_path / "b.csv").read_text() == "a,n,p\n1.25,1,0.1235\n97.11,2,\n"


def test_sheets(read):
    book = workbook([["a"], [1]], other=[["b"], ["x"]])
    content = content_of(book)
    assert read(content, "a.xlsx").frame.column_names == ["a"]
    assert read(content, "a.xlsx", sheet="other").frame.column_names == ["b"]
    assert read(content, "a.xlsx", sheet="2").frame.column_names == ["b"]
    with pytest.raises(InputError, match=r"no sheet 'third'. It has 'data', 'other'"):
        read(content, "a.xlsx", sheet="third")


def test_table_away_from_the_corner(read, written):
    book = openpyxl.Workbook()
    sheet = book.active
    for row, cells in enumerate([["a", "b"], [1, "x"], [None, "y"]], start=3):
        for column, value in enumerate(cells, start=2):
            sheet.cell(row, column).value = value
    file = read(content_of(book), "a.xlsx")
    assert file.frame.to_pydict() == {"a": [1, None], "b": ["x", "y"]}
    assert file.where(1) == "row 5"
    table = pa.table({"a": [1, 2], "b": ["x", "y"], "hole": [False, True]})
    after = openpyxl.load_workbook(io.BytesIO(written(file, table))).active
    assert (after["B5"].value, after["D3"].value, after["D5"].value) == (2, "hole", 1)


def test_times_and_formulas(read):
    book = workbook([["t"], [datetime.datetime(2024, 2, 29, 12, 30)], [None]])
    assert str(read(content_of(book), "a.xlsx").frame["t"].type) == "timestamp[s]"


def test_times_of_day_stay_so(read, written):
    ten, noon = datetime.time(10), datetime.time(12, 30)
    book = workbook([["t", "n"], [ten, 1], [None, 2], [noon, 3]])
    with pytest.warns(GrapefillWarning, match="it holds times of day: row 2 has '10:00:00'"):
        file = read(content_of(book), "a.xlsx")
    assert file.frame["t"].to_pylist() == ["10:00:00", None, "12:30:00"]
    after = written(file, pa.table({"t": ["10:00:00", "10:00:00", "12:30:00"]}))
    assert [row[0] for row in cells_of(after)] == ["t", ten, ten, noon]


def test_numbers_among_words_stay_so(read, written):
    file = read(content_of(workbook([["a", "n"], [1, 1], [None, 2], ["x", 3]])), "a.xlsx")
    after = written(file, pa.table({"a": ["1", "1", "x"]}))
    assert [row[0] for row in cells_of(after)] == ["a", 1, 1, "x"]


def test_mixed_columns_are_text(read):
    book = workbook([["a"], *([k] for k in range(9)), ["x"]])
    with pytest.warns(GrapefillWarning, match="holds numbers, but row 11 has 'x'"):
        file = read(content_of(book), "a.xlsx")
    assert file.frame["a"].to_pylist()[-2:] == ["8", "x"]


def test_types_as_before(read):
    first = read(content_of(workbook([["a", "b"], [1.5, "x"], [2, "y"]])), "a.xlsx")
    again = read(
        content_of(workbook([["a", "b"], [None, 7], [3, None]])), "b.xlsx", types=first.types
    )
    assert [str(kind) for kind in again.frame.schema.types] == ["double", "string"]


def test_erased_and_own_marks(read, written):
    file = read(content_of(workbook([["a"], [1], [-9], [3]])), "a.xlsx", na=["-9"])
    assert file.frame["a"].to_pylist() == [1, None, 3]
    table = pa.table({"a": pa.array([None, 2, 3], pa.int64())})
    assert cells_of(written(file, table, erase=True)) == [["a"], [None], [2], [3]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "is empty"),
        ([["a", "b"]], "names but no rows"),
        ([["a", "a"], [1, 2]], "Two columns .* are called 'a'"),
        ([["Prices"], ["a", "b", "c"], [1, 2, 3]], "names few of its 3 .* row 2 looks like the"),
        ([["Prices"], [], ["a", "b"], ["x", "y"]], "row 3 looks like the names. Delete the rows"),
    ],
)
def test_refused(read, rows, message):
    with pytest.raises(InputError, match=message):
        read(content_of(workbook(rows)), "a.xlsx")


def test_not_a_workbook(read):
    with pytest.raises(InputError, match="not an Excel workbook"):
        read(b"a,b\n1,2\n", "a.xlsx")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.txt", "x")
    with pytest.raises(InputError, match="not an Excel workbook"):
        read(buffer.getvalue(), "a.xlsx")


def test_what_is_lost_is_named(tmp_path):
    from openpyxl.chart import BarChart, Reference

    book = workbook([["a", "b"], [1, 1], [None, 1]])
    chart = BarChart()
    chart.add_data(Reference(book["data"], min_col=1, min_row=1, max_row=2))
    book["data"].add_chart(chart, "C2")
    path = tmp_path / "a.xlsx"
    book.save(path)
    file = read_table(path)
    with pytest.warns(GrapefillWarning, match="will lack its charts"):
        file.write(tmp_path / "b.xlsx", pa.table({"a": [1, 2]}))


def test_no_line_of_names(read):
    file = read(content_of(workbook([[1, "x"], [None, "y"]])), "a.xlsx", header=False)
    assert read(content_of(workbook([["a"], [1], [None], [3]])), "b.xlsx").frame.num_rows == 3
    assert file.frame.to_pydict() == {"column 1": [1, None], "column 2": ["x", "y"]}


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([["n", "m"], ["a", "b"], ["x", "y"]], ["n", "m"]),
        ([["n"], ["a"], ["x"]], ["n"]),
        ([["n", None, None], [1, 2, 3], [4, 5, 6]], ["n", "Unnamed: 1", "Unnamed: 2"]),
        ([["n", None, None], ["a", 2, 3], ["b", 5, 6]], ["n", "Unnamed: 1", "Unnamed: 2"]),
    ],
)
def test_what_is_no_title(read, rows, names):
    assert read(content_of(workbook(rows)), "a.xlsx").frame.column_names == names


def test_small_numbers_are_not_zero(read, written):
    file = read(content_of(workbook([["a", "n"], [3e-07, 1], [1.5e-06, 2], [None, 3]])), "a.xlsx")
    cells = cells_of(written(file, pa.table({"a": [3e-07, 1.5e-06, 4.4444e-07]})))
    assert [row[0] for row in cells] == ["a", 3e-07, 1.5e-06, 4e-07]


@pytest.mark.parametrize(
    ("cells", "fill", "result"),
    [("1.25\n7.5", 2.3456, 2.35), ("1.5e-08\n2.5e-07", 2.34e-09, 2.3e-09)],
)
def test_few_whole_numbers_are_filled_as_before(read, written, cells, fill, result):
    types = read(f"a\n{cells}\n", "before.csv").types
    file = read(content_of(workbook([["a", "n"], [1, 1], [None, 2]])), "a.xlsx", types=types)
    after = cells_of(written(file, pa.table({"a": [1.0, fill]})))
    assert after == [["a", "n"], [1, 1], [result, 2]]


def test_levels_are_values(read, written):
    rows = [["level", "n"], ["None", 1], ["Low", 2], [None, 3], ["NA", 4]]
    types = {"level": {"type": "text", "levels": ["None", "Low"]}}
    file = read(content_of(workbook(rows)), "a.xlsx", types=types)
    assert file.frame["level"].to_pylist() == ["None", "Low", None, None]
    again = read(content_of(workbook(rows)), "b.xlsx", types=file.types)
    assert again.frame["level"].to_pylist() == ["None", "Low", None, None]


def test_formulas_beside_the_table_lose_their_results_too(read, written):
    content = content_of(workbook([["a", "b"], [1, 5], [None, 6, None, "=B2"]]))
    file = read(content, "a.xlsx")
    with formulas_without_results():
        cells = cells_of(written(file, pa.table({"a": [1, 2]})))
    assert cells[2] == [2, 6, None, "=B2"]


def test_text_that_begins_like_a_formula_stays_text(read, written):
    book = workbook([["a", "n"], ["=x", 1], [None, 2]])
    book["data"]["A2"].data_type = "s"
    file = read(content_of(book), "a.xlsx")
    assert file.frame["a"].to_pylist() == ["=x", None]
    after = written(file, pa.table({"a": ["=x", "=x"], "=more": ["=y", None]}))
    sheet = openpyxl.load_workbook(io.BytesIO(after))["data"]
    found = [(sheet[at].value, sheet[at].data_type) for at in ("A2", "A3", "C1", "C2")]
    assert found == [("=x", "s"), ("=x", "s"), ("=more", "s"), ("=y", "s")]


def test_merged_cells(read, written, tmp_path):
    book = workbook([["a", "b"], [1, None], [2, 3], [None, 4]])
    book["data"].merge_cells("A2:B2")
    # Beside the table, where columns are added.
    book["data"].merge_cells("C1:D3")
    with pytest.warns(GrapefillWarning, match="merged with others .*: 1 in 'b'. They stay so"):
        file = read(content_of(book), "a.xlsx")
    table = pa.table({"a": [1, 2, 3], "b": [9, 3, 4], "hole": [0, 0, 1]})
    assert file.as_written(table)["b"].to_pylist() == [None, 3, 4]
    cells = cells_of(written(file, table))
    assert [row[:2] for row in cells] == [["a", "b"], [1, None], [2, 3], [3, 4]]
    assert [row[4] for row in cells] == ["hole", 0, 0, 1]
    file.write(tmp_path / "a.csv", table)
    assert (tmp_path / "a.csv").read_text() == "a,b,hole\n1,,0\n2,3,0\n3,4,1\n"
