"""Plots are figures with a panel for every column that there is something to see of."""

import pytest
from matplotlib.figure import Figure

from grapefill.errors import InputError
from grapefill.uncertainty import plots


@pytest.mark.parametrize("draw", [plots.density, plots.strips, plots.convergence])
def test_draws(imputer, holed, draw, tmp_path):
    figure = draw(imputer, holed, draws=2)
    assert isinstance(figure, Figure)
    assert [axes.get_title() for axes in figure.axes] == list(holed)
    figure.savefig(tmp_path / "plot.png")


def test_held_out_cells(imputer, tmp_path):
    figure = plots.overimputation(imputer)
    assert {axes.get_title() for axes in figure.axes} <= {"a", "b", "count", "start", "end", "size"}
    plots.calibration(imputer).savefig(tmp_path / "plot.png")


def test_curves_rise(imputer):
    for curve in plots.coverage_curves(imputer).values():
        assert curve[-1] > 0.7
        assert curve[-1] > curve[0]


def test_nothing_to_show(imputer, holed):
    with pytest.raises(InputError, match="no cell is missing"):
        plots.density(imputer, imputer.transform(holed))
