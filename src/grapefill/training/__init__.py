"""Training: the loop, edge dropout, early stopping, callbacks, presets."""

from grapefill.training.checkpoint import CheckpointFile
from grapefill.training.config import PRESETS, Preset, TrainingConfig, get_preset
from grapefill.training.loop import Trainer
from grapefill.training.progress import Callback, History, Progress, ProgressBar

__all__ = [
    "PRESETS",
    "Callback",
    "CheckpointFile",
    "History",
    "Preset",
    "Progress",
    "ProgressBar",
    "Trainer",
    "TrainingConfig",
    "get_preset",
]
