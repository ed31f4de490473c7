"""Parquet files filled some rows at a time, one by one or a folder of them, to be resumed."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapefill.errors import InputError, OutputError
from grapefill.files.arrow_files import parquet_options
from grapefill.files.atomic import write_whole
from grapefill.files.batches import BATCH_ROWS, parquet_files
from grapefill.files.orders import orders_in_parquet, unknown_orders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["FolderRun", "Job", "fill_parquet"]

JOURNAL = ".grapefill-run.json"
# A row group of the output has the rows of one of the input, but no more than that.
MOST_GROUP_ROWS = 1_048_576
_PART = re.compile(r"\.[0-9a-f]{16}\.part")


@dataclass(frozen=True)
class Job:
    """One file to fill, and where the filled one goes."""

    source: Path
    target: Path


class FolderRun:
    """A folder that is filled file by file; a run that was cut off goes on where it was.

    While it lasts, a hidden file in the folder of the results tells which model and which input
    they belong to. A result appears whole or not at all, so those that are there are done.
    Nothing is written before `start`.

    Parameters
    ----------
    source : str or Path
        The folder with the files.
    target : str or Path
        The folder for the results; made if it does not exist.
    fingerprint : str
        What tells this work from other: the model, and how files are read.
    overwrite : bool
        Whether results of other work may be replaced.

    Raises
    ------
    OutputError
        If the folders are one inside the other, or the second cannot be written to or has files of
        other work.
    """

    def __init__(
        self,
        source: str | Path,
        target: str | Path,
        fingerprint: str,
        *,
        overwrite: bool = False,
    ) -> None:
        self.source, self.target = Path(source), Path(target)
        self._check_places()
        files = parquet_files(self.source)
        self.jobs = [Job(file, self.target / file.relative_to(self.source)) for file in files]
        self._journal = self.target / JOURNAL
        facts = {str(job.source.relative_to(self.source)): _facts(job.source) for job in self.jobs}
        self._content = json.dumps({"fingerprint": fingerprint, "files": facts}, indent=1)
        self.resumed = self._is_same()
        self._in_the_way = [job.target for job in self.jobs if job.target.exists()]
        if not self.resumed and self._in_the_way and not overwrite:
            raise OutputError(
                f"Cannot write {str(self._in_the_way[0])!r}: the file exists already, and is not "
                "of a run of this command with the same model and files. Choose another folder, or "
                "allow overwriting."
            )

    def start(self) -> None:
        """Begin the run, or go on with it."""
        if self.resumed:
            self._sweep()
            return
        try:
            self.target.mkdir(parents=True, exist_ok=True)
            for path in self._in_the_way:
                path.unlink()
            with write_whole(self._journal, text=True) as file:
                file.write(self._content)
        except OSError as error:
            raise OutputError(f"Cannot write to {str(self.target)!r}: {error}.") from error

    def todo(self) -> list[Job]:
        """Return the files that are not done yet, in order."""
        return [job for job in self.jobs if not self._is_done(job)]

    def finish(self) -> None:
        """End the run, once all is done; its journal goes."""
        self._journal.unlink(missing_ok=True)

    def _check_places(self) -> None:
        if self.target.exists() and not self.target.is_dir():
            raise OutputError(
                f"Cannot write to {str(self.target)!r}: it is a file, and the results of a folder "
                "need a folder. Choose another name."
            )
        source, target = self.source.resolve(), self.target.resolve()
        if source == target or source in target.parents or target in source.parents:
            raise OutputError(
                f"Cannot write to {str(self.target)!r}: one of the folders is inside the other, "
                "and the input is never overwritten. Choose a folder beside it."
            )
        there = next(place for place in (target, *target.parents) if place.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            why = "you may not write to" if there.is_dir() else "there is a file at"
            raise OutputError(
                f"Cannot write to {str(self.target)!r}: {why} {str(there)!r}. Choose another "
                "folder."
            )

    def _is_same(self) -> bool:
        """Whether the folder holds the beginning of this very work."""
        try:
            return self._journal.read_text(encoding="utf-8") == self._content
        except (OSError, UnicodeDecodeError):
            return False

    def _sweep(self) -> None:
        """Remove what a killed run left half-written."""
        for folder in {job.target.parent for job in self.jobs}:
            for path in folder.glob(".*.part"):
                if _PART.fullmatch(path.name):
                    path.unlink(missing_ok=True)

    def _is_done(self, job: Job) -> bool:
        if not job.target.exists():
            return False
        # The name alone says so; a look at the footer tells if somebody has changed the file.
        with suppress(InputError, OSError, ValueError):
            return _rows(job.target) == _rows(job.source)
        return False


def fill_parquet(
    job: Job, fill: Callable[[Any], Any], *, on_rows: Callable[[int], None] | None = None
) -> int:
    """Fill a Parquet file some rows at a time; the result appears whole or not at all.

    Parameters
    ----------
    job : Job
        The file and its target, whose folder is made.
    fill : callable
        Takes some rows as a pyarrow table and returns them filled, with the same schema each time.
    on_rows : callable or None
        Called with the number of rows that were done, after every part.

    Returns
    -------
    int
        The number of rows.
    """
    pa: Any = import_module("pyarrow")
    pq: Any = import_module("pyarrow.parquet")
    rows = 0
    try:
        job.target.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetFile(job.source) as file, write_whole(job.target) as output:
            writer = None
            for group in _groups(file):
                parts = []
                for table in group:
                    filled = fill(table)
                    if filled.num_rows != table.num_rows:
                        raise AssertionError("a part came back with another number of rows")
                    parts.append(filled if writer is None else filled.cast(writer.schema))
                    rows += table.num_rows
                    if on_rows is not None:
                        on_rows(table.num_rows)
                    if writer is None:
                        options = parquet_options(
                            file.metadata,
                            filled.column_names,
                            plain=unknown_orders([orders_in_parquet(file)]),
                        )
                        writer = pq.ParquetWriter(output, filled.schema, **options)
                whole = pa.concat_tables(parts)
                assert writer is not None
                writer.write_table(whole, row_group_size=max(1, whole.num_rows))
            assert writer is not None
            writer.close()
    except pa.ArrowException as error:
        raise InputError(
            f"Cannot fill {str(job.source)!r}: {str(error).splitlines()[0]}. Copy the file again, "
            "or fit on a table like it."
        ) from error
    except OSError as error:
        raise OutputError(f"Cannot write {str(job.target)!r}: {error}.") from error
    return rows


def _groups(file: Any) -> Iterator[Iterator[Any]]:
    """Yield the rows of every row group as small tables; at least one, which may be empty."""
    pa: Any = import_module("pyarrow")
    if not file.metadata.num_row_groups or not file.metadata.num_rows:
        yield iter([file.schema_arrow.empty_table()])
        return
    for number in range(file.metadata.num_row_groups):
        left = file.metadata.row_group(number).num_rows
        batches = file.iter_batches(BATCH_ROWS, row_groups=[number], use_threads=False)
        tables = (pa.Table.from_batches([batch]) for batch in batches)
        while left > 0:
            part = min(left, MOST_GROUP_ROWS)
            yield _rows_of(tables, part)
            left -= part


def _rows_of(tables: Iterator[Any], rows: int) -> Iterator[Any]:
    """Yield tables until they have so many rows; the size of a group is a multiple of theirs."""
    while rows > 0:
        table = next(tables)
        rows -= table.num_rows
        yield table


def _rows(path: Path) -> int:
    pq: Any = import_module("pyarrow.parquet")
    return int(pq.read_metadata(path).num_rows)


def _facts(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]
