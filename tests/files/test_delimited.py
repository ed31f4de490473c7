"""Delimited text: each file is filled with all else unchanged, or refused by line and column."""

import datetime
import gzip

import pyarrow as pa
import pytest

from grapefill.errors import GrapefillWarning, InputError, OutputError
from grapefill.files.options import ReadOptions
from grapefill.files.places import Place
from grapefill.files.text.delimited import DelimitedFile
from grapefill.files.text.parts import fill_delimited

TORTURE = {
    "comma": ("a,b\n1,x\n,y\n3,\n", "a,b\n1,x\n1,y\n3,x\n"),
    "semicolon": ("a;b\n1;x\n;y\n", "a;b\n1;x\n1;y\n"),
    "tab": ("a\tb\n1\tx\n\ty\n", "a\tb\n1\tx\n1\ty\n"),
    "pipe": ("a|b\n1|x\n|y\n", "a|b\n1|x\n1|y\n"),
    "no newline at the end": ("a,b\n1,x\n2,", "a,b\n1,x\n2,x"),
    "line ends of Windows": ("a,b\r\n1,x\r\n,\r\n", "a,b\r\n1,x\r\n1,x\r\n"),
    "line ends of old Macs": ("a,b\r1,x\r,\r", "a,b\r1,x\r1,x\r"),
    "mixed line ends": ("a,b\n1,x\r\n,\n", "a,b\n1,x\r\n1,x\n"),
    "blank lines": ("\na,b\n1,x\n\n,\n  \n\n", "\na,b\n1,x\n\n1,x\n  \n\n"),
    "one column": ("a\n1\n\n3\n\n\n", "a\n1\n1\n3\n\n\n"),
    "quoted newlines": ('a,b\n"x\ny",1\n,"2"\n', 'a,b\n"x\ny",1\n"x\ny","2"\n'),
    "quotes in quotes": ('a,b\n"say ""x""",1\n,2\n', 'a,b\n"say ""x""",1\n"say ""x""",2\n'),
    "quotes everywhere": ('"a","b"\n"1","x"\n"",""\n', '"a","b"\n"1","x"\n"1","x"\n'),
    "quotes around text only": ('"a","b"\n"x",1\nNA,NA\n', '"a","b"\n"x",1\n"x",1\n'),
    "quotes where they are not needed": ('a,b\n"x",1\ny,\n,2\n', 'a,b\n"x",1\ny,1\nx,2\n'),
    "inches": ('a,b\n5" pipe,1\n,2\n"q, r",3\n', 'a,b\n5" pipe,1\n"5"" pipe",2\n"q, r",3\n'),
    "spaces behind commas": ("a, b\n1, x\n2, \n", "a, b\n1, x\n2, x\n"),
    "spaces before quotes": ('a, b\n1, "x, y"\n2, \n', 'a, b\n1, "x, y"\n2, "x, y"\n'),
    "leading zeros": ("zip\n00123\n\n04567\n", "zip\n00123\n00123\n04567\n"),
    "scientific": ("a,b\n1e3,x\n2.5E-3,y\n,z\n", "a,b\n1e3,x\n2.5E-3,y\n1e3,z\n"),
    "integers as floats": ("a,b\n3.0,x\n4.0,y\n,z\n", "a,b\n3.0,x\n4.0,y\n3.0,z\n"),
    "decimals": ("a,b\n1.50,x\n12.25,y\n,z\n", "a,b\n1.50,x\n12.25,y\n1.50,z\n"),
    "decimals of any length": ("a,b\n1.5,x\n12.25,y\n,z\n", "a,b\n1.5,x\n12.25,y\n1.5,z\n"),
    "decimal comma": ("a;b\n1,50;x\n2,25;\n;z\n", "a;b\n1,50;x\n2,25;x\n1,50;z\n"),
    "thousands": (
        'a,b\n"1,234.50",x\n"12.25",y\n,z\n',
        'a,b\n"1,234.50",x\n"12.25",y\n"1,234.50",z\n',
    ),
    "thousands, the other way": (
        "a;b\n1.234,50;x\n12,25;y\n;z\n",
        "a;b\n1.234,50;x\n12,25;y\n1.234,50;z\n",
    ),
    "thousands with spaces": ("a,b\n12 345,x\n7,y\n,z\n", "a,b\n12 345,x\n7,y\n12 345,z\n"),
    "plus signs": ("a,b\n+1,x\n-2,y\n,z\n", "a,b\n+1,x\n-2,y\n+1,z\n"),
    "dates": ("d,b\n2024-02-29,x\n,y\n", "d,b\n2024-02-29,x\n2024-02-29,y\n"),
    "German dates": ("d;b\n29.2.2024;x\n;y\n", "d;b\n29.2.2024;x\n29.2.2024;y\n"),
    "American dates": ("d,b\n2/29/2024,x\n,y\n", "d,b\n2/29/2024,x\n2/29/2024,y\n"),
    "dates in words": ("d,b\n29 Feb 2024,x\n,y\n", "d,b\n29 Feb 2024,x\n29 Feb 2024,y\n"),
    "times": (
        "d,b\n2024-02-29T23:59:01.250+02:00,x\n,y\n",
        "d,b\n2024-02-29T23:59:01.250+02:00,x\n2024-02-29T23:59:01.250+02:00,y\n",
    ),
    "yes and no": ("a,b\nYes,x\nno,y\n,z\n", "a,b\nYes,x\nno,y\nYes,z\n"),
    "emoji": ("a,b\n🍇,1\n,2\n🍷,\n", "a,b\n🍇,1\n🍇,2\n🍷,1\n"),
    "marks": ("a,b\nNA,x\nN/A,\nnull,?\n7,NaN\n", "a,b\n7,x\n7,x\n7,x\n7,x\n"),
    "marks among numbers": ("a,b\n1,+\n-,-\n.,\n", "a,b\n1,+\n1,-\n1,+\n"),
    "no name": (",b\n1,x\n,y\n", ",b\n1,x\n1,y\n"),
    "delimiters at the end": ("a,b,\n1,,\n,2,\n", "a,b,\n1,2,\n1,2,\n"),
    "zero bytes of value": ("a,b\n,\n,\n", "a,b\n,\n,\n"),
}


