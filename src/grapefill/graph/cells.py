"""The cells of a table as tensors, before any layout is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Features:
    """What the network knows of the feature nodes: how many, and which are discrete.

    Parameters
    ----------
    n_categories : tuple of int
        One entry per feature: 0 for a continuous feature, the number of categories otherwise.

    Examples
    --------
    >>> features = Features((0, 3, 0))
    >>> features.count, features.discrete, features.continuous
    (3, (1,), (0, 2))
    """

    n_categories: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of feature nodes."""
        return len(self.n_categories)

    @cached_property
    def discrete(self) -> tuple[int, ...]:
        """Indices of the discrete features."""
        return tuple(j for j, k in enumerate(self.n_categories) if k)

    @cached_property
    def continuous(self) -> tuple[int, ...]:
        """Indices of the continuous features."""
        return tuple(j for j, k in enumerate(self.n_categories) if not k)

    @property
    def places(self) -> int:
        """Width of an imputed row: one place for a number, one for each category."""
        return sum(max(k, 1) for k in self.n_categories)


@dataclass(frozen=True)
class Slots:
    """A numbering of what the cells of a table can hold.

    An edge attribute is ``value * one_hot(slot)``: a continuous cell has its scaled value at its
    feature's slot, a discrete cell has 1 at the slot of its category. The outputs of O_edge are
    numbered in the same way.

    Parameters
    ----------
    features : Features
        The feature nodes.
    shared : bool
        Whether all continuous features share slot 0, as in the paper, where a continuous edge is
        one number. Otherwise every feature has a slot, and so weights, of its own.

    Examples
    --------
    >>> slots = Slots(Features((0, 3, 0)), shared=True)
    >>> slots.count, slots.first
    (4, (0, 1, 0))
    >>> Slots(Features((0, 3, 0)), shared=False).first
    (0, 1, 4)
    """

    features: Features
    shared: bool

    @cached_property
    def count(self) -> int:
        """Number of slots."""
        if not self.shared:
            return self.features.places
        return sum(self.features.n_categories) + bool(self.features.continuous)

    @cached_property
    def first(self) -> tuple[int, ...]:
        """The first slot of every feature."""
        sizes = self.features.n_categories
        if not self.shared:
            return tuple(accumulate((max(k, 1) for k in sizes[:-1]), initial=0))
        starts = accumulate(sizes[:-1], initial=int(bool(self.features.continuous)))
        return tuple(start if k else 0 for start, k in zip(starts, sizes, strict=True))

    def of(self, feature: int) -> slice:
        """Return the slots of one feature."""
        first = self.first[feature]
        return slice(first, first + max(self.features.n_categories[feature], 1))


@dataclass(frozen=True)
class Cells:
    """Rows of a table as tensors.

    Parameters
    ----------
    value : Tensor of shape (n_observations, n_features)
        Scaled value of a continuous cell, 1 in a discrete one, 0 where nothing is observed.
    code : Tensor of shape (n_observations, n_features) or None
        Category of a discrete cell, 0 elsewhere. None when no feature is discrete.
    observed : Tensor of bool, shape (n_observations, n_features)
        Which cells are edges of the graph.
    """

    value: Tensor
    code: Tensor | None
    observed: Tensor

    @classmethod
    def from_numbers(
        cls,
        numbers: npt.NDArray[np.float64],
        features: Features,
        *,
        device: torch.device | str = "cpu",
    ) -> Cells:
        """Make tensors of scaled numbers, with NaN where a cell is not observed.

        Examples
        --------
        >>> cells = Cells.from_numbers(np.array([[0.5, 2.0], [np.nan, 0.0]]), Features((0, 3)))
        >>> cells.code.tolist(), cells.observed.tolist()
        ([[0, 2], [0, 0]], [[True, True], [False, True]])
        """
        observed = ~np.isnan(numbers)
        value = np.where(observed, numbers, 0.0).astype(np.float32)
        code = None
        if features.discrete:
            columns = list(features.discrete)
            code = np.zeros(numbers.shape, dtype=np.int64)
            code[:, columns] = value[:, columns]
            value[:, columns] = observed[:, columns]
        return cls(
            torch.from_numpy(value).to(device),
            None if code is None else torch.from_numpy(code).to(device),
            torch.from_numpy(observed).to(device),
        )

    @classmethod
    def join(cls, parts: Sequence[Cells]) -> Cells:
        """Return the rows of several parts as one; they have the same features."""
        if len(parts) == 1:
            return parts[0]
        codes = [part.code for part in parts if part.code is not None]
        return cls(
            torch.cat([part.value for part in parts]),
            torch.cat(codes) if codes else None,
            torch.cat([part.observed for part in parts]),
        )

    @property
    def n_observations(self) -> int:
        """Number of observation nodes."""
        return self.value.shape[0]

    @property
    def n_features(self) -> int:
        """Number of feature nodes."""
        return self.value.shape[1]

    def take(self, rows: Tensor | slice) -> Cells:
        """Return some of the rows."""
        code = None if self.code is None else self.code[rows]
        return Cells(self.value[rows], code, self.observed[rows])

    def columns(self, columns: slice) -> Cells:
        """Return some of the columns."""
        code = None if self.code is None else self.code[:, columns]
        return Cells(self.value[:, columns], code, self.observed[:, columns])

    def hide(self, hidden: Tensor) -> Cells:
        """Return the cells without the edges that ``hidden`` marks."""
        return Cells(self.value, self.code, self.observed & ~hidden)

    def pad(self, rows: int) -> Cells:
        """Return the cells with empty rows added at the end, ``rows`` in all."""
        missing = rows - self.n_observations
        if missing <= 0:
            return self

        def grow(tensor: Tensor) -> Tensor:
            return torch.cat([tensor, tensor.new_zeros(missing, tensor.shape[1])])

        code = None if self.code is None else grow(self.code)
        return Cells(grow(self.value), code, grow(self.observed))

    def slots(self, slots: Slots) -> Tensor | None:
        """Return the slot of every cell.

        A matrix when cells of a feature differ in their slot, one row for all observations when
        they do not, None when all cells have slot 0.
        """
        if self.code is None and not any(slots.first):
            return None
        first = torch.tensor(slots.first, device=self.value.device)
        return first if self.code is None else self.code + first
