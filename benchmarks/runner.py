"""Runs measurements one after the other, each in a process of its own, and notes every result."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.results import ResultFile


def run_missing(
    results: ResultFile,
    todo: list[dict[str, Any]],
    measure: Callable[[dict[str, Any], str | None], dict[str, Any]],
    *,
    data_dir: str | None,
    shown: Callable[[dict[str, Any]], str],
) -> None:
    """Measure what is not in the file yet, showing progress and time left."""
    todo = [fields for fields in todo if not results.has(**fields)]
    start = time.perf_counter()
    for done, fields in enumerate(todo, start=1):
        result = in_own_process(measure, fields, data_dir)
        results.add(**fields, **result)
        left = (time.perf_counter() - start) / done * (len(todo) - done)
        words = str(result["error"]) if "error" in result else shown(result)
        print(
            f"[{done}/{len(todo)}, {left / 60:.0f} min left] {fields['dataset']}, "
            f"{fields['method']}, seed {fields['seed']}: {words}",
            flush=True,
        )


def in_own_process(
    measure: Callable[[dict[str, Any], str | None], dict[str, Any]],
    fields: dict[str, Any],
    data_dir: str | None,
) -> dict[str, Any]:
    """Measure in a process of its own, so that peak memory is the method's."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(measure, fields, data_dir).result()
        except Exception as error:  # a method that fails must not end the run
            return {"error": f"{type(error).__name__}: {error}"}