@pytest.mark.parametrize("block", [1 << 24, 1])
@pytest.mark.parametrize("case", TORTURE)
def test_torture(case, block, filled, written):
    before, after = TORTURE[case]
    suffix = ".tsv" if case == "tab" else ".csv"
    place = Place(f"table{suffix}", "delimited", "", suffix)
    file = DelimitedFile(place, before.encode(), ReadOptions(), block=block)
    assert written(file) == before.encode()
    assert written(file, filled(file.frame)).decode() == after


@pytest.mark.parametrize("block", [1 << 24, 7])
@pytest.mark.parametrize(
    ("encoding", "bom"),
    [
        ("utf-8", b""),
        ("utf-8", b"\xef\xbb\xbf"),
        ("latin-1", b""),
        ("cp1252", b""),
        ("utf-16-le", b"\xff\xfe"),
        ("utf-16-be", b"\xfe\xff"),
        ("utf-16-le", b""),
        ("utf-32-le", b"\xff\xfe\0\0"),
        ("utf-32-be", b"\0\0\xfe\xff"),
        ("utf-32-le", b""),
        ("utf-32-be", b""),
    ],
)
def test_encodings(encoding, bom, block, filled, written):
    text = "größe,b\nÄpfel,1\n,2\n" + "Æ,\n" * 3
    place = Place("table.csv", "delimited", "", ".csv")
    content = bom + text.encode(encoding)
    file = DelimitedFile(place, content, ReadOptions(), block=block)
    assert file.frame.column_names == ["größe", "b"]
    assert written(file) == content
    expected = text.replace("\n,2", "\nÄpfel,2").replace("Æ,", "Æ,1")
    assert written(file, filled(file.frame)) == bom + expected.encode(encoding)


