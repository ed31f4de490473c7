"""Random mixed tables: whatever is filled in, everything else comes back as it was."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapefill.table import Kind, Schema, Table

WORDS = st.sampled_from(["", "a", "ä", "long word", "nan"])
CELLS = {
    pl.Int8: st.integers(-128, 127),
    pl.Int64: st.integers(-(2**63), 2**63 - 1),
    pl.UInt64: st.integers(0, 2**64 - 1),
    pl.Float32: st.floats(allow_infinity=False, width=32),
    pl.Float64: st.floats(allow_infinity=False),
    pl.Boolean: st.booleans(),
    pl.String: WORDS,
    pl.Categorical: WORDS,
    pl.Enum(["long word", "unused", "nan", "a", "ä", ""]): WORDS,
    pl.Date: st.dates(datetime.date(1700, 1, 1), datetime.date(2200, 1, 1)),
    pl.Datetime("ns"): st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)),
    pl.Duration("us"): st.timedeltas(
        datetime.timedelta(days=-40_000), datetime.timedelta(days=40_000)
    ),
}


@st.composite
def mixed_tables(draw):
    """Draw a polars frame with some missing cells, at least one column and one row."""
    rows = draw(st.integers(1, 12))
    dtypes = draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=5))
    columns = []
    for j, dtype in enumerate(dtypes):
        cells = st.none() | CELLS[dtype]
        values = draw(st.lists(cells, min_size=rows, max_size=rows))
        columns.append(pl.Series(f"c{j}", values, dtype=dtype))
    return pl.DataFrame(columns)


def to_pandas(frame):
    index = pd.Index(range(100, 100 + frame.height), name="row")
    return frame.to_pandas().set_axis(index)


CONTAINERS = {
    "polars": lambda frame: frame,
    "pyarrow": lambda frame: frame.to_arrow(),
    "pandas": to_pandas,
    "pandas with pyarrow": lambda frame: frame.to_pandas(use_pyarrow_extension_array=True),
    "numpy objects": lambda frame: to_pandas(frame).astype(object).to_numpy(),
}


def fill(table, schema, number):
    """Fill every fillable cell with one wild number."""
    encoded = schema.encode(table)
    fills = {}
    for at, j in enumerate(schema.features):
        rows = np.flatnonzero(encoded.fillable[:, at])
        fills[j] = (rows, schema.columns[j].decode(np.full(len(rows), number)))
    return table.rebuild(fills, keep=range(table.n_columns))


@pytest.mark.parametrize("container", CONTAINERS)
@settings(max_examples=60)
@given(frame=mixed_tables(), number=st.floats(allow_nan=False))
def test_only_missing_cells_change(container, frame, number):
    native = CONTAINERS[container](frame)
    table = Table.wrap(native)
    schema = Schema.infer(table)
    schema = Schema.from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False)))
    schema.check(table)
    result = fill(table, schema, number)
    again = Table.wrap(result)
    assert (again.container, again.names, again.n_rows) == (
        table.container,
        table.names,
        table.n_rows,
    )
    for j, column in enumerate(schema.columns):
        assert again.cells(j).storage.dtype == table.cells(j).storage.dtype or column.empty
        if column.imputable:
            assert not again.missing(j).any()
            assert column.kind is not Kind.PASSTHROUGH
        rows = np.flatnonzero(~table.missing(j))
        assert_same_cells(native, result, j, rows)
    if container.startswith("pandas"):
        assert result.index.equals(native.index)
        assert result.columns.equals(native.columns)
        assert (result.dtypes == native.dtypes).all()
    if container == "polars":
        assert result.schema == native.schema
    if container == "pyarrow":
        assert result.schema.equals(native.schema, check_metadata=True)


def assert_same_cells(before, after, j, rows):
    """Compare some rows of a column to the last bit."""
    if isinstance(before, pd.DataFrame):
        old, new = before.iloc[rows, j], after.iloc[rows, j]
        pd.testing.assert_series_equal(old, new, check_exact=True)
        if isinstance(old.dtype, np.dtype) and old.dtype != object:
            assert old.to_numpy().tobytes() == new.to_numpy().tobytes()
    elif isinstance(before, np.ndarray):
        assert [repr(cell) for cell in before[rows, j]] == [repr(cell) for cell in after[rows, j]]
    else:
        old, new = (x if isinstance(x, pl.DataFrame) else pl.from_arrow(x) for x in (before, after))
        old, new = old.to_series(j).gather(rows), new.to_series(j).gather(rows)
        polars.testing.assert_series_equal(old, new, check_exact=True)
        if old.dtype.is_float():
            assert old.to_numpy().tobytes() == new.to_numpy().tobytes()


@pytest.mark.parametrize("container", CONTAINERS)
@settings(max_examples=30)
@given(frame=mixed_tables())
def test_observed_cells_survive_encode_and_decode(container, frame):
    table = Table.wrap(CONTAINERS[container](frame))
    schema = Schema.infer(table)
    encoded = schema.encode(table)
    assert not encoded.unseen.any()
    for at, j in enumerate(schema.features):
        column, observed = schema.columns[j], encoded.observed[:, at]
        numbers = encoded.numbers[observed, at]
        assert (column.lower <= numbers).all()
        assert (numbers <= column.upper).all()
        if column.categories is not None:
            expected = table.cells(j).codes(column.categories)[observed]
            assert numbers.tolist() == expected.tolist()
            decoded = column.decode(numbers).tolist()
            assert [column.categories.index(value) for value in decoded] == expected.tolist()
        elif column.kind is Kind.CONTINUOUS:
            np.testing.assert_array_equal(column.decode(numbers), numbers)


@settings(max_examples=30)
@given(frame=mixed_tables(), data=st.data())
def test_rows_encode_alone_as_they_do_together(frame, data):
    container = data.draw(st.sampled_from(list(CONTAINERS)))
    table = Table.wrap(CONTAINERS[container](frame))
    schema = Schema.infer(table)
    start = data.draw(st.integers(0, frame.height - 1))
    part = table.slice(start, start + 1)
    schema.check(part)
    whole, alone = schema.encode(table), schema.encode(part)
    np.testing.assert_array_equal(alone.numbers, whole.numbers[start : start + 1])
    np.testing.assert_array_equal(alone.observed, whole.observed[start : start + 1])
