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


@pytest.mark.parametrize(
    ("mark", "cell", "missing"),
    [
        ("-99.9", "-99.900", True),
        ("-99.9", "-99.9000", True),
        ("-999.99", "-999.990", True),
        ("-99,9", "-99,900", True),
        ("99.9", "99,900", False),
        ("99.99", "99,990", False),
        ("99,9", "99.900", False),
    ],
)
def test_decimals_of_a_mark(tmp_path, mark, cell, missing):
    path = tmp_path / "table.csv"
    point = "," if "," in cell else "."
    path.write_text(f"a;b\n1{point}500;x\n2{point}125;y\n{cell};z\n3{point}125;w\n")
    file = read_table(path, na=mark)
    assert file.frame["a"].null_count == missing
    assert file.has_mark(mark) == missing


@pytest.mark.parametrize("mark", ["-99", "word", "word=a", "k.a.", "78"])
def test_marks_that_are_not(file, mark):
    assert not file.has_mark(mark)