@pytest.mark.parametrize("name", ["table.csv.gz", "table.csv.zst"])
def test_compressed(read, filled, tmp_path, name):
    text = b"a,b\n1,x\n,y\n"
    pack = gzip.compress if name.endswith("gz") else pa.Codec("zstd").compress
    content = bytes(pack(text))
    file = read(content, name)
    path = tmp_path / f"filled-{name}"
    file.write(path, filled(file.frame))
    packed = path.read_bytes()
    if name.endswith("gz"):
        assert gzip.decompress(packed) == b"a,b\n1,x\n1,y\n"
    else:
        with pa.input_stream(pa.BufferReader(packed), compression="zstd") as stream:
            assert stream.read() == b"a,b\n1,x\n1,y\n"
    # The output may be compressed in another way, or not at all.
    file.write(tmp_path / "plain.csv", filled(file.frame))
    assert (tmp_path / "plain.csv").read_bytes() == b"a,b\n1,x\n1,y\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a,b\n", "names but no rows"),
        ("a,b,a\n1,2,3\n", "Columns 1 and 3 of .* are both called 'a'.* first line\\.$"),
        ("1,2,1\n1,2,3\n", "called '1'.* or say that the file has no line of names"),
        ("a,b\n1,2\n3\n", "Line 3 of .* has 1 cell, but the first line has 2"),
        ('a,b\n"1\n2",2\n3,4,5\n', "Line 4 of .* has 3 cells"),
        ("a\n1,2\n3,4\n", "Line 2 of .* has 2 cells, but the first line has 1"),
        ("# mine\na,b\n1,2\n3,4\n", "that begin with '#' are comments, remove them"),
        ("# mine: x, y\na;b;c\n1;2;3\n", "that begin with '#' are comments, remove them"),
        ("Sales\n\na,b\n1,2\n", "Line 3 .* If the lines above it are a title, remove them"),
        ('a,b\n1,2\n1,"x\n2,y\n', "Line 3 of .*: the quote that opens cell 2 is not closed"),
        ('a,b\n1,2\n1,"x" y\n2,y\n', "Line 3 of .*: the quote that opens cell 2 is not closed"),
        ('a,b\n5" pipe,2\n1,"x\n"2,y\n', "Line 3 of .*: the quote that opens cell 2"),
        (b"a,b\n1,\0\n\xff,2\n", "is not text: it has zero bytes"),
    ],
)
@pytest.mark.parametrize("block", [1 << 24, 1])
def test_refused(content, message, block):
    place = Place("table.csv", "delimited", "", ".csv")
    content = content.encode() if isinstance(content, str) else content
    with pytest.raises(InputError, match=message):
        DelimitedFile(place, content, ReadOptions(), block=block)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le"])
@pytest.mark.parametrize("said", ["sep=;\n", "SEP=;\r\n", '"sep=;"\r'])
def test_a_line_that_names_the_delimiter(read, filled, written, said, encoding):
    newline = said.removeprefix(said.strip())
    text = said + newline.join(["a;b", "1,5;x", ";y", ""])
    file = read(text, charset=encoding)
    assert file.frame.to_pydict() == {"a": [1.5, None], "b": ["x", "y"]}
    assert file.where(0) == "line 3"
    assert written(file) == text.encode(encoding)
    expected = text.replace(f"{newline};y", f"{newline}1,5;y")
    assert written(file, filled(file.frame)) == expected.encode(encoding)


def test_a_line_that_names_the_delimiter_without_names(read, filled, written):
    file = read("sep=|\n1|x\n|y\n", header=False)
    assert written(file, filled(file.frame)) == b"sep=|\n1|x\n1|y\n"


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_a_line_that_names_the_delimiter_in_parts(filled, tmp_path, monkeypatch, bom):
    monkeypatch.setattr("grapefill.files.text.parts.PART_BYTES", 20)
    path = tmp_path / "a.csv"
    path.write_bytes(bom + b"sep=;\na;b\n" + b"1;x\n;y\n" * 20)
    fill_delimited(path, tmp_path / "b.csv", lambda part: filled(part.frame, a=7), ReadOptions())
    assert (tmp_path / "b.csv").read_bytes() == bom + b"sep=;\na;b\n" + b"1;x\n7;y\n" * 20


def test_undecodable_bytes_are_named_by_line(read):
    with pytest.raises(InputError, match=r"Line 3 of .* is not utf-8: the bytes e9 at character 2"):
        read("a,b\nx,1\nyé,2\n", charset="latin-1", encoding="utf-8")
    with pytest.raises(InputError, match="no encoding 'utf-9'"):
        read("a\n1\n", encoding="utf-9")


@pytest.mark.parametrize(
    ("content", "options", "encoding"),
    [
        (b"a,b\n\x81,1\n,2\n", {}, "latin-1"),
        (b"a,b\n\x80,1\n,2\n", {}, "cp1252"),
        (b"\xef\xbb\xbfa,b\n1,1\n,2\n", {"encoding": "utf-8-sig"}, "utf-8"),
        (b"\xff\xfea\0\n\x001\0", {"encoding": "utf-16"}, "utf-16-le"),
        (b"a\0\n\x001\0", {"encoding": "UTF16"}, "utf-16-le"),
        (b"\xfe\xff\0a\0\n\x001", {"encoding": "utf-16"}, "utf-16-be"),
        ("\ufeffa\n1\n2".encode("utf-32-le"), {"encoding": "utf-32"}, "utf-32-le"),
        ("\ufeffa\n1\n2".encode("utf-32-be"), {"encoding": "utf-32"}, "utf-32-be"),
        ("a\n1\n2".encode("utf-32-le"), {"encoding": "UTF32"}, "utf-32-le"),
    ],
)
def test_found_encodings(read, written, content, options, encoding):
    file = read(content, **options)
    assert file.encoding.name == encoding
    assert file.frame.column_names[0] == "a"
    assert written(file) == content


