"""Lines that are no rows of a table are told of, and no option makes holes of them."""

import pytest

ROWS = [[f"{150 + k % 40}.{k % 10}", str(50 + k % 30), "ab"[k % 2]] for k in range(40)]
NAMES = ["height", "sales", "group"]


@pytest.fixture
def note(cli, make_csv):
    """Return what `describe` says about a file of some lines."""

    def run(lines, *options):
        path = make_csv("table.csv", lines[1:], lines[0])
        return cli("describe", path, *options).err.replace(str(path), "table.csv")

    return run


@pytest.mark.parametrize(
    ("above", "line"),
    [
        ([["Sales report", "", ""]], 2),
        ([["Sales report", "", ""], ["of 2024", "", ""]], 3),
    ],
)
def test_a_title(note, above, line):
    assert note([*above, NAMES, *ROWS]) == (
        f"Error: The first line of 'table.csv' names few of its 3 columns, and line {line} looks "
        "like the names. Delete the lines above it, in a copy.\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        [["", "name", ""], ["a", "b", "c"], *ROWS],
        [["height", "", ""], ["1.5", "20", "a"], *ROWS],
        [["when", "", ""], ["2024-01-01", "Ulm", "yes"], ["2024-01-02", "Bonn", "no"]],
        [["x", "", ""], ["-", "alpha", "beta"], ["1", "gamma", ""]],
        [["word", "", ""], ["one", "eins", "un"], ["two", "zwei", "un"]],
        [["height", "sales", ""], ["1.5", "20", "a"], *ROWS],
    ],
)
def test_names_that_are_lacking(note, lines):
    assert "Error" not in note(lines)


def test_units(note):
    found = note([NAMES, ["cm", "EUR", "z"], *ROWS])
    assert found.startswith(
        "Note: Line 2 of 'table.csv' is no row of values: it has 'cm', 'EUR' in columns of numbers,"
    )
    assert "Delete it, in a copy." in found
    assert "--na" not in found
    assert "--na cm" in note([NAMES, ["cm", "", "z"], *ROWS])


def test_words_in_a_row_of_values(note):
    rows = [[str(k), *row] for k, row in enumerate(ROWS)]
    rows[1] = ["7", "refused", "refused", "a"]
    found = note([["n", *NAMES], *rows])
    assert "no row of values" not in found
    assert found.count("--na refused") == 2
    again = [row[:] for row in ROWS]
    again[1] = again[9] = ["refused", "refused", "a"]
    assert note([NAMES, *again]).count("--na refused") == 2


def test_units_above_another_text(note):
    rows = [row[:] for row in ROWS]
    rows[5][0] = "broken"
    found = note([[*NAMES, "z"], ["cm", "EUR", "", "kg"], *([*row, "5"] for row in rows)])
    assert "it has 'EUR', 'kg' in columns of numbers, 'sales', 'z'" in found
    assert "--na" not in found


def test_names_that_come_again(note):
    found = note([NAMES, *ROWS, NAMES, *ROWS])
    assert "Line 42 of 'table.csv' repeats the names of the columns, 'height', 'sales'." in found
    assert "--na" not in found


def test_names_that_are_read_as_values(note):
    found = note([NAMES, *ROWS], "--no-header")
    assert "Line 1 of 'table.csv' looks like the names of the columns" in found
    assert "Leave out --no-header." in found


@pytest.mark.parametrize("footer", ["Source: ERP", "numbers of the last year"])
def test_a_footer_below_numbers(note, footer):
    found = note([NAMES, *ROWS, [footer, "", ""]])
    assert f"Line 42 of 'table.csv', the last, looks like a footer: it has '{footer}'" in found
    assert "--na" not in found
    for text in ("see below", "12:30"):
        assert "--na" in note([NAMES, *ROWS, [text, "1", "a"]])


@pytest.mark.parametrize(
    "lines",
    [
        [["Source: ERP", "", ""], ["Exported 2024", "", ""]],
        [["Source: ERP", "", ""], ["", "Exported 2024", ""]],
        [["Total", "9", ""], ["Source: ERP", "", ""], ["Exported 2024", "", ""]],
    ],
)
def test_several_lines_below_numbers_are_told_once(note, lines):
    found = note([NAMES, *ROWS, *lines])
    assert found.count("Note:") == 1
    assert "The end of 'table.csv' looks like a footer: line 42 has" in found
    assert f"line {41 + len(lines)} has 'Exported 2024'" in found
    assert "--na" not in found


def test_a_long_cell_is_cut_short(note):
    found = note([NAMES, *ROWS[:9], ["so many words " * 99, "1", "a"], *ROWS[9:]])
    assert "has 'so many words so many" in found
    assert "--na" not in found
    assert len(found) < 400
    found = note([NAMES, *ROWS, ["Source: " + "words " * 99, "", ""]])
    assert "looks like a footer" in found
    assert len(found) < 400


def test_a_footer_below_words(note):
    rows = [row[::-1] for row in ROWS]
    found = note([NAMES[::-1], *rows, ["Source: ERP", "", ""]])
    assert "Line 42 of 'table.csv', at the end, looks like a footer: there is" in found
    found = note([NAMES[::-1], *rows, ["Source: ERP", "", ""], ["Stand 2024", "", ""]])
    assert "Line 42 and line 43 of 'table.csv', at the end, look like a footer: there is" in found
    assert "footer" not in note([NAMES[::-1], *rows, ["c", "", ""]])


def test_a_footer_without_delimiters(cli, make_csv):
    path = make_csv("table.csv", [*ROWS, ["Source: ERP"]], NAMES)
    assert "If this last line is a footer, remove it" in cli("describe", path).err


@pytest.mark.parametrize("word", ["Total", "Grand total:", "Summe", "TOTALS", "Gesamt", "sum"])
@pytest.mark.parametrize("first", ["words", "numbers"])
def test_a_total(note, word, first):
    names, rows = (NAMES[::-1], [row[::-1] for row in ROWS]) if first == "words" else (NAMES, ROWS)
    found = note([names, *rows, [word, "66", "77"]])
    assert f"Line 42 of 'table.csv', the last, looks like a total: it has '{word}'" in found
    assert found.count("total: ") + found.count("--na") == 1
    assert "looks like" not in note([names, *rows, ["Total loss", "66", "77"], rows[0]])


def test_a_total_in_another_format(cli, tmp_path):
    path = tmp_path / "table.jsonl"
    path.write_text('{"x": 1, "w": "a"}\n{"x": 2, "w": "b"}\n{"x": 3, "w": "Total"}\n')
    assert f"Line 3 of '{path}', the last, looks like a total" in cli("describe", path).err


def test_two_columns_of_which_one_has_a_name(note):
    assert "looks like the names" not in note([["English", ""], ["one", "eins"], ["two", "zwei"]])


def test_a_row_of_texts_below_other_rows(note):
    rows = [row[:] for row in ROWS]
    rows[1][:2] = "see file", "tbd"
    found = note([NAMES, *rows])
    assert "--na 'see file'" in found
    assert "--na tbd" in found
