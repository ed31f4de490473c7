import datetime

import pyarrow as pa
import pytest

from grapefill.errors import GrapefillWarning, InputError
from grapefill.files.json_lines import replace_values

LINES = """\
{"id": 1, "x": 1e3, "s": "a", "ok": true, "d": "2024-02-29", "z": "007"}
{"id": 2, "x": null, "s":"\\u00e9", "ok": null, "d": null, "z": null}

  {"x": 1.50,"id":3}
{"id": 4, "x": 2.25, "s": null, "ok": false, "d": "2024-03-01", "z": "010", "e": null}
"""


def test_only_holes_change(read, written):
    file = read(LINES, "a.jsonl")
    assert [str(kind) for kind in file.frame.schema.types] == [
        "int64",
        "double",
        "string",
        "bool",
        "date32[day]",
        "string",
        "null",
    ]
    assert written(file) == LINES.encode()
    new = {"x": 7.0, "s": "ß", "ok": True, "d": pa.scalar("2024-05-06").cast(pa.date32())}
    frame = file.frame
    for j, name in enumerate(frame.column_names):
        if name in new:
            frame = frame.set_column(j, name, frame[name].fill_null(new[name]))
    after = written(file, frame).decode().split("\n")
    before = LINES.split("\n")
    assert after[0] == before[0]
    assert after[1] == (
        '{"id": 2, "x": 7.0, "s":"\\u00e9", "ok": true, "d": "2024-05-06", "z": null}'
    )
    assert after[2] == before[2]
    assert after[3] == ('  {"x": 1.50,"id":3,"s":"ß","ok":true,"d":"2024-05-06"}')
    assert after[4] == before[4].replace('"s": null', '"s": "ß"')


@pytest.mark.parametrize(
    ("line", "new", "result"),
    [
        ("{}", {"a": "1", "b": "2"}, '{"a": 1, "b": 2}'),
        ('{"a":null}', {"b": "2"}, '{"a":null,"b":2}'),
        ('{"a": null}', {"b": "2"}, '{"a": null, "b": 2}'),
        ('{ "a" : null , "b" : {"a": null} }', {"a": "1"}, '{ "a" : 1 , "b" : {"a": null} }'),
        ('{"a": 1, "a": null}', {"a": "2"}, '{"a": 1, "a": 2}'),
        ('{"}": "{", "a": null}', {"a": "2"}, '{"}": "{", "a": 2}'),
    ],
)
def test_one_line(line, new, result):
    assert replace_values(line, new) == result


def test_line_ends_and_bom(read, written):
    content = b'\xef\xbb\xbf{"a": 1}\r\n{"a": null}'
    file = read(content, "a.jsonl")
    assert written(file) == content
    table = pa.table({"a": [1, 2]})
    assert written(file, table) == b'\xef\xbb\xbf{"a": 1}\r\n{"a": 2}'


def test_numbers_as_text_stay_text(read, written):
    file = read(
        '{"a": "1", "b": "yes"}\n{"a": "2", "b": "no"}\n{"a": null, "b": null}\n', "a.jsonl"
    )
    table = pa.table({"a": [1, 2, 3], "b": [True, False, True]})
    assert written(file, table).endswith(b'{"a": "3", "b": "yes"}\n')


def test_mixtures_are_text(read, written):
    file = read('{"a": 1}\n{"a": "x"}\n{"a": null}\n', "a.jsonl")
    assert file.frame["a"].to_pylist() == ["1", '"x"', None]
    assert written(file, pa.table({"a": ["1", '"x"', '"x"']})).endswith(b'{"a": "x"}\n')


def test_nested_columns_pass_through(read, written):
    with pytest.warns(GrapefillWarning, match="hold lists or objects .*: 'b', 'c'"):
        file = read('{"a": 1, "b": [1], "c": {"d": null}}\n{"a": null, "b": null}\n', "a.jsonl")
    assert file.frame.column_names == ["a"]
    assert written(file, pa.table({"a": [1, 2]})).endswith(b'\n{"a": 2, "b": null}\n')


def test_nested_columns_are_text_in_other_formats(read, tmp_path):
    with pytest.warns(GrapefillWarning, match="hold lists or objects"):
        file = read('{"b": [1, "é"], "a": 1, "c": {"d": null}}\n{"a": null, "b": 2}\n', "a.jsonl")
    for name in ("a.csv", "a.parquet"):
        with pytest.warns(GrapefillWarning, match="as JSON text in another format: 'b', 'c'"):
            file.write(tmp_path / name, pa.table({"a": [1, 2], "hole": [False, True]}))
        frame = read((tmp_path / name).read_bytes(), name).frame
        assert frame.column_names == ["b", "a", "c", "hole"]
        assert frame["b"].to_pylist() == ['[1, "é"]', "2"]
        assert frame["a"].to_pylist() == [1, 2]
        assert frame["c"].to_pylist() == ['{"d": null}', None]


def test_other_formats_are_as_exact(read, tmp_path):
    file = read('{"a": 1.25}\n{"a": null}\n', "a.jsonl")
    file.write(tmp_path / "a.csv", pa.table({"a": [1.25, 97.11499999999998]}))
    assert (tmp_path / "a.csv").read_text() == "a\n1.25\n97.11\n"