def test_bytes_that_a_named_encoding_lacks(read):
    with pytest.raises(
        InputError, match=r"Line 2 of .* is not cp1252: the bytes 81 at character 3"
    ):
        read(b"a,b\nx,\x81\n", encoding="cp1252")


def test_an_encoding_that_loses_bytes_is_refused(read):
    # These two bytes mean the same character, so one of them would be changed.
    with pytest.raises(InputError, match="cannot be written back unchanged"):
        read(b"a,b\n\x87\x90,1\n\x81\xe0,2\n", encoding="cp932")


def test_named_encoding_and_delimiter(read, filled, written):
    file = read("a:b\n1:Ÿ\n2:\n", charset="cp1252", encoding="cp1252", delimiter=":")
    assert written(file, filled(file.frame)) == "a:b\n1:Ÿ\n2:Ÿ\n".encode("cp1252")


def test_five_thousand_columns(read, filled, written):
    header = ",".join(f"c{j}" for j in range(5_000))
    rows = [",".join(str(j + k) if (j + k) % 7 else "" for j in range(5_000)) for k in range(4)]
    file = read("\n".join([header, *rows]))
    assert file.frame.shape == (4, 5_000)
    after = written(file, filled(file.frame)).decode().split("\n")
    assert [len(line.split(",")) for line in after] == [5_000] * 5
    assert after[1].split(",")[0] == "1"  # c0 is empty in the first row, and 1 in the second
    assert after[2] == ",".join(str(j + 1) if (j + 1) % 7 else str(j) for j in range(5_000))


def test_large_file(read, filled, written):
    rows = [
        f"{k},{k % 97}.{k % 10},{'word' if k % 3 else ''},2024-01-{k % 28 + 1:02d}"
        for k in range(30_000)
    ]
    body = "\n".join(rows * 24) + "\n"
    assert len(body) > 18_000_000
    file = read("id,number,text,date\n" + body)
    assert file.frame.num_rows == 720_000
    assert [str(kind) for kind in file.frame.schema.types] == [
        "int64",
        "double",
        "string",
        "date32[day]",
    ]
    expected = body.replace(",,", ",word,")
    assert written(file, filled(file.frame)) == f"id,number,text,date\n{expected}".encode()


def test_number_columns_with_another_text_become_text(read, written):
    with pytest.warns(
        GrapefillWarning, match=r"holds numbers, but line 5 has 'n/k', so it is read"
    ):
        file = read("a,b\n1,x\n2,x\n3,\nn/k,x\n5,x\n")
    assert file.frame["a"].to_pylist() == ["1", "2", "3", "n/k", "5"]
    file = read("a,b\n1,x\n2,x\n3,\nn/k,x\n5,x\n", na=["n/k"])
    assert file.frame["a"].to_pylist() == [1, 2, 3, None, 5]


@pytest.mark.parametrize("mark", ["-999", "-999.0", "-999.00"])
def test_own_marks_match_numbers_in_any_spelling(read, filled, written, mark):
    file = read(f"a,b\n1.5,x\n{mark},y\n", na=["-999"])
    assert file.frame["a"].to_pylist() == [1.5, None]
    assert written(file, filled(file.frame)) == b"a,b\n1.5,x\n1.5,y\n"


def test_usual_marks_can_be_turned_off(read):
    file = read("code\nNA\nDE\n\nFR\n", usual_na=False)
    assert file.frame["code"].to_pylist() == ["NA", "DE", None, "FR"]


def test_first_line_of_numbers(read, filled, written):
    with pytest.warns(GrapefillWarning, match="holds only numbers"):
        read("1,2\n3,4\n")
    file = read("1,x\n,y\n", header=False)
    assert file.frame.column_names == ["column 1", "column 2"]
    assert written(file, filled(file.frame)) == b"1,x\n1,y\n"


def test_quoting_off(read, filled, written):
    file = read('a\tb\n"x\t1\n\t2\n', "table.tsv", quote="")
    assert written(file, filled(file.frame)) == b'a\tb\n"x\t1\n"x\t2\n'
    with pytest.raises(OutputError, match="without quotes"):
        written(file, filled(file.frame, a="y\tz"))


