"""Kinds from dtypes, and what each kind of column remembers.

The rules, in one place:

===========================================================  =============================
cells                                                        kind
===========================================================  =============================
floats, decimals                                             continuous
pandas floats, some missing, the rest all whole numbers      ordinal: pandas turns integers
                                                             with holes into floats
integers of any width                                        ordinal
booleans, also Python objects                                boolean
text, unordered categories                                   categorical
ordered categories of pandas and of pyarrow                  ordinal over their order; those of
                                                             a polars Enum only on request
datetimes, dates, durations                                  datetime
Python objects: only integers / numbers                      ordinal / continuous
anything else (lists, structs, bytes, times, mixtures)       passthrough
===========================================================  =============================

Two rules find columns that name rows instead of describing them; both make passthrough:

- text (not a declared category) with at least 20 observed values, more than half of them
  distinct: free text or an identifier;
- integers with nothing missing, all distinct, in at least 20 rows, in a column called ``id``,
  ``something_id``, ``somethingId``, ``id_something``, ``index``, ``Unnamed: 0``, ``uuid``,
  ``row`` or ``rownum``.

A kind the caller gives wins over all of these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import InputError
from grapefill.table.arrays import EXACT_LIMIT, Array, FloatArray, counts_in_unit, offsets
from grapefill.table.column import Column
from grapefill.table.grain import find_grain
from grapefill.table.kinds import Form, Kind
from grapefill.table.text import some_of

if TYPE_CHECKING:
    from grapefill.table.cells import ColumnCells

__all__ = ["WholeColumn", "first_infinity", "infer_column", "infinity_message"]

MINIMUM_FOR_IDENTIFIER = 20

_IDENTIFIER_NAME = re.compile(
    r"(?i:id|.*_id|id_.*|index|unnamed: 0|uuid|row|row_?num(ber)?)|.*[a-z](Id|ID)"
)

_KINDS: dict[Form, tuple[Kind, ...]] = {
    Form.INTEGER: (Kind.ORDINAL, Kind.CONTINUOUS, Kind.CATEGORICAL, Kind.BOOLEAN),
    Form.FLOAT: (Kind.CONTINUOUS, Kind.ORDINAL, Kind.CATEGORICAL, Kind.BOOLEAN),
    Form.DECIMAL: (Kind.CONTINUOUS,),
    Form.BOOLEAN: (Kind.BOOLEAN, Kind.CATEGORICAL),
    Form.TEXT: (Kind.CATEGORICAL,),
    Form.CATEGORY: (Kind.CATEGORICAL,),
    Form.DATETIME: (Kind.DATETIME,),
    Form.DURATION: (Kind.DATETIME,),
    Form.EMPTY: tuple(Kind),
    Form.OTHER: (),
}
"""Kinds a form allows, the usual one first; passthrough always is."""


@dataclass(frozen=True)
class WholeColumn:
    """What a digest of a long column does not tell.

    Parameters
    ----------
    rows, observed : int
        How many cells there are, and how many of them have a value.
    all_distinct : bool
        Whether they are integers, none missing and none there twice.
    """

    rows: int
    observed: int
    all_distinct: bool


def infer_column(
    name: str,
    cells: ColumnCells,
    *,
    kind: Kind | None,
    named: bool,
    whole: WholeColumn | None = None,
) -> Column:
    """Describe a column.

    Parameters
    ----------
    name : str
        The column's label.
    cells : ColumnCells
        Its cells.
    kind : Kind or None
        The kind the caller wants, None to infer it.
    named : bool
        Whether the label is the caller's: only such a name can tell an identifier.
    whole : WholeColumn or None
        Of which column the cells are a digest; None if they are the column.

    Returns
    -------
    Column

    Raises
    ------
    InputError
        For infinities, complex numbers, and a kind the cells do not allow.
    """
    storage = cells.storage
    if storage.dtype.startswith("complex"):
        raise InputError(
            f"Complex data not supported: column {name!r} is {storage.dtype}. Pass the real and "
            "the imaginary part as two columns."
        )
    if kind is not None:
        _require_possible(name, cells, kind)
    if kind is Kind.PASSTHROUGH:
        return _describe(name, cells, kind)
    if storage.form is Form.OTHER:
        return _describe(name, cells, Kind.PASSTHROUGH, note=storage.reason)
    _require_finite(name, cells)
    if cells.missing.all():
        return _describe(name, cells, kind or _usual_kind(cells))
    inferred = kind is None
    if whole is None:
        observed = int(np.count_nonzero(~cells.missing))
        numbered = inferred and named and _is_row_number(name, cells)
    else:
        observed = whole.observed
        numbered = (
            inferred
            and whole.all_distinct
            and whole.rows >= MINIMUM_FOR_IDENTIFIER
            and _IDENTIFIER_NAME.fullmatch(name) is not None
        )
    if numbered:
        return _describe(name, cells, Kind.PASSTHROUGH, note="identifier")
    kind = kind or _usual_kind(cells)
    facts = _facts(name, cells, kind)
    if inferred and storage.form is Form.TEXT and is_free_text(observed, len(facts["categories"])):
        return _describe(name, cells, Kind.PASSTHROUGH, note="free text or identifier")
    return _describe(name, cells, kind, **facts)


def first_infinity(cells: ColumnCells) -> int | None:
    """Return the first row with an infinite number, None if there is none."""
    if cells.storage.form is not Form.FLOAT:
        return None
    infinite = np.isinf(cells.numbers())
    if not infinite.any():
        return None
    rows = np.flatnonzero(infinite & ~cells.missing)
    return int(rows[0]) if len(rows) else None


def _describe(name: str, cells: ColumnCells, kind: Kind, **facts: Any) -> Column:
    """Put the column together."""
    storage = cells.storage
    return Column(
        name=name,
        kind=kind,
        dtype=storage.dtype,
        family=storage.family,
        form=storage.form,
        empty=bool(cells.missing.all()),
        scale=storage.scale,
        **facts,
    )


def _usual_kind(cells: ColumnCells) -> Kind:
    """Return the kind the dtype suggests."""
    storage = cells.storage
    if storage.order_meant:
        return Kind.ORDINAL
    if storage.holes_make_floats and cells.missing.any() and not cells.missing.all():
        numbers = cells.numbers()[~cells.missing]
        if _are_whole(numbers) and np.abs(numbers).max() <= EXACT_LIMIT:
            return Kind.ORDINAL
    return _KINDS[storage.form][0]


def _are_whole(numbers: FloatArray) -> bool:
    return bool((np.rint(numbers) == numbers).all())


def is_free_text(observed: int, distinct: int) -> bool:
    """Apply the first identifier rule of this module to a number of texts."""
    return observed >= MINIMUM_FOR_IDENTIFIER and distinct > observed / 2


def _is_row_number(name: str, cells: ColumnCells) -> bool:
    """Apply the second identifier rule of this module."""
    if cells.storage.form is not Form.INTEGER or not _IDENTIFIER_NAME.fullmatch(name):
        return False
    if len(cells.missing) < MINIMUM_FOR_IDENTIFIER or cells.missing.any():
        return False
    return len(np.unique(cells.integers())) == len(cells.missing)


def _require_finite(name: str, cells: ColumnCells) -> None:
    row = first_infinity(cells)
    if row is not None:
        raise InputError(infinity_message(name, row))


def infinity_message(name: str, row: int) -> str:
    """Say where an infinity stands, with scikit-learn's phrase."""
    return (
        f"Input X contains infinity (inf) in column {name!r}, row {row}. Replace infinite "
        "values by NaN if they stand for missing cells, or by a finite number."
    )


