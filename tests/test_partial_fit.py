"""Learning from rows that keep arriving."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeImputer
from grapefill.errors import GrapefillWarning, InputError, SchemaError
from grapefill.training import arriving

SETTINGS = {"max_steps": 20, "rounds": 0}


def make_rows(rows: int, shift: float, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x = random.normal(size=rows) + shift
    table = pd.DataFrame({"a": x, "b": np.rint(3 * x), "c": np.where(x > shift, "up", "down")})
    return table.mask(random.random(table.shape) < 0.1)


def make_imputer(**options: Any) -> GrapeImputer:
    return GrapeImputer("fast", settings=SETTINGS, random_state=0, **options)


def test_the_first_call_is_a_fit() -> None:
    table = make_rows(60, 0.0)
    pd.testing.assert_frame_equal(
        make_imputer().partial_fit(table).transform(table), make_imputer().fit_transform(table)
    )


def test_later_rows_are_learned_and_ranges_widened() -> None:
    imputer = make_imputer().partial_fit(make_rows(80, 0.0))
    network = imputer.network_
    assert network is not None
    before = [parameter.clone() for parameter in network.parameters()]
    later = make_rows(80, 5.0, seed=1)
    imputer.partial_fit(later)
    assert imputer.schema_.columns[0].upper == later["a"].max()
    assert imputer.schema_.columns[0].lower < 0
    assert imputer.network_ is not None
    changed = zip(before, imputer.network_.parameters(), strict=True)
    assert any(not old.equal(new) for old, new in changed)
    assert imputer.transform(later).notna().all(axis=None)
    again = make_imputer().partial_fit(make_rows(80, 0.0)).partial_fit(later)
    pd.testing.assert_frame_equal(again.transform(later), imputer.transform(later))


def test_a_sample_of_all_rows_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arriving, "SEEN_ROWS", 50)
    imputer = make_imputer()
    for part in range(4):
        imputer.partial_fit(make_rows(40, 10.0 * part, seed=part))
    seen = imputer._seen
    assert seen is not None
    assert seen.count == 160
    assert len(seen.numbers) == 50
    shares = np.histogram(seen.numbers[:, 0], bins=[-5, 5, 15, 25, 35])[0]
    assert (shares >= 4).all()


def test_other_columns_are_refused_and_new_categories_named() -> None:
    imputer = make_imputer().partial_fit(make_rows(40, 0.0))
    with pytest.raises(SchemaError):
        imputer.partial_fit(make_rows(40, 0.0)[["a", "b"]])
    strange = make_rows(40, 0.0).assign(c="sideways")
    with pytest.warns(GrapefillWarning, match="sideways"):
        imputer.partial_fit(strange)


def test_a_fit_forgets() -> None:
    imputer = make_imputer().partial_fit(make_rows(40, 0.0)).fit(make_rows(40, 1.0))
    assert imputer._seen is None


def whole_numbers(rows: int = 40) -> pd.DataFrame:
    """Return a column of whole numbers with holes, which pandas stores as floats."""
    a = np.linspace(-2, 2, rows)
    price = np.where(np.arange(rows) % 4 == 0, np.nan, np.rint(10 * a))
    return pd.DataFrame({"a": a, "price": price})


def test_floats_that_were_whole_numbers_may_become_others() -> None:
    first = whole_numbers()
    imputer = make_imputer().partial_fit(first)
    assert imputer.schema_.columns[1].kind == "ordinal"
    later = first.assign(price=first["price"] + 0.25)
    imputer.partial_fit(later)
    column = imputer.schema_.columns[1]
    assert column.kind == "continuous"
    assert (column.lower, column.upper) == (first["price"].min(), later["price"].max())
    filled = imputer.transform(later)["price"][::4]
    assert (filled != np.rint(filled)).any()


def test_fractions_are_refused_where_whole_numbers_were_asked_for() -> None:
    first = whole_numbers()
    later = first.assign(price=first["price"] + 0.5)
    imputer = make_imputer(kinds={"price": "ordinal"}).partial_fit(first)
    with pytest.raises(InputError, match="'price' cannot be 'ordinal'"):
        imputer.partial_fit(later)
    imputer = make_imputer(kinds={1: "ordinal"}).partial_fit(first.to_numpy())
    with pytest.raises(InputError, match="'x1' cannot be 'ordinal'"):
        imputer.partial_fit(later.to_numpy())
    imputer = make_imputer().partial_fit(first.astype({"price": "Int64"}))
    with pytest.raises(InputError, match=r"was Int64.*kinds=\{'price': \"continuous\"\}"):
        imputer.partial_fit(later)


@pytest.mark.parametrize(("first", "second"), [("Int64", "float64"), ("float64", "Int64")])
def test_whole_numbers_may_come_as_integers_and_as_floats(first: str, second: str) -> None:
    table = whole_numbers()
    later = table.assign(price=table["price"] + 20)
    imputer = make_imputer().partial_fit(table.astype({"price": first}))
    imputer.partial_fit(later.astype({"price": second}))
    column = imputer.schema_.columns[1]
    assert column.kind == "ordinal"
    assert (column.lower, column.upper) == (table["price"].min(), later["price"].max())
    assert column.extent == ((column.lower, column.upper) if first == "Int64" else None)
