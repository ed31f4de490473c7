"""Folders of Parquet files and large files: filled some rows at a time, and resumed."""

from __future__ import annotations

import re
import signal
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grapefill import GrapeImputer

FILES, ROWS = 5, 700


def make_table(rows, seed):
    random = np.random.default_rng(seed)
    size = random.normal(size=rows)
    return pa.table(
        {
            "row": pa.array(np.arange(rows) + seed * 10_000),
            "size": pa.array(size, mask=random.random(rows) < 0.2),
            "price": pa.array(size * 2 + 1, mask=random.random(rows) < 0.2),
            "kind": pa.array(np.where(size > 0, "big", "small"), mask=random.random(rows) < 0.2),
        }
    )


@pytest.fixture
def folder(tmp_path):
    """A folder of Parquet files with holes, one of them in a folder of its own, one empty."""
    place = tmp_path / "parts"
    (place / "more").mkdir(parents=True)
    for k in range(FILES):
        name = f"more/part-{k}.parquet" if k == 2 else f"part-{k}.parquet"
        pq.write_table(make_table(ROWS, k), place / name, row_group_size=300)
    pq.write_table(make_table(0, 9), place / "part-9.parquet")
    (place / "_SUCCESS").write_text("")
    (place / "notes.txt").write_text("not a table")
    return place


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.grape"
    table = make_table(400, 50)
    settings = {"max_steps": 12, "rounds": 1, "trees": 4, "trial_trees": 4}
    imputer = GrapeImputer(
        "fast", settings=settings, kinds={"row": "passthrough"}, random_state=0
    ).fit(table)
    imputer.save(path)
    return path


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_every_file_is_filled_as_in_memory(cli, folder, model, tmp_path):
    result = cli("apply", model, folder, "-o", tmp_path / "filled")
    assert result.code == 0, result.err
    assert f"{FILES * ROWS:,} rows" in result.out
    imputer = GrapeImputer.load(model)
    names = set()
    for path in folder.rglob("*.parquet"):
        name = path.relative_to(folder)
        names.add(str(name))
        before, after = pq.read_table(path), pq.read_table(tmp_path / "filled" / name)
        assert after.equals(imputer.transform(before))
        assert after.schema.equals(before.schema)
        old, new = pq.read_metadata(path), pq.read_metadata(tmp_path / "filled" / name)
        assert new.num_row_groups == max(1, old.num_row_groups)
    assert set(contents(tmp_path / "filled")) == names


def test_a_large_file_streams_to_the_same_table(cli, folder, model, tmp_path, monkeypatch):
    path = folder / "part-1.parquet"
    assert cli("apply", model, path, "-o", tmp_path / "whole.parquet").code == 0
    monkeypatch.setattr("grapefill.cli.stream.LARGE_BYTES", 100)
    result = cli("apply", model, path, "-o", tmp_path / "streamed.parquet")
    assert result.code == 0, result.err
    assert "rows per second" in result.out
    whole, streamed = (
        pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "streamed")
    )
    assert whole.equals(streamed)


def test_a_killed_run_goes_on_and_ends_as_if_nothing_had_happened(
    cli, spawn, folder, model, tmp_path
):
    assert cli("apply", model, folder, "-o", tmp_path / "undisturbed").code == 0
    process = spawn("apply", model, folder, "-o", tmp_path / "filled")
    journal = tmp_path / "filled" / ".grapefill-run.json"
    while not journal.exists() and process.poll() is None:
        time.sleep(0.005)
    time.sleep(float(np.random.default_rng(0).uniform(0, 0.15)))
    process.send_signal(signal.SIGKILL)
    process.wait()
    result = cli("apply", model, folder, "-o", tmp_path / "filled", "--overwrite")
    assert result.code == 0, result.err
    assert contents(tmp_path / "filled") == contents(tmp_path / "undisturbed")


