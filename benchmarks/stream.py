"""Folders of Parquet files, larger than memory if need be: rows per second and peak memory.

Part ``stream`` of ``python -m benchmarks scale``. The folder is made by this module: ten columns
with holes and a number for every row, so that it can be checked that each came out once, in order.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.results import peak_megabytes

COLUMNS, FACTORS = 10, 4
FILE_ROWS, GROUP_ROWS = 1_000_000, 250_000
MISSING = 0.3


def make_part(first: int, rows: int, seed: int) -> pa.Table:
    """Return some rows: bent mixtures of hidden factors, some cells missing, and their numbers."""
    mixing = np.random.default_rng(0)
    mix = mixing.normal(size=(FACTORS, COLUMNS)) / np.sqrt(FACTORS)
    random = np.random.default_rng([seed, first])
    values = np.tanh(random.normal(size=(rows, FACTORS)) @ mix) * 1.5
    values += 0.1 * random.normal(size=values.shape)
    holes = random.random(values.shape, dtype=np.float32) < MISSING
    columns = {"row": pa.array(np.arange(first, first + rows))}
    for j in range(COLUMNS):
        columns[f"x{j}"] = pa.array(values[:, j], mask=holes[:, j])
    return pa.table(columns)


def make_folder(folder: Path, n_rows: int, seed: int) -> None:
    """Write a table to a folder, in files of a million rows."""
    folder.mkdir(parents=True)
    for number, first in enumerate(range(0, n_rows, FILE_ROWS)):
        rows = min(FILE_ROWS, n_rows - first)
        path = folder / f"part-{number:05d}.parquet"
        with pq.ParquetWriter(path, make_part(0, 1, seed).schema) as writer:
            for start in range(first, first + rows, GROUP_ROWS):
                count = min(GROUP_ROWS, first + rows - start)
                writer.write_table(make_part(start, count, seed), row_group_size=count)


def measure_stream(fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Fit on a folder, fill it, and look at every row of the result."""
    del data_dir
    place = Path(fields["folder"] or tempfile.mkdtemp(prefix="grapefill-stream-"))
    source, target = place / "rows", place / "filled"
    if not source.exists():
        make_folder(source, fields["rows"], fields["seed"])
    size = sum(path.stat().st_size for path in source.iterdir())
    preset = fields["method"].removeprefix("grapefill ")
    times = _run(preset, source, target, fields["seed"])
    peak = peak_megabytes()
    off = check(source, target)
    shutil.rmtree(place)
    return times | {"mb": round(peak), "input_mb": round(size / 2**20), "filled_mean_size": off}


def _run(preset: str, source: Path, target: Path, seed: int) -> dict[str, Any]:
    from grapefill import GrapeImputer
    from grapefill.cli.stream import FillerMaker
    from grapefill.files.folder import FolderRun, fill_parquet

    imputer = GrapeImputer(preset, kinds={"row": "passthrough"}, random_state=seed)
    result = {}
    for word in ("fit", "apply"):
        start, processor = time.perf_counter(), time.process_time()
        if word == "fit":
            imputer.fit(source)
        else:
            run = FolderRun(source, target, "benchmark")
            run.start()
            filler = FillerMaker(imputer, _no_plan(), ())
            for job in run.todo():
                fill_parquet(job, filler(job.source))
            run.finish()
        result[f"{word}_seconds"] = round(time.perf_counter() - start, 1)
        result[f"{word}_cpu_seconds"] = round(time.process_time() - processor, 1)
        result[f"{word}_mb"] = round(peak_megabytes())
    return result


def _no_plan() -> Any:
    from grapefill.cli.columns import Plan

    return Plan()


def check(source: Path, target: Path) -> float:
    """Raise unless every row is there once, in order, its observed cells as they were."""
    total, count = 0.0, 0
    for path in sorted(source.iterdir()):
        with pq.ParquetFile(path) as before, pq.ParquetFile(target / path.name) as after:
            assert before.metadata.num_rows == after.metadata.num_rows
            for group in range(before.metadata.num_row_groups):
                old, new = before.read_row_group(group), after.read_row_group(group)
                assert old["row"].equals(new["row"])
                for name in old.column_names[1:]:
                    assert new[name].null_count == 0
                    there = old[name].is_valid()
                    assert new[name].filter(there).equals(old[name].drop_null())
                    filled = new[name].filter(pc.invert(there))
                    total += pc.sum(pc.abs(filled)).as_py() or 0.0
                    count += len(filled)
    return total / max(1, count)
