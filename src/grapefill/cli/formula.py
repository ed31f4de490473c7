"""Names of columns in the formulas of ``pool``, and what to say of a formula that fails."""

from __future__ import annotations

import ast
import keyword
import re
from importlib import import_module
from typing import TYPE_CHECKING

from grapefill.cli.names import listed
from grapefill.settings import closest_word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["as_term", "column_of", "explain", "in_words"]

# How a formula writes a name that is no word, and how patsy calls one that is not there.
QUOTED = re.compile(r"""Q\(\s*((?:"(?:[^"\\]|\\.)*")|(?:'(?:[^'\\]|\\.)*'))\s*\)""")
NOT_THERE = re.compile(r"no data named (.*) found")


def column_of(term: str) -> str:
    """Return the column that a side of a formula names.

    Examples
    --------
    >>> column_of(' Q("Kunde?") '), column_of("price ")
    ('Kunde?', 'price')
    """
    match = QUOTED.fullmatch(term.strip())
    return str(ast.literal_eval(match[1])) if match else term.strip()


def as_term(name: str) -> str:
    """Return how a formula writes the name of a column.

    Examples
    --------
    >>> as_term("area"), as_term("Einkommen (€)")
    ('area', 'Q("Einkommen (€)")')
    """
    if name.isidentifier() and not keyword.iskeyword(name):
        return name
    quoted = f'"{name}"' if not set('"\\') & set(name) and name.isprintable() else repr(name)
    return f"Q({quoted})"


def in_words(term: str, words: Mapping[str, tuple[str, str]]) -> str:
    """Return a term of a fitted formula with the words that a file has for true and false.

    Parameters
    ----------
    term : str
        The term.
    words : dict of str to (str, str)
        By column, the words for true and false.

    Examples
    --------
    >>> in_words("C(owner)[T.True]:area", {"owner": ("yes", "no")})
    'C(owner)[T.yes]:area'
    """
    for name, (true, false) in words.items():
        spellings = (as_term(name), f"Q({name!r})", f'Q("{name}")', name)
        spelt = "|".join(map(re.escape, spellings))
        factor = rf"(?<![\w.])(?:{spelt}|C\((?:{spelt})(?:,[^\[\]]*)?\))\[(?:[TS]\.)?"
        for value, word in (("True", true), ("False", false)):
            term = re.sub(rf"({factor}){value}\]", rf"\g<1>{word}]", term)
    return term


def explain(error: Exception, formula: str, columns: Sequence[str]) -> str:
    """Return what is wrong with a formula, and what to write instead.

    Parameters
    ----------
    error : Exception
        What fitting it raised.
    formula : str
        The formula.
    columns : sequence of str
        The columns of the table.
    """
    cause = error.__cause__
    if isinstance(cause, NameError):
        found = NOT_THERE.search(str(cause))
        name = cause.name or (str(ast.literal_eval(found[1])) if found else str(cause))
        # A function without its 'np.' is no misspelt column.
        near = None if hasattr(import_module("numpy"), name) else _nearest(name, columns)
        if near is not None and as_term(near) == near:
            return f"there is no column {name!r}. Did you mean {near!r}?"
        if near is not None:
            return f"there is no column {name!r}. If you mean {near!r}, write {as_term(near)}."
        return (
            f"there is no column {name!r}, nor a function of that name. The columns are "
            f"{listed(columns)}; functions of numpy are written like np.log(area)."
        )
    reason = str(error).partition("\n")[0]
    bare = QUOTED.sub("", formula)
    odd = [name for name in columns if as_term(name) != name and name in bare]
    if odd:
        return f"{reason}. For the column {odd[0]!r}, write {as_term(odd[0])}."
    return reason


def _nearest(name: str, columns: Sequence[str]) -> str | None:
    """Return the column that was probably meant: in other case, with more words, or misspelt."""
    for column in columns:
        if column.lower() == name.lower():
            return column
    for column in columns:
        if name.lower() in re.split(r"\W+", column.lower()):
            return column
    lowered = {column.lower(): column for column in columns}
    close = closest_word(name.lower(), lowered)
    return None if close is None else lowered[close]
