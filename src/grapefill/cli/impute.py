"""``impute`` and ``fit``: learn from a table, fill it, keep what was learned."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from grapefill.cli.arguments import File, Filling, Output, Ray, Reading, Running, Training, Whole
from grapefill.cli.checks import check_constraints, check_settings, warn_of_broken_rules
from grapefill.cli.columns import Plan, fill_rows, text_columns
from grapefill.cli.draws import (
    draw_paths,
    earlier_draws,
    interval_paths,
    require_held_out,
    write_draws,
    write_interval,
)
from grapefill.cli.notes import note_unseen, note_values
from grapefill.cli.row_notes import note_rows
from grapefill.cli.rule_notes import RuleNotes, telling_of_rules
from grapefill.cli.stream import apply_to_folder, open_source, plan_run, streams
from grapefill.cli.terminal import Terminal
from grapefill.cli.work import (
    check_outputs,
    default_output,
    in_slices,
    join_tables,
    open_table,
    remove_checkpoint,
    train,
)
from grapefill.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from grapefill.files import TableFile
    from grapefill.imputer import GrapeImputer
    from grapefill.training import CheckpointFile

__all__ = ["fit", "impute"]

# Draws that the report shows.
MOST_IN_REPORT = 20
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
    draws: Whole | None = None,
    out_dir: Annotated[str | None, Parameter(metavar="FOLDER")] = None,
    interval: float | None = None,
    training: Training = Training(),
    columns: Filling = Filling(),
    reading: Reading = Reading(),
    running: Running = Running(),
) -> None:
    """Fill the holes of a table, and leave every other cell exactly as it was.

    Parameters
    ----------
    data
        The table: CSV, TSV, Parquet, Feather, Arrow, Excel or JSON lines, perhaps with .gz or .zst
        behind it; - for standard input; or a folder of Parquet files.
    output
        Where the filled table goes, - for standard output; for a folder, another folder. Without
        it, -filled is added to the name.
    model
        Keep the model in this file, for 'grapefill apply'. If training is cut off, the same
        command goes on with it.
    report
        Write a page that shows what was filled in and how far to trust it, as HTML.
    indicator
        Add columns that tell which cells were missing.
    draws
        Draw that many tables besides, for multiple imputation with 'grapefill pool'.
    out_dir
        The folder for the draws.
    interval
        Write the ends of intervals that hold so large a share of the true values, such as 0.9,
        to files beside the filled table, with -lower and -upper added to its name. For missing
        categories, the sets of those that it may be go to a third one, with -sets, in which 'row'
        counts the rows of the table from 1, without the line of names.
    """
    from grapefill.files.places import open_output

    terminal = Terminal.current(quiet=running.quiet)
    if streams(data):
        tables = {
            "--report": report,
            "--draws": draws,
            "--out-dir": out_dir,
            "--interval": interval,
        }
        for option, value in tables.items():
            if value is not None:
                raise ConfigError(
                    f"{option} needs the whole table in memory, and {data!r} is filled some rows "
                    "at a time. Leave it out."
                )
        _impute_folder(data, output, model, indicator, training, columns, reading, running)
        return
    output = default_output(data, "filled") if output is None else output
    drawn, ends = draw_paths(data, draws, out_dir), interval_paths(output, interval)
    if interval is not None:
        require_held_out(training)
    if report is not None and Path(report).suffix.lower() not in ("", ".html", ".htm"):
        raise OutputError(
            f"The report is a page of HTML, which {report!r} would not be opened as. Name it with "
            "'.html' at the end."
        )
    others = (output, model, report, *ends)
    # A folder that is not there yet has no files that could be in the way.
    outputs = (*others, *drawn) if out_dir is not None and Path(out_dir).is_dir() else others
    check_outputs(*outputs, inputs=[data], overwrite=running.overwrite)
    earlier = earlier_draws(drawn, (data, *others), overwrite=running.overwrite)
    started = time.perf_counter()
    file, plan, table = _open(data, columns, reading, terminal)
    file.check_target(output)
    if model is None and report is None and not drawn and not ends and not has_holes(table):
        from grapefill.cli.summary import NOTHING_MISSING

        check_settings(training)
        with telling_of_rules(terminal, file):
            warn_of_broken_rules(plan, table)
        file.write(output, file.as_written(table), overwrite=running.overwrite)
        terminal.show(NOTHING_MISSING, written_to(output), to_error=output == "-")
        return
    checkpoint = training.checkpoint(model)
    imputer = _fit(table, plan, training, terminal, indicator=indicator, checkpoint=checkpoint)
    filled = file.as_written(fill(imputer, plan, table, file, terminal))
    with telling_of_rules(terminal, file):
        intervals = None if interval is None else imputer.interval(table, interval)
        page = None if report is None else _page(imputer, table, data, terminal, draws or 0)
    file.write(output, filled, overwrite=running.overwrite)
    ends = write_interval(intervals, file, plan, table, ends)
    write_draws(
        imputer, file, plan, table, drawn, earlier=earlier, seed=training.seed, terminal=terminal
    )
    if model is not None:
        imputer.save(model, notes=_notes(file.types, plan, reading))
    if report is not None and page is not None:
        with open_output(report) as place:
            place.write(page.encode())
    remove_checkpoint(checkpoint)
    seconds = time.perf_counter() - started
    show_result(terminal, imputer, table, filled, output=output, seconds=seconds)
    for what, path in (
        ("The model:       ", model),
        ("The report:      ", report),
        ("The draws:       ", out_dir),
        ("The intervals:   ", ", ".join(ends) or None),
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
    columns: Filling = Filling(),
    reading: Reading = Reading(),
    running: Running = Running(),
    ray: Ray = Ray(),
) -> None:
    """Learn from a table, to fill others like it with 'grapefill apply'.

    Parameters
    ----------
    data
        The table: CSV, TSV, Parquet, Feather, Arrow, Excel or JSON lines, perhaps with .gz or .zst
        behind it; - for standard input; or a folder of Parquet files.
    model
        The file for the model. If training is cut off, the same command goes on with it.
    indicator
        Let 'grapefill apply' add columns that tell which cells were filled.
    """
    terminal = Terminal.current(quiet=running.quiet)
    check_outputs(model, inputs=[data], overwrite=running.overwrite)
    table: Any
    if streams(data):
        table, plan = open_source(data, columns, reading)
        types: dict[str, Any] = {}
    elif ray.address is not None:
        raise ConfigError(f"--ray is for folders, and {data!r} is a file. Leave it out.")
    else:
        file, plan, table = _open(data, columns, reading, terminal)
        types = file.types
    checkpoint = training.checkpoint(model)
    imputer = _fit(
        table, plan, training, terminal, indicator=indicator, checkpoint=checkpoint, ray=ray
    )
    imputer.save(model, notes=_notes(types, plan, reading))
    remove_checkpoint(checkpoint)
    terminal.show(imputer.summary(), "", f"The model: {model}")


def _impute_folder(  # noqa: PLR0917 - the options of the command, in their order
    data: str,
    output: str | None,
    model: str | None,
    indicator: bool,
    training: Training,
    columns: Filling,
    reading: Reading,
    running: Running,
) -> None:
    """Learn from a folder of Parquet files and fill them."""
    terminal = Terminal.current(quiet=running.quiet)
    if not Path(data).is_dir():
        raise ConfigError(
            f"{data!r} is too large for memory. Use 'grapefill fit' and 'grapefill apply', which "
            "read it some rows at a time."
        )
    check_outputs(model, inputs=[data], overwrite=running.overwrite)
    source, plan = open_source(data, columns, reading)
    run = plan_run(
        data,
        output,
        plan,
        # The same options and seed give the same files.
        fingerprint=repr((training.parameters(), plan.parameters(), indicator)),
        na=reading.na,
        overwrite=running.overwrite,
    )
    checkpoint = training.checkpoint(model)
    imputer = _fit(source, plan, training, terminal, indicator=indicator, checkpoint=checkpoint)
    if model is not None:
        imputer.save(model, notes=_notes({}, plan, reading))
    apply_to_folder(imputer, plan, run, na=reading.na, terminal=terminal)
    remove_checkpoint(checkpoint)


def _open(
    data: str, columns: Filling, reading: Reading, terminal: Terminal
) -> tuple[TableFile, Plan, Any]:
    file = open_table(data, reading, text_columns(columns), terminal)
    plan = Plan.make(columns, file).without_empty(file)
    table = plan.prepare(file)
    check_constraints(plan, table)
    note_unseen(reading.na, [file], terminal)
    note_rows(file, terminal)
    note_values(file, table, plan, terminal, words=not reading.only_na)
    return file, plan, table


def _fit(
    table: Any,
    plan: Plan,
    training: Training,
    terminal: Terminal,
    *,
    indicator: bool,
    checkpoint: CheckpointFile | None,
    ray: Ray = Ray(),
) -> GrapeImputer:
    from grapefill.imputer import GrapeImputer

    def start(callbacks: list[Any]) -> GrapeImputer:
        imputer = GrapeImputer(
            **training.parameters(),
            **plan.parameters(),
            add_indicator=indicator,
            checkpoint=checkpoint,
            callbacks=callbacks,
        )
        if ray.address is None:
            return imputer.fit(table)
        from grapefill.distributed import fit as fit_on_cluster

        assert checkpoint is not None
        storage = f"{checkpoint.path}.training"
        fitted = fit_on_cluster(
            table, imputer, workers=ray.workers, address=ray.address, storage=storage
        )
        shutil.rmtree(storage)
        return fitted

    imputer = train(terminal, start, checkpoint)
    # What the columns of a folder are is known only now.
    imputer.constraints = plan.constraints(imputer.schema_)
    return imputer


def fill(imputer: GrapeImputer, plan: Plan, table: Any, file: TableFile, terminal: Terminal) -> Any:
    """Return the table of a file filled, some rows after the other."""
    notes, done = RuleNotes(terminal, file.name), 0

    def work(rows: Any) -> Any:
        nonlocal done
        start, done = done, done + rows.num_rows
        with notes.part(lambda row: file.where(start + row)):
            return fill_rows(imputer, plan, rows)

    filled = in_slices(terminal, "Filling", table, work, join_tables)
    notes.tell()
    return filled


def _notes(types: dict[str, Any], plan: Plan, reading: Reading) -> dict[str, Any]:
    """Return what 'apply' has to know besides the model."""
    kept = {"na": list(reading.na), "only_na": reading.only_na}
    return {"types": types, "plan": plan.to_dict(), "reading": kept}


def _page(imputer: GrapeImputer, table: Any, data: str, terminal: Terminal, draws: int) -> str:
    from grapefill.report import make_report

    with terminal.progress("Writing the report"):
        title = "Table" if data == "-" else Path(data).name
        return make_report(imputer, table, title=title, draws=min(draws, MOST_IN_REPORT))


def has_holes(table: Any) -> bool:
    """Whether any cell of a table is missing."""
    from grapefill.files.changes import find_missing

    return any(find_missing(column).any() for column in table.columns)


def written_to(output: str) -> str:
    """Return where a filled table is, in words."""
    return f"The filled table: {'standard output' if output == '-' else output}"


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
    from grapefill.cli.summary import Tally, result_lines

    tally = Tally()
    tally.add(table, filled)
    lines = result_lines(imputer, tally, seconds)
    terminal.show(*lines, written_to(output), to_error=output == "-")
