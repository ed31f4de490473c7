"""A column of a pyarrow table, or of a pandas table that stores it with pyarrow."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.files.orders import common_order, with_one_dictionary
from grapefill.files.views import plain_type
from grapefill.table.arrays import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    cast_numbers,
    counts_in_unit,
    take_or_minus_one,
)
from grapefill.table.cells import ColumnCells
from grapefill.table.decimals import to_decimals
from grapefill.table.kinds import Form, Storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.marks import Mark

__all__ = ["ArrowCells", "arrow_cells", "take_rows"]

# This module is loaded only for a pyarrow object; pyarrow has no types, hence Any.
pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")


class ArrowCells(ColumnCells):
    """A chunked pyarrow array of any type but dictionary.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        The cells.
    mark : Mark
        A value that counts as missing.
    """

    def __init__(self, column: Any, mark: Mark) -> None:
        super().__init__(mark)
        self.column = column
        self.type = column.type

    @cached_property
    def storage(self) -> Storage:
        """Return how the cells are stored."""
        kind, name = self.type, str(self.type)
        types = pa.types
        if types.is_boolean(kind):
            return Storage(Form.BOOLEAN, name)
        if types.is_integer(kind):
            return Storage(Form.INTEGER, name)
        if types.is_floating(kind):
            return Storage(Form.FLOAT, name, float_dtype=np.dtype(kind.to_pandas_dtype()).name)
        if types.is_decimal(kind):
            return Storage(Form.DECIMAL, name, scale=kind.scale)
        if _is_text(kind):
            return Storage(Form.TEXT, name)
        if types.is_timestamp(kind):
            return Storage(Form.DATETIME, name, unit=kind.unit, zoned=kind.tz is not None)
        if types.is_date(kind):
            return Storage(Form.DATETIME, name, unit="D")
        if types.is_duration(kind):
            return Storage(Form.DURATION, name, unit=kind.unit)
        if types.is_null(kind):
            return Storage(Form.EMPTY, name)
        return Storage(Form.OTHER, name, reason=f"values of type {name}")

    def absent(self) -> BoolArray:
        """Return where there is no value, or NaN."""
        if pa.types.is_floating(self.type):
            return np.isnan(self.numbers())
        return _to_numpy(self.column.is_null()).astype(bool)

    def numbers(self) -> FloatArray:
        """Return numeric cells as float64."""
        if pa.types.is_boolean(self.type):
            return _to_numpy(pc.fill_null(self.column, False)).astype(np.float64)
        # safe=False: integers beyond 2^53 are meant to be rounded here.
        floats = self.column.cast(pa.float64(), safe=False)
        return _to_numpy(pc.fill_null(floats, np.nan))

    def integers(self) -> Array:
        """Return integer cells exactly."""
        wide = pa.uint64() if pa.types.is_unsigned_integer(self.type) else pa.int64()
        return _to_numpy(pc.fill_null(self.column.cast(wide), 0))

    def instants(self) -> Array:
        """Return datetimes in UTC, or durations."""
        letter = "m" if pa.types.is_duration(self.type) else "M"
        days = self.column
        if pa.types.is_date(self.type):
            days = self.column.cast(pa.date32()).cast(pa.int32())
        counts = pc.fill_null(days.cast(pa.int64()), 0)
        return _to_numpy(counts).view(f"{letter}8[{self.storage.unit}]")

    def match_text(self, categories: Sequence[object]) -> IntArray:
        """Return positions among `categories`, -1 where not there."""
        known = pa.array([str(value) for value in categories], type=pa.large_string())
        at = pc.index_in(self.column.cast(pa.large_string()), value_set=known)
        return _to_numpy(pc.fill_null(at, -1)).astype(np.int64)

    def distinct_text(self) -> list[Any]:
        """Return the observed values in declared or sorted order."""
        found = pc.unique(self.column.cast(pa.large_string())).to_pylist()
        return sorted(value for value in found if value is not None and value != self.mark)

    def filled(self, positions: IntArray, values: Array) -> Any:
        """Return the column with some cells replaced."""
        order = np.argsort(positions, kind="stable")
        mask = np.zeros(len(self.column), dtype=bool)
        mask[positions] = True
        working = self._replaceable_type()
        result = pc.replace_with_mask(
            self.column.cast(working),
            pa.array(mask),
            self._native(values[order], self.type).cast(working),
        )
        return result.cast(self.type)

    def emptied(self, positions: IntArray) -> Any:
        """Return the column with some cells missing."""
        gone = np.zeros(len(self.column), dtype=bool)
        gone[positions] = True
        return take_rows(self.column, pa.array(np.arange(len(gone)), mask=gone))

    def _replaceable_type(self) -> Any:
        """Return an equivalent type for those that no pyarrow kernel replaces cells of."""
        if pa.types.is_duration(self.type):
            return pa.int64()
        return pa.large_string() if self.type == pa.string_view() else self.type

    def _native(self, values: Array, kind: Any) -> Any:
        """Values as an arrow array of the column's type."""
        form = self.storage.form
        if form in (Form.INTEGER, Form.FLOAT):
            return pa.array(cast_numbers(values, np.dtype(kind.to_pandas_dtype())), type=kind)
        if form is Form.DECIMAL:
            return pa.array(to_decimals(values, kind.precision, kind.scale), type=kind)
        if form is Form.BOOLEAN:
            return pa.array(values.astype(bool), type=kind)
        if form is Form.TEXT:
            return pa.array(values.tolist(), type=kind)
        counts = pa.array(counts_in_unit(values, self.storage.unit))
        if pa.types.is_date(kind):
            return counts.cast(pa.int32()).cast(pa.date32()).cast(kind)
        return counts.cast(kind)

    def replaced(self, positions: IntArray, values: Array) -> Any:
        """Return a column of the values' own dtype."""
        cells = np.full(len(self.column), None, dtype=object)
        cells[positions] = values.tolist()
        kind = pa.array(values if values.dtype != object else values.tolist()).type
        return pa.chunked_array([pa.array(cells.tolist(), type=kind)])


