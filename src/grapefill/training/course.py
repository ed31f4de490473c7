"""How far training is: what validations say, and what the clock says."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grapefill.training.team import ALONE

if TYPE_CHECKING:
    from grapefill.training.team import Team

# Share of the held-out error that counts as an improvement for early stopping.
LEAST_GAIN = 1e-3


@dataclass
class Course:
    """Where training stands.

    Examples
    --------
    >>> course = Course(holding=True)
    >>> for error in (0.5, 0.4, 0.4, 0.3999):
    ...     course.validated(error)
    >>> course.worse
    2
    """

    holding: bool
    step: int = 0
    validation: float | None = None
    goal: float = math.inf
    worse: int = 0
    done: bool = False

    def validated(self, validation: float) -> None:
        """Take note of a validation."""
        self.validation = validation
        self.worse = 0 if validation < self.goal else self.worse + 1
        self.goal = min(self.goal, validation * (1 - LEAST_GAIN))


@dataclass
class Clock:
    """The time that training has.

    Parameters
    ----------
    limit : float or None
        Seconds after which training stops.
    started : float
        ``time.perf_counter()`` from when they count.
    team : Team
        The processes that train together, which go by the slowest.
    """

    limit: float | None
    started: float
    team: Team = ALONE

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    def done(self, step: int, steps: int) -> float:
        """Return which share of training is over, in steps or in time, whichever ends first."""
        if self.limit is None:
            return step / steps
        return min(1.0, max(step / steps, self.team.agree(self.seconds / self.limit)))

    def left(self, step: int, steps: int, seconds: float) -> float:
        """Return how many seconds training will take, when a step was done after some seconds."""
        left = seconds / step * (steps - step)
        return left if self.limit is None else min(left, max(0.0, self.limit - seconds))

    def out_after(self, step: int, seconds: float) -> bool:
        """Whether the next step would, on average, end after the time limit."""
        if self.limit is None:
            return False
        return self.team.agree(seconds) * (step + 1) / step > self.limit
