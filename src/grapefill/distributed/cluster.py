"""A Ray cluster: the one that is there, or one on this machine."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from grapefill.errors import ConfigError

__all__ = ["LOCAL", "connect"]

LOCAL = "local"


def connect(address: str | None = None, *, cpus: int = 1) -> Any:
    """Return the module ``ray``, connected to a cluster.

    Parameters
    ----------
    address : str or None
        The address of a cluster, ``"local"`` for one on this machine, None for the one that this
        process is connected to already, or else one on this machine.
    cpus : int
        Processors that a cluster on this machine should offer at least; more than there are is
        possible, and slow.

    Raises
    ------
    ConfigError
        If Ray is not installed, or the cluster cannot be reached.
    """
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise ConfigError(
            "This needs Ray. Install it with: pip install 'grapefill[ray]'."
        ) from error
    if ray.is_initialized():
        return ray
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address in (None, LOCAL):
            # Who starts a cluster of one machine in passing has not agreed to be counted.
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            count = max(os.cpu_count() or 1, cpus)
            ray.init(address=LOCAL, num_cpus=count, include_dashboard=False, **options)
        else:
            ray.init(address=address, **options)
    except Exception as error:
        # Ray raises all kinds, the plain `Exception` among them, for a start that takes too long.
        raise ConfigError(
            f"The Ray cluster {address!r} cannot be reached: {error}. Give the address of a running"
            " one, or 'local'."
        ) from error
    return ray
