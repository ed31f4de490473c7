"""What the report tells, as numbers and words; nothing is drawn here."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from grapefill._version import __version__
from grapefill.errors import ConfigError, GrapefillWarning
from grapefill.table import Kind, Table
from grapefill.table.text import describe_error
from grapefill.training.parameters import to_plain

if TYPE_CHECKING:
    from grapefill.imputer import GrapeImputer
    from grapefill.table.arrays import BoolArray, FloatArray
    from grapefill.table.column import Column
    from grapefill.training import History
    from grapefill.training.choice import ColumnTrial
    from grapefill.training.held_out import HeldOut

# A longer table is shown by that many of its rows, drawn by chance.
MOST_ROWS = 20_000
UNCERTAIN_CELLS = 15
PATTERNS = 12


@dataclass(frozen=True)
class ColumnFacts:
    """One column that can be filled.

    Parameters
    ----------
    column : Column
        Its description at fit.
    observed, filled : ndarray
        Its numbers: those observed and those filled in, in the rows that are shown.
    missing : int
        Holes in the whole table.
    trial : ColumnTrial or None
        How it was predicted where it was held out.
    held_out : HeldOut or None
        These cells.
    """

    column: Column
    observed: FloatArray
    filled: FloatArray
    missing: int
    trial: ColumnTrial | None
    held_out: HeldOut | None

    @property
    def name(self) -> str:
        """What the column is called."""
        return self.column.name

    @property
    def discrete(self) -> bool:
        """Whether it holds categories."""
        return self.column.kind.is_discrete and self.column.categories is not None

    @property
    def gain(self) -> float | None:
        """Return the held-out error as a share of that of filling in one value everywhere."""
        trial = self.trial
        if trial is None or trial.error is None or not trial.constant:
            return None
        return trial.error / trial.constant

    @property
    def errors(self) -> tuple[str, str] | None:
        """Return the held-out errors, of the model and of one value everywhere, in words."""
        trial = self.trial
        if trial is None or trial.error is None:
            return None
        constant = "" if trial.constant is None else describe_error(trial.constant, self.column)
        return describe_error(trial.error, self.column), constant

    def words(self, numbers: FloatArray) -> list[str]:
        """Return numbers of the column as a reader knows them."""
        values = self.column.decode(numbers)
        if values.dtype.kind == "f":
            return [f"{value:.4g}" for value in values]
        if values.dtype.kind == "M":
            # Without the zeros of fractions of a second, of whole minutes and of midnight.
            texts = (re.sub(r"\.?0+$", "", str(v)) if "." in str(v) else str(v) for v in values)
            short = (re.sub(r"(T\d\d:\d\d):00$", r"\1", text) for text in texts)
            return [text.removesuffix("T00:00").replace("T", " ") for text in short]
        if values.dtype.kind == "m":
            counts = values.astype(np.int64).tolist()
            signs = ("-" if count < 0 else "" for count in counts)
            lengths = (describe_error(abs(count), self.column) for count in counts)
            return [sign + length for sign, length in zip(signs, lengths, strict=True)]
        return [str(value) for value in values]


@dataclass(frozen=True)
class LeftAlone:
    """A column that is not filled.

    Parameters
    ----------
    name, why : str
        The column, and the reason.
    empty : int
        Its cells without a value in the result.
    """

    name: str
    why: str
    empty: int


@dataclass(frozen=True)
class UncertainCell:
    """A cell that was filled in with little confidence."""

    row: int
    column: str
    value: str
    doubt: str


@dataclass(frozen=True)
class Facts:
    """Everything that the report tells.

    Parameters
    ----------
    title : str
        What the table is called.
    n_rows, n_columns : int
        Its shape.
    shown_rows : int
        Rows that distributions, maps and correlations are drawn from.
    columns : list of ColumnFacts
        The columns that can be filled.
    others : list of LeftAlone
        The other columns.
    names : list of str
        What all columns of the table are called.
    missing : ndarray of bool, shape (shown rows, all columns)
        The holes, also of columns that are left alone.
    patterns : list of (columns, int)
        Which columns are missing together, and in how many of the shown rows; the most frequent.
    n_patterns : int
        How many patterns there are.
    uncertain : list of UncertainCell
        Where the fill is least certain.
    before, after : ndarray
        Correlations of the columns of numbers, over observed pairs and after filling.
    correlated : list of str
        The names of these columns.
    history : History
        Losses over the course of training.
    seconds : float
        How long the network was trained.
    settings : str
        What is needed to repeat it, as JSON.
    """

    title: str
    n_rows: int
    n_columns: int
    shown_rows: int
    columns: list[ColumnFacts]
    others: list[LeftAlone]
    names: list[str]
    missing: BoolArray
    patterns: list[tuple[tuple[int, ...], int]]
    n_patterns: int
    uncertain: list[UncertainCell]
    before: FloatArray
    after: FloatArray
    correlated: list[str]
    history: History
    settings: str

    @property
    def holes(self) -> int:
        """Holes in columns that can be filled."""
        return sum(column.missing for column in self.columns)

    @property
    def still_empty(self) -> list[LeftAlone]:
        """The columns that have cells without a value in the result."""
        return [column for column in self.others if column.empty]

    @property
    def left(self) -> int:
        """Cells without a value in the result."""
        return sum(column.empty for column in self.others)

    @property
    def gain(self) -> float | None:
        """Return the held-out error as a share of the constant's, averaged over columns."""
        known = [column.gain for column in self.columns if column.gain is not None]
        return float(np.mean(known)) if known else None

    @property
    def seconds(self) -> float:
        """Return how long the network was trained."""
        return self.history.seconds[-1] if self.history.seconds else 0.0


