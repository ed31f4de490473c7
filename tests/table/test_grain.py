"""Dates are filled in as finely as they are told."""

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

from grapefill import GrapeImputer
from grapefill.table import Schema, Table
from grapefill.table.column import Column
from grapefill.table.grain import find_grain, telling_count, to_grain

DAY = 86_400


def column_of(native: Any) -> Column:
    return Schema.infer(Table.wrap(native)).columns[0]


@pytest.mark.parametrize(
    ("moments", "grain"),
    [
        (["2020-01-01", "1950-05-05", "NaT"], DAY * 10**9),
        (["2020-01-01T12:34:56.789", "1950-05-05T12:34:56.789"], DAY * 10**9),
        (["2020-01-01T03", "2020-01-01T04"], 3_600 * 10**9),
        (["2020-01-01T03:07", "1969-12-31T23:59"], 60 * 10**9),
        (["2020-01-01T03:07:01", "2020-01-01T03:07:30", "2020-01-01"], 10**9),
        (["2020-01-01", "2020-01-01T00:00:00.25"], 10**6),
        (["2020-01-01", "2020-01-01T00:00:00.00025"], 10**3),
        (["2020-01-01", "2020-01-01T00:00:00.000000025"], 1),
        (["2020-01-01", "2020-01-01"], 1),
        (["1677-09-22", "2262-04-11"], DAY * 10**9),
    ],
)
def test_the_grain_is_the_longest_that_will_do(moments: list[str], grain: int) -> None:
    cells = np.array(moments, dtype="M8[ns]")
    column = column_of(pd.DataFrame({"c": cells}))
    assert column.grain == grain
    counts = cells[~np.isnat(cells)].view(np.int64)
    assert (counts % grain == column.phase).all()
    # Between the ends everything has the grain, and the ends come back.
    found = column.decode(np.linspace(column.lower, column.upper, 20)).view(np.int64)
    assert (found % grain == column.phase).all()
    assert (found[0], found[-1]) == column.extent


DATES = [datetime.date(2020, 1, 1), None, datetime.date(1960, 2, 29)]
MIDNIGHTS = [
    None if day is None else datetime.datetime.combine(day, datetime.time()) for day in DATES
]
SPANS = [datetime.timedelta(days=3), None, datetime.timedelta(days=-2)]


@pytest.mark.parametrize(
    ("native", "grain"),
    [
        (pd.DataFrame({"c": pd.Series(DATES, dtype=object)}), 1),
        (pd.DataFrame({"c": pd.Series(MIDNIGHTS, dtype=object)}), DAY * 10**6),
        (pd.DataFrame({"c": pd.Series(SPANS, dtype="m8[ms]")}), DAY * 10**3),
        (pd.DataFrame({"c": pd.Series(DATES, dtype=pd.ArrowDtype(pa.date32()))}), 1),
        (pl.DataFrame({"c": pl.Series(DATES)}), 1),
        (pl.DataFrame({"c": pl.Series(MIDNIGHTS)}), DAY * 10**6),
        (pl.DataFrame({"c": pl.Series(SPANS)}), DAY * 10**6),
        (pa.table({"c": pa.array(DATES, pa.date64())}), 1),
        (pa.table({"c": pa.array(MIDNIGHTS, pa.timestamp("s", "UTC"))}), DAY),
        (pa.table({"c": pa.array(SPANS, pa.duration("ns"))}), DAY * 10**9),
        (np.array([["2020-01-01"], ["1960-02-29"]], dtype="M8[h]"), 24),
        (np.array([["2020-01"], ["2020-03"]], dtype="M8[M]"), 1),
        (np.array([[0], [50]], dtype="m8[25s]"), 1),
    ],
)
def test_containers(native: Any, grain: int) -> None:
    column = column_of(native)
    assert column.grain == grain
    assert Column.from_dict(column.to_dict()) == column


def test_midnights_of_a_time_zone_stay_midnights() -> None:
    winter = pd.DataFrame({"c": pd.date_range("2020-01-01", periods=9, tz="Asia/Kolkata")})
    column = column_of(winter)
    found = pd.Series(column.decode(np.linspace(column.lower, column.upper, 50)))
    local = found.dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata")
    assert (local == local.dt.normalize()).all()
    assert local.nunique() == 9
    # The clock was changed on March 29th, so days are told in hours.
    spring = pd.DataFrame({"c": pd.date_range("2020-03-25", periods=9, tz="Europe/Paris")})
    assert np.timedelta64(column_of(spring).grain, column.unit) == np.timedelta64(1, "h")