def _require_possible(name: str, cells: ColumnCells, kind: Kind) -> None:
    """Refuse a kind the cells cannot have."""
    storage = cells.storage
    allowed = {Kind.PASSTHROUGH, *_KINDS[storage.form]}
    if storage.form is Form.CATEGORY and storage.ordered:
        allowed.add(Kind.ORDINAL)
    if kind not in allowed:
        choices = ", ".join(repr(each.value) for each in Kind if each in allowed)
        raise InputError(
            f"Column {name!r} of dtype {storage.dtype} cannot be {kind.value!r}. Choose one of "
            f"{choices}, or convert the column first."
        )


def _facts(name: str, cells: ColumnCells, kind: Kind) -> dict[str, Any]:
    """Collect what the kind needs to know of the observed cells."""
    form = cells.storage.form
    if kind.is_discrete or form is Form.CATEGORY:
        categories = tuple(cells.distinct())
        if kind is Kind.BOOLEAN and not set(categories) <= {0, 1}:
            raise InputError(
                f"Column {name!r} cannot be 'boolean': it holds {some_of(categories)}. Only 0 and "
                "1 can be read as false and true."
            )
        return {"categories": categories, "lower": 0.0, "upper": float(len(categories) - 1)}
    observed = ~cells.missing
    if kind is Kind.DATETIME:
        unit = cells.storage.unit
        counts = counts_in_unit(cells.instants()[observed], unit)
        grain, phase = find_grain(counts, unit)
        steps = {"unit": unit, "grain": grain, "phase": phase}
        return _extent_facts(counts) | steps | {"zoned": cells.storage.zoned}
    if form is Form.INTEGER:
        return _extent_facts(cells.integers()[observed])
    numbers = cells.numbers()[observed]
    if kind is Kind.ORDINAL and not _are_whole(numbers):
        odd = numbers[np.rint(numbers) != numbers][0]
        raise InputError(
            f"Column {name!r} cannot be 'ordinal': it holds {odd:g}, which is not a whole "
            "number. Use 'continuous', or round the column."
        )
    return {"lower": float(numbers.min()), "upper": float(numbers.max())}


def _extent_facts(counts: Array) -> dict[str, Any]:
    """Exact range of integers, and the same in encoded numbers."""
    extent = (int(counts.min()), int(counts.max()))
    bounds = np.array(extent, dtype=counts.dtype)
    origin = 0 if max(map(abs, extent)) <= EXACT_LIMIT else extent[0]
    lower, upper = offsets(bounds, origin).tolist()
    return {"extent": extent, "lower": lower, "upper": upper}
