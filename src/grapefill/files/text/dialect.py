"""How a delimited file is written: what separates cells and rows, and what encloses a cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grapefill.errors import ConfigError

__all__ = ["DELIMITERS", "Dialect", "check_character", "find_newline"]

DELIMITERS = (",", ";", "\t", "|")
"""What is tried when the caller names no delimiter, in the order of preference."""


@dataclass(frozen=True)
class Dialect:
    r"""The characters with a meaning in a delimited file.

    Parameters
    ----------
    delimiter : str
        Separates the cells of a row.
    quote : str
        Encloses a cell that holds a delimiter or a line end; empty for none.
    newline : str
        The last character of a line end: ``"\n"``, or ``"\r"`` where that stands alone.

    Examples
    --------
    >>> Dialect(delimiter=";").bytes
    (np.uint8(59), np.uint8(34), np.uint8(10))
    """

    delimiter: str = ","
    quote: str = '"'
    newline: str = "\n"

    @property
    def bytes(self) -> tuple[np.uint8, np.uint8 | None, np.uint8]:
        """Delimiter, quote and newline as bytes."""
        quote = np.uint8(ord(self.quote)) if self.quote else None
        return np.uint8(ord(self.delimiter)), quote, np.uint8(ord(self.newline))


def check_character(name: str, character: str) -> str:
    """Return a delimiter or quote that the caller gave, if it can be one.

    Raises
    ------
    ConfigError
        If it is not a single ASCII character, or one that a cell or a line end is made of.
    """
    spelled = {"tab": "\t", r"\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}
    character = spelled.get(character, character)
    if len(character) != 1 or not character.isascii() or character.isalnum() or character in "\r\n":
        raise ConfigError(
            f"{name} must be one ASCII character that is neither letter nor digit, such as ',' or "
            f"'tab', got {character!r}."
        )
    return character


def find_newline(content: bytes) -> str:
    r"""Return the character that ends a line; a lone ``\r`` only where there is no ``\n``."""
    return "\r" if b"\n" not in content and b"\r" in content else "\n"
