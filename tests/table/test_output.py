"""Columns appended to a rebuilt table, tables below each other, tables of pandas."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from grapefill.errors import InputError
from grapefill.table.output import append_columns, as_pandas, stack_tables

HOLES = np.array([True, False, True])


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_booleans_follow_the_columns_that_were_there(container, count):
    table = container({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]})
    names = [f"hole {number}" for number in range(count)]
    longer = append_columns(table, names, [HOLES] * count)
    assert type(longer) is type(table)
    columns = {name: np.asarray(longer[name]).tolist() for name in ["a", "b", *names]}
    assert columns == {
        "a": [1.0, 2.0, 3.0],
        "b": ["x", "y", "z"],
        **{name: [True, False, True] for name in names},
    }
    assert longer.shape == (3, 2 + count)


def test_pyarrow_keeps_its_metadata_and_types():
    field = pa.field("a", pa.int8(), nullable=False, metadata={"unit": "m"})
    schema = pa.schema([field], metadata={"owner": "me"})
    table = pa.Table.from_arrays([pa.chunked_array([[1], [2, 3]], pa.int8())], schema=schema)
    longer = append_columns(table, ["hole"], [HOLES])
    assert longer.schema.metadata == schema.metadata
    assert longer.schema.field("a").equals(field, check_metadata=True)
    assert longer.schema.field("hole").type == pa.bool_()
    assert longer.select(["a"]).equals(table)


def test_dates_keep_their_nanoseconds_beside_booleans():
    dates = np.array([["2020-01-01T00:00:00.000000001"]], dtype="datetime64[ns]")
    assert append_columns(dates, ["hole"], [HOLES[:1]]).tolist() == [[dates[0, 0], True]]


class TestStack:
    @pytest.mark.parametrize(
        "labels",
        [
            pd.Index(["a", "b"]),
            pd.Index([0, 5], name="number"),
            pd.Index([0.5, "b"], dtype=object),
            pd.date_range("2020-01-01", periods=2),
        ],
    )
    def test_labels_of_pandas_stay(self, labels):
        table = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=labels, index=["p", "q"])
        long = stack_tables([table, table + 1])
        assert list(long) == [".imp", ".id", *labels]
        assert long[".imp"].tolist() == [1, 1, 2, 2]
        assert long[".id"].tolist() == [1, 2, 1, 2]
        assert long.index.tolist() == ["p", "q", "p", "q"]
        assert long[labels[1]].tolist() == [2.0, 4.0, 3.0, 5.0]
        assert list(table) == list(labels)

    def test_labels_of_several_levels(self):
        labels = pd.MultiIndex.from_tuples([("u", "x"), ("u", "y")], names=["one", "two"])
        long = stack_tables([pd.DataFrame([[1.0, 2.0]], columns=labels)] * 2)
        assert list(long) == [(".imp", ""), (".id", ""), *labels]
        assert long.columns.names == labels.names
        assert long[".imp"].tolist() == [1, 2]

    @pytest.mark.parametrize(
        ("cell", "expected"),
        [
            (np.str_("a"), "a"),
            (np.datetime64("2020-01-01"), datetime.date(2020, 1, 1)),
            (np.datetime64(1, "ns"), np.datetime64(1, "ns")),
            (np.timedelta64(1, "s"), datetime.timedelta(seconds=1)),
        ],
    )
    def test_arrays_of_no_numbers_become_objects(self, cell, expected):
        table = np.array([[cell, cell]])
        long = stack_tables([table, table])
        assert long.dtype == object
        assert long.tolist() == [[1, 1, expected, expected], [2, 1, expected, expected]]

    def test_large_unsigned_integers_stay_exact(self):
        table = np.array([[2**63 + 1]], dtype=np.uint64)
        assert stack_tables([table, table]).tolist() == [[1, 1, 2**63 + 1], [2, 1, 2**63 + 1]]

    @pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_a_label_that_is_taken(self, container):
        table = container({"a": [1.0], ".id": [7]})
        with pytest.raises(InputError, match=r"has a column '\.id' already.*Rename it"):
            stack_tables([table, table])


@pytest.mark.parametrize("names", [["p"], [None], ["p", "q"]])
def test_an_index_in_pyarrow_stays_columns(names):
    frame = pd.DataFrame({"a": pd.array([1, 2, None], dtype="Int64"), "b": ["x", "y", "z"]})
    frame.index = pd.MultiIndex.from_arrays([["i", "j", "k"]] * len(names), names=names)
    table = pa.Table.from_pandas(frame)
    result = as_pandas(table, [])
    assert list(result) == table.column_names
    assert result.index.tolist() == [0, 1, 2]
    assert result["a"].dtype == "Int64"
    assert result[table.column_names[-1]].tolist() == ["i", "j", "k"]
