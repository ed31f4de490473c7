import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from grapefill.errors import GrapefillWarning, InputError, SchemaError
from grapefill.table import Schema, Table

FITTED = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "c": ["x", "y"], "d": [True, False]})


@pytest.fixture(scope="module")
def schema():
    return Schema.infer(Table.wrap(FITTED))


@pytest.mark.parametrize(
    ("columns", "phrase"),
    [
        (["b", "a", "c", "d"], "Feature names must be in the same order as they were in fit."),
        (["a", "b", "c"], "Feature names seen at fit time, yet now missing:\n- d\n"),
        (["a", "b", "c", "d", "e"], "Feature names unseen at fit time:\n- e\n"),
    ],
)
def test_missing_extra_and_reordered_columns(schema, columns, phrase):
    bad = FITTED.assign(e=1)[columns]
    expected = "The feature names should match those that were passed during fit.\n" + phrase
    for native in (bad, pl.from_pandas(bad), pa.Table.from_pandas(bad)):
        with pytest.raises(SchemaError, match=re.escape(expected)):
            schema.check(Table.wrap(native))


def test_long_lists_of_names_are_cut():
    wide = Schema.infer(Table.wrap(pd.DataFrame(np.zeros((2, 9))).add_prefix("c")))
    with pytest.raises(SchemaError, match=re.escape("- c4\n- ...\nSelect")):
        wide.check(Table.wrap(pd.DataFrame({"c8": [1.0]})))


def test_number_of_columns_without_names():
    fitted = Schema.infer(Table.wrap(np.zeros((3, 4))))
    phrase = "X has 1 features, but GrapeRegressor is expecting 4 features as input"
    with pytest.raises(SchemaError, match=phrase):
        fitted.check(Table.wrap(np.zeros((3, 1))), estimator="GrapeRegressor")


def test_integer_labels_are_compared_too():
    fitted = Schema.infer(Table.wrap(pd.DataFrame({1: [0.5], 2: [0.5]})))
    assert not fitted.named
    with pytest.raises(SchemaError, match="same order"):
        fitted.check(Table.wrap(pd.DataFrame({2: [0.5], 1: [0.5]})))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.check(Table.wrap(np.zeros((1, 2))))


def test_names_on_one_side_only_warn_as_scikit_learn_does():
    named = Schema.infer(Table.wrap(pd.DataFrame({"a": [0.5], "b": [0.5]})))
    unnamed = Schema.infer(Table.wrap(np.zeros((1, 2))))
    phrase = "X does not have valid feature names, but GrapeImputer was fitted with feature names"
    with pytest.warns(UserWarning, match=phrase):
        named.check(Table.wrap(np.zeros((1, 2))))
    phrase = "X has feature names, but GrapeImputer was fitted without feature names"
    with pytest.warns(UserWarning, match=phrase):
        unnamed.check(Table.wrap(pd.DataFrame({"a": [0.5], "b": [0.5]})))


@pytest.mark.parametrize(
    ("column", "cells"),
    [("a", ["1", "2"]), ("b", [True, False]), ("c", [1, 2]), ("d", [0.0, 1.0])],
)
def test_retyped_columns(schema, column, cells):
    with pytest.raises(SchemaError, match=f"Column '{column}' is .* at fit. Convert it"):
        schema.check(Table.wrap(FITTED.assign(**{column: cells})))


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_times_with_a_zone_and_without(convert):
    """They would be taken to be in UTC."""
    plain = pd.DataFrame({"when": pd.to_datetime(["2024-01-01 10:00", "2024-07-01 11:00"])})
    berlin = plain.assign(when=plain["when"].dt.tz_localize("Europe/Berlin"))
    tokyo = berlin.assign(when=berlin["when"].dt.tz_convert("Asia/Tokyo"))
    of_plain, of_berlin = (Schema.infer(Table.wrap(convert(each))) for each in (plain, berlin))
    of_plain.check(Table.wrap(convert(plain)))
    of_berlin.check(Table.wrap(convert(tokyo)))
    with pytest.raises(SchemaError, match=r"Column 'when' has no time zone \(.*Berlin.*Say which"):
        of_berlin.check(Table.wrap(convert(plain)))
    with pytest.raises(SchemaError, match=r"'when' has a time zone \(.*, unlike at fit"):
        of_plain.check(Table.wrap(convert(berlin)))
    # So would be what is filled in.
    with pytest.raises(SchemaError, match="no time zone"):
        of_berlin.check(Table.wrap(convert(plain.assign(when=plain["when"].where([False] * 2)))))
    # Files from before do not tell, and neither do days.
    assert of_berlin.columns[0].zoned
    of_berlin.without_zones().check(Table.wrap(convert(plain)))
    of_berlin.check(Table.wrap(pd.DataFrame({"when": plain["when"].dt.date})))


