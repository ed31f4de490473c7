"""Training and predicting where only a small part of a wide table is observed.

Everything costs in proportion to the observed cells that a step looks at, and to the number of
columns once. The cells are numbers in one unit, such as ratings, so one scaling serves all columns.
"""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from grapefill.factors.sparse import fit_sparse_factors, predict_sparse
from grapefill.graph import EdgeCells, PairList
from grapefill.table import Column, Kind, Scaling, Schema
from grapefill.table.kinds import Form
from grapefill.training.batches import Batches
from grapefill.training.loop import Trainer
from grapefill.training.model import LinearPart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from grapefill.graph import Graph
    from grapefill.nn import FeatureStates
    from grapefill.table.arrays import FloatArray, IntArray
    from grapefill.training.model import GrapeModel
    from grapefill.training.progress import History

__all__ = [
    "SparseTrainer",
    "edge_cells",
    "fit_sparse",
    "predict_pairs",
    "wide_scaling",
    "wide_schema",
]

# Edges that are encoded together, and that a validation looks at.
BLOCK_EDGES = 65_536
VALIDATION_EDGES = 200_000
# Factors that are tried, one number after the other, and weights of the network beside them.
RANKS = (1, 2, 4, 8, 16)
SHARES = np.linspace(0, 1, 11)
# Cells of the general mean that count in the mean of a column.
PRIOR_CELLS = 3.0
# Enough to tell when training should stop.
MOST_HELD_OUT = 100_000


def wide_schema(values: FloatArray, n_columns: int) -> Schema:
    """Return a schema of columns that all hold the same kind of number."""
    lower, upper = float(values.min()), float(values.max())
    columns = tuple(
        Column(
            name=f"x{j}",
            kind=Kind.CONTINUOUS,
            dtype="float64",
            family="number",
            form=Form.FLOAT,
            empty=False,
            lower=lower,
            upper=upper,
        )
        for j in range(n_columns)
    )
    return Schema(columns)


def wide_scaling(columns: IntArray, values: FloatArray, n_columns: int) -> Scaling:
    """Return a scaling: the mean of every column, and one spread for all.

    The mean of a column with few cells is drawn towards that of all cells.
    """
    mean = float(values.mean())
    count = np.bincount(columns, minlength=n_columns)
    total = np.bincount(columns, values, n_columns)
    center = (total + PRIOR_CELLS * mean) / (count + PRIOR_CELLS)
    spread = float((values - center[columns]).std()) or 1.0
    return Scaling(center, np.full(n_columns, spread))


def edge_cells(
    model: GrapeModel, rows: IntArray, columns: IntArray, values: FloatArray, n_rows: int
) -> EdgeCells:
    """Return observed cells, sorted by row and column, as tensors."""
    order = np.lexsort((columns, rows))
    center, scale = model.scaling.center[columns], model.scaling.scale[columns]
    scaled = ((values - center) / scale)[order].astype(np.float32)
    return EdgeCells(
        torch.from_numpy(rows[order]).to(model.device),
        torch.from_numpy(columns[order]).to(model.device),
        torch.from_numpy(scaled).to(model.device),
        n_rows,
        model.features.count,
    )


class SparseBatches(Batches):
    """The batches of a table that is a list of its observed cells; see `Batches`."""

    def look_at(self, cells: Any, rows: Any, *, holding: bool) -> Any:
        """Return the cells that a step looks at, those that dropout removes, and their rows."""
        cells = cells if isinstance(rows, slice) else cells.take(rows)
        if self.column_share < 1:
            cells = cells.hide(self.columns_left_out()[cells.feature])
        return cells, self.drop(cells), rows

    def drop(self, cells: Any, generator: torch.Generator | None = None) -> Tensor:
        """Return the edges that dropout removes in a step."""
        low, high = self.config.dropout
        generator = self.generator if generator is None else generator
        rate = torch.full((cells.n_observations,), high)
        if low < high:
            rate.uniform_(low, high, generator=generator)
        chance = torch.rand(cells.value.shape[0], generator=generator)
        device = cells.value.device
        dropped: Tensor = chance.to(device) < rate.to(device)[cells.observation]
        return dropped


