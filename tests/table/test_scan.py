"""One pass over the parts of a table learns what the whole table would tell."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from grapefill.errors import InputError
from grapefill.table import Scaling, Schema, Table
from grapefill.table import scan as scan_module
from grapefill.table.sample import RowSample
from grapefill.table.scan import TableScan


def make_table(rows: int = 300) -> pa.Table:
    random = np.random.default_rng(0)
    x = random.normal(size=rows)
    levels = pa.array(["low", "mid", "high"])
    codes = pa.array(random.integers(0, 2, rows), mask=random.random(rows) < 0.1)
    columns = {
        "float": pa.array(x * 1e3, mask=random.random(rows) < 0.2),
        "huge": pa.array(x * 1e305),
        "nan": np.where(random.random(rows) < 0.3, np.nan, x),
        "constant": np.full(rows, 7.5),
        "int": pa.array(np.rint(x * 50).astype(np.int16)),
        "large": pa.array(np.rint(x * 1e6).astype(np.int64) + 2**60),
        "customer_id": pa.array(np.arange(rows)[::-1]),
        "order_id": pa.array(np.arange(rows) // 2),
        "decimal": pa.array([Decimal(f"{v:.2f}") for v in x]),
        "truth": pa.array(x > 0, mask=random.random(rows) < 0.2),
        "text": pa.array(np.where(x > 0, "up", "down"), mask=random.random(rows) < 0.2),
        "free": pa.array([f"name {k}" for k in range(rows)]),
        "level": pa.DictionaryArray.from_arrays(codes.cast(pa.int8()), levels, ordered=True),
        "category": pa.array(np.where(x > 1, "a", "b")).dictionary_encode(),
        "day": pa.array([datetime.date(2020, 1, 1) + datetime.timedelta(int(v)) for v in x * 99]),
        "moment": pa.array((x * 1e9).astype("datetime64[ns]")),
        "midnight": pa.array((x * 99).astype("datetime64[D]").astype("datetime64[us]")),
        "one hour": pa.array(np.where(np.arange(rows) == 50, 3_600, 86_400 * np.arange(rows))).cast(
            pa.timestamp("s", "Europe/Paris")
        ),
        "wait": pa.array(np.rint(x * 99).astype("timedelta64[m]").astype("timedelta64[ns]")),
        "once": pa.array(np.full(rows, 12_345).astype("datetime64[s]")),
        "empty": pa.nulls(rows),
        "empty float": pa.nulls(rows, pa.float64()),
        "list": pa.array([[1.0]] * rows),
        "digit": pa.array(random.integers(0, 4, rows)),
    }
    return pa.table(columns)


KINDS = {"digit": "categorical", "level": "ordinal"}


@pytest.mark.parametrize("size", [1000, 37, 1])
def test_the_schema_is_that_of_the_whole_table(size: int) -> None:
    table = make_table()
    scan = TableScan(kinds=KINDS)
    for batch in table.to_batches(max_chunksize=size):
        scan.add(pa.Table.from_batches([batch]))
    expected = Schema.infer(Table.wrap(table), kinds=KINDS, warn=False)
    schema = scan.schema(warn=False)
    for found, column in zip(schema.columns, expected.columns, strict=True):
        assert found == column
    assert schema.names == expected.names
    assert scan.rows == table.num_rows
    assert scan.with_holes() == tuple(
        j for j in range(table.num_columns) if Table.wrap(table).missing(j).any()
    )


@pytest.mark.parametrize("method", ["minmax", "standard"])
def test_the_scaling_is_that_of_the_whole_table(method: str) -> None:
    table = make_table()
    scans = []
    for batch in table.to_batches(max_chunksize=90):
        scans.append(TableScan(kinds=KINDS))
        scans[-1].add(pa.Table.from_batches([batch]))
    first, *others = scans
    for other in others:
        first.merge(other)
    schema = first.schema(warn=False)
    encoded = schema.encode(Table.wrap(table))
    discrete = [at for at, j in enumerate(schema.features) if schema.columns[j].kind.is_discrete]
    expected = Scaling.fit(encoded.numbers, method, discrete=discrete)
    scaling = first.scaling(schema, method)
    np.testing.assert_allclose(scaling.center, expected.center, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(scaling.scale, expected.scale, rtol=1e-9)
    assert first.observed_share(schema) == pytest.approx(encoded.observed.mean())


def test_too_many_texts_pass_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "MOST_DISTINCT", 50)
    scan = TableScan()
    scan.add(pa.table({"a": [str(k % 60) for k in range(600)], "b": np.arange(600.0)}))
    schema = scan.schema(warn=False)
    assert schema.features == (1,)
    assert "50 different texts" in schema.columns[0].note


def test_numbers_that_are_there_twice_are_found_in_a_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scan_module, "MOST_COMPARED", 64)
    for column, identifier in ((np.arange(2000), True), (np.arange(2000) // 2, False)):
        scan = TableScan()
        for part in np.array_split(column, 7):
            scan.add(pa.table({"id": part, "x": part * 0.5}))
        assert (scan.schema(warn=False).columns[0].note == "identifier") is identifier


def test_parts_must_fit_together() -> None:
    scan = TableScan()
    scan.add(pa.table({"a": [1.0]}))
    with pytest.raises(InputError, match="same columns"):
        scan.add(pa.table({"b": [1.0]}))
    with pytest.raises(InputError, match=r"infinity.*row 2"):
        scan.add(pa.table({"a": [1.0, np.inf]}))
    with pytest.raises(InputError, match="same types"):
        scan.add(pa.table({"a": ["text"]}))
    with pytest.raises(InputError, match="no rows"):
        TableScan().schema()


def test_integers_and_floats_in_different_parts_are_numbers() -> None:
    scan = TableScan()
    scan.add(pa.table({"a": [1, 2]}))
    scan.add(pa.table({"a": [0.5, None]}))
    scan.add(pa.table({"a": pa.nulls(3)}))
    (column,) = scan.schema().columns
    assert (column.lower, column.upper) == (0.5, 2.0)


def test_dates_of_different_units_are_told_together() -> None:
    scan = TableScan()
    for moments in (["2020-01-01T12", "2020-01-05T12"], ["2020-01-02T11:30"], ["1969-01-02T12"]):
        unit = "s" if len(moments) == 2 else "ns"
        scan.add(pa.table({"a": np.array(moments, dtype=f"M8[{unit}]")}))
    (column,) = scan.schema().columns
    assert (column.unit, column.grain, column.phase) == ("ns", 60 * 10**9, 0)


def test_a_sample_does_not_depend_on_how_rows_come() -> None:
    tables = [pa.table({"a": np.arange(k * 1000, k * 1000 + 400)}) for k in range(5)]
    samples = []
    for size in (400, 90):
        sample = RowSample(100, seed=3)
        for piece, table in enumerate(tables):
            for batch in table.to_batches(max_chunksize=size):
                sample.add(piece, pa.Table.from_batches([batch]))
        samples.append(sample)
    apart = [RowSample(100, seed=3) for _ in tables]
    for piece, (sample, table) in enumerate(zip(apart, tables, strict=True)):
        sample.add(piece, table)
    merged = apart[0]
    for other in apart[1:]:
        merged.merge(other)
    places, rows = samples[0].taken(80)
    for sample in (samples[1], merged):
        other_places, other_rows = sample.taken(80)
        assert (places == other_places).all()
        assert rows.equals(other_rows)
    assert len(set(rows["a"].to_pylist())) == 80
    assert (rows["a"].to_numpy() == places[:, 0] * 1000 + places[:, 1]).all()
    # Every piece is in it, about as often as any other.
    assert (np.bincount(places[:, 0]) > 5).all()


def test_parts_have_the_order_that_they_share() -> None:
    def levels(values: list[str], known: list[str]) -> pa.Table:
        codes = pa.array([known.index(value) for value in values], pa.int8())
        return pa.table({"c": pa.DictionaryArray.from_arrays(codes, known, ordered=True)})

    few, all_ = levels(["hi", "lo"], ["lo", "hi"]), levels(["mid"], ["lo", "mid", "hi"])
    other = levels(["mid", "lo"], ["mid", "lo"])
    for parts in ([few, all_], [all_, few], [few, other, all_], [all_, other]):
        scan = TableScan()
        for part in parts:
            scan.add(part)
        whole = Schema.infer(Table.wrap(pa.concat_tables(parts))).columns[0]
        found = scan.schema().columns[0]
        assert (found.kind, found.categories) == (whole.kind, whole.categories)
        assert (found.kind.value == "ordinal") == (other not in parts)


def test_an_enum_is_categorical_in_parts_too() -> None:
    enum = pl.DataFrame({"c": ["hi", "lo", None]}, schema={"c": pl.Enum(["lo", "mid", "hi"])})
    parts, scan = [enum.to_arrow(), enum.to_arrow()], TableScan()
    for part in parts:
        scan.add(part)
    for merged in (scan, _merged(parts)):
        assert merged.schema().columns[0].kind.value == "categorical"


def _merged(parts: list[pa.Table]) -> TableScan:
    scans = [TableScan(), *(TableScan() for _ in parts)]
    for scan, part in zip(scans[1:], parts, strict=True):
        scan.add(part)
        scans[0].merge(scan)
    return scans[0]
