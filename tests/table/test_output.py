"""Columns appended to a rebuilt table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from grapefill.table.output import append_columns

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
