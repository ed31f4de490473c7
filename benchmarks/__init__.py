"""Measurements of grapefill: the paper's experiments, peers, speed. Not part of the package."""
