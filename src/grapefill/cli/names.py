"""Names of columns that were probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["in_other_case"]

# Pairs of names that a message lists.
_MOST = 10


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
