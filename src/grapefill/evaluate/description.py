"""A table described: what is missing where, together with what, and what looks odd."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.evaluate.little import LittleTest, little_test
from grapefill.evaluate.patterns import co_missing, group_rows
from grapefill.evaluate.remarks import Remark, Values, remarks_on
from grapefill.evaluate.text import counted
from grapefill.lines import LINE, align, shorten, wrap
from grapefill.table import Kind, Schema, Table
from grapefill.table.encode import encode_table
from grapefill.table.infer import first_infinity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from grapefill.table.arrays import BoolArray

__all__ = ["ColumnDescription", "Description", "Pair", "Pattern", "describe"]

MOST_PATTERNS = 20
MOST_PAIRS = 50
# Columns whose missing cells are correlated: those with the most of them.
MOST_CORRELATED = 200
# What a terminal shows.
SHOWN_COLUMNS = 100
SHOWN_PATTERNS = 8
SHOWN_PAIRS = 8
SHOWN_CORRELATION = 0.2
LONGEST_NAME = 32
LONGEST_OF_TWO = 24


@dataclass(frozen=True)
class ColumnDescription:
    """One column.

    Parameters
    ----------
    name, dtype, kind : str
        The column, its dtype, and how `GrapeImputer` would treat it; a column without any value
        passes through.
    missing : int
        Number of missing cells.
    share : float
        The same as a share of the rows.
    distinct : int or None
        Number of different values; None if they cannot be compared.
    remarks : tuple of Remark
        What looks odd.
    """

    name: str
    dtype: str
    kind: str
    missing: int
    share: float
    distinct: int | None
    remarks: tuple[Remark, ...]


@dataclass(frozen=True)
class Pattern:
    """Rows that miss the same cells.

    Parameters
    ----------
    columns : tuple of str
        The columns they miss; empty for complete rows.
    rows : int
        How many they are.
    share : float
        The same as a share of all rows.
    """

    columns: tuple[str, ...]
    rows: int
    share: float


@dataclass(frozen=True)
class Pair:
    """Two columns whose cells are missing together, or apart.

    Parameters
    ----------
    first, second : str
        The columns.
    correlation : float
        Of being missing: 1 if always together, -1 if one is there exactly where the other is not.
    both : int
        Number of rows that miss both.
    """

    first: str
    second: str
    correlation: float
    both: int


@dataclass(frozen=True)
class Description:
    """What `grapefill.describe` found; print it for a summary.

    Parameters
    ----------
    rows : int
        Number of rows.
    columns : tuple of ColumnDescription
        The columns.
    complete_rows : int
        Rows without a missing cell.
    missing : int
        Number of missing cells.
    patterns : tuple of Pattern
        The most frequent patterns of missing cells, at most 20.
    n_patterns : int
        Number of different patterns.
    pairs : tuple of Pair
        Pairs of columns by how strongly their missing cells are correlated, at most 50.
    little : LittleTest
        Little's test of whether numbers are missing completely at random.
    """

    rows: int
    columns: tuple[ColumnDescription, ...]
    complete_rows: int
    missing: int
    patterns: tuple[Pattern, ...]
    n_patterns: int
    pairs: tuple[Pair, ...]
    little: LittleTest

    @property
    def complete_share(self) -> float:
        """Share of the rows without a missing cell."""
        return self.complete_rows / self.rows

    @property
    def missing_share(self) -> float:
        """Share of the cells that are missing."""
        return self.missing / (self.rows * len(self.columns))

    def __getitem__(self, name: str) -> ColumnDescription:
        """Return the description of a column by its name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def __str__(self) -> str:
        sections = [self._heading(), self._columns_text(), self._remarks_text()]
        sections += [self._patterns_text(), self._pairs_text()]
        sections.append(wrap(str(self.little)))
        return "\n\n".join(section for section in sections if section)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        plain = asdict(self)
        for key in ("columns", "patterns", "pairs"):
            plain[key] = list(plain[key])
        for column in plain["columns"]:
            column["remarks"] = list(column["remarks"])
        for pattern in plain["patterns"]:
            pattern["columns"] = list(pattern["columns"])
        plain["little"] = self.little.to_dict()
        shares = {"missing_share": self.missing_share, "complete_share": self.complete_share}
        return plain | shares

    def _heading(self) -> str:
        complete = counted(self.complete_rows, "row")
        are = "is" if self.complete_rows == 1 else "are"
        return (
            f"{counted(self.rows, 'row')}, {counted(len(self.columns), 'column')}. "
            f"{_percent(self.missing_share)} of the cells are missing; "
            f"{complete} ({_percent(self.complete_share)}) {are} complete."
        )

    def _columns_text(self) -> str:
        rows = [["column", "kind", "dtype", "missing", "", "distinct"]]
        for column in self.columns[:SHOWN_COLUMNS]:
            distinct = "" if column.distinct is None else f"{column.distinct:,}"
            row = [_short(column.name), column.kind, _short(column.dtype)]
            share = _percent(column.share) if column.missing else ""
            rows.append([*row, f"{column.missing:,}", share, distinct])
        lines = align(rows, right=(3, 4, 5), narrow=(0, 2))
        left = len(self.columns) - SHOWN_COLUMNS
        return "\n".join([*lines, f"and {counted(left, 'more column')}"] if left > 0 else lines)

    def _remarks_text(self) -> str:
        rows = [
            [_short(column.name), remark.text]
            for column in self.columns
            for remark in column.remarks
        ]
        left = len(rows) - SHOWN_COLUMNS
        lines = [f"  {line}" for line in align(rows[:SHOWN_COLUMNS])] if rows else []
        lines += [f"  and {left:,} more"] if left > 0 else []
        return "\n".join(["Remarks", *lines]) if lines else ""

    def _patterns_text(self) -> str:
        if not self.missing:
            return ""
        rows = [["rows", "", "missing"]]
        for pattern in self.patterns[:SHOWN_PATTERNS]:
            names = ", ".join(map(_short, pattern.columns)) or "nothing"
            names = textwrap.shorten(names, LINE - 24, placeholder=" ...")
            rows.append([f"{pattern.rows:,}", _percent(pattern.share), names])
        title = f"Patterns of missing cells, {self.n_patterns:,} in all"
        lines = [f"  {line}" for line in align(rows, right=(0, 1))]
        return "\n".join([title, *lines])

    def _pairs_text(self) -> str:
        strong = [pair for pair in self.pairs if abs(pair.correlation) >= SHOWN_CORRELATION]
        if not strong:
            return ""
        rows = [["correlation", "both missing", "columns"]]
        for pair in strong[:SHOWN_PAIRS]:
            names = ", ".join(_short(name, LONGEST_OF_TWO) for name in (pair.first, pair.second))
            rows.append([f"{pair.correlation:+.2f}", f"{pair.both:,}", names])
        lines = [f"  {line}" for line in align(rows, right=(0, 1))]
        return "\n".join(["Columns that are missing together (+) or apart (-)", *lines])


