"""How long methods that train are trained: a share of the usual, for a quick look or a test."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_share = 1.0


def steps(usual: int) -> int:
    """Return how many training steps to take instead of the usual number."""
    return max(2, round(usual * _share))


def is_whole() -> bool:
    """Whether methods are trained as long as usual."""
    return _share == 1


@contextmanager
def budget(share: float) -> Iterator[None]:
    """Train for a share of the usual steps."""
    global _share  # noqa: PLW0603
    before, _share = _share, share
    try:
        yield
    finally:
        _share = before
