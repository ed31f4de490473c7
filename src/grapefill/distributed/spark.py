"""Filling the partitions of a Spark DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grapefill.imputer import GrapeImputer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

__all__ = ["spark_filler"]


def spark_filler(
    model: GrapeImputer | str | Path,
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function for ``DataFrame.mapInArrow`` that fills the holes of a partition.

    The schema of the result is that of the DataFrame. Every task reads the model once; every row
    is filled as `GrapeImputer.transform` would fill it, whatever the partitions are.

    Parameters
    ----------
    model : GrapeImputer, str or Path
        A fitted imputer, or the file of one at a place that all executors can read. The columns of
        the DataFrame are those at fit, in their order.

    Returns
    -------
    callable
        Maps the record batches of a partition to filled ones.

    Examples
    --------
    >>> from grapefill.distributed import spark_filler
    >>> frame.mapInArrow(spark_filler("m.grape"), frame.schema)  # doctest: +SKIP
    """
    return _PartitionFiller(model)


class _PartitionFiller:
    """What Spark sends to the executors: the model, or where it is."""

    def __init__(self, model: GrapeImputer | str | Path) -> None:
        self._model = model

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        model = self._model
        imputer = model if isinstance(model, GrapeImputer) else GrapeImputer.load(model)
        return imputer.transform_batches(batches)
