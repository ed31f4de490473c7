"""Kill -9 at random times: streaming apply, Ray training workers, Ray apply actors.

Every part is run undisturbed once, then killed and gone on with, and the results are compared.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from benchmarks.stream import make_part

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

FILES, ROWS = 6, 60_000
FIT = ("--preset", "fast", "--set", "max_steps=150", "--ignore", "row")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--parts", nargs="+", default=["apply", "ray-fit", "ray-apply"])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)


def run(arguments: argparse.Namespace) -> None:
    """Kill and compare."""
    with tempfile.TemporaryDirectory(prefix="grapefill-faults-") as temporary:
        place = Path(temporary)
        source = place / "rows"
        source.mkdir()
        for k in range(FILES):
            pq.write_table(make_part(k * ROWS, ROWS, 0), source / f"{k}.parquet")
        model = place / "m.grape"
        _grapefill("fit", source, "--model", model, *FIT).wait()
        for part in arguments.parts:
            _part(part, place, source, model, arguments)


def _part(part: str, place: Path, source: Path, model: Path, arguments: argparse.Namespace) -> None:
    ray = ("--ray", "local", "--workers", "2") if part.startswith("ray") else ()

    def command(target: Path) -> tuple[object, ...]:
        if part == "ray-fit":
            return ("fit", source, "--model", target, *FIT, *ray)
        return ("apply", model, source, "-o", target, *ray)

    start = time.perf_counter()
    undisturbed = place / f"{part}-undisturbed"
    assert _grapefill(*command(undisturbed)).wait() == 0
    seconds = time.perf_counter() - start
    random = np.random.default_rng(arguments.seed)
    for number in range(arguments.times):
        target = place / f"{part}-{number}"
        wait = float(random.uniform(0.2, 1.0)) * seconds
        process = _grapefill(*command(target))
        time.sleep(min(wait, seconds))
        if ray:
            # A worker dies and the command survives it.
            killed = _kill_below(process.pid, "ray::RayTrainWorker", "ray::_FileFiller")
            code = process.wait()
        else:
            killed = process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait()
            code = _grapefill(*command(target), "--overwrite").wait()
        same = code == 0 and _contents(target) == _contents(undisturbed)
        print(f"{part} {number}: after {wait:.1f} s, killed {killed}, same {same}", flush=True)
        if not same:
            raise SystemExit(f"{part}: the results differ, or the command failed with {code}")


def _grapefill(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "grapefill", *map(str, arguments), "--quiet"]
    return subprocess.Popen(command)


def _kill_below(parent: int, *titles: str) -> bool:
    """Kill the first process below another whose title begins with one of some texts."""
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
            os.kill(process, signal.SIGKILL)
            return True
    return False


def _contents(target: Path) -> dict[str, bytes]:
    files: list[Path] = sorted(target.rglob("*")) if target.is_dir() else [target]
    read: Callable[[Path], bytes] = Path.read_bytes
    return {path.name if path != target else "": read(path) for path in files if path.is_file()}