class ArrowDictionaryCells(ArrowCells):
    """A dictionary-encoded pyarrow column, that is, a category."""

    def __init__(self, column: Any, mark: Mark, *, order_meant: bool) -> None:
        super().__init__(column, mark)
        self.order_meant = order_meant

    @cached_property
    def _encoded(self) -> tuple[IntArray, list[Any]]:
        """Indices into one dictionary (-1 where missing) and its values."""
        whole = with_one_dictionary(self.column).combine_chunks()
        if isinstance(whole, pa.ChunkedArray):
            whole = whole.chunk(0)
        values = whole.dictionary.to_pylist()
        indices = _to_numpy(pc.fill_null(whole.indices.cast(pa.int64()), -1))
        holes = np.array([-1 if v is None else at for at, v in enumerate(values)], dtype=np.int64)
        return take_or_minus_one(holes, indices), values

    @cached_property
    def storage(self) -> Storage:
        """Return how the cells are stored."""
        name = str(self.type)
        kind = self.type.value_type
        plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, _is_text)
        if not any(test(kind) for test in plain):
            return Storage(Form.OTHER, name, reason=f"values of type {name}")
        declared = tuple(dict.fromkeys(v for v in self._encoded[1] if v is not None))
        ordered = bool(self.type.ordered) and self._has_order
        return Storage(
            Form.CATEGORY,
            name,
            declared=declared,
            ordered=ordered,
            order_meant=ordered and self.order_meant,
            closed=bool(self.type.ordered),
        )

    @property
    def _has_order(self) -> bool:
        """Whether the dictionaries of all chunks have an order in common."""
        chunks = self.column.chunks
        return not chunks or common_order(chunk.dictionary for chunk in chunks) is not None

    def absent(self) -> BoolArray:
        """Return where there is no value, or NaN."""
        return self._encoded[0] < 0

    def match_text(self, categories: Sequence[object]) -> IntArray:
        """Return positions among `categories`, -1 where not there."""
        indices, values = self._encoded
        codes = {value: code for code, value in enumerate(categories)}
        table = np.array([codes.get(value, -1) for value in values], dtype=np.int64)
        return take_or_minus_one(table, indices)

    def distinct_text(self) -> list[Any]:
        """Return the observed values in declared or sorted order."""
        indices, values = self._encoded
        found = {values[at] for at in np.unique(indices[~self.missing])}
        declared = self.storage.declared or ()
        present = [value for value in declared if value in found]
        # An unordered dictionary lists its values as they came, which is no order at all.
        return present if self.storage.ordered else sorted(present)

    def filled(self, positions: IntArray, values: Array) -> Any:
        """Return the column with some cells replaced."""
        indices, dictionary = self._encoded
        dictionary = list(dict.fromkeys([*dictionary, *values.tolist()]))
        at = {value: position for position, value in enumerate(dictionary)}
        original = self._encoded[1]
        moved = np.array([at[value] for value in original], dtype=np.int64)
        result = take_or_minus_one(moved, indices)
        result[positions] = [at[value] for value in values.tolist()]
        encoded = pa.array(result, type=self.type.index_type, mask=result < 0)
        known = pa.array(dictionary, type=self.type.value_type)
        array = pa.DictionaryArray.from_arrays(encoded, known, ordered=self.type.ordered)
        return pa.chunked_array([array])


def arrow_cells(column: Any, mark: Mark, *, order_meant: bool = True) -> ArrowCells:
    """Return the cells of a chunked array of any type; see `Storage` for the order."""
    if pa.types.is_dictionary(column.type):
        return ArrowDictionaryCells(column, mark, order_meant=order_meant)
    return ArrowCells(column, mark)


def take_rows(column: Any, rows: Any) -> Any:
    """Return some cells of a chunked array of any type, null where a row is null."""
    # Views are the one type without a kernel for it.
    return column.cast(plain_type(column.type)).take(rows).cast(column.type)


def _is_plain_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_text(kind: Any) -> bool:
    return _is_plain_text(kind) or kind == pa.string_view()


def _to_numpy(column: Any) -> Array:
    if isinstance(column, pa.ChunkedArray):
        array: Array = column.to_numpy()
        return array
    flat: Array = column.to_numpy(zero_copy_only=False)
    return flat
