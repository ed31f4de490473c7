"""What fills some rows of a file after the other."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from grapefill.cli.columns import Plan
    from grapefill.cli.rule_notes import RuleNotes
    from grapefill.cli.summary import Tally
    from grapefill.files import TableFile
    from grapefill.imputer import GrapeImputer

__all__ = ["FillerMaker", "Part", "RowFiller", "TextFiller"]


@dataclass(frozen=True)
class Part:
    """Some rows of a file, as `Plan.prepare` reads them."""

    frame: Any
    name: str
    # Rows of the file before it; None if nobody has counted them.
    before: int | None = None

    def where(self, row: int) -> str:
        """Return what to call a row in a message."""
        if self.before is None:
            return f"row {row + 1} of a part"
        return f"row {self.before + row + 1}"


@dataclass
class RowFiller:
    """Fills a Parquet file, some rows after the other; every other cell stays as it was.

    Parameters
    ----------
    imputer : GrapeImputer
        The model.
    plan : Plan
        Levels and bounds of columns.
    na : tuple of str
        Marks for missing cells.
    name : str
        What to call the file in a message.
    tally : Tally or None
        Where holes are counted, if they are.
    notes : RuleNotes or None
        Where rows that break rules are counted, if they are.
    done : int
        Rows that were filled.
    """

    imputer: GrapeImputer
    plan: Plan
    na: tuple[str, ...]
    name: str
    tally: Tally | None = None
    notes: RuleNotes | None = None
    done: int = 0

    def __call__(self, rows: Any) -> Any:
        """Return a pyarrow table filled, which is the next of the file."""
        from grapefill.cli.columns import fill_rows, select_columns
        from grapefill.files.arrow_files import with_changes, without_marks
        from grapefill.files.changes import Changes

        frame = without_marks(rows, self.na)
        part = Part(frame, self.name, self.done)
        self.done += rows.num_rows
        table = select_columns(self.imputer, self.plan.prepare(part), self.name)
        with nullcontext() if self.notes is None else self.notes.part(part.where, self.name):
            filled = fill_rows(self.imputer, self.plan, table)
        if self.tally is not None:
            self.tally.add(frame, filled)
        changes = Changes.between(frame, filled, erase=False, name=self.name)
        return with_changes(rows, changes, self.name)


@dataclass(frozen=True)
class FillerMaker:
    """Makes a `RowFiller` for every file; can be sent to other processes."""

    imputer: GrapeImputer
    plan: Plan
    na: tuple[str, ...]
    tally: Tally | None = None
    notes: RuleNotes | None = None

    def __call__(self, path: Path) -> RowFiller:
        """Return what fills the rows of a file."""
        name = repr(str(path))
        return RowFiller(self.imputer, self.plan, self.na, name, self.tally, self.notes)


@dataclass(frozen=True)
class TextFiller:
    """Fills some rows of a text."""

    imputer: GrapeImputer
    plan: Plan
    tally: Tally
    notes: RuleNotes

    def __call__(self, part: TableFile) -> Any:
        """Return the table of some rows filled."""
        from grapefill.cli.columns import fill_rows, select_columns

        table = select_columns(self.imputer, self.plan.prepare(part), part.name)
        with self.notes.part(part.where):
            filled = fill_rows(self.imputer, self.plan, table)
        self.tally.add(part.frame, filled)
        return filled
