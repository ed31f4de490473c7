"""Text fits into lines, and what is to be pasted stays in one piece."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapefill.lines import align, shorten, width_of, wrap

WORDS = st.text("ab北é '-", max_size=40)


@given(text=WORDS, width=st.integers(3, 30))
def test_what_is_shortened_fits(text, width):
    short = shorten(text, width)
    assert width_of(short) <= width
    assert short == text or "…" in short


@given(words=st.lists(st.text("ab北é", min_size=1, max_size=8)), width=st.integers(16, 40))
def test_nothing_is_lost_in_lines(words, width):
    wrapped = wrap(" ".join(words), width)
    assert wrapped.split() == words
    assert all(width_of(line) <= width for line in wrapped.split("\n"))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("  it's so, isn't it?", ["  it's", "  so,", "  isn't", "  it?"]),
        ("add --na '?' now", ["add", "--na '?'", "now"]),
        ("a verylongword b", ["a", "verylongword", "b"]),
        ("ab  c d e f g", ["ab  c d e", "    f g"]),
        ("fits\nas it is", ["fits", "as it is"]),
        ("a  bcd  efg  hij", ["a  bcd  efg  hij"]),
        ("in /my  files of it", ["in /my  files of it"]),
        ("add --na='not known' now", ["add", "--na='not known'", "now"]),
    ],
)
def test_lines_of_ten_letters(text, lines):
    assert wrap(text, 9).split("\n") == lines


@given(rows=st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1))
def test_columns_begin_below_each_other(rows):
    marked = [[f"[{cell}]" for cell in row] for row in rows]
    for at in range(3):
        starts = {width_of("[".join(line.split("[")[: at + 1])) for line in align(marked)}
        assert len(starts) == 1


def test_narrow_columns_give_way():
    rows = [["n" * 50, "d" * 40, "1"], ["a", "b", "20"]]
    first, second = align(rows, right=[2], narrow=[0, 1])
    assert len(first) == len(second) == 80
    assert first.count("…") == 2
