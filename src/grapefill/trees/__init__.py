"""Trees on top of the network: a plug-in O_edge that refines its guesses column by column."""

from grapefill.trees.chain import Chain
from grapefill.trees.config import ForestConfig
from grapefill.trees.forest import Forest
from grapefill.trees.growth import Growth
from grapefill.trees.guess import Guess
from grapefill.trees.lines import LineForest

__all__ = ["Chain", "Forest", "ForestConfig", "Growth", "Guess", "LineForest"]
