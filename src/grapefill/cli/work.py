"""Reading, training and filling, with a bar for each and an answer to Ctrl-C."""

from __future__ import annotations

import re
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from grapefill.errors import ConfigError, InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grapefill.cli.arguments import Reading
    from grapefill.cli.terminal import Terminal
    from grapefill.estimator import GrapeEstimator
    from grapefill.files import TableFile
    from grapefill.training import CheckpointFile, Progress

__all__ = [
    "check_outputs",
    "check_reading",
    "default_output",
    "in_slices",
    "open_table",
    "remove_checkpoint",
    "train",
]

Estimator = TypeVar("Estimator", bound="GrapeEstimator")

# What may separate cells and does not belong to a number or a word.
SEPARATORS = re.compile(r"[^\w.,+\-%'\"()/]")
# Rows that are filled between two movements of the bar.
SLICE = 20_000


# The formats that an option of reading is for; others take no notice of it.
_FORMATS = {
    "delimiter": ("delimited",),
    "no_quotes": ("delimited",),
    "encoding": ("delimited", "json"),
    "no_header": ("delimited", "excel"),
    "decimal": ("delimited", "excel", "json"),
    "day_first": ("delimited", "excel", "json"),
    "month_first": ("delimited", "excel", "json"),
    "sheet": ("excel",),
}
_WORDS = {"delimited": "delimited text", "excel": "Excel workbooks", "json": "JSON lines"}


def open_table(
    path: str,
    reading: Reading,
    types: Mapping[str, Any],
    terminal: Terminal,
    *,
    beside: str | None = None,
) -> TableFile:
    """Read a file as the options say, and tell where it was perhaps not read as it was meant.

    Parameters
    ----------
    path : str
        The file.
    reading : Reading
        The options.
    types : mapping
        What columns hold, as far as that is known.
    terminal : Terminal
        Where to show progress and notes.
    beside : str or None
        Another file that the options may be for.
    """
    from grapefill.files import read_table
    from grapefill.files.places import STANDARD, Place

    places = [Place.at(each) for each in (path, beside) if each is not None]
    check_reading(reading, *(reading.format or place.format for place in places))
    if path == STANDARD and sys.stdin is None:
        raise InputError("There is no standard input to read. Name a file, or send a table to it.")
    with terminal.progress(f"Reading {Path(path).name}"):
        file = read_table(path, types=types, **reading.options())
    _note_sheet(file, reading, terminal)
    _note_delimiter(file, reading, terminal)
    return file


def check_reading(reading: Reading, *formats: str | None) -> None:
    """Refuse options that files of some formats, None if it is unknown, take no notice of."""
    for name, known in _FORMATS.items():
        if getattr(reading, name) and not {None, *known} & set(formats):
            words = " and ".join(_WORDS[each] for each in known)
            raise ConfigError(f"--{name.replace('_', '-')} is for {words} only. Leave it out.")


def _note_sheet(file: TableFile, reading: Reading, terminal: Terminal) -> None:
    sheet = getattr(file, "sheet", None)
    if sheet is None or reading.sheet is not None:
        return
    number = len(sheet.parent.worksheets)
    if number > 1:
        terminal.note(
            f"The workbook has {number} sheets, of which the first, {sheet.title!r}, was read. Add "
            "--sheet to read another."
        )


def _note_delimiter(file: TableFile, reading: Reading, terminal: Terminal) -> None:
    """Tell of text in one column that looks as if it were several."""
    if file.place.format != "delimited" or reading.delimiter or file.frame.num_columns != 1:
        return
    pa: Any = import_module("pyarrow")
    (name,) = file.frame.column_names
    column = file.frame[name]
    # Cells that are numbers or dates are not several cells.
    if not pa.types.is_string(column.type):
        return
    if any(SEPARATORS.search(text.strip()) for text in (name, *column[:1].to_pylist()) if text):
        terminal.note(
            f"{file.name} was read as one column, {name!r}. If it has several, add --delimiter and "
            "what separates them; columns of a fixed width have to be separated first."
        )