def describe(
    X: Any,
    *,
    kinds: Mapping[Any, Kind | str] | None = None,
    missing_values: Any = np.nan,
) -> Description:
    """Describe a table: its columns, what is missing, and whether that looks like chance.

    Parameters
    ----------
    X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
        The table.
    kinds : dict or None, default=None
        Kinds of columns that the dtype does not tell, as in `GrapeImputer`.
    missing_values : int, float, str, np.nan, None or pandas.NA, default=np.nan
        A mark for missing cells, besides NaN, None, NaT, NA and null.

    Returns
    -------
    Description
        Print it for a summary.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [31, None, 28, -999] * 5, "town": ["Ulm"] * 20})
    >>> found = describe(table)
    >>> found["age"].missing, found["town"].remarks[0].code, found.complete_share
    (5, 'constant', 0.75)
    >>> print(found)
    20 rows, 2 columns. 12.5% of the cells are missing; 15 rows (75.0%) are complete.
    <BLANKLINE>
    column  kind         dtype    missing         distinct
    age     ordinal      float64        5  25.0%         3
    town    categorical  ...
    """
    table = Table.wrap(X, missing_values=missing_values)
    schema = _schema(table, kinds)
    columns = []
    for j, column in enumerate(schema.columns):
        cells = table.cells(j)
        values = Values(cells)
        missing = int(np.count_nonzero(cells.missing))
        columns.append(
            ColumnDescription(
                column.name,
                column.dtype,
                (Kind.PASSTHROUGH if column.empty else column.kind).value,
                missing,
                missing / table.n_rows,
                values.distinct,
                remarks_on(column, values),
            )
        )
    holes = np.column_stack([table.missing(j) for j in range(table.n_columns)])
    patterns, which, count = group_rows(holes)
    del which
    order = np.argsort(-count, kind="stable")[:MOST_PATTERNS]
    return Description(
        rows=table.n_rows,
        columns=tuple(columns),
        complete_rows=int(count[~patterns.any(axis=1)].sum()),
        missing=int(np.count_nonzero(holes)),
        patterns=tuple(
            Pattern(
                tuple(table.labels[j] for j in np.flatnonzero(patterns[at])),
                int(count[at]),
                float(count[at] / table.n_rows),
            )
            for at in order
        ),
        n_patterns=len(count),
        pairs=tuple(_pairs(holes, table.labels)),
        little=_little(table, schema),
    )


