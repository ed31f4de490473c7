"""Plots are figures with a panel for every column that there is something to see of."""

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from grapefill import GrapeImputer
from grapefill.errors import ConfigError, InputError
from grapefill.uncertainty import plots
from grapefill.uncertainty.joint import Joint

NOON = pd.Timestamp("2024-05-01 10:11:12").as_unit("ns")


def texts(labels):
    return [label.get_text() for label in labels]


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
    assert texts(figure.axes[-1].get_yticklabels()) == ["down", "up"]


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
    took, at = (texts(axes.get_xticklabels()) for axes in figure.axes)
    assert {"4 d", "8 d"} <= set(took)
    assert "2024-01-01 04" in at


def holes(table):
    table.iloc[::4, 0] = None
    table.iloc[1::4, 1] = None
    return table


def shown(axis):
    low, high = axis.get_view_interval()
    return [
        label.get_text()
        for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
        if low <= place <= high
    ]


@pytest.mark.parametrize(
    ("dtype", "label"),
    [
        ("M8[M]", r"\d{4}-\d\d"),
        ("M8[Y]", r"\d{4}"),
        ("M8[W]", r"\d{4}-\d\d-\d\d"),
        ("M8[7D]", r"\d{4}-\d\d-\d\d"),
        ("m8[M]", r"\d+ months"),
        ("m8[10s]", r"\d,\d{3} s"),
    ],
)
def test_units_without_a_fixed_length(quick, dtype, label):
    counts = np.random.default_rng(0).integers(300, 324, (60, 2))
    table = counts.astype(dtype)
    table[::4, 0] = table[1::4, 1] = "NaT"
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    figures = [draw(imputer, table, draws=2) for draw in (plots.strips, plots.convergence)]
    for figure in (*figures, plots.overimputation(imputer)):
        labels = shown(figure.axes[0].yaxis)
        assert labels
        assert len(set(labels)) == len(labels)
        assert all(re.fullmatch(label, each) for each in labels)


def test_many_months_are_written_as_years(quick):
    table = np.random.default_rng(0).integers(300, 900, (60, 2)).astype("M8[M]")
    table[::4, 0] = table[1::4, 1] = "NaT"
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    axes = plots.density(imputer, table, draws=2).axes[0]
    assert {"2000", "2030"} <= set(shown(axes.xaxis))


@pytest.mark.parametrize(
    ("unit", "took", "at"),
    [
        ("ms", "500 ms", "10:11:12.500"),
        ("us", "500 us", "10:11:12.000500"),
        ("ns", "500 ns", "10:11:12.000000500"),
    ],
)
def test_times_below_a_second(quick, unit, took, at):
    random = np.random.default_rng(0)
    spans = [pd.to_timedelta(random.integers(1, 900, 60), unit).as_unit("ns") for _ in range(2)]
    table = holes(pd.DataFrame({"took": spans[0], "at": spans[1] + NOON}))
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    first, second = (axes.xaxis for axes in plots.density(imputer, table, draws=2).axes)
    for axis, label in ((first, took), (second, at)):
        labels = shown(axis)
        assert label in labels
        assert len(set(labels)) == len(labels)
    assert first.get_major_formatter().get_offset() == ""
    assert second.get_major_formatter().get_offset() == "2024-05-01"


def test_numbers_that_floats_have_no_room_for(quick):
    random = np.random.default_rng(0)
    near, far = 2**60 + random.integers(0, 50, 60), -(2**62) + random.integers(0, 2**61, 60)
    columns = {name: pd.array(each, dtype="Int64") for name, each in (("n", near), ("m", far))}
    table = holes(pd.DataFrame(columns))
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    for draw in (plots.strips, plots.convergence):
        first, second = (axes.yaxis for axes in draw(imputer, table, draws=2).axes)
        assert "1152921504606847000" in shown(first)
        assert "-3000000000000000000" in shown(second) or "-3200000000000000000" in shown(second)
        for axis, values in ((first, near), (second, far)):
            labels = [float(each) for each in shown(axis)]
            assert len(set(shown(axis))) == len(labels) > 1
            assert all(values.min() - 50 <= each <= values.max() + 50 for each in labels)


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


LONG = "university degree (bachelor, master or doctorate)"
LEVELS = ["none", "primary school completed", "primary school left", LONG]
STRANGE = "北京市\nof a name that is longer than its panel is wide"
CITIES = [f"Municipality of $ao No. {k}" for k in range(12)]


