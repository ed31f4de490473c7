"""Uncertainty: what multiple imputations say together."""

from grapefill.uncertainty.pooling import Pooled, pool

__all__ = ["Pooled", "pool"]
