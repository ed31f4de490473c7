"""What a fit has to know of a table, learned in one pass over its parts, in any number of places.

The facts of two parts make the facts of both, so parts can be scanned by different processes. Of a
column only a digest is kept: extremes, or the different values, or counts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import InputError
from grapefill.files.orders import common_order, with_one_dictionary
from grapefill.table.arrays import counts_in_unit, offsets
from grapefill.table.far import Ends, describe_far, warn_far
from grapefill.table.grain import telling_count
from grapefill.table.infer import WholeColumn, first_infinity, infer_column, infinity_message
from grapefill.table.kinds import Form, Kind
from grapefill.table.moments import Moments
from grapefill.table.scaling import Scaling
from grapefill.table.schema import Schema, read_kinds, storable_names, warn_passthrough
from grapefill.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from grapefill.table.arrays import Array, FloatArray, IntArray
    from grapefill.table.cells import ColumnCells
    from grapefill.table.column import Column

__all__ = ["TableScan"]

# More different texts than that are not kept; such a column passes through.
MOST_DISTINCT = 100_000
# Whole numbers are compared with each other up to that many; of more, a sample by their hash.
MOST_COMPARED = 1 << 20


@dataclass
class _ColumnScan:
    """What is known of one column."""

    type: Any = None
    metadata: Any = None
    dictionary: Any = None
    unordered: bool = False
    rows: int = 0
    observed: int = 0
    values: Any = None
    example: Any = None
    counts: Counter[Any] = field(default_factory=Counter)
    too_many: bool = False
    moments: Moments = field(default_factory=Moments)
    compared: IntArray | None = None
    modulus: int = 1
    repeated: bool = False

    def add(self, cells: ColumnCells, column: Any, wanted: Kind | None) -> None:
        """Take note of some cells."""
        pa: Any = import_module("pyarrow")
        by_value = wanted is not None and wanted.is_discrete
        there = ~cells.missing
        part = _ColumnScan(column.type, rows=len(there), observed=int(there.sum()))
        form = cells.storage.form
        if pa.types.is_dictionary(column.type):
            part.dictionary = _dictionary_of(column)
            part.unordered = not cells.storage.ordered
        if part.observed:
            if wanted is Kind.PASSTHROUGH or form is Form.OTHER:
                part.example = column.slice(int(there.argmax()), 1)
            elif form in (Form.TEXT, Form.CATEGORY, Form.BOOLEAN) or by_value:
                part._count(column.filter(pa.array(there)))
            else:
                part._measure(cells, column, there)
                if wanted is None and form is Form.INTEGER:
                    part._compare(cells.integers()[there].astype(np.int64))
        self.merge(part)

    def _count(self, kept: Any) -> None:
        pc: Any = import_module("pyarrow.compute")
        pa: Any = import_module("pyarrow")
        if pa.types.is_dictionary(kept.type):
            kept = kept.cast(kept.type.value_type)
        found = pc.value_counts(kept)
        values, counts = found.field("values"), found.field("counts")
        self.counts.update(dict(zip(values.to_pylist(), counts.to_pylist(), strict=True)))
        self._limit()

    def _limit(self) -> None:
        if len(self.counts) > MOST_DISTINCT:
            self.too_many = True
            self.counts = Counter(dict(self.counts.most_common(1)))

    def _measure(self, cells: ColumnCells, column: Any, there: Any) -> None:
        """Keep the extremes, a number that is not whole, a date that tells the grain, moments."""
        pa: Any = import_module("pyarrow")
        form, places = cells.storage.form, np.flatnonzero(there)
        whole: Array | None = None
        if form is Form.INTEGER:
            whole = cells.integers()[there]
        elif form in (Form.DATETIME, Form.DURATION):
            whole = counts_in_unit(cells.instants()[there], cells.storage.unit)
        if whole is None:
            numbers = cells.numbers()[there]
            ends = [int(numbers.argmin()), int(numbers.argmax())]
            odd = np.rint(numbers) != numbers
            ends += [int(odd.argmax())] if odd.any() else []
            self.moments = Moments.of(numbers)
        else:
            ends = [int(whole.argmin()), int(whole.argmax())]
            ends += [telling_count(whole, cells.storage.unit)] if cells.storage.unit else []
            shift = int(whole[0])
            self.moments = Moments.of(offsets(whole, shift), shift)
        self.values = column.take(pa.array(places[sorted(set(ends))]))

    def _compare(self, numbers: IntArray) -> None:
        """Look for whole numbers that are there twice, in a sample by hash if there are many."""
        # A product with an odd number, rotated: one to one, and its last digits look random.
        hashed = numbers.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        hashed = (hashed >> np.uint64(32)) | (hashed << np.uint64(32))
        self._keep(hashed.view(np.int64))

    def _keep(self, hashed: IntArray) -> None:
        unique = np.unique(hashed)
        self.repeated |= unique.size < hashed.size
        while unique.size > MOST_COMPARED:
            self.modulus *= 2
            unique = unique[unique % self.modulus == 0]
        self.compared = unique

    def merge(self, other: _ColumnScan) -> None:
        """Take over what another part is known to hold; it comes behind this one."""
        self.type = other.type if self.type is None else _joined_type(self.type, other.type)
        self.metadata = self.metadata or other.metadata
        if other.dictionary is not None:
            self._join(other.dictionary)
            self.unordered |= other.unordered
        self.rows += other.rows
        self.observed += other.observed
        self.counts.update(other.counts)
        self.too_many |= other.too_many
        self._limit()
        self.example = other.example if self.example is None else self.example
        if other.values is not None:
            known = self.values is not None
            self.values = _joined(self.values, other.values) if known else other.values
        self.moments = self.moments.merged(other.moments)
        if other.compared is not None and self.compared is not None:
            self.modulus = max(self.modulus, other.modulus)
            both = np.concatenate([self.compared, other.compared])
            self._keep(both[both % self.modulus == 0])
        elif other.compared is not None:
            self.compared, self.modulus = other.compared, other.modulus
        self.repeated |= other.repeated

    def _join(self, dictionary: Any) -> None:
        """Take over further categories; where they are not in one order, there is none."""
        pa: Any = import_module("pyarrow")
        if self.dictionary is None:
            self.dictionary = dictionary
            return
        joined = common_order([self.dictionary, dictionary])
        if joined is None:
            self.unordered = True
            known = dict.fromkeys([*self.dictionary.to_pylist(), *dictionary.to_pylist()])
            joined = pa.array(list(known), type=self.dictionary.type)
        self.dictionary = joined

    def digest(self) -> Any:
        """Return a short column that holds all that the kinds of columns are told by."""
        pa: Any = import_module("pyarrow")
        kind = self.type
        if self.unordered and pa.types.is_dictionary(kind):
            kind = pa.dictionary(kind.index_type, kind.value_type, ordered=False)
        if self.too_many or not self.observed:
            kept = pa.chunked_array([pa.nulls(0, kind)])
        elif self.counts:
            kept = self._values_of_counts(kind)
        elif self.values is not None:
            kept = self.values.cast(kind) if self.values.type != kind else self.values
        elif self.example is not None:
            kept = self.example
        else:
            kept = pa.chunked_array([pa.nulls(0, kind)])
        if self.rows > self.observed:
            kept = pa.chunked_array([*kept.chunks, pa.nulls(1, kind)], type=kind)
        return kept

    def _values_of_counts(self, kind: Any) -> Any:
        pa: Any = import_module("pyarrow")
        if self.dictionary is None:
            values = pa.array(list(self.counts), type=None)
            return pa.chunked_array([values.cast(kind)])
        places = {value: at for at, value in enumerate(self.dictionary.to_pylist())}
        codes = pa.array(sorted(places[value] for value in self.counts), type=kind.index_type)
        array = pa.DictionaryArray.from_arrays(codes, self.dictionary, ordered=kind.ordered)
        return pa.chunked_array([array])

    def whole(self) -> WholeColumn:
        """Return what the digest does not tell."""
        complete = self.observed == self.rows and self.compared is not None
        return WholeColumn(self.rows, self.observed, all_distinct=complete and not self.repeated)


class TableScan:
    """The facts of a table's columns, from as many parts as have been added.

    Parameters
    ----------
    kinds : mapping or None
        Kinds that the caller gives, as `Schema.infer` takes them.
    missing_values : scalar
        A mark for missing cells, as `Table.wrap` takes it.
    """

    def __init__(
        self, *, kinds: Mapping[Any, Kind | str] | None = None, missing_values: object = np.nan
    ) -> None:
        self.kinds = dict(kinds or {})
        self.missing_values = missing_values
        self.rows = 0
        self.names: tuple[str, ...] | None = None
        self._columns: list[_ColumnScan] = []
        self._wanted: dict[int, Kind] = {}

    def add(self, rows: Any) -> None:
        """Take note of some rows, a pyarrow table.

        Raises
        ------
        InputError
            For other columns than before, and for infinities.
        """
        table = Table.wrap(rows, missing_values=self.missing_values)
        self._begin(table)
        for j, scan in enumerate(self._columns):
            cells, wanted = table.cells(j), self._wanted.get(j)
            row = None if wanted is Kind.PASSTHROUGH else first_infinity(cells)
            if row is not None:
                raise InputError(infinity_message(table.labels[j], self.rows + row))
            scan.metadata = rows.schema.field(j).metadata
            scan.add(cells, rows.column(j), wanted)
        self.rows += table.n_rows

    def _begin(self, table: Table) -> None:
        if self.names is None:
            self.names = tuple(table.names or ())
            self._columns = [_ColumnScan() for _ in self.names]
            self._wanted = read_kinds(table, self.kinds)
        elif tuple(table.names or ()) != self.names:
            raise InputError(
                f"A part of the table has the columns {', '.join(map(repr, table.labels[:10]))}, "
                f"the first part had {', '.join(map(repr, self.names[:10]))}. Give every part the "
                "same columns in the same order."
            )

    def merge(self, other: TableScan) -> None:
        """Take over the facts of further rows, which come behind these."""
        if other.names is None:
            return
        if self.names is None:
            self.names, self._wanted = other.names, other._wanted
            self._columns = [_ColumnScan() for _ in other.names]
        for mine, theirs in zip(self._columns, other._columns, strict=True):
            mine.merge(theirs)
        self.rows += other.rows

    def schema(self, *, warn: bool = True) -> Schema:
        """Return the schema that `Schema.infer` would give for all rows together."""
        pa: Any = import_module("pyarrow")
        if self.names is None or not self.rows:
            raise InputError("The table has no rows: there is nothing to learn from.")
        digests = [scan.digest() for scan in self._columns]
        columns = []
        for j, (name, scan, digest) in enumerate(
            zip(self.names, self._columns, digests, strict=True)
        ):
            # That a column is an Enum stands there.
            field = pa.field("x", digest.type, metadata=scan.metadata)
            rows = pa.table([digest], schema=pa.schema([field]))
            cells = Table.wrap(rows, missing_values=self.missing_values).cells(0)
            wanted = self._wanted.get(j)
            if scan.too_many and wanted is not None:
                raise InputError(
                    f"Column {name!r} cannot be {wanted.value!r}: it has more than "
                    f"{MOST_DISTINCT:,} different values. Leave it out, or give it another kind."
                )
            if scan.too_many:
                wanted = Kind.PASSTHROUGH
            column = infer_column(name, cells, kind=wanted, named=True, whole=scan.whole())
            columns.append(_noted(column) if scan.too_many else column)
        if warn:
            warn_passthrough(columns)
        names = Table.wrap(pa.table(dict.fromkeys(self.names, pa.nulls(0))))
        return Schema(tuple(columns), storable_names(names))

    def with_ends(self, schema: Schema, sample: FloatArray) -> Schema:
        """Return the schema by which numbers that are absurdly far out count as the next ones.

        As `Schema.with_ends` does, as far as a sample of the rows and the extremes tell.

        Parameters
        ----------
        schema : Schema
            The columns.
        sample : ndarray of shape (rows, features)
            Some rows, encoded.
        """
        columns, told = list(schema.columns), []
        for at, j in enumerate(schema.features):
            column = columns[j]
            if column.categories is not None:
                continue
            extremes = np.array([column.lower, column.upper])
            known = sample[~np.isnan(sample[:, at]), at]
            with np.errstate(over="ignore"):
                variance = self._columns[j].moments.spread() ** 2
            ends = Ends.of(np.concatenate([known, extremes]), variance=variance)
            if ends is not None:
                ends = ends.widened(extremes)
                columns[j] = column.with_ends(ends)
                far = extremes[(extremes < ends.floor) | (extremes > ends.ceiling)]
                told.append(describe_far(column, far, None, ends))
        if told:
            warn_far(told)
        return replace(schema, columns=tuple(columns))

    def scaling(
        self,
        schema: Schema,
        method: Literal["minmax", "standard"],
        sample: FloatArray | None = None,
    ) -> Scaling:
        """Return the scaling that `Scaling.fit` would give for all rows together.

        Where numbers are far out, a sample of the rows, encoded, tells that of the others.
        """
        center, scale, largest, discrete = [], [], [], []
        for at, j in enumerate(schema.features):
            column, scan = schema.columns[j], self._columns[j]
            if column.kind.is_discrete:
                discrete.append(at)
            moments = scan.moments
            origin = column.origin
            if column.categories is not None:
                moments, origin = _moments_of_codes(column, scan.counts), 0
            if column.ends is not None and sample is not None:
                known = sample[~np.isnan(sample[:, at]), at]
                moments = Moments.of(column.within_ends(known), origin)
            by_range = method == "minmax"
            with np.errstate(over="ignore"):
                center.append(column.lower if by_range else moments.center(origin))
                scale.append(column.upper - column.lower if by_range else moments.spread())
            largest.append(max(abs(column.lower), abs(column.upper)))
        return Scaling.finished(
            np.array(center), np.array(scale), np.array(largest), discrete=discrete
        )

    def observed_share(self, schema: Schema) -> float:
        """Return which share of the cells of the features are observed."""
        observed = sum(self._columns[j].observed for j in schema.features)
        return observed / max(1, self.rows * len(schema.features))

    def with_holes(self) -> tuple[int, ...]:
        """Return the columns that have missing cells."""
        return tuple(j for j, scan in enumerate(self._columns) if scan.observed < scan.rows)


def _moments_of_codes(column: Column, counts: Mapping[Any, int]) -> Moments:
    """Return the moments of the positions of values among the categories of a column."""
    assert column.categories is not None
    numbers = np.array([counts.get(value, 0) for value in column.categories], dtype=np.float64)
    codes, count = np.arange(numbers.size), max(numbers.sum(), 1)
    mean = float((codes * numbers).sum() / count)
    squares = float((np.square(codes - mean) * numbers).sum())
    return Moments(int(count), 0, 1.0, mean, squares)


def _noted(column: Column) -> Column:
    return replace(column, note=f"more than {MOST_DISTINCT:,} different texts", empty=False)


def _dictionary_of(column: Any) -> Any:
    pa: Any = import_module("pyarrow")
    whole = with_one_dictionary(column)
    return whole.chunk(0).dictionary if whole.num_chunks else pa.array([], column.type.value_type)


def _joined(one: Any, other: Any) -> Any:
    """Return two short columns as one, with only what `_measure` keeps."""
    pa: Any = import_module("pyarrow")
    tables = [pa.table({"x": each}) for each in (one, other)]
    both = pa.concat_tables(tables, promote_options="permissive").column("x")
    scan = _ColumnScan()
    cells = Table.wrap(pa.table({"x": both})).cells(0)
    scan._measure(cells, both, ~cells.missing)
    return scan.values


def _joined_type(one: Any, other: Any) -> Any:
    pa: Any = import_module("pyarrow")
    if one.equals(other):
        return one
    schemas: Sequence[Any] = [pa.schema([("x", one)]), pa.schema([("x", other)])]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("x").type
    except pa.ArrowException as error:
        raise InputError(
            f"A column is of type {one} in one part of the table and {other} in another. Give "
            "every part the same types."
        ) from error
