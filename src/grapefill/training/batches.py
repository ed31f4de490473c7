"""What every training step looks at: some rows, some columns, and the cells that dropout hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grapefill.graph import Cells
    from grapefill.training.config import TrainingConfig
    from grapefill.training.stream import StreamedBatch, StreamedRows

# A batch with too many cells gets fewer rows than it should, but not fewer than that: the state of
# a feature is a mean over the rows.
FEWEST_ROWS = 256
# Cells held out of a column: 200 are enough to tell one way of filling from another; long columns
# give 2%, at most 2,000, so that smaller differences show.
ENOUGH_HELD_OUT, SMALL_SHARE, MOST_HELD_OUT = 200, 0.02, 2_000


def hold_out(
    cells: Cells,
    share: float,
    generator: torch.Generator,
    *,
    n_labels: int = 0,
    only_labels: bool = False,
) -> Tensor:
    """Choose the held-out cells, leaving every feature at least one observed cell.

    The labels of a row are held out together, for none of them will be known when it is predicted.

    Parameters
    ----------
    cells : Cells
        The table.
    share : float
        Which share of the observed cells, at most.
    generator : torch.Generator
        Source of the choice.
    n_labels : int
        How many columns, the last ones, are labels.
    only_labels : bool
        Whether nothing else is held out.
    """
    if not share:
        return torch.zeros_like(cells.observed)
    chance = torch.rand(cells.observed.shape, generator=generator)
    if n_labels:
        chance[:, -n_labels:] = chance[:, -1:].clone()
    count = cells.observed.sum(0)
    enough = (SMALL_SHARE * count).clamp(min=ENOUGH_HELD_OUT, max=MOST_HELD_OUT)
    rate = (enough / count.clamp(min=1)).clamp(max=share)
    held_out = (chance.to(cells.observed.device) < rate) & cells.observed
    if only_labels:
        held_out[:, :-n_labels] = False
    all_gone = held_out.sum(0) == count
    return held_out & ~all_gone


class Batches:
    """The batches of a training.

    Parameters
    ----------
    cells : Cells
        The table, its last columns the labels if there are any.
    config : TrainingConfig
        The recipe.
    generator : torch.Generator
        Source of all randomness.
    observed : float
        Which share of the cells is observed.
    n_labels : int
        How many of the columns are labels.
    labels_are_edges : bool
        Whether labels are nodes of the graph. If not there is nothing to hide of them, and all of
        them are to learn from.
    stream : StreamedRows or None
        Where the rows come from if not from ``cells``.

    Attributes
    ----------
    rows : int
        Rows of a batch.
    column_share : float
        Which share of the columns a step looks at.
    coming : list of Tensor
        The batches that are left of this epoch.
    """

    def __init__(
        self,
        cells: Cells,
        config: TrainingConfig,
        generator: torch.Generator,
        *,
        observed: float,
        n_labels: int = 0,
        labels_are_edges: bool = True,
        stream: StreamedRows | None = None,
    ) -> None:
        self.config = config
        self.generator = generator
        self.n_labels = n_labels
        self.labels_are_edges = labels_are_edges
        self.stream = stream
        self.n_features = cells.n_features
        self.n_rows = cells.n_observations if stream is None else stream.n_rows
        self.device = cells.value.device
        self.coming: list[Tensor] = []
        self.rows = min(self.n_rows, config.batch_rows or self.n_rows)
        self.column_share = 1.0
        cells_per_row = max(1.0, observed * self.n_features)
        most = config.step_cells
        if most is not None and self.rows * cells_per_row > most:
            self.rows = min(self.rows, max(FEWEST_ROWS, round(most / cells_per_row)))
            self.column_share = min(1.0, most / (self.rows * cells_per_row))

    def __call__(self, held_out: Tensor, *, after: int) -> Iterator[Tensor | slice | StreamedBatch]:
        """Yield the rows of every step; an epoch visits every row once, in batches of like size.

        Parameters
        ----------
        held_out : Tensor of bool, shape (rows, features)
            Cells that a stream must not show.
        after : int
            How many steps were taken before.
        """
        if self.stream is not None:
            yield from self.stream.batches(self.rows, held_out.cpu().numpy(), after=after)
        while True:
            if self.rows == self.n_rows:
                yield slice(None)
                continue
            if not self.coming:
                order = torch.randperm(self.n_rows, generator=self.generator).to(self.device)
                self.coming = list(order.tensor_split(-(-self.n_rows // self.rows)))
            yield self.coming.pop(0)

    def look_at(
        self, cells: Cells, rows: Tensor | slice | StreamedBatch, *, holding: bool
    ) -> tuple[Cells, Tensor, Tensor | slice]:
        """Return the cells that a step looks at, those that dropout removes, and their rows.

        Parameters
        ----------
        cells : Cells
            The table.
        rows : Tensor, slice or StreamedBatch
            The rows of the step.
        holding : bool
            Whether held-out cells are held out still.
        """
        left_out = self.columns_left_out() if self.column_share < 1 else None
        if not isinstance(rows, Tensor | slice):
            batch = rows.shown(holding=holding, left_out=left_out)
            return batch.cells, batch.draw(self.drop), slice(None)
        cells = cells if isinstance(rows, slice) else cells.take(rows)
        if left_out is not None:
            cells = cells.hide(left_out)
        return cells, self.drop(cells), rows

    def columns_left_out(self) -> Tensor:
        """Draw the columns that a step does not look at; labels are never among them."""
        left_out = torch.ones(self.n_features, dtype=torch.bool)
        order = torch.randperm(self.n_features, generator=self.generator)
        left_out[order[: max(2, round(self.n_features * self.column_share))]] = False
        left_out[self.n_features - self.n_labels :] = False
        return left_out.to(self.device)

    def drop(self, cells: Cells, generator: torch.Generator | None = None) -> Tensor:
        """Return the edges that dropout removes in a step."""
        low, high = self.config.dropout
        generator = self.generator if generator is None else generator
        chance = torch.rand(cells.observed.shape, generator=generator)
        rate = torch.full((cells.n_observations, 1), high)
        if low < high:
            rate.uniform_(low, high, generator=generator)
        dropped = chance < rate
        if self.n_labels:
            limit = self.config.label_dropout if self.labels_are_edges else 1.0
            # The labels of a row go together, as they do when it is predicted.
            dropped[:, -self.n_labels :] = chance[:, -1:] < limit
        return dropped.to(cells.observed.device) & cells.observed
