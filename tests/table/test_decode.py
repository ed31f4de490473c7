import numpy as np
import pandas as pd
import polars as pl
import pytest

from grapefill.errors import GrapefillError
from grapefill.table import Schema, Table
from grapefill.table.arrays import cast_numbers, counts_in_unit, offsets
from grapefill.table.decimals import to_decimals


def column_of(native, **options):
    return Schema.infer(Table.wrap(native), **options).columns[0]


def round_trip(native):
    """Encode every cell of the first column and decode it again."""
    table = Table.wrap(native)
    schema = Schema.infer(table)
    return schema.columns[0].decode(schema.encode(table).numbers[:, 0])


@pytest.mark.parametrize(
    "integers",
    [
        [0, 1, -5],
        [2**53 - 1, 2**53, -(2**53)],
        [2**62, 2**62 + 1, 2**62 + 12345],
        [-(2**63), -(2**63) + 1],
        [2**63 - 1, 2**63 - 2],
        [2**64 - 1, 2**64 - 2],
        [-(2**63), 2**63 - 1],
        [0, 2**64 - 1],
    ],
)
def test_integers_beyond_float64_come_back(integers):
    dtype = pl.UInt64 if max(integers) >= 2**63 else pl.Int64
    assert round_trip(pl.DataFrame({"c": pl.Series(integers, dtype=dtype)})).tolist() == integers
    if dtype == pl.Int64:
        assert round_trip(np.array(integers).reshape(-1, 1)).tolist() == integers


def test_integers_never_leave_the_observed_range():
    for low, high in ((3, 7), (-(2**63), 2**63 - 1), (2**62, 2**62 + 5)):
        decoded = column_of(np.array([[low], [high]])).decode(np.array([-1e300, 1e300]))
        assert decoded.tolist() == [low, high]
        assert decoded.dtype == np.int64


def test_continuous_integers_are_whole():
    column = column_of(pd.DataFrame({"c": [1, 9]}), kinds={"c": "continuous"})
    assert column.decode(np.array([2.4])).tolist() == [2]


def test_floats_are_clipped_and_whole_floats_rounded():
    assert column_of(np.array([[0.5], [1.5]])).decode(np.array([0.1, 0.7, 9])).tolist() == [
        0.5,
        0.7,
        1.5,
    ]
    decoded = column_of(pd.DataFrame({"c": [1.0, 4.0, None]})).decode(np.array([2.6]))
    assert decoded.tolist() == [3.0]
    assert decoded.dtype == np.float64


def test_ordered_categories_round_to_the_nearest_observed_one():
    cells = pd.Categorical(["lo", "hi"], categories=["lo", "mid", "hi"], ordered=True)
    column = column_of(pd.DataFrame({"c": cells}))
    assert column.decode(np.array([-3.0, 0.4, 0.6, 8.0])).tolist() == ["lo", "lo", "hi", "hi"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_datetimes_come_back_in_their_unit(unit):
    stamps = np.array(["1930-01-01", "2020-02-29T12:34:56", "2261-01-01"], dtype=f"M8[{unit}]")
    decoded = round_trip(pd.DataFrame({"c": stamps}))
    assert decoded.dtype == stamps.dtype
    difference = np.abs((decoded - stamps).astype("m8[ns]").astype(np.int64))
    # Three centuries of nanoseconds do not fit float64 exactly; a microsecond is kept.
    assert difference.max() < (2_000 if unit == "ns" else 1)


def test_another_unit_at_transform_means_the_same_instant():
    stamps = pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"]))
    schema = Schema.infer(Table.wrap(pd.DataFrame({"c": stamps.astype("M8[ns]")})))
    expected = schema.encode(Table.wrap(pd.DataFrame({"c": stamps.astype("M8[ns]")}))).numbers
    for other in (stamps.astype("M8[s]"), stamps.dt.date):
        table = Table.wrap(pd.DataFrame({"c": other}))
        schema.check(table)
        np.testing.assert_array_equal(schema.encode(table).numbers, expected)


def test_instants_out_of_reach_of_the_unit_do_not_wrap_around():
    far = np.array(["9999-01-01", "0001-01-01", "1970-01-02"], dtype="M8[s]")
    counts = counts_in_unit(far, "ns")
    assert counts[0] == 2**63 - 1
    assert counts[1] == -(2**63 - 1)
    assert counts[2] == 86_400 * 10**9


def test_predictions_that_are_not_numbers_are_reported():
    with pytest.raises(GrapefillError, match="'x0' are not numbers"):
        column_of(np.array([[0.5]])).decode(np.array([np.nan]))


def test_categories_of_numbers_by_request():
    frame = pd.DataFrame({"zip": [2**60 + 1, 2**60, 5]})
    schema = Schema.infer(Table.wrap(frame), kinds={"zip": "categorical"})
    assert schema.columns[0].categories == (5, 2**60, 2**60 + 1)
    assert schema.encode(Table.wrap(frame)).numbers[:, 0].tolist() == [2, 1, 0]
    assert schema.columns[0].decode(np.array([2.0])).tolist() == [2**60 + 1]


def test_ten_thousand_categories():
    words = [f"w{i:05d}" for i in range(10_000)] * 2
    for native in (pd.DataFrame({"c": words}), pl.DataFrame({"c": words})):
        table = Table.wrap(native)
        schema = Schema.infer(table)
        codes = schema.encode(table).numbers[:, 0]
        assert codes.tolist() == list(range(10_000)) * 2


def test_offsets_and_casts_at_the_ends_of_the_range():
    smallest, largest = -(2**63), 2**63 - 1
    assert offsets(np.array([largest]), smallest)[0] == 2.0**64
    assert offsets(np.array([smallest]), largest)[0] == -(2.0**64)
    assert cast_numbers(np.array([2.0**70, -(2.0**70)]), np.dtype("int64")).tolist() == [
        largest,
        smallest,
    ]
    assert cast_numbers(np.array([-4]), np.dtype("uint64")).tolist() == [0]
    assert [str(d) for d in to_decimals(np.array([1e17, 3]), precision=17, scale=1)] == [
        "9999999999999999.9",
        "3.0",
    ]
