"""Evaluation: holes made on purpose."""

from grapefill.evaluate.holes import ampute
from grapefill.evaluate.masks import MECHANISMS, draw_holes, draw_mask

__all__ = ["MECHANISMS", "ampute", "draw_holes", "draw_mask"]