def collect(imputer: GrapeImputer, X: Any, *, title: str) -> Facts:
    """Gather the facts about a table and the imputer that was fitted to it.

    Parameters
    ----------
    imputer : GrapeImputer
        A fitted imputer.
    X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
        The table with its holes.
    title : str
        What the table is called.
    """
    from grapefill.imputer import GrapeImputer

    if not isinstance(imputer, GrapeImputer):
        raise ConfigError(
            f"A report is about a GrapeImputer and the table it fills, not about a "
            f"{type(imputer).__name__}."
        )
    check_is_fitted(imputer)
    table = Table.wrap(X, missing_values=imputer.missing_values)
    schema, model = imputer.schema_, imputer.model_
    encoded = schema.encode(table, warn=False)
    rows = np.arange(table.n_rows)
    if table.n_rows > MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(table.n_rows, MOST_ROWS, replace=False))
    numbers, holes = encoded.numbers[rows], encoded.fillable[rows]
    filled, spread, chances = numbers.copy(), np.full(numbers.shape, np.nan), {}
    if model is not None and holes.any():
        guess = model.predict(numbers)
        filled = np.where(holes, _filled(imputer, table.take(rows)), numbers)
        spread = spread if guess.spread is None else guess.spread
        chances = guess.chances
    columns = []
    for at, j in enumerate(schema.features):
        assert model is not None
        columns.append(
            ColumnFacts(
                schema.columns[j],
                numbers[~np.isnan(numbers[:, at]), at],
                filled[holes[:, at], at],
                int(encoded.fillable[:, at].sum()),
                model.trials[at] if model.trials else None,
                None if model.held_out is None else model.held_out.of(at),
            )
        )
    missing = np.column_stack([table.missing(j)[rows] for j in range(table.n_columns)])
    patterns, n_patterns = _patterns(missing)
    continuous = [at for at, facts in enumerate(columns) if not facts.discrete]
    settings = {
        "grapefill": __version__,
        "parameters": to_plain(
            {
                name: value
                for name, value in imputer.get_params(deep=False).items()
                if name not in ("callbacks", "o_edge", "checkpoint")
            }
        ),
        "preset": None if model is None else model.preset.to_dict(),
    }
    return Facts(
        title=title,
        n_rows=table.n_rows,
        n_columns=table.n_columns,
        shown_rows=rows.size,
        columns=columns,
        others=_others(imputer, table),
        names=list(table.labels),
        missing=missing,
        patterns=patterns,
        n_patterns=n_patterns,
        uncertain=_uncertain(columns, rows, filled, holes=holes, spread=spread, chances=chances),
        before=_correlation(numbers[:, continuous]),
        after=_correlation(filled[:, continuous]),
        correlated=[columns[at].name for at in continuous],
        history=imputer.history_,
        settings=json.dumps(settings, indent=2, default=str, ensure_ascii=False),
    )


