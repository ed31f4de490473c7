"""Training rows that are read from a source while training goes on, in bounded memory.

The rows of every piece are dealt into chunks by chance, and an epoch visits all chunks in random
order. Some chunks at a time are read into a buffer, which is shuffled and cut into batches. All of
it follows from the seed and the number of the step, so training goes on at any step without having
kept its place.

Rows can be dealt to several shards, which different processes may read: a step looks at one batch
of every shard, so what a step sees does not depend on the number of processes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from grapefill.errors import InputError
from grapefill.graph import Cells
from grapefill.table import Scaling, Schema, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt
    from torch import Tensor

    from grapefill.files.batches import BatchSource
    from grapefill.table.arrays import FloatArray, IntArray

__all__ = ["StreamedBatch", "StreamedRows", "StreamedTable"]

# Cells of the buffer, and in how many chunks they come at least.
BUFFER_CELLS = 4_000_000
BUFFER_CHUNKS = 8


@dataclass(frozen=True)
class StreamedTable:
    """A table in a source, with what one pass over it has told.

    Parameters
    ----------
    source : BatchSource
        Where the rows are.
    rows : sequence of int
        Rows of every piece of it.
    schema : Schema
        The columns.
    scaling : Scaling
        Scaling of the features.
    observed : float
        Share of the cells of the features that are observed.
    places : ndarray of int, shape (sample, 2)
        Piece, and row in it, of the rows that were drawn as a sample; in order.
    sample : ndarray of shape (sample, features)
        These rows, encoded.
    seed : int
        Where randomness starts.
    missing_values : scalar
        A mark for missing cells.
    """

    source: BatchSource
    rows: Sequence[int]
    schema: Schema
    scaling: Scaling
    observed: float
    places: IntArray
    sample: FloatArray
    seed: int
    missing_values: Any = np.nan

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.rows)

    def with_sample(self, sample: FloatArray) -> StreamedTable:
        """Return the table with the rows of its sample."""
        return replace(self, sample=sample)

    def pieces(self, shard: int, shards: int) -> list[int]:
        """Return the pieces of a shard: every so many-th one that has rows."""
        pieces = [piece for piece, rows in enumerate(self.rows) if rows]
        return pieces[shard::shards]

    def encoded(self, shards: Sequence[int], n_shards: int) -> Iterator[FloatArray]:
        """Yield the encoded rows of some shards, in order."""
        wanted = {piece for shard in shards for piece in self.pieces(shard, n_shards)}
        if self.source.ordered or len(wanted) == sum(map(bool, self.rows)):
            for _, table in self.source.stream():
                yield self.encode(table)
            return
        for piece in sorted(wanted):
            for table in self.source.read(piece):
                yield self.encode(table)

    def encode(self, table: Any) -> FloatArray:
        """Return rows as numbers."""
        wrapped = Table.wrap(table, missing_values=self.missing_values)
        return self.schema.encode(wrapped, warn=False).numbers


@dataclass(frozen=True)
class _Part:
    """What one shard gives to a step."""

    cells: Cells
    held_out: Tensor
    generator: torch.Generator


@dataclass(frozen=True)
class StreamedBatch:
    """The rows of a step, from one shard or several."""

    parts: tuple[_Part, ...]

    def shown(self, *, holding: bool, left_out: Tensor | None) -> StreamedBatch:
        """Return the batch without some columns, and without cells that are held out for now."""
        parts = self.parts
        if left_out is not None:
            parts = tuple(replace(part, cells=part.cells.hide(left_out)) for part in parts)
        if holding:
            parts = tuple(replace(part, cells=part.cells.hide(part.held_out)) for part in parts)
        return StreamedBatch(parts)

    @cached_property
    def cells(self) -> Cells:
        """The rows of all parts."""
        return Cells.join([part.cells for part in self.parts])

    def draw(self, drop: Callable[[Cells, torch.Generator], Tensor]) -> Tensor:
        """Return the edges that dropout removes, which every shard draws for itself."""
        return torch.cat([drop(part.cells, part.generator) for part in self.parts])


@dataclass(frozen=True)
class _Chunk:
    """A share of the rows of a piece."""

    piece: int
    number: int
    of: int
    rows: int


class StreamedRows:
    """The batches of a training.

    Parameters
    ----------
    table : StreamedTable
        The rows.
    to_cells : callable
        Makes tensors of encoded rows.
    shards : sequence of int or None
        The shards that this process reads; all when None.
    n_shards : int
        How many shards there are.
    """

    def __init__(
        self,
        table: StreamedTable,
        to_cells: Callable[[FloatArray], Cells],
        *,
        shards: Sequence[int] | None = None,
        n_shards: int = 1,
    ) -> None:
        self.table = table
        self.to_cells = to_cells
        self.shards = range(n_shards) if shards is None else shards
        self.n_shards = n_shards
        filled = sum(map(bool, table.rows))
        if filled < n_shards or (table.source.ordered and n_shards > 1):
            raise InputError(
                f"{table.source.name} has {filled} pieces, too few for {n_shards} workers. Write "
                "it as more files or row groups, or use fewer workers."
            )

    @property
    def n_rows(self) -> int:
        """Rows of all shards."""
        return self.table.n_rows

    def encoded(self) -> Iterator[FloatArray]:
        """Yield all encoded rows of this process, in order."""
        return self.table.encoded(self.shards, self.n_shards)

    def batches(
        self, batch_rows: int, held_out: npt.NDArray[np.bool_], *, after: int = 0
    ) -> Iterator[StreamedBatch]:
        """Yield the batch of every step after a given one, without end.

        Parameters
        ----------
        batch_rows : int
            Rows of a batch, of all shards together.
        held_out : ndarray of bool, shape (sample, features)
            The cells of the sample that are held out.
        after : int
            The step after which to begin.
        """
        size = max(1, -(-batch_rows // self.n_shards))
        readers = [
            _ShardReader(self, shard, size, held_out).batches(after) for shard in self.shards
        ]
        while True:
            yield StreamedBatch(tuple(next(reader) for reader in readers))


class _ShardReader:
    """Reads the batches of one shard."""

    def __init__(
        self,
        rows: StreamedRows,
        shard: int,
        batch_rows: int,
        held_out: npt.NDArray[np.bool_],
    ) -> None:
        self.table = rows.table
        self.to_cells = rows.to_cells
        self.shard = shard
        self.batch_rows = batch_rows
        self.held_out = held_out
        self.pieces = rows.table.pieces(shard, rows.n_shards)
        features = max(1, len(rows.table.schema.features))
        self.capacity = max(batch_rows, BUFFER_CELLS // features)
        self._coming: Iterator[tuple[int, Any]] | None = None

    def batches(self, after: int) -> Iterator[_Part]:
        step, epoch = 0, 0
        while True:
            for number, chunks in enumerate(self._buffers(epoch)):
                rows = sum(chunk.rows for chunk in chunks)
                count = -(-rows // self.batch_rows)
                # Batches that were taken already need not be read again.
                if step + count > after:
                    cells, hidden = self._read(chunks, epoch)
                    order = torch.from_numpy(self._random(1, epoch, number).permutation(rows))
                    for at, chosen in enumerate(order.tensor_split(count), start=step + 1):
                        if at > after:
                            generator = torch.Generator()
                            generator.manual_seed(int(self._random(2, at).integers(2**62)))
                            yield _Part(cells.take(chosen), hidden[chosen], generator)
                step += count
            epoch += 1

    def _random(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([self.table.seed, self.shard, *numbers])

    def _buffers(self, epoch: int) -> Iterator[list[_Chunk]]:
        """Yield which chunks are read together."""
        chunks = [chunk for piece in self.pieces for chunk in self._chunks(piece)]
        if not self.table.source.ordered:
            order = self._random(3, epoch).permutation(len(chunks))
            chunks = [chunks[at] for at in order]
        buffer: list[_Chunk] = []
        rows = 0
        for chunk in chunks:
            if buffer and rows + chunk.rows > self.capacity:
                yield buffer
                buffer, rows = [], 0
            buffer.append(chunk)
            rows += chunk.rows
        if buffer:
            yield buffer

    def _chunks(self, piece: int) -> Iterator[_Chunk]:
        rows = self.table.rows[piece]
        of = 1
        if not self.table.source.ordered:
            of = max(1, -(-rows // max(self.batch_rows, self.capacity // BUFFER_CHUNKS)))
        for number in range(of):
            yield _Chunk(piece, number, of, len(range(number, rows, of)))

    def _read(self, chunks: Sequence[_Chunk], epoch: int) -> tuple[Cells, Tensor]:
        """Return the rows of some chunks, and which of their cells are held out."""
        cells, hidden = [], []
        for piece in dict.fromkeys(chunk.piece for chunk in chunks):
            numbers = [chunk.number for chunk in chunks if chunk.piece == piece]
            of = next(chunk.of for chunk in chunks if chunk.piece == piece)
            rows = self._rows_of(piece, numbers, of, epoch)
            encoded = self._take(piece, rows)
            cells.append(self.to_cells(encoded))
            mask = np.zeros(encoded.shape, dtype=bool)
            places = self.table.places
            first, last = np.searchsorted(places[:, 0], [piece, piece + 1])
            sampled = places[first:last, 1]
            at = np.searchsorted(rows, sampled)
            here = at < rows.size
            here[here] = rows[at[here]] == sampled[here]
            mask[at[here]] = self.held_out[first:last][here]
            hidden.append(torch.from_numpy(mask).to(cells[-1].observed.device))
        return Cells.join(cells), torch.cat(hidden)

    def _rows_of(self, piece: int, numbers: Sequence[int], of: int, epoch: int) -> IntArray:
        """Return which rows of a piece are in some of its chunks, in order."""
        rows = self.table.rows[piece]
        if len(numbers) == of:
            return np.arange(rows)
        dealt = self._random(4, epoch, piece).permutation(np.arange(rows) % of)
        return np.flatnonzero(np.isin(dealt, numbers))

    def _take(self, piece: int, rows: IntArray) -> FloatArray:
        """Return some rows of a piece, encoded."""
        parts, start = [], 0
        for table in self._tables(piece):
            first, last = np.searchsorted(rows, [start, start + table.num_rows])
            if first < last:
                whole = last - first == table.num_rows
                chosen = table if whole else table.take(rows[first:last] - start)
                parts.append(self.table.encode(chosen))
            start += table.num_rows
        if start != self.table.rows[piece]:
            raise InputError(
                f"A piece of {self.table.source.name} had {self.table.rows[piece]:,} rows before "
                f"and has {start:,} now. The table must not change while it is fitted on."
            )
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _tables(self, piece: int) -> Iterator[Any]:
        if not self.table.source.ordered:
            yield from self.table.source.read(piece)
            return
        # One after the other, from the first on; a new epoch, or a step back, begins again.
        if self._coming is None or piece < self._next:
            self._coming, self._next = self.table.source.stream(), 0
        for number, table in self._coming:
            self._next = number + 1
            if number == piece:
                yield table
                return
        self._coming = None

    _next = 0
