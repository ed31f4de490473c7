"""The columns of a table as they were at fit."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import InputError, warn
from grapefill.table.arrays import counts_in_unit
from grapefill.table.column import Column
from grapefill.table.consistency import are_feature_names, check_columns, check_names
from grapefill.table.encode import Encoded, encode_table, warn_strangers
from grapefill.table.far import Ends, describe_far, warn_far
from grapefill.table.grain import find_grain
from grapefill.table.infer import infer_column
from grapefill.table.kinds import Form, Kind
from grapefill.table.text import storable_label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grapefill.table.cells import ColumnCells
    from grapefill.table.table import Table

__all__ = ["Schema", "read_kinds", "storable_names", "warn_passthrough"]


@dataclass(frozen=True)
class Schema:
    """What `fit` learns about a table's columns.

    Parameters
    ----------
    columns : tuple of Column
        Every column, in order.
    names : tuple or None
        Labels as the container had them; None for arrays. Labels that are neither text nor
        integers are kept as text.

    Examples
    --------
    >>> import numpy as np
    >>> from grapefill.table import Table
    >>> table = Table.wrap(np.array([[1.0, np.nan], [2.0, 5.0]]))
    >>> schema = Schema.infer(table)
    >>> [str(column.kind) for column in schema.columns], schema.features
    (['continuous', 'continuous'], (0, 1))
    >>> schema.encode(table).observed.tolist()
    [[True, False], [True, True]]
    """

    columns: tuple[Column, ...]
    names: tuple[Any, ...] | None = None

    @property
    def features(self) -> tuple[int, ...]:
        """Indices of the imputable columns: neither passthrough nor empty."""
        return tuple(j for j, column in enumerate(self.columns) if column.imputable)

    @property
    def named(self) -> bool:
        """Whether the table at fit had feature names in scikit-learn's sense."""
        return are_feature_names(self.names)

    @classmethod
    def infer(
        cls, table: Table, *, kinds: Mapping[Any, Kind | str] | None = None, warn: bool = True
    ) -> Schema:
        """Learn the columns of a table.

        Parameters
        ----------
        table : Table
            The table to fit on.
        kinds : mapping of column label to Kind or its name, optional
            Kinds that override the inferred ones. Columns of an array go by their position
            or by ``"x0"``, ``"x1"``, ...
        warn : bool
            Whether to warn of columns that pass through although the caller did not say so.

        Returns
        -------
        Schema

        Raises
        ------
        InputError
            For no rows, no columns, duplicate names, infinities, complex numbers, an unknown
            label or kind, or a kind that a column cannot have.

        Warns
        -----
        GrapefillWarning
            Once, naming these columns.
        """
        _require_cells(table)
        _require_unique(table)
        wanted = read_kinds(table, kinds or {})
        columns = tuple(
            infer_column(
                table.labels[j], table.cells(j), kind=wanted.get(j), named=table.names is not None
            )
            for j in range(table.n_columns)
        )
        if warn:
            warn_passthrough(columns)
        return cls(columns, storable_names(table))

    def check(self, table: Table, *, estimator: str = "GrapeImputer") -> None:
        """Raise if the table's columns are not those at fit.

        Parameters
        ----------
        table : Table
            The table to transform. It may have no rows.
        estimator : str
            Who asks, for the messages.

        Raises
        ------
        SchemaError
            For missing, extra, reordered or retyped columns. Integers, floats and decimals are
            one type, and a column without any value fits every type.
        InputError
            For duplicate names and infinities.
        """
        _require_unique(table)
        check_names(self.names, storable_names(table), estimator=estimator)
        check_columns(self.columns, table, estimator=estimator)

    def without_zones(self) -> Schema:
        """Return the schema for times that are in UTC though they do not say so."""
        return replace(self, columns=tuple(replace(each, zoned=None) for each in self.columns))

    def widened(self, table: Table, *, kinds: Mapping[Any, Kind | str] | None = None) -> Schema:
        """Return the schema with the ranges of its numbers widened to those of a checked table.

        Categories stay: the network has a place for those it was built with only. So do integers
        that are too large for a float, since they are counted from the smallest at fit. Dates that
        are told more finely than before make the filled ones finer, and floats that happened to be
        whole numbers become continuous when others arrive.

        Parameters
        ----------
        table : Table
            Further rows.
        kinds : mapping of column label to Kind or its name, optional
            The kinds that the caller chose, as in `infer`.

        Raises
        ------
        InputError
            For fractions in a column of integers, or where the caller asked for whole numbers.
        """
        chosen = {str(label) for label in kinds or {}}
        columns = list(self.columns)
        for j in self.features:
            column, cells = columns[j], table.cells(j)
            if column.categories is not None or cells.missing.all():
                continue
            if column.unit:
                column = columns[j] = _refined(column, cells)
            if column.origin:
                continue
            # Columns of an array go by their position too.
            if column.name not in chosen and (self.names is not None or str(j) not in chosen):
                columns[j] = column = _with_room(column, cells)
            new = infer_column(column.name, cells, kind=column.kind, named=False)
            lower, upper = min(column.lower, new.lower), max(column.upper, new.upper)
            extent = column.extent
            if extent is not None:
                # Integers with holes may have come as floats.
                ends = new.extent or (math.floor(new.lower), math.ceil(new.upper))
                extent = (min(extent[0], ends[0]), max(extent[1], ends[1]))
            wider = replace(column, lower=lower, upper=upper, extent=extent)
            if column.ends is not None:
                further = encode_table(table, columns, [j], far=True).numbers[:, 0]
                wider = wider.with_ends(column.ends.widened(further))
            if not new.origin and not wider.origin and new.unit == column.unit:
                columns[j] = wider
        return replace(self, columns=tuple(columns))

    def with_ends(self, table: Table, *, what: str = "values") -> Schema:
        """Return the schema by which numbers that are absurdly far out count as the next ones.

        Parameters
        ----------
        table : Table
            The table that the schema was inferred from.
        what : str
            What its cells are called in the warning.

        Warns
        -----
        GrapefillWarning
            Once, naming these cells.
        """
        columns, told = list(self.columns), []
        for j in self.features:
            whole = columns[j]
            if whole.categories is not None:
                continue
            if whole.origin:
                columns[j] = _from_the_middle(whole, table.cells(j))
            numbers = encode_table(table, columns, [j]).numbers[:, 0]
            rows = np.flatnonzero(~np.isnan(numbers))
            ends = Ends.of(numbers[rows])
            if ends is None:
                columns[j] = whole
                continue
            rows = rows[ends.within(numbers[rows]) != numbers[rows]]
            told.append(describe_far(columns[j], numbers[rows], rows, ends))
            columns[j] = columns[j].with_ends(ends)
        if told:
            warn_far(told, what=what)
        return replace(self, columns=tuple(columns))

    def encode(self, table: Table, *, warn: bool = True, far: bool = False) -> Encoded:
        """Turn a checked table into numbers, see `Encoded`; warn of categories fit did not see.

        Numbers that are absurdly far out count as the ends of the others, unless ``far`` says that
        they are to be as they are.
        """
        encoded = encode_table(table, self.columns, self.features, far=far)
        if warn:
            warn_strangers(encoded.strangers)
        return encoded

    def to_dict(self) -> dict[str, Any]:
        """Return the schema in plain JSON types."""
        return {
            "columns": [column.to_dict() for column in self.columns],
            "names": None if self.names is None else list(self.names),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Schema:
        """Rebuild a schema from `to_dict`."""
        names = plain["names"]
        return cls(
            tuple(Column.from_dict(column) for column in plain["columns"]),
            None if names is None else tuple(names),
        )


def _from_the_middle(column: Column, cells: ColumnCells) -> Column:
    """Return a column of large integers that are counted from one in their middle.

    The smallest may be so far from the others that these are all the same as seen from there.
    """
    assert column.extent is not None
    if column.unit:
        counts = counts_in_unit(cells.instants(), column.unit)
    elif cells.storage.form is Form.INTEGER:
        counts = cells.integers()
    else:
        return column
    known = np.sort(counts[~cells.missing])
    middle = int(known[known.size // 2])
    lower, upper = (float(end - middle) for end in column.extent)
    return replace(column, start=middle, lower=lower, upper=upper)


def _refined(column: Column, cells: ColumnCells) -> Column:
    """Return a column of dates with the grain of those at fit and further ones together."""
    assert column.extent is not None
    smallest, largest = column.extent
    # Two dates that differ by the grain stand for those at fit; they are one if there was one.
    known = np.array([smallest, min(smallest + column.grain, largest)])
    counts = counts_in_unit(cells.instants()[~cells.missing], column.unit)
    grain, phase = find_grain(np.concatenate([known, counts]), column.unit)
    return replace(column, grain=grain, phase=phase)


def _with_room(column: Column, cells: ColumnCells) -> Column:
    """Return a column of whole numbers, by its values and nobody's choice, with room for others."""
    if column.kind is not Kind.ORDINAL or cells.storage.form is not Form.FLOAT:
        return column
    numbers = cells.numbers()[~cells.missing]
    fractions = numbers[np.rint(numbers) != numbers]
    if not fractions.size:
        return column
    if column.form is not Form.FLOAT:
        raise InputError(
            f"Column {column.name!r} was {column.dtype} at the first call, so only whole numbers "
            f"are filled in, but now it holds {fractions[0]:g}. Start again with "
            f'kinds={{{column.name!r}: "continuous"}} and a column of floats, or round the column.'
        )
    return replace(column, kind=Kind.CONTINUOUS)


def storable_names(table: Table) -> tuple[Any, ...] | None:
    """Return the labels of a table as a model file can hold them."""
    return None if table.names is None else tuple(map(storable_label, table.names))


def _require_cells(table: Table) -> None:
    """Refuse a table without rows or columns, in scikit-learn's words."""
    shape = (table.n_rows, table.n_columns)
    for count, what in ((table.n_rows, "sample"), (table.n_columns, "feature")):
        if count == 0:
            raise InputError(
                f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required. "
                "Pass a table with at least one row and one column."
            )


def _require_unique(table: Table) -> None:
    twice = sorted(str(name) for name, count in Counter(table.names).items() if count > 1)
    if twice:
        raise InputError(
            "Column names must differ, but these appear more than once: "
            + ", ".join(map(repr, twice))
            + ". Rename or drop the duplicates."
        )


def read_kinds(table: Table, kinds: Mapping[Any, Kind | str]) -> dict[int, Kind]:
    """Translate the caller's kinds to column positions."""
    wanted = {}
    for label, kind in kinds.items():
        position = table.position(label, "kinds")
        if kind not in set(Kind):
            choices = ", ".join(repr(each.value) for each in Kind)
            raise InputError(
                f"kinds gives column {label!r} the kind {kind!r}. Choose one of {choices}."
            )
        wanted[position] = Kind(kind)
    return wanted


def warn_passthrough(columns: Sequence[Column]) -> None:
    """Warn once of columns that pass through although the caller did not say so."""
    passing = [f"{column.name!r} ({column.note})" for column in columns if column.note]
    if passing:
        warn(
            "These columns pass through unchanged and are not used: " + ", ".join(passing) + ". "
            'Give them the kind "passthrough" to accept this, or another kind to use them.'
        )
