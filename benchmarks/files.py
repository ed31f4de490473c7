"""A large CSV file: seconds and memory to fill it, and whether nothing but holes changed."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.results import markdown_table

if TYPE_CHECKING:
    import argparse

HEADER = "id,area,rooms,heating,sold,garden,price,remark\n"
BLOCK_ROWS = 20_000
TRAINING_ROWS = 3_000
HOLES = ("", "NA")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--megabytes", nargs="+", type=float, default=[1.0, 20.0, 200.0])


def run(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    print(
        f"grapefill apply on a CSV file, with a model of preset fast that was fitted to "
        f"{TRAINING_ROWS:,} rows; {os.cpu_count()} cores."
    )
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = fit_small(folder)
        for megabytes in arguments.megabytes:
            source, filled = folder / "large.csv", folder / "filled.csv"
            write_houses(source, megabytes)
            start = time.perf_counter()
            cpu, peak = run_command("apply", model, source, "-o", filled)
            seconds = time.perf_counter() - start
            changed = count_changes(source, filled)
            rows.append(
                [
                    f"{source.stat().st_size / 1e6:.0f}",
                    f"{seconds:.1f}",
                    f"{cpu:.1f}",
                    f"{peak:,.0f}",
                    f"{changed:,}",
                ]
            )
            filled.unlink()
    header = ["file, MB", "seconds", "of processor time", "peak memory, MB", "cells filled"]
    print(markdown_table(header, rows))


def write_houses(path: Path, megabytes: float) -> None:
    """Write a table of all kinds of columns, a tenth of them holes, of about so many megabytes."""
    random = np.random.default_rng(0)
    area = random.uniform(20, 120, BLOCK_ROWS)
    price = area * 1000 + random.normal(0, 500, BLOCK_ROWS)
    holes = random.random((BLOCK_ROWS, 6)) < 0.1
    lines = []
    for k in range(BLOCK_ROWS):
        size = area[k]
        cells = [
            f"{size:.1f}",
            str(int(size // 25) + 1),
            "gas" if size < 60 else "wood",
            f"{k % 28 + 1:02d}.{k % 12 + 1:02d}.2024",
            "yes" if size > 70 else "no",
            f"{price[k]:.2f}",
        ]
        marked = [HOLES[j % 2] if holes[k, j] else cell for j, cell in enumerate(cells)]
        lines.append(",".join([f"{k:06d}", *marked, '"quoted, with a comma"' if k % 3 else "é"]))
    block = ("\n".join(lines) + "\n").encode()
    with path.open("wb") as file:
        file.write(HEADER.encode())
        for _ in range(max(1, round(megabytes * 1e6 / len(block)))):
            file.write(block)


def fit_small(folder: Path) -> Path:
    """Fit a model to some rows and return its file."""
    source, small, model = folder / "block.csv", folder / "small.csv", folder / "houses.grape"
    write_houses(source, 0)
    with source.open("rb") as file:
        small.write_bytes(b"".join(islice(file, TRAINING_ROWS)))
    run_command("fit", small, "--model", model, "--preset", "fast")
    return model


def run_command(*arguments: object) -> tuple[float, float]:
    """Run grapefill in a process of its own; return processor seconds and peak megabytes."""
    command = [sys.executable, "-m", "grapefill", *map(str, arguments), "--quiet"]
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(f"{' '.join(command)} failed.")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def count_changes(source: Path, filled: Path) -> int:
    """Return how many cells were filled, and require all others to be as they were."""
    changes = 0
    with source.open(newline="") as old, filled.open(newline="") as new:
        for was, now in zip(old, new, strict=True):
            if was == now:
                continue
            for one, other in zip(next(csv.reader([was])), next(csv.reader([now])), strict=True):
                if one != other:
                    if one not in HOLES:
                        raise SystemExit(f"{one!r} was changed to {other!r}.")
                    changes += 1
    return changes
