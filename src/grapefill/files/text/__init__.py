"""Delimited text: where its cells are, and how they are replaced without touching the others."""
