"""Filling on many workers with Ray Data, or file by file with Ray actors."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapefill.distributed.cluster import connect
from grapefill.errors import ConfigError
from grapefill.files.folder import fill_parquet
from grapefill.imputer import GrapeImputer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grapefill.files.folder import Job

__all__ = ["fill_files", "transform"]

BATCH_ROWS = 65_536


def transform(
    dataset: Any,
    model: GrapeImputer | str | Path,
    *,
    workers: int = 2,
    batch_rows: int = BATCH_ROWS,
    address: str | None = None,
) -> Any:
    """Fill a dataset of Ray.

    Every actor loads the model once and fills batches of Arrow, each row exactly as
    `GrapeImputer.transform` would. An actor that dies is replaced and its batch is done again; no
    row is lost, none is there twice.

    Parameters
    ----------
    dataset : ray.data.Dataset, str or Path
        The rows, or a Parquet file or folder of them.
    model : GrapeImputer, str or Path
        A fitted imputer, or the file of one.
    workers : int
        Actors that fill.
    batch_rows : int
        Rows that an actor fills at a time.
    address : str or None
        See `grapefill.distributed.fit`.

    Returns
    -------
    ray.data.Dataset
        The filled rows, in their order. Nothing is done before they are asked for, for example by
        ``write_parquet``.

    Examples
    --------
    >>> import grapefill.distributed
    >>> filled = grapefill.distributed.transform("folder/", "m.grape")  # doctest: +SKIP
    >>> filled.write_parquet("filled/")  # doctest: +SKIP
    """
    ray = connect(address, cpus=workers + 1)
    data: Any = import_module("ray.data")
    imputer = model if isinstance(model, GrapeImputer) else GrapeImputer.load(model)
    if imputer.graph_from == "transform":
        raise ConfigError(
            'graph_from="transform" needs all rows at once, which batches are not. Use '
            'graph_from="fit".'
        )
    if isinstance(dataset, str | Path):
        dataset = data.read_parquet(str(dataset))
    dataset.context.execution_options.preserve_order = True
    return dataset.map_batches(
        _BatchFiller,
        fn_constructor_args=(ray.put(imputer),),
        compute=data.ActorPoolStrategy(size=workers),
        batch_format="pyarrow",
        batch_size=batch_rows,
        zero_copy_batch=True,
        max_restarts=-1,
        max_task_retries=-1,
    )


class _BatchFiller:
    """An actor of Ray Data with the model in memory."""

    def __init__(self, imputer: Any) -> None:
        ray: Any = import_module("ray")
        self._imputer: GrapeImputer = (
            ray.get(imputer) if isinstance(imputer, ray.ObjectRef) else imputer
        )

    def __call__(self, rows: Any) -> Any:
        return self._imputer.transform(rows)


def fill_files(
    jobs: Sequence[Job],
    filler: Callable[[Path], Callable[[Any], Any]],
    on_rows: Callable[[int], None],
    *,
    workers: int = 2,
    address: str | None = None,
) -> None:
    """Fill Parquet files by actors of a Ray cluster, each file by one of them.

    A file appears whole or not at all, so an actor that dies in the middle of one leaves nothing
    behind; another does the file again.

    Parameters
    ----------
    jobs : sequence of Job
        The files and their targets, which all actors can reach.
    filler : callable
        Takes the path of a file and returns what fills its rows.
    on_rows : callable
        Called with the rows of every file that is done.
    workers : int
        How many actors there are.
    address : str or None
        See `grapefill.distributed.fit`.
    """
    if not jobs:
        return
    ray = connect(address, cpus=workers)
    workers = min(workers, len(jobs))
    actor = ray.remote(_FileFiller).options(max_restarts=-1, max_task_retries=-1, num_cpus=1)
    shared = ray.put(filler)
    actors = [actor.remote(shared) for _ in range(workers)]
    left = list(reversed(jobs))
    busy = {}
    try:
        for each in actors:
            busy[each.fill.remote(left.pop())] = each
        while busy:
            (done,), _ = ray.wait(list(busy), num_returns=1)
            each = busy.pop(done)
            on_rows(ray.get(done))
            if left:
                busy[each.fill.remote(left.pop())] = each
    finally:
        for each in actors:
            ray.kill(each)


class _FileFiller:
    """An actor with the model in memory."""

    def __init__(self, filler: Callable[[Path], Callable[[Any], Any]]) -> None:
        self._filler = filler

    def fill(self, job: Job) -> int:
        return fill_parquet(job, self._filler(job.source))
