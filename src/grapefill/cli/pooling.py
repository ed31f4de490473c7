"""``pool``, which sums draws up: a model for each of them, and one answer."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from grapefill.cli.arguments import Answering, Reading
from grapefill.cli.draws import draws_in
from grapefill.cli.formula import column_of, explain, in_words
from grapefill.cli.terminal import Terminal
from grapefill.cli.work import open_table
from grapefill.errors import ConfigError, InputError
from grapefill.files.places import Place

if TYPE_CHECKING:
    from grapefill.files import TableFile
    from grapefill.uncertainty.pooling import Pooled

__all__ = ["POOL_EXAMPLES", "pool", "pool_folder"]

POOL_EXAMPLES = """\
Examples:

  grapefill impute data.csv --draws 20 --out-dir imputations/

  grapefill pool imputations/ --formula "price ~ area + rooms"

  grapefill pool imputations/ --formula "sold ~ area" --family logistic"""

Family = Literal["linear", "logistic", "poisson"]


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
    count = f"{pooled.n_imputations:,} tables were pooled."
    terminal.answer(pooled.to_text(terminal.width), "", count)


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
    paths = draws_in(place)
    if not paths:
        raise InputError(
            f"{folder} has no draws, which are called imputation-1.csv and so on. Make some with "
            "'grapefill impute --draws 20 --out-dir FOLDER'."
        )
    if len(paths) < 2:
        raise InputError(f"{folder} has 1 draw; pooling needs at least 2, better 20.")
    files = []
    for path in paths:
        with terminal.one_of_many(Place.at(str(path)).name):
            files.append(open_table(str(path), reading, {}, terminal))
    frames, words = [file.frame for file in files], _words_of(files[0])
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
        one = words.get(left, (_values_of(tables[0][left])[-1],))[0]
        terminal.note(f"Of the column {left!r}, {one} counts as 1.")
    return replace(pooled, names=tuple(in_words(name, words) for name in pooled.names))


def _words_of(file: TableFile) -> dict[str, tuple[str, str]]:
    """Return the words for true and false, such as yes and no, of columns that have some."""
    usual = ("true", "false")
    return {
        name: shape.words
        for name, shape in file.formats.items()
        if shape.type == "boolean" and tuple(map(str.lower, shape.words)) != usual
    }


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