def test_integers_become_floats_when_holes_appear(schema):
    table = Table.wrap(FITTED.assign(a=[1.0, None]))
    schema.check(table)
    assert schema.encode(table).numbers[0, 0] == 1.0


def test_other_stores_of_the_same_family_fit(schema):
    table = Table.wrap(
        FITTED.assign(
            a=FITTED["a"].astype("Int8"),
            c=FITTED["c"].astype("category"),
            d=FITTED["d"].astype(object),
        )
    )
    schema.check(table)
    np.testing.assert_array_equal(
        schema.encode(table).numbers, schema.encode(Table.wrap(FITTED)).numbers
    )


@pytest.mark.parametrize("empty", [np.nan, None, pd.NaT])
def test_a_column_without_values_fits_every_type(schema, empty):
    table = Table.wrap(pd.DataFrame({name: [empty, empty] for name in FITTED}))
    schema.check(table)
    encoded = schema.encode(table)
    assert not encoded.observed.any()
    assert encoded.fillable.all()


def test_infinities_and_duplicates(schema):
    with pytest.raises(InputError, match=r"inf.*'b', row 1"):
        schema.check(Table.wrap(FITTED.assign(b=[1.0, np.inf])))
    with pytest.raises(InputError, match="more than once: 'a'"):
        schema.check(Table.wrap(FITTED[["a", "a", "b", "c"]]))


def test_passthrough_columns_may_change_type():
    fitted = Schema.infer(
        Table.wrap(pd.DataFrame({"p": [[1]], "x": [0.5]})), kinds={"p": "passthrough"}
    )
    fitted.check(Table.wrap(pd.DataFrame({"p": [np.inf], "x": [0.5]})))


@pytest.mark.parametrize(
    ("fitted", "given"),
    [
        (
            pl.DataFrame({"c": ["a", "b"]}),
            pl.DataFrame({"c": ["a", None]}, schema={"c": pl.Enum(["a"])}),
        ),
        (
            pd.DataFrame({"c": pd.Categorical(["a", "b"], ordered=True)}),
            pd.DataFrame({"c": pd.Categorical(["a", None], ordered=True)}),
        ),
    ],
    ids=["Enum", "ordered category"],
)
def test_a_closed_dtype_needs_room_for_every_category(fitted, given):
    with pytest.raises(SchemaError, match="without the categories 'b'"):
        Schema.infer(Table.wrap(fitted)).check(Table.wrap(given))


def test_an_empty_table_is_consistent(schema):
    table = Table.wrap(FITTED.iloc[:0])
    schema.check(table)
    assert schema.encode(table).numbers.shape == (0, 4)


@pytest.mark.parametrize("container", ["pandas", "category", "polars", "pyarrow", "objects"])
def test_unseen_categories_are_kept_and_named_once(container):
    def convert(frame):
        return {
            "pandas": lambda: frame,
            "category": lambda: frame.astype("category"),
            "polars": lambda: pl.from_pandas(frame),
            "pyarrow": lambda: pa.Table.from_pandas(frame),
            "objects": lambda: frame.to_numpy(dtype=object),
        }[container]()

    fitted = Schema.infer(Table.wrap(convert(pd.DataFrame({"c": ["x", "y"], "d": ["u", "v"]}))))
    table = Table.wrap(convert(pd.DataFrame({"c": ["new", None, "y"], "d": ["u", "odd", None]})))
    fitted.check(table)
    with pytest.warns(GrapefillWarning, match=r"\('new'\).*\('odd'\)") as caught:
        encoded = fitted.encode(table)
    assert len(caught) == 1
    assert encoded.unseen.tolist() == [[True, False], [False, True], [False, False]]
    assert encoded.observed.tolist() == [[False, True], [False, False], [True, False]]
    assert encoded.fillable.tolist() == [[False, False], [True, False], [False, True]]
    np.testing.assert_array_equal(encoded.numbers, [[np.nan, 0], [np.nan, np.nan], [1, np.nan]])
