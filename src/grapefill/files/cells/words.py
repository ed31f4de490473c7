"""Booleans as words."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["describe_words", "read_words"]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")

_PAIRS = (("true", "false"), ("yes", "no"), ("y", "n"), ("t", "f"))
# One of these alone is not enough: it may be an abbreviation of anything.
_LETTERS = ("y", "n", "t", "f")


def describe_words(found: Sequence[str]) -> tuple[str, str] | None:
    """Return the words for true and false that a column uses, None if it holds other words.

    Parameters
    ----------
    found : sequence of str
        Texts of the column, repeated as often as they occur.

    Examples
    --------
    >>> describe_words(["Yes", "Yes", "YES"]), describe_words(["t", "f"]), describe_words(["t"])
    (('Yes', 'No'), ('t', 'f'), None)
    """
    counts = Counter(found)
    lowered = {text.lower() for text in counts}
    if not lowered:
        return None
    for pair in _PAIRS:
        if lowered <= set(pair) and not (len(lowered) == 1 and lowered <= set(_LETTERS)):
            words = []
            for word, other in (pair, pair[::-1]):
                seen = {text: count for text, count in counts.items() if text.lower() == word}
                like = {text: count for text, count in counts.items() if text.lower() == other}
                usual = max(seen or like, key=lambda text: counts[text])
                words.append(usual if seen else _in_case_of(usual, word))
            return words[0], words[1]
    return None


def _in_case_of(model: str, word: str) -> str:
    if model.isupper():
        return word.upper()
    return word.capitalize() if model[0].isupper() else word


def read_words(texts: Any, words: tuple[str, str]) -> tuple[Any, Any]:
    """Return booleans, null where missing, and where a text is neither word in any case."""
    lowered = pc.utf8_lower(texts)
    known = pa.array([words[0].lower(), words[1].lower()])
    at = pc.index_in(lowered, value_set=known)
    bad = pc.and_(pc.is_null(at), pc.is_valid(texts)).to_numpy()
    return pc.equal(at, 0), bad if bad.any() else None
