"""A linear part beside the network: columns as mixtures of a few hidden factors."""

from grapefill.factors.analysis import Factors
from grapefill.factors.config import FactorConfig

__all__ = ["FactorConfig", "Factors"]
