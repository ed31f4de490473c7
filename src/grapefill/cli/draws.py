"""Draws and intervals as files beside the filled table."""

from __future__ import annotations

import os
import re
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapefill.cli.rule_notes import telling_of_rules
from grapefill.cli.values import read_settings
from grapefill.cli.work import default_output
from grapefill.errors import ConfigError, OutputError
from grapefill.files.places import Place, are_same, open_output

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grapefill.cli.arguments import Training
    from grapefill.cli.columns import Plan
    from grapefill.cli.terminal import Terminal
    from grapefill.files import TableFile
    from grapefill.imputer import GrapeImputer
    from grapefill.uncertainty.tables import Interval

__all__ = [
    "draw_paths",
    "draws_in",
    "earlier_draws",
    "interval_paths",
    "require_held_out",
    "write_draws",
    "write_interval",
]

# What draws are called. Other files may be in their folder, and are left alone.
DRAW = re.compile(r"imputation-\d+(\..*)?")


def draw_paths(data: str, draws: int | None, folder: str | None) -> list[str]:
    """Return where the draws of a table go, in order, in a folder that may not be there yet."""
    if draws is None and folder is None:
        return []
    if folder is None:
        raise ConfigError("--draws writes a file for each draw: add --out-dir FOLDER for them.")
    if draws is None:
        raise ConfigError("--out-dir is the folder for draws: add --draws 20 for so many of them.")
    if draws < 1:
        raise ConfigError(f"--draws must be at least 1, got {draws}.")
    _check_folder(Path(folder))
    suffix = "".join(Path(data).suffixes) if data != "-" else ".csv"
    digits = len(str(draws))
    return [str(Path(folder) / f"imputation-{at:0{digits}d}{suffix}") for at in range(1, draws + 1)]


