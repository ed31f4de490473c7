"""Fitting a table that is read some rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import torch

from grapefill import GrapeImputer
from grapefill.errors import GrapefillError, InputError
from grapefill.files.batches import ParquetSource, as_source
from grapefill.training import get_preset
from grapefill.training import learn as learn_module
from grapefill.training import stream as stream_module
from grapefill.training.checkpoint import Checkpoint
from grapefill.training.learn import Scanner, learn_table
from grapefill.training.model import GrapeModel
from grapefill.training.stream import StreamedRows, StreamedTable

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {"max_steps": 30, "batch_rows": 128, "rounds": 1, "trees": 4, "trial_trees": 4}
FILES, ROWS = 4, 500


def make_table(rows: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    x = random.normal(size=rows)

    def holes() -> Any:
        return random.random(rows) < 0.2

    return pa.table(
        {
            "number": pa.array(np.arange(rows) + ROWS * seed),
            "a": pa.array(x, mask=holes()),
            "b": pa.array(3 * x + 1, mask=holes()),
            "c": pa.array(np.where(x > 0, "up", "down"), mask=holes()),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "parts"
    place.mkdir()
    for k in range(FILES):
        pq.write_table(make_table(ROWS, k), place / f"{k}.parquet", row_group_size=200)
    return place


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no table be small enough to be read as a whole, and keep the buffer short."""
    monkeypatch.setattr(learn_module, "MEMORY_CELLS", 0)
    monkeypatch.setattr(stream_module, "BUFFER_CELLS", 1600)


def make_imputer(**options: Any) -> GrapeImputer:
    options = {"settings": SETTINGS, "kinds": {"number": "passthrough"}} | options
    return GrapeImputer("fast", random_state=0, **options)


def whole_table(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])


def learn(source: Any, seed: int = 0) -> StreamedTable:
    source = as_source(source)
    scanner = Scanner({"number": "continuous"}, np.nan, seed)
    learned = scanner.join(scanner.look(source.stream()))
    return learn_table(source, learned, get_preset("fast"), scanner=scanner)


def test_a_small_folder_gives_what_the_table_gives(folder: Path) -> None:
    table = whole_table(folder)
    expected = make_imputer().fit_transform(table)
    assert make_imputer().fit(folder).transform(table).equals(expected)
    dataset = pyarrow.dataset.dataset(folder)
    assert make_imputer().fit(dataset).transform(table).equals(expected)
    assert make_imputer().fit(table.to_batches).transform(table).equals(expected)


@pytest.mark.usefixtures("streamed")
def test_streamed_training_fills_well_and_repeats_itself(folder: Path, tmp_path: Path) -> None:
    table = whole_table(folder)
    imputer = make_imputer(settings=SETTINGS | {"max_steps": 150}).fit(folder)
    filled = imputer.transform(table)
    missing = table["b"].is_null().to_numpy() & table["a"].is_valid().to_numpy()
    x = table["a"].to_numpy()[missing]
    assert np.abs(filled["b"].to_numpy()[missing] - (3 * x + 1)).mean() < 0.6
    again = make_imputer(settings=SETTINGS | {"max_steps": 150}).fit(folder)
    assert again.transform(table).equals(filled)
    assert imputer.model_ is not None
    assert imputer.model_.trials
    imputer.save(tmp_path / "model.grape")
    assert GrapeImputer.load(tmp_path / "model.grape").transform(table).equals(filled)


@pytest.mark.usefixtures("streamed")
def test_states_are_exactly_those_of_all_rows(folder: Path) -> None:
    imputer = make_imputer().fit(folder)
    model = imputer.model_
    assert model is not None
    assert model.states is not None
    states = model.states
    imputer.refresh(whole_table(folder))
    for streamed, whole in zip(states.layers, model.states.layers, strict=True):
        assert streamed.equal(whole)
    assert states.final.equal(model.states.final)


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("n_shards", [1, 2])
def test_an_epoch_visits_every_row_once(folder: Path, n_shards: int) -> None:
    table = learn(folder)
    preset = get_preset("fast")
    model = GrapeModel.create(
        table.schema,
        table.sample,
        preset,
        generator=torch.Generator().manual_seed(0),
        scaling=table.scaling,
    )
    held_out = np.zeros(table.sample.shape, dtype=bool)
    held_out[:, 1] = ~np.isnan(table.sample[:, 1])
    rows = StreamedRows(table, model.cells, n_shards=n_shards)
    at = table.schema.features.index(0)

    def seen(batches: Any) -> list[int]:
        center, scale = table.scaling.center[at], table.scaling.scale[at]
        found = []
        for batch in batches:
            for part in batch.parts:
                numbers = part.cells.value[:, at].double().numpy() * scale + center
                found += np.rint(numbers).astype(int).tolist()
                assert not (part.held_out & ~part.cells.observed).any()
        return found

    epoch, numbers = [], set()
    batches = rows.batches(100, held_out)
    while len(numbers) < FILES * ROWS:
        batch = next(batches)
        epoch.append(batch)
        numbers |= set(seen([batch]))
        assert len(epoch) < 60
    assert sorted(seen(epoch)) == list(range(FILES * ROWS))
    # The sample holds all rows here, so every observed cell of that column is held out.
    hidden = sum(int(part.held_out.sum()) for batch in epoch for part in batch.parts)
    assert hidden == held_out.sum()
    # What a step sees follows from its number.
    later = rows.batches(100, held_out, after=5)
    assert next(later).cells.value.equal(epoch[5].cells.value)


@pytest.mark.usefixtures("streamed")
def test_batches_of_a_function_are_read_in_order(folder: Path) -> None:
    table = whole_table(folder)
    calls = []

    def batches() -> Any:
        calls.append(1)
        yield from table.to_batches(max_chunksize=150)

    imputer = make_imputer().fit(batches)
    assert not imputer.transform(table)["a"].null_count
    assert len(calls) < 20


@pytest.mark.usefixtures("streamed")
def test_a_fit_that_was_cut_off_ends_as_if_nothing_had_happened(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = whole_table(folder)
    expected = make_imputer().fit(folder).transform(table)
    monkeypatch.setattr(Checkpoint, "due", property(lambda _: True))

    class CutError(Exception):
        pass

    for stop in (7, 26):

        def cut(progress: Any, stop: int = stop) -> None:
            if progress.step == stop:
                raise CutError

        path = tmp_path / "state.checkpoint"
        with pytest.raises(CutError):
            make_imputer(checkpoint=path, callbacks=[cut]).fit(folder)
        assert path.exists()
        imputer = make_imputer(checkpoint=path)
        assert imputer.fit(folder).transform(table).equals(expected)
        assert not path.exists()


def test_sources_that_cannot_be(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        make_imputer().fit(tmp_path / "nothing")
    pq.write_table(pa.table({"z": [1.0]}), folder / "9.parquet")
    with pytest.raises(InputError, match=r"9.parquet.*other columns"):
        make_imputer().fit(folder)
    with pytest.raises(InputError, match="record batches"):
        make_imputer().fit(lambda: [1, 2])
    with pytest.raises(InputError, match="too few for 4 workers"):
        source = ParquetSource([folder / "0.parquet"])
        StreamedRows(learn(source), lambda numbers: numbers, n_shards=4)  # type: ignore[arg-type,return-value]


@pytest.mark.usefixtures("streamed")
def test_a_function_must_give_the_same_rows_again() -> None:
    lengths = iter([300, 300, 200, 200, 200, 200])
    with pytest.raises(GrapefillError, match=r"same rows at every call|must not change"):
        make_imputer().fit(lambda: make_table(next(lengths), 0).to_batches())
