"""The table at the end: what was filled in, and how far off it is likely to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grapefill.cli.names import listed
from grapefill.evaluate.text import counted
from grapefill.files.changes import find_missing
from grapefill.lines import shorten
from grapefill.table.text import describe_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from grapefill.imputer import GrapeImputer
    from grapefill.table import Column
    from grapefill.training.choice import ColumnTrial

__all__ = [
    "ColumnSummary",
    "Tally",
    "result_lines",
    "still_empty",
    "summarise_columns",
    "summary_table",
]

MOST_COLUMNS = 40
NOTHING_MISSING = "No cell was missing; the table is unchanged."
LONGEST_NAME = 40
# Columns that are named in a sentence.
MOST_NAMES = 10
# With fewer held-out cells, a change may be chance.
FEWEST_CELLS = 10
# A smaller change would be shown as 0%.
LEAST_CHANGE = 0.005


@dataclass(frozen=True)
class ColumnSummary:
    """What happened to a column with holes.

    Parameters
    ----------
    name, kind : str
        The column.
    filled, left : int
        Holes that were filled, and that were not.
    error, constant : str
        Errors on held-out cells, of the model and of filling in one value; empty if unknown.
    ratio : float or None
        The first as a share of the second.
    cells : int or None
        How many cells were held out, if that is known.
    """

    name: str
    kind: str
    filled: int
    left: int
    error: str = ""
    constant: str = ""
    ratio: float | None = None
    cells: int | None = None

    @property
    def is_sure(self) -> bool:
        """Whether so many cells were held out that their errors can be compared."""
        return self.cells is None or self.cells >= FEWEST_CELLS

    @property
    def change(self) -> str:
        """How much lower or higher the first is, or of how few cells; empty if unknown."""
        if self.ratio is None:
            return ""
        if not self.is_sure:
            return f"only {counted(self.cells or 0, 'cell')}"
        change = self.ratio - 1
        if abs(change) < LEAST_CHANGE:
            return "same"
        return f"{abs(change):.0%} {'lower' if change < 0 else 'higher'}"

    @property
    def is_better(self) -> bool:
        """Whether the model does better than one value, or that is unknown."""
        return self.ratio is None or not self.is_sure or self.ratio - 1 <= -LEAST_CHANGE


@dataclass
class Tally:
    """Holes that were filled and that were not, column by column.

    Parameters
    ----------
    filled, left : dict of str to int
        Their numbers in columns with holes.

    Examples
    --------
    >>> import pyarrow as pa
    >>> tally = Tally()
    >>> tally.add(pa.table({"x": [1, None], "y": [2, None]}), pa.table({"x": [1, 3]}))
    >>> tally.filled, tally.left
    ({'x': 1, 'y': 0}, {'x': 0, 'y': 1})
    """

    filled: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)

    def add(self, before: Any, after: Any) -> None:
        """Count the holes of some rows, which may have lost columns when they were filled."""
        # A table looks for a name among all others, which takes long where there are thousands.
        old, new = (dict(zip(t.column_names, t.columns, strict=True)) for t in (before, after))
        for name, cells in old.items():
            holes = find_missing(cells)
            if not holes.any():
                continue
            still = holes & find_missing(new[name]) if name in new else holes
            count, left = int(holes.sum()), int(still.sum())
            self.filled[name] = self.filled.get(name, 0) + count - left
            self.left[name] = self.left.get(name, 0) + left


def summarise_columns(imputer: GrapeImputer, tally: Tally) -> list[ColumnSummary]:
    """Return what happened to the columns of a table that had holes."""
    model = imputer.model_
    trials: dict[int, ColumnTrial] = {}
    if model is not None:
        trials = dict(zip(model.schema.features, model.trials, strict=False))
    result = []
    known = {str(column.name): j for j, column in enumerate(imputer.schema_.columns)}
    for name in sorted(tally.filled, key=lambda name: known.get(name, len(known))):
        filled, left, j = tally.filled[name], tally.left[name], known.get(name)
        if j is None:
            result.append(ColumnSummary(name, "not used", filled, left))
            continue
        column = imputer.schema_.columns[j]
        errors = _errors(column, trials[j]) if j in trials else ("", "", None, None)
        result.append(ColumnSummary(name, column.kind.value, filled, left, *errors))
    return result


def result_lines(imputer: GrapeImputer, tally: Tally, seconds: float | None = None) -> list[Any]:
    """Return what to show of a table that was filled, in so many seconds."""
    found = summarise_columns(imputer, tally)
    if not found:
        return [NOTHING_MISSING]
    cells = sum(column.filled for column in found)
    were = "cell was" if cells == 1 else "cells were"
    took = "" if seconds is None else f" in {seconds:.1f} seconds"
    lines = [*summary_table(found), "", f"{cells:,} {were} filled{took}."]
    return [*lines, left] if (left := still_empty(found)) else lines


def still_empty(columns: list[ColumnSummary]) -> str:
    """Return how many cells have no value yet, and where they are; empty if there are none.

    Examples
    --------
    >>> still_empty([ColumnSummary("note", "passthrough", 0, 41), ColumnSummary("age", "", 3, 0)])
    "41 cells are still empty: 'note' (41)."
    """
    some = [column for column in columns if column.left]
    if not some:
        return ""
    cells = sum(column.left for column in some)
    names = ", ".join(f"{column.name!r} ({column.left:,})" for column in some[:MOST_NAMES])
    more = len(some) - MOST_NAMES
    rest = f" and {counted(more, 'more column')}" if more > 0 else ""
    are = "cell is" if cells == 1 else "cells are"
    return f"{cells:,} {are} still empty: {names}{rest}."


def _errors(column: Column, trial: ColumnTrial) -> tuple[str, str, float | None, int | None]:
    """Return errors on held-out cells in words, their ratio, and how many cells these were."""
    error = trial.error
    if error is None or trial.constant is None:
        return "", "", None, None
    ratio = error / trial.constant if trial.constant else None
    shown = describe_error(error, column), describe_error(trial.constant, column)
    return *shown, ratio, trial.cells


def summary_table(columns: list[ColumnSummary]) -> Iterator[Any]:
    """Yield what to print about the columns."""
    from rich.table import Table

    shown = sorted(columns, key=lambda column: -column.filled)[:MOST_COLUMNS]
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("column", overflow="fold")
    table.add_column("kind")
    table.add_column("filled", justify="right")
    tried = any(column.error for column in shown)
    if tried:
        table.add_column("error", justify="right")
        table.add_column("of a constant", justify="right")
        table.add_column("", justify="right")
    names = {column.name for column in shown}
    for column in columns:
        if column.name in names:
            _add(table, column, tried=tried)
    yield table
    if len(columns) > len(shown):
        yield f"and {counted(len(columns) - len(shown), 'more column')}"
    if tried:
        yield ""
        yield (
            "Errors are on observed cells that were held out of training: the mean distance of "
            "numbers and dates, the share of wrong categories."
        )
        yield "A constant is the median or the most frequent category."
    if any(column.ratio is not None and not column.is_sure for column in shown):
        yield (
            f"Where fewer than {FEWEST_CELLS} cells were held out, errors are too uncertain to be "
            "compared."
        )
    idle = [column.name for column in columns if not column.is_better]
    if idle:
        yield (
            "No better than the median or the most frequent category on held-out cells: "
            f"{listed(idle)}."
        )


def _add(table: Table, column: ColumnSummary, *, tried: bool) -> None:
    from rich.text import Text

    cells: list[Any] = [Text(shorten(column.name, LONGEST_NAME)), column.kind, f"{column.filled:,}"]
    if tried:
        cells += [column.error or "-", column.constant or "-", column.change]
    if column.left:
        cells[2] = f"{column.filled:,} of {column.filled + column.left:,}"
    table.add_row(*cells)
