"""Empty some cells of a column of every dtype: they are missing, and nothing else changes."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from grapefill.errors import InputError
from grapefill.table import Table

DAY = datetime.date(2020, 2, 29)
NOON = datetime.datetime(2020, 2, 29, 12, 0, 0, 123456)
SPAN = datetime.timedelta(days=1, microseconds=7)
LARGE = 2**60 + 1
HOLES = np.array([1, 2])
STAY = [0, 3]


def emptied(native, column=0):
    return Table.wrap(native).emptied({column: HOLES})


PANDAS = {
    "int64": (pd.Series([LARGE, 2, 3, LARGE + 2]), "Int64"),
    "int8": (pd.Series([1, 2, 3, -4], dtype="int8"), "Int8"),
    "uint16": (pd.Series([1, 2, 3, 4], dtype="uint16"), "UInt16"),
    "bool": (pd.Series([True, False, True, False]), "boolean"),
    "float32": (pd.Series([0.1, 2, 3, -0.0], dtype="float32"), "float32"),
    "Int64": (pd.Series([LARGE, 2, None, 4], dtype="Int64"), "Int64"),
    "Float32": (pd.Series([0.5, 2, 3, 4], dtype="Float32"), "Float32"),
    "boolean": (pd.Series([True, False, None, True], dtype="boolean"), "boolean"),
    "str": (pd.Series(["a", "b", "c", "d"]), pd.Series(["a"]).dtype),
    "str objects": (pd.Series(["a", "b", None, "d"], dtype=object), object),
    "lists": (pd.Series([[1], [2], [3], []], dtype=object), object),
    "string": (pd.Series(["a", "b", "c", "d"], dtype="string[python]"), "string[python]"),
    "arrow int": (
        pd.Series([1, 2, 3, 4], dtype=pd.ArrowDtype(pa.int16())),
        pd.ArrowDtype(pa.int16()),
    ),
    "datetime": (pd.Series(pd.to_datetime(["2020-01-01"] * 4)).astype("M8[ns]"), "M8[ns]"),
    "datetime zone": (
        pd.Series(pd.to_datetime(["2020-06-29"] * 4)).astype("M8[us]").dt.tz_localize("UTC"),
        "datetime64[us, UTC]",
    ),
    "timedelta": (pd.Series(pd.to_timedelta(["1s"] * 4)).astype("m8[ns]"), "m8[ns]"),
    "period": (pd.Series(pd.period_range("2020", periods=4, freq="D")), "period[D]"),
}


@pytest.mark.parametrize("case", PANDAS)
def test_pandas(case):
    cells, dtype = PANDAS[case]
    index = pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a"), (2, "b")])
    native = pd.DataFrame({5: cells, "other": [1, 2, 3, 4]}).set_axis(index)
    before = native.copy(deep=True)
    result = emptied(native)
    pd.testing.assert_frame_equal(native, before)
    assert result[5].isna().tolist() == [False, True, True, False]
    assert result[5].dtype == dtype
    assert result[5].iloc[STAY].tolist() == native[5].iloc[STAY].tolist()
    assert result.index.equals(index)
    pd.testing.assert_series_equal(result["other"], native["other"])


def test_pandas_categories_stay_declared():
    dtype = pd.CategoricalDtype(["lo", "mid", "hi"], ordered=True)
    native = pd.DataFrame({"a": pd.Series(["lo", "mid", "hi", "hi"], dtype=dtype)})
    result = emptied(native)
    assert result["a"].dtype == dtype
    assert result["a"].dropna().tolist() == ["lo", "hi"]


def test_a_dtype_without_holes_is_refused():
    native = pd.DataFrame({"a": pd.arrays.SparseArray([0, 0, 1, 1])})
    with pytest.raises(InputError, match=r"Column 'a' of dtype Sparse.* cannot hold missing cells"):
        emptied(native)


POLARS = {
    "Int8": pl.Series([1, 2, 3, 127], dtype=pl.Int8),
    "Int64": pl.Series([LARGE, None, 3, 4]),
    "Float64": pl.Series([0.1, 0.2, 0.3, 0.4]),
    "Boolean": pl.Series([False, True, True, True]),
    "String": pl.Series(["a", "b", "c", ""]),
    "Categorical": pl.Series(["a", "b", "b", "a"], dtype=pl.Categorical),
    "Enum": pl.Series(["b", "a", "a", "a"], dtype=pl.Enum(["z", "b", "a"])),
    "Decimal": pl.Series([decimal.Decimal("1.25")] * 4, dtype=pl.Decimal(10, 2)),
    "Date": pl.Series([DAY] * 4),
    "Datetime": pl.Series([NOON] * 4, dtype=pl.Datetime("us", "Europe/Paris")),
    "Duration": pl.Series([SPAN] * 4),
    "List": pl.Series([[1], [2], [], [3]]),
    "Struct": pl.Series([{"a": 1}] * 4),
}


@pytest.mark.parametrize("case", POLARS)
def test_polars(case):
    native = pl.DataFrame([POLARS[case].alias("a"), pl.Series("other", [1, 2, 3, 4])])
    result = emptied(native)
    assert result.schema == native.schema
    assert result["a"].is_null().to_list() == [False, True, True, False]
    assert result["a"].gather(STAY).to_list() == native["a"].gather(STAY).to_list()
    assert result["other"].to_list() == [1, 2, 3, 4]


ARROW = {
    "int8": pa.array([1, 2, 3, 127], pa.int8()),
    "double": pa.array([0.1, None, 0.3, 0.4]),
    "bool": pa.array([True, False, True, True]),
    "string": pa.array(["a", "b", "c", ""]),
    "string_view": pa.array(["a", "b", "c", ""], pa.string_view()),
    "binary_view": pa.array([b"a", b"b", b"c", b""], pa.binary_view()),
    "list of views": pa.array([["a"], ["b"], [], ["c"]], pa.list_(pa.string_view())),
    "dictionary": pa.array(["a", "b", "b", "a"]).dictionary_encode(),
    "decimal": pa.array([decimal.Decimal("1.25")] * 4, pa.decimal128(10, 2)),
    "date": pa.array([DAY] * 4),
    "timestamp": pa.array([NOON] * 4, pa.timestamp("us", "Europe/Paris")),
    "duration": pa.array([SPAN] * 4),
    "list": pa.array([[1], [2], [], [3]]),
}


@pytest.mark.parametrize("case", ARROW)
@pytest.mark.parametrize("nullable", [True, False])
def test_pyarrow(case, nullable):
    column = ARROW[case]
    schema = pa.schema([pa.field("a", column.type, nullable, {"unit": "m"})], {"by": "me"})
    chunks = pa.chunked_array([column.slice(0, 1), column.slice(1)])
    result = emptied(pa.Table.from_arrays([chunks], schema=schema))
    assert result.schema.field("a").type == column.type
    assert result.schema.field("a").nullable
    assert result.schema.field("a").metadata == {b"unit": b"m"}
    assert result.schema.metadata == {b"by": b"me"}
    assert Table.wrap(result).take(HOLES).missing(0).all()
    values = result.column("a").to_pylist()
    assert [value is None for value in values] == [False, True, True, False]
    assert [values[i] for i in STAY] == [column.to_pylist()[i] for i in STAY]


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array([1, 2, 3, 4]), "float64"),
        (np.array([1, 2, 3, LARGE]), "object"),
        (np.array([1, 2, 3, 2**64 - 1], dtype=np.uint64), "object"),
        (np.array([0.1, 0.2, 0.3, 0.4], dtype=np.float32), "float32"),
        (np.array([True, False, True, True]), "object"),
        (np.array(["a", "b", "c", "d"]), "object"),
        (np.array(["a", 2.5, None, True], dtype=object), "object"),
        (np.array(["2020-01-01"] * 4, dtype="M8[D]"), "datetime64[D]"),
        (np.array([1, 2, 3, 4], dtype="m8[s]"), "timedelta64[s]"),
    ],
)
def test_numpy(array, dtype):
    native = np.column_stack([array, array])
    result = emptied(native)
    assert result.dtype == dtype
    assert Table.wrap(result).missing(0).tolist() == [False, True, True, False]
    assert result[STAY].tolist() == native[STAY].tolist()
    assert result[:, 1].tolist() == native[:, 1].tolist()


def test_large_integers_of_another_column_are_not_rounded():
    native = np.array([[1, LARGE]] * 4)
    assert emptied(native)[:, 1].tolist() == [LARGE] * 4


def test_rows_of_a_list():
    result = emptied([[1, "a"], [2, "b"], [3, "c"], [4, "d"]])
    assert result[STAY].tolist() == [[1, "a"], [4, "d"]]


@pytest.mark.parametrize("case", ["numpy", "pandas", "polars", "pyarrow"])
def test_take(case):
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": list("wxyz")}, index=[7, 8, 9, 10])
    native = {
        "numpy": frame.to_numpy(),
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "pyarrow": pa.Table.from_pandas(frame, preserve_index=False),
    }[case]
    table = Table.wrap(native).take(np.array([3, 0]))
    assert table.n_rows == 2
    assert table.cells(1).distinct() == ["w", "z"]
    assert table.cells(0).integers().tolist() == [4, 1]
