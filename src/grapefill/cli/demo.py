"""``demo``: fill a real table and show it before and after.

The table is the Palmer penguins: 344 birds measured in Antarctica, some of them incompletely
(Horst, Hill and Gorman 2020, in the public domain under CC0).
"""

from __future__ import annotations

import os
import time
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapefill.cli.arguments import Running
from grapefill.cli.impute import show_result
from grapefill.cli.terminal import Terminal
from grapefill.cli.work import check_outputs, train
from grapefill.errors import OutputError

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from grapefill.imputer import GrapeImputer

__all__ = ["demo"]

SHORT_NAMES = {
    "bill_length_mm": "bill length",
    "bill_depth_mm": "bill depth",
    "flipper_length_mm": "flipper",
    "body_mass_g": "mass",
}
# A command of several lines can be pasted into most shells, but not into those of Windows.
GOES_ON = " " if os.name == "nt" else " \\\n    "


def demo(*, folder: str = "grapefill-demo", running: Running = Running()) -> None:
    """Fill a real table and show it before and after.

    Parameters
    ----------
    folder
        Where the table goes, before and after.
    """
    from grapefill.files import read_table
    from grapefill.files.atomic import write_whole
    from grapefill.report import write_report

    terminal = Terminal.current(quiet=running.quiet)
    before, after = Path(folder, "penguins.csv"), Path(folder, "penguins-filled.csv")
    report = Path(folder, "report.html")
    content = resources.files("grapefill.cli").joinpath("penguins.csv").read_bytes()
    try:
        before.parent.mkdir(parents=True, exist_ok=True)
        # The table of an earlier demo is the same; what was made of it since may be somebody's.
        same = before.is_file() and before.read_bytes() == content
        outputs = [after, report] if same else [before, after, report]
        check_outputs(*map(str, outputs), inputs=[], overwrite=running.overwrite)
        with write_whole(before) as file:
            file.write(content)
    except OSError as error:
        raise OutputError(
            f"Cannot write to {folder!r}: {error.strerror or error}. Choose another --folder."
        ) from error
    penguins = read_table(before)
    frame = penguins.frame
    holes = sum(column.null_count for column in frame.columns)
    terminal.show(
        f"Palmer penguins: {frame.num_rows} rows, {frame.num_columns} columns, "
        f"{holes} empty cells.",
        f"The table:        {before}",
        "",
        "Filling them, as this does:",
        f"  grapefill impute {before}{GOES_ON}-o {after}{GOES_ON}--report {report} --preset fast",
        "",
    )
    started = time.perf_counter()
    imputer = train(terminal, lambda callbacks: _fit(frame, callbacks))
    filled = imputer.transform(frame)
    penguins.write(after, filled, overwrite=True)
    with terminal.progress("Writing the report"):
        write_report(report, imputer, frame, title="Palmer penguins")
    terminal.show(_before_and_after(frame, filled), "Lengths in millimetres, mass in grams.", "")
    seconds = time.perf_counter() - started
    show_result(terminal, imputer, frame, filled, output=str(after), seconds=seconds)
    terminal.show(f"The report:       {report}", _check(before, after))


def _fit(frame: Any, callbacks: list[Any]) -> GrapeImputer:
    from grapefill.imputer import GrapeImputer

    return GrapeImputer("fast", random_state=0, callbacks=callbacks).fit(frame)


def _before_and_after(before: Any, after: Any) -> Table:
    """Return the rows that had holes, as they were and filled."""
    from rich.table import Table
    from rich.text import Text

    touched = [name for name in before.column_names if before[name].null_count]
    table = Table(title="Rows with holes, before → after", title_justify="left", title_style="bold")
    table.add_column("row", justify="right", style="dim")
    table.add_column("species")
    for name in touched:
        table.add_column(SHORT_NAMES.get(name, name), justify="right")
    for number, (old, new) in enumerate(zip(before.to_pylist(), after.to_pylist(), strict=True)):
        if any(old[name] is None for name in touched):
            cells = [
                _filled(new[name]) if old[name] is None else Text(_text(old[name]), style="dim")
                for name in touched
            ]
            table.add_row(str(number + 1), old["species"], *cells)
    return table


def _filled(value: object) -> Text:
    from rich.text import Text

    # The arrow says "filled" where there is no colour.
    return Text.assemble(("? → ", "dim"), (_text(value), "bold green"))


def _text(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _check(before: Path, after: Path) -> str:
    """Compare the two files cell by cell, as text."""
    import csv

    with before.open(newline="") as old, after.open(newline="") as new:
        pairs = zip(csv.reader(old), csv.reader(new), strict=True)
        same = all(was in ("NA", now) for rows in pairs for was, now in zip(*rows, strict=True))
    if same:
        return "Checked: every cell that had a value is as it was."
    return "A cell that had a value was changed; please report this as a bug."
