"""Runs measurements one after the other, each in a process of its own, and notes every result."""

from __future__ import annotations

import time
from functools import partial
from multiprocessing import get_all_start_methods, get_context
from typing import TYPE_CHECKING, Any

from benchmarks.budget import budget

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext

    from benchmarks.results import ResultFile

    Measure = Callable[[dict[str, Any], str | None], dict[str, Any]]


def run_missing(
    results: ResultFile,
    todo: list[dict[str, Any]],
    measure: Measure,
    *,
    data_dir: str | None,
    shown: Callable[[dict[str, Any]], str],
    time_limit: float | None = None,
    retry: bool = False,
) -> None:
    """Measure what is not in the file yet, showing progress and time left.

    A measurement that fails, or takes longer than ``time_limit`` seconds, is noted with its error,
    and the run goes on. With ``retry``, what failed before is measured again.
    """
    measured = results.succeeded() if retry else results.measured()
    todo = [fields for fields in todo if results.key_of(fields) not in measured]
    limits = {} if time_limit is None else {"time_limit": time_limit}
    start = time.perf_counter()
    for done, fields in enumerate(todo, start=1):
        one = time.perf_counter()
        result = in_own_process(partial(_in_budget, measure), fields, data_dir, **limits)
        if "error" in result:
            result["seconds"] = round(time.perf_counter() - one, 2)
        results.add(**fields, **limits, **result)
        left = (time.perf_counter() - start) / done * (len(todo) - done)
        words = str(result["error"]) if "error" in result else shown(result)
        print(
            f"[{done}/{len(todo)}, {left / 60:.0f} min left] {fields['dataset']}, "
            f"{fields['method']}, seed {fields['seed']}: {words}",
            flush=True,
        )


def in_own_process(
    measure: Measure,
    fields: dict[str, Any],
    data_dir: str | None,
    time_limit: float | None = None,
) -> dict[str, Any]:
    """Measure in a process of its own, so that peak memory is the method's, and it can be ended."""
    context = _context()
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(theirs, measure, fields, data_dir))
    process.start()
    theirs.close()
    try:
        if not ours.poll(time_limit):
            return {"error": f"TimeLimit: not done after {time_limit:g} s"}
        answer: dict[str, Any] = ours.recv()
        return answer
    except EOFError:
        process.join()
        return {"error": f"ProcessEnded: exit code {process.exitcode} (-9: out of memory?)"}
    finally:
        process.kill()
        process.join()
        ours.close()


def _context() -> BaseContext:
    """Return how processes are made: from one that has imported the libraries, where it can be."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.labels", "torch._dynamo"])
    return context


def _answer(
    pipe: Connection, measure: Measure, fields: dict[str, Any], data_dir: str | None
) -> None:
    try:
        answer = measure(fields, data_dir)
    except (Exception, SystemExit) as error:  # a method that fails must not end the run
        answer = {"error": f"{type(error).__name__}: {error}"}
    pipe.send(answer)


def _in_budget(measure: Measure, fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
    with budget(fields.get("budget", 1)):
        return measure(fields, data_dir)
