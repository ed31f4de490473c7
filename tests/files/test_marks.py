"""Every kind of file knows whether a cell is a mark that the caller names."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grapefill.files import read_table

TABLE = pa.table(
    {
        "number": [1.5, -999.0, None],
        "whole": [1, 2, 77],
        "word": ["a", "k.A.", "b"],
        "coded": pa.array(["x", "none", "x"]).dictionary_encode(),
    }
)


@pytest.fixture(params=["csv", "jsonl", "parquet", "xlsx"])
def file(request, tmp_path):
    source = tmp_path / "source.parquet"
    pq.write_table(TABLE, source)
    path = tmp_path / f"copy.{request.param}"
    read_table(source).write(path, TABLE)
    return read_table(path, na=("-999", "77"))


@pytest.mark.parametrize("mark", ["-999", "77", "k.A.", "none"])
def test_marks_that_are_there(file, mark):
    assert file.has_mark(mark)


@pytest.mark.parametrize("mark", ["-99", "word", "word=a", "k.a.", "78"])
def test_marks_that_are_not(file, mark):
    assert not file.has_mark(mark)
