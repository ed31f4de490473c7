"""Ticks have short names that do not overlap."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from grapefill.report import plots
from grapefill.report.facts import ColumnFacts
from grapefill.report.ticks import name_ticks
from grapefill.table import Schema, Table

START = np.datetime64("2022-04-11T18:44:05", "ns")


def facts_of(values: Any) -> ColumnFacts:
    """Return what the report knows of a column, all of it held out and filled again."""
    table = Table.wrap(pd.DataFrame({"x": values}))
    schema = Schema.infer(table)
    numbers = schema.encode(table).numbers[:, 0]
    held: Any = SimpleNamespace(truth=numbers, guess=numbers)
    return ColumnFacts(schema.columns[0], numbers, numbers[:30], 30, None, held)


def moments(hours: float) -> Any:
    return START + (np.linspace(0, hours, 50) * 3600e9).astype("m8[ns]")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (moments(24 * 365), ["2022-04-11", "2022-10-11", "2023-04-11"]),
        (moments(48), ["04-11 18:44", "04-12 18:44", "04-13 18:44"]),
        (moments(4), ["18:44", "20:44", "22:44"]),
        (moments(0.01), ["18:44:05", "18:44:23", "18:44:41"]),
        (np.repeat(START, 20), ["2022-04-11"]),
        (np.arange(50) * 10**12, ["0", "2.45e+13", "4.9e+13"]),
        (np.arange(50) % 4, ["0", "1.5", "3"]),
        (np.linspace(0, 1e-7, 50), ["0", "5e-08", "1e-07"]),
        (pd.to_timedelta(np.arange(49), unit="h"), ["0 seconds", "1 days", "2 days"]),
        (pd.to_timedelta([-90, 0, 90] * 9, unit="min"), ["-1.5 hours", "0 seconds", "1.5 hours"]),
    ],
)
def test_names(values: Any, words: list[str]) -> None:
    column = facts_of(values)
    low, high = column.observed.min(), column.observed.max()
    assert name_ticks(column, np.linspace(low, high, 3))[1] == words


@pytest.mark.parametrize("hours", [0.0, 0.01, 4, 48, 24 * 365])
@pytest.mark.parametrize("plot", [plots.distribution, plots.scatter])
def test_times_do_not_overlap(monkeypatch: pytest.MonkeyPatch, plot: Any, hours: float) -> None:
    monkeypatch.setattr(plots, "svg_of", lambda figure, _: figure)
    figure = plot(facts_of(moments(hours)))
    figure.draw_without_rendering()
    axes = figure.axes[0]
    across = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert 1 <= len(across) <= 3
    assert all(one.x1 + 3 < other.x0 for one, other in pairwise(across))
    if plot is plots.scatter:
        upward = [label.get_window_extent() for label in axes.get_yticklabels()]
        assert all(one.y1 + 3 < other.y0 for one, other in pairwise(upward))
