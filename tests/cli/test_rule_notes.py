"""Rows that break rules are told of once, by their places in the file."""

import pickle

import pyarrow.parquet as pq
import pytest

from grapefill.files import read_table
from grapefill.uncertainty.broken import BrokenRules, describe_broken

# Rows of which the observed cells break the rule.
WRONG = (3, 25, 26, 58)
RULE = ("--rule", "low <= high")


@pytest.fixture
def table(make_csv):
    """A table with some rows that have their numbers the other way round."""
    rows = [[str(k % 9), "" if k % 4 == 2 else str(k % 9 + 5), "xyz"[k % 3]] for k in range(60)]
    for k in WRONG:
        rows[k][:2] = ["9", "2"]
    return make_csv("table.csv", rows, ["low", "high", "c"])


def broken(result):
    """Return the notes on broken rules."""
    assert result.code == 0, result.err
    return [line for line in result.err.splitlines() if "and stay" in line]


def test_lines_of_a_file(cli, table, quick, monkeypatch, tmp_path):
    note = (
        "Note: 4 rows break the rule 'low <= high' and stay so: their observed cells do. See line "
        f"5, line 27, line 28, ... of {str(table)!r}."
    )
    model, draws = tmp_path / "m.grape", ("--draws", "2", "--out-dir", tmp_path / "draws")
    options = (*draws, "--interval", "0.9", "--report", tmp_path / "r.html", "--model", model)
    assert broken(cli("impute", table, *RULE, *options, *quick)) == [note]
    # A large table is filled some rows after the other.
    monkeypatch.setattr("grapefill.cli.work.SLICE", 20)
    assert broken(cli("apply", model, table, "-o", tmp_path / "a.csv")) == [note]
    monkeypatch.setattr("grapefill.cli.stream.LARGE_BYTES", 10)
    monkeypatch.setattr("grapefill.files.text.parts.PART_BYTES", 100)
    assert broken(cli("apply", model, table, "-o", tmp_path / "b.csv")) == [note]


def test_rows_of_a_folder(cli, table, quick, monkeypatch, tmp_path):
    monkeypatch.setattr("grapefill.files.folder.BATCH_ROWS", 5)
    monkeypatch.chdir(tmp_path)
    frame = read_table(table).frame
    (tmp_path / "parts").mkdir()
    for start in (0, 20, 40):
        pq.write_table(frame.slice(start, 20), tmp_path / "parts" / f"{start}.parquet")
    (note,) = broken(cli("impute", "parts", *RULE, "--model", "m.grape", *quick))
    assert note.startswith("Note: 4 rows break the rule 'low <= high' and stay so:")
    places = "row 4 of 'parts/0.parquet', row 6 of 'parts/20.parquet', row 7 of 'parts/20.parquet'"
    assert note.endswith(f"See {places}, ...")
    monkeypatch.setattr("grapefill.cli.stream.LARGE_BYTES", 10)
    (note,) = broken(cli("apply", "m.grape", "parts/20.parquet", "-o", "b.parquet"))
    assert note.endswith("See row 6, row 7 of 'parts/20.parquet'.")


def test_words():
    assert describe_broken(["a < b", "b < c"], 2, 0) == (
        "2 rows break the rules 'a < b', 'b < c' and stay so: no allowed value could be filled in "
        "that does not."
    )
    mixed = "the observed cells of 2 do, and in 1,998 no allowed value could be filled in that"
    assert mixed in describe_broken(["a < b"], 2_000, 2)


def test_a_copy_of_the_warning():
    warning = BrokenRules(["a < b"], [4, 7], 2)
    assert str(pickle.loads(pickle.dumps(warning))) == str(warning)
    assert str(warning).endswith("their observed cells do. Rows 4, 7.")
