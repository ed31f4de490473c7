"""Kill -9 at random times: streaming fit and apply, Ray training workers, Ray apply actors.

Every part is run undisturbed once. Then it is killed at some moment between the start of its work
and its end, gone on with, and what it made is compared: filled files byte by byte, models by every
tensor. A moment at which there was nothing to kill is not counted. What was measured before is not
done again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from benchmarks.results import ResultFile
from benchmarks.stream import make_part
from grapefill.files.model import read_model

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

RESULTS = ResultFile("faults", ("part", "number", "seed"))
FILES, ROWS = 6, 60_000
FIT = ("--preset", "fast", "--set", "max_steps=150", "--ignore", "row")
PARTS = ("fit", "apply", "ray-fit", "ray-apply")
WORKERS = ("ray::RayTrainWorker", "ray::_FileFiller")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--times", type=int, default=10, help="kills of each part")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")


def run(arguments: argparse.Namespace) -> None:
    """Kill and compare."""
    with tempfile.TemporaryDirectory(prefix="grapefill-faults-") as temporary:
        place = Path(temporary)
        source = place / "rows"
        source.mkdir()
        for k in range(FILES):
            pq.write_table(make_part(k * ROWS, ROWS, 0), source / f"{k}.parquet")
        model = place / "m.grape"
        assert _grapefill("fit", source, "--model", model, *FIT).wait() == 0
        for name in arguments.parts:
            numbers = [
                number
                for number in range(arguments.times)
                if not RESULTS.has(part=name, number=number, seed=arguments.seed)
            ]
            part = Part(name, place, source, model)
            for number, facts in part.kills(numbers, arguments.seed):
                print(f"{name} {number}: {facts}", flush=True)
                RESULTS.add(part=name, number=number, seed=arguments.seed, **facts)


@dataclass(frozen=True)
class Part:
    """A command that is killed.

    Parameters
    ----------
    name : str
        One of `PARTS`.
    place : Path
        Folder for what it makes.
    source : Path
        Folder of Parquet files.
    model : Path
        A model that was learned from them.
    """

    name: str
    place: Path
    source: Path
    model: Path

    @property
    def ray(self) -> bool:
        """Whether Ray's workers do the work."""
        return self.name.startswith("ray")

    def start(self, target: Path, *more: str) -> subprocess.Popen[bytes]:
        """Start the command."""
        workers = ("--ray", "local", "--workers", "2") if self.ray else ()
        if self.name.endswith("fit"):
            often = ("--checkpoint-every", "0.5s")
            return _grapefill("fit", self.source, "--model", target, *FIT, *often, *workers, *more)
        return _grapefill("apply", self.model, self.source, "-o", target, *workers, *more)

    def kills(self, numbers: list[int], seed: int) -> Iterator[tuple[int, dict[str, object]]]:
        """Kill the command once for every number, and say what came of it."""
        if not numbers:
            return
        undisturbed = self.place / f"{self.name}-undisturbed"
        process = self.start(undisturbed)
        begun, ended = self.watch(process, undisturbed)
        assert process.wait() == 0
        for number in numbers:
            random = np.random.default_rng([seed, number])
            for tried in count():
                target = self.place / f"{self.name}-{number}-{tried}"
                moment = float(random.uniform(begun, ended))
                process = self.start(target)
                time.sleep(moment)
                if self.kill(process):
                    break
                process.wait()
            # Ray replaces a worker while the command goes on; a command itself is given again.
            code = process.wait() if self.ray else self.start(target, "--overwrite").wait()
            same = code == 0 and _contents(target) == _contents(undisturbed)
            yield number, {"moment": round(moment, 2), "whole": round(ended, 2), "same": same}

    def watch(self, process: subprocess.Popen[bytes], target: Path) -> tuple[float, float]:
        """Return after how many seconds there was work to disturb, and how many all of it took."""
        start = time.perf_counter()
        begun = None
        while process.poll() is None:
            if begun is None and self.at_work(process, target):
                begun = time.perf_counter() - start
            time.sleep(0.05)
        if begun is None:
            raise SystemExit(f"{self.name}: nothing was seen that could be killed")
        return begun, time.perf_counter() - start

    def at_work(self, process: subprocess.Popen[bytes], target: Path) -> bool:
        """Whether Ray's workers are there, or training has a state, or a file is done."""
        if self.ray:
            return _find_below(process.pid, *WORKERS) is not None
        if self.name == "fit":
            return target.with_name(f"{target.name}.checkpoint").exists()
        return target.is_dir() and any(target.glob("*.parquet"))

    def kill(self, process: subprocess.Popen[bytes]) -> bool:
        """Kill the command, or one of Ray's workers below it; False if there is none."""
        victim = _find_below(process.pid, *WORKERS) if self.ray else process.pid
        if process.poll() is not None or victim is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
            return self.ray or process.wait() == -signal.SIGKILL
        return False


def _grapefill(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "grapefill", *map(str, arguments), "--quiet"]
    return subprocess.Popen(command)


def _find_below(parent: int, *titles: str) -> int | None:
    """Return a process below another whose title begins with one of some texts."""
    children: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            names[int(path.name)] = (path / "cmdline").read_bytes().split(b"\0")[0].decode()
            above = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(above, []).append(int(path.name))
    below = [parent]
    while below:
        process = below.pop()
        below += children.get(process, [])
        if names.get(process, "").startswith(titles):
            return process
    return None


def _contents(target: Path) -> dict[str, bytes]:
    """Return every file's bytes, or every tensor's; a model also holds seconds, which differ."""
    if target.is_dir():
        files = sorted(path for path in target.rglob("*") if path.is_file())
        return {str(path.relative_to(target)): path.read_bytes() for path in files}
    tensors = read_model(target).tensors
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}
