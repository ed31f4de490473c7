"""A column that passes through can be handed back, not read."""

import pandas as pd
import pytest

from grapefill.errors import GrapefillError
from grapefill.table import Table


@pytest.mark.parametrize("reading", ["numbers", "integers", "instants", "distinct_text"])
def test_reading_a_column_that_passes_through_is_an_error(reading):
    table = Table.wrap(pd.DataFrame({"when": pd.period_range("2024-01", periods=3, freq="M")}))
    with pytest.raises(GrapefillError, match=r"period\[M\] was read although it passes through"):
        getattr(table.cells(0), reading)()
