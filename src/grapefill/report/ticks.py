"""What stands at the ticks of an axis: few words, and short ones, so that they do not overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from grapefill.report.facts import ColumnFacts
    from grapefill.table.arrays import Array, FloatArray

__all__ = ["name_ticks"]

# Integers of more digits are rounded, longer texts cut.
MOST_DIGITS = 9
MOST_LETTERS = 12
_DAY = np.timedelta64(1, "D")


def name_ticks(column: ColumnFacts, numbers: FloatArray) -> tuple[FloatArray, list[str]]:
    """Return ticks for numbers of a column, each with words that no other one has.

    Parameters
    ----------
    column : ColumnFacts
        The column, not one of categories.
    numbers : ndarray
        Where ticks may be, in rising order.

    Returns
    -------
    places : ndarray
        Where they are: a tick that would be called like another one is left out.
    words : list of str
        What they are called.
    """
    values = column.column.decode(numbers)
    if values.dtype.kind == "M":
        words = _moments(values)
    elif values.dtype.kind == "m":
        words = column.words(numbers)
    else:
        origin = column.column.origin
        # Between whole numbers, where means are, decoded ones would be beside their places.
        words = [
            _short(value)
            if isinstance(value, str) or float(number).is_integer()
            else f"{number + origin:.4g}"
            for value, number in zip(values.tolist(), numbers.tolist(), strict=True)
        ]
    first = {word: at for at, word in reversed(list(enumerate(words)))}
    kept = sorted(first.values())
    return numbers[kept], [words[at] for at in kept]


def _short(value: float | str) -> str:
    text = str(value)
    if isinstance(value, str):
        return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"
    return text if isinstance(value, int) and len(text) <= MOST_DIGITS else f"{value:.4g}"


def _moments(values: Array) -> list[str]:
    """Return times with the parts in which they differ: days, or hours if they are close."""
    span = values.max() - values.min()
    if span >= 3 * _DAY or not span:
        return [str(value) for value in values.astype("M8[D]")]
    seconds = [str(value).replace("T", " ") for value in values.astype("M8[s]")]
    if span >= np.timedelta64(1, "m"):
        seconds = [text[:-3] for text in seconds]
    same_day = len({text[:10] for text in seconds}) == 1
    # The year, and the day where it is one and the same, take more room than they are worth.
    return [text[11:] if same_day else text[5:] for text in seconds]