def check_outputs(*paths: str | None, inputs: Sequence[str], overwrite: bool) -> None:
    """Refuse places that must not be written, before any work is done; None is no place."""
    from grapefill.files.places import STANDARD, are_same, check_output

    given = [path for path in paths if path is not None]
    if STANDARD in given and sys.stdout is None:
        raise OutputError("There is no standard output to write to. Name a file with --output.")
    for k, path in enumerate(given):
        check_output(path, inputs=inputs, overwrite=overwrite)
        for other in given[:k]:
            if path != STANDARD and are_same(Path(path), Path(other)):
                raise OutputError(
                    f"{other!r} and {path!r} are one file, for two results. Choose another name "
                    "for one of them."
                )


def default_output(path: str, word: str) -> str:
    """Return where a result goes when nobody says.

    Examples
    --------
    >>> default_output("data/prices.csv.gz", "filled"), default_output("-", "filled")
    ('data/prices-filled.csv.gz', '-')
    """
    if path == "-":
        return path
    source = Path(path)
    if source.name in ("", ".."):
        raise InputError(f"{path!r} is a folder. Give the path of a file.")
    stem = source.name.partition(".")[0] or source.name
    return str(source.with_name(f"{stem}-{word}{source.name[len(stem) :]}"))


def train(
    terminal: Terminal,
    fit: Callable[[list[Any]], Estimator],
    checkpoint: CheckpointFile | None = None,
    *,
    result: str = "what is filled in",
) -> Estimator:
    """Fit an estimator; after Ctrl-C, ask whether what was learned so far is to be used.

    Parameters
    ----------
    terminal : Terminal
        Where to show progress and ask.
    fit : callable
        Takes the callbacks of an estimator and returns it fitted.
    checkpoint : CheckpointFile or None
        Where the state of training is kept.
    result : str
        What the training is for, as notes call it.

    Raises
    ------
    KeyboardInterrupt
        If nothing was learned yet, or is not to be used.
    """
    from grapefill.evaluate.text import counted

    with terminal.progress("Training") as bar:
        estimator = fit([_say_where_it_goes_on(terminal), *bar.callbacks])
    # These belong to this run, not to the model.
    estimator.callbacks = estimator.checkpoint = None
    history = estimator.history_
    if history.stopped == "time limit":
        terminal.note(
            f"--time-limit ended the training after {counted(len(history.step), 'step')}. With "
            f"more time, {result} would be closer."
        )
    if history.stopped != "interrupted":
        return estimator
    steps = history.best_step
    if not terminal.ask(f"Training was interrupted after {steps:,} steps. Use the best so far?"):
        if checkpoint is not None and Path(checkpoint.path).exists():
            terminal.note(f"The same command goes on from the last checkpoint, {checkpoint.path}.")
        raise KeyboardInterrupt
    return estimator


def remove_checkpoint(checkpoint: CheckpointFile | None) -> None:
    """Remove the state of a training, once its results are written."""
    if checkpoint is not None:
        Path(checkpoint.path).unlink(missing_ok=True)


def _say_where_it_goes_on(terminal: Terminal) -> Callable[[Progress], None]:
    """Return a callback that tells of a training that was cut off before."""
    started = False

    def callback(progress: Progress) -> None:
        nonlocal started
        if not started and progress.step > 1:
            terminal.note(f"Training was cut off before and goes on from step {progress.step:,}.")
        started = True

    return callback


def in_slices(
    terminal: Terminal, title: str, table: Any, work: Callable[[Any], Any], join: Callable[..., Any]
) -> Any:
    """Do work on some rows of a table after the other, with a bar, and join the results."""
    started = time.perf_counter()
    results = []
    with terminal.progress(title) as bar:
        for start in range(0, max(1, table.num_rows), SLICE):
            rest = (table.num_rows - start) / start if start else None
            left = None if rest is None else (time.perf_counter() - started) * rest
            bar.move(start, table.num_rows, left)
            results.append(work(table.slice(start, SLICE)))
    return results[0] if len(results) == 1 else join(results)


def join_tables(tables: list[Any]) -> Any:
    """Return tables one below the other."""
    pa: Any = import_module("pyarrow")
    return pa.concat_tables(tables, promote_options="default")
