"""The holes of a table, predicted slice by slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from grapefill.graph import block_size
from grapefill.table.encode import join_strangers, warn_strangers
from grapefill.trees import Guess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grapefill.table import Encoded, Table
    from grapefill.table.arrays import BoolArray, FloatArray, IntArray
    from grapefill.table.cells import Fill
    from grapefill.table.encode import Strangers
    from grapefill.training.model import GrapeModel

# Cells that are encoded and predicted at a time. Of the rest of the table only the filled cells are
# kept, so memory grows with its holes; `graph_from="transform"` needs all of its numbers besides.
SLICE_CELLS = 1_310_720


class Part(NamedTuple):
    """Rows with holes, and what is believed about them.

    Parameters
    ----------
    rows : ndarray of int
        Their positions in the table.
    numbers : ndarray of shape (rows, features)
        Their encoded cells, NaN where there is no edge.
    holes : ndarray of bool, shape (rows, features)
        Where a cell is to be filled.
    guess : Guess
        What the model says.
    """

    rows: IntArray
    numbers: FloatArray
    holes: BoolArray
    guess: Guess

    def take(self, rows: IntArray | slice) -> Part:
        """Return some of the rows, by their places in the part."""
        return Part(self.rows[rows], self.numbers[rows], self.holes[rows], self.guess.take(rows))

    def pieces(self, most: int) -> Iterator[Part]:
        """Yield a part's rows, at most so many at a time."""
        for start in range(0, max(1, len(self.rows)), most):
            yield self.take(slice(start, start + most))


def predict_holes(
    model: GrapeModel,
    table: Table,
    *,
    graph_from: Literal["fit", "transform"] = "fit",
    strangers: list[Strangers] | None = None,
) -> Iterator[Part]:
    """Yield the rows of a table that have holes, with predictions, slice by slice.

    Parameters
    ----------
    model : GrapeModel
        A trained model.
    table : Table
        A table that `Schema.check` accepts.
    graph_from : {"fit", "transform"}
        Which rows give the states of the features: those at fit, or those of this table.
    strangers : list or None
        Takes the categories that fit did not see; None warns of them.
    """
    if not table.n_rows:
        return
    states = None
    if graph_from == "transform":
        whole = model.schema.encode(table, warn=False).numbers
        states = model.freeze_states(model.without_labels(whole))
    found = []
    for start, encoded in _slices(model, table):
        found.append(encoded.strangers)
        # Rows without holes need no prediction.
        rows = np.flatnonzero(encoded.fillable.any(axis=1))
        numbers = model.without_labels(encoded.numbers[rows])
        guess = model.predict(numbers, states=states)
        yield Part(rows + start, numbers, encoded.fillable[rows], guess)
    if strangers is None:
        warn_strangers(join_strangers(found))
    else:
        strangers[:] = [join_strangers([*strangers, *found])]


def fill_holes(
    model: GrapeModel,
    table: Table,
    *,
    graph_from: Literal["fit", "transform"] = "fit",
    strangers: list[Strangers] | None = None,
) -> dict[int, Fill]:
    """Predict the missing cells of the columns that the model knows; see `predict_holes`.

    Returns
    -------
    dict of int to (positions, values)
        For columns with holes, the rows to write and the values, as `Table.rebuild` takes them.
    """
    # Of every part only the filled cells are kept.
    parts = [
        [(part.rows[use], part.guess.value[use, at]) for at, use in enumerate(part.holes.T)]
        for part in predict_holes(model, table, graph_from=graph_from, strangers=strangers)
    ]
    fills: dict[int, Fill] = {}
    for at, j in enumerate(model.schema.features):
        rows = [part[at][0] for part in parts]
        if any(each.size for each in rows):
            numbers = np.concatenate([part[at][1] for part in parts])
            fills[j] = (np.concatenate(rows), model.schema.columns[j].decode(numbers))
    return fills


def predict_labels(model: GrapeModel, table: Table, *, hidden: int | None = None) -> Guess:
    """Predict the labels of the rows of a table.

    Parameters
    ----------
    model : GrapeModel
        A trained model with labels.
    table : Table
        A table that `Schema.check` accepts.
    hidden : int or None
        A column to leave out of account.

    Returns
    -------
    Guess
        What is believed of the labels, as columns of their own.
    """
    first = model.features.count - model.n_labels
    sizes = enumerate(model.features.n_categories[first:])
    values = [np.empty((0, model.n_labels))]
    chances = {j: [np.empty((0, classes))] for j, classes in sizes if classes}
    strangers = []
    for _, encoded in _slices(model, table):
        strangers.append(encoded.strangers)
        numbers = encoded.numbers
        if hidden in model.schema.features:
            numbers[:, model.schema.features.index(hidden)] = np.nan
        guess = model.predict(model.without_labels(numbers), labels_only=True)
        values.append(guess.value[:, first:])
        for j, parts in chances.items():
            parts.append(guess.chances[first + j])
    warn_strangers(join_strangers(strangers))
    return Guess(np.concatenate(values), {j: np.concatenate(parts) for j, parts in chances.items()})


def _slices(model: GrapeModel, table: Table) -> Iterator[tuple[int, Encoded]]:
    """Yield parts of a table, encoded, with the positions of their first rows."""
    size = block_size(model.features, SLICE_CELLS)
    for start in range(0, table.n_rows, size):
        part = table.slice(start, min(start + size, table.n_rows))
        yield start, model.schema.encode(part, warn=False)
