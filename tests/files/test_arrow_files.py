import datetime
import decimal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from grapefill.errors import InputError, OutputError
from grapefill.files.table_file import read_table

DAY = datetime.date(2024, 2, 29)


def table():
    kinds = pa.schema(
        [
            pa.field("i", pa.int16(), metadata={"unit": "cm"}),
            pa.field("f", pa.float32()),
            pa.field("nan", pa.float64()),
            pa.field("c", pa.dictionary(pa.int8(), pa.string())),
            pa.field("o", pa.dictionary(pa.int8(), pa.string(), ordered=True)),
            pa.field("d", pa.date32()),
            pa.field("t", pa.timestamp("us", tz="Europe/Berlin")),
            pa.field("s", pa.large_string()),
            pa.field("m", pa.decimal128(6, 2)),
            pa.field("b", pa.bool_()),
            pa.field("l", pa.list_(pa.int32())),
            pa.field("x", pa.duration("s")),
        ],
        metadata={"author": "me"},
    )
    return pa.table(
        [
            pa.array([1, None, 3], pa.int16()),
            pa.array([1.5, None, 2.5], pa.float32()),
            pa.array([1.5, float("nan"), None], pa.float64()),
            pa.array(["x", None, "y"]).dictionary_encode().cast(kinds.field("c").type),
            pa.DictionaryArray.from_arrays(
                pa.array([2, None, 0], pa.int8()), pa.array(["low", "mid", "high"]), ordered=True
            ),
            pa.array([DAY, None, DAY], pa.date32()),
            pa.array([datetime.datetime(2024, 2, 29, 12), None, None], kinds.field("t").type),
            pa.array(["x", None, "y"], pa.large_string()),
            pa.array([decimal.Decimal("1.25"), None, None], pa.decimal128(6, 2)),
            pa.array([True, None, False]),
            pa.array([[1], None, [2, 3]], pa.list_(pa.int32())),
            pa.array([1, None, 3], pa.duration("s")),
        ],
        schema=kinds,
    )


NEW = {
    "i": 2,
    "f": 2.0,
    "nan": 2.5,
    "c": "x",
    "o": "mid",
    "d": DAY,
    "t": datetime.datetime(2024, 1, 1),
    "s": "z",
    "m": decimal.Decimal("9.50"),
    "b": True,
    "x": datetime.timedelta(seconds=9),
}


def fill(frame):
    """Put a value into every hole of the second row."""
    for j, name in enumerate(frame.column_names):
        if name not in NEW:
            continue
        kind = frame.schema.field(name).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        values = frame[name].cast(plain).to_pylist()
        values[1] = NEW[name]
        frame = frame.set_column(j, name, pa.array(values, plain))
    return frame


def write(path):
    if path.suffix == ".parquet":
        pq.write_table(table(), path, compression="zstd", row_group_size=2)
    elif path.suffix == ".arrows":
        with pa.ipc.new_stream(path, table().schema) as writer:
            writer.write_table(table(), max_chunksize=2)
    else:
        feather.write_feather(table(), str(path), compression="zstd", chunksize=2)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrows"])
def test_schema_and_values_stay(tmp_path, suffix):
    before, after = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    write(before)
    file = read_table(before)
    assert file.frame.drop_columns("nan").equals(table().drop_columns("nan"))
    file.write(after, fill(file.frame))
    again = read_table(after).frame
    # Parquet itself gives dictionaries wider indices.
    assert again.schema.equals(file.frame.schema, check_metadata=True)
    for name in again.column_names:
        old, new = file.frame[name].to_pylist(), again[name].to_pylist()
        assert new[0] == old[0], name
        assert new[2] == old[2], name
        if name == "t":
            assert new[1].replace(tzinfo=None) == datetime.datetime(2024, 1, 1, 1)
        else:
            assert new[1] == NEW.get(name), name
    if suffix == ".parquet":
        old, new = pq.read_metadata(before), pq.read_metadata(after)
        assert new.num_row_groups == old.num_row_groups == 2
        assert new.row_group(0).column(0).compression == "ZSTD"
    else:
        assert read_table(after)._compression == (None if suffix == ".arrows" else "zstd")
        assert read_table(after).frame["i"].num_chunks == 2
    assert again["o"].chunk(0).dictionary.to_pylist() == ["low", "mid", "high"]