def test_columns_are_added(read, filled, written):
    file = read('a,b\r\n1,\r\n\r\n,"x"\r\n')
    table = filled(file.frame).append_column("missing, or so", pa.array([True, False]))
    table = table.append_column("p", pa.array([0.25, None]))
    assert written(file, table) == (b'a,b,"missing, or so",p\r\n1,"x",1,0.25\r\n\r\n1,"x",0,\r\n')
    file = read("1,2\n3,4", header=False)
    table = file.frame.append_column("c", pa.array(["x", "y"]))
    assert written(file, table) == b"1,2,x\n3,4,y"


def test_cells_are_erased(read, written):
    file = read("a,b\n1,x\nNA,y\n3,z\n")
    table = pa.table({"a": pa.array([None, 2, 3], pa.int64()), "b": ["x", None, "z"]})
    assert written(file, table) == b"a,b\n1,x\n2,y\n3,z\n"
    assert written(file, table, erase=True) == b"a,b\nNA,x\n2,NA\n3,z\n"
    file = read("a\n1\n2\n")
    assert written(file, pa.table({"a": pa.array([None, 2])}), erase=True) == b'a\n""\n2\n'


def test_columns_that_are_not_given_stay(read, written):
    file = read("a,b,c\n1,,\n,x,\n")
    table = pa.table({"b": ["y", "x"]})
    assert written(file, table) == b"a,b,c\n1,y,\n,x,\n"


def test_other_rows_are_refused(read, written):
    file = read("a\n1\n2\n")
    with pytest.raises(InputError, match=r"has 3 rows, but .* has 2"):
        written(file, pa.table({"a": [1, 2, 3]}))
    with pytest.raises(InputError, match="Expected a pyarrow Table"):
        written(file, {"a": [1, 2]})


def test_a_value_that_the_encoding_lacks(read, filled, tmp_path):
    file = read("a,b\né,1\n,2\n", charset="latin-1")
    with pytest.raises(OutputError, match="'🍇', to be written to column 'a', does not exist in"):
        file.write(tmp_path / "out.csv", filled(file.frame, a="🍇"))
    assert not (tmp_path / "out.csv").exists()


def test_suffix_and_delimiter_must_agree(read, tmp_path):
    file = read("a,b\n1,2\n")
    with pytest.raises(OutputError, match="is separated by ','"):
        file.write(tmp_path / "out.tsv", file.frame)


@pytest.mark.parametrize(
    ("name", "format"), [("a.tsv", None), ("a.measured", "delimited"), ("a.json", "delimited")]
)
def test_the_suffix_of_the_input_will_do(read, written, name, format):
    file = read("a;b\n1;2\n3;\n", name, format=format)
    assert written(file) == b"a;b\n1;2\n3;\n"


@pytest.mark.parametrize("name", ["out.parquet", "out.feather", "out.jsonl", "out.xlsx"])
def test_other_formats(read, filled, tmp_path, name):
    from grapefill.files.table_file import read_table

    text = "a,b,c,d\n1,x,2024-02-29,yes\n,y,,no\n"
    file = read(text)
    file.write(tmp_path / name, filled(file.frame))
    again = read_table(tmp_path / name).frame
    assert again.column_names == ["a", "b", "c", "d"]
    assert again["a"].to_pylist() == [1, 1]
    assert again["c"].to_pylist() == [datetime.date(2024, 2, 29)] * 2
    assert again["d"].to_pylist() == [True, False]


def test_other_formats_are_as_exact(read, tmp_path):
    file = read("a;b\n+1.234,5;1.5e+03\n;\n")
    file.write(tmp_path / "a.jsonl", pa.table({"a": [1234.5, 9.87654], "b": [1500.0, 123456.0]}))
    assert (tmp_path / "a.jsonl").read_text().splitlines()[1] == '{"a": 9.9, "b": 120000.0}'


@pytest.mark.parametrize("delimiter", ["", "ab", "x", "é", "\n"])
def test_impossible_delimiters(read, delimiter):
    from grapefill.errors import ConfigError

    with pytest.raises(ConfigError, match="delimiter must be one ASCII character"):
        read("a\n1\n", delimiter=delimiter)


def test_rows_are_named_by_line(read):
    file = read('a,b\n\n"1\n2",x\n\n3,y\n')
    assert [file.where(row) for row in range(2)] == ["line 3", "line 6"]


