"""Draws and intervals as files beside the filled table, and ``pool``, which sums draws up."""

from __future__ import annotations

import os
import re
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from grapefill.cli.arguments import Answering, Reading, Training, read_settings
from grapefill.cli.formula import column_of, explain
from grapefill.cli.terminal import Terminal
from grapefill.cli.work import default_output, open_table
from grapefill.errors import ConfigError, InputError, OutputError
from grapefill.files.places import Place, are_same, open_output

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grapefill.cli.columns import Plan
    from grapefill.files import TableFile
    from grapefill.imputer import GrapeImputer
    from grapefill.uncertainty.pooling import Pooled
    from grapefill.uncertainty.tables import Interval

__all__ = [
    "POOL_EXAMPLES",
    "draw_paths",
    "earlier_draws",
    "interval_paths",
    "pool",
    "require_held_out",
    "write_draws",
    "write_interval",
]

POOL_EXAMPLES = """\
Examples:

  grapefill impute data.csv --draws 20 --out-dir imputations/

  grapefill pool imputations/ --formula "price ~ area + rooms"

  grapefill pool imputations/ --formula "sold ~ area" --family logistic"""

Family = Literal["linear", "logistic", "poisson"]


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
    earlier = [path for path in _draws_in(folder) if path.name not in {Path(p).name for p in paths}]
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


def _draws_in(folder: Path) -> list[Path]:
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
    with terminal.progress("Drawing") as bar:
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


def pool(
    folder: Annotated[str, Parameter(metavar="FOLDER")],
    /,
    *,
    formula: str,
    family: Family = "linear",
    reading: Reading = Reading(),
    running: Answering = Answering(),
) -> None:
    """Fit a model to every draw in a folder, and pool the coefficients (Rubin's rules).

    Needs the package statsmodels: pip install 'grapefill[pool]'.

    Parameters
    ----------
    folder
        The folder with the draws, imputation-1.csv and so on, from 'grapefill impute --draws'.
    formula
        The model, such as "price ~ area + C(heating)" or "np.log(price) ~ area". Names that are
        no single word are written like Q("living area").
    family
        Linear regression, logistic regression of a column with two values, or Poisson regression
        of counts.
    """
    terminal = Terminal.current(quiet=running.quiet)
    pooled = pool_folder(folder, formula, family, reading, terminal)
    terminal.answer(str(pooled), "", f"{pooled.n_imputations:,} tables were pooled.")


def pool_folder(
    folder: str, formula: str, family: Family, reading: Reading, terminal: Terminal
) -> Pooled:
    """Return the pooled coefficients of a model that is fitted to every draw in a folder."""
    from grapefill.uncertainty import pool as pool_estimates

    try:
        import statsmodels.formula.api as models
    except ImportError:
        raise ConfigError(
            "'grapefill pool' needs statsmodels. Install it with: pip install 'grapefill[pool]'."
        ) from None
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{folder} is not a folder. Give the one that --out-dir named.")
    if not all(side.strip() for side in formula.partition("~")):
        raise ConfigError(
            f'The formula {formula!r} has no two sides. Write it like "price ~ area + rooms".'
        )
    paths = _draws_in(place)
    if not paths:
        raise InputError(
            f"{folder} has no draws, which are called imputation-1.csv and so on. Make some with "
            "'grapefill impute --draws 20 --out-dir FOLDER'."
        )
    if len(paths) < 2:
        raise InputError(f"{folder} has 1 draw; pooling needs at least 2, better 20.")
    frames = [open_table(str(path), reading, {}, terminal).frame for path in paths]
    for path, frame in zip(paths, frames, strict=True):
        _check_terms(frame, formula, str(path))
    # Formulas know numpy's types, and not those that a Parquet file asks pandas for.
    tables = [frame.to_pandas(ignore_metadata=True) for frame in frames]
    for path, table in zip(paths, tables, strict=True):
        if len(table) != len(tables[0]):
            raise InputError(
                f"{path} has {len(table):,} rows, but {paths[0]} has {len(tables[0]):,}. Pool "
                "draws of one table."
            )
    for name in tables[0].columns[[dtype.kind not in "fiub" for dtype in tables[0].dtypes]]:
        # A category that some draws lack must have its coefficient in all of them.
        levels = _levels([table[name] for table in tables])
        for table in tables:
            table[name] = _as_levels(table[name].astype(str), levels)

    left = column_of(formula.partition("~")[0])

    def fit(table: Any) -> Any:
        import numpy as np
        from patsy import EvalEnvironment

        if family == "logistic":
            table = _with_binary(table, left)
        elif left in table.columns and table[left].dtype.kind not in "fiu":
            raise ConfigError(
                f"The column {left!r}, which is to be predicted, holds no numbers. If it has two "
                "values, add --family logistic."
            )
        makers = {"linear": models.ols, "logistic": models.logit, "poisson": models.poisson}
        try:
            # Formulas know columns and numpy, as elsewhere, and none of the names used here.
            model = makers[family](formula, table, eval_env=EvalEnvironment([{"np": np}]))
            found = model.fit() if family == "linear" else model.fit(disp=0)
        except Exception as error:  # a formula is code, in which anything can go wrong
            reason = explain(error, formula, [str(name) for name in table.columns])
            raise ConfigError(f"The formula {formula!r} cannot be fitted: {reason}") from error
        if found.nobs < len(table):
            raise InputError(
                f"In {len(table) - int(found.nobs):,} of {len(table):,} rows of a draw the formula "
                f"{formula!r} has no value: a cell is missing, or its function is not defined. "
                "Pool tables without holes in these columns."
            )
        return found

    pooled = pool_estimates.fit(fit, tables)
    if family == "logistic" and left in tables[0].columns:
        terminal.note(f"Of the column {left!r}, {_values_of(tables[0][left])[-1]} counts as 1.")
    return pooled


def _levels(columns: list[Any]) -> list[str]:
    """Return the categories of all draws as text, in their own order if they have one."""
    found = {str(value) for column in columns for value in column.dropna().unique()}
    if not all(getattr(column.dtype, "ordered", False) for column in columns):
        return sorted(found)
    order = dict.fromkeys(str(value) for column in columns for value in column.cat.categories)
    return [value for value in order if value in found]


def _check_terms(frame: Any, formula: str, path: str) -> None:
    """Refuse columns in a formula that have no value, or dates, of which none is like another."""
    pa: Any = import_module("pyarrow")
    for name, column in zip(frame.column_names, frame.columns, strict=True):
        if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", formula):
            continue
        if column.null_count == len(column):
            raise InputError(
                f"The column {name!r} of {path} has no value. Leave it out of the formula."
            )
        if pa.types.is_temporal(column.type):
            raise ConfigError(
                f"The column {name!r} holds dates, of which the formula would make one category "
                "each. Add a column of numbers, such as the year, to the draws instead."
            )


def _as_levels(column: Any, levels: list[str]) -> Any:
    import pandas as pd

    return pd.Categorical(column, categories=levels)


def _values_of(column: Any) -> list[Any]:
    """Return the values of a column, each once and in order."""
    return sorted(column.unique())


def _with_binary(table: Any, name: str) -> Any:
    """Return a table whose column on the left of the formula is 0 or 1."""
    if name not in table.columns:
        return table
    column = table[name]
    values = _values_of(column)
    if len(values) > 2:
        raise ConfigError(
            f"Logistic regression needs a column of two values, and {name!r} has {len(values)}."
        )
    return table.assign(**{name: (column == values[-1]).astype(float)})
