"""Result lines: one JSON object per measurement, appended to a file, so that a run can resume."""

from __future__ import annotations

import json
import os
import platform
import resource
from pathlib import Path
from typing import Any

import torch

import grapefill

FOLDER = Path(__file__).parent / "results"


class ResultFile:
    """Measurements of one experiment.

    Parameters
    ----------
    name : str
        Name of the experiment, and of the file.
    key : tuple of str
        The fields that tell one measurement from another.
    """

    def __init__(self, name: str, key: tuple[str, ...]) -> None:
        self.path = FOLDER / f"{name}.jsonl"
        self.key = key

    def lines(self) -> list[dict[str, Any]]:
        """Return all measurements so far."""
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines() if line]

    def has(self, **fields: Any) -> bool:
        """Whether a measurement was made already."""
        return any(all(line[k] == fields[k] for k in self.key) for line in self.lines())

    def add(self, **fields: Any) -> None:
        """Append a measurement, with what is needed to repeat it."""
        self.path.parent.mkdir(exist_ok=True)
        about = {
            "version": grapefill.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
        }
        with self.path.open("a") as file:
            file.write(json.dumps(fields | about) + "\n")


def peak_megabytes() -> float:
    """Return the peak memory of this process, Python and libraries included."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage would count what the parent had before it started this process.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
