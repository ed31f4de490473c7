"""Where the network runs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch

from grapefill.errors import ConfigError, warn

if TYPE_CHECKING:
    from collections.abc import Iterator

# Steps that look at no more cells than that run in one thread. Two gain a tenth there, or a fifth;
# but each waits for the other hundreds of times a second, so that training takes ten times as long
# as soon as anything else runs on one of their cores.
CELLS_OF_ONE_THREAD = 16_384


def resolve_device(device: str | torch.device) -> torch.device:
    """Return the device that a caller named; ``"auto"`` takes cuda, then mps, then cpu.

    Raises
    ------
    ConfigError
        If there is no such device, or not in this machine.

    Examples
    --------
    >>> resolve_device("cpu")
    device(type='cpu')
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        found = torch.empty(0, device=device).device
    except NotImplementedError as error:
        # torch lists everything that it could do instead, over a hundred lines.
        raise _unusable(device, "this machine, or its torch, has none") from error
    except (RuntimeError, AssertionError, TypeError, ImportError) as error:
        # Without CUDA compiled in torch raises an AssertionError.
        raise _unusable(device, str(error)) from error
    if found.type == "meta":
        raise _unusable(device, "it keeps no numbers")
    return found


def _unusable(device: object, reason: str) -> ConfigError:
    return ConfigError(f"device={device!r} cannot be used here: {reason}. Use 'auto' or 'cpu'.")


def available_device(device: str) -> str:
    """Return the device of a stored model, or "auto" with a warning if this machine lacks it."""
    try:
        resolve_device(device)
    except ConfigError:
        warn(
            f"The model was fitted with device={device!r}, which cannot be used here; "
            'device="auto" is used instead. Choose one as load(path, device=...).'
        )
        return "auto"
    return device


@contextlib.contextmanager
def threads_for(cells: int) -> Iterator[None]:
    """Let steps that look at so many cells run in as many threads as is good for them.

    Examples
    --------
    >>> before = torch.get_num_threads()
    >>> with threads_for(500):
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == before
    True
    """
    before = torch.get_num_threads()
    if cells <= CELLS_OF_ONE_THREAD:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
