"""How a column is written, so that what is filled in looks like what is there."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from grapefill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CellType", "ColumnFormat"]

CellType = Literal["integer", "decimal", "boolean", "date", "datetime", "text", "empty"]


@dataclass(frozen=True)
class ColumnFormat:
    """What the cells of a column are, and how they are written.

    Parameters
    ----------
    type : {"integer", "decimal", "boolean", "date", "datetime", "text", "empty"}
        What the cells are.
    decimal, thousands : str
        The decimal mark, and the mark between thousands if there is one.
    decimals : int
        Digits after the decimal mark, as most cells of the column have them.
    fixed : bool
        Whether all cells have as many, so that zeros at the end are written.
    exponent : str
        An exponent of ten as the column writes it, such as ``"e+02"``; empty for none.
    plus : bool
        Whether a positive number has a sign.
    layout : str
        The parts of a date in their order, such as ``"%d.%m.%Y"``.
    offset : str
        The distance from UTC as the column writes it, such as ``"Z"``.
    words : tuple of two str
        The words for true and false.
    quoted : bool
        Whether the cells have quotes around them even where they need none.
    padding : str
        Space in front of the cells.
    levels : tuple of str
        Texts that are values of this column even where they stand for missing cells in others.

    Examples
    --------
    >>> price = ColumnFormat("decimal", decimal=",", decimals=2)
    >>> ColumnFormat.from_dict(price.to_dict()) == price
    True
    """

    type: CellType
    decimal: str = "."
    thousands: str = ""
    decimals: int = 0
    fixed: bool = True
    exponent: str = ""
    plus: bool = False
    layout: str = ""
    offset: str = ""
    words: tuple[str, str] = ("true", "false")
    quoted: bool = False
    padding: str = ""
    levels: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """What must not change between files with the same columns."""
        return {"integer": "number", "decimal": "number", "datetime": "date"}.get(
            self.type, self.type
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, only those that differ from the usual ones."""
        usual = ColumnFormat(self.type)
        plain = {k: v for k, v in asdict(self).items() if k == "type" or v != getattr(usual, k)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any] | str) -> ColumnFormat:
        """Rebuild a format from `to_dict`, or from the bare name of its type.

        Raises
        ------
        InputError
            If there is no such type.
        """
        values: dict[str, Any] = {"type": plain} if isinstance(plain, str) else dict(plain)
        known = {field.name for field in fields(cls)}
        values = {key: value for key, value in values.items() if key in known}
        if values.get("type") not in get_args(CellType):
            choices = ", ".join(map(repr, get_args(CellType)))
            raise InputError(
                f"A column cannot be read as {values.get('type')!r}. Choose one of {choices}."
            )
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**values)
