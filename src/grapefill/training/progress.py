"""What training tells the outside: a record per step, a history, a progress bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


@dataclass(frozen=True)
class Progress:
    """The state of training after a step.

    Parameters
    ----------
    step, steps : int
        Steps done, and steps planned.
    loss : float
        Training loss of this step.
    validation : float or None
        Latest loss on held-out cells.
    seconds : float
        Time since training started.
    seconds_left : float
        Estimated time until this stage ends.
    stage : {"network", "trees"}
        What is being fitted. While trees are grown, the other fields keep their last values.
    """

    step: int
    steps: int
    loss: float
    validation: float | None
    seconds: float
    seconds_left: float
    stage: Literal["network", "trees"] = "network"


Callback = Callable[[Progress], None]


@dataclass
class History:
    """Losses over the course of training.

    Parameters
    ----------
    step, loss, seconds : list
        The steps recorded, their training loss and time.
    validation_step, validation : list
        The validations and their loss on held-out cells.
    best_step : int
        The step whose weights were kept.
    stopped : str
        Why training ended: "finished", "early stopping", "time limit" or "interrupted".
    """

    step: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    validation_step: list[int] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best_step: int = 0
    stopped: str = "finished"

    def to_dict(self) -> dict[str, Any]:
        """Return the history as plain JSON values."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> History:
        """Rebuild a history from `to_dict`."""
        return cls(**values)


class ProgressBar:
    """A progress bar on the terminal, for ``verbose=True``; use it as a context and a callback."""

    def __init__(self, title: str = "Training") -> None:
        self._title = title
        self._bar: RichProgress | None = None
        self._task: Any = None

    def __enter__(self) -> ProgressBar:
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
        )
        self._task = self._bar.add_task(self._title, total=None, numbers="")
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._bar is not None
        self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Show a step."""
        assert self._bar is not None
        numbers = f"loss {progress.loss:.4f}"
        if progress.validation is not None:
            numbers += f"  held-out {progress.validation:.4f}"
        # Bar length in time, so that a time limit or uneven steps do not make it jump.
        self._bar.update(
            self._task,
            description=self._title if progress.stage == "network" else "Growing trees",
            total=progress.seconds + progress.seconds_left,
            completed=progress.seconds,
            numbers=numbers,
        )