def test_lz4_is_recognised(tmp_path):
    feather.write_feather(table(), str(tmp_path / "a.feather"), compression="lz4")
    assert read_table(tmp_path / "a.feather")._compression == "lz4"


def views():
    """Return a table as polars writes it: with views of text and bytes."""
    levels = pa.array(["x", "y"], pa.string_view())
    return pa.table(
        {
            "s": pa.array(["x", None, "y"], pa.string_view()),
            "c": pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.uint32()), levels),
            "b": pa.array([b"x", None, b"y"], pa.binary_view()),
            "l": pa.array([["x"], None, ["y"]], pa.list_(pa.string_view())),
            "n": pa.array([{"a": "x"}, None, {"a": "y"}], pa.struct([("a", pa.string_view())])),
        },
    )


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".arrows"])
def test_views_stay_views(tmp_path, suffix):
    before, after = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    source = views().drop_columns("c") if suffix == ".parquet" else views()
    if suffix == ".parquet":
        pq.write_table(source, before)
    else:
        create = pa.ipc.new_file if suffix == ".arrow" else pa.ipc.new_stream
        with create(before, source.schema) as writer:
            writer.write_table(source)
    file = read_table(before, na=["y"])
    assert file.frame["s"].to_pylist() == ["x", None, None]
    filled = {"s": ["x", "z", "z"], "c": ["x", "x", "x"]}
    file.write(after, pa.table({n: filled[n] for n in filled if n in source.column_names}))
    table = read_table(after).table
    assert table.schema.equals(file.table.schema, check_metadata=True)
    assert table["s"].type == pa.string_view()
    for name in source.column_names:
        assert table[name].to_pylist() == filled.get(name, source[name].to_pylist())


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_files_of_polars(tmp_path, compression):
    source = pl.DataFrame({"s": ["x", None, "y"], "x": [1.5, 2.5, None]})
    source.write_ipc(tmp_path / "a.arrow", compression=compression)
    file = read_table(tmp_path / "a.arrow")
    assert file._compression == (None if compression == "uncompressed" else compression)
    file.write(tmp_path / "b.arrow", pa.table({"s": ["x", "y", "y"], "x": [1.5, 2.5, 3.5]}))
    again = pl.read_ipc(tmp_path / "b.arrow")
    assert again.to_dict(as_series=False) == {"s": ["x", "y", "y"], "x": [1.5, 2.5, 3.5]}
    assert again.schema == source.schema
    assert read_table(tmp_path / "b.arrow")._compression == file._compression


def test_own_marks(tmp_path):
    path = tmp_path / "a.parquet"
    words = pa.array(["x", "?", "y"]).dictionary_encode()
    source = pa.table(
        {"i": [1, -9, 3], "s": ["x", "?", "y"], "f": [1.0, -9.0, 2.0], "c": words, "b": [True] * 3}
    )
    pq.write_table(source, path)
    file = read_table(path, na=["-9", "?"])
    assert file.frame["i"].to_pylist() == [1, None, 3]
    assert file.frame["s"].to_pylist() == ["x", None, "y"]
    assert file.frame["c"].to_pylist() == ["x", None, "y"]
    assert file.frame["c"].type == words.type
    file.write(tmp_path / "b.parquet", file.frame)
    assert pq.read_table(tmp_path / "b.parquet").equals(source)
    filled = file.frame.set_column(0, "i", pa.array([1, 2, 3]))
    file.write(tmp_path / "c.parquet", filled)
    assert pq.read_table(tmp_path / "c.parquet")["i"].to_pylist() == [1, 2, 3]
    assert pq.read_table(tmp_path / "c.parquet")["s"].to_pylist() == ["x", "?", "y"]


def test_added_and_erased(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"i": [1, None, 3]}), path, compression={"i": "gzip"})
    file = read_table(path)
    new = pa.table({"i": pa.array([None, 2, 3], pa.int64()), "hole": [False, True, False]})
    file.write(tmp_path / "b.parquet", new, erase=True)
    again = pq.read_table(tmp_path / "b.parquet")
    assert again.to_pydict() == {"i": [None, 2, 3], "hole": [False, True, False]}


