"""What a column means (`Kind`) and how its container stores it (`Storage`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Form", "Kind", "Storage"]


class Kind(StrEnum):
    """How a column is treated as a feature node.

    Examples
    --------
    >>> Kind("ordinal")
    <Kind.ORDINAL: 'ordinal'>
    >>> Kind.BOOLEAN.is_discrete, Kind.ORDINAL.is_discrete
    (True, False)
    """

    CONTINUOUS = "continuous"
    ORDINAL = "ordinal"
    CATEGORICAL = "categorical"
    BOOLEAN = "boolean"
    DATETIME = "datetime"
    PASSTHROUGH = "passthrough"

    @property
    def is_discrete(self) -> bool:
        """Whether the column's numbers are codes of categories without an order."""
        return self in (Kind.CATEGORICAL, Kind.BOOLEAN)


class Form(StrEnum):
    """How the cells of a column are stored, the same for every container."""

    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    TEXT = "text"
    CATEGORY = "category"
    DATETIME = "datetime"
    DURATION = "duration"
    EMPTY = "empty"
    OTHER = "other"

    @property
    def is_numeric(self) -> bool:
        """Whether the cells can be read as numbers (booleans as 0 and 1)."""
        return self in (Form.INTEGER, Form.FLOAT, Form.DECIMAL, Form.BOOLEAN)


_FAMILIES = {
    Form.INTEGER: "number",
    Form.FLOAT: "number",
    Form.DECIMAL: "number",
    Form.BOOLEAN: "boolean",
    Form.TEXT: "text",
    Form.DATETIME: "datetime",
    Form.DURATION: "duration",
}


@dataclass(frozen=True)
class Storage:
    """Everything about a column that its dtype (or, for objects, its values) tells.

    Parameters
    ----------
    form : Form
        How the cells are stored.
    dtype : str
        The container's own name of the dtype, for messages.
    unit : str
        Unit of a datetime or duration as numpy spells it, such as ``"ns"`` or ``"D"``.
    zoned : bool
        Whether datetimes have a time zone.
    scale : int
        Digits after the point of a decimal.
    float_dtype : str
        Width of a float column: a missing mark is compared at this precision.
    declared : tuple or None
        Categories the dtype itself lists, in its order.
    ordered : bool
        Whether the declared categories stand in an order, so that "ordinal" is possible.
    order_meant : bool
        Whether the caller said so; an Enum is in some order in any case.
    closed : bool
        Whether a category that is not declared cannot be stored without harm.
    holes_make_floats : bool
        Whether the container turns integers into floats when a cell is missing.
    reason : str
        Why cells of form ``OTHER`` cannot be imputed.
    """

    form: Form
    dtype: str
    unit: str = ""
    zoned: bool = False
    scale: int = 0
    float_dtype: str = "float64"
    declared: tuple[object, ...] | None = None
    ordered: bool = False
    order_meant: bool = False
    closed: bool = False
    holes_make_floats: bool = False
    reason: str = ""

    @property
    def family(self) -> str:
        """The coarse type that must not change between fit and transform."""
        if self.form is Form.CATEGORY:
            return _family_of_categories(self.declared or ())
        return _FAMILIES.get(self.form, "other")


def _family_of_categories(categories: tuple[object, ...]) -> str:
    """Family of a category dtype: that of its values, since either may replace the other."""
    if categories and all(isinstance(value, bool) for value in categories):
        return "boolean"
    if categories and all(isinstance(value, int | float) for value in categories):
        return "number"
    return "text"
