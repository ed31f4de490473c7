"""Columns of text: what their cells mean, and how a new value is written like them."""
