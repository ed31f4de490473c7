"""Values of a column that may not mean what they say."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from grapefill.table.kinds import Form

if TYPE_CHECKING:
    from grapefill.evaluate.remarks import Values

__all__ = ["is_tick", "same_but_case", "words_for_missing"]

# In lower case, with plain apostrophes.
_NO_VALUE = {
    *("", "-", "--", "?", ".", "na", "n/a", "n.a.", "n.a", "#n/a", "nan", "null", "none", "nil"),
    *("missing", "unknown", "not available", "not applicable", "not stated", "not known"),
    *("don't know", "dont know", "do not know", "no answer", "prefer not to say", "refused"),
}

# What people write into a box that applies, and leave empty where it does not.
_TICKS = {
    *("x", "✓", "✔", "☑", "+", "1", "y", "yes", "t", "true", "on", "ok", "checked"),
    *("j", "ja", "wahr", "oui", "vrai", "si", "sí", "sim"),
}
# Another text alone is taken for such a tick if so many cells are empty.
_MANY_EMPTY = 0.1


def is_tick(values: Values) -> bool:
    """Whether a column has one value and empty cells, which may mean no instead of missing.

    Parameters
    ----------
    values : Values
        The observed cells of the column.
    """
    rows, form = len(values.cells.missing), values.cells.storage.form
    if values.observed in (0, rows):
        return False
    if form.is_numeric:
        # Sooner done than counting every number.
        return bool((values.cells.numbers()[~values.cells.missing] == 1).all())
    if form not in (Form.TEXT, Form.CATEGORY) or values.distinct != 1:
        return False
    if str(values.values[0]).strip().lower() in _TICKS:
        return True
    return values.observed > 1 and rows - values.observed >= _MANY_EMPTY * rows


def words_for_missing(values: Values) -> list[int]:
    """Return which values of a column of text may stand for missing cells, in any case.

    Parameters
    ----------
    values : Values
        The observed cells of the column.
    """
    plain = (str(value).strip().lower().replace("\u2019", "'") for value in values.values)
    return [at for at, text in enumerate(plain) if text in _NO_VALUE]


def same_but_case(values: Values) -> list[list[int]]:
    """Return which values of a column of text differ in upper and lower case only, in groups.

    Words that may stand for missing cells are left out: there is another remark on them.

    Parameters
    ----------
    values : Values
        The observed cells of the column.

    Returns
    -------
    list of list of int
        Their places among the values, the most frequent first.
    """
    groups: defaultdict[str, list[int]] = defaultdict(list)
    missing = set(words_for_missing(values))
    for at, value in enumerate(values.values):
        if values.counts[at] and at not in missing:
            groups[str(value).casefold()].append(at)
    return [
        sorted(group, key=lambda at: -int(values.counts[at]))
        for group in groups.values()
        if len(group) > 1
    ]
