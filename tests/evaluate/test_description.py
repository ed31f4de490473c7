"""`describe` counts what is missing and remarks on what looks odd."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from grapefill import describe
from grapefill.errors import InputError

ROWS = 100


def odd() -> pd.DataFrame:
    """Return a table with something odd about each column but the first two."""
    rng = np.random.default_rng(0)
    steps = np.arange(ROWS)
    age = rng.integers(18, 90, ROWS).astype(float)
    age[::10] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "town": rng.choice(["Ulm", "Bonn", "Jena"], ROWS),
            "row": steps + 7,
            "code": [f"A{i:03}" for i in steps],
            "key": pd.Categorical([f"k{i}" for i in steps]),
            "constant": "same",
            "empty": np.nan,
            "rare": np.where(steps < 4, 1.5, np.nan),
            "nearly all": np.where(steps < 2, "no", "yes"),
            "price": np.where(steps % 50 == 0, "n/a", [f"1,{i:03}.50" for i in steps]),
            "pressure": np.where(steps % 9 == 0, -999.0, rng.normal(1000, 5, ROWS)),
            "answer": rng.choice(["yes", "no", "?"], ROWS),
            "lists": [[i] for i in steps],
            "infinite": np.where(steps == 3, np.inf, 1.0 * steps),
        }
    )


def codes(found: Any) -> dict[str, list[str]]:
    return {c.name: [remark.code for remark in c.remarks] for c in found.columns if c.remarks}


def test_remarks() -> None:
    found = describe(odd())
    assert codes(found) == {
        "row": ["identifier"],
        "code": ["identifier"],
        "key": ["identifier"],
        "constant": ["constant"],
        "empty": ["empty"],
        "rare": ["nearly_empty", "constant"],
        "nearly all": ["dominant"],
        "price": ["sentinel", "numbers_as_text"],
        "pressure": ["sentinel"],
        "answer": ["sentinel"],
        "lists": ["unreadable"],
        "infinite": ["infinite"],
    }
    assert found["pressure"].remarks[0].text == (
        "has -999 in 12 cells, far from all others, which may mean missing"
    )
    assert found["infinite"].remarks[0].text.endswith("first in row 3: replace it")


@pytest.mark.parametrize("container", ["polars", "pyarrow"])
def test_remarks_are_the_same_in_other_containers(container: str) -> None:
    frame = odd().drop(columns=["empty"])
    native = pl.from_pandas(frame) if container == "polars" else pa.Table.from_pandas(frame)
    expected = codes(describe(frame))
    assert codes(describe(native)) == expected


def test_counts() -> None:
    frame = odd()
    found = describe(frame)
    for column in found.columns:
        assert column.missing == frame[column.name].isna().sum()
        assert column.share == column.missing / ROWS
        if column.name != "lists":
            assert column.distinct == frame[column.name].nunique(dropna=True)
    assert found["lists"].distinct is None
    assert found.missing == frame.isna().sum().sum()
    assert found.complete_rows == 0
    assert [column.kind for column in found.columns[:4]] == [
        "ordinal",
        "categorical",
        "passthrough",
        "passthrough",
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3, 99] * 10, ["sentinel"]),
        ([60, 70, 98, 99] * 10, []),
        ([0.5, 1.5, 9999.0, -9999.0] * 10, ["sentinel", "sentinel"]),
        ([10, 2_000_000, 9999, 50] * 10, []),
        ([5, 2147483647, 7, 8] * 10, ["sentinel"]),
        ([70.5, 71.2, -999.9, 68.0] * 10, ["sentinel"]),
        ([70.5, 71.2, 9999.99, 68.0] * 10, ["sentinel"]),
        (np.array([70.5, 71.2, -99.9, 68.0] * 10, dtype=np.float32), ["sentinel"]),
        (np.array([70.5, 71.2, 1e20, 68.0] * 10, dtype=np.float32), ["sentinel"]),
        ([70.5, 71.2, 99_999_999, 68.0] * 10, ["sentinel"]),
        ([70.5, 71.2, 100_000_000, 68.0] * 10, []),
        ([70, 71, 1_000_000_000, 68] * 10, []),
        ([70, 71, 2**31, 68] * 10, []),
        (np.array([70.5, 71.2, 1e8, 68.0] * 10, dtype=np.float32), []),
        ([70, 71, -32768, 68] * 10, ["sentinel"]),
        ([1, 2, 3, 4, 5, 88, -77] * 10, ["sentinel", "sentinel"]),
        ([1, 2, 3, 4, 5, -9] * 10, ["sentinel"]),
        ([1, 2, 3, 4, 5, -1] * 10, []),
        ([-1, 0, 1] * 10, []),
        ([61, 62, 63, 64, 65, -1] * 10, ["sentinel"]),
        ([77, 88, 97, 98, 55] * 10, []),
        ([1, 2, 3, 4, 5, 97, 98, 99] * 10, ["sentinel", "sentinel", "sentinel"]),
        ([9, 99, 999, 9999] * 10, []),
        (list(range(40)), ["identifier"]),
        (list(range(0, 80, 2)), []),
        (list(range(10)), []),
        ([2**63 - 1, -(2**63)] * 20, []),
        (["1", "2", "3", "4", "5", "6"] * 10, ["numbers_as_text"]),
        (["01", "02", "03", "04", "05", "06"] * 10, []),
        (["1", "0"] * 30, []),
        (["12%", "3.5 %", "$7", "1e3", "-.5", "1 000,5"] * 10, ["numbers_as_text"]),
        (["1", "2", "3", "4", "five", "6"] * 10, []),
        (["", "a", "b"] * 10, ["sentinel"]),
        (["Unknown", "unknown", "red", "blue"] * 10, ["sentinel", "sentinel"]),
        (["Red", "red", "blue"] * 10, ["spellings"]),
        ([True, False] * 10, []),
        ([True] * 99 + [False], ["dominant"]),
    ],
)
def test_remarks_on_single_columns(values: list[Any], expected: list[str]) -> None:
    found = describe(pl.DataFrame({"a": values}))
    assert codes(found).get("a", []) == expected


def test_patterns_and_pairs() -> None:
    gap = np.nan
    table = np.array(
        [[1, gap, gap], [2, gap, gap], [3, gap, gap], [4, 1, 2], [5, 3, 1], [gap, 2, 2], [7, 1, 3]]
    )
    found = describe(table)
    assert [(p.columns, p.rows) for p in found.patterns] == [
        ((), 3),
        (("x1", "x2"), 3),
        (("x0",), 1),
    ]
    assert found.n_patterns == 3
    assert sum(pattern.share for pattern in found.patterns) == pytest.approx(1)
    assert (found.complete_rows, found.complete_share) == (3, 3 / 7)
    first = found.pairs[0]
    assert (first.first, first.second, first.correlation, first.both) == ("x1", "x2", 1.0, 3)
    assert found.pairs[1].correlation < 0


def test_text() -> None:
    text = str(describe(odd()))
    assert text.startswith("100 rows, 14 columns. ")
    assert "town        categorical" in text
    assert "Patterns of missing cells, 4 in all" in text
    assert "has the same value in all observed cells" in text
    assert "Little's test" in text
    complete = str(describe(np.random.default_rng(0).normal(size=(20, 3))))
    assert "Patterns" not in complete
    assert "no cell of a column of numbers is missing" in complete


def test_text_of_wide_tables_and_strange_names_stays_readable() -> None:
    table = pd.DataFrame(np.ones((30, 300)))
    text = str(describe(table))
    assert "and 200 more columns" in text
    assert text.count("\n") < 250
    named = pd.DataFrame({"a\x1b[31m\nb" + "c" * 90: [1.0, np.nan, 3.0]})
    assert "a?[31m?bcccccccc…ccccccccccccccc  ordinal" in str(describe(named))


def test_text_fits_on_a_narrow_terminal() -> None:
    table = odd().rename(columns={"price": "price_of_the_whole_house_in_euros_of_2021"})
    table["北京市"] = np.where(np.arange(ROWS) % 3, 1.5 * np.arange(ROWS), np.nan)
    lines = str(describe(table)).splitlines()
    columns = lines[lines.index("") + 1 :]
    assert max(map(cell_len, columns[: columns.index("")])) <= 80
    heading, town, wide = (
        next(line for line in lines if line.startswith(word)) for word in ("column", "town", "北")
    )
    assert re.search(r"^price_of_the_\w*…\w*_of_2021  ", "\n".join(lines), re.MULTILINE)
    kinds = heading.index("kind"), town.index("categorical"), cell_len(wide.split("cont")[0])
    assert len(set(kinds)) == 1


def test_an_empty_column_passes_through() -> None:
    assert describe(odd())["empty"].kind == "passthrough"


def test_json() -> None:
    plain = json.loads(json.dumps(describe(odd()).to_dict()))
    assert plain["rows"] == ROWS
    assert plain["columns"][2]["remarks"][0]["code"] == "identifier"
    assert plain["patterns"][0]["columns"]
    assert plain["little"]["p_value"] is not None


def test_a_mark_counts_as_missing() -> None:
    found = describe(odd(), missing_values=-999)
    assert found["pressure"].missing == 12
    assert found["pressure"].remarks == ()


def test_kinds_can_be_given() -> None:
    found = describe(odd(), kinds={"age": "continuous", "row": "passthrough"})
    assert found["age"].kind == "continuous"
    with pytest.raises(InputError, match="kinds names the column 'agee'"):
        describe(odd(), kinds={"agee": "continuous"})


def test_names_are_looked_up() -> None:
    with pytest.raises(KeyError):
        describe(odd())["nobody"]


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(InputError, match="0 sample"):
        describe(pd.DataFrame({"a": []}))


CELLS = st.none() | st.integers(-1000, 1000) | st.floats() | st.sampled_from(["", "a", "9", "?"])


@st.composite
def tables(draw: st.DrawFn) -> list[list[Any]]:
    columns = draw(st.integers(1, 12))
    return draw(st.lists(st.lists(CELLS, min_size=columns, max_size=columns), min_size=1))


@given(tables())
def test_any_table_is_described_or_refused_in_words(rows: list[list[Any]]) -> None:
    try:
        found = describe(np.array(rows, dtype=object))
    except InputError:
        return
    json.dumps(found.to_dict())
    assert str(found)
    assert sum(pattern.rows for pattern in found.patterns) <= found.rows


def test_one_is_not_many() -> None:
    table = pd.DataFrame({"x": [1.0, np.nan, np.nan], "y": [1.0, 2.0, np.nan]})
    assert "; 1 row (33.3%) is complete." in str(describe(table))


@pytest.mark.parametrize(
    "word",
    [
        *("Prefer not to say", "DON'T KNOW", "Don\u2019t know", "dont know", "no answer"),
        *("Refused", "Not applicable", "not stated", "N.A.", "Unknown"),
    ],
)
def test_words_for_missing(word: str) -> None:
    (remark,) = describe(pd.DataFrame({"answer": ["yes", "no", word] * 5}))["answer"].remarks
    assert remark.code == "sentinel"
    assert remark.text.endswith("in 5 cells, which may mean missing")


def test_many_words_in_more_than_one_case() -> None:
    words = [word for k in range(5) for word in (f"w{k}", f"W{k}", f"W{k}")]
    remarks = describe(pd.DataFrame({"word": words * 4}))["word"].remarks
    assert [remark.code for remark in remarks] == ["spellings"] * 4
    assert remarks[0].text.startswith("has 'W0' and 'w0', which differ")
    assert remarks[-1].text == "has 2 other words in more than one case"


def test_a_number_far_from_all_others_is_told() -> None:
    ages = np.arange(20.0, 80.0)
    found = describe(pd.DataFrame({"age": np.append(ages, 52_341.0), "size": np.append(ages, 90)}))
    remarks = [[remark.text for remark in column.remarks] for column in found.columns]
    assert remarks[0] == ["has 52341 in 1 cell, far from all others (20 to 79)"]
    assert not any("far" in text for text in remarks[1])
    mark = describe(pd.DataFrame({"age": np.append(ages, 9_999.0)})).columns[0].remarks
    assert [remark.code for remark in mark] == ["sentinel"]
