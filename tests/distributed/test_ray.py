"""Ray in small: two workers learn what one learns, and a killed one is replaced."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grapefill import GrapeImputer
from grapefill.errors import ConfigError, InputError

pytest.importorskip("ray")

# Ray's own modules warn of what they will change.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),
    pytest.mark.xdist_group("ray"),
]

STEPS = 60
SETTINGS = {"max_steps": STEPS, "batch_rows": 128, "rounds": 1, "trees": 4, "trial_trees": 4}
FILES, ROWS = 4, 400


def make_table(seed: int, rows: int = ROWS) -> pa.Table:
    random = np.random.default_rng(seed)
    x = random.normal(size=rows)

    def holes() -> Any:
        return random.random(rows) < 0.2

    return pa.table(
        {
            "row": pa.array(np.arange(rows) + seed * rows),
            "a": pa.array(x, mask=holes()),
            "b": pa.array(3 * x + 1, mask=holes()),
            "c": pa.array(np.where(x > 0, "up", "down"), mask=holes()),
        }
    )


def make_imputer() -> GrapeImputer:
    return GrapeImputer("fast", settings=SETTINGS, kinds={"row": "passthrough"}, random_state=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rows") / "parts"
    place.mkdir()
    for k in range(FILES):
        pq.write_table(make_table(k), place / f"{k}.parquet", row_group_size=100)
    return place


@pytest.fixture(scope="module")
def cluster() -> Any:
    from grapefill.distributed.cluster import connect

    # Workers step back behind everything else by default, and would starve beside other tests.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - so Ray calls it
    for attempt in range(4):
        try:
            ray = connect("local", cpus=4)
            break
        except ConfigError:
            # Ray gives its start half a minute, which a busy machine may not have.
            if attempt == 3:
                pytest.skip("this machine is too busy to start Ray")
    yield ray
    ray.shutdown()


@contextlib.contextmanager
def killing(when: Any, name: str) -> Any:
    """Kill a process of the cluster by its name, once, as soon as a condition holds."""
    stop, killed = threading.Event(), []

    def watch() -> None:
        while not stop.is_set() and not killed:
            if when():
                killed.extend(kill_one(name))
            time.sleep(0.02)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


def kill_one(name: str) -> list[int]:
    """Kill the first process below this one whose title begins with a name."""
    children: dict[int, list[int]] = {}
    titles: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            title = (path / "cmdline").read_bytes().split(b"\0")[0].decode()
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.name))
            titles[int(path.name)] = title
    below, found = [os.getpid()], []
    while below:
        process = below.pop()
        below += children.get(process, [])
        if titles.get(process, "").startswith(f"ray::{name}"):
            found.append(process)
    for process in sorted(found)[:1]:
        os.kill(process, signal.SIGKILL)
    return sorted(found)[:1]


@pytest.fixture(scope="module")
def one_worker(folder: Path) -> GrapeImputer:
    """A model that one process has learned from batches of two shards."""
    import torch

    from grapefill.files.batches import as_source
    from grapefill.training.learn import Scanner, learn_table

    imputer = make_imputer()
    preset, generator = imputer._checked_preset(), imputer._generator()
    source = as_source(folder)
    assert source is not None
    scanner = Scanner(imputer.kinds, imputer.missing_values, generator.initial_seed())
    learned = scanner.join(scanner.look(source.stream()))
    table = learn_table(source, learned, preset, scanner=scanner)
    generator = torch.Generator().manual_seed(generator.initial_seed())
    return imputer._fit_table(
        table, learned.scan.with_holes(), preset, generator=generator, n_shards=2
    )


@pytest.mark.usefixtures("cluster")
def test_two_workers_learn_what_one_learns_though_one_is_killed(
    folder: Path, one_worker: GrapeImputer, tmp_path: Path
) -> None:
    from grapefill.distributed import fit

    checkpoint = tmp_path / "storage" / "training.checkpoint"
    with killing(checkpoint.exists, "RayTrainWorker") as killed:
        imputer = fit(folder, make_imputer(), workers=2, storage=tmp_path / "storage", seconds=0.0)
    assert killed
    assert imputer.history_.step == one_worker.history_.step
    np.testing.assert_allclose(imputer.history_.loss, one_worker.history_.loss, atol=1e-4)
    one, two = one_worker.network_, imputer.network_
    assert one is not None
    assert two is not None
    for mine, other in zip(one.parameters(), two.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach(), other.detach(), atol=1e-3)
    assert imputer.model_ is not None
    assert imputer.model_.trials


@pytest.mark.usefixtures("cluster")
def test_a_dataset_is_filled_as_in_one_process(
    folder: Path, one_worker: GrapeImputer, tmp_path: Path
) -> None:
    from grapefill.distributed import transform

    tables = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    expected = one_worker.transform(pa.concat_tables(tables))
    one_worker.save(tmp_path / "model.grape")
    filled = transform(folder, tmp_path / "model.grape", workers=2, batch_rows=150)
    rows = pa.concat_tables(
        [pa.table(batch) for batch in filled.iter_batches(batch_format="pyarrow", batch_size=None)]
    )
    assert rows.to_pydict() == expected.to_pydict()


@pytest.mark.usefixtures("cluster")
def test_a_folder_is_filled_file_by_file_though_an_actor_is_killed(
    folder: Path, one_worker: GrapeImputer, tmp_path: Path
) -> None:
    from grapefill.cli.main import main

    one_worker.save(tmp_path / "model.grape")
    plain, by_ray = tmp_path / "plain", tmp_path / "ray"
    command = ["apply", str(tmp_path / "model.grape"), str(folder), "--quiet", "-o"]
    assert main([*command, str(plain)]) == 0
    journal = by_ray / ".grapefill-run.json"
    with killing(journal.exists, "_FileFiller") as killed:
        assert main([*command, str(by_ray), "--ray", "local", "--workers", "2"]) == 0
    assert killed
    for path in sorted(plain.rglob("*")):
        assert (by_ray / path.name).read_bytes() == path.read_bytes()
    assert {path.name for path in by_ray.iterdir()} == {path.name for path in plain.iterdir()}


def test_what_cannot_be_shared_is_refused(folder: Path) -> None:
    from grapefill.distributed import fit

    with pytest.raises(ConfigError, match="multiple of workers"):
        fit(folder, workers=2, shards=3)


def test_a_function_cannot_be_read_by_many() -> None:
    from grapefill.distributed import fit

    with pytest.raises(InputError, match="many workers"):
        fit(lambda: [make_table(0)], workers=2)
