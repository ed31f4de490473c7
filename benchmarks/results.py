"""Result lines: one JSON object per measurement, appended to a file, so that a run can resume."""

from __future__ import annotations

import json
import math
import os
import platform
import resource
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import grapefill

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent / "results"


class ResultFile:
    """Measurements of one experiment.

    Parameters
    ----------
    name : str
        Name of the experiment, and of the file.
    key : tuple of str
        The fields that tell one measurement from another.
    also : callable or None
        Gives further lines, of measurements that are kept elsewhere.
    """

    def __init__(
        self,
        name: str,
        key: tuple[str, ...],
        also: Callable[[], list[dict[str, Any]]] | None = None,
    ) -> None:
        self.path = FOLDER / f"{name}.jsonl"
        self.key = key
        self.also = also

    def lines(self) -> list[dict[str, Any]]:
        """Return all measurements so far."""
        lines = self.also() if self.also else []
        if self.path.exists():
            lines += [json.loads(line) for line in self.path.read_text().splitlines() if line]
        return lines

    def good_lines(self) -> list[dict[str, Any]]:
        """Return the latest of every measurement that succeeded and was of full length."""
        latest = {
            self.key_of(line): line
            for line in self.lines()
            if "error" not in line and line.get("budget", 1) == 1
        }
        return list(latest.values())

    def key_of(self, fields: dict[str, Any]) -> tuple[Any, ...]:
        """Return what tells one measurement from another."""
        return (*(fields[name] for name in self.key), fields.get("budget", 1))

    def measured(self) -> set[tuple[Any, ...]]:
        """Return the keys of all measurements so far, failed ones too."""
        return {self.key_of(line) for line in self.lines()}

    def has(self, **fields: Any) -> bool:
        """Whether a measurement was made already."""
        return self.key_of(fields) in self.measured()

    def add(self, **fields: Any) -> None:
        """Append a measurement, with what is needed to repeat it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
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


def settings_of(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator, as plain JSON values."""
    inner = getattr(estimator, "imputer", estimator)
    given: dict[str, Any] = {}
    if hasattr(inner, "get_params"):
        given = inner.get_params(deep=False)
    elif is_dataclass(inner):
        given = {field.name: getattr(inner, field.name) for field in fields(inner) if field.repr}
    settings = {name: _plain(value) for name, value in given.items()}
    return {"class": type(inner).__name__} | settings


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if (
        value is None
        or isinstance(value, str | int)
        or (isinstance(value, float) and not math.isnan(value))
    ):
        return value
    return " ".join(repr(value).split())


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