@pytest.mark.parametrize(
    ("cells", "result"),
    [
        (["0.1", "0.01", "1e-05", "3.2e-07"], "0.00000025"),
        (["0.00000000000000000012", "0.00000000000000000034"], "0.00000000000000000023"),
    ],
)
def test_small_numbers_are_not_zero(read, filled, written, cells, result):
    file = read("\n".join(["a,b", *(f"{cell},x" for cell in cells), ",x"]))
    after = written(file, filled(file.frame, a=float(result)))
    assert after.decode().splitlines()[-1] == f"{result},x"


def test_one_mark_need_not_be_in_a_list(read):
    frame = read("a,b\n-999,9\n1,-9\n", na="-999").frame
    assert frame.to_pydict() == {"a": [None, 1], "b": [9, -9]}
    assert read("a\n-999\n1\n", na=[-999]).frame["a"].to_pylist() == [None, 1]


def test_levels_are_values(read, filled, written):
    text = "level,n\nNone,1\nLow,\n,3\n"
    file = read(text, types={"level": {"type": "text", "levels": ["None", "Low"]}})
    assert file.frame["level"].to_pylist() == ["None", "Low", None]
    again = read(text, types=file.types)
    assert written(again, filled(again.frame)).decode() == text.replace(",\n,", ",1\nNone,")


def test_words_beside_empty_cells_are_named(read):
    match = r"'a' of .* has empty cells, and cells with 'NA' and 'None', .*. Say so if they are"
    with pytest.warns(GrapefillWarning, match=match):
        file = read("a,b\nred,1\nNA,2\n,3\nNone,4\n")
    assert file.frame["a"].to_pylist() == ["red", None, None, None]


@pytest.mark.parametrize(
    "cells",
    [
        ["red", "NA", "None"],
        ["red", "?", ""],
        ["red", "NaN", ""],
        ["1", "NA", ""],
        ["2024-01-31", "NA", ""],
    ],
)
def test_other_marks_are_not_worth_a_note(read, cells):
    file = read("\n".join(["a,b", *(f"{cell},1" for cell in cells)]))
    assert file.frame["a"].null_count == 2


@pytest.mark.parametrize("options", [{"na": ["None"]}, {"types": {"a": "text"}}])
def test_words_that_somebody_spoke_of_are_not_worth_a_note(read, options):
    assert read("a,b\nred,1\nNone,2\n,3\n", **options).frame["a"].null_count == 2


@pytest.mark.parametrize(
    ("cells", "filled"),
    [
        # Of a fixed width, aligned to the right or to the left.
        (["  11.2 ", " 112.5 ", "   7.0 ", "       "], "  12.0 "),
        (["    11.2", "   112.5", "", "     7.0"], "    12.0"),
        (["11.2   ", "112.5  ", "7.0    ", ""], "12.0   "),
        # Space that is there whatever the width.
        ([" 11.2", " 112.5", " 7.0", ""], " 12.0"),
        (["11.2 ", "112.5 ", "7.0 ", ""], "12.0 "),
        ([" 11.2 ", " 22.5 ", ""], " 12.0 "),
        # None that all cells have.
        (["11.2", "112.5 ", "7.0", ""], "12.0"),
        # Wider than the others.
        (["1.2 ", "2.5 ", " .5 ", ""], "12.0 "),
    ],
)
def test_space_around_cells(written, cells, filled):
    lines = ["a,x,b", *(f"1,{cell},2" for cell in cells)]
    content = ("\n".join(lines) + "\n").encode()
    file = DelimitedFile(Place("t.csv", "delimited", "", ".csv"), content, ReadOptions())
    values = [12.0 if value is None else value for value in file.frame["x"].to_pylist()]
    after = written(file, pa.table({"x": values})).decode().splitlines()
    new = [f"1,{cell if cell.strip() else filled},2" for cell in cells]
    assert after == [lines[0], *new]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [",", ";"])
def test_lines_of_values_that_end_with_a_delimiter(read, mark, end):
    text = end.join(["a,b,c", "1,2,3,", "4,5,6,", ""]).replace(",", mark)
    message = (
        "Line 2 of .* has 4 cells, of which the last is empty, but the first line has 3. If all "
        f"lines of values end with '{mark}', write '{mark}' at the end of the first line as well"
    )
    with pytest.raises(InputError, match=message):
        read(text, "a.csv", delimiter=mark)
    with pytest.raises(InputError, match="Put quotes around a cell"):
        read(text.replace(f"3{mark}", f"3{mark}9"), "a.csv", delimiter=mark)
