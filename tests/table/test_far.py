"""Numbers that are absurdly far from all others."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from grapefill import GrapeClassifier, GrapeImputer, GrapeRegressor
from grapefill.errors import GrapefillWarning
from grapefill.table import Schema, Table
from grapefill.table.far import Ends

QUICK = {"max_steps": 60}


def ages(count: int = 200) -> np.ndarray:
    return np.round(np.random.default_rng(0).normal(40, 10, count), 1)


@pytest.mark.parametrize("far", [9999.0, -9999.0, 1e12, 1e300, -1.7e308])
def test_a_number_far_from_all_others_is_found(far: float) -> None:
    ends = Ends.of(np.append(ages(), far))
    assert ends is not None
    assert (ends.low, ends.high) == (ages().min(), ages().max())


def test_two_numbers_far_out_on_both_sides_are_found() -> None:
    ends = Ends.of(np.append(ages(), [2e7, -1e6]))
    assert ends is not None
    assert ends.within(np.array([2e7, -1e6, 99.0])).tolist() == [ages().max(), ages().min(), 99.0]


@pytest.mark.parametrize(
    "numbers",
    [
        ages(),
        np.append(ages(), 100.0),
        np.append(ages(20), 9999.0),
        np.append(np.zeros(500), 9999.0),
        np.append(ages(), [9999.0] * 20),
        np.exp(3 * np.random.default_rng(1).normal(size=5_000)),
        np.random.default_rng(2).pareto(2, size=2_000),
        np.where(np.arange(2_000) % 3, 0, np.random.default_rng(3).lognormal(1, 2, 2_000)),
        np.full(100, 5.0),
        np.append(1e-150 * np.random.default_rng(4).normal(size=200), np.linspace(1, 2, 60)),
    ],
    ids=["usual", "old", "few", "one", "many", "log-normal", "Pareto", "zeros", "constant", "tiny"],
)
def test_what_is_rare_or_heavy_tailed_is_not_far(numbers: np.ndarray) -> None:
    assert Ends.of(numbers) is None


def table_with(far: object = None, *, rows: int = 400) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a table with one value far out in row 10, with holes and without."""
    random = np.random.default_rng(1)
    x = random.normal(size=rows)
    whole = pd.DataFrame({"x": x, "y": 50 + 15 * (x + 0.3 * random.normal(size=rows))})
    if far is not None:
        whole.loc[10, "y"] = far
    holes = random.random(rows) < 0.25
    holes[10] = False
    return whole.mask(np.column_stack([np.zeros(rows, dtype=bool), holes])), whole


def test_one_far_value_does_not_spoil_its_column() -> None:
    holed, whole = table_with(9999.0)
    with pytest.warns(GrapefillWarning, match=r"'y': 9999 in row 10 \(the others are"):
        imputer = GrapeImputer("fast", random_state=0, settings=QUICK).fit(holed)
    holes = holed["y"].isna()
    filled = imputer.transform(holed)
    assert filled.loc[10, "y"] == 9999.0
    for drawn in imputer.sample(holed, 3, random_state=0):
        assert drawn.loc[10, "y"] == 9999.0
        assert drawn["y"][holes].corr(whole["y"][holes]) > 0.75
    low, high = imputer.interval(holed)
    inside = (low["y"] <= whole["y"]) & (whole["y"] <= high["y"])
    assert inside[holes].mean() > 0.7
    assert high["y"][holes].max() < 200


def test_it_counts_as_the_nearest_of_the_others_in_new_rows_too() -> None:
    holed, _ = table_with(9999.0)
    with pytest.warns(GrapefillWarning, match="far"):
        imputer = GrapeImputer("fast", random_state=0, settings=QUICK).fit(holed)
    most = imputer.schema_.columns[1].upper
    rows = pd.DataFrame({"x": [np.nan] * 3, "y": [most, 9999.0, 1e9]})
    filled = imputer.transform(rows)
    assert filled["y"].tolist() == rows["y"].tolist()
    assert filled["x"].nunique() == 1


def test_dates_are_told_as_dates() -> None:
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(np.arange(100) % 60, unit="D")
    table = pd.DataFrame({"day": days, "x": np.arange(100.0) % 60})
    table.loc[3, "day"] = pd.Timestamp("1900-01-01")
    table.loc[50:60, "day"] = pd.NaT
    with pytest.warns(GrapefillWarning, match=r"1900-01-01 in row 3 .* 2021-03-01 to 2021-04-19"):
        imputer = GrapeImputer("fast", random_state=0, settings=QUICK).fit(table)
    filled = imputer.transform(table)
    assert filled["day"][3] == pd.Timestamp("1900-01-01")
    assert filled["day"][50:60].min() >= pd.Timestamp("2021-03-01")


def test_rules_hold_for_the_value_as_it_is() -> None:
    holed, _ = table_with(9999.0)
    holed["least"] = holed["x"]
    holed.loc[10, "least"] = np.nan
    holed["z"] = holed["y"] + 1
    holed.loc[10, "z"] = np.nan
    with pytest.warns(GrapefillWarning, match="far"):
        imputer = GrapeImputer("fast", random_state=0, settings=QUICK, rules=["z >= y"]).fit(holed)
    assert imputer.transform(holed).loc[10, "z"] >= 9999.0


