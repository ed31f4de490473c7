"""Plots show what is there, where it is."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from grapefill.report import plots

if TYPE_CHECKING:
    from collections.abc import Callable

    from grapefill.table.arrays import BoolArray

LONG = ["household_inc", "years_of_educ", "number_of_chi"]


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return the axes of a plot of holes."""

    def axes_of(plot: Any, missing: BoolArray, names: list[str], rows: int | None = None) -> Any:
        monkeypatch.setattr(plots, "svg_of", lambda figure, _: figure)
        facts = SimpleNamespace(
            missing=missing,
            names=names,
            n_rows=rows or len(missing),
            shown_rows=len(missing),
            patterns=[((k,), 5) for k in range(len(names))],
        )
        return plot(facts).axes[0]

    return axes_of


@pytest.mark.parametrize("shown", [100, 200, 201, 239, 1000])
@pytest.mark.parametrize("times", [1, 10])
def test_holes_are_where_they_are(draw: Callable[..., Any], shown: int, times: int) -> None:
    """Also where rows do not divide into equal parts, or some rows stand for all."""
    missing = np.zeros((shown, 1), dtype=bool)
    first = shown * 4 // 5
    missing[first:] = True
    axes = draw(plots.missingness_map, missing, ["x"], shown * times)
    ends = [patch.get_paths()[0].get_extents() for patch in axes.collections]
    # One part may have both rows with and without a hole.
    part = times * -(-shown // plots.MAP_ROWS)
    assert first * times - part < min(end.y0 for end in ends) <= first * times
    assert max(end.y1 for end in ends) == pytest.approx(shown * times)


@pytest.mark.parametrize("plot", [plots.missingness_map, plots.pattern_plot])
@pytest.mark.parametrize("names", [LONG, LONG[:2], [*LONG, *LONG], ["a", "b", "c"], ["a" * 30]])
def test_names_of_columns_do_not_overlap(
    draw: Callable[..., Any], plot: Any, names: list[str]
) -> None:
    axes = draw(plot, np.ones((20, len(names)), dtype=bool), names)
    axes.get_figure().draw_without_rendering()
    labels = axes.get_xticklabels()
    assert {label.get_rotation() for label in labels} <= {0.0, 60.0}
    if labels[0].get_rotation() == 0:
        boxes = [label.get_window_extent() for label in labels]
        assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
    assert len(names[0]) > 1 or labels[0].get_rotation() == 0


def test_one_row_is_not_many() -> None:
    facts = SimpleNamespace(
        names=["x", "y"],
        patterns=[((), 2), ((0,), 1)],
        shown_rows=3,
        missing=np.array([[False, False], [False, False], [True, False]]),
    )
    drawn = plots.pattern_plot(facts)  # type: ignore[arg-type]
    assert "Most frequent: 2 rows without any hole; 1 row without x." in drawn
    assert ">1 row (33.3%)<" in drawn


def test_columns_with_the_most_holes_are_shown(draw: Callable[..., Any]) -> None:
    missing = np.tri(70, dtype=bool)[:, ::-1]
    names = [f"x{at}" for at in range(70)]
    axes = draw(plots.missingness_map, missing, names)
    assert [label.get_text() for label in axes.get_xticklabels()] == names[10:]
