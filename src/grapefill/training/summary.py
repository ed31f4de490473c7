"""A fitted model in words: what fills each column, and how well that did on held-out cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grapefill.training.model import GrapeModel

HEADER = ("column", "kind", "filled by", "held out", "constant", "network", "trees", "blend")


def summarise(model: GrapeModel) -> str:
    """Return a table of the columns that a model fills, and notes on how to read it."""
    rows: list[tuple[str, ...]] = [HEADER]
    shares = None if model.chain is None else model.chain.shares
    for at, j in enumerate(model.schema.features):
        column = model.schema.columns[j]
        share = 1.0 if shares is None else float(shares[at])
        row = [str(column.name), column.kind.value, _parts(share)]
        if model.trials:
            trial = model.trials[at]
            errors = (trial.constant, trial.network, trial.trees, trial.blend)
            row += [str(trial.cells), *map(_shown, errors)]
        rows.append(tuple(row + [""] * (len(HEADER) - len(row))))
    used = HEADER if model.trials else HEADER[:3]
    widths = [max(len(row[k]) for row in rows) for k in range(len(used))]
    lines = ["  ".join(row[k].ljust(widths[k]) for k in range(len(used))).rstrip() for row in rows]
    if model.trials:
        lines += [
            "",
            "Errors are on observed cells that were held out for a while: mean absolute error of",
            "numbers, share of wrong categories. The constant is the median, or the most frequent",
            "category. Network and trees were given more data, and more trees, afterwards.",
        ]
    return "\n".join(lines)


def _parts(share: float) -> str:
    if share == 1:
        return "network"
    return "trees" if share == 0 else f"{share:.0%} network, {1 - share:.0%} trees"


def _shown(error: float | None) -> str:
    return "" if error is None else f"{error:.4g}"
