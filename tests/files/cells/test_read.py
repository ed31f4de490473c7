"""What columns of text are taken for."""

import json
import re
import warnings

import pyarrow as pa
import pytest

from grapefill.errors import GrapefillWarning, InputError
from grapefill.files.cells.formats import ColumnFormat
from grapefill.files.cells.read import Context, read_columns
from grapefill.files.cells.words import describe_words


def columns(expected=None, *, strict=True, **texts):
    options = {
        key: texts.pop(key) for key in ("decimal", "day_first", "semicolons") if key in texts
    }
    arrays = [pa.chunked_array([pa.array(column, pa.string())]) for column in texts.values()]
    context = Context("'t.csv'", lambda row: f"line {row + 2}", expected=expected or {}, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if strict else "ignore")
        found = read_columns(list(texts), arrays, context)
    return dict(zip(texts, found, strict=True))


@pytest.mark.parametrize(
    ("texts", "type_"),
    [
        ([None, None], "empty"),
        (["yes", "NO", None], "boolean"),
        (["true", None], "boolean"),
        (["t", "f"], "boolean"),
        (["t", None], "text"),
        (["yes", "no", "maybe"], "text"),
        (["1", "0"], "integer"),
        (["1.0", "2.0"], "integer"),
        (["1.0", "2.5"], "decimal"),
        (["00123", "4567"], "text"),
        (["12345678901234567890"], "text"),
        (["2024-01-01", "-"], "date"),
        (["20240101", "20241231"], "date"),
        (["20240101", "20241331"], "integer"),
        (["12345678"], "integer"),
        (["2024-01-01T00:00", None], "datetime"),
        (["2024-01-01", "2024-01-01T00:00"], "text"),
        (["1", "-", "."], "integer"),
        (["-", "+"], "text"),
        (["-", "-"], "text"),
        (["1,5", "2"], "decimal"),
        (["1'234.5", "2"], "decimal"),
        (["1", "a"], "text"),
    ],
)
def test_types(texts, type_):
    column = columns(a=texts)["a"]
    assert column.format.type == type_
    assert len(column.values) == len(texts)


@pytest.mark.parametrize(
    ("columns_", "options", "values"),
    [
        ({"a": ["1,234", "5,678"]}, {}, [1234, 5678]),
        ({"a": ["1,234", "5,678"]}, {"semicolons": True}, [1.234, 5.678]),
        ({"a": ["1,234", "5,678"], "b": ["1,5", "2,5"]}, {}, [1.234, 5.678]),
        ({"a": ["1,234", "5,678"], "b": ["1.5", "2.5"]}, {"semicolons": True}, [1234, 5678]),
        ({"a": ["1,234", "5,678"]}, {"decimal": ","}, [1.234, 5.678]),
        ({"a": ["1.234", "5.678"]}, {}, [1.234, 5.678]),
        ({"a": ["1.234", "5.678"]}, {"semicolons": True}, [1.234, 5.678]),
        ({"a": ["1.234", "5.678"], "b": ["1,5", "2,5"]}, {}, [1234, 5678]),
        ({"a": ["0.234", "5.678"], "b": ["1,5", "2,5"]}, {}, [0.234, 5.678]),
        ({"a": ["1.234", "5.678"]}, {"decimal": ","}, [1234, 5678]),
        ({"a": ["1,234,567", "5"]}, {"semicolons": True}, [1234567, 5]),
    ],
)
def test_other_columns_tell_the_decimal_mark(columns_, options, values):
    assert columns(**columns_, **options)["a"].values.to_pylist() == values


def test_other_columns_tell_the_order_of_dates():
    unsure, day, month = ["01/02/2024"], ["31/01/2024"], ["01/31/2024"]
    assert columns(a=unsure, b=day)["a"].format.layout == "%d/%m/%Y"
    assert columns(a=unsure, b=month)["a"].format.layout == "%m/%d/%Y"
    assert columns(a=unsure, day_first=True)["a"].format.layout == "%d/%m/%Y"
    with pytest.warns(GrapefillWarning, match="'a' and 1 more .* the month is taken to"):
        found = read_columns(
            ["a", "b"],
            [pa.chunked_array([unsure]), pa.chunked_array([unsure])],
            Context("'t.csv'", str),
        )
    assert found[0].format.layout == "%m/%d/%Y"


def test_a_wrong_cell_is_named():
    texts = ["1", "2", "x", "4", "5", "6", "7", "y"]
    with pytest.warns(
        GrapefillWarning, match=r"'a' of 't.csv' holds numbers, but line 4 has 'x' and 1"
    ):
        read_columns(
            ["a"], [pa.chunked_array([texts])], Context("'t.csv'", lambda row: f"line {row + 2}")
        )
    texts = ["2024-01-01"] * 9 + ["soon"]
    with pytest.warns(GrapefillWarning, match="holds dates, but line 11 has 'soon'"):
        read_columns(
            ["a"], [pa.chunked_array([texts])], Context("'t.csv'", lambda row: f"line {row + 2}")
        )


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["x", "-", "y", "-"], "'-', in 2 cells, is taken for a value. If it stands"),
        (
            ["x", "-", "y", ".", "-"],
            "'-', in 2 cells, and '.', in 1 cell, are taken for values. If one stands",
        ),
    ],
)
def test_a_mark_among_words_is_named(texts, message):
    with pytest.warns(GrapefillWarning, match=f"Column 'a' of 't.csv' is text, so that {message}"):
        read_columns(["a"], [pa.chunked_array([texts])], Context("'t.csv'", lambda _: ""))


