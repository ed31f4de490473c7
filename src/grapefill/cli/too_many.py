"""What to do about words of a command that belong to nothing."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["REPEATED", "WITH_COMMAS", "explain_too_many"]

# Options that take several values at once, and those that are given again for each.
WITH_COMMAS = (
    "--ignore",
    "--categorical",
    "--ordinal",
    "--continuous",
    "--text",
    "--methods",
    "--columns",
)
REPEATED = ("--bounds", "--rule", "--delta", "--na", "--set")
_NUMBERS = ("no", "one", "two")


def explain_too_many(
    tokens: Sequence[str], extra: Sequence[str], command: str, function: Callable[..., Any] | None
) -> str:
    """Return how many words of a command are too many, and what was probably meant.

    Parameters
    ----------
    tokens : sequence of str
        All words of the command.
    extra : sequence of str
        Those that belong to nothing.
    command : str
        What the command is called.
    function : callable or None
        What it does, whose positional parameters are the files that it takes.

    Examples
    --------
    >>> explain_too_many(["fit", "a.csv", "--ignore", "b", "c"], ["c"], "grapefill fit", None)
    'One argument too many: c. Several values of --ignore are written with commas: --ignore b,c.'
    """
    many = "One argument" if len(extra) == 1 else f"{len(extra)} arguments"
    hint = _of_option(tokens, extra) or _of_files(command, function)
    return f"{many} too many: {' '.join(extra)}. {hint}".rstrip()


def _of_option(tokens: Sequence[str], extra: Sequence[str]) -> str:
    """Return how several values are given to the option before the words, empty if it has one."""
    from grapefill.cli.terminal import as_option, with_value

    start = _first_of(tokens, extra)
    values = [*extra]
    for token in reversed(tokens[:start]):
        name, equals, value = token.partition("=")
        is_option = name in WITH_COMMAS or name in REPEATED
        if not is_option and re.fullmatch(r"--.*|-[A-Za-z]", name):
            return ""
        if not is_option:
            values.insert(0, token)
            continue
        if equals:
            values.insert(0, value)
        values = [each for each in values if not _is_file(each)]
        if len(values) < 2:
            return ""
        if name in WITH_COMMAS:
            return f"Several values of {name} are written with commas: {as_option(name, values)}."
        return (
            f"{name} takes one value. Repeat it for others: "
            f"{' '.join(with_value(name, each) for each in values)}."
        )
    return ""


def _is_file(word: str) -> bool:
    from grapefill.files.places import Place

    return Path(word).exists() or Place.at(word).format is not None


def _first_of(tokens: Sequence[str], extra: Sequence[str]) -> int:
    """Return where the first of the words stands, which need not stand side by side."""
    place = len(tokens)
    for word in reversed(extra):
        place = max(at for at in range(place) if tokens[at] == word)
    return place


def _of_files(command: str, function: Callable[..., Any] | None) -> str:
    """Return how many files a command takes."""
    if function is None:
        return ""
    parameters = inspect.signature(function).parameters.values()
    files = [each.name for each in parameters if each.kind is each.POSITIONAL_ONLY]
    kind = "folder" if files == ["folder"] else "file"
    if not files:
        return f"'{command}' takes no file."
    return (
        f"'{command}' takes {_NUMBERS[len(files)]} {kind}{'s' if len(files) > 1 else ''}: give the "
        "command again for others, and put names with spaces in quotes."
    )
