import datetime
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from grapefill.errors import ConfigError, InputError
from grapefill.table import Schema, Table


@pytest.mark.parametrize(
    ("native", "container", "names", "labels"),
    [
        (np.zeros((2, 2)), "numpy", None, ("x0", "x1")),
        ([[1, 2], [3, 4]], "numpy", None, ("x0", "x1")),
        (pd.DataFrame({"a": [1], 7: [2]}), "pandas", ("a", 7), ("a", "7")),
        (pl.DataFrame({"a": [1], "b": [2]}), "polars", ("a", "b"), ("a", "b")),
        (pa.table({"a": [1], "b": [2]}), "pyarrow", ("a", "b"), ("a", "b")),
    ],
)
def test_every_container_is_read(native, container, names, labels):
    table = Table.wrap(native)
    assert (table.container, table.names, table.labels) == (container, names, labels)
    assert table.n_columns == 2


@pytest.mark.parametrize(
    ("native", "phrase"),
    [
        (np.zeros(3), "Reshape your data"),
        ([1.0, 2.0], "Reshape your data"),
        (np.zeros((2, 2, 2)), "Reshape your data"),
        (np.zeros(3, dtype=[("a", float)]), "Reshape your data"),
        (pd.Series([1.0]), "to_frame"),
        (pl.Series([1.0]), "to_frame"),
        (pl.LazyFrame({"a": [1]}), r"collect\(\)"),
        (scipy.sparse.csr_matrix(np.eye(2)), "Sparse data was passed"),
        (scipy.sparse.coo_array(np.eye(2)), "Sparse data was passed"),
        (np.ma.masked_array(np.zeros((2, 2))), "filled"),
        (pa.record_batch({"a": [1.0]}), r"Pass pyarrow.Table.from_batches\(\[X\]\)"),
        ([[1, 2], [3]], "same number of cells"),
        ("table.csv", "not a table"),
        ({"a": [1]}, "not a table"),
        (None, "not a table"),
    ],
)
def test_what_is_no_table_is_refused_with_advice(native, phrase):
    with pytest.raises(InputError, match=phrase):
        Table.wrap(native)


def test_objects_that_turn_into_arrays_are_read():
    class ArrayLike:
        def __array__(self, dtype=None, copy=None):
            return np.arange(4.0).reshape(2, 2)

    assert Table.wrap(ArrayLike()).n_rows == 2


def test_lists_keep_numbers_beside_text():
    table = Table.wrap([["a", 1, float("nan")], ["b", 2, 3.5]])
    schema = Schema.infer(table)
    assert [column.kind.value for column in schema.columns] == [
        "categorical",
        "ordinal",
        "continuous",
    ]
    assert table.missing(2).tolist() == [True, False]


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([1.0, None]),
        pd.Series([1, None], dtype="Int8"),
        pd.Series([True, None], dtype="boolean"),
        pd.Series(["a", None]),
        pd.Series(["a", None], dtype=object),
        pd.Series(["a", pd.NA], dtype=object),
        pd.Series(["a", pd.NaT], dtype=object),
        pd.Series(["a", float("nan")], dtype="category"),
        pd.Series([pd.Timestamp("2020"), pd.NaT]),
        pd.Series([pd.Timestamp("2020", tz="UTC"), pd.NaT]),
        pd.Series([pd.Timedelta("1s"), pd.NaT]),
        pd.Series([pd.Period("2020"), pd.NaT]),
        pd.Series([[1], None]),
        pd.Series([1.0, None], dtype=pd.ArrowDtype(pa.float32())),
        pd.Series(["a", None], dtype=pd.ArrowDtype(pa.string())),
    ],
)
def test_all_missing_marks_of_pandas(cells):
    assert Table.wrap(cells.to_frame("c")).missing(0).tolist() == [False, True]


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series([1.0, None]),
        pl.Series([1.0, float("nan")]),
        pl.Series([1, None], dtype=pl.UInt64),
        pl.Series(["a", None], dtype=pl.Enum(["a"])),
        pl.Series([[1], None]),
        pl.Series([datetime.time(1), None]),
    ],
)
def test_all_missing_marks_of_polars_and_pyarrow(cells):
    frame = cells.to_frame("c")
    assert Table.wrap(frame).missing(0).tolist() == [False, True]
    assert Table.wrap(frame.to_arrow()).missing(0).tolist() == [False, True]


