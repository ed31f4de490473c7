"""What columns of text are taken for."""

import json
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
    ("usual", "odd"), [("1,5", ["68.5"]), ("1.25", ["68,5", "3,1"]), ("1,5", ["2.5"] * 9)]
)
def test_both_decimal_marks(usual, odd):
    others = f" and {len(odd) - 1} other" if len(odd) > 1 else ". Write"
    (note,) = notes_on(a=[usual] * 10 + odd)
    assert "more than one decimal mark: line 2 has " in note
    assert f"{usual!r}, but line 12 has {odd[0]!r}{others}" in note
    assert "na=" not in note


@pytest.mark.parametrize("texts", [["1,234", "12.5", "1234.5"], ["0012.5", "1,234"], ["x", "1.5"]])
def test_one_decimal_mark(texts):
    assert not any("decimal mark" in note for note in notes_on(a=texts * 5))


def notes_on(**texts):
    """Return what is said of columns."""
    arrays = [pa.chunked_array([pa.array(column, pa.string())]) for column in texts.values()]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        read_columns(list(texts), arrays, Context("'t.csv'", lambda row: f"line {row + 2}"))
    return [str(each.message) for each in found]


def test_marks_among_words_are_named_once_for_all_columns():
    dashes = ["x", "-", "y", "-"]
    (note,) = notes_on(a=dashes, b=["u", "v", "w", "-"], c=["1", "2", "3", "-"])
    assert "Columns 'a' (2 cells), 'b' (1 cell) of 't.csv' are text, so that '-' is taken" in note
    assert "Name it as a mark for missing, na='-', if it stands for a missing cell." in note
    dash, dot = notes_on(a=["x", "-", "y", ".", "-"])
    assert "Column 'a' (2 cells) of 't.csv' is text, so that '-' is taken for a value." in dash
    assert "Column 'a' (1 cell) of 't.csv' is text, so that '.' is taken for a value." in dot
    (many,) = notes_on(**{f"c{k}": dashes for k in range(12)})
    assert "'c9' (2 cells) and 2 more of 't.csv'" in many


@pytest.mark.parametrize(
    ("texts", "what", "place"),
    [
        (["12.5%", "8%", "1.25 %"], "signs around", "line 2 has '12.5%', and 2 more cells are"),
        (["$3.10", "$1,000.00", "3"], "signs around", "line 2 has '$3.10', and 1 more cell is"),
        (["3 €", "4,50\u00a0€", "-1 €"], "signs around", "line 2 has '3 €', and 2"),
        (["\u22124.5", "3.5", "\u22122"], "signs around", "line 2 has '\u22124.5', and 1"),
        (["3.5", "(4.5)", "2"], "parentheses around", "line 3 has '(4.5)'. Write '-' instead"),
        (["($4.5)", "$3.5", "($2)", "1"], "parentheses around", "line 2 has '($4.5)', and 1"),
        (["1.5", "<0.5", "<0.5", "2", "<=1", None], "limits among", "line 3 has '<0.5', and 2"),
        (["7", "> 90", "8", "9", "\u2265 95"], "limits among", "line 3 has '> 90', and 1"),
        (["65.2 kg", "70 kg", "58.1kg"], "units behind", "line 2 has '65.2 kg', and 2"),
        (["27 min", "5 min", "12 min", "-"], "units behind", "line 2 has '27 min', and 2"),
        (["1", "2", "3", "4", "5 °C"], "units behind", "line 6 has '5 °C'. Remove the units"),
        (["1e5 kg", "2e5 kg", "1\u2019000\u2009kg"], "units behind", "line 2 has '1e5 kg', and 2"),
        (["3 mg/L", "1,5 mg/L", "9 mg/L"], "units behind", "line 2 has '3 mg/L', and 2"),
    ],
)
def test_numbers_with_something_around_them(texts, what, place):
    (note,) = [note for note in notes_on(a=texts) if "taken for a value" not in note]
    assert f"Column 'a' of 't.csv' is text, since its numbers have {what} them: {place}" in note
    assert "missing, na=" not in note


@pytest.mark.parametrize(
    "texts",
    [
        ["<18", ">65", "<18", ">65"],
        ["<18", "18-65", ">65"],
        ["12a", "7b", "3c", "12d", "5e"],
        ["1 bed", "2 beds", "1 bed"],
        ["red", "5 kg", "blue", "green"],
        ["133/84", "120/80", "110/75"],
    ],
)
def test_texts_that_are_no_numbers(texts):
    assert notes_on(a=texts) == []


def test_times_of_day_are_named():
    (note,) = notes_on(a=["08:30", "9:15 pm", None, "23:59:59"])
    assert "is text, since it holds times of day: line 2 has '08:30', and 2 more cells" in note


@pytest.mark.parametrize("share", [2, 5])
def test_dates_in_two_layouts_are_named(share):
    texts = [
        f"{k % 28 + 1:02d}.03.2024" if k % share else f"2024-03-{k % 28 + 1:02d}"
        for k in range(1, 41)
    ]
    (note,) = notes_on(a=texts)
    assert "is text, since it has dates in more than one layout: line 2 has '02.03.2024'" in note
    assert f"but line {share + 1} has '2024-03-{share + 1:02d}' and {40 // share - 1} other" in note
    # A day that there is not is no other layout.
    (note,) = notes_on(a=["2024-01-01"] * 9 + ["2024-02-31"])
    assert "holds dates, but line 11 has '2024-02-31', so it is read as text." in note
    assert notes_on(a=["2024-02-31", "2024-02-30"]) == []
    note, _ = notes_on(a=["2024-01-01", "-", "2024-01-01T00:00", "2024-01-02"])
    assert "line 2 has '2024-01-01', but line 4 has '2024-01-01T00:00'. Write all" in note


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