def test_numbers_have_no_grain() -> None:
    column = column_of(pd.DataFrame({"c": [0, DAY, 2 * DAY]}))
    assert column.grain == 1
    assert column.decode(np.array([5.2])).tolist() == [5]


def test_a_column_of_an_older_file_is_as_it_was() -> None:
    plain = column_of(np.array([["2020-01-01"], ["2020-01-03"]], dtype="M8[s]")).to_dict()
    del plain["grain"], plain["phase"]
    column = Column.from_dict(plain)
    assert column.decode(np.array([column.lower + 7])).tolist() == [
        datetime.datetime(2020, 1, 1, 0, 0, 7)
    ]


COUNTS = st.lists(
    st.builds(
        lambda step, k: step * k,
        st.sampled_from([1, 10**3, 10**6, 60 * 10**6, 3_600 * 10**6, DAY * 10**6]),
        st.integers(-(10**5), 10**5),
    ),
    min_size=1,
    max_size=8,
)


@given(COUNTS, st.integers(-(2**62), 2**62))
def test_few_counts_tell_the_grain_of_all(counts: list[int], shift: int) -> None:
    array = np.array(counts) + shift
    few = array[[array.argmin(), array.argmax(), telling_count(array, "us")]]
    assert find_grain(few, "us") == find_grain(array, "us")


@given(COUNTS, COUNTS)
def test_further_dates_refine_the_grain(counts: list[int], further: list[int]) -> None:
    def table(each: list[int]) -> Table:
        return Table.wrap(np.array(each).view("M8[us]").reshape(-1, 1))

    widened = Schema.infer(table(counts)).widened(table(further))
    assert widened == Schema.infer(table(counts + further))


@given(st.integers(-(2**63) + 1, 2**63 - 1), st.integers(-(2**63) + 1, 2**63 - 1))
def test_nothing_overflows_between_the_ends_of_int64(one: int, other: int) -> None:
    ends = np.array([one, other])
    grain, phase = find_grain(ends, "ns")
    assert to_grain(ends, grain, phase).tolist() == [one, other]
    grain, low = DAY * 10**9, min(one, other)
    high = max(one, other) - (max(one, other) - low) % grain
    middle = np.array([low, low + (high - low) // 3, high])
    found = to_grain(middle, grain, low % grain).tolist()
    assert all(low <= each <= high and (each - low) % grain == 0 for each in found)
    assert max(abs(int(b) - a) for a, b in zip(found, middle, strict=True)) <= grain // 2


@pytest.fixture(scope="module")
def holed() -> pd.DataFrame:
    random = np.random.default_rng(0)
    x = random.integers(0, 1_000, 80)
    table = pd.DataFrame(
        {
            "x": x + random.normal(size=80),
            "day": np.datetime64("1969-01-01", "ns") + x.astype("m8[D]"),
            "wait": (x * 15).astype("m8[m]").astype("m8[us]"),
        }
    )
    return table.mask(random.random(table.shape) < 0.2)


def test_all_that_is_filled_in_has_the_grain(holed: pd.DataFrame) -> None:
    imputer = GrapeImputer("fast", settings={"max_steps": 30}, random_state=0).fit(holed)
    ends = imputer.interval(holed, 0.8)
    tables = [imputer.transform(holed), *imputer.sample(holed, 2), ends.lower, ends.upper]
    for table in tables:
        day, wait = table["day"].dropna(), table["wait"].dropna()
        assert len(day)
        assert (day == day.dt.normalize()).all()
        assert (wait == wait.dt.round("min")).all()


def test_rows_that_arrive_later_refine_the_grain(holed: pd.DataFrame) -> None:
    imputer = GrapeImputer("fast", settings={"max_steps": 5, "rounds": 0}, random_state=0)
    imputer.partial_fit(holed)
    assert imputer.schema_.columns[1].grain == DAY * 10**9
    later = holed.assign(day=holed["day"] + pd.Timedelta(hours=6))
    imputer.partial_fit(later)
    assert imputer.schema_.columns[1].grain == 3_600 * 10**9
