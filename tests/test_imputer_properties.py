"""Random mixed tables in every container: holes are filled, nothing else changes."""

from __future__ import annotations

import datetime
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapefill import GrapeImputer
from grapefill.errors import GrapefillWarning
from grapefill.table import Table

QUICK = {"max_steps": 2, "batch_rows": None, "width": 4, "edge_width": 4, "head_width": 4}
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
    pl.List(pl.Int8): st.lists(st.integers(0, 9), max_size=2),
}


@st.composite
def mixed_tables(draw):
    """Draw a polars frame with missing cells."""
    rows = draw(st.integers(1, 10))
    dtypes = draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=5))
    columns = []
    for j, dtype in enumerate(dtypes):
        values = draw(st.lists(st.none() | CELLS[dtype], min_size=rows, max_size=rows))
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
    "numpy": lambda frame: to_pandas(frame).astype(object).to_numpy(),
}


def frame_of(native):
    """Return any container as a pandas frame whose cells can be compared."""
    if isinstance(native, np.ndarray):
        return pd.DataFrame(native, dtype=object)
    if isinstance(native, pd.DataFrame):
        return native
    table = native if isinstance(native, pa.Table) else native.to_arrow()
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def labels(native):
    if isinstance(native, np.ndarray):
        return native.dtype
    if isinstance(native, pd.DataFrame):
        return list(native.dtypes.items()), native.index.tolist(), native.index.name
    return native.schema


def fit(imputer, native):
    """Fit, or return None where a table has not a single value."""
    table = Table.wrap(native)
    nothing = all(table.missing(j).all() for j in range(table.n_columns))
    with warnings.catch_warnings():
        # Columns that pass through, and columns without any value.
        warnings.simplefilter("ignore", GrapefillWarning)
        if nothing and not imputer.keep_empty_features:
            return None
        return imputer.fit(native)


def bits(column):
    """Return the cells of a column in a form that differs if a single bit does."""
    values = [None if value is pd.NA else value for value in column.astype(object)]
    return [value.hex() if isinstance(value, float) else repr(value) for value in values]


def check_filled(imputer, native, filled):
    assert type(filled) is type(native)
    before, after = Table.wrap(native), Table.wrap(filled)
    schema = imputer.schema_
    kept = [j for j, column in enumerate(schema.columns) if not column.useless]
    old, new = frame_of(native), frame_of(filled)
    assert len(old) == len(new)
    for at, j in enumerate(kept):
        column, missing = schema.columns[j], before.missing(j)
        observed = np.flatnonzero(~missing)
        assert bits(old.iloc[observed, j]) == bits(new.iloc[observed, at])
        if not column.imputable:
            assert after.missing(at).tolist() == missing.tolist()
            continue
        assert not after.missing(at).any()
        if column.categories is not None:
            assert set(after.cells(at).distinct()) <= set(column.categories)
    if len(kept) == before.n_columns:
        assert labels(filled) == labels(native)


@pytest.mark.parametrize("container", CONTAINERS)
@settings(max_examples=15)
@given(frame=mixed_tables(), preset=st.sampled_from(["default", "paper"]))
def test_only_holes_change(container, frame, preset):
    native = CONTAINERS[container](frame)
    imputer = fit(GrapeImputer(preset, settings=QUICK, random_state=0), native)
    if imputer is not None:
        check_filled(imputer, native, imputer.transform(native))


@pytest.mark.parametrize("container", CONTAINERS)
@settings(max_examples=8)
@given(frame=mixed_tables(), keep=st.booleans())
def test_indicators_say_what_was_missing(container, frame, keep):
    native = CONTAINERS[container](frame)
    imputer = GrapeImputer(
        settings=QUICK, add_indicator=True, keep_empty_features=keep, random_state=0
    )
    imputer = fit(imputer, native)
    if imputer is None:
        return
    filled, table = imputer.transform(native), Table.wrap(native)
    names = imputer.get_feature_names_out().tolist()
    assert Table.wrap(filled).n_columns == len(names)
    missing = [j for j in range(table.n_columns) if table.missing(j).any()]
    labels_in = imputer.get_feature_names_out().tolist()[: len(names) - len(missing)]
    assert names[len(labels_in) :] == [f"missingindicator_{table.labels[j]}" for j in missing]
    added = frame_of(filled).iloc[:, len(labels_in) :].to_numpy(dtype=bool)
    for at, j in enumerate(missing):
        assert added[:, at].tolist() == table.missing(j).tolist()


@pytest.mark.parametrize("container", ["polars", "pandas", "numpy"])
@settings(max_examples=8)
@given(frame=mixed_tables(), preset=st.sampled_from(["default", "paper"]))
def test_a_file_gives_bit_equal_output(container, frame, preset):
    native = CONTAINERS[container](frame)
    imputer = fit(GrapeImputer(preset, settings=QUICK, random_state=0), native)
    if imputer is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.grape"
        imputer.save(path)
        loaded = GrapeImputer.load(path)
        loaded.save(Path(folder) / "again.grape")
        assert (Path(folder) / "again.grape").read_bytes() == path.read_bytes()
    assert loaded.schema_ == imputer.schema_
    assert loaded.history_ == imputer.history_
    left, right = frame_of(imputer.transform(native)), frame_of(loaded.transform(native))
    assert list(left.dtypes) == list(right.dtypes)
    for j in range(left.shape[1]):
        assert bits(left.iloc[:, j]) == bits(right.iloc[:, j])


@settings(max_examples=8)
@given(frame=mixed_tables())
def test_rows_in_any_order(frame):
    imputer = fit(GrapeImputer(settings=QUICK, random_state=0), frame)
    if imputer is not None:
        backwards = list(range(frame.height))[::-1]
        polars.testing.assert_frame_equal(
            imputer.transform(frame[backwards])[backwards], imputer.transform(frame)
        )