class SparseTrainer(Trainer):
    """Trains a network on observed cells; see `Trainer`."""

    batches_kind = SparseBatches
    cells: EdgeCells  # type: ignore[assignment]
    truth: EdgeCells  # type: ignore[assignment]

    def _density(self, cells: Any) -> float:
        return float(cells.density)

    def _hold_out(self, cells: Any) -> Tensor:
        """Choose the held-out cells, leaving every column at least one."""
        edges = cells.value.shape[0]
        if not self.config.validation:
            return torch.zeros(edges, dtype=torch.bool)
        rate = min(self.config.validation, MOST_HELD_OUT / max(1, edges))
        chance = torch.rand(edges, generator=self.generator)
        held_out: Tensor = (chance < rate).to(cells.value.device)
        left = cells.at_feature - torch.bincount(
            cells.feature[held_out], minlength=cells.n_features
        )
        spare: Tensor = (left > 0)[cells.feature]
        return held_out & spare

    def _wanted(self, cells: Any, dropped: Tensor) -> Tensor:
        return torch.ones_like(dropped) if self.config.loss_on == "observed" else dropped

    def _graph(self, cells: Any, layout: Any) -> Graph:
        return self.network.graph(cells, layout)

    def _loss(self, states: Any, cells: Any, wanted: Tensor, **_: Any) -> Tensor:
        pairs = PairList(
            cells.observation[wanted],
            cells.feature[wanted],
            cells.n_observations,
            cells.n_features,
        )
        observations, features = states
        predicted = self.network.predict(observations, features, pairs).value
        error: Tensor = predicted - cells.value[wanted]
        error = error.square() if self.config.loss == "squared" else error.abs()
        return error.sum() / max(1, error.shape[0])

    def _validate(self, step: int) -> float:
        """Return the loss on held-out cells of some rows and remember the best weights."""
        counts = torch.bincount(
            self.truth.observation[self.held_out], minlength=self.truth.n_observations
        )
        rows = counts.nonzero()[:, 0]
        rows = rows[self.truth.at_observation[rows].cumsum(0) <= VALIDATION_EDGES]
        edges, _ = self.truth.edges_of(rows)
        truth, wanted = self.truth.take(rows), self.held_out[edges]
        network = self.network
        with self.weights.put_in(self.weights.average):
            network.eval()
            with torch.inference_mode():
                states = network.encode(self._graph(truth.hide(wanted), "edges"))
                validation = float(self._loss(states, truth, wanted))
            network.train()
            self._remember_best(step, validation)
        return validation


def fit_sparse(model: GrapeModel, cells: EdgeCells, **options: Any) -> History:
    """Train the network of a model and freeze the states of its columns.

    Parameters
    ----------
    model : GrapeModel
        Fitted in place.
    cells : EdgeCells
        The observed cells.
    **options
        Those of `Trainer`.
    """
    blend = _Blend(model, cells, options["generator"]) if model.preset.factors.ranks else None
    trainer = SparseTrainer(
        model.network,
        cells,  # type: ignore[arg-type]
        model.preset.training,
        on_rejoin=None if blend is None else blend.put_aside,
        **options,
    )
    history = trainer.run()
    model.states = _states(model, cells)
    if blend is not None:
        blend.finish()
    return history


class _Blend:
    """Factors beside the network: how many, and how much they count, by held-out cells."""

    def __init__(self, model: GrapeModel, cells: EdgeCells, generator: torch.Generator) -> None:
        self.model = model
        self.cells = cells
        self.seed = int(torch.randint(2**31, (), generator=generator))
        self.rank = 0
        self.share = 1.0

    def put_aside(self, held_out: Tensor) -> None:
        """Compare factors and network on cells that neither has seen."""
        model = self.model
        shown = self.cells.hide(held_out)
        rows, columns, truth = (
            each[held_out].cpu().numpy()
            for each in (self.cells.observation, self.cells.feature, self.cells.value)
        )
        network = _network_values(model, shown, rows, columns, _states(model, shown))
        matrix, best = _matrix(shown), np.inf
        for rank in RANKS:
            factors = fit_sparse_factors(matrix, rank=rank, seed=self.seed)
            linear = predict_sparse(factors, matrix, rows, columns)
            errors = [
                float(np.abs(share * network + (1 - share) * linear - truth).mean())
                for share in SHARES
            ]
            if min(errors) >= best:
                break
            best = min(errors)
            self.rank, self.share = rank, float(SHARES[int(np.argmin(errors))])

    def finish(self) -> None:
        """Fit the factors to all cells, if they count."""
        if self.share == 1:
            return
        factors = fit_sparse_factors(_matrix(self.cells), rank=self.rank, seed=self.seed)
        shares = np.full(self.model.features.count, self.share)
        self.model.linear = LinearPart(factors, shares)


