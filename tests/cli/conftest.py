"""A small table with holes, and the command line as a function."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import grapefill
from grapefill.cli.main import main

QUICK = (
    "--preset",
    "fast",
    "--set",
    "max_steps=12",
    "--set",
    "rounds=1",
    "--set",
    "trees=4",
    "--set",
    "trial_trees=4",
)


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def cli(capfd):
    """Run a command in this process."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return run


@pytest.fixture
def quick():
    """Options that make training short."""
    return QUICK


@pytest.fixture
def spawn(tmp_path):
    """Start a command in a process of its own."""
    started = []

    def start(*arguments, command=None, **options):
        root = Path(grapefill.__file__).parent.parent
        environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
        usual = [sys.executable, "-m", "grapefill", *map(str, arguments)]
        process = subprocess.Popen(command or usual, cwd=tmp_path, env=environment, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


def rows_of(count=80, seed=0):
    """Return rows of a table with numbers, integers, categories, dates and truth."""
    random = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        size = float(random.uniform(20, 120))
        row = [
            f"{k + 1:03d}",
            f"{size:.1f}",
            str(int(size // 25) + 1),
            "gas" if size < 60 else "wood",
            f"2024-{k % 12 + 1:02d}-{k % 28 + 1:02d}",
            "yes" if size > 70 else "no",
            f"{size * 1000 + random.normal(0, 500):.0f}",
        ]
        rows.append([row[0], *("" if random.random() < 0.1 else cell for cell in row[1:])])
    return rows


HEADER = ["id", "area", "rooms", "heating", "sold", "garden", "price"]


def as_csv(rows, header=HEADER, delimiter=","):
    return "\n".join(delimiter.join(row) for row in [header, *rows]) + "\n"


@pytest.fixture
def houses(tmp_path):
    """A CSV file with holes."""
    path = tmp_path / "houses.csv"
    path.write_text(as_csv(rows_of()))
    return path


@pytest.fixture
def make_csv(tmp_path):
    """Write a CSV file of some rows like those of `houses`."""

    def make(name, rows, header=HEADER):
        path = tmp_path / name
        path.write_text(as_csv(rows, header))
        return path

    return make


@pytest.fixture
def rows():
    return rows_of


def changed_cells(before, after):
    """Return (was, now) of the cells that differ between two CSV files."""
    old, new = (path.read_text().splitlines() for path in (before, after))
    assert len(old) == len(new)
    pairs = [
        (was, now)
        for one, other in zip(old, new, strict=True)
        for was, now in zip(one.split(","), other.split(","), strict=True)
    ]
    return [(was, now) for was, now in pairs if was != now]


@pytest.fixture
def changed():
    return changed_cells