@pytest.mark.parametrize(
    "texts",
    [
        ["12.5%", "8%", "1.25 %"],
        ["$3.10", "$1,000.00", "3"],
        ["3 €", "4,50\u00a0€", "-1 €"],
        ["(4.5)", "3.5", "2"],
        ["\u22124.5", "3.5", "\u22122"],
    ],
)
def test_numbers_with_signs_around_them_are_named(texts):
    match = rf"Column 'a' .* line 2 has {re.escape(repr(texts[0]))}. Remove the signs"
    with pytest.warns(GrapefillWarning, match=match):
        (column,) = read_columns(
            ["a"],
            [pa.chunked_array([[*texts, None]])],
            Context("'t.csv'", lambda row: f"line {row + 2}"),
        )
    assert column.format.type == "text"


EXPECTED = {
    "integer": ColumnFormat("integer"),
    "price": ColumnFormat("decimal", decimals=2),
    "comma": ColumnFormat("decimal", decimal=",", decimals=3),
    "text": ColumnFormat("text"),
    "boolean": ColumnFormat("boolean", words=("Y", "N")),
    "date": ColumnFormat("date", layout="%d/%m/%Y"),
    "datetime": ColumnFormat("datetime", layout="%Y-%m-%dT%H:%M:%S"),
    "empty": ColumnFormat("empty"),
}


@pytest.mark.parametrize(
    ("name", "texts", "kind", "first"),
    [
        ("integer", [None], "int64", None),
        ("integer", ["3"], "int64", 3),
        ("integer", ["007"], "int64", 7),
        ("integer", ["3.5"], "double", 3.5),
        ("price", ["3"], "double", 3.0),
        ("price", ["1,5"], "double", 1.5),
        ("comma", ["1,234"], "double", 1.234),
        ("text", ["3"], "string", "3"),
        ("text", [None], "string", None),
        ("boolean", ["y"], "bool", True),
        ("boolean", ["no"], "bool", False),
        ("date", [None], "date32[day]", None),
        ("datetime", [None], "timestamp[s]", None),
        ("empty", ["3"], "int64", 3),
        ("integer", ["-", "-"], "int64", None),
        ("price", ["-", None], "double", None),
        ("date", ["-"], "date32[day]", None),
    ],
)
def test_as_it_was_before(name, texts, kind, first):
    column = columns(EXPECTED, **{name: texts})[name]
    assert str(column.values.type) == kind
    assert column.values[0].as_py() == first


def test_order_of_dates_as_it_was_before():
    column = columns(EXPECTED, date=["01/02/2024"])["date"]
    assert str(column.values[0]) == "2024-02-01"


def test_few_decimals_are_written_as_before():
    assert columns(EXPECTED, price=["3"])["price"].format.decimals == 2
    many = columns(EXPECTED, price=["3.5"] * 30)["price"]
    assert many.format.decimals == 1


@pytest.mark.parametrize(
    ("name", "texts", "message"),
    [
        ("integer", ["1", "x"], "Line 3 of 't.csv', column 'integer': 'x' is not a number"),
        ("date", ["soon"], "Line 2 of 't.csv', column 'date': 'soon' is not a date"),
        ("boolean", ["maybe"], "Line 2 of 't.csv', column 'boolean': 'maybe' is not one of"),
    ],
)
def test_not_what_it_was_before(name, texts, message):
    with pytest.raises(InputError, match=message):
        columns(EXPECTED, **{name: texts})


def test_formats_survive_json():
    for shape in EXPECTED.values():
        assert ColumnFormat.from_dict(shape.to_dict()) == shape
    assert ColumnFormat.from_dict("text") == ColumnFormat("text")
    levels = ColumnFormat("text", levels=("None", "Low"))
    assert ColumnFormat.from_dict(json.loads(json.dumps(levels.to_dict()))) == levels
    with pytest.raises(InputError, match="cannot be read as 'words'"):
        ColumnFormat.from_dict("words")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (["no"], ("yes", "no")),
        (["NO"], ("YES", "NO")),
        (["Y", "n", "N", "N"], ("Y", "N")),
        (["true", "True", "True"], ("True", "False")),
        ([], None),
        (["true", "yes"], None),
    ],
)
def test_words(found, words):
    assert describe_words(found) == words


@pytest.mark.parametrize("kind", ["integer", "decimal", "boolean", "date", "datetime"])
def test_nothing_but_marks_where_it_is_known_what_is_missing(kind):
    column = columns({"x": ColumnFormat(kind)}, x=["-", None, "-"])["x"]
    assert (column.format.type, column.values.null_count) == (kind, 3)


@pytest.mark.parametrize(
    ("bad", "others"), [(1, ""), (2, " and 1 other cell"), (3, " and 2 other cells")]
)
def test_cells_that_are_no_numbers_are_counted(bad, others):
    texts = [str(k) for k in range(200)] + ["about 7"] * bad
    with pytest.raises(GrapefillWarning, match=rf"'about 7'{others}, so it is read"):
        columns(x=texts)