def _states(model: GrapeModel, cells: EdgeCells) -> FeatureStates:
    with torch.no_grad():
        return model.network.feature_states(lambda: _graphs(model, cells))


def _matrix(cells: EdgeCells) -> Any:
    """Return observed cells as a sparse matrix of scipy."""
    sparse: Any = import_module("scipy.sparse")
    ends = np.concatenate([[0], np.cumsum(cells.at_observation.cpu().numpy())])
    value, feature = cells.value.double().cpu().numpy(), cells.feature.cpu().numpy()
    return sparse.csr_matrix((value, feature, ends), (cells.n_observations, cells.n_features))


def predict_pairs(
    model: GrapeModel, cells: EdgeCells, rows: IntArray, columns: IntArray
) -> FloatArray:
    """Predict some cells of a table, in its own unit.

    Parameters
    ----------
    model : GrapeModel
        A trained model.
    cells : EdgeCells
        The observed cells of the table. Only rows that are asked for are encoded.
    rows, columns : ndarray of int
        The cells to predict.
    """
    assert model.states is not None
    predicted = _network_values(model, cells, rows, columns, model.states)
    if model.linear is not None and rows.size:
        share = model.linear.shares[columns]
        linear = predict_sparse(model.linear.factors, _matrix(cells), rows, columns)
        predicted = share * predicted + (1 - share) * linear
    predicted = predicted * model.scaling.scale[columns] + model.scaling.center[columns]
    column = model.schema.columns[0]
    return np.clip(predicted, column.lower, column.upper)


def _network_values(
    model: GrapeModel, cells: EdgeCells, rows: IntArray, columns: IntArray, states: FeatureStates
) -> FloatArray:
    """Return what the network says about some cells, scaled."""
    wanted, which = np.unique(rows, return_inverse=True)
    order = np.argsort(which, kind="stable")
    by_row = which[order]
    predicted = np.empty(rows.size)
    with torch.inference_mode():
        for part in _row_blocks(cells, wanted):
            graph = model.network.graph(cells.take(_rows(cells, wanted[part])), "edges")
            observations = model.network.encode_observations(graph, states)
            first, last = np.searchsorted(by_row, [part.start, part.stop])
            at = order[first:last]
            pairs = PairList(
                torch.from_numpy(which[at] - part.start).to(model.device),
                torch.from_numpy(columns[at]).to(model.device),
                observations.shape[0],
                model.features.count,
            )
            value = model.network.predict(observations, states.final, pairs).value
            predicted[at] = value.double().cpu().numpy()
    return predicted


def _graphs(model: GrapeModel, cells: EdgeCells) -> Iterator[Graph]:
    """Yield the graphs of consecutive blocks of rows."""
    every = np.arange(cells.n_observations)
    for part in _row_blocks(cells, every):
        yield model.network.graph(cells.take(_rows(cells, every[part])), "edges")


def _rows(cells: EdgeCells, rows: IntArray) -> Tensor:
    return torch.from_numpy(rows).to(cells.value.device)


def _row_blocks(cells: EdgeCells, rows: IntArray) -> Iterator[slice]:
    """Yield slices of some rows, with about as many edges each."""
    counts = cells.at_observation.cpu().numpy()[rows]
    # A row without a cell takes some memory too.
    block = np.cumsum(counts + 1) // BLOCK_EDGES
    borders = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), rows.size]
    for start, stop in pairwise(borders):
        if start < stop:
            yield slice(start, stop)
