"""Whether a table can be learned from, and what to tell the caller if not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from grapefill.errors import InputError, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grapefill.table.encode import Encoded
    from grapefill.table.schema import Schema
    from grapefill.table.table import Table

__all__ = ["indicator_name", "report_useless", "require_free_names", "require_observed"]


def indicator_name(label: str) -> str:
    """Return what scikit-learn calls the column that tells where another one is missing."""
    return f"missingindicator_{label}"


def require_free_names(table: Table, kept: Sequence[int]) -> None:
    """Refuse a table that has a column called like one to be added."""
    if table.names is None:
        return
    labels = [table.labels[j] for j in kept]
    labels += [indicator_name(label) for label in table.labels]
    twice = sorted(label for label, count in Counter(labels).items() if count > 1)
    if twice:
        raise InputError(
            f"With add_indicator=True two columns would be called {twice[0]!r}. Rename the "
            "column, or set add_indicator=False."
        )


def require_observed(encoded: Encoded) -> None:
    """Refuse a further table without a single value; the first has some in every feature."""
    if not encoded.observed.any():
        raise InputError(
            "The table has no observed cell in the columns to be imputed: there is nothing to "
            "learn from. Check missing_values and whether the right rows were read."
        )


def report_useless(schema: Schema, *, consequence: str = "") -> None:
    """Refuse a table without a single value, and name the columns that have none."""
    useless = [column.name for column in schema.columns if column.useless]
    if len(useless) == len(schema.columns):
        raise InputError(
            "Every cell is missing: there is nothing to learn from. Check missing_values and "
            "whether the right columns were read."
        )
    if useless:
        warn(
            "These columns have no observed value and are not used: "
            + ", ".join(map(repr, useless))
            + f". {consequence}".rstrip()
        )
