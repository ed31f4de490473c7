"""The holes of a table, predicted slice by slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from grapefill.graph import block_size
from grapefill.table.encode import join_strangers, warn_strangers

if TYPE_CHECKING:
    from grapefill.table import Table
    from grapefill.table.cells import Fill
    from grapefill.training.model import GrapeModel

# Cells that are encoded and predicted at a time. Of the rest of the table only the filled cells are
# kept, so memory grows with its holes; `graph_from="transform"` needs all of its numbers besides.
SLICE_CELLS = 1_310_720


def fill_holes(
    model: GrapeModel, table: Table, *, graph_from: Literal["fit", "transform"] = "fit"
) -> dict[int, Fill]:
    """Predict the missing cells of the columns that the model knows.

    Parameters
    ----------
    model : GrapeModel
        A trained model.
    table : Table
        A table that `Schema.check` accepts.
    graph_from : {"fit", "transform"}
        Which rows give the states of the features: those at fit, or those of this table.

    Returns
    -------
    dict of int to (positions, values)
        For columns with holes, the rows to write and the values, as `Table.rebuild` takes them.
    """
    if not table.n_rows:
        return {}
    schema = model.schema
    states = None
    if graph_from == "transform":
        states = model.freeze_states(schema.encode(table, warn=False).numbers)
    positions: dict[int, list[np.ndarray]] = {j: [] for j in schema.features}
    numbers: dict[int, list[np.ndarray]] = {j: [] for j in schema.features}
    strangers = []
    slice_rows = block_size(model.features, SLICE_CELLS)
    for start in range(0, table.n_rows, slice_rows):
        part = table.slice(start, min(start + slice_rows, table.n_rows))
        encoded = schema.encode(part, warn=False)
        strangers.append(encoded.strangers)
        holes = encoded.fillable
        # Rows without holes need no prediction.
        rows = np.flatnonzero(holes.any(axis=1))
        predicted = model.predict(encoded.numbers[rows], states=states).value
        for at, j in enumerate(schema.features):
            use = holes[rows, at]
            positions[j].append(rows[use] + start)
            numbers[j].append(predicted[use, at])
    warn_strangers(join_strangers(strangers))
    fills: dict[int, Fill] = {}
    for j in schema.features:
        where = np.concatenate(positions[j])
        if where.size:
            fills[j] = (where, schema.columns[j].decode(np.concatenate(numbers[j])))
    return fills
