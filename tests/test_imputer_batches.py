"""`transform_batches`: the same rows as `transform`, whatever the batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from grapefill import GrapeImputer
from grapefill.errors import ConfigError, GrapefillWarning, InputError

SETTINGS = {"max_steps": 12, "rounds": 1, "trees": 4, "trial_trees": 4}


def make_table(rows: int = 900, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    x = random.normal(size=rows)
    return pa.table(
        {
            "a": pa.array(x, mask=random.random(rows) < 0.2),
            "b": pa.array(np.rint(x * 10).astype(int), mask=random.random(rows) < 0.2),
            "c": pa.array(
                np.where(x > 0, "up", "down"), mask=random.random(rows) < 0.2
            ).dictionary_encode(),
        }
    )


@pytest.fixture(scope="module")
def imputer() -> GrapeImputer:
    return GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(make_table())


@pytest.mark.parametrize("size", [1, 37, 5000])
def test_batches_of_any_size_give_the_same_cells(imputer: GrapeImputer, size: int) -> None:
    table = make_table(90, seed=1)
    batches = table.to_batches(max_chunksize=size)
    filled = list(imputer.transform_batches(iter(batches)))
    assert [batch.num_rows for batch in filled] == [batch.num_rows for batch in batches]
    assert pa.Table.from_batches(filled).unify_dictionaries().to_pydict() == (
        imputer.transform(table).to_pydict()
    )


def test_batches_are_filled_one_at_a_time(imputer: GrapeImputer) -> None:
    taken = []

    def batches():
        for batch in make_table(30).to_batches(max_chunksize=10):
            taken.append(batch)
            yield batch

    filled = imputer.transform_batches(batches())
    assert not taken
    next(filled)
    assert len(taken) == 1


def test_an_empty_batch_stays_empty(imputer: GrapeImputer) -> None:
    empty = make_table(5).slice(0, 0)
    (batch,) = imputer.transform_batches([empty])
    assert batch.num_rows == 0
    assert batch.schema.names == ["a", "b", "c"]


def test_unseen_categories_are_named_once_in_the_end(imputer: GrapeImputer) -> None:
    table = pa.table({"a": [None, 1.0], "b": [1, None], "c": ["left", "right"]})
    table = table.set_column(2, "c", table["c"].dictionary_encode())
    with pytest.warns(GrapefillWarning, match=r"left.*right") as caught:
        list(imputer.transform_batches([table.slice(0, 1), table.slice(1), table]))
    assert len(caught) == 1


def test_a_graph_of_all_rows_cannot_come_in_batches() -> None:
    imputer = GrapeImputer("fast", settings=SETTINGS, graph_from="transform", random_state=0)
    imputer.fit(make_table(60))
    with pytest.raises(ConfigError, match="all rows at once"):
        imputer.transform_batches([make_table(5)])


def test_a_batch_is_no_table(imputer: GrapeImputer) -> None:
    (batch,) = make_table(30).to_batches()
    with pytest.raises(InputError, match=r"Table.from_batches\(\[X\]\)"):
        imputer.transform(batch)
    with pytest.raises(InputError, match=r"Table.from_batches\(\[X\]\)"):
        GrapeImputer("fast", settings=SETTINGS).fit(batch)
