"""Every odd file is filled with its observed cells unchanged as text, or refused by line."""

import csv
import io
import re

import numpy as np
import pytest

from benchmarks.files import count_changes, fit_small, run_command, write_houses
from grapefill.files import read_table

HOLES = ("", "NA")


def make_rows(count=40):
    """Return rows that hold a little of everything, with holes all over."""
    random = np.random.default_rng(0)
    rows = []
    for k in range(count):
        size = random.uniform(1, 99)
        row = [
            f"{k:05d}",
            f"{size:.2f}",
            f"{size * 1000:.0f}",
            "groß" if size > 50 else "klein",
            f"{k % 28 + 1:02d}.{k % 12 + 1:02d}.2024",
            "Yes" if size > 30 else "No",
        ]
        rows.append([row[0], *("" if random.random() < 0.15 else cell for cell in row[1:])])
    return rows


NAMES = ["code", "size", "income", "class", "day", "member"]


def as_text(rows, names=NAMES, **dialect):
    stream = io.StringIO()
    csv.writer(stream, **{"lineterminator": "\n"} | dialect).writerows([names, *rows])
    return stream.getvalue()


def with_column(make):
    """Return the table with one more column, made of the number of the row."""
    rows = [[*row, make(k) if k % 5 else ""] for k, row in enumerate(make_rows())]
    return as_text(rows, [*NAMES, "more"])


def decimal_commas():
    rows = [[row[0], row[1].replace(".", ","), *row[2:]] for row in make_rows()]
    return as_text(rows, delimiter=";")


PLAIN = as_text(make_rows())
# Content, suffix and the delimiter, if it is not a comma.
FILES = {
    "utf-8": (PLAIN.encode(), ".csv", ","),
    "with a mark of its byte order": (b"\xef\xbb\xbf" + PLAIN.encode(), ".csv", ","),
    "latin-1": (PLAIN.encode("latin-1"), ".csv", ","),
    "utf-16": (PLAIN.encode("utf-16"), ".csv", ","),
    "semicolons": (as_text(make_rows(), delimiter=";").encode(), ".csv", ";"),
    "tabs": (as_text(make_rows(), delimiter="\t").encode(), ".tsv", "\t"),
    "pipes": (as_text(make_rows(), delimiter="|").encode(), ".psv", "|"),
    "decimal commas": (decimal_commas().encode(), ".csv", ";"),
    "line ends of Windows": (as_text(make_rows(), lineterminator="\r\n").encode(), ".csv", ","),
    "all quoted": (as_text(make_rows(), quoting=csv.QUOTE_ALL).encode(), ".csv", ","),
    "quoted newlines": (with_column(lambda k: f"two\nlines, {k % 3}").encode(), ".csv", ","),
    "mixed types": (
        with_column(lambda k: "many" if k % 9 == 0 else str(k % 4)).encode(),
        ".csv",
        ",",
    ),
    "thousands": (with_column(lambda k: f"{k * 1234 + 1000:,}").encode(), ".csv", ","),
    "emoji": (with_column(lambda k: "🍇🍷"[k % 2]).encode(), ".csv", ","),
    "scientific": (with_column(lambda k: f"{k}e3").encode(), ".csv", ","),
    "one column": (
        ("n\n" + "\n".join(str(k) if k % 4 else "NA" for k in range(40))).encode(),
        ".csv",
        ",",
    ),
}


def cells_of(content, delimiter):
    codec = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    try:
        text = content.decode(codec)
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


def require_only_holes_changed(before, after, delimiter=","):
    old, new = cells_of(before, delimiter), cells_of(after, delimiter)
    changes = 0
    for was, now in zip(old, new, strict=True):
        for one, other in zip(was, now, strict=True):
            if one in HOLES:
                assert other not in HOLES
                changes += 1
            else:
                assert other == one
    assert changes


@pytest.mark.parametrize("case", FILES)
def test_odd_text(cli, tmp_path, quick, case):
    content, suffix, delimiter = FILES[case]
    source, filled = tmp_path / f"odd{suffix}", tmp_path / f"odd-filled{suffix}"
    source.write_bytes(content)
    result = cli("impute", source, *quick)
    assert result.code == 0, result.err
    require_only_holes_changed(content, filled.read_bytes(), delimiter)
    assert source.read_bytes() == content
    if case == "mixed types":
        assert "Column 'more' of" in result.err
        assert "line 11 has 'many'" in result.err


@pytest.mark.parametrize(
    "suffix", [".csv.gz", ".csv.zst", ".parquet", ".feather", ".jsonl", ".xlsx"]
)
def test_other_files(cli, tmp_path, quick, suffix):
    plain = tmp_path / "plain.csv"
    plain.write_text(PLAIN)
    source, filled = tmp_path / f"odd{suffix}", tmp_path / f"odd-filled{suffix}"
    file = read_table(plain)
    file.write(source, file.frame)
    result = cli("impute", source, "--ignore", "code", *quick)
    assert result.code == 0, result.err
    before, after = (read_table(path).frame for path in (source, filled))
    assert before.schema.names == after.schema.names
    for old, new in zip(before.columns, after.columns, strict=True):
        assert new.null_count == 0
        for one, other in zip(old.to_pylist(), new.to_pylist(), strict=True):
            assert one in (None, other)


def test_five_thousand_columns(cli, tmp_path):
    random = np.random.default_rng(0)
    numbers = random.normal(size=(30, 1)) + 0.1 * random.normal(size=(30, 5_000))
    holes = random.random(numbers.shape) < 0.1
    rows = [
        ["" if hole else f"{number:.3f}" for number, hole in zip(*row, strict=True)]
        for row in zip(numbers, holes, strict=True)
    ]
    source, filled = tmp_path / "wide.csv", tmp_path / "wide-filled.csv"
    source.write_text(as_text(rows, [f"c{j}" for j in range(5_000)]))
    result = cli("impute", source, "--preset", "fast", "--set", "max_steps=3")
    assert result.code == 0, result.err
    require_only_holes_changed(source.read_bytes(), filled.read_bytes())
    assert re.search(r"and 4,\d{3} more columns", result.out)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"a,b\n", "has names but no rows"),
        (b"a,b,a\n1,2,3\n", "Columns 1 and 3 of"),
        (b"a,b\n1,2\n3,4,5\n", "Line 3 of"),
        (b'a,b\n1,2\n3,"4\n', "Line 3 of"),
        (b"a,b\n1,2\n3,\x00\n", "is not text"),
        (b"a\n\n\n", "has names but no rows"),
    ],
)
def test_refused(cli, tmp_path, content, words):
    source = tmp_path / "bad.csv"
    source.write_bytes(content)
    result = cli("impute", source)
    assert result.code == 1
    assert words in result.err
    assert len(result.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.slow
def test_large_file(tmp_path):
    """The same with 200 MB is `python -m benchmarks files`."""
    model = fit_small(tmp_path)
    peaks = {}
    for megabytes in (1, 10):
        source, filled = tmp_path / f"{megabytes}.csv", tmp_path / f"{megabytes}-filled.csv"
        write_houses(source, megabytes)
        _, peaks[megabytes] = run_command("apply", model, source)
        lines = source.read_bytes().count(b"\n")
        assert count_changes(source, filled) > lines / 2
    # A block of rows while it is read or filled, and a few copies of the table.
    assert peaks[10] - peaks[1] < 400 + 10 * 10
