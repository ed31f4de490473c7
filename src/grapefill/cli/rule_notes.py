"""The note on rows that break rules, over all parts of a table."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grapefill.cli.columns import Rows
    from grapefill.cli.terminal import Terminal

__all__ = ["RuleNotes", "telling_of_rules"]

# Rows that a note names.
MOST_ROWS = 3


class RuleNotes:
    """Counts rows that break rules, part by part, to tell of all of them at once.

    Parameters
    ----------
    terminal : Terminal
        Where to show the note.
    name : str or None
        What to call the file; None if there are several.
    """

    def __init__(self, terminal: Terminal, name: str | None = None) -> None:
        self._terminal = terminal
        self._name = name
        self._rules: dict[str, None] = {}
        self._rows = self._by_observed = 0
        self._places: list[str] = []

    @contextmanager
    def part(self, where: Callable[[int], str], name: str | None = None) -> Iterator[None]:
        """Count the rows of a part while it is filled.

        Parameters
        ----------
        where : callable
            Returns what to call a row of the part, counted from 0.
        name : str or None
            What to call its file, if there are several.
        """
        from grapefill.uncertainty.broken import BrokenRules

        def hear(warning: Warning | str) -> bool:
            if not isinstance(warning, BrokenRules):
                return False
            self._rules |= dict.fromkeys(warning.rules)
            self._rows += len(warning.rows)
            self._by_observed += warning.by_observed
            left = MOST_ROWS - len(self._places)
            inside = f" of {name}" if self._name is None and name is not None else ""
            self._places += [where(row) + inside for row in warning.rows[:left]]
            return True

        with self._terminal.hearing(hear):
            yield

    def tell(self) -> None:
        """Show the note, if there is anything to tell."""
        from grapefill.uncertainty.broken import describe_broken

        if not self._rows:
            return
        more = self._rows > len(self._places)
        places = ", ".join(self._places) + (", ..." if more else "")
        inside = "" if self._name is None else f" of {self._name}"
        end = "" if more and not inside else "."
        words = describe_broken(list(self._rules), self._rows, self._by_observed)
        self._terminal.note(f"{words} See {places}{inside}{end}")


@contextmanager
def telling_of_rules(terminal: Terminal, file: Rows) -> Iterator[None]:
    """Tell of rows of a file that break rules, in the end, by the lines they are in."""
    notes = RuleNotes(terminal, file.name)
    with notes.part(file.where):
        yield
    notes.tell()
