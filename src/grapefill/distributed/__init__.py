"""Many workers and many machines: fit and fill with Ray, fill with Spark.

Names are looked up when used: none of the packages is needed before.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grapefill.distributed.apply import fill_files, transform
    from grapefill.distributed.learn import fit
    from grapefill.distributed.spark import spark_filler

__all__ = ["fill_files", "fit", "spark_filler", "transform"]

_HOMES = {"fill_files": "apply", "fit": "learn", "spark_filler": "spark", "transform": "apply"}


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name in _HOMES:
        return getattr(import_module(f"grapefill.distributed.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'grapefill.distributed' has no attribute {name!r}")
