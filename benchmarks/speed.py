"""Speed of training steps: preset "paper" beside a plain gather/scatter implementation."""

from __future__ import annotations

import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from typing import TYPE_CHECKING, Protocol

import torch

from benchmarks.plain import PlainSelectTraining, PlainTraining
from benchmarks.results import markdown_table, peak_megabytes
from grapefill.graph import Cells, Features
from grapefill.nn import GrapeNetwork
from grapefill.training import Trainer, get_preset

if TYPE_CHECKING:
    import argparse

# Random values in tables of these shapes: the time of a step does not depend on the values.
SHAPES = {"yacht": (308, 6), "concrete": (1030, 8), "kin8nm": (8192, 8)}
SEED = 0


class Steps(Protocol):
    """Something that trains step by step."""

    def step(self) -> float:
        """Take one step."""


class GrapefillTraining:
    """Steps of preset "paper"."""

    def __init__(self, values: torch.Tensor, observed: torch.Tensor) -> None:
        preset = get_preset("paper")
        generator = torch.Generator().manual_seed(SEED)
        features = Features((0,) * values.shape[1])
        network = GrapeNetwork(features, preset.network, generator)
        cells = Cells(values, None, observed)
        self.trainer = Trainer(network, cells, preset.training, generator=generator)
        self.count = 0

    def step(self) -> float:
        """Take one step over the whole table."""
        self.count += 1
        return self.trainer.step(self.count, slice(None))


IMPLEMENTATIONS = {
    "plain": PlainTraining,
    "index_select": PlainSelectTraining,
    "grapefill": GrapefillTraining,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--tables", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--missing", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=7, help="alternating rounds; median taken")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a round")


def run(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    print(
        f'One step of preset "paper" (3 layers, 64 units, {arguments.missing:.0%} missing, '
        f"edge dropout 30%, full batch, seed {SEED}); plain = gather/scatter over directed edges. "
        f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}."
    )
    rows = []
    for name in arguments.tables:
        times, memory = measure(name, arguments)
        ours = times["grapefill"]
        ratios = {
            yardstick: statistics.median(o / p for o, p in zip(ours, taken, strict=True))
            for yardstick, taken in times.items()
        }
        rows.append(
            [
                f"{name} {SHAPES[name][0]} x {SHAPES[name][1]}",
                *(f"{statistics.median(taken) * 1e3:.1f}" for taken in times.values()),
                f"{1 / statistics.median(ours):.0f}",
                f"{ratios['plain']:.3f}",
                f"{ratios['index_select']:.3f}",
                f"{memory['plain']:.0f}",
                f"{memory['grapefill']:.0f}",
            ]
        )
    header = ["table", "plain ms", "plain with index_select ms", "grapefill ms", "steps/s"]
    header += ["ratio to plain", "ratio to index_select", "plain MB", "grapefill MB"]
    print(markdown_table(header, rows))
    print("Ratios: median over alternating rounds of grapefill's time divided by the other's.")
    print(
        "Each implementation has a process of its own; MB is its peak, Python and torch included."
    )


def measure(
    name: str, arguments: argparse.Namespace
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return seconds per step, in alternating rounds, and peak memory of every implementation.

    Each has a process of its own, since the memory that one leaves behind slows the other.
    """
    times: dict[str, list[float]] = {each: [] for each in IMPLEMENTATIONS}
    with ExitStack() as stack:
        workers = {}
        for each in IMPLEMENTATIONS:
            settings = (name, each, arguments.missing, torch.get_num_threads())
            pool = ProcessPoolExecutor(1, get_context("spawn"), _prepare, settings)
            workers[each] = stack.enter_context(pool)
            workers[each].submit(_time, arguments.seconds / 4).result()
        for _ in range(arguments.rounds):
            for each, worker in workers.items():
                times[each].append(worker.submit(_time, arguments.seconds).result())
        memory = {each: w.submit(peak_megabytes).result() for each, w in workers.items()}
    return times, memory


def _prepare(name: str, implementation: str, missing: float, threads: int) -> None:
    """Make the training of this process."""
    global _steps  # noqa: PLW0603 - a worker process has no other place to keep it
    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(SEED)
    values = torch.rand(SHAPES[name], generator=generator)
    observed = torch.rand(SHAPES[name], generator=generator) >= missing
    _steps = IMPLEMENTATIONS[implementation](torch.where(observed, values, 0), observed)


_steps: Steps


def _time(seconds: float) -> float:
    """Return the time of a step, averaged over about so many seconds."""
    start = time.perf_counter()
    count = 0
    while time.perf_counter() - start < seconds:
        _steps.step()
        count += 1
    return (time.perf_counter() - start) / count
