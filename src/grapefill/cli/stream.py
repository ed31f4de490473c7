"""``apply`` for folders and large files: some rows at a time, in bounded memory, to be resumed."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapefill.cli.fillers import FillerMaker, Part, RowFiller, TextFiller
from grapefill.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grapefill.cli.arguments import Columns, Reading
    from grapefill.cli.columns import Plan
    from grapefill.cli.terminal import Terminal
    from grapefill.files.batches import BatchSource
    from grapefill.files.folder import FolderRun, Job
    from grapefill.files.options import ReadOptions
    from grapefill.imputer import GrapeImputer

__all__ = [
    "Streamed",
    "apply_to_folder",
    "apply_to_large_file",
    "fingerprint_of_file",
    "is_large",
    "open_source",
    "plan_run",
    "streams",
]

# Above that, a file is not read into memory as a whole.
LARGE_BYTES = 256 * 2**20


def streams(data: str) -> bool:
    """Whether what is to be learned from is a folder, or a Parquet file too large for memory."""
    return Path(data).is_dir() or (data.lower().endswith(".parquet") and is_large(data, data))


def is_large(data: str, output: str) -> bool:
    """Whether a file is to be filled some rows at a time: large, Parquet or text, not converted."""
    from grapefill.files.places import Place

    place, target = Place.at(data), Place.at(output)
    path = Path(data)
    if place.compression or target.format != place.format or not path.is_file():
        return False
    if place.format not in ("parquet", "delimited") or path.stat().st_size <= LARGE_BYTES:
        return False
    if place.format == "parquet":
        return not target.compression
    from grapefill.files.text.parts import can_be_cut

    return can_be_cut(path)


@dataclass
class Streamed:
    """What was done, and how fast."""

    rows: int = 0
    files: int = 0
    started: float = 0.0

    def __post_init__(self) -> None:
        self.started = time.perf_counter()

    def lines(self, output: str, *, done_before: int = 0) -> Iterator[str]:
        """Yield what to tell in the end."""
        from grapefill.evaluate.text import counted

        seconds = time.perf_counter() - self.started
        rate = self.rows / max(seconds, 1e-9)
        memory = peak_megabytes()
        files = f" in {self.files:,} files" if self.files > 1 else ""
        if done_before:
            were = "file was" if done_before == 1 else "files were"
            yield f"{done_before:,} {were} done before, and not counted here."
        yield (
            f"{counted(self.rows, 'row')}{files} in {seconds:.1f} seconds, "
            f"{rate:,.0f} rows per second"
            + (f", at most {memory:,} MB of memory." if memory else ".")
        )
        yield f"The filled table: {output}"


def plan_run(
    data: str,
    output: str | None,
    plan: Plan,
    *,
    fingerprint: str,
    na: tuple[str, ...],
    overwrite: bool,
) -> FolderRun:
    """Return a run that fills every Parquet file of a folder, if that can be; nothing is written.

    Parameters
    ----------
    data, output : str, str or None
        The folder, and the folder of the results.
    plan : Plan
        Levels and bounds of columns.
    fingerprint : str
        What tells one model from another.
    na : tuple of str
        Marks for missing cells.
    overwrite : bool
        Whether results of other work may be replaced.
    """
    from grapefill.files.folder import FolderRun

    if output == "-":
        raise ConfigError("A folder cannot go to standard output. Name a folder with -o.")
    output = _beside(data) if output is None else output
    marks = json.dumps([fingerprint, plan.to_dict(), na])
    digest = hashlib.sha256(marks.encode()).hexdigest()
    return FolderRun(data, output, digest, overwrite=overwrite)


def _beside(data: str) -> str:
    """Return where the files of a folder go when nobody says.

    Examples
    --------
    >>> _beside("parts/"), _beside("x/parts")
    ('parts-filled', 'x/parts-filled')
    """
    folder = Path(data)
    if folder.name in ("", ".."):
        # The name of '.' is known only from where it is.
        folder = folder.resolve()
    if not folder.name:
        raise ConfigError(f"There is no place beside {data!r}. Name a folder with -o.")
    return str(folder.with_name(f"{folder.name}-filled"))


def apply_to_folder(
    imputer: GrapeImputer,
    plan: Plan,
    run: FolderRun,
    *,
    na: tuple[str, ...],
    terminal: Terminal,
    work: Callable[[list[Job], FillerMaker, Callable[[int], None]], None] | None = None,
) -> None:
    """Fill every Parquet file of a folder; a run that was cut off goes on where it was.

    Parameters
    ----------
    imputer, plan : GrapeImputer, Plan
        What to fill with.
    run : FolderRun
        The files, from `plan_run`.
    na : tuple of str
        Marks for missing cells.
    terminal : Terminal
        Where to show progress.
    work : callable or None
        Does the files that are left, given a maker of fillers and a callback for rows; one after
        the other in this process when None.
    """
    from grapefill.cli.rule_notes import RuleNotes
    from grapefill.cli.summary import Tally, result_lines

    run.start()
    todo = run.todo()
    # What other processes fill is not counted.
    tally, notes = (Tally(), RuleNotes(terminal)) if work is None else (None, None)
    if run.resumed:
        are = "file is" if len(todo) == 1 else "files are"
        terminal.note(f"Going on with the run that was cut off; {len(todo):,} {are} left.")
    done = Streamed(files=len(todo))
    total = sum(map(_rows, todo))
    with terminal.progress(f"Filling {run.source.resolve().name}") as bar:

        def count(rows: int) -> None:
            done.rows += rows
            _move(bar, done, total)

        (work or _one_by_one)(todo, FillerMaker(imputer, plan, na, tally, notes), count)
    run.finish()
    if notes is not None:
        notes.tell()
    if tally is not None and todo:
        terminal.show(*result_lines(imputer, tally))
    terminal.show(*done.lines(str(run.target), done_before=len(run.jobs) - len(todo)))


def apply_to_large_file(
    imputer: GrapeImputer,
    plan: Plan,
    data: str,
    output: str,
    *,
    options: ReadOptions,
    terminal: Terminal,
) -> None:
    """Fill a Parquet file or a text some rows at a time.

    Parameters
    ----------
    imputer, plan : GrapeImputer, Plan
        What to fill with.
    data, output : str
        The file and its copy.
    options : ReadOptions
        How it is read; the types of its columns if it is text.
    terminal : Terminal
        Where to show progress.
    """
    from grapefill.cli.rule_notes import RuleNotes
    from grapefill.cli.summary import Tally, result_lines
    from grapefill.files.folder import Job, fill_parquet
    from grapefill.files.text.parts import fill_delimited

    done, tally, notes = Streamed(files=1), Tally(), RuleNotes(terminal, repr(data))
    job = Job(Path(data), Path(output))
    is_parquet = data.lower().endswith((".parquet", ".pq"))
    total = _rows(job) if is_parquet else 0
    with terminal.progress(f"Filling {job.source.name}") as bar:

        def count(rows: int) -> None:
            done.rows += rows
            _move(bar, done, total)

        if is_parquet:
            filler = RowFiller(imputer, plan, options.na, repr(data), tally, notes)
            fill_parquet(job, filler, on_rows=count)
        else:
            text_filler = TextFiller(imputer, plan, tally, notes)
            fill_delimited(data, output, text_filler, options, on_rows=count)
    notes.tell()
    terminal.show(*result_lines(imputer, tally), *done.lines(output))


def _one_by_one(jobs: list[Job], filler: FillerMaker, count: Callable[[int], None]) -> None:
    from grapefill.files.folder import fill_parquet

    for job in jobs:
        fill_parquet(job, filler(job.source), on_rows=count)


def _move(bar: Any, done: Streamed, total: int) -> None:
    seconds = time.perf_counter() - done.started
    left = seconds / max(done.rows, 1) * (total - done.rows) if total else None
    bar.move(done.rows, total, left, f"{done.rows / max(seconds, 1e-9):,.0f} rows/s")


def _rows(job: Job) -> int:
    from importlib import import_module

    pq: Any = import_module("pyarrow.parquet")
    pa: Any = import_module("pyarrow")
    try:
        return int(pq.read_metadata(job.source).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"Cannot read {str(job.source)!r}: it is damaged, or not a Parquet file "
            f"({str(error).splitlines()[0]}). Copy it again, or remove it from the folder."
        ) from error


def fingerprint_of_file(path: str) -> str:
    """Return a digest of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def open_source(data: str, columns: Columns, reading: Reading) -> tuple[BatchSource, Plan]:
    """Return the rows of a folder of Parquet files as the options say, and a plan for them."""
    from grapefill.cli.columns import Plan
    from grapefill.cli.work import check_reading
    from grapefill.files.batches import MappedSource, ParquetSource, parquet_files
    from grapefill.files.orders import warn_of_unknown_orders

    check_reading(reading, "parquet")
    source = ParquetSource(parquet_files(data), repr(data))
    assert source.schema is not None
    plan = Plan.make(columns, Part(source.schema.empty_table(), source.name))
    warn_of_unknown_orders(source.unordered - plan.levels.keys(), source.name)
    return MappedSource(source, _Preparer(plan, reading.na, source.name)), plan


@dataclass(frozen=True)
class _Preparer:
    """Reads rows of a file as the options say; can be sent to other processes."""

    plan: Plan
    na: tuple[str, ...]
    name: str

    def __call__(self, rows: Any) -> Any:
        from grapefill.files.arrow_files import without_marks

        return self.plan.prepare(Part(without_marks(rows, self.na), self.name))


def peak_megabytes() -> int | None:
    """Return the most memory that this process had, None where the system does not tell."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10))