def test_marks_added_and_erased(read, written):
    file = read('{"a": -9, "s": "?"}\n{"a": 2, "s": "x"}\n', "a.jsonl", na=["-9", "?"])
    assert file.frame.to_pydict() == {"a": [None, 2], "s": [None, "x"]}
    table = pa.table({"a": pa.array([1, None]), "s": [None, "x"], "hole": [True, False]})
    assert written(file, table, erase=True) == (
        b'{"a": 1, "s": "?", "hole": true}\n{"a": null, "s": "x", "hole": false}\n'
    )


def test_types_as_before(read):
    first = read('{"a": 1.5, "b": 1, "d": "2024-01-01"}\n', "a.jsonl")
    again = read('{"a": 1, "b": null, "d": null}\n{"a": null}\n', "b.jsonl", types=first.types)
    assert [str(kind) for kind in again.frame.schema.types] == ["double", "int64", "date32[day]"]


def test_large_integers_are_not_rounded(read):
    file = read('{"a": 123456789012345678901234567890}\n{"a": null}\n', "a.jsonl")
    assert file.frame["a"].to_pylist() == ["123456789012345678901234567890", None]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ('{"a": 1}\n{"a": }\n', r"Line 2, character 7 of .* is not JSON"),
        ('{"a": 1}\n[1]\n', "Line 2 of .* is not an object"),
        ('[{"a": 1}]', "is one JSON array. Write each of its objects in a line of its own"),
        ('\n[\n  {"a": 1},\n  {"a": 2}\n]\n', "is one JSON array"),
        ("{}\n", "no keys"),
        ('{"a": "x"}\n\n{"a": "\\ud800"}\n', "Line 3 of .* holds half of a character"),
        ('{"a": 1.5}\n\n{"a": Infinity}\n', "Line 3 of .*, column 'a', is infinite"),
        ('{"a": 1.5}\n{"a": -1e400}\n', "Line 2 of .*, column 'a', is infinite"),
    ],
)
def test_refused(read, content, message):
    with pytest.raises(InputError, match=message):
        read(content, "a.jsonl")


def test_rows_are_named_by_line(read):
    assert read(LINES, "a.jsonl").where(2) == "line 4"


def test_both_halves_of_a_character_are_one(read):
    assert read('{"a": "\\ud83c\\udf47"}\n', "a.jsonl").frame["a"].to_pylist() == ["🍇"]


@pytest.mark.parametrize(
    ("cells", "fill", "result"),
    [
        (["3e-07", "1.5e-06"], 4.4444e-07, "4e-07"),
        (["3.25e-07", "1e-06"], 4.4444e-07, "4.44e-07"),
        (["1.5e299", "2e299"], 1.7e299, "1.7e+299"),
    ],
)
def test_very_small_and_very_large_numbers(read, written, cells, fill, result):
    lines = [f'{{"a": {cell}}}' for cell in cells]
    file = read("\n".join([*lines, '{"a": null}']), "a.jsonl")
    table = pa.table({"a": [*map(float, cells), fill]})
    assert written(file, table).decode() == "\n".join([*lines, f'{{"a": {result}}}'])


def test_small_numbers_in_other_formats(read, tmp_path):
    file = read('{"a": 3e-07}\n{"a": 1.5e-06}\n{"a": null}\n', "a.jsonl")
    file.write(tmp_path / "a.csv", pa.table({"a": [3e-07, 1.5e-06, 4.4444e-07]}))
    assert (tmp_path / "a.csv").read_text() == "a\n3e-07\n1.5e-06\n4e-07\n"


@pytest.mark.parametrize(
    ("cells", "fill", "result"),
    [("1.25\n7.5", 2.3456, "2.35"), ("1.5e-08\n2.5e-07", 2.34e-09, "2.3e-09")],
)
def test_few_whole_numbers_are_filled_as_before(read, written, cells, fill, result):
    types = read(f"a\n{cells}\n", "before.csv").types
    file = read('{"a": 1}\n{"a": null}\n', "a.jsonl", types=types)
    after = written(file, pa.table({"a": [1.0, fill]}))
    assert after.decode() == f'{{"a": 1}}\n{{"a": {result}}}\n'


def test_own_marks_in_any_spelling(read, written):
    content = '{"a": -999.0, "i": -999, "s": " N/A "}\n{"a": 1.5, "i": 2, "s": "x"}\n'
    assert read(content, "a.jsonl", na=["-999.0"]).frame["i"].to_pylist() == [None, 2]
    file = read(content, "a.jsonl", na=["-999", "N/A"])
    assert file.frame.to_pydict() == {"a": [None, 1.5], "i": [None, 2], "s": [None, "x"]}
    assert written(file).decode() == content


def test_decimal_mark_and_order_of_dates(read):
    line = '{"d": "01/02/2024", "x": "1,234"}'
    file = read(line, "a.jsonl", day_first=True, decimal=",")
    assert file.frame.to_pydict() == {"d": [datetime.date(2024, 2, 1)], "x": [1.234]}
    file = read(line, "a.jsonl", day_first=False, decimal=".")
    assert file.frame.to_pydict() == {"d": [datetime.date(2024, 1, 2)], "x": [1234]}


def test_numbers_that_are_to_be_text(read, written):
    file = read('{"zip": 123}\n{"zip": null}\n{"zip": 45}\n', "a.jsonl", types={"zip": "text"})
    assert file.frame["zip"].to_pylist() == ["123", None, "45"]
    after = written(file, pa.table({"zip": ["123", "45", "45"]}))
    assert after == b'{"zip": 123}\n{"zip": 45}\n{"zip": 45}\n'
