"""Wide tables of which only a small part is observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.sparse
import torch

from grapefill import SparseImputer
from grapefill.errors import InputError, SchemaError
from grapefill.graph import Cells, EdgeCells, EdgeGraph, Features, Slots

if TYPE_CHECKING:
    from pathlib import Path

ROWS, COLUMNS = 300, 120


def make_cells(density: float = 0.15, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return rows, columns and values of a table of low rank, with a mean for every column."""
    random = np.random.default_rng(seed)
    table = random.normal(size=(ROWS, 2)) @ random.normal(size=(2, COLUMNS))
    table += 2 * random.normal(size=COLUMNS)
    rows, columns = np.nonzero(random.random(table.shape) < density)
    return rows, columns, table[rows, columns]


@pytest.fixture(scope="module")
def fitted() -> tuple[SparseImputer, Any, Any]:
    rows, columns, values = make_cells()
    test = np.random.default_rng(1).random(rows.size) < 0.1
    seen = scipy.sparse.coo_matrix(
        (values[~test], (rows[~test], columns[~test])), shape=(ROWS, COLUMNS)
    )
    settings = {"max_steps": 150, "batch_rows": 300, "learning_rate": 0.01}
    imputer = SparseImputer("fast", settings=settings, random_state=0).fit(seen.tocsr())
    return imputer, seen, (rows[test], columns[test], values[test])


def test_held_out_cells_are_filled_better_than_by_means(fitted: Any) -> None:
    imputer, seen, (rows, columns, values) = fitted
    predicted = imputer.predict_cells(seen, rows, columns)
    means = np.bincount(seen.col, seen.data, COLUMNS) / np.bincount(seen.col, minlength=COLUMNS)
    error = np.abs(predicted - values).mean()
    assert error < 0.8 * np.abs(means[columns] - values).mean()
    assert error < 0.8 * np.abs(seen.data.mean() - values).mean()


def test_cells_are_predicted_one_by_one_or_together(fitted: Any) -> None:
    imputer, seen, (rows, columns, _) = fitted
    together = imputer.predict_cells(seen, rows, columns)
    order = np.random.default_rng(0).permutation(rows.size)[:20]
    apart = [imputer.predict_cells(seen, [rows[k]], [columns[k]])[0] for k in order]
    np.testing.assert_allclose(apart, together[order], rtol=1e-4, atol=1e-4)
    long = (seen.row, seen.col, seen.data)
    assert (imputer.predict_cells(long, rows, columns) == together).all()


def test_a_file_holds_the_model(fitted: Any, tmp_path: Path) -> None:
    imputer, seen, (rows, columns, _) = fitted
    imputer.save(tmp_path / "wide.grape")
    again = SparseImputer.load(tmp_path / "wide.grape")
    assert (
        again.predict_cells(seen, rows, columns) == imputer.predict_cells(seen, rows, columns)
    ).all()


def test_an_empty_row_and_unseen_rows_can_be_asked_for(fitted: Any) -> None:
    imputer, _, _ = fitted
    cells = (np.array([5]), np.array([3]), np.array([1.0]))
    found = imputer.predict_cells(cells, [0, 5, 2], [0, 1, 2], shape=(6, COLUMNS))
    assert np.isfinite(found).all()
    empty = scipy.sparse.csr_matrix((3, COLUMNS))
    assert imputer.predict_cells(empty, [0, 2], [0, 2]).tolist() == found[[0, 2]].tolist()


def test_three_arrays_may_be_a_list(fitted: Any) -> None:
    imputer, seen, (rows, columns, _) = fitted
    listed = imputer.predict_cells([seen.row, seen.col, seen.data], rows, columns)
    assert (listed == imputer.predict_cells(seen, rows, columns)).all()
    # The last column that is named is not the last of the table.
    assert np.isfinite(imputer.predict_cells([[0], [1], [1.0]], [0], [3])).all()


@pytest.mark.parametrize("shape", [(30, 1), (1, 30), (2, 2), (1, 1)])
def test_a_single_row_or_column_can_be_filled(shape: tuple[int, int]) -> None:
    cells = scipy.sparse.csr_matrix(np.arange(1.0, shape[0] * shape[1] + 1).reshape(shape))
    imputer = SparseImputer("fast", settings={"max_steps": 5}, random_state=0).fit(cells)
    assert np.isfinite(imputer.predict_cells(cells, [0], [shape[1] - 1])).all()


@pytest.mark.parametrize("value", [1.0, 0.1, 0.0])
def test_cells_may_all_be_the_same(value: float) -> None:
    cells = scipy.sparse.random(40, 15, density=0.3, random_state=0, format="csr")
    cells.data[:] = value
    imputer = SparseImputer("fast", settings={"max_steps": 5}, random_state=0).fit(cells)
    assert imputer.predict_cells(cells, [0, 1], [4, 5]).tolist() == [value, value]


def test_the_list_gives_the_graph_of_the_dense_cells() -> None:
    random = np.random.default_rng(0)
    numbers = np.where(random.random((7, 5)) < 0.4, random.normal(size=(7, 5)), np.nan)
    features = Features((0,) * 5)
    dense = Cells.from_numbers(numbers, features)
    observation, feature = dense.observed.nonzero(as_tuple=True)
    edges = EdgeCells(observation, feature, dense.value[dense.observed], 7, 5)
    slots = Slots(features, shared=False)
    one, other = EdgeGraph(dense, slots), EdgeGraph(edges, slots)
    for name in ("observation", "feature", "value", "slots", "at_observation", "at_feature"):
        assert getattr(one, name).equal(getattr(other, name))
    assert one.by_feature.equal(other.by_feature)
    rows = torch.tensor([4, 0, 6])
    taken = EdgeGraph(dense.take(rows), slots)
    assert taken.value.equal(edges.take(rows).value)
    assert taken.feature.equal(edges.take(rows).feature)


@pytest.mark.parametrize(
    ("cells", "match"),
    [
        (np.ones((2, 2)), "not a sparse table"),
        (([0], [1, 2], [1.0]), "one of each"),
        (([0], [0], [np.nan]), "NaN or infinite"),
        (([], [], []), "nothing to learn"),
        (scipy.sparse.csr_matrix((3, 4)), "nothing to learn"),
        (([-1], [0], [1.0]), "outside the table"),
        (([0, 0], [1, 1], [1.0, 2.0]), "there twice"),
        (([0.5], [1], [1.0]), "whole numbers"),
    ],
)
def test_bad_input_is_refused(cells: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        SparseImputer("fast").fit(cells)


def test_bad_questions_are_refused(fitted: Any) -> None:
    imputer, seen, _ = fitted
    with pytest.raises(InputError, match="one row and one column"):
        imputer.predict_cells(seen, [0, 1], [0])
    with pytest.raises(InputError, match="120 columns"):
        imputer.predict_cells(seen, [0], [COLUMNS])
    with pytest.raises(InputError, match=r"row to predict is -1, but the table has 300 rows"):
        imputer.predict_cells(seen, [-1, 3], [0, 0])
    with pytest.raises(SchemaError, match="expecting 120"):
        imputer.predict_cells(seen.tocsr()[:, :50], [0], [0])
