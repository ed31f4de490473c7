"""What is said of rows that break rules, whatever is filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grapefill.errors import GrapefillWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

# Rows that a warning names.
_MOST = 5


class BrokenRules(GrapefillWarning):
    """Rows break rules, and stay so.

    Parameters
    ----------
    rules : sequence of str
        The rules.
    rows : sequence of int
        The rows, counted from 0.
    by_observed : int
        How many of them have observed cells that break a rule by themselves.
    """

    def __init__(self, rules: Sequence[str], rows: Sequence[int], by_observed: int) -> None:
        # These are what a copy of an exception is made of.
        super().__init__(rules, rows, by_observed)
        self.rules, self.rows, self.by_observed = rules, rows, by_observed

    def __str__(self) -> str:
        """Return the warning for those who write Python."""
        shown = ", ".join(map(str, self.rows[:_MOST])) + (", ..." if len(self.rows) > _MOST else "")
        words = describe_broken(self.rules, len(self.rows), self.by_observed)
        return f"{words} {'Row' if len(self.rows) == 1 else 'Rows'} {shown}."


def describe_broken(rules: Sequence[str], rows: int, by_observed: int) -> str:
    """Return that rows break rules, and why nothing was done about it.

    Examples
    --------
    >>> describe_broken(["a <= b"], 1, 1)
    "1 row breaks the rule 'a <= b' and stays so: its observed cells do."
    """
    one = rows == 1
    these = f"{'rule' if len(rules) == 1 else 'rules'} {', '.join(map(repr, rules))}"
    if by_observed == rows:
        why = f"{'its' if one else 'their'} observed cells do"
    else:
        why = "no allowed value could be filled in that does not"
        if by_observed:
            why = f"the observed cells of {by_observed:,} do, and in {rows - by_observed:,} {why}"
    return (
        f"{rows:,} {'row breaks' if one else 'rows break'} the {these} and "
        f"{'stays' if one else 'stay'} so: {why}."
    )
