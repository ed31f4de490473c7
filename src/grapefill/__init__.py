"""Fill the holes in any table, and predict from tables with holes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from grapefill._version import __version__

if TYPE_CHECKING:
    from grapefill.classifier import GrapeClassifier
    from grapefill.comparing import compare
    from grapefill.evaluate import ampute, describe
    from grapefill.imputer import GrapeImputer
    from grapefill.regressor import GrapeRegressor
    from grapefill.sparse import SparseImputer
    from grapefill.uncertainty import pool

__all__ = [
    "GrapeClassifier",
    "GrapeImputer",
    "GrapeRegressor",
    "SparseImputer",
    "__version__",
    "ampute",
    "compare",
    "describe",
    "pool",
]

_HOMES = {
    "GrapeClassifier": "grapefill.classifier",
    "GrapeImputer": "grapefill.imputer",
    "GrapeRegressor": "grapefill.regressor",
    "SparseImputer": "grapefill.sparse",
    "ampute": "grapefill.evaluate",
    "compare": "grapefill.comparing",
    "describe": "grapefill.evaluate",
    "pool": "grapefill.uncertainty",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is, so that ``import grapefill`` stays quick."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'grapefill' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
