"""What grapefill raises and warns, each message saying what is wrong, where, and what to do."""

__all__ = [
    "ConfigError",
    "GrapefillError",
    "GrapefillWarning",
    "InputError",
    "ModelFileError",
    "SchemaError",
]


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


class GrapefillWarning(UserWarning):
    """Something was done in a way the caller may not expect."""
