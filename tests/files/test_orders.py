"""Ordered categories in Parquet files, which do not always keep their order."""

import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import dataset

from grapefill.errors import GrapefillWarning
from grapefill.files.batches import ParquetSource, as_source, read_all
from grapefill.files.folder import Job, fill_parquet
from grapefill.files.orders import common_order, with_one_dictionary
from grapefill.files.table_file import read_table
from grapefill.table import Schema, Table
from grapefill.table.kinds import Kind

LEVELS = ["none", "primary", "secondary", "degree"]


def levels(values, known=LEVELS):
    codes = pa.array([None if value is None else known.index(value) for value in values], pa.int8())
    return pa.DictionaryArray.from_arrays(codes, pa.array(known), ordered=True)


def table(*chunks):
    rows = sum(map(len, chunks))
    return pa.table({"c": pa.chunked_array(list(chunks)), "x": pa.array([1.5] * rows)})


BACKWARDS = [*reversed(LEVELS), None] * 3


def kind_of(frame):
    column = Schema.infer(Table.wrap(frame), warn=False).columns[0]
    return column.kind, column.categories


def read(path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        file = read_table(path)
    return file, [str(each.message) for each in caught]


@pytest.mark.parametrize("group", [4, 100])
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_a_dictionary_keeps_the_order(tmp_path, group, version):
    path = tmp_path / "o.parquet"
    pq.write_table(table(levels(BACKWARDS)), path, row_group_size=group, version=version)
    file, notes = read(path)
    assert kind_of(file.frame) == (Kind.ORDINAL, tuple(LEVELS))
    assert not notes


def test_a_dictionary_that_is_too_large_for_its_page_keeps_the_order(tmp_path):
    path = tmp_path / "o.parquet"
    known = [f"level {number:03}" for number in range(300)]
    values = [*reversed(known)] * 5
    pq.write_table(
        table(levels_wide(values, known)), path, dictionary_pagesize_limit=100, write_batch_size=50
    )
    file, notes = read(path)
    assert kind_of(file.frame) == (Kind.ORDINAL, tuple(known))
    assert not notes


def levels_wide(values, known):
    codes = pa.array([known.index(value) for value in values], pa.int16())
    return pa.DictionaryArray.from_arrays(codes, pa.array(known), ordered=True)


@pytest.mark.parametrize("dictionary", [False, ["x"]])
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_without_a_dictionary_there_is_no_order(tmp_path, dictionary, version):
    path = tmp_path / "o.parquet"
    frame = pd.DataFrame({"c": pd.Categorical(BACKWARDS, LEVELS, ordered=True), "x": 1.5})
    frame.to_parquet(path, use_dictionary=dictionary, version=version)
    file, notes = read(path)
    assert kind_of(file.frame) == (Kind.CATEGORICAL, tuple(sorted(LEVELS)))
    (note,) = notes
    assert "Column 'c' of" in note
    assert "--ordinal c=..." in note


def test_levels_that_are_named_need_no_note(tmp_path):
    path = tmp_path / "o.parquet"
    pq.write_table(table(levels(BACKWARDS)), path, use_dictionary=False)
    # A note would be a warning, which fails the test.
    file = read_table(path, types={"c": {"type": "text", "levels": LEVELS}})
    assert file.frame["c"].to_pylist() == BACKWARDS


@pytest.mark.parametrize("group", [2, 100])
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_unlike_dictionaries_have_no_order(tmp_path, group, version):
    path = tmp_path / "o.parquet"
    rows = table(levels(["lo", "mid"], ["lo", "mid"]), levels(["hi", "lo"], ["hi", "lo"]))
    assert kind_of(rows) == (Kind.CATEGORICAL, ("hi", "lo", "mid"))
    pq.write_table(rows, path, row_group_size=group, version=version)
    file, notes = read(path)
    assert kind_of(file.frame) == (Kind.CATEGORICAL, ("hi", "lo", "mid"))
    assert len(notes) == 1


def test_files_of_other_programs_have_no_order(tmp_path, monkeypatch):
    monkeypatch.setattr("grapefill.files.orders._KEEPS_DICTIONARIES", "another program")
    path = tmp_path / "o.parquet"
    pq.write_table(table(levels(BACKWARDS)), path)
    assert kind_of(read(path)[0].frame)[0] is Kind.CATEGORICAL


def test_the_filled_file_tells_no_order_either(tmp_path):
    source, target, other = (tmp_path / name for name in ("o.parquet", "p.parquet", "q.parquet"))
    rows = table(levels(["degree", None, "none"])).append_column("s", pa.array([{"a": 1}] * 3))
    pq.write_table(rows, source, use_dictionary=False)
    file, _ = read(source)
    file.write(target, rows.set_column(0, "c", pa.array(["degree", "none", "none"])))
    fill_parquet(Job(source, other), lambda part: part)
    for path in (target, other):
        assert pq.read_schema(path).field("c").type.ordered
        assert kind_of(read(path)[0].frame)[0] is Kind.CATEGORICAL
        chunks = pq.read_metadata(path).row_group(0)
        assert [chunks.column(k).has_dictionary_page for k in range(3)] == [False, True, True]


@pytest.mark.parametrize("known", [None, LEVELS[1:]])
def test_a_folder_has_no_order_if_one_file_has_none(tmp_path, known):
    pq.write_table(table(levels(BACKWARDS)), tmp_path / "a.parquet")
    assert kind_of(read_all(as_source(tmp_path)))[0] is Kind.ORDINAL
    values = ["degree", "primary"]
    if known is None:
        pq.write_table(table(levels(values)), tmp_path / "b.parquet", use_dictionary=False)
    else:
        pq.write_table(table(levels(values, known[::-1])), tmp_path / "b.parquet")
    for data in (tmp_path, dataset.dataset(tmp_path)):
        with pytest.warns(GrapefillWarning, match="does not tell their order"):
            source = as_source(data)
        assert source.unordered == {"c"}
        assert kind_of(read_all(source))[0] is Kind.CATEGORICAL


def test_files_with_some_of_the_levels_keep_the_order(tmp_path):
    pq.write_table(table(levels(["degree", "none"], ["none", "degree"])), tmp_path / "a.parquet")
    pq.write_table(table(levels(BACKWARDS)), tmp_path / "b.parquet")
    source = ParquetSource([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert not source.unordered
    assert kind_of(read_all(source)) == (Kind.ORDINAL, tuple(LEVELS))
    pq.write_table(table(levels([])), tmp_path / "c.parquet", use_dictionary=False)
    assert not ParquetSource([tmp_path / "b.parquet", tmp_path / "c.parquet"]).unordered


def test_own_marks_leave_the_order(tmp_path):
    path = tmp_path / "o.parquet"
    pq.write_table(table(levels(BACKWARDS)), path)
    assert kind_of(read_table(path, na="primary").frame) == (
        Kind.ORDINAL,
        ("none", "secondary", "degree"),
    )


def test_chunks_share_the_longest_dictionary():
    parts = [levels(["hi", "lo"], ["lo", "hi"]), levels(["mid"], ["lo", "mid", "hi"])]
    column = pa.chunked_array(parts)
    joined = with_one_dictionary(column)
    assert [chunk.dictionary.to_pylist() for chunk in joined.chunks] == [["lo", "mid", "hi"]] * 2
    assert joined.to_pylist() == ["hi", "lo", "mid"]
    assert kind_of(pa.table({"c": column})) == (Kind.ORDINAL, ("lo", "mid", "hi"))


def test_no_order_in_common():
    arrays = [pa.array(each) for each in (["lo", "mid"], ["mid", "hi"])]
    assert common_order(arrays) is None
    assert common_order([]) is None