def test_what_is_done_is_not_done_again(cli, folder, model, tmp_path, monkeypatch):
    from grapefill.files import folder as files

    calls = []
    fill = files.fill_parquet

    def fail_at_the_third(job, *args, **options):
        calls.append(job.source.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fill(job, *args, **options)

    monkeypatch.setattr(files, "fill_parquet", fail_at_the_third)
    assert cli("apply", model, folder, "-o", tmp_path / "filled").code == 130
    done = {name: (tmp_path / "filled" / name).stat().st_mtime_ns for name in ["part-0.parquet"]}
    result = cli("apply", model, folder, "-o", tmp_path / "filled")
    assert result.code == 0, result.err
    assert "2 files were done before" in result.out
    assert (tmp_path / "filled" / "part-0.parquet").stat().st_mtime_ns == done["part-0.parquet"]
    assert len(calls) == 3 + FILES + 1 - 2


@pytest.mark.parametrize(
    "changed",
    [
        ("--delta", "size=1"),
        ("--rule", "price >= size"),
        ("--bounds", "size=0:"),
        ("--continuous", "size"),
        ("--seed", "1"),
        ("--indicator",),
    ],
    ids=lambda changed: changed[0],
)
def test_other_options_do_not_go_on_with_a_run(cli, folder, quick, monkeypatch, *, changed):
    from grapefill.files import folder as files

    fill = files.fill_parquet

    def stop_at_the_second(job, *args, **options):
        if job.source.name == "part-1.parquet":
            raise KeyboardInterrupt
        return fill(job, *args, **options)

    def fail(*_, **__):
        raise AssertionError("training has begun")

    filled = folder.with_name("filled")
    command = ("impute", folder, "-o", filled, "--ignore", "row", *quick)
    with monkeypatch.context() as patched:
        patched.setattr(files, "fill_parquet", stop_at_the_second)
        assert cli(*command).code == 130
    before = contents(filled)
    monkeypatch.setattr("grapefill.cli.impute._fit", fail)
    result = cli(*command, *changed)
    assert result.code == 1
    assert "is not of a run of this command with the same" in result.err
    assert contents(filled) == before
    assert "training has begun" in cli(*command).err


def test_results_of_other_work_are_not_touched(cli, folder, model, tmp_path):
    filled = tmp_path / "filled"
    assert cli("apply", model, folder, "-o", filled).code == 0
    before = contents(filled)
    again = cli("apply", model, folder, "-o", filled)
    assert again.code == 1
    assert "exists already" in again.err
    assert contents(filled) == before
    assert cli("apply", model, folder, "-o", filled, "--overwrite").code == 0
    assert contents(filled) == before


def test_folders_that_cannot_be(cli, folder, model, tmp_path):
    inside = cli("apply", model, folder, "-o", folder / "filled")
    assert inside.code == 1
    assert "inside the other" in inside.err
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "has no Parquet file" in cli("apply", model, empty, "-o", tmp_path / "out").err
    (folder / "part-1.parquet").write_bytes(b"PAR1 no PAR1")
    bad = cli("apply", model, folder, "-o", tmp_path / "out")
    assert bad.code == 1
    assert "part-1.parquet" in bad.err


def test_a_model_is_made_of_a_folder(cli, folder, tmp_path, quick):
    """A small folder gives the model that its rows in one file give."""
    parts = [pq.read_table(path) for path in sorted(folder.rglob("*.parquet"))]
    pq.write_table(pa.concat_tables(parts), tmp_path / "whole.parquet")
    filled = []
    for name in ("parts", "whole.parquet"):
        model = tmp_path / f"{name}.grape"
        options = ("--ignore", "row", "--ordinal", "kind=small,big", *quick)
        result = cli("fit", tmp_path / name, "--model", model, *options)
        assert result.code == 0, result.err
        assert cli("apply", model, folder, "-o", tmp_path / f"{name}-filled").code == 0
        filled.append(contents(tmp_path / f"{name}-filled"))
    assert filled[0] == filled[1]


def test_a_folder_is_imputed(cli, folder, tmp_path, quick):
    result = cli("impute", folder, "-o", tmp_path / "filled", "--ignore", "row", *quick)
    assert result.code == 0, result.err
    after = pq.read_table(tmp_path / "filled" / "part-0.parquet")
    assert all(column.null_count == 0 for column in after.columns)
    # The table at the end counts the cells of all files.
    parts = [pq.read_table(path) for path in folder.rglob("*.parquet")]
    for name in ("size", "price", "kind"):
        holes = sum(part[name].null_count for part in parts)
        assert re.search(rf"^{name} +\w+ +{holes} .*(lower|higher|same)", result.out, re.MULTILINE)
    total = sum(column.null_count for part in parts for column in part.columns)
    assert f"{total:,} cells were filled." in result.out
    for option in (
        ("--report", "r.html"),
        ("--draws", "2"),
        ("--out-dir", "d"),
        ("--interval", "0.9"),
    ):
        result = cli("impute", folder, *option)
        assert result.code == 1
        assert f"{option[0]} needs the whole table in memory" in result.err


def test_columns_without_a_value_stay_empty(cli, tmp_path, quick):
    """A folder is told of as a file is."""
    place = tmp_path / "parts"
    place.mkdir()
    table = make_table(60, 0).append_column("void", pa.nulls(60, pa.float64()))
    pq.write_table(table, place / "a.parquet")
    for data in (place, place / "a.parquet"):
        result = cli("impute", data, "--ignore", "row", *quick)
        assert result.code == 0, result.err
        assert "60 cells are still empty: 'void' (60)." in result.out
        assert "Note: These columns have no value and stay empty: 'void'.\n" in result.err
        assert "keep_empty_features" not in result.err
    filled = pq.read_table(tmp_path / "parts-filled" / "a.parquet")
    assert filled.column_names == table.column_names


@pytest.mark.parametrize(
    ("start", "name"), [(".", "."), (".", "more/.."), ("more", ".."), ("..", "parts/")]
)
def test_a_folder_by_any_name(cli, folder, model, monkeypatch, *, start, name):
    monkeypatch.chdir(folder / start)
    result = cli("apply", model, name)
    assert result.code == 0, result.err
    assert (folder.with_name("parts-filled") / "part-0.parquet").exists()


def test_a_folder_is_imputed_from_inside(cli, folder, tmp_path, quick, monkeypatch):
    monkeypatch.chdir(folder)
    result = cli("impute", ".", "--ignore", "row", *quick)
    assert result.code == 0, result.err
    assert f"The filled table: {tmp_path / 'parts-filled'}" in result.out


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("-", "A folder cannot go to standard output"),
        ("parts/filled", "one of the folders is inside the other"),
        ("full", "exists already"),
        ("note.txt", "it is a file"),
        ("note.txt/filled", "there is a file at"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said_before_training(
    cli, folder, quick, monkeypatch, *, output, words
):
    def fail(*_, **__):
        raise AssertionError("training has begun")

    tmp_path = folder.parent
    monkeypatch.setattr("grapefill.cli.impute._fit", fail)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.txt").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "part-0.parquet").write_text("mine")
    before = contents(tmp_path)
    result = cli("impute", "parts", "-o", output, *quick)
    assert result.code == 1
    assert words in result.err
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "arguments", [("ampute", "."), ("ampute", ".."), ("impute", "a.csv", "-o", ".")]
)
def test_a_folder_in_place_of_a_file(cli, folder, monkeypatch, arguments):
    monkeypatch.chdir(folder)
    (folder / "a.csv").write_text("x,y\n1,2\n,3\n")
    result = cli(*arguments, *(["--interval", "0.9"] if arguments[0] == "impute" else []))
    assert result.code == 1
    assert "is a folder" in result.err


@pytest.mark.parametrize("command", ["impute", "fit", "apply"])
def test_help_tells_of_folders(cli, command):
    assert "folder of Parquet files" in " ".join(
        cli(command, "--help").out.replace("│", " ").split()
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_a_large_text_streams_to_the_same_bytes(cli, tmp_path, monkeypatch, quick, encoding):
    random = np.random.default_rng(0)
    lines = ["größe,preis,art"]
    for _ in range(400):
        size = random.normal()
        cells = [f"{size:.3f}", f"{2 * size + 1:.2f}", '"groß,\nweit"' if size > 0 else "klein"]
        lines.append(",".join("" if random.random() < 0.15 else cell for cell in cells))
    path = tmp_path / "data.csv"
    path.write_bytes("\r\n".join(lines).encode(encoding))
    assert cli("fit", path, "--model", tmp_path / "m.grape", *quick).code == 0
    assert cli("apply", tmp_path / "m.grape", path, "-o", tmp_path / "whole.csv").code == 0
    monkeypatch.setattr("grapefill.cli.stream.LARGE_BYTES", 100)
    monkeypatch.setattr("grapefill.files.text.parts.PART_BYTES", 2_000)
    result = cli("apply", tmp_path / "m.grape", path, "-o", tmp_path / "streamed.csv")
    assert result.code == 0, result.err
    assert "rows per second" in result.out
    assert (tmp_path / "streamed.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_columns_in_another_order(cli, tmp_path, quick):
    place = tmp_path / "parts"
    place.mkdir()
    table = make_table(20, 0)
    pq.write_table(table, place / "a.parquet")
    pq.write_table(table.select(table.column_names[::-1]), place / "b.parquet")
    result = cli("fit", place, "--model", tmp_path / "m.grape", *quick)
    assert result.code == 1
    assert "b.parquet' has its columns in another order than" in result.err


def test_another_suffix_of_parquet(cli, model, tmp_path):
    place = tmp_path / "parts"
    place.mkdir()
    for name in ("a.parquet", "b.pq", "c.parq"):
        pq.write_table(make_table(20, 0), place / name)
    result = cli("apply", model, place, "-o", tmp_path / "filled")
    assert result.code == 0, result.err
    assert set(contents(tmp_path / "filled")) == {"a.parquet", "b.pq", "c.parq"}
