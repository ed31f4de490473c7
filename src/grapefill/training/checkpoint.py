"""Checkpoints: what it takes to go on with a training that was cut off, to the same end.

A file holds weights, optimiser, generator, the rows still to come in this epoch and the course of
training so far. It is written whole or not at all, every half minute and when the network is
trained, and belongs to one fit: the same rows, settings and seed.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import ModelFileError, warn
from grapefill.files.model import read_model, write_model

if TYPE_CHECKING:
    from torch import Tensor

    from grapefill.table.arrays import FloatArray
    from grapefill.training.config import Preset

KIND = "checkpoint"


@dataclass(frozen=True)
class CheckpointFile:
    """Where and how often the state of a training is kept.

    Parameters
    ----------
    path : str or Path
        The file.
    seconds : float
        How often it is written, at most; 0 for after every step.
    keep : bool
        Whether it stays when the fit is complete, for the caller to remove once the result is
        safe. A fit that finds it goes on where the network was trained.

    Examples
    --------
    >>> from grapefill import GrapeImputer
    >>> imputer = GrapeImputer(checkpoint=CheckpointFile("state", seconds=300))
    """

    path: str | Path
    seconds: float = 30.0
    keep: bool = False


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds: tensors by name, and plain JSON values."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


class Checkpoint:
    """The checkpoint of one fit.

    Parameters
    ----------
    file : CheckpointFile
        Where and how often it is written.
    fingerprint : str
        What tells this fit from others, see `fingerprint_of`.

    Attributes
    ----------
    number : int
        How many of this fit were written; the file holds its number.
    """

    def __init__(self, file: CheckpointFile, fingerprint: str) -> None:
        self.file = file
        self.path = Path(file.path)
        self.fingerprint = fingerprint
        self.number = 0
        self._written = time.perf_counter()

    @property
    def due(self) -> bool:
        """Whether the last one was written long enough ago."""
        return time.perf_counter() - self._written >= self.file.seconds

    def write(self, saved: Saved) -> None:
        """Replace the file."""
        self.number += 1
        description = {
            "fingerprint": self.fingerprint,
            "number": self.number,
            "values": saved.values,
        }
        write_model(self.path, estimator=KIND, tensors=saved.tensors, description=description)
        self._written = time.perf_counter()

    def read(self) -> Saved | None:
        """Return what was saved of this very fit, if anything was."""
        if not self.path.exists():
            return None
        try:
            file = read_model(self.path)
        except ModelFileError as error:
            if self.path.is_dir():
                raise
            if not _may_be_ours(self.path):
                raise ModelFileError(
                    f"{str(self.path)!r} is not a checkpoint, and is left as it is. Give another "
                    "file for checkpoints."
                ) from error
            warn(f"The checkpoint cannot be used and training starts afresh: {error}")
            return None
        if file.estimator != KIND:
            raise ModelFileError(
                f"{str(self.path)!r} holds a {file.estimator}, not a checkpoint, and is left as it "
                "is. Give another file for checkpoints."
            )
        if file.description["fingerprint"] != self.fingerprint:
            warn(
                f"The checkpoint {str(self.path)!r} is of another table, other settings or another "
                "seed; training starts afresh."
            )
            return None
        self.number = file.description["number"]
        return Saved(file.tensors, file.description["values"])

    def complete(self) -> None:
        """Remove the file, unless the caller does."""
        if not self.file.keep:
            self.path.unlink(missing_ok=True)


def _may_be_ours(path: Path) -> bool:
    """Whether a file that cannot be read begins like one of ours, or is empty."""
    with path.open("rb") as file:
        head = file.read(4_096)
    return not head or (head[8:9] == b"{" and b"grapefill" in head)


def fingerprint_of(numbers: FloatArray, preset: Preset, *further: Any) -> str:
    """Return a digest of encoded rows, settings and whatever else decides the result of a fit."""
    digest = hashlib.sha256()
    digest.update(np.ascontiguousarray(numbers).tobytes())
    digest.update(json.dumps([numbers.shape, preset.to_dict(), *further], default=str).encode())
    return digest.hexdigest()
