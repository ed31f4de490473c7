"""Which columns tell most about one that is to be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray, IntArray
    from grapefill.uncertainty.joint import Work

# A column is regressed on the inputs that it goes along with most, one of many categories on fewer.
MOST_INPUTS, MOST_INPUTS_OF_MANY = 128, 32
MANY_CATEGORIES = 10


def _strength(inputs: FloatArray, target: FloatArray, n_categories: int) -> FloatArray:
    """Return how much each input goes along with a column."""
    part = inputs - inputs.mean(axis=0)
    size = np.maximum(np.sqrt(np.square(part).sum(axis=0)), 1e-12)
    wanted = np.eye(n_categories)[target.astype(np.int64)] if n_categories else target[:, None]
    together: FloatArray = np.abs(part.T @ (wanted - wanted.mean(axis=0))).max(axis=1) / size
    return together


def choose_inputs(work: Work, feature: int, known: IntArray, target: FloatArray) -> IntArray:
    """Return the inputs to regress a column on, the constant first."""
    others = work.design.others(feature)
    many = work.design.n_categories[feature] > MANY_CATEGORIES
    most = min(MOST_INPUTS_OF_MANY if many else MOST_INPUTS, max(1, known.size // 4))
    if others.size <= most:
        return others
    strength = _strength(work.inputs[known][:, others], target, work.design.n_categories[feature])
    strength[0] = np.inf
    return np.sort(others[np.argsort(-strength, kind="stable")[:most]])


def choose_columns(
    work: Work, feature: int, known: IntArray, target: FloatArray
) -> tuple[int, ...]:
    """Return the columns that the trees of a column read."""
    others = np.delete(np.arange(work.scaled.shape[1]), feature)
    if others.size > MOST_INPUTS:
        read = work.scaled[known][:, others].astype(np.float64)
        strength = _strength(read, target, work.design.n_categories[feature])
        others = np.sort(others[np.argsort(-strength, kind="stable")[:MOST_INPUTS]])
    return tuple(others.tolist())
