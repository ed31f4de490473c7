import pyarrow as pa
import pytest

from grapefill.files.cells.formats import ColumnFormat
from grapefill.files.cells.numbers import (
    STYLES,
    Style,
    describe_numbers,
    read_numbers,
    write_numbers,
)

PLAIN, COMMA = Style(), Style(",")
GROUPED = next(style for style in STYLES if style.thousands == "," and style.decimal == ".")
SPACED = next(style for style in STYLES if " " in style.thousands and style.decimal == ",")


def numbers(texts, style=PLAIN):
    return read_numbers(pa.chunked_array([pa.array(texts, pa.string())]), style)


@pytest.mark.parametrize(
    ("texts", "style", "values"),
    [
        (["1", None, "-2", "+3"], PLAIN, [1, None, -2, 3]),
        (["1.5", ".5", "5.", "1e3", "-2E-1"], PLAIN, [1.5, 0.5, 5.0, 1000.0, -0.2]),
        (["3.0", None, "4.00"], PLAIN, [3, None, 4]),
        (["1e3", "2e0"], PLAIN, [1000.0, 2.0]),
        (["1,5", "-2,25"], COMMA, [1.5, -2.25]),
        (["1,234,567.5", "12"], GROUPED, [1234567.5, 12.0]),
        (["1 234", "1\u00a0234,5", "1\u202f234"], SPACED, [1234.0, 1234.5, 1234.0]),
        (["9223372036854775807"], PLAIN, [9223372036854775807]),
        (["9007199254740993.0"], PLAIN, [9007199254740992]),
    ],
)
def test_values(texts, style, values):
    found = numbers(texts, style)
    assert found.bad is None
    result = found.values.to_pylist()
    assert result == values
    assert [type(value) for value in result] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("abc", PLAIN),
        ("0x1F", PLAIN),
        ("inf", PLAIN),
        ("nan", PLAIN),
        ("1e400", PLAIN),
        ("1-2", PLAIN),
        ("-", PLAIN),
        ("1,5", PLAIN),
        ("1_000", PLAIN),
        ("1 2", PLAIN),
        ("٣", PLAIN),
        ("99999999999999999999", PLAIN),
        ("1.5", COMMA),
        ("1234", GROUPED),
        ("12,34", GROUPED),
        ("0,123", GROUPED),
    ],
)
def test_what_is_no_number(text, style):
    found = numbers(["7", text], style)
    assert found.bad.tolist() == [False, True]
    assert found.values.to_pylist() == [7, None]


@pytest.mark.parametrize(
    ("text", "codes"), [("007", True), ("-01", True), ("0", False), ("0.5", False), ("00", True)]
)
def test_codes(text, codes):
    assert numbers(["12", text]).codes is codes
    assert numbers(["0", "-0.5", "10", None]).codes is False


def test_no_numbers_at_all():
    assert numbers([None, None]).values.to_pylist() == [None, None]
    assert read_numbers(pa.chunked_array([], pa.string()), PLAIN).values.to_pylist() == []


@pytest.mark.parametrize(
    ("sample", "style", "values", "texts"),
    [
        (["12", "7"], PLAIN, [3, -4], ["3", "-4"]),
        (["1.25", "7.50"], PLAIN, [3.0, -0.001], ["3.00", "0.00"]),
        (["1.25", "7.5"], PLAIN, [3.0, 2.126], ["3", "2.13"]),
        (["1.25"] * 19 + ["0.30000000000000004"], PLAIN, [2.126], ["2.13"]),
        (["1,25"], COMMA, [1234.5], ["1234,50"]),
        (["1,234.5", "1.0"], GROUPED, [9876543.21], ["9,876,543.2"]),
        (["1 234,5"], SPACED, [9876543.21], ["9 876 543,2"]),
        (["1\u00a0234,5"], SPACED, [9876.5], ["9\u00a0876,5"]),
        (["+1.5", "-2.5"], PLAIN, [1.0, -1.0], ["+1.0", "-1.0"]),
        (["1.5e-08", "2.5e-07"], PLAIN, [3.2e-5], ["3.2e-05"]),
        (["1.5E+8"], PLAIN, [3.2e5, 0.0032], ["3.2E+5", "3.2E-3"]),
        (["1e5"], PLAIN, [123456.0], ["1e5"]),
        (["0.1", "0.01", "1e-05", "3.2e-07"], PLAIN, [2.5e-07, 0.5], ["0.00000025", "0.5"]),
        (["0,1", "2,5e-03"], COMMA, [0.00123], ["0,0012"]),
        (["0.00000000000000000012"], PLAIN, [2.3e-19, 0.1], [f"0.{'0' * 18}23", f"0.1{'0' * 19}"]),
    ],
)
def test_written_like_the_others(sample, style, values, texts):
    type_ = "integer" if isinstance(values[0], int) else "decimal"
    shape = ColumnFormat(type_, **describe_numbers(sample, style))
    assert write_numbers(values, shape) == texts


def test_large_integers_are_written_exactly():
    shape = ColumnFormat("integer")
    assert write_numbers([9223372036854775807], shape) == ["9223372036854775807"]
    assert write_numbers([3], ColumnFormat("integer", decimals=1)) == ["3.0"]
    assert write_numbers([1234], ColumnFormat("integer", thousands=".", decimal=",")) == ["1.234"]
