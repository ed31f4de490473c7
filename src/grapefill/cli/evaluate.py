"""``describe``, ``compare`` and ``ampute``: know the holes of a table before they are filled."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from grapefill.cli.arguments import Answering, File, Kinds, Output, Reading, Running, Seed, Whole
from grapefill.cli.columns import Plan, text_columns
from grapefill.cli.names import find_columns
from grapefill.cli.notes import note_sentinels, note_unseen, without_told
from grapefill.cli.row_notes import note_rows
from grapefill.cli.terminal import Terminal
from grapefill.cli.work import default_output, open_table

if TYPE_CHECKING:
    from grapefill.evaluate import Comparison, Description, Step

__all__ = ["ampute", "compare", "describe"]

DESCRIBE_EXAMPLES = """\
Examples:

  grapefill describe data.csv

  grapefill describe data.csv --na -999"""

COMPARE_EXAMPLES = """\
Examples:

  grapefill compare data.csv

  grapefill compare data.csv --methods mean,KNN,"grapefill fast" --repeats 5"""

AMPUTE_EXAMPLES = """\
Examples:

  grapefill ampute data.csv -o holes.csv --rate 0.3 --seed 0

  grapefill ampute data.csv -o holes.csv --mechanism mar --columns age,income"""

Mechanism = Literal["mcar", "mar", "mnar"]
_FLAG = Parameter(negative="", show_default=False)
_REPEAT = Parameter(negative="", show_default=False)


def describe(
    data: File,
    /,
    *,
    as_json: Annotated[bool, _FLAG, Parameter(name="--json")] = False,
    columns: Kinds = Kinds(),
    reading: Reading = Reading(),
    running: Answering = Answering(),
) -> None:
    """Tell what the columns of a table are, what is missing, and whether that looks like chance.

    Parameters
    ----------
    data
        The table; - for standard input.
    as_json
        Write JSON, for other programs.
    """
    from grapefill.evaluate import describe as describe_table

    terminal = Terminal.current(quiet=running.quiet)
    file = open_table(data, reading, text_columns(columns), terminal)
    note_unseen(reading.na, [file], terminal)
    note_rows(file, terminal)
    plan = Plan.make(columns, file)
    found = describe_table(plan.prepare(file), kinds=plan.kinds)
    _answer(terminal, found if as_json else without_told(found, terminal), as_json=as_json)


def compare(
    data: File,
    /,
    *,
    methods: Annotated[tuple[str, ...], _REPEAT] = (),
    rate: float = 0.2,
    repeats: Whole = 3,
    mechanism: Mechanism = "mcar",
    max_rows: Whole = 5000,
    seed: Seed = 0,
    as_json: Annotated[bool, _FLAG, Parameter(name="--json")] = False,
    columns: Kinds = Kinds(),
    reading: Reading = Reading(),
    running: Answering = Answering(),
) -> None:
    """Find out which method fills the holes of a table best.

    Some of the observed cells are hidden, and every method has to find them.

    Parameters
    ----------
    data
        The table; - for standard input.
    methods
        The methods, if not all: mean, KNN, MICE, chained trees, grapefill fast, grapefill default.
        Can be repeated, or list several with commas.
    rate
        The share of the observed cells of each column that are hidden.
    repeats
        How often. More repeats tell smaller differences from chance.
    mechanism
        How the hidden cells are chosen: completely at random, by other columns, or by their own
        values.
    max_rows
        Of a longer table, so many rows are drawn at random; 0 for all.
    seed
        Where randomness starts.
    as_json
        Write JSON, for other programs.
    """
    from grapefill.comparing import compare as compare_methods

    terminal = Terminal.current(quiet=running.quiet)
    file = open_table(data, reading, text_columns(columns), terminal)
    plan = Plan.make(columns, file).without_empty(file)
    table = plan.prepare(file)
    note_unseen(reading.na, [file], terminal)
    note_sentinels(table, plan, terminal)
    named = [name.strip() for given in methods for name in given.split(",")] or None
    with terminal.progress("Comparing") as bar:

        def show(step: Step) -> None:
            left = None if math.isnan(step.seconds_left) else step.seconds_left
            bar.move(step.done, step.steps, left, facts=step.method)

        found = compare_methods(
            table,
            named,
            rate=rate,
            repeats=repeats,
            mechanism=mechanism,
            max_rows=max_rows or None,
            kinds=plan.kinds,
            callbacks=[show],
            random_state=seed,
        )
    _answer(terminal, found, as_json=as_json)


def _answer(terminal: Terminal, found: Description | Comparison, *, as_json: bool) -> None:
    if as_json:
        terminal.answer(json.dumps(found.to_dict(), default=str), as_is=True)
    else:
        terminal.answer(str(found))


def ampute(
    data: File,
    /,
    *,
    output: Output = None,
    rate: float = 0.3,
    mechanism: Mechanism = "mcar",
    holes_in: Annotated[tuple[str, ...], _REPEAT, Parameter(name="--columns")] = (),
    seed: Seed = 0,
    reading: Reading = Reading(),
    running: Running = Running(),
) -> None:
    """Make holes in a table, to see how well they can be filled.

    Parameters
    ----------
    data
        The table; - for standard input.
    output
        Where the table with holes goes, - for standard output. Without it, -holes is added to the
        name.
    rate
        The share of the observed cells that go missing in each column.
    mechanism
        Why cells go missing: completely at random, by other columns, or by their own values.
    holes_in
        The columns that may have holes, if not all. Can be repeated, or list several with commas.
    seed
        Where randomness starts; the same seed makes the same holes.
    """
    from grapefill.evaluate import ampute as make_holes
    from grapefill.files.changes import find_missing
    from grapefill.files.places import check_output

    terminal = Terminal.current(quiet=running.quiet)
    output = default_output(data, "holes") if output is None else output
    check_output(output, inputs=[data], overwrite=running.overwrite)
    file = open_table(data, reading, {}, terminal)
    file.check_target(output)
    chosen = find_columns(holes_in, file.frame.column_names, "--columns") or None
    table = make_holes(file.frame, rate, mechanism, columns=chosen, random_state=seed)
    before, after = (
        sum(int(find_missing(column).sum()) for column in each.columns)
        for each in (file.frame, table)
    )
    file.write(output, table, overwrite=running.overwrite, erase=True)
    place = "standard output" if output == "-" else output
    terminal.show(
        "1 cell was emptied." if after - before == 1 else f"{after - before:,} cells were emptied.",
        f"The table with holes: {place}",
        to_error=output == "-",
    )
