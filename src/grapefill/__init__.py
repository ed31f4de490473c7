"""Fill the holes in any table, and predict from tables with holes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from grapefill._version import __version__

if TYPE_CHECKING:
    from grapefill.comparing import compare
    from grapefill.evaluate import ampute, describe
    from grapefill.imputer import GrapeImputer

__all__ = ["GrapeImputer", "__version__", "ampute", "compare", "describe"]

_HOMES = {
    "GrapeImputer": "grapefill.imputer",
    "ampute": "grapefill.evaluate",
    "compare": "grapefill.comparing",
    "describe": "grapefill.evaluate",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is, so that ``import grapefill`` stays quick."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'grapefill' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
