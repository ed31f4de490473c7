"""Fill the holes in any table, and predict from tables with holes."""

from typing import TYPE_CHECKING, Any

from grapefill._version import __version__

if TYPE_CHECKING:
    from grapefill.imputer import GrapeImputer

__all__ = ["GrapeImputer", "__version__"]


def __getattr__(name: str) -> Any:
    """Import estimators when they are asked for, so that ``import grapefill`` stays quick."""
    if name == "GrapeImputer":
        from grapefill.imputer import GrapeImputer

        return GrapeImputer
    raise AttributeError(f"module 'grapefill' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
