"""What grapefill raises and warns, each message saying what is wrong, where, and what to do."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

__all__ = [
    "ConfigError",
    "GrapefillError",
    "GrapefillWarning",
    "InputError",
    "ModelFileError",
    "OutputError",
    "SchemaError",
    "warn",
]

# Whoever called these packages called us; joblib stands between scikit-learn's own functions.
_NOT_THE_CALLER = ("grapefill", "sklearn", "joblib")


class GrapefillError(Exception):
    """Base of every error grapefill raises on purpose."""


class InputError(GrapefillError, ValueError):
    """The given table cannot be used.

    It is a ``ValueError`` too, which is what scikit-learn's tools expect of bad input.
    """


class SchemaError(InputError):
    """The columns of a table differ from those the estimator was fitted on."""


class ConfigError(GrapefillError, ValueError):
    """A parameter has a value that cannot work."""


class ModelFileError(GrapefillError, ValueError):
    """A model file is damaged, foreign, or of a format this version cannot read."""


class OutputError(GrapefillError):
    """A result cannot be written where, or as, it was asked for."""


class GrapefillWarning(UserWarning):
    """Something was done in a way the caller may not expect."""


def warn(message: str | Warning, category: type[Warning] = GrapefillWarning) -> None:
    """Warn at the line of the caller's own code, however deep in the package we are.

    Parameters
    ----------
    message : str or Warning
        What was done, and what to do about it.
    category : type of Warning
        The class of the warning, if the message is text.
    """
    # Python 3.12 has skip_file_prefixes for this; 3.11 has to count.
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and _is_inside(frame):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _is_inside(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _NOT_THE_CALLER
