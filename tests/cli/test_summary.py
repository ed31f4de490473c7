"""The table at the end says where filling in was of use."""

import pytest

from grapefill.cli.summary import ColumnSummary, summary_table


def summary(name, ratio):
    return ColumnSummary(name, "ordinal", 3, 0, "1", "2", ratio)


@pytest.mark.parametrize(
    ("ratio", "words", "better"),
    [
        (0.5, "50% lower", True),
        (0.994, "1% lower", True),
        (0.996, "same", False),
        (1.0, "same", False),
        (1.004, "same", False),
        (1.2, "20% higher", False),
        (None, "", True),
    ],
)
def test_changes_in_words(ratio, words, better):
    column = summary("a", ratio)
    assert (column.change, column.is_better) == (words, better)


@pytest.mark.parametrize(("cells", "words"), [(1, "only 1 cell"), (9, "only 9 cells")])
def test_few_cells_are_not_compared(cells, words):
    column = ColumnSummary("a", "ordinal", 3, 0, "1", "2", 1.5, cells)
    assert (column.change, column.is_better) == (words, True)
    *_, line = summary_table([column])
    assert line.startswith("Where fewer than 10 cells were held out, errors are too uncertain")
    enough = ColumnSummary("a", "ordinal", 3, 0, "1", "2", 0.5, 10)
    assert enough.change == "50% lower"
    assert not any("too uncertain" in str(part) for part in summary_table([enough]))


def test_columns_that_a_constant_fills_as_well_are_named():
    *_, line = summary_table([summary("Paid", 1.1), summary("Size", 0.5), summary("Region", 1.0)])
    assert line == (
        "No better than the median or the most frequent category on held-out cells: 'Paid', "
        "'Region'."
    )
    assert not any("No better" in str(part) for part in summary_table([summary("Size", 0.5)]))