def test_whole_numbers_and_further_rows() -> None:
    table = pd.DataFrame({"age": np.append(np.arange(20, 80), 9999), "x": np.arange(61.0)})
    with pytest.warns(GrapefillWarning, match="'age': 9999 in row 60"):
        imputer = GrapeImputer("fast", random_state=0, settings=QUICK).partial_fit(table)
    assert imputer.schema_.columns[0].upper == 79.0
    imputer.partial_fit(pd.DataFrame({"age": [81, 50_000], "x": [61.0, 62.0]}))
    column = imputer.schema_.columns[0]
    assert (column.lower, column.upper, column.extent) == (20.0, 81.0, (20, 50_000))


def test_what_grows_goes_on_growing() -> None:
    def rows(first: int) -> pd.DataFrame:
        time = np.arange(300.0) + first
        return pd.DataFrame({"time": time, "twice": 2 * time})

    table = rows(0)
    table.loc[5, "time"] = -99_999.0
    with pytest.warns(GrapefillWarning, match="far"):
        imputer = GrapeImputer("fast", random_state=0, settings=QUICK).partial_fit(table)
    later = rows(300)
    imputer.partial_fit(later)
    later.loc[::7, "time"] = np.nan
    filled = imputer.transform(later)["time"]
    assert np.abs(filled - rows(300)["time"]).mean() < 20


def test_a_schema_keeps_its_ends() -> None:
    table = Table.wrap(table_with(9999.0)[0])
    with pytest.warns(GrapefillWarning, match="far"):
        schema = Schema.infer(table).with_ends(table)
    again = Schema.from_dict(schema.to_dict())
    assert again == schema
    assert again.columns[1].ends is not None
    assert schema.encode(table).numbers[10, 1] == schema.columns[1].upper
    assert schema.encode(table, far=True).numbers[10, 1] == 9999.0
    plain = schema.to_dict()
    for column in plain["columns"]:
        del column["ends"]
    assert Schema.from_dict(plain).columns[1].ends is None


def test_classes_are_predicted_beside_a_far_value() -> None:
    holed, _ = table_with(9999.0)
    classes = (holed["x"] > 0).to_numpy()
    with pytest.warns(GrapefillWarning, match="far"):
        model = GrapeClassifier("fast", random_state=0, settings=QUICK).fit(holed[["y"]], classes)
    known = holed["y"].notna().to_numpy()
    assert (model.predict(holed[["y"]]) == classes)[known].mean() > 0.8


def test_labels_are_learned_beside_a_far_one() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 2))
    y = 3 * x[:, 0]
    y[0] = 1e6
    with pytest.warns(GrapefillWarning, match=r"Some labels are so far .* 1e\+06 in row 0"):
        model = GrapeRegressor("fast", random_state=0, settings=QUICK).fit(x, y)
    assert np.corrcoef(model.predict(x)[1:], y[1:])[0, 1] > 0.9


def test_a_table_in_batches_has_ends_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grapefill.imputer.read_small", lambda source: None)
    holed, whole = table_with(1e6, rows=1_000)
    holed.to_parquet(tmp_path / "table.parquet")
    with pytest.warns(GrapefillWarning, match=r"'y': 1e\+06 \(the others are"):
        imputer = GrapeImputer("fast", random_state=0, settings=QUICK).fit(
            tmp_path / "table.parquet"
        )
    holes = holed["y"].isna()
    filled = imputer.transform(holed)["y"]
    assert filled[10] == 1e6
    assert filled[holes].corr(whole["y"][holes]) > 0.8
    assert imputer.model_ is not None
    assert imputer.model_.scaling.scale[1] < 30


@pytest.mark.parametrize("far", [-(2**63), -(2**60), 2**62])
def test_integers_are_counted_from_the_others(far: int) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=300)
    whole = np.rint(50 + 10 * x).astype(np.int64)
    age = pd.array(whole, dtype="Int64")
    age[3] = far
    age[::4] = pd.NA
    table = pd.DataFrame({"x": x, "age": age})
    with pytest.warns(GrapefillWarning, match=f"'age': {far} in row 3"):
        imputer = GrapeImputer("fast", random_state=0, settings=QUICK).fit(table)
    again = Schema.from_dict(imputer.schema_.to_dict())
    assert again == imputer.schema_
    for filled in (imputer.transform(table), *imputer.sample(table, 2, random_state=0)):
        assert filled["age"][3] == far
        assert filled["age"].dtype == "Int64"
        assert np.abs(filled["age"][::4].astype(float) - whole[::4]).mean() < 6


def test_large_integers_from_0_on_are_drawn_as_they_are() -> None:
    x = np.random.default_rng(0).random(400)
    large = np.rint(x * 2**60).astype(np.int64)
    large[0] = 0
    column = pd.array(large, dtype="Int64")
    column[1::4] = pd.NA
    table = pd.DataFrame({"x": x, "large": column})
    imputer = GrapeImputer("fast", random_state=0, settings=QUICK).fit(table)
    drawn = imputer.sample(table, 1, random_state=0)[0]["large"][1::4]
    assert np.corrcoef(drawn.astype(float), x[1::4])[0, 1] > 0.9
