"""`ampute` makes the holes it was asked for and changes nothing else, in every container."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapefill.errors import ConfigError, InputError
from grapefill.evaluate import MECHANISMS, ampute, draw_holes
from grapefill.table import Table

ROWS = 400


def mixed() -> pl.DataFrame:
    """Return a table with columns of every kind, some cells missing already."""
    rng = np.random.default_rng(0)
    day = datetime.date(2020, 1, 1)
    frame = pl.DataFrame(
        {
            "person_id": range(ROWS),
            "income": rng.lognormal(size=ROWS),
            "rooms": rng.integers(1, 7, ROWS),
            "town": rng.choice(["Ulm", "Bonn", "Jena"], ROWS),
            "owner": rng.random(ROWS) < 0.4,
            "since": [day + datetime.timedelta(days=int(d)) for d in rng.integers(0, 900, ROWS)],
            "notes": [f"note {i}" for i in range(ROWS)],
            "tags": [[i] for i in range(ROWS)],
        }
    )
    gone = pl.Series(rng.random(ROWS) < 0.1)
    return frame.with_columns(pl.when(~gone).then(pl.col("income")))


def containers() -> dict[str, Any]:
    frame = mixed()
    return {
        "polars": frame,
        "pandas": frame.to_pandas().set_index(pd.Index(range(5, 5 + ROWS))),
        "pyarrow": frame.to_arrow(),
        "numpy": frame.select("income", "rooms", "owner").to_numpy(),
        "objects": frame.drop("tags").to_pandas().to_numpy(dtype=object),
        "list": frame.select("income", "town").rows(),
    }


def missing(native: Any) -> np.ndarray:
    table = Table.wrap(native)
    return np.column_stack([table.missing(j) for j in range(table.n_columns)])


def values(native: Any) -> np.ndarray:
    if isinstance(native, pa.Table):
        native = pl.from_arrow(native)
    if isinstance(native, pl.DataFrame):
        return np.array(native.rows(), dtype=object)
    return np.asarray(native, dtype=object)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", list(containers()))
def test_holes_join_those_there_and_nothing_else_changes(name: str, mechanism: str) -> None:
    native = containers()[name]
    result = ampute(native, 0.3, mechanism, random_state=0)
    assert type(result) is (np.ndarray if name == "list" else type(native))
    before, after = missing(native), missing(result)
    assert (after >= before).all()
    assert 0.05 < after.mean() - before.mean() < 0.35
    assert not after.all(axis=0).any()
    assert not after.all(axis=1).any()
    stays = ~after
    assert (values(result)[stays] == values(native)[stays]).all()
    assert (missing(ampute(native, 0.3, mechanism, random_state=0)) == after).all()
    assert (missing(ampute(native, 0.3, mechanism, random_state=1)) != after).any()


def test_dtypes_and_index_of_pandas() -> None:
    native = containers()["pandas"]
    result = ampute(native, 0.3, random_state=0)
    assert result.index.equals(native.index)
    expected = native.dtypes.to_dict() | {"rooms": pd.Int64Dtype(), "owner": pd.BooleanDtype()}
    assert result.dtypes.to_dict() == expected


def test_dtypes_of_polars_and_pyarrow_stay() -> None:
    for name in ("polars", "pyarrow"):
        native = containers()[name]
        assert ampute(native, 0.3, random_state=0).schema == native.schema


def test_identifiers_and_what_cannot_be_filled_are_left_alone_unless_named() -> None:
    native = mixed()
    holes = missing(ampute(native, 0.3, random_state=0)).sum(axis=0)
    assert [holes[native.columns.index(name)] for name in ("person_id", "notes", "tags")] == [0] * 3
    named = ["person_id", "notes", "tags"]
    result = ampute(native, 0.3, columns=named, random_state=0)
    assert [name for name in native.columns if result[name].null_count()] == [
        "person_id",
        "income",
        "notes",
        "tags",
    ]
    assert result["income"].null_count() == native["income"].null_count()
    result = ampute(native, 0.3, "mnar", columns=["person_id", "notes"], random_state=0)
    gone = result["person_id"].is_null()
    average = [native["person_id"].filter(part).mean() for part in (gone, ~gone)]
    assert abs(average[0] - average[1]) > 50


@pytest.mark.parametrize("name", ["town", "owner", "since", "rooms"])
def test_mnar_depends_on_the_value_whatever_its_kind(name: str) -> None:
    native = mixed()
    result = ampute(native, 0.4, "mnar", columns=[name], random_state=0)
    gone = result[name].is_null().to_numpy()
    table = Table.wrap(native)
    cells = table.cells(native.columns.index(name))
    if name == "since":
        numbers = cells.instants().astype(float)
    else:
        numbers = cells.codes(cells.distinct()).astype(float)
    assert abs(np.corrcoef(gone, numbers)[0, 1]) > 0.2


def test_mar_depends_on_the_columns_that_are_not_named() -> None:
    rng = np.random.default_rng(0)
    native = rng.normal(size=(2000, 2))
    gone = np.isnan(ampute(native, 0.4, "mar", columns=[1], random_state=0))
    assert gone.any(axis=0).tolist() == [False, True]
    assert abs(np.corrcoef(gone[:, 1], native[:, 0])[0, 1]) > 0.3


def test_all_columns_named_under_mar_is_as_none_named() -> None:
    native = np.random.default_rng(0).normal(size=(50, 4))
    by_name = ampute(native, 0.4, "mar", columns=range(4), random_state=3)
    np.testing.assert_array_equal(by_name, ampute(native, 0.4, "mar", random_state=3))


def test_the_rate_is_that_of_observed_cells() -> None:
    rng = np.random.default_rng(0)
    native = np.where(rng.random((20_000, 3)) < 0.5, np.nan, rng.normal(size=(20_000, 3)))
    for mechanism in MECHANISMS:
        lost = np.isnan(ampute(native, 0.2, mechanism, allow_empty_rows=True, random_state=0))
        share = (lost & ~np.isnan(native)).sum(axis=0) / (~np.isnan(native)).sum(axis=0)
        np.testing.assert_allclose(share[share > 0], 0.2, atol=0.015)


def test_a_mark_counts_as_missing_and_stays() -> None:
    native = pd.DataFrame({"a": [-1, 2, 3, 4] * 20, "b": [1.0, 2.0, 3.0, 4.0] * 20})
    result = ampute(native, 0.5, missing_values=-1, random_state=0)
    assert (result["a"][native["a"] == -1] == -1).all()
    assert result["a"].isna().sum() > 10


@given(
    shape=st.tuples(st.integers(1, 8), st.integers(2, 5)),
    rate=st.floats(0, 0.99),
    mechanism=st.sampled_from(MECHANISMS),
    seed=st.integers(0, 1000),
    gone=st.floats(0, 0.9),
)
def test_no_column_or_row_is_emptied(
    shape: tuple[int, int], rate: float, mechanism: str, seed: int, gone: float
) -> None:
    rng = np.random.default_rng(seed)
    numbers = np.where(rng.random(shape) < gone, np.nan, rng.integers(0, 3, shape))
    known = ~np.isnan(numbers)
    mask = draw_holes(numbers, rate, mechanism, seed=seed)
    assert not (mask & ~known).any()
    left = known & ~mask
    assert (left.any(axis=0) == known.any(axis=0)).all()
    assert (left.any(axis=1) == known.any(axis=1)).all()
    free = draw_holes(numbers, rate, mechanism, seed=seed, allow_empty_rows=True)
    assert (free >= mask).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rate": 1}, ConfigError, "rate must be at least 0 and below 1, got 1"),
        ({"rate": -0.1}, ConfigError, "rate must be at least 0"),
        ({"rate": float("nan")}, ConfigError, "rate must be at least 0"),
        ({"rate": "0.3"}, ConfigError, "rate must be at least 0 and below 1, got '0.3'"),
        ({"rate": True}, ConfigError, "rate must be"),
        ({"mechanism": "random"}, ConfigError, "mechanism must be one of 'mcar', 'mar', 'mnar'"),
        ({"columns": ["incme"]}, InputError, "columns names the column 'incme', which the table"),
        ({"columns": [["income"]]}, InputError, "columns names the column \\['income'\\]"),
        ({"columns": "income"}, ConfigError, r"columns must be a list of columns. Pass \['income"),
        ({"columns": []}, ConfigError, "columns names no column"),
        (
            {"columns": ["tags"], "mechanism": "mnar"},
            InputError,
            r"Column 'tags' \(values of dtype List\(Int64\)\) has no order by which cells",
        ),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ampute(mixed(), **arguments)


def test_one_column_needs_permission() -> None:
    native = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0] * 5})
    with pytest.raises(ConfigError, match="allow_empty_rows=True"):
        ampute(native)
    result = ampute(native, 0.5, allow_empty_rows=True, random_state=0)
    assert 0 < result["a"].isna().sum() < 20


def test_a_table_of_nothing_to_fill() -> None:
    with pytest.raises(InputError, match="No column can have holes by default"):
        ampute(pl.DataFrame({"tags": [[1], [2]]}))