@pytest.fixture(scope="module")
def odd():
    """Return a table of columns that are hard to write on a figure."""
    random = np.random.default_rng(0)
    level = random.integers(0, 4, 150)
    table = pd.DataFrame(
        {
            "school": pd.Categorical.from_codes(level, LEVELS, ordered=True),
            "city": random.choice(CITIES, 150),
            STRANGE: level + random.normal(size=150),
            "year": pd.array(random.integers(2005, 2009, 150), dtype="Int64"),
            "count": pd.array(random.poisson(40, 150), dtype="Int64"),
            "same": 7.0,
        }
    )
    return table.mask(random.random(table.shape) < 0.2)


@pytest.fixture(scope="module")
def odd_imputer(odd):
    settings = {"max_steps": 15, "rounds": 1, "trees": 6, "trial_trees": 6}
    return GrapeImputer("fast", settings=settings, random_state=0).fit(odd)


# Warnings are errors, those of letters that no font has too.
@pytest.mark.parametrize("draw", [plots.density, plots.strips, plots.convergence])
def test_long_names_and_strange_letters(odd, odd_imputer, draw, tmp_path):
    figure = draw(odd_imputer, odd, draws=2)
    figure.savefig(tmp_path / "plot.png")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[2].startswith("????of a name")
    assert max(map(len, titles)) <= 32
    labels = [text for axes in figure.axes for text in texts(axes.get_yticklabels())]
    assert max(map(len, labels)) <= 15


def test_shares_of_categories(odd, odd_imputer):
    school, city, _, year, *_ = plots.density(odd_imputer, odd, draws=3).axes
    names = texts(school.get_yticklabels())
    assert (len(set(names)), names[0], names[1][:7]) == (4, "none", "primary")
    observed, drawn = school.containers
    shares = odd["school"].value_counts(normalize=True, sort=False)
    np.testing.assert_allclose([bar.get_width() for bar in observed], shares)
    tables = odd_imputer.sample(odd, 3, random_state=0)
    holes = odd["school"].isna()
    shares = [each["school"][holes].value_counts(normalize=True, sort=False) for each in tables]
    np.testing.assert_allclose([bar.get_width() for bar in drawn], np.mean(shares, axis=0))
    assert texts(city.get_yticklabels())[-1] == "5 others"
    assert sum(bar.get_width() for bar in city.containers[0]) == pytest.approx(1)
    assert texts(year.get_yticklabels()) == ["2005", "2006", "2007", "2008"]


def test_strips_of_categories_are_bars(odd, odd_imputer):
    school, *_, count, _ = plots.strips(odd_imputer, odd, draws=3).axes
    assert texts(school.get_xticklabels()) == ["observed", "1", "2", "3"]
    assert [len(bars) for bars in school.containers] == [4, 4, 4, 4]
    assert max(bar.get_width() for bars in school.containers for bar in bars) == pytest.approx(0.85)
    assert (len(count.lines), len(count.containers)) == (4, 0)


def test_means_of_ordered_categories(odd, odd_imputer):
    figure = plots.convergence(odd_imputer, odd, draws=3)
    figure.canvas.draw()
    ticks = [float(text) for text in texts(figure.axes[0].get_yticklabels())]
    assert len(set(ticks)) == len(ticks)
    assert 1 < np.mean(ticks) < 4
    assert figure.axes[0].get_ylabel().startswith("1 is none,\n4 is univers…")


def test_axes_of_held_out_cells(odd_imputer):
    figure = plots.overimputation(odd_imputer)
    figure.canvas.draw()
    panels = {axes.get_title(): axes for axes in figure.axes}
    assert "same" not in panels
    assert set(texts(panels["year"].get_xticklabels())) <= {str(year) for year in range(2003, 2011)}
    assert figure.get_supylabel() == "filled in when hidden, with 90% interval"


def test_columns_that_are_not_shown_are_told_of(quick):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 14)))
    for at in range(14):
        table.iloc[: at + 1, at] = np.nan
    imputer = GrapeImputer("fast", settings=quick, random_state=0).fit(table)
    figure = plots.density(imputer, table, draws=2)
    assert [axes.get_title() for axes in figure.axes] == [str(at) for at in range(2, 14)]
    assert figure.get_suptitle() == "12 of 14 columns, those with the most missing cells"


def test_few_missing_cells_are_not_spikes(odd, odd_imputer):
    few = odd_imputer.transform(odd)
    few.loc[few.index[:2], "count"] = pd.NA
    (axes,) = plots.density(odd_imputer, few, draws=5).axes
    observed, drawn = (each.get_data().values for each in axes.patches)
    assert (observed.sum(), drawn.sum()) == (pytest.approx(1), pytest.approx(1))
    assert observed.size == 5
    assert not axes.get_yticks().size