def _schema(table: Table, kinds: Mapping[Any, Kind | str] | None) -> Schema:
    """Return the columns' kinds; an infinity, which fit refuses, is only remarked on here."""
    wanted = {table.position(label, "kinds"): kind for label, kind in (kinds or {}).items()}
    for j in range(table.n_columns):
        if first_infinity(table.cells(j)) is not None:
            wanted[j] = Kind.PASSTHROUGH
    named = {table.names[j] if table.names else j: kind for j, kind in wanted.items()}
    return Schema.infer(table, kinds=named, warn=False)


def _pairs(holes: BoolArray, labels: Sequence[str]) -> Iterator[Pair]:
    """Yield the pairs of columns that are most correlated in being missing."""
    count = holes.sum(axis=0)
    some = np.flatnonzero((count > 0) & (count < len(holes)))
    some = np.sort(some[np.argsort(-count[some], kind="stable")[:MOST_CORRELATED]])
    if some.size < 2:
        return
    correlation, both = co_missing(holes[:, some])
    first, second = np.triu_indices(some.size, 1)
    order = np.argsort(-np.abs(correlation[first, second]), kind="stable")[:MOST_PAIRS]
    for a, b in zip(first[order], second[order], strict=True):
        yield Pair(labels[some[a]], labels[some[b]], float(correlation[a, b]), int(both[a, b]))


def _little(table: Table, schema: Schema) -> LittleTest:
    """Make Little's test with the columns of numbers."""
    numbers = [
        j
        for j in schema.features
        if schema.columns[j].kind in (Kind.CONTINUOUS, Kind.ORDINAL)
        and schema.columns[j].categories is None
    ]
    encoded = encode_table(table, schema.columns, numbers)
    return little_test(encoded.numbers, [table.labels[j] for j in numbers])


def _percent(share: float) -> str:
    """Return a share that is 0% or 100% only if it is."""
    shown = f"{share:.1%}"
    if shown == "0.0%" and share > 0:
        return "<0.1%"
    return ">99.9%" if shown == "100.0%" and share < 1 else shown


def _short(name: str, width: int = LONGEST_NAME) -> str:
    """Return a name on one line that leaves room for others; nothing in it moves the cursor."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in name)
    return shorten(plain, width)
