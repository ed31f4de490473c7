"""Fill one hole in a column of every dtype and compare everything else to the last bit."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pytest

from grapefill.table import Schema, Table

DAY = datetime.date(2020, 2, 29)
NOON = datetime.datetime(2020, 2, 29, 12, 0, 0, 123456)
SPAN = datetime.timedelta(days=1, microseconds=7)
LARGE = 2**60 + 1


def fill_first_column(native, number, **options):
    """Fill the missing cells of the first column with one decoded number."""
    table = Table.wrap(native, **options)
    column = Schema.infer(table).columns[0]
    rows = np.flatnonzero(table.missing(0))
    values = column.decode(np.full(len(rows), float(number)))
    return table.rebuild({0: (rows, values)}, keep=range(table.n_columns))


PANDAS = {
    "float32": (pd.Series([0.1, None, -0.0, 2.5], dtype="float32"), 0.1),
    "float64": (pd.Series([0.1, None, -0.0, 2.5]), 0.1),
    "whole floats": (pd.Series([1.0, None, 3.0, 4.0]), 1.0),
    "Int64": (pd.Series([LARGE, None, LARGE + 2, LARGE + 4], dtype="Int64"), LARGE),
    "UInt8": (pd.Series([1, None, 3, 255], dtype="UInt8"), 1),
    "Float32": (pd.Series([0.5, None, 3, 255], dtype="Float32"), 0.5),
    "boolean": (pd.Series([False, None, True, True], dtype="boolean"), False),
    "bool objects": (pd.Series([False, None, True, True], dtype=object), False),
    "str": (pd.Series(["a", None, "b", "b"]), "a"),
    "str objects": (pd.Series(["a", None, "b", "b"], dtype=object), "a"),
    "string[python]": (pd.Series(["a", None, "b", "b"], dtype="string[python]"), "a"),
    "string[pyarrow]": (pd.Series(["a", None, "b", "b"], dtype="string[pyarrow]"), "a"),
    "arrow string": (pd.Series(["a", None, "b", "b"], dtype=pd.ArrowDtype(pa.string())), "a"),
    "arrow int": (pd.Series([1, None, 3, 4], dtype=pd.ArrowDtype(pa.int16())), 1),
    "arrow date": (pd.Series([DAY, None, DAY, DAY], dtype=pd.ArrowDtype(pa.date32())), DAY),
    "category": (
        pd.Series(pd.Categorical(["b", None, "a", "a"], categories=["z", "b", "a"])),
        "b",
    ),
    "category of integers": (pd.Series(pd.Categorical([3, None, 5, 5])), 3),
    "ordered": (
        pd.Series(
            pd.Categorical(["lo", None, "hi", "hi"], categories=["lo", "mid", "hi"], ordered=True)
        ),
        "lo",
    ),
    "intervals": (pd.cut(pd.Series([1.0, None, 9.0, 9.0]), [0, 5, 10]), pd.Interval(0, 5)),
    "datetime ns": (
        pd.Series(pd.to_datetime(["2020-02-29T12", None, "2021-01-01T00", "2022-01-01T00"])).astype(
            "M8[ns]"
        ),
        pd.Timestamp("2020-02-29T12"),
    ),
    "datetime s": (
        pd.Series(pd.to_datetime(["2020-02-29T12", None, "2021-01-01T00", "2022-01-01T00"])).astype(
            "M8[s]"
        ),
        pd.Timestamp("2020-02-29T12"),
    ),
    "datetime zone": (
        pd.Series(pd.to_datetime(["2020-06-29T12", None, "2021-01-01T00", "2022-01-01T00"]))
        .astype("M8[us]")
        .dt.tz_localize("Europe/Paris"),
        pd.Timestamp("2020-06-29T12", tz="Europe/Paris"),
    ),
    "timedelta": (pd.Series(pd.to_timedelta(["1s", None, "2s", "3s"])), pd.Timedelta("1s")),
    "date objects": (pd.Series([DAY, None, DAY.replace(year=2024), DAY], dtype=object), DAY),
    "integer objects": (pd.Series([1, None, 3, 4], dtype=object), 1),
}


@pytest.mark.parametrize("case", PANDAS)
def test_pandas(case):
    cells, expected = PANDAS[case]
    index = pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a"), (2, "b")], names=["i", "j"])
    payload = np.array([0x7FF8_0000_0000_BEEF] * 4, dtype=np.uint64).view(np.float64)
    native = pd.DataFrame({5: cells, "lists": [[1], None, [], [2]], 7: payload}).set_axis(index)
    before = native.copy(deep=True)
    table = Table.wrap(native)
    schema = Schema.infer(table, kinds={"lists": "passthrough"})
    column = schema.columns[0]
    assert column.imputable
    result = table.rebuild({0: (np.array([1]), column.decode(np.array([column.lower])))}, [0, 1, 2])
    pd.testing.assert_frame_equal(native, before)
    assert result.index.equals(index)
    assert list(result.columns) == [5, "lists", 7]
    assert (result.dtypes == native.dtypes).all()
    # The first value is the smallest of each case but one.
    if case not in ("float32", "float64"):
        assert result[5].iloc[1] == expected
    else:
        assert result[5].iloc[1] == 0.0
    pd.testing.assert_frame_equal(result.iloc[[0, 2, 3]], native.iloc[[0, 2, 3]], check_exact=True)
    np.testing.assert_array_equal(result[7].to_numpy().view(np.uint64), payload.view(np.uint64))
    if cells.dtype.kind == "f" and isinstance(cells.dtype, np.dtype):
        kept = np.signbit(result[5].to_numpy())[[0, 2, 3]]
        np.testing.assert_array_equal(kept, np.signbit(cells.to_numpy())[[0, 2, 3]])


POLARS = {
    "Int8": (pl.Series([1, None, 127], dtype=pl.Int8), 1),
    "Int64": (pl.Series([LARGE, None, LARGE + 2]), LARGE),
    "UInt64": (pl.Series([2**64 - 3, None, 2**64 - 1], dtype=pl.UInt64), 2**64 - 3),
    "Float32": (pl.Series([0.1, None, 0.2], dtype=pl.Float32), float(np.float32(0.1))),
    "Float64": (pl.Series([0.1, float("nan"), 0.2]), 0.1),
    "Boolean": (pl.Series([False, None, True]), False),
    "String": (pl.Series(["a", None, "b"]), "a"),
    "Categorical": (pl.Series(["a", None, "b"], dtype=pl.Categorical), "a"),
    "Enum": (pl.Series(["b", None, "a"], dtype=pl.Enum(["z", "b", "a"])), "b"),
    "Date": (pl.Series([DAY, None, DAY.replace(year=2024)]), DAY),
    "Datetime ms": (pl.Series([NOON, None, NOON + SPAN]).cast(pl.Datetime("ms")), None),
    "Datetime us": (pl.Series([NOON, None, NOON + SPAN]), NOON),
    "Datetime ns zone": (
        pl.Series([NOON, None, NOON + SPAN]).cast(pl.Datetime("ns", "Europe/Paris")),
        None,
    ),
    "Duration": (pl.Series([SPAN, None, SPAN * 2]), SPAN),
    "Decimal": (
        pl.Series([decimal.Decimal("1.25"), None, decimal.Decimal("3.5")], dtype=pl.Decimal(9, 2)),
        decimal.Decimal("1.25"),
    ),
}


@pytest.mark.parametrize("case", POLARS)
def test_polars(case):
    cells, expected = POLARS[case]
    native = pl.DataFrame({"c": cells, "lists": [[1], None, [2]]})
    check_arrow_or_polars(native, expected, lambda frame: frame)


@pytest.mark.parametrize("case", POLARS)
def test_pyarrow(case):
    cells, expected = POLARS[case]
    native = pl.DataFrame({"c": cells, "lists": [[1], None, [2]]}).to_arrow()
    result = check_arrow_or_polars(native, expected, pl.from_arrow)
    assert result.schema.equals(native.schema, check_metadata=True)


def check_arrow_or_polars(native, expected, as_polars):
    table = Table.wrap(native)
    schema = Schema.infer(table, kinds={"lists": "passthrough"})
    column = schema.columns[0]
    assert column.imputable
    values = column.decode(np.array([column.lower - 5]))
    result = table.rebuild({0: (np.array([1]), values)}, keep=[0, 1])
    before, after = as_polars(native), as_polars(result)
    assert after.schema == before.schema
    polars.testing.assert_frame_equal(after[[0, 2]], before[[0, 2]], check_exact=True)
    polars.testing.assert_series_equal(after["lists"], before["lists"])
    assert after["c"][1] == (before["c"][0] if expected is None else expected)
    return result


@pytest.mark.parametrize(
    "cells",
    [
        pa.array(["a", None, "b"], pa.large_string()),
        pa.array(["a", None, "b"], pa.string_view()),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(
            pa.array([1, None, 0], pa.int8()), pa.array(["b", "a"]), ordered=True
        ),
        pa.array([0, None, 864 * 10**5], pa.date64()),
        pa.array([np.float16(1.5), None, np.float16(2.5)], pa.float16()),
        pa.array([1, None, 5], pa.timestamp("s", "UTC")),
        pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("9.5")], pa.decimal256(50, 1)),
        pa.array([3, None, 5]).dictionary_encode(),
    ],
    ids=lambda cells: str(cells.type),
)
def test_pyarrow_types_polars_has_not(cells):
    chunked = pa.chunked_array([cells.slice(0, 1), cells.slice(1)])
    field = pa.field("c", cells.type, nullable=True, metadata={"unit": "metre"})
    full = pa.field("n", pa.int64(), nullable=False)
    schema = pa.schema([field, full], metadata={"source": "test"})
    native = pa.Table.from_arrays([chunked, pa.chunked_array([[1, 2, 3]])], schema=schema)
    result = fill_first_column(native, 0)
    assert result.schema.equals(native.schema, check_metadata=True)
    assert result.column(0).null_count == 0
    for row in (0, 2):
        assert result.column(0)[row].as_py() == native.column(0)[row].as_py()
    observed = {native.column(0)[0].as_py(), native.column(0)[2].as_py()}
    assert result.column(0)[1].as_py() in observed
    assert result.column(1).equals(native.column(1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4"])
def test_numpy_floats_keep_their_dtype_and_bits(dtype):
    array = np.asfortranarray(np.array([[0.1, np.nan], [np.nan, -0.0], [0.3, 5.0]], dtype=dtype))
    result = fill_first_column(array, 0.2)
    assert result.dtype == array.dtype
    assert result[1, 0] == array.dtype.type(0.2)
    assert result[:, 1].tobytes() == array[:, 1].tobytes()
    assert np.isnan(array[1, 0])


def test_numpy_integers_with_a_mark():
    array = np.array([[-1, LARGE], [4, LARGE + 1]])
    result = fill_first_column(array, 4.4, missing_values=-1)
    assert result.dtype == np.int64
    assert result.tolist() == [[4, LARGE], [4, LARGE + 1]]


def test_numpy_text_of_fixed_width():
    array = np.array([["", "x"], ["abcde", ""]], dtype="<U5")
    result = fill_first_column(array, 0, missing_values="")
    assert result.dtype == array.dtype
    assert result.tolist() == [["abcde", "x"], ["abcde", ""]]


def test_fixed_width_text_grows_rather_than_being_cut():
    schema = Schema.infer(Table.wrap(np.array([["abcde"], ["x"]])))
    narrow = Table.wrap(np.array([["x"], [""]]), missing_values="")
    result = narrow.rebuild({0: (np.array([1]), schema.columns[0].decode(np.array([0.0])))}, [0])
    assert result.tolist() == [["x"], ["abcde"]]


def test_numpy_objects_column_by_column():
    array = np.array([["a", 1, None, True], [None, None, 0.5, None]], dtype=object)
    table = Table.wrap(array)
    schema = Schema.infer(table)
    assert [c.kind.value for c in schema.columns] == [
        "categorical",
        "ordinal",
        "continuous",
        "boolean",
    ]
    fills = {
        j: (np.flatnonzero(table.missing(j)), column.decode(np.zeros(1)))
        for j, column in enumerate(schema.columns)
    }
    result = table.rebuild(fills, keep=[0, 1, 2, 3])
    assert result.tolist() == [["a", 1, 0.5, True], ["a", 1, 0.5, True]]
    assert [type(cell) for cell in result[1]] == [str, int, float, bool]


def test_numpy_datetimes():
    array = np.array([["2020-01-01"], ["NaT"], ["2020-01-09"]], dtype="M8[D]")
    result = fill_first_column(array, 1e9)
    assert result.dtype == array.dtype
    assert result[:, 0].astype(str).tolist() == ["2020-01-01", "2020-01-09", "2020-01-09"]


def test_columns_not_kept_are_dropped():
    for native in (
        pd.DataFrame({"a": [1.5], "b": ["x"], "c": [2.5]}, index=[9]),
        pl.DataFrame({"a": [1.5], "b": ["x"], "c": [2.5]}),
        pa.table({"a": [1.5], "b": ["x"], "c": [2.5]}),
    ):
        result = Table.wrap(native).rebuild({0: (np.array([0]), np.array([7.0]))}, keep=[1, 2])
        assert Table.wrap(result).names == ("b", "c")


@pytest.mark.parametrize(
    "native",
    [
        pd.DataFrame({"c": [np.nan, np.nan]}),
        pd.DataFrame({"c": [None, None]}, dtype=object),
        pl.DataFrame({"c": [None, None]}),
        pa.table({"c": pa.nulls(2)}),
        np.full((2, 1), np.nan),
    ],
    ids=["pandas", "objects", "polars", "pyarrow", "numpy"],
)
def test_a_column_without_values_takes_the_type_of_the_fit(native):
    schema = Schema.infer(Table.wrap(pd.DataFrame({"c": ["a", "b"]})))
    table = Table.wrap(native)
    values = schema.columns[0].decode(np.array([1.0, 0.0]))
    result = table.rebuild({0: (np.array([0, 1]), values)}, keep=[0])
    assert Table.wrap(result).cells(0).distinct() == ["a", "b"]


def test_a_category_the_table_does_not_declare_joins_at_the_end():
    schema = Schema.infer(Table.wrap(pd.DataFrame({"c": ["a", "b", "c"]}, dtype="category")))
    table = Table.wrap(pd.DataFrame({"c": ["b", None]}, dtype="category"))
    schema.check(table)
    result = table.rebuild({0: (np.array([1]), schema.columns[0].decode(np.array([2.0])))}, [0])
    assert result["c"].tolist() == ["b", "c"]
    assert result["c"].cat.categories.tolist() == ["b", "c"]


def test_fractions_are_rounded_into_an_integer_column():
    schema = Schema.infer(Table.wrap(pl.DataFrame({"c": [0.5, 400.5]})))
    table = Table.wrap(pl.DataFrame({"c": [1, None, None]}, schema={"c": pl.Int8}))
    values = schema.columns[0].decode(np.array([2.7, 300.0]))
    result = table.rebuild({0: (np.array([1, 2]), values)}, keep=[0])
    assert result["c"].to_list() == [1, 3, 127]
