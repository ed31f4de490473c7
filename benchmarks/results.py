"""Result lines: one JSON object per measurement, appended to a file, so that a run can resume."""

from __future__ import annotations

import json
import math
import os
import platform
import resource
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
import torch

import grapefill

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent / "results"
_SAID: set[str] = set()


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
        texts = self.path.read_text().splitlines() if self.path.exists() else []
        for number, text in enumerate(texts, start=1):
            try:
                lines += [json.loads(text)] if text else []
            except json.JSONDecodeError:
                place = f"{self.path}, line {number}"
                if place not in _SAID:
                    print(f"{place} was cut off and is passed over: delete it.", file=sys.stderr)
                _SAID.add(place)
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

    def succeeded(self) -> set[tuple[Any, ...]]:
        """Return the keys of the measurements that did not fail."""
        return {self.key_of(line) for line in self.lines() if "error" not in line}

    def has(self, **fields: Any) -> bool:
        """Whether a measurement was made already."""
        return self.key_of(fields) in self.measured()

    def add(self, **fields: Any) -> None:
        """Append a measurement, with what is needed to repeat it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        about = {
            "version": grapefill.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "sklearn": sklearn.__version__,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            # Networks round otherwise on other processors.
            "processor": f"{processor()}, {torch.backends.cpu.get_cpu_capability()}",
        }
        text = json.dumps(_finite(fields | about), allow_nan=False) + "\n"
        with self.path.open("ab+") as file:
            if file.tell():
                # A line that was cut off must not swallow this one.
                file.seek(-1, os.SEEK_END)
                text = text if file.read(1) == b"\n" else "\n" + text
            file.write(text.encode())


def processor() -> str:
    """Return the name of the processor, as far as the system tells."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _finite(value: Any) -> Any:
    """Return JSON values without what is no JSON: infinities and NaN become null."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
    inner = estimator
    while hasattr(inner, "imputer"):
        inner = inner.imputer
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
