"""A fitted model in words: what fills each column, and how well that did on held-out cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grapefill.lines import align, wrap
from grapefill.trees import LineForest

if TYPE_CHECKING:
    from grapefill.training.model import GrapeModel

PARTS = ("network", "factors", "trees")
ERRORS = ("constant", "network", "factors", "trees", "blend", "alone")
ABOUT_ERRORS = (
    "Errors are on observed cells that were held out for a while: mean absolute error of numbers, "
    "share of wrong categories. The constant is the median, or the most frequent category. All "
    "parts were given more data, and there are more trees, afterwards. Trees of lines have a "
    "linear map in each leaf, for columns that follow others smoothly."
)
ABOUT_ALONE = (
    "Most of these cells were held out at the same time as others of their rows. Alone is the "
    "error of the blend where each is held out by itself, and with it what is usually missing "
    "where such a cell is: so far off are missing cells likely to be."
)


def summarise(model: GrapeModel) -> str:
    """Return a table of the columns that a model fills, and notes on how to read it."""
    trials = model.trials
    errors = [name for name in ERRORS if any(getattr(t, name) is not None for t in trials)]
    header = ["column", "kind", "filled by"] + (["held out", *errors] if trials else [])
    rows = [header]
    columns = [model.schema.columns[j] for j in model.schema.features]
    named = [(str(column.name), column.kind.value) for column in columns]
    named += [("label", "label")] * model.n_labels
    for at, names in enumerate(named):
        row = [*names, _parts(model, at)]
        if trials:
            row += [str(trials[at].cells), *(_shown(getattr(trials[at], name)) for name in errors)]
        rows.append(row)
    lines = align(rows)
    if trials:
        lines += ["", wrap(ABOUT_ERRORS)]
    if "alone" in errors:
        lines.append(wrap(ABOUT_ALONE))
    if trials and model.n_labels:
        lines.append("Features were held out of rows whose labels were known, as a rule.")
    return "\n".join(lines)


def _weights(model: GrapeModel, feature: int) -> tuple[float, float, float]:
    """Return the weights of network, factors and trees."""
    start = 1.0 if model.chain is None else float(model.chain.shares[feature])
    network = 1.0 if model.linear is None else float(model.linear.shares[feature])
    return start * network, start * (1 - network), 1 - start


def _named(model: GrapeModel, feature: int) -> tuple[str, ...]:
    """Return what the parts are called; trees with lines in their leaves are told apart."""
    rounds = model.chain.rounds if model.chain is not None else []
    smooth = any(isinstance(forests.get(feature), LineForest) for forests in rounds)
    return (*PARTS[:-1], "trees of lines" if smooth else PARTS[-1])


def _parts(model: GrapeModel, feature: int) -> str:
    weighted = zip(_weights(model, feature), _named(model, feature), strict=True)
    named = [(f"{w:.0%} {part}", part) for w, part in weighted if w > 0]
    return named[0][1] if len(named) == 1 else ", ".join(text for text, _ in named)


def _shown(error: float | None) -> str:
    return "" if error is None else f"{error:.4g}"
