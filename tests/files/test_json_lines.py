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
        ('[{"a": 1}]', "must be split into lines first"),
        ("{}\n", "no keys"),
    ],
)
def test_refused(read, content, message):
    with pytest.raises(InputError, match=message):
        read(content, "a.jsonl")


def test_rows_are_named_by_line(read):
    assert read(LINES, "a.jsonl").where(2) == "line 4"
