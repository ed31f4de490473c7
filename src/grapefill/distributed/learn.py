"""Fitting on many workers with Ray Train."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from sklearn.base import clone

from grapefill.distributed.cluster import connect
from grapefill.distributed.team import TorchTeam
from grapefill.errors import ConfigError, InputError
from grapefill.files.batches import as_source
from grapefill.imputer import GrapeImputer
from grapefill.training.checkpoint import Checkpoint, CheckpointFile, fingerprint_of
from grapefill.training.learn import Learned, Scanner, learn_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.files.batches import BatchSource
    from grapefill.training.config import Preset
    from grapefill.training.stream import StreamedTable

__all__ = ["fit"]

MODEL, CHECKPOINT = "model.grape", "training.checkpoint"


@dataclass(frozen=True)
class _Work:
    """What every worker is told."""

    imputer: GrapeImputer
    table: StreamedTable
    holes: tuple[int, ...]
    seed: int
    shards: int
    folder: str
    seconds: float


def fit(
    dataset: Any,
    imputer: GrapeImputer | None = None,
    *,
    workers: int = 2,
    shards: int | None = None,
    storage: str | Path | None = None,
    address: str | None = None,
    gpu: bool = False,
    seconds: float = 30.0,
    resources: dict[str, float] | None = None,
) -> GrapeImputer:
    """Fit an imputer on the workers of a Ray cluster.

    Rows are dealt to the workers. A step looks at rows of all of them: what the columns hear from
    the rows, and the gradients, are added up over the workers, so the model is the one that a
    single process would learn from the same batches, up to rounding. A worker that dies is
    replaced, and training goes on from the last checkpoint.

    Parameters
    ----------
    dataset : str, Path, pyarrow.dataset.Dataset or ray.data.Dataset
        A Parquet file or a folder of them, or a dataset. All workers must be able to read it. A
        dataset of Ray is written to Parquet in ``storage`` first, since training reads its rows
        several times, in random order.
    imputer : GrapeImputer or None
        How to fit; it stays as it is. None takes ``GrapeImputer()``.
    workers : int
        Processes that train.
    shards : int or None
        Into how many shards the rows are dealt, a multiple of ``workers``; as many as workers when
        None. The same number gives the same batches with fewer workers too.
    storage : str, Path or None
        A folder that all workers can write to, for checkpoints and the model. None takes a
        temporary folder, which is enough on one machine.
    address : str or None
        The address of a cluster, ``"local"`` for one on this machine; None for the one that this
        process is connected to, or else one on this machine.
    gpu : bool
        Whether every worker gets a GPU.
    seconds : float
        How often a checkpoint is written.
    resources : dict or None
        What a worker needs, as Ray counts it; one processor when None.

    Returns
    -------
    GrapeImputer
        The fitted imputer.

    Examples
    --------
    >>> import grapefill.distributed
    >>> grapefill.distributed.fit("folder/", workers=8)  # doctest: +SKIP
    """
    shards = workers if shards is None else shards
    if workers < 1 or shards < workers or shards % workers:
        raise ConfigError(f"shards must be a multiple of workers, got {shards} and {workers}.")
    source = None if _is_of_ray(dataset) else _source_of(dataset)
    ray = connect(address, cpus=workers + 1)
    imputer = GrapeImputer() if imputer is None else imputer
    # Only parameters travel: neither what was learned before nor what belongs to this process.
    told = clone(imputer).set_params(callbacks=None, checkpoint=None, verbose=False, device="cpu")
    if gpu:
        told.set_params(device="cuda")
    preset = told._checked_preset()
    seed = imputer._generator().initial_seed()
    with tempfile.TemporaryDirectory(prefix="grapefill-") as temporary:
        folder = Path(temporary if storage is None else storage)
        folder.mkdir(parents=True, exist_ok=True)
        if source is None:
            if not (folder / "rows").exists():
                dataset.write_parquet(str(folder / "rows"))
            source = _source_of(folder / "rows")
        scanner = Scanner(told.kinds, told.missing_values, seed)
        learned = scanner.join(_scan(ray, source, scanner, workers))
        table = learn_table(source, learned, preset, scanner=scanner)
        if not table.schema.features:
            raise InputError("None of the columns can be imputed: there is nothing to train.")
        holes = learned.scan.with_holes()
        work = _Work(told, table, holes, seed, shards, str(folder), seconds)
        _train(work, workers, gpu=gpu, resources=resources)
        fitted = GrapeImputer.load(folder / MODEL, o_edge=imputer.o_edge, device=imputer.device)
        (folder / MODEL).unlink()
    own = {name: getattr(imputer, name) for name in ("callbacks", "checkpoint", "verbose")}
    fitted.set_params(**own)
    return fitted


def _is_of_ray(dataset: Any) -> bool:
    return type(dataset).__module__.startswith("ray.")


def _source_of(dataset: Any) -> BatchSource:
    source = as_source(dataset)
    if source is None or source.ordered:
        raise InputError(
            f"A {type(dataset).__name__} cannot be read by many workers. Give a folder of Parquet "
            "files, a pyarrow Dataset or a Ray Dataset."
        )
    return source


def _scan(ray: Any, source: BatchSource, scanner: Scanner, workers: int) -> list[Learned]:
    """Look at all pieces, each once, by tasks of the cluster."""
    pieces = range(len(source.rows or ()))
    # A few tasks for each worker: pieces differ in size.
    count = max(1, min(len(pieces), 4 * workers))
    size = -(-len(pieces) // count) if pieces else 1
    look = ray.remote(_look).options(max_retries=-1)
    shared = ray.put(source)
    parts = [
        look.remote(shared, scanner, list(pieces[start : start + size]))
        for start in range(0, len(pieces), size)
    ]
    return [part for found in ray.get(parts) for part in found]


def _look(source: BatchSource, scanner: Scanner, pieces: Sequence[int]) -> list[Learned]:
    tables = ((piece, table) for piece in pieces for table in source.read(piece))
    return list(scanner.look(tables))


def _train(work: _Work, workers: int, *, gpu: bool, resources: dict[str, float] | None) -> None:
    # Importing torch in every worker takes longer than Ray's minute on a busy machine.
    os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "600")
    train: Any = import_module("ray.train")
    torch_train: Any = import_module("ray.train.torch")
    trainer = torch_train.TorchTrainer(
        _worker,
        train_loop_config={"work": work},
        scaling_config=train.ScalingConfig(
            num_workers=workers, use_gpu=gpu, resources_per_worker=resources
        ),
        run_config=train.RunConfig(
            name="grapefill",
            storage_path=str(Path(work.folder).resolve() / "ray"),
            failure_config=train.FailureConfig(max_failures=-1),
        ),
    )
    trainer.fit()


def _worker(config: dict[str, Any]) -> None:
    """Train on some of the rows, together with the other workers."""
    work: _Work = config["work"]
    folder = Path(work.folder)
    team = TorchTeam()
    # A worker that was started again after the model was complete has nothing to do.
    done = team.agree(float((folder / MODEL).exists()))
    if done:
        return
    imputer = work.imputer
    preset: Preset = imputer._checked_preset()
    checkpoint = Checkpoint(
        CheckpointFile(folder / CHECKPOINT, seconds=work.seconds),
        fingerprint_of(work.table.sample, preset, work.seed, list(work.table.rows), work.shards),
    )
    imputer._fit_table(
        work.table,
        work.holes,
        preset,
        generator=torch.Generator().manual_seed(work.seed),
        team=team,
        shards=range(team.rank, work.shards, team.size),
        n_shards=work.shards,
        checkpoint=checkpoint,
    )
    if team.rank == 0:
        imputer.save(folder / MODEL)
    # All wait for the file: who leaves early would look like a worker that died.
    team.agree(0.0)
