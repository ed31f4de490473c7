"""Figures like the paper's: bars normalised by Mean, and curves over the share of missing cells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.experiments import EXPERIMENTS, LEVELS
from benchmarks.tables import YARDSTICK, _lines, relative, scores

if TYPE_CHECKING:
    import argparse

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
BARS = ("imputation", "labels", "new-rows")
CURVES = ("imputation-levels", "label-levels")
# Told apart without colour vision too (Okabe and Ito), the presets strongest.
COLORS = ["#999999", "#56B4E9", "#009E73", "#F0E442", "#CC79A7", "#E69F00", "#0072B2", "#D55E00"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where figures are written")


def run(arguments: argparse.Namespace) -> None:
    """Draw every figure that there are lines for."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in (*BARS, *CURVES):
        figure = bars(name) if name in BARS else curves(name)
        if figure is not None:
            path = arguments.folder / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None})
            print(f"Wrote {path}.")


def bars(name: str) -> Any:
    """Draw the error of every method on every table, relative to the mean's."""
    experiment, found = EXPERIMENTS[name], scores(_lines(name), "mae")
    yardstick = YARDSTICK.get(name, "mean")
    assert yardstick is not None
    methods = [m for m in experiment.methods if any((m, d) in found for d in experiment.datasets)]
    if not any((yardstick, d) in found for d in experiment.datasets):
        return None
    figure, axes = _canvas(11)
    width = 0.85 / len(methods)
    for at, method in enumerate(methods):
        heights = [
            (relative(found, method, yardstick, (d,)) or (np.nan,))[0] for d in experiment.datasets
        ]
        places = np.arange(len(heights)) + at * width - 0.4
        color, again = _color(at, len(methods))
        hatch = "////" if again else None
        axes.bar(places, heights, width, label=method, color=color, hatch=hatch, edgecolor="white")
    axes.set_xticks(np.arange(len(experiment.datasets)), experiment.datasets)
    axes.set_ylabel(f"MAE / {yardstick}")
    axes.set_ylim(0, 1.5)
    axes.legend(fontsize=7, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    return figure


def curves(name: str) -> Any:
    """Draw the mean over tables of the error relative to the mean's, by missing share."""
    experiment = EXPERIMENTS[name]
    yardstick = YARDSTICK.get(name, "mean")
    assert yardstick is not None
    lines = _lines(name)
    figure, axes = _canvas(7)
    drawn = False
    for at, method in enumerate(experiment.methods):
        found = {
            level: relative(
                scores([line for line in lines if line["missing"] == level], "mae"),
                method,
                yardstick,
                experiment.datasets,
            )
            for level in LEVELS
        }
        known = {level: ratio[0] for level, ratio in found.items() if ratio is not None}
        if len(known) > 1:
            drawn = True
            color, again = _color(at, len(experiment.methods))
            shape = "s--" if again else "o-"
            axes.plot(known.keys(), known.values(), shape, label=method, color=color)
    if not drawn:
        return None
    axes.set_xlabel("share of cells missing")
    axes.set_ylabel(f"MAE / {yardstick}, mean over tables")
    axes.legend(fontsize=7, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    return figure


def _canvas(width: float) -> tuple[Any, Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # The same lines give the same file.
    mpl.rcParams["svg.hashsalt"] = "grapefill"
    figure = Figure(figsize=(width, 4.5), layout="constrained")
    return figure, figure.subplots()


def _color(at: int, count: int) -> tuple[str, bool]:
    """Return a colour, and whether a later method has it too; the last methods are the presets."""
    return COLORS[(at - count) % len(COLORS)], count - at > len(COLORS)
