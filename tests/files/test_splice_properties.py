"""Whatever a file holds, writing it changes nothing but the cells that are filled."""

import csv
import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapefill.files.cells.marks import ALWAYS, AMONG_NUMBERS
from grapefill.files.changes import find_missing
from grapefill.files.options import ReadOptions
from grapefill.files.places import Place
from grapefill.files.text.delimited import DelimitedFile
from grapefill.files.text.splice import splice

WORDS = st.text(alphabet="ab7é🍇 ,;|\t\"'.-\n", max_size=6)
NUMBERS = st.integers(-2000, 2000).map(str) | st.floats(-10, 10).map(lambda x: f"{x:.2f}")
HOLES = st.sampled_from(["", "NA", "?", "NaN", " "])


@st.composite
def tables(draw):
    """Give the cells of a table as text: columns of words, of numbers, of both."""
    columns = draw(st.integers(1, 5))
    rows = draw(st.integers(1, 8))
    kinds = [draw(st.sampled_from([WORDS, NUMBERS, WORDS | NUMBERS])) for _ in range(columns)]
    return [[draw(kind | HOLES) for kind in kinds] for _ in range(rows)]


@st.composite
def files(draw):
    """Give a table, its file, and how the file is written."""
    cells = draw(tables())
    delimiter = draw(st.sampled_from(",;|\t"))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow([f"column {j}" for j in range(len(cells[0]))])
    writer.writerows(cells)
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
    content = text.getvalue()
    if draw(st.booleans()):
        content = content.removesuffix(end)
    return cells, content.encode(encoding), delimiter, encoding


def read_again(content, delimiter, encoding):
    text = io.StringIO(content.decode(encoding), newline="")
    return list(csv.reader(text, delimiter=delimiter))


def is_hole(cell, column):
    usual = AMONG_NUMBERS if column.type not in (pa.string(), pa.bool_()) else set()
    return cell.strip() in ALWAYS | usual


@pytest.mark.filterwarnings("ignore::grapefill.errors.GrapefillWarning")
@given(files(), st.integers(1, 40))
def test_only_filled_cells_change(file, block):
    cells, content, delimiter, encoding = file
    options = ReadOptions(delimiter=delimiter)
    table_file = DelimitedFile(Place("t.csv", "delimited"), content, options, block=block)
    frame = table_file.frame
    missing = [find_missing(column).tolist() for column in frame.columns]
    expected = [
        [is_hole(row[j], column) for row in cells] for j, column in enumerate(frame.columns)
    ]
    assert missing == expected

    pieces = b"".join(table_file._pieces(changes_of(table_file, frame)))
    assert pieces == content

    new = {"int64": 5, "double": 2.5, "string": 'x "y",;|\t\n', "bool": True}
    columns = [
        column if str(column.type) not in new else column.fill_null(new[str(column.type)])
        for column in frame.columns
    ]
    filled = pa.table(columns, names=frame.column_names)
    pieces = b"".join(table_file._pieces(changes_of(table_file, filled)))
    before = read_again(content, delimiter, encoding)
    after = read_again(pieces, delimiter, encoding)
    assert len(before) == len(after)
    assert before[0] == after[0]
    for k, (old, row) in enumerate(zip(before[1:], after[1:], strict=True)):
        for j, (was, now) in enumerate(zip(old, row, strict=True)):
            value = columns[j][k].as_py()
            if not missing[j][k] or value is None:
                assert now == was
            elif isinstance(value, str):
                assert now.strip() == value.strip()
            else:
                # A cell such as ",7" makes its column one with decimal commas.
                assert float(now.replace(",", ".")) == value


def changes_of(file, table):
    from grapefill.files.changes import Changes

    return Changes.between(file.frame, table, erase=False, name="t.csv")


@given(
    st.binary(max_size=40),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5), st.text(max_size=3)), max_size=6),
)
def test_splice_is_what_a_loop_would_do(data, spans):
    starts, ends, texts, last = [], [], [], 0
    for start, length, text in sorted(spans):
        if last <= start and start + length <= len(data):
            starts.append(start)
            ends.append(start + length)
            texts.append(text)
            last = start + length + 1
    expected, done = b"", 0
    for start, end, text in zip(starts, ends, texts, strict=True):
        expected += data[done:start] + text.encode()
        done = end
    expected += data[done:]
    result = splice(
        np.frombuffer(data, dtype=np.uint8),
        np.array(starts, dtype=np.int64),
        np.array(ends, dtype=np.int64),
        pa.array(texts, type=pa.string()),
    )
    assert result == expected
