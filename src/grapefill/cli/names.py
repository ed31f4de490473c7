"""Names of columns: those that options name, and those that were probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grapefill.errors import InputError
from grapefill.settings import closest_word

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["find_columns", "in_other_case", "listed"]

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
            if part not in names:
                close = closest_word(part, names)
                hint = f"Did you mean {close!r}?" if close else f"The columns are {listed(names)}."
                raise InputError(f"{option} names the column {part!r}, which is not there. {hint}")
            found.append(part)
    return found


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
