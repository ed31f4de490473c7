"""Texts that stand for a missing cell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ALWAYS", "AMONG_NUMBERS", "DOUBTFUL", "spellings"]

ALWAYS = frozenset(
    {
        "", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NaN", "nan", "NAN", "-NaN",
        "-nan", "NaT", "NULL", "Null", "null", "None", "?", "1.#IND", "-1.#IND", "1.#QNAN",
        "-1.#QNAN", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!",
    }
)  # fmt: skip
"""Marks in every column."""

DOUBTFUL = frozenset({"NA", "None"})
"""Marks that may be values of a column of words: a country, no degree."""

AMONG_NUMBERS = frozenset(
    {
        "-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "*", "na", "Na", "n.a.", "N.A.",
        "n.d.", "nil", "none", "NONE", "missing", "Missing", "MISSING", "unknown", "Unknown",
        "UNKNOWN", "not available", "Not available",
    }
)  # fmt: skip
"""Marks where all else in the column is numbers or dates; elsewhere they may be categories."""

_MOST_ZEROS = 6
_DECIMAL = re.compile(r"-?\d+[.,]\d+")


def spellings(marks: Iterable[str]) -> frozenset[str]:
    """Return the caller's own marks with the ways in which a column may write such a number.

    Examples
    --------
    >>> sorted(spellings(["-9"]))[:4]
    ['-9', '-9,0', '-9,00', '-9,000']
    >>> sorted(spellings(["-99.9"]))[:4]
    ['-99,9', '-99,90', '-99,9000', '-99,90000']
    >>> "-99.900" in spellings(["-99.9"]), "-99,900" in spellings(["-99.9"])
    (True, False)
    """
    found = set()
    for mark in marks:
        text = mark.strip()
        found.add(text)
        if text.removeprefix("-").isdecimal():
            found |= {
                f"{text}{point}{'0' * zeros}"
                for point in ".,"
                for zeros in range(1, _MOST_ZEROS + 1)
            }
        elif _DECIMAL.fullmatch(text):
            whole, behind = re.split("[.,]", text)
            found |= {
                f"{whole}{point}{behind}{'0' * zeros}"
                for point in ".,"
                for zeros in range(_MOST_ZEROS)
                # Three digits behind the other mark may be thousands: 99,900 is not 99.9.
                if len(behind) + zeros != 3 or not zeros or point == text[len(whole)]
            }
    return frozenset(found)
