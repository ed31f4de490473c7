"""``impute`` and ``fit``: learn from a table, fill it, keep what was learned."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from grapefill.cli.arguments import Columns, File, Output, Reading, Running, Training
from grapefill.cli.columns import Plan, text_columns
from grapefill.cli.draws import draw_paths, interval_paths, write_draws, write_interval
from grapefill.cli.terminal import Terminal
from grapefill.cli.work import (
    checkpoint_of,
    default_output,
    in_slices,
    join_tables,
    open_table,
    train,
)

if TYPE_CHECKING:
    from grapefill.files import TableFile
    from grapefill.imputer import GrapeImputer

__all__ = ["fit", "impute"]

EXAMPLES = """\
Examples:

  grapefill impute data.csv -o filled.csv

  grapefill impute data.csv -o filled.csv --report report.html

  grapefill impute data.csv -o filled.csv --preset fast --na -999 --ignore id

  grapefill impute data.csv --draws 20 --out-dir imputations/ --interval 0.9

  grapefill impute survey.xlsx --sheet answers --ordinal "size=small,medium,large"

  zcat data.csv.gz | grapefill impute - --quiet > filled.csv"""

FIT_EXAMPLES = """\
Examples:

  grapefill fit data.csv --model prices.grape

  grapefill apply prices.grape new.csv -o filled.csv"""


def impute(
    data: File,
    /,
    *,
    output: Output = None,
    model: Annotated[str | None, Parameter(name=["--model", "-m"], metavar="FILE")] = None,
    report: Annotated[str | None, Parameter(name=["--report", "-r"], metavar="FILE")] = None,
    indicator: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    draws: int | None = None,
    out_dir: Annotated[str | None, Parameter(metavar="FOLDER")] = None,
    interval: float | None = None,
    training: Training = Training(),
    columns: Columns = Columns(),
    reading: Reading = Reading(),
    running: Running = Running(),
) -> None:
    """Fill the holes of a table, and leave every other cell exactly as it was.

    Parameters
    ----------
    data
        The table: CSV, TSV, Parquet, Feather, Arrow, Excel or JSON lines, perhaps with .gz or .zst
        behind it; - for standard input.
    output
        Where the filled table goes, - for standard output. Without it, -filled is added to the
        name.
    model
        Keep the model in this file, for 'grapefill apply'. If training is cut off, the same
        command goes on with it.
    report
        Write a page that shows what was filled in and how far to trust it, as HTML.
    indicator
        Add columns that tell which cells were filled.
    draws
        Draw that many tables besides, for multiple imputation with 'grapefill pool'.
    out_dir
        The folder for the draws.
    interval
        Write the ends of intervals that hold so large a share of the true values, such as 0.9,
        to files beside the filled table, with -lower and -upper added to its name.
    """
    from grapefill.files.places import check_output, open_output

    terminal = Terminal.current(quiet=running.quiet)
    output = default_output(data, "filled") if output is None else output
    check_output(output, inputs=[data], overwrite=running.overwrite)
    taken = [data, output]
    drawn, ends = draw_paths(data, draws, out_dir), interval_paths(output, interval)
    for path in (model, report, *drawn, *ends):
        if path is not None:
            check_output(path, inputs=taken, overwrite=running.overwrite)
            taken.append(path)
    started = time.perf_counter()
    file, plan, table = _open(data, columns, reading, terminal)
    imputer = _fit(table, plan, training, terminal, indicator=indicator, model=model)
    filled = fill(imputer, plan, table, terminal)
    page = None if report is None else _page(imputer, table, data, terminal)
    file.write(output, filled, overwrite=running.overwrite)
    write_interval(imputer, file, plan, table, ends, coverage=interval)
    write_draws(imputer, file, plan, table, drawn, seed=training.seed, terminal=terminal)
    if model is not None:
        imputer.save(model, notes=_notes(file, plan, reading))
    if report is not None and page is not None:
        with open_output(report) as place:
            place.write(page.encode())
    seconds = time.perf_counter() - started
    show_result(terminal, imputer, table, filled, output=output, seconds=seconds)
    for what, path in (
        ("The model:       ", model),
        ("The report:      ", report),
        ("The draws:       ", out_dir),
        ("The intervals:   ", " and ".join(ends) or None),
    ):
        if path is not None:
            terminal.show(f"{what} {path}", to_error=output == "-")


def fit(
    data: File,
    /,
    *,
    model: Annotated[str, Parameter(name=["--model", "-m"], metavar="FILE")],
    indicator: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    training: Training = Training(),
    columns: Columns = Columns(),
    reading: Reading = Reading(),
    running: Running = Running(),
) -> None:
    """Learn from a table, to fill others like it with 'grapefill apply'.

    Parameters
    ----------
    data
        The table: CSV, TSV, Parquet, Feather, Arrow, Excel or JSON lines, perhaps with .gz or .zst
        behind it; - for standard input.
    model
        The file for the model. If training is cut off, the same command goes on with it.
    indicator
        Let 'grapefill apply' add columns that tell which cells were filled.
    """
    from grapefill.files.places import check_output

    terminal = Terminal.current(quiet=running.quiet)
    check_output(model, inputs=[data], overwrite=running.overwrite)
    file, plan, table = _open(data, columns, reading, terminal)
    imputer = _fit(table, plan, training, terminal, indicator=indicator, model=model)
    imputer.save(model, notes=_notes(file, plan, reading))
    terminal.show(imputer.summary(), "", f"The model: {model}")


def _open(
    data: str, columns: Columns, reading: Reading, terminal: Terminal
) -> tuple[TableFile, Plan, Any]:
    file = open_table(data, reading, text_columns(columns), terminal)
    plan = Plan.make(columns, file).without_empty(file)
    return file, plan, plan.prepare(file)


def _fit(
    table: Any,
    plan: Plan,
    training: Training,
    terminal: Terminal,
    *,
    indicator: bool,
    model: str | None,
) -> GrapeImputer:
    from grapefill.imputer import GrapeImputer

    def start(callbacks: list[Any]) -> GrapeImputer:
        imputer = GrapeImputer(
            **training.parameters(),
            kinds=plan.kinds,
            add_indicator=indicator,
            checkpoint=checkpoint_of(model),
            callbacks=callbacks,
        )
        return imputer.fit(table)

    return train(terminal, start)


def fill(imputer: GrapeImputer, plan: Plan, table: Any, terminal: Terminal) -> Any:
    """Return a table filled, some rows after the other."""
    filled = in_slices(terminal, "Filling", table, imputer.transform, join_tables)
    return plan.hold(table, filled)


def _notes(file: TableFile, plan: Plan, reading: Reading) -> dict[str, Any]:
    """Return what 'apply' has to know besides the model."""
    kept = {"na": list(reading.na), "only_na": reading.only_na}
    return {"types": file.types, "plan": plan.to_dict(), "reading": kept}


def _page(imputer: GrapeImputer, table: Any, data: str, terminal: Terminal) -> str:
    from grapefill.report import make_report

    with terminal.progress("Writing the report"):
        return make_report(imputer, table, title="Table" if data == "-" else Path(data).name)


def show_result(
    terminal: Terminal,
    imputer: GrapeImputer,
    table: Any,
    filled: Any,
    *,
    output: str,
    seconds: float,
) -> None:
    """Show what was filled in, how good that is, and where it is."""
    from grapefill.cli.summary import summarise_columns, summary_table

    to_error = output == "-"
    found = summarise_columns(imputer, table, filled)
    cells = sum(column.filled for column in found)
    if found:
        terminal.show(*summary_table(found), "", to_error=to_error)
        words = f"{cells:,} cells were filled in {seconds:.1f} seconds."
    else:
        words = "No cell was missing; the table is unchanged."
    place = "standard output" if to_error else output
    terminal.show(words, f"The filled table: {place}", to_error=to_error)
