"""The rating sets, as lists of user, item and level, with the usual splits (Monti et al., 2017)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("flixster", "douban", "yahoo_music")


@dataclass(frozen=True)
class Ratings:
    """Some ratings.

    Parameters
    ----------
    user, item, level : Tensor of int
        One entry per rating; a level is a position in ``values``.
    values : Tensor
        The ratings that exist, ascending.
    n_users, n_items : int
        How many there are.
    like_users, like_items : Tensor or None
        Which users are friends, or which items are alike, for methods that use such side
        information: sparse, a row for every user or item, whose sum is 1.
    """

    user: Tensor
    item: Tensor
    level: Tensor
    values: Tensor
    n_users: int
    n_items: int
    like_users: Tensor | None = None
    like_items: Tensor | None = None

    def __len__(self) -> int:
        return len(self.user)

    @property
    def rating(self) -> Tensor:
        """The ratings themselves."""
        return self.values[self.level]

    def take(self, chosen: Tensor) -> Ratings:
        """Return some of the ratings."""
        return replace(
            self, user=self.user[chosen], item=self.item[chosen], level=self.level[chosen]
        )

    def split(self, share: float, generator: torch.Generator) -> tuple[Ratings, Ratings]:
        """Return the ratings in two parts, the second a share of them drawn at random."""
        drawn = torch.rand(len(self), generator=generator) < share
        return self.take(~drawn), self.take(drawn)


def load_ratings(path: Path) -> tuple[Ratings, Ratings]:
    """Return the ratings to learn from and those to predict."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file}
    # Users and items without any rating to learn from still have their place.
    users = np.unique(np.concatenate([arrays["train_user"], arrays["test_user"]]))
    items = np.unique(np.concatenate([arrays["train_item"], arrays["test_item"]]))
    ratings = [arrays["train_rating"].astype(float), arrays["test_rating"].astype(float)]
    values = np.unique(np.concatenate(ratings))

    def part(name: str, rating: np.ndarray) -> Ratings:
        return Ratings(
            torch.from_numpy(np.searchsorted(users, arrays[f"{name}_user"])),
            torch.from_numpy(np.searchsorted(items, arrays[f"{name}_item"])),
            torch.from_numpy(np.searchsorted(values, rating)),
            torch.from_numpy(values).float(),
            len(users),
            len(items),
            _side_graph(arrays, "users", users),
            _side_graph(arrays, "movies" if "W_movies_row" in arrays else "tracks", items),
        )

    return part("train", ratings[0]), part("test", ratings[1])


def _side_graph(arrays: dict[str, np.ndarray], name: str, nodes: np.ndarray) -> Tensor | None:
    """Return a graph between users or items, if the set has one."""
    if f"W_{name}_row" not in arrays:
        return None
    row, column, weight = (arrays[f"W_{name}_{part}"] for part in ("row", "col", "val"))
    known = np.isin(row, nodes)
    row, weight = np.searchsorted(nodes, row[known]), weight[known].astype(np.float64)
    share = weight / np.maximum(np.bincount(row, weight, len(nodes))[row], 1e-12)
    places = torch.from_numpy(np.stack([row, column[known].astype(np.int64)]))
    size = (len(nodes), int(column.max()) + 1)
    shares = torch.from_numpy(share).float()
    return torch.sparse_coo_tensor(places, shares, size, check_invariants=True).coalesce()


def made_up(seed: int = 0, users: int = 60, items: int = 40) -> tuple[Ratings, Ratings]:
    """Return small ratings with structure, for tests and a first look."""
    random = np.random.default_rng(seed)
    taste = random.normal(size=(users, 2)) @ random.normal(size=(2, items))
    taste += random.normal(size=(users, 1)) + random.normal(size=items)
    levels = np.clip(np.rint(2 + 0.8 * taste), 0, 4).astype(int)
    user, item = np.nonzero(random.random((users, items)) < 0.4)
    whole = Ratings(
        torch.from_numpy(user),
        torch.from_numpy(item),
        torch.from_numpy(levels[user, item]),
        torch.arange(1.0, 6.0),
        users,
        items,
    )
    return whole.split(0.2, torch.Generator().manual_seed(seed))


def root_mean_square(predicted: Tensor, ratings: Ratings) -> float:
    """Return the error of predictions."""
    return float((predicted - ratings.rating).square().mean().sqrt())
