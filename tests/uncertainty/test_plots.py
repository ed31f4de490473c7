"""Plots are figures with a panel for every column that there is something to see of."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from grapefill import GrapeImputer
from grapefill.errors import ConfigError, InputError
from grapefill.uncertainty import plots
from grapefill.uncertainty.joint import Joint


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


def empty_first(rows=60):
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "nothing": np.nan,
            "a": random.normal(0, 1, rows),
            "b": random.normal(1000, 1, rows),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 99, rows), "D"),
            "word": random.choice(["up", "down"], rows),
        }
    )
    for at, name in enumerate(["a", "b", "day", "word"]):
        table.loc[at :: 4 + at, name] = None
    return table


@pytest.mark.filterwarnings("ignore::grapefill.errors.GrapefillWarning")
@pytest.mark.parametrize("indicator", [True, False])
def test_columns_stay_in_their_panels_when_one_is_left_out(quick, indicator):
    table = empty_first()
    imputer = GrapeImputer("fast", settings=quick, add_indicator=indicator, random_state=0)
    figure = plots.convergence(imputer.fit(table), table, draws=2)
    panels = {axes.get_title(): axes for axes in figure.axes}
    assert list(panels) == ["a", "b", "day", "word"]
    assert abs(panels["a"].lines[0].get_ydata()).max() < 10
    assert panels["b"].lines[0].get_ydata().min() > 900
    figure.canvas.draw()
    days = [label.get_text() for label in panels["day"].get_yticklabels()]
    assert any(day.startswith("2024-") for day in days)
    figure = plots.density(imputer, table, draws=2)
    figure.canvas.draw()
    words = [label.get_text() for label in figure.axes[-1].get_xticklabels()]
    assert {"up", "down"} <= set(words)


def test_categories_have_no_intervals_to_show(quick):
    table = pd.DataFrame({"a": list("xyxyxxyy") * 6, "b": list("uvuvuvvu") * 6})
    table.loc[::5, "a"] = None
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    for draw in (plots.overimputation, plots.calibration):
        with pytest.raises(InputError, match="no cell of a column of numbers was held out"):
            draw(imputer)


def test_a_constant_column_is_no_proof(quick):
    table = pd.DataFrame({"count": np.arange(60) % 9.0, "same": 7.0})
    table.loc[::5, "same"] = None
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    assert list(plots.coverage_curves(imputer)) == ["count"]


def test_coverage_is_checked(imputer):
    with pytest.raises(ConfigError, match="between 0 and 1"):
        plots.overimputation(imputer, coverage=2)


def test_first_fit_then_plot(holed):
    for draw in (plots.density, plots.strips, plots.convergence):
        with pytest.raises(NotFittedError):
            draw(GrapeImputer(), holed)
    with pytest.raises(NotFittedError):
        plots.calibration(GrapeImputer())


def test_durations_and_times_are_written_out(quick):
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "took": pd.to_timedelta(random.integers(1, 300, 60), "h"),
            "at": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 900, 60), "min"),
        }
    )
    table.loc[::4, "took"] = None
    table.loc[1::4, "at"] = None
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    figure = plots.density(imputer, table, draws=2)
    figure.canvas.draw()
    took, at = ([label.get_text() for label in axes.get_xticklabels()] for axes in figure.axes)
    assert any(text.endswith(" d") for text in took)
    assert len({text for text in at if text}) > 1


def test_sweeps_are_shown_beside_draws(imputer, holed):
    trace = plots.sweep_means(imputer)
    assert trace.shape == (len(trace), holed.shape[1])
    assert len(trace) > 5
    assert np.isfinite(trace[:, 0]).all()
    sweeps, draws = plots.convergence(imputer, holed, draws=3).axes[0].get_lines()
    np.testing.assert_array_equal(sweeps.get_ydata(), trace[:, 0])
    assert len(draws.get_ydata()) == 3


def test_a_model_of_an_earlier_version_shows_draws_only(imputer, holed, tmp_path, monkeypatch):
    usual = Joint.arrays
    without = lambda self: {k: v for k, v in usual(self).items() if k != "trace"}  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(Joint, "arrays", without)
        imputer.save(tmp_path / "m.grape")
    earlier = GrapeImputer.load(tmp_path / "m.grape")
    assert plots.sweep_means(earlier).shape == (0, holed.shape[1])
    assert len(plots.convergence(earlier, holed, draws=2).axes) == holed.shape[1]


def test_sweeps_of_categories_are_shares(quick):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"word": random.choice(list("abcc"), 90), "x": random.normal(size=90)})
    table = table.mask(random.random(table.shape) < 0.2)
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    axes = plots.convergence(imputer, table, draws=3).axes[0]
    assert axes.get_ylabel() == "share of c"
    for line in axes.get_lines():
        assert 0.2 < line.get_ydata().mean() < 0.8
    drawn = imputer.sample(table, 3, random_state=0)
    holes = table["word"].isna()
    shares = [(each["word"][holes] == "c").mean() for each in drawn]
    np.testing.assert_allclose(axes.get_lines()[1].get_ydata(), shares)