def test_null_inside_an_arrow_dictionary_is_missing():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    assert Table.wrap(pa.table({"c": column})).missing(0).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("native", "mark", "missing"),
    [
        (np.array([[-1], [2]], dtype=np.int8), -1, [True, False]),
        (np.array([[1], [2]], dtype=np.uint8), -1, [False, False]),
        (np.array([[1], [2]], dtype=np.int8), 1000, [False, False]),
        (np.array([[0.1], [np.nan]], dtype=np.float32), 0.1, [True, True]),
        (np.array([[""], ["a"]]), "", [True, False]),
        (np.array([["?"], [1]], dtype=object), "?", [True, False]),
        (np.array([[1], [True]], dtype=object), 1, [True, False]),
        (np.array([[2**63], [1]], dtype=np.uint64), 2**63, [True, False]),
        (pd.DataFrame({"a": ["?", None, "b"]}), "?", [True, True, False]),
        (pd.DataFrame({"a": ["?", None, "b"]}, dtype="category"), "?", [True, True, False]),
        (pd.DataFrame({"a": [True, False]}), 1, [False, False]),
        (pd.DataFrame({"a": [True, False]}), True, [True, False]),
        (pd.DataFrame({"a": [9, None]}, dtype="Int64"), 9, [True, True]),
        (pl.DataFrame({"a": ["?", None, "b"]}), "?", [True, True, False]),
        (pl.DataFrame({"a": [9, None, 1]}, schema={"a": pl.Int8}), 9.0, [True, True, False]),
        (pa.table({"a": pa.array(["?", "b"]).dictionary_encode()}), "?", [True, False]),
        (pa.table({"a": ["?", "b"]}), 5, [False, False]),
    ],
)
def test_the_callers_mark(native, mark, missing):
    table = Table.wrap(native, missing_values=mark)
    assert table.missing(0).tolist() == missing


def test_a_mark_is_never_a_category():
    for native in (
        pd.DataFrame({"a": ["?", "b", "c"]}),
        pd.DataFrame({"a": ["?", "b", "c"]}, dtype="category"),
        pl.DataFrame({"a": ["?", "b", "c"]}, schema={"a": pl.Categorical}),
        pa.table({"a": ["?", "b", "c"]}),
        np.array([["?"], ["b"], ["c"]]),
        np.array([["?"], ["b"], ["c"]], dtype=object),
    ):
        schema = Schema.infer(Table.wrap(native, missing_values="?"))
        assert schema.columns[0].categories == ("b", "c")


def test_a_mark_of_another_type_is_refused():
    with pytest.raises(ConfigError, match="missing_values=\\[1\\]"):
        Table.wrap(np.zeros((1, 1)), missing_values=[1])


def test_slices_are_views():
    array = np.arange(12.0).reshape(4, 3)
    part = Table.wrap(array).slice(1, 3)
    assert part.n_rows == 2
    assert np.shares_memory(part.rebuild({}, [0, 1, 2]), array) is False
    for native in (pd.DataFrame(array), pl.DataFrame(array), pl.DataFrame(array).to_arrow()):
        part = Table.wrap(native).slice(1, 3)
        np.testing.assert_array_equal(np.asarray(part.rebuild({}, [0, 2])), array[1:3, [0, 2]])


def test_dataframe_libraries_are_not_imported_for_arrays():
    code = (
        "import sys, numpy as np; from grapefill.table import Schema, Table;"
        "Schema.infer(Table.wrap(np.eye(3)));"
        "found = {'pandas', 'polars', 'pyarrow', 'torch'} & set(sys.modules);"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
