"""Evaluation: holes made on purpose."""

from grapefill.evaluate.masks import MECHANISMS, draw_mask

__all__ = ["MECHANISMS", "draw_mask"]
