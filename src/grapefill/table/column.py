"""What is remembered of one column, and the way back from numbers to its values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import GrapefillError
from grapefill.table.arrays import EXACT_LIMIT
from grapefill.table.far import Ends
from grapefill.table.grain import to_grain
from grapefill.table.kinds import Form, Kind

if TYPE_CHECKING:
    from grapefill.table.arrays import Array, FloatArray

__all__ = ["Column"]


@dataclass(frozen=True)
class Column:
    """One column as it was at fit.

    Parameters
    ----------
    name : str
        The label used in messages.
    kind : Kind
        How the column is treated.
    dtype : str
        The container's name of its dtype, for messages.
    family : {"number", "text", "boolean", "datetime", "duration", "other"}
        The coarse type that a table to transform must share.
    form : Form
        How the cells were stored; decides the dtype `decode` returns.
    empty : bool
        Whether no cell had a value.
    lower, upper : float
        Range of the observed numbers as `Schema.encode` gives them.
    categories : tuple or None
        Observed values of a discrete column, or of an ordinal one over ordered categories;
        a cell's number is its position here.
    extent : tuple of int or None
        Smallest and largest integer (or count of `unit`) observed, exactly.
    unit : str
        Unit of a datetime or duration.
    grain, phase : int
        In which steps the counts of `unit` differ, the longest of a day, an hour, a minute and so
        on; every count is `phase` plus some of them. What is filled in is too.
    zoned : bool or None
        Whether datetimes had a time zone; None if that was not noted.
    scale : int
        Digits after the point of a decimal.
    note : str
        Why the column passes through.
    start : int or None
        What is subtracted from integers whose smallest is absurdly far out.
    ends : Ends or None
        The range of the column without numbers that are absurdly far out, which count as the
        nearest of the others; None without any. `lower` and `upper` are within it.

    Examples
    --------
    >>> whole = {"dtype": "int64", "family": "number", "form": Form.INTEGER, "extent": (18, 90)}
    >>> age = Column("age", Kind.ORDINAL, empty=False, lower=18.0, upper=90.0, **whole)
    >>> age.decode(np.array([17.2, 30.6, 200.0])).tolist()
    [18, 31, 90]
    >>> text = {"dtype": "str", "family": "text", "form": Form.TEXT, "upper": 1.0}
    >>> words = ("blue", "red")
    >>> color = Column("color", Kind.CATEGORICAL, empty=False, categories=words, **text)
    >>> color.decode(np.array([1.0, 0.0])).tolist()
    ['red', 'blue']
    >>> days = {"dtype": "datetime64[s]", "family": "datetime", "form": Form.DATETIME}
    >>> days |= {"extent": (0, 5 * 86_400), "unit": "s", "grain": 86_400}
    >>> day = Column("day", Kind.DATETIME, empty=False, upper=5 * 86_400.0, **days)
    >>> day.decode(np.array([100_000.0, 1e9])).astype(str).tolist()
    ['1970-01-02T00:00:00', '1970-01-06T00:00:00']
    """

    name: str
    kind: Kind
    dtype: str
    family: str
    form: Form
    empty: bool
    lower: float = 0.0
    upper: float = 0.0
    categories: tuple[Any, ...] | None = None
    extent: tuple[int, int] | None = None
    unit: str = ""
    grain: int = 1
    phase: int = 0
    zoned: bool | None = None
    scale: int = 0
    note: str = ""
    start: int | None = None
    ends: Ends | None = None

    @property
    def imputable(self) -> bool:
        """Whether the column becomes a feature node."""
        return self.kind is not Kind.PASSTHROUGH and not self.empty

    @property
    def useless(self) -> bool:
        """Whether it had no value at fit, and nobody asked for it to pass through."""
        return self.empty and self.kind is not Kind.PASSTHROUGH

    @property
    def origin(self) -> int:
        """What is subtracted from integers too large for float64, so that differences survive."""
        if self.start is not None:
            return self.start
        if self.extent is None or max(map(abs, self.extent)) <= EXACT_LIMIT:
            return 0
        return self.extent[0]

    def with_ends(self, ends: Ends) -> Column:
        """Return a column whose numbers that are far count as its ends."""
        start = self.start
        if start is not None:
            # Counted from the smallest, as without it.
            start += int(ends.low)
            ends = Ends(*(end - ends.low for end in ends))
        return replace(self, lower=ends.low, upper=ends.high, start=start, ends=ends)

    def within_ends(self, numbers: FloatArray) -> FloatArray:
        """Return numbers as `Schema.encode` gives them, none of them absurdly far out."""
        return numbers if self.ends is None else self.ends.within(numbers)

    def from_origin(self, number: Any) -> float:
        """Return a number counted from the origin, a whole one exactly."""
        if self.origin and float(number).is_integer():
            return float(int(number) - self.origin)
        return float(number) - self.origin

    def decode(self, numbers: FloatArray) -> Array:
        """Turn numbers into values of the column, always within what was observed.

        Parameters
        ----------
        numbers : ndarray of float64
            In the column's own scale: codes for a column with categories.

        Returns
        -------
        ndarray
            float64, int64, uint64, bool, datetime64, timedelta64 or object (text), ready for
            `Table.rebuild`.
        """
        numbers = np.asarray(numbers, dtype=np.float64)
        if np.isnan(numbers).any():
            raise GrapefillError(
                f"The values predicted for column {self.name!r} are not numbers, so training "
                "went astray. Fit again with a smaller learning rate."
            )
        inside = np.clip(numbers, self.lower, self.upper)
        if self.categories is not None:
            return _array_of(self.categories)[np.rint(inside).astype(np.int64)]
        if self.extent is not None:
            return self._whole_numbers(inside)
        if self.kind is Kind.ORDINAL:
            inside = np.rint(inside) + 0.0  # not -0
        elif self.form is Form.DECIMAL:
            inside = np.round(inside, self.scale)
        return inside

    def _whole_numbers(self, inside: FloatArray) -> Array:
        """Integers, or datetimes that count in integers."""
        assert self.extent is not None
        smallest, largest = self.extent
        dtype = np.dtype(np.uint64 if largest > np.iinfo(np.int64).max else np.int64)
        rounded = np.rint(inside)
        if largest - smallest <= EXACT_LIMIT:
            counts = rounded.astype(dtype) + dtype.type(self.origin)
        else:
            # Too wide for one float64 to hit both ends exactly: Python's integers can.
            exact = (self.origin + int(value) for value in rounded)
            least = min(smallest, self.origin + int(self.lower))
            counts = np.array([max(least, min(largest, value)) for value in exact], dtype=dtype)
        if self.unit:
            counts = to_grain(counts, self.grain, self.phase)
            letter = "m" if self.form is Form.DURATION else "M"
            return counts.view(f"{letter}8[{self.unit}]")
        return counts

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types only."""
        plain = asdict(self)
        plain["kind"] = self.kind.value
        plain["form"] = self.form.value
        for key in ("categories", "extent", "ends"):
            plain[key] = None if plain[key] is None else list(plain[key])
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Column:
        """Rebuild a column from `to_dict`."""
        fields = dict(plain)
        fields["kind"] = Kind(fields["kind"])
        fields["form"] = Form(fields["form"])
        for key in ("categories", "extent"):
            fields[key] = None if fields[key] is None else tuple(fields[key])
        # Models that were saved before have no ends.
        fields["ends"] = None if fields.get("ends") is None else Ends(*fields["ends"])
        return cls(**fields)


def _array_of(categories: tuple[Any, ...]) -> Array:
    """Categories as the array their type suggests; text stays Python text."""
    if all(isinstance(value, bool) for value in categories):
        return np.array(categories, dtype=bool)
    if any(isinstance(value, str | bool) for value in categories):
        result = np.empty(len(categories), dtype=object)
        result[:] = categories
        return result
    return np.array(categories)
