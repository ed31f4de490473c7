"""Observed cells that were held out, and what the finished blend says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from grapefill.trees.guess import sharpen

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from grapefill.table.arrays import FloatArray, IntArray
    from grapefill.trees import Chain, Guess


# Cells of a column that are kept, spread over the table. More hardly tell more about its errors,
# and what is believed of every missing cell is worked out from all of them.
MOST_KEPT = 300
# Which cells of their rows were known is kept of no more cells than that: 5 MB.
MOST_BESIDE = 5_000_000


@dataclass(frozen=True)
class HeldOut:
    """Cells to judge a model by, one entry each.

    The parts had not seen them, though the weights of the parts were chosen on them. In an imputer
    each is predicted with the others of its row in sight, unless that would take long.

    Parameters
    ----------
    feature : ndarray of int
        Whose cell it is.
    truth : ndarray
        What was observed: a number, or the code of a category.
    guess : ndarray
        What was predicted.
    chance : ndarray
        The probability that was given to the true category; NaN for numbers.
    spread : ndarray
        `Guess.spread`: how far the votes of trees lie apart; NaN where there are none.
    votes : ndarray of shape (cells, trees)
        What trees said about a number, each by itself; NaN where there are none.
    known : ndarray
        How many cells of its row were known; NaN where that was not noted.
    beside : ndarray of bool, shape (cells, features)
        Which ones; without features where that was not noted, as in tables of very many.
    """

    feature: IntArray
    truth: FloatArray
    guess: FloatArray
    chance: FloatArray
    spread: FloatArray
    votes: FloatArray
    known: FloatArray
    beside: npt.NDArray[np.bool_]

    @classmethod
    def collect(
        cls,
        numbers: FloatArray,
        held_out: npt.NDArray[np.bool_],
        start: Guess,
        trees: Guess,
        shares: FloatArray,
        *,
        powers: FloatArray | None = None,
        chain: Chain | None = None,
    ) -> Self:
        """Collect the held-out cells of some rows, of every feature `MOST_KEPT` at most.

        Parameters
        ----------
        numbers : ndarray of shape (rows, features)
            The true values.
        held_out : ndarray of bool, shape (rows, features)
            The cells.
        start, trees : Guess
            What the parts say about the rows without these cells.
        shares : ndarray of shape (features,)
            The weight of ``start`` in every feature.
        powers : ndarray of shape (features,) or None
            What probabilities are raised to; None for 1.
        chain : Chain or None
            The trees, for their votes.
        """
        feature, row = kept_cells(held_out)
        truth, share = numbers[row, feature], shares[feature]
        with np.errstate(over="ignore", invalid="ignore"):
            guess = share * start.value[row, feature] + (1 - share) * trees.value[row, feature]
        chance = np.full(feature.size, np.nan)
        for j in start.chances:
            mine = feature == j
            blend = shares[j] * start.chances[j] + (1 - shares[j]) * trees.chances[j]
            blend = sharpen(blend[row[mine]], 1.0 if powers is None else powers[j])
            guess[mine] = blend.argmax(axis=1)
            chance[mine] = blend[np.arange(mine.sum()), truth[mine].astype(np.int64)]
        spread = np.full(feature.size, np.nan)
        if trees.spread is not None:
            spread = np.where(share < 1, trees.spread[row, feature], np.nan)
        votes = np.empty((feature.size, 0))
        if chain is not None:
            values = np.where(np.isnan(numbers) | held_out, trees.value, numbers)
            said = {
                j: chain.votes(values[row[feature == j]], j)
                for j in np.flatnonzero(shares < 1).tolist()
                if j not in start.chances
            }
            votes = np.full(
                (feature.size, max((v.shape[1] for v in said.values()), default=0)), np.nan
            )
            for j, mine in said.items():
                votes[feature == j, : mine.shape[1]] = mine
        shown = ~np.isnan(numbers) & ~held_out
        known = shown.sum(axis=1)[row].astype(np.float64)
        beside = shown[row, : shown.shape[1] if row.size * shown.shape[1] <= MOST_BESIDE else 0]
        return cls(feature.astype(np.int64), truth, guess, chance, spread, votes, known, beside)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the cells of several trials together."""
        most = max(part.votes.shape[1] for part in parts)
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in cls.__dataclass_fields__
            if name not in ("votes", "beside")
        }
        # Nobody noted it in some of them, or in all.
        width = min(part.beside.shape[1] for part in parts)
        arrays["beside"] = np.concatenate([part.beside[:, :width] for part in parts])
        votes = [
            np.pad(part.votes, ((0, 0), (0, most - part.votes.shape[1])), constant_values=np.nan)
            for part in parts
        ]
        return cls(**arrays, votes=np.concatenate(votes))

    def of(self, feature: int) -> Self:
        """Return the cells of one feature."""
        mine = self.feature == feature
        return type(self)(**{name: array[mine] for name, array in self.arrays().items()})

    def error(self, *, categories: bool) -> float | None:
        """Return the mean absolute error, or the share of wrong categories; None if unknown."""
        with np.errstate(over="ignore", invalid="ignore"):
            off = self.guess != self.truth if categories else np.abs(self.guess - self.truth)
            error = float(off.mean()) if off.size else np.inf
        return error if np.isfinite(error) else None

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return plain arrays, by name, for a model file."""
        return dict(vars(self))

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]], n_features: int) -> Self:
        """Rebuild from `arrays`; raises ValueError if they do not fit."""
        # Older files have no votes, and do not tell what was known.
        count = arrays["feature"].size
        arrays = {
            "votes": np.empty((count, 0)),
            "known": np.full(count, np.nan),
            "beside": np.zeros((count, 0), dtype=bool),
        } | arrays
        cells = cls(**{name: arrays[name] for name in cls.__dataclass_fields__})
        shapes = {array.shape[:1] for array in cells.arrays().values()}
        if len(shapes) > 1 or cells.feature.ndim != 1 or cells.votes.ndim != 2:
            raise ValueError("the held-out cells are not of one length")
        if cells.beside.ndim != 2 or cells.beside.shape[1] not in (0, n_features):
            raise ValueError("what was known beside the held-out cells does not fit the columns")
        if not np.isin(cells.feature, np.arange(n_features)).all():
            raise ValueError("a held-out cell is of a column that is not there")
        return cells


def kept_cells(held_out: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return the features and rows of the cells that are kept, feature by feature."""
    rows = [np.flatnonzero(column) for column in held_out.T]
    rows = [
        mine[np.linspace(0, mine.size - 1, min(mine.size, MOST_KEPT)).astype(np.int64)]
        for mine in rows
    ]
    feature = np.repeat(np.arange(len(rows)), [mine.size for mine in rows])
    return feature, np.concatenate([np.empty(0, dtype=np.int64), *rows])
