"""Evaluation: holes made on purpose, tables described, methods compared."""

from grapefill.evaluate.comparison import Comparison, MethodResult
from grapefill.evaluate.description import Description, describe
from grapefill.evaluate.holes import ampute
from grapefill.evaluate.little import LittleTest, little_test
from grapefill.evaluate.masks import MECHANISMS, draw_holes, draw_mask
from grapefill.evaluate.metrics import cell_errors, constant_errors
from grapefill.evaluate.trial import Step

__all__ = [
    "MECHANISMS",
    "Comparison",
    "Description",
    "LittleTest",
    "MethodResult",
    "Step",
    "ampute",
    "cell_errors",
    "constant_errors",
    "describe",
    "draw_holes",
    "draw_mask",
    "little_test",
]
