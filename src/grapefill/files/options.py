"""What a caller may say about a file that is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grapefill.errors import ConfigError
from grapefill.files.cells.marks import ALWAYS, spellings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grapefill.files.cells.formats import ColumnFormat

__all__ = ["ReadOptions"]


@dataclass(frozen=True)
class ReadOptions:
    """Everything about a file that is not found out, or that the caller knows better.

    Parameters
    ----------
    encoding : str or None
        The encoding of text, as Python calls it.
    delimiter : str or None
        What separates the cells of a row; ``"tab"`` is understood.
    quote : str
        What encloses a cell; empty if quotes are ordinary characters.
    header : bool
        Whether the first row holds the names of the columns.
    decimal : {".", ",", None}
        The decimal mark.
    day_first : bool or None
        Whether the day stands before the month.
    na : tuple of str
        Further marks for missing cells.
    usual_na : bool
        Whether empty cells, ``NA``, ``NaN``, ``null`` and the like are missing. Empty cells are in
        any case.
    sheet : str or None
        The sheet of a workbook.
    types : mapping of str to ColumnFormat
        What columns hold.
    """

    encoding: str | None = None
    delimiter: str | None = None
    quote: str = '"'
    header: bool = True
    decimal: str | None = None
    day_first: bool | None = None
    na: tuple[str, ...] = ()
    usual_na: bool = True
    sheet: str | None = None
    types: Mapping[str, ColumnFormat] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise ConfigError(f"decimal must be '.' or ',', got {self.decimal!r}.")

    @property
    def marks(self) -> frozenset[str]:
        """All texts that stand for a missing cell in any column."""
        return spellings(self.na) | (ALWAYS if self.usual_na else {""})
