import gzip
import io
import os
import sys

import pyarrow as pa
import pytest

from grapefill.errors import InputError, OutputError
from grapefill.files.places import Place, check_output, open_output, read_content
from grapefill.files.table_file import read_table


@pytest.mark.parametrize(
    ("path", "format", "compression"),
    [
        ("a.csv", "delimited", ""),
        ("a.b.TSV.GZ", "delimited", "gzip"),
        ("folder.d/a.parquet", "parquet", ""),
        ("a.parq", "parquet", ""),
        ("a.arrow.zst", "arrow", "zstd"),
        ("a.xlsx", "excel", ""),
        ("a.ndjson", "json", ""),
        ("a.doc", None, ""),
        ("a", None, ""),
        (".gz", None, ""),
        ("-", None, ""),
    ],
)
def test_suffixes(path, format, compression):
    place = Place.at(path)
    assert (place.format, place.compression) == (format, compression)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv.gz", b"a,b\n", "not compressed with gzip"),
        ("a.csv.gz", gzip.compress(b"a" * 1000, mtime=0)[:-9], "cut short"),
        ("a.csv.zst", b"a,b\n", "not compressed with zstd"),
        ("a.csv.zst", bytes(pa.Codec("zstd").compress(b"a" * 1000))[:-2], "cut short"),
        ("a.doc", b"a,b\n", r"Cannot tell what .*a\.doc' is from its suffix '\.doc'"),
        ("a", b"a,b\n", "from its suffix ''"),
    ],
)
def test_unreadable(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / name)


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_table(tmp_path / "a.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="it is a folder"):
        read_table(tmp_path / "folder.csv")


def test_format_by_name(tmp_path):
    (tmp_path / "a.doc").write_text("a\n1\n")
    assert read_table(tmp_path / "a.doc", format="delimited").frame.num_rows == 1
    with pytest.raises(InputError, match="no format 'csv'"):
        read_table(tmp_path / "a.doc", format="csv")


class TestCheckOutput:
    def test_existing_file(self, tmp_path):
        path = tmp_path / "a.csv"
        check_output(path)
        path.touch()
        with pytest.raises(OutputError, match="exists already"):
            check_output(path)
        check_output(path, overwrite=True)

    def test_input_is_never_overwritten(self, tmp_path):
        path = tmp_path / "a.csv"
        path.touch()
        (tmp_path / "soft.csv").symlink_to(path)
        os.link(path, tmp_path / "hard.csv")
        for name in ("a.csv", "soft.csv", "hard.csv", "../" + tmp_path.name + "/a.csv"):
            with pytest.raises(OutputError, match="is the input"):
                check_output(tmp_path / name, inputs=[path], overwrite=True)

    def test_impossible_places(self, tmp_path):
        with pytest.raises(OutputError, match="does not exist"):
            check_output(tmp_path / "none" / "a.csv")
        with pytest.raises(OutputError, match="Add a file name"):
            check_output(tmp_path)
        check_output("-", inputs=["-"])


def test_nothing_is_left_when_writing_fails(tmp_path):
    for name in ("a.csv", "a.csv.gz", "a.csv.zst"):
        with pytest.raises(RuntimeError), open_output(tmp_path / name) as file:
            file.write(b"a" * 100_000)
            raise RuntimeError
    with pytest.raises(OutputError, match="No space"), open_output(tmp_path / "a.csv"):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


class Pipe(io.StringIO):
    """Standard input or output with bytes behind it."""

    def __init__(self, content=b""):
        super().__init__()
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_and_output(monkeypatch, pack):
    monkeypatch.setattr(sys, "stdin", Pipe(pack(b"a;b\n1;x\n;y\n")))
    monkeypatch.setattr(sys, "stdout", Pipe())
    file = read_table("-")
    assert file.name == "standard input"
    file.write("-", file.frame.set_column(0, "a", pa.array([1, 2])))
    assert sys.stdout.buffer.getvalue() == b"a;b\n1;x\n2;y\n"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b'{"a": 1}\n', "JsonLinesFile"),
        (b"a\n1\n", "DelimitedFile"),
    ],
)
def test_standard_input_is_recognised(monkeypatch, content, kind):
    monkeypatch.setattr(sys, "stdin", Pipe(content))
    assert type(read_table("-")).__name__ == kind


def test_content_is_read_as_it_is(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\r\n\0")
    assert read_content(Place.at(tmp_path / "a.csv")) == b"\r\n\0"


def test_output_needs_a_known_suffix(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n")
    file = read_table(tmp_path / "a.csv")
    with pytest.raises(OutputError, match=r"Name it like the input, with '\.csv'"):
        file.write(tmp_path / "b.doc", file.frame)
