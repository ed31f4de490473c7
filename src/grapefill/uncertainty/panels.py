"""A figure with a panel for every column, and what is written on it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from grapefill.errors import InputError
from grapefill.lines import shorten
from grapefill.table.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.figure import Figure

    from grapefill.table import Schema
    from grapefill.table.column import Column

__all__ = [
    "MOST_LABELS",
    "SMALL",
    "is_whole",
    "label_of",
    "make_panels",
    "write_means",
    "write_values",
]

MOST_PANELS = 12
# In inches, and how many letters fit into them.
WIDE, HIGH = 3.2, 2.6
TITLE, LABEL = 32, 15
# Labels beside an axis.
MOST_LABELS = 5
# The size of letters that are no titles.
SMALL = 8


def make_panels(
    schema: Schema,
    cells: Mapping[int, int],
    draw: Callable[[Any, int, Column], None],
    *,
    of: str = "missing cells",
    labels: tuple[str, str] = ("", ""),
) -> Figure:
    """Return a figure with a panel for each feature, up to a dozen.

    Parameters
    ----------
    schema : Schema
        The columns.
    cells : dict of int to int
        The features, and how many cells there are to show of each.
    draw : callable
        Takes axes, a feature and its column.
    of : str
        What these cells are called.
    labels : tuple of str
        What is below and beside all panels.
    """
    from matplotlib.figure import Figure

    if not cells:
        raise InputError("There is nothing to show: no cell is missing.")
    shown = sorted(sorted(cells, key=lambda feature: -cells[feature])[:MOST_PANELS])
    wide = min(4, len(shown))
    high = -(-len(shown) // wide)
    figure = Figure(figsize=(WIDE * wide, HIGH * high), layout="constrained")
    keys: dict[str, Any] = {}
    for at, feature in enumerate(shown, start=1):
        axes = figure.add_subplot(high, wide, at)
        column = schema.columns[schema.features[feature]]
        draw(axes, feature, column)
        # A column may be called "$x$"; its name is no formula.
        axes.set_title(label_of(column.name, TITLE), fontsize=10, parse_math=False)
        keys |= {label: key for key, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    # Inside of a panel it would cover what there is to see.
    figure.legend(
        keys.values(), keys, loc="outside upper left", ncols=2, frameon=False, fontsize=SMALL
    )
    if len(shown) < len(cells):
        words = f"{len(shown)} of {len(cells):,} columns, those with the most {of}"
        figure.suptitle(words, x=0.99, ha="right", fontsize=SMALL)
    figure.supxlabel(labels[0], fontsize=10)
    figure.supylabel(labels[1], fontsize=10)
    return figure


def label_of(text: str, width: int = LABEL) -> str:
    """Return a text as it is written on a figure: short, and of letters that the font has."""
    from matplotlib.font_manager import FontProperties, findfont

    text = shorten(text, width)
    if text.isascii() and text.isprintable():
        return text
    fonts = [findfont(FontProperties(family=[each])) for each in FontProperties().get_family()]
    # matplotlib would warn of each of the others whenever the figure is drawn.
    known = frozenset[int]().union(*map(_letters_of, fonts))
    return "".join(letter if ord(letter) in known else "?" for letter in text)


@lru_cache(maxsize=8)
def _letters_of(font: str) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    return frozenset(get_font(font).get_charmap())


def is_whole(column: Column) -> bool:
    """Whether a column holds whole numbers."""
    return not column.unit and (column.extent is not None or column.kind is Kind.ORDINAL)


def write_values(axis: Any, column: Column) -> None:
    """Write values of a column beside an axis as they are in the table."""
    from grapefill.uncertainty.ticks import write_numbers

    axis.set_tick_params(labelsize=SMALL)
    if column.categories is None:
        write_numbers(axis, column, whole=is_whole(column))
        return
    count = len(column.categories)
    places = range(0, count, -(-count // MOST_LABELS))
    names = [label_of(str(column.categories[at])) for at in places]
    turned = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    axis.set_ticks(places, names, parse_math=False, **turned if axis.axis_name == "x" else {})


def write_means(axes: Any, column: Column) -> None:
    """Write means of a column beside the y axis; of ordered categories, those of their places."""
    from matplotlib.ticker import FuncFormatter

    from grapefill.uncertainty.ticks import write_numbers

    axes.yaxis.set_tick_params(labelsize=SMALL)
    if column.categories is None:
        write_numbers(axes.yaxis, column, whole=False)
        return
    axes.yaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{place + 1:.4g}"))
    first, last = (label_of(str(column.categories[at])) for at in (0, -1))
    words = f"1 is {first},\n{len(column.categories)} is {last}"
    axes.set_ylabel(words, parse_math=False, fontsize=SMALL)
