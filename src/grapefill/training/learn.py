"""One pass over a table that comes in pieces: its columns, their scaling, and a sample of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import InputError
from grapefill.files.batches import read_all
from grapefill.graph import block_size
from grapefill.table import Table
from grapefill.table.sample import RowSample
from grapefill.table.scan import TableScan
from grapefill.training.model import describe_features
from grapefill.training.stack import TREE_CELLS, TREE_ROWS
from grapefill.training.stream import StreamedTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from grapefill.files.batches import BatchSource
    from grapefill.table import Kind, Schema
    from grapefill.training.config import Preset

__all__ = ["Learned", "Scanner", "learn_table", "read_small"]

# A table with no more cells is read into memory, where training can draw any rows at any time.
MEMORY_CELLS = 5_000_000
SAMPLE_CELLS = 10_000_000


@dataclass(frozen=True)
class Learned:
    """What a pass over some pieces has told; that of others can join it."""

    scan: TableScan
    sample: RowSample | None
    rows: dict[int, int]


@dataclass(frozen=True)
class Scanner:
    """Looks at pieces of a table, here or wherever it is sent.

    Parameters
    ----------
    kinds : mapping or None
        Kinds that the caller gives.
    missing_values : scalar
        A mark for missing cells.
    seed : int
        Where randomness starts.
    """

    kinds: Mapping[Any, Kind | str] | None
    missing_values: Any
    seed: int

    def look(self, tables: Iterable[tuple[int, Any]]) -> Iterator[Learned]:
        """Yield what each piece tells, given its rows in order with its number."""
        current: Learned | None = None
        for piece, table in tables:
            if current is None or piece not in current.rows:
                if current is not None:
                    yield current
                scan = TableScan(kinds=self.kinds, missing_values=self.missing_values)
                most = min(TREE_ROWS, max(2_000, SAMPLE_CELLS // max(1, table.num_columns)))
                current = Learned(scan, RowSample(most, self.seed), {piece: 0})
            current.scan.add(table)
            assert current.sample is not None
            current.sample.add(piece, table)
            current.rows[piece] += table.num_rows
        if current is not None:
            yield current

    def join(self, parts: Iterable[Learned]) -> Learned:
        """Put together what all pieces have told, in their order."""
        whole = Learned(TableScan(kinds=self.kinds, missing_values=self.missing_values), None, {})
        for part in parts:
            whole.scan.merge(part.scan)
            whole.rows.update(part.rows)
            if whole.sample is None:
                whole = Learned(whole.scan, part.sample, whole.rows)
            elif part.sample is not None:
                whole.sample.merge(part.sample)
        return whole


def read_small(source: BatchSource) -> Any | None:
    """Return a table as a whole, if it is small enough; None if it has to be read in parts."""
    cells = 0
    if source.rows is None:
        for _, table in source.stream():
            cells += table.num_rows * table.num_columns
            if cells > MEMORY_CELLS:
                return None
    else:
        first = next(source.stream(), None)
        cells = sum(source.rows) * (0 if first is None else first[1].num_columns)
    return read_all(source) if cells <= MEMORY_CELLS else None


def learn_table(
    source: BatchSource,
    learned: Learned,
    preset: Preset,
    *,
    scanner: Scanner,
    schema: Schema | None = None,
) -> StreamedTable:
    """Return a table for training, given what a pass over it has told.

    Parameters
    ----------
    source : BatchSource
        Where the rows are.
    learned : Learned
        What all pieces have told.
    preset : Preset
        How to scale.
    scanner : Scanner
        How they were looked at.
    schema : Schema or None
        The columns of an earlier fit, which stay; learned when None.
    """
    if not learned.scan.rows or learned.sample is None:
        raise InputError(f"{source.name} has no rows: there is nothing to learn from.")
    known = schema
    schema = learned.scan.schema() if known is None else known
    features = describe_features(schema)
    most = min(TREE_ROWS, block_size(features, TREE_CELLS))
    places, sample = learned.sample.taken(most)
    wrapped = Table.wrap(sample, missing_values=scanner.missing_values)
    # Trivial for a schema that was learned just now, and needed for one of an earlier fit.
    schema.check(wrapped)
    numbers = schema.encode(wrapped, warn=False).numbers
    if known is None:
        schema = learned.scan.with_ends(schema, numbers)
    n_pieces = 1 + max(learned.rows) if source.rows is None else len(source.rows)
    table = StreamedTable(
        source,
        [learned.rows.get(piece, 0) for piece in range(n_pieces)],
        schema,
        learned.scan.scaling(schema, preset.training.scaling, numbers),
        learned.scan.observed_share(schema),
        places,
        np.empty((0, features.count)),
        scanner.seed,
        scanner.missing_values,
    )
    return table.with_sample(table.encode(sample))
