"""Draws and intervals as files beside the filled table, and ``pool``, which sums draws up."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from grapefill.cli.arguments import Reading, Running
from grapefill.cli.terminal import Terminal
from grapefill.cli.work import default_output, open_table
from grapefill.errors import ConfigError, InputError
from grapefill.files.places import open_output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grapefill.cli.columns import Plan
    from grapefill.files import TableFile
    from grapefill.imputer import GrapeImputer
    from grapefill.uncertainty.pooling import Pooled

__all__ = ["POOL_EXAMPLES", "draw_paths", "interval_paths", "pool", "write_draws", "write_interval"]

POOL_EXAMPLES = """\
Examples:

  grapefill impute data.csv --draws 20 --out-dir imputations/

  grapefill pool imputations/ --formula "price ~ area + rooms"

  grapefill pool imputations/ --formula "sold ~ area" --family logistic"""

Family = Literal["linear", "logistic", "poisson"]


def draw_paths(data: str, draws: int | None, folder: str | None) -> list[str]:
    """Return where the draws of a table go, in order, in a folder that is there from now on."""
    if draws is None and folder is None:
        return []
    if draws is None or folder is None or draws < 1:
        raise ConfigError(
            "--draws needs a number of at least 1, and --out-dir the folder for so many files."
        )
    suffix = "".join(Path(data).suffixes) if data != "-" else ".csv"
    Path(folder).mkdir(parents=True, exist_ok=True)
    digits = len(str(draws))
    return [str(Path(folder) / f"imputation-{at:0{digits}d}{suffix}") for at in range(1, draws + 1)]


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
    return [*ends, str(sets.with_name(sets.name.partition(".")[0] + ".csv"))]


def write_draws(
    imputer: GrapeImputer,
    file: TableFile,
    plan: Plan,
    table: Any,
    paths: list[str],
    *,
    seed: int,
    terminal: Terminal,
) -> None:
    """Write draws of a table, one after the other."""
    if not paths:
        return
    with terminal.progress("Drawing") as bar:
        tables = imputer.sample_each(table, len(paths), random_state=seed)
        for at, (path, drawn) in enumerate(zip(paths, tables, strict=True)):
            bar.move(at, len(paths), None)
            file.write(path, plan.hold(table, drawn), overwrite=True)


def write_interval(
    imputer: GrapeImputer,
    file: TableFile,
    plan: Plan,
    table: Any,
    paths: list[str],
    *,
    coverage: float | None,
) -> list[str]:
    """Write the ends of intervals, and sets of categories if any is missing; return the files."""
    if not paths or coverage is None:
        return []
    *bounds, sets = paths
    intervals = imputer.interval(table, coverage)
    for path, end in zip(bounds, intervals, strict=True):
        file.write(path, plan.hold(table, end), overwrite=True)
    if not intervals.sets:
        # One of an earlier run would be taken for this one's.
        Path(sets).unlink(missing_ok=True)
        return bounds
    with open_output(sets) as place:
        place.write(_sets_as_text(intervals.sets, file).encode())
    return paths


def _sets_as_text(sets: Mapping[Any, Mapping[int, tuple[Any, ...]]], file: TableFile) -> str:
    """Return a line for every category that a cell may be, written as the file writes it."""
    import pyarrow as pa

    from grapefill.files.cells.write import write_values

    text = io.StringIO(newline="")
    lines = csv.writer(text)
    lines.writerow(["row", "column", "category"])
    for column, cells in sets.items():
        shape = file.formats.get(column)
        for row, categories in cells.items():
            words = [str(category) for category in categories]
            if shape is not None:
                words = write_values(pa.array(categories), shape)
            lines.writerows([row + 1, column, word] for word in words)
    return text.getvalue()


def pool(
    folder: Annotated[str, Parameter(metavar="FOLDER")],
    /,
    *,
    formula: str,
    family: Family = "linear",
    reading: Reading = Reading(),
    running: Running = Running(),
) -> None:
    """Fit a model to every imputed table in a folder, and pool the coefficients (Rubin's rules).

    Needs the package statsmodels: pip install 'grapefill[pool]'.

    Parameters
    ----------
    folder
        The folder with the imputed tables, from 'grapefill impute --draws'.
    formula
        The model, such as "price ~ area + C(heating)".
    family
        Linear regression, logistic regression of a column with two values, or Poisson regression
        of counts.
    """
    terminal = Terminal.current(quiet=running.quiet)
    terminal.show(str(pool_folder(folder, formula, family, reading, terminal)))


def pool_folder(
    folder: str, formula: str, family: Family, reading: Reading, terminal: Terminal
) -> Pooled:
    """Return the pooled coefficients of a model that is fitted to every table in a folder."""
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
    paths = sorted(path for path in place.iterdir() if path.is_file())
    if len(paths) < 2:
        raise InputError(f"{folder} has {len(paths)} tables; pooling needs at least 2, better 20.")
    tables = [open_table(str(path), reading, {}, terminal).frame.to_pandas() for path in paths]
    for name in tables[0].columns[[dtype.kind not in "fiub" for dtype in tables[0].dtypes]]:
        # A category that some draws lack must have its coefficient in all of them.
        levels = sorted({str(value) for table in tables for value in table[name].dropna()})
        for table in tables:
            table[name] = _as_levels(table[name].astype(str), levels)

    def fit(table: Any) -> Any:
        from patsy import PatsyError

        if family == "logistic":
            table = _with_binary(table, formula)
        makers = {"linear": models.ols, "logistic": models.logit, "poisson": models.poisson}
        try:
            model = makers[family](formula, table)
            return model.fit() if family == "linear" else model.fit(disp=0)
        except (PatsyError, SyntaxError, ValueError) as error:
            raise ConfigError(f"The formula {formula!r} cannot be fitted: {error}") from error

    return pool_estimates.fit(fit, tables)


def _as_levels(column: Any, levels: list[str]) -> Any:
    import pandas as pd

    return pd.Categorical(column, categories=levels)


def _with_binary(table: Any, formula: str) -> Any:
    """Return a table whose column on the left of the formula is 0 or 1."""
    name = formula.partition("~")[0].strip()
    if name not in table.columns:
        return table
    column = table[name]
    values = sorted(column.unique())
    if len(values) > 2:
        raise ConfigError(
            f"Logistic regression needs a column of two values, and {name!r} has {len(values)}."
        )
    return table.assign(**{name: (column == values[-1]).astype(float)})