def test_parquet_to_text(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(table().select(["i", "f", "c", "d", "s"]), path)
    file = read_table(path)
    file.write(tmp_path / "b.csv", fill(file.frame))
    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert lines == [
        "i,f,c,d,s",
        "1,1.5,x,2024-02-29,x",
        "2,2.0,x,2024-02-29,z",
        "3,2.5,y,2024-02-29,y",
    ]


def test_nested_columns_are_json_in_text(tmp_path):
    source = pa.table({"i": [1, None], "l": [["x, y"], None], "n": [{"a": None}, {"a": 1}]})
    pq.write_table(source, tmp_path / "a.parquet")
    file = read_table(tmp_path / "a.parquet")
    file.write(tmp_path / "b.csv", pa.table({"i": [1, 2]}))
    assert (tmp_path / "b.csv").read_text().splitlines()[1:] == [
        '1,"[""x, y""]","{""a"": null}"',
        '2,,"{""a"": 1}"',
    ]
    file.write(tmp_path / "b.xlsx", pa.table({"i": [1, 2]}))
    frame = read_table(tmp_path / "b.xlsx").frame
    assert frame["l"].to_pylist() == ['["x, y"]', None]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.parquet", b"a,b\n1,2\n", "not a Parquet file"),
        ("a.parquet", b"", "not a Parquet file"),
        ("a.feather", b"a,b\n1,2\n", "not a Feather or Arrow file"),
        ("a.arrow", b"ARROW1\0\0abc", "not a Feather or Arrow file"),
    ],
)
def test_not_what_the_suffix_says(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / name)


def test_a_value_that_the_file_cannot_hold(tmp_path):
    pq.write_table(pa.table({"a": pa.array([1, None], pa.int8())}), tmp_path / "a.parquet")
    file = read_table(tmp_path / "a.parquet")
    with pytest.raises(OutputError, match="cannot hold what is to be filled in"):
        file.write(tmp_path / "b.parquet", pa.table({"a": [1, 1000]}))
    assert not (tmp_path / "b.parquet").exists()


def test_a_column_of_nothing_takes_any_type(tmp_path):
    pq.write_table(pa.table({"a": pa.nulls(2), "b": [1, 2]}), tmp_path / "a.parquet")
    file = read_table(tmp_path / "a.parquet")
    file.write(tmp_path / "b.parquet", pa.table({"a": ["x", "y"]}))
    assert pq.read_table(tmp_path / "b.parquet").to_pydict() == {"a": ["x", "y"], "b": [1, 2]}


def test_compression_of_every_column_stays(tmp_path):
    source = pa.table({"a": [1, None], "b": ["x", "y"]})
    pq.write_table(source, tmp_path / "a.parquet", compression={"a": "gzip", "b": "none"})
    file = read_table(tmp_path / "a.parquet")
    file.write(tmp_path / "b.parquet", pa.table({"a": [1, 2]}))
    group = pq.read_metadata(tmp_path / "b.parquet").row_group(0)
    assert [group.column(k).compression for k in range(2)] == ["GZIP", "UNCOMPRESSED"]


def test_nothing_in_it(tmp_path):
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="has no rows"):
        read_table(tmp_path / "a.parquet")


def test_names_twice(tmp_path):
    both = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    feather_path = tmp_path / "a.arrow"
    with pa.ipc.new_file(feather_path, both.schema) as writer:
        writer.write_table(both)
    with pytest.raises(InputError, match=r"Two columns of .* are called 'a'"):
        read_table(feather_path)


@pytest.mark.parametrize(
    ("marks", "missing"),
    [
        (["-999"], {"i", "f"}),
        (["-999.0"], {"i", "f"}),
        ("-999", {"i", "f"}),
        (["N/A"], {"s", "c"}),
        ([" N/A "], {"s", "c"}),
        ([" -999 ", "N/A"], {"i", "f", "s", "c"}),
    ],
)
def test_own_marks_in_any_spelling(tmp_path, marks, missing):
    words = pa.array([" N/A ", "x"])
    source = pa.table({"i": [-999, 9], "f": [-999.0, 9.5], "s": words, "c": words})
    source = source.set_column(3, "c", words.dictionary_encode())
    pq.write_table(source, tmp_path / "a.parquet")
    frame = read_table(tmp_path / "a.parquet", na=marks).frame
    assert {name for name in frame.column_names if not frame[name][0].is_valid} == missing
    assert all(column[1].is_valid for column in frame.columns)
