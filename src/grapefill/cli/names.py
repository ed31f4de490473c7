"""Names of columns: those that options name, and those that were probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grapefill.errors import InputError
from grapefill.settings import closest_word

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["find_column", "find_columns", "in_other_case", "listed"]

# Names, or pairs of them, that a message lists.
_MOST = 10


def find_columns(given: Sequence[str], names: Sequence[str], option: str) -> list[str]:
    """Return the columns that an option names, one by one or separated by commas.

    Raises
    ------
    InputError
        If there is no such column.

    Examples
    --------
    >>> find_columns(["a,b", "c, d"], ["a", "b", "c, d"], "--ignore")
    ['a', 'b', 'c, d']
    """
    found = []
    for text in given:
        parts = [text] if text in names else [part.strip() for part in text.split(",")]
        for part in parts:
            found.append(_known(part, names, option))
    return found


def find_column(given: str, names: Sequence[str], option: str, *, repeats: bool = True) -> str:
    """Return the column that an option names, which takes one.

    Parameters
    ----------
    given : str
        The name.
    names : sequence of str
        The columns.
    option : str
        The option, for messages.
    repeats : bool
        Whether the option may be given again.

    Raises
    ------
    InputError
        If there is no such column.

    Examples
    --------
    >>> find_column(" b ", ["a", "b"], "--bounds"), find_column("a, b", ["a, b"], "--bounds")
    ('b', 'a, b')
    """
    name = given if given in names else given.strip()
    parts = [part.strip() for part in name.split(",")]
    if name not in names and len(parts) > 1 and all(part in names for part in parts):
        hint = f"Give {option} to each of them." if repeats else "Choose one of them."
        raise InputError(f"{option} takes one column, and {name!r} names {len(parts)}. {hint}")
    return _known(name, names, option)


def _known(name: str, names: Sequence[str], option: str) -> str:
    if name not in names:
        close = closest_word(name, names)
        hint = f"Did you mean {close!r}?" if close else f"The columns are {listed(names)}."
        raise InputError(f"{option} names the column {name!r}, which is not there. {hint}")
    return name


def in_other_case(wanted: Sequence[str], names: Sequence[str]) -> str:
    """Return a hint at names that differ from those wanted in case only, empty if there are none.

    Examples
    --------
    >>> in_other_case(["age", "price"], ["Age", "town"])
    "Did you mean 'Age' by 'age'? Names must be the same in upper and lower case: rename it."
    """
    lowered = {each.casefold(): each for each in names}
    pairs = [(each, lowered[each.casefold()]) for each in wanted if each.casefold() in lowered]
    if not pairs:
        return ""
    shown = ", ".join(f"{there!r} by {each!r}" for each, there in pairs[:_MOST])
    them = "it" if len(pairs) == 1 else "them"
    return f"Did you mean {shown}? Names must be the same in upper and lower case: rename {them}."


def listed(names: Sequence[str]) -> str:
    """Return the first of some names, for a message."""
    return ", ".join(map(repr, names[:_MOST])) + (", ..." if len(names) > _MOST else "")
