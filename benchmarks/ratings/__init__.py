"""Ratings: users are observations, items are features, and nearly all cells are missing."""