def _check_folder(folder: Path) -> None:
    """Refuse a folder that could not be made, without making it."""
    there = next(place for place in (folder, *folder.parents) if os.access(place, os.F_OK))
    if not there.is_dir():
        raise OutputError(
            f"--out-dir cannot be {str(folder)!r}: {str(there)!r} is a file. Choose another folder."
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise OutputError(
            f"--out-dir cannot be {str(folder)!r}: you may not write to {str(there)!r}. Choose "
            "another folder."
        )


def earlier_draws(
    paths: Sequence[str], others: Sequence[str | None], *, overwrite: bool
) -> list[Path]:
    """Return draws of an earlier run, which would be pooled with those that are to be written.

    Parameters
    ----------
    paths : sequence of str
        Where draws are to be written.
    others : sequence of str or None
        The input, and where other results go; they must not look like draws.
    overwrite : bool
        Whether there may be earlier draws; they are removed when the new ones are written.

    Raises
    ------
    OutputError
        If `others` are among them, or there are some and must not be.
    """
    if not paths:
        return []
    folder = Path(paths[0]).parent
    for other in others:
        if other is not None and _is_draw(Path(other)) and are_same(Path(other).parent, folder):
            raise OutputError(
                f"{other!r} would be taken for a draw in the folder {str(folder)!r}. Choose "
                "another --out-dir."
            )
    earlier = [path for path in draws_in(folder) if path.name not in {Path(p).name for p in paths}]
    for path, other in product(earlier, others):
        if other is not None and are_same(path, Path(other)):
            raise OutputError(
                f"{other!r} is {str(path)!r}, which would be taken for a draw. Choose another "
                "--out-dir."
            )
    if earlier and not overwrite:
        raise OutputError(
            f"The folder {str(folder)!r} has draws of an earlier run, such as "
            f"{earlier[0].name!r}, which 'grapefill pool' would take for draws of this one. Choose "
            "another --out-dir, or add --overwrite to remove them."
        )
    return earlier


def _is_draw(path: Path) -> bool:
    # A table without a suffix has draws without one; notes and pages are none.
    known = not path.suffix or Place.at(str(path)).format is not None
    return known and DRAW.fullmatch(path.name) is not None


def draws_in(folder: Path) -> list[Path]:
    """Return the draws in a folder, in order; none if it is not there."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _is_draw(path) and path.is_file())


def interval_paths(output: str, interval: float | None) -> list[str]:
    """Return where the lower and upper ends of intervals go, and the sets of categories."""
    if interval is None:
        return []
    if not 0 < interval < 1:
        raise ConfigError(f"--interval must be between 0 and 1, such as 0.9, got {interval!r}.")
    if output == "-":
        raise ConfigError("--interval writes files beside the filled table: name it with --output.")
    ends = [default_output(output, word) for word in ("lower", "upper")]
    sets = Path(default_output(output, "sets"))
    if Place.at(output).format != "delimited":
        sets = sets.with_name(sets.name.partition(".")[0] + ".csv")
    return [*ends, str(sets)]


def require_held_out(training: Training) -> None:
    """Refuse intervals after a training that holds out no cells, from which they are learned."""
    from grapefill.training.config import get_preset

    preset = get_preset(training.preset).change(**read_settings(training.change))
    if preset.training.validation == 0:
        raise ConfigError(
            "--interval is learned from cells that are held out of training, and there would be "
            "none. Add --set validation=0.1 --set rejoin=0.8, or choose another --preset."
        )


def write_draws(
    imputer: GrapeImputer,
    file: TableFile,
    plan: Plan,
    table: Any,
    paths: list[str],
    *,
    earlier: list[Path],
    seed: int,
    terminal: Terminal,
) -> None:
    """Write draws of a table, one after the other, and remove those of an earlier run."""
    if not paths:
        return
    folder = Path(paths[0]).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"Cannot make the folder {str(folder)!r}: {error.strerror or error}. Choose another "
            "--out-dir."
        ) from error
    with telling_of_rules(terminal, file), terminal.progress("Drawing") as bar:
        tables = imputer.sample_each(table, len(paths), random_state=seed)
        for at, (path, drawn) in enumerate(zip(paths, tables, strict=True)):
            bar.move(at, len(paths), None)
            file.write(path, plan.hold(table, drawn), overwrite=True)
    for old in earlier:
        old.unlink(missing_ok=True)
    if earlier:
        were = "1 draw" if len(earlier) == 1 else f"{len(earlier):,} draws"
        terminal.note(f"Removed {were} of an earlier run from {str(folder)!r}.")


def write_interval(
    intervals: Interval | None, file: TableFile, plan: Plan, table: Any, paths: list[str]
) -> list[str]:
    """Write the ends of intervals, and sets of categories if any is missing; return the files."""
    from grapefill.files.convert import table_pieces
    from grapefill.files.text.delimited import DelimitedFile

    if intervals is None:
        return []
    *bounds, sets = paths
    for path, end in zip(bounds, intervals, strict=True):
        file.write(path, plan.hold(table, end), overwrite=True)
    if not intervals.sets:
        # One of an earlier run would be taken for this one's.
        Path(sets).unlink(missing_ok=True)
        return bounds
    table = _sets_as_table(intervals.sets, file)
    pieces = table_pieces(table, Place.at(sets))
    if isinstance(file, DelimitedFile) and file.check_target(bounds[0]).format == "delimited":
        pieces = [file.as_text(table)]
    with open_output(sets) as place:
        for piece in pieces:
            place.write(piece)
    return paths


def _sets_as_table(sets: Mapping[Any, Mapping[int, tuple[Any, ...]]], file: TableFile) -> Any:
    """Return a row for every category that a cell may be, in the words of the file."""
    pa: Any = import_module("pyarrow")
    from grapefill.files.cells.write import write_values

    found: dict[str, list[str]] = {"row": [], "column": [], "category": []}
    for column, cells in sets.items():
        shape = file.formats.get(column)
        for row, categories in cells.items():
            words = [str(category) for category in categories]
            if shape is not None:
                words = write_values(pa.array(categories), shape)
            found["row"] += [str(row + 1)] * len(words)
            found["column"] += [str(column)] * len(words)
            found["category"] += words
    return pa.table(found)