def _filled(imputer: GrapeImputer, table: Table) -> FloatArray:
    """Return the numbers of a table as the imputer fills it, which has told what it has to tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrapefillWarning)
        fills = imputer._fills(table)
    every = list(range(table.n_columns))
    filled = Table.wrap(table.rebuild(fills, every), missing_values=imputer.missing_values)
    return imputer.schema_.encode(filled, warn=False, far=True).numbers


def _others(imputer: GrapeImputer, table: Table) -> list[LeftAlone]:
    """Return the columns that are not filled, with the cells that stay empty."""
    features, result = set(imputer.schema_.features), []
    for j, column in enumerate(imputer.schema_.columns):
        if j in features:
            continue
        why, empty = column.note or "left as it is", int(table.missing(j).sum())
        if column.useless and not imputer.keep_empty_features:
            why, empty = "no value, and left out of the result", 0
        elif column.useless and column.family == "number":
            why, empty = "no value, and filled with one", 0
        elif column.empty:
            why = "no value"
        result.append(LeftAlone(column.name, why, empty))
    return result


def _patterns(holes: BoolArray) -> tuple[list[tuple[tuple[int, ...], int]], int]:
    """Return which columns are missing together, the most frequent first, and how many there are.

    That no column is missing is a pattern too.
    """
    if not holes.size:
        return [], 0
    packed = np.packbits(holes, axis=1)
    _, first, counts = np.unique(packed, axis=0, return_index=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:PATTERNS]
    found = [(tuple(np.flatnonzero(holes[first[k]]).tolist()), int(counts[k])) for k in order]
    return found, counts.size


def _uncertain(
    columns: list[ColumnFacts],
    rows: Any,
    filled: FloatArray,
    *,
    holes: BoolArray,
    spread: FloatArray,
    chances: dict[int, FloatArray],
) -> list[UncertainCell]:
    """Return the filled cells whose parts agree least, in units of what each column can be off."""
    doubts: list[tuple[float, int, int]] = []
    for at, facts in enumerate(columns):
        where = np.flatnonzero(holes[:, at])
        if at in chances:
            classes = max(2, chances[at].shape[1])
            doubt = (1 - chances[at][where].max(axis=1)) / (1 - 1 / classes)
        else:
            unit = facts.observed.std() or 1.0
            doubt = np.nan_to_num(spread[where, at]) / unit
        worst = np.argsort(-doubt, kind="stable")[:UNCERTAIN_CELLS]
        doubts += [(float(doubt[k]), int(where[k]), at) for k in worst if doubt[k] > 0]
    doubts.sort(key=lambda each: (-each[0], each[1], each[2]))
    cells = []
    for _, row, at in doubts[:UNCERTAIN_CELLS]:
        facts = columns[at]
        if at in chances:
            reason = f"{chances[at][row].max():.0%} probable"
        elif facts.column.kind is Kind.DATETIME:
            reason = "trees disagree"
        else:
            reason = f"half of the trees within ±{spread[row, at]:.3g}"
        value = facts.words(filled[[row], at])[0]
        cells.append(UncertainCell(int(rows[row]) + 1, facts.name, value, reason))
    return cells


def _correlation(numbers: FloatArray) -> FloatArray:
    """Return correlations over the rows where both columns are known; NaN where there are none."""
    known = ~np.isnan(numbers)
    zeroed = np.where(known, numbers, 0.0)
    weight = known.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        scale = np.abs(zeroed).max(axis=0, initial=0.0)
        zeroed = zeroed / np.where(scale > 0, scale, 1.0)
        pairs = weight.T @ weight
        sums = zeroed.T @ weight
        squares = np.square(zeroed).T @ weight
        products = zeroed.T @ zeroed
        covariance = products / pairs - sums * sums.T / pairs**2
        variance = squares / pairs - (sums / pairs) ** 2
        correlation = covariance / np.sqrt(variance * variance.T)
    result: FloatArray = np.where(np.isfinite(correlation), np.clip(correlation, -1, 1), np.nan)
    return result
