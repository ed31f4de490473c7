import datetime
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from grapefill.errors import GrapefillWarning, InputError
from grapefill.table import Kind, Schema, Table


def infer(native, **options):
    return Schema.infer(Table.wrap(native), **options)


def kind_of(native, **options):
    return infer(native, **options).columns[0].kind


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (pd.Series([1.0, 2.5, None]), Kind.CONTINUOUS),
        (pd.Series([1.0, 2.0, 3.0]), Kind.CONTINUOUS),
        (pd.Series([1.0, 2.0, None]), Kind.ORDINAL),
        (pd.Series([1e300, 2.0, None]), Kind.CONTINUOUS),
        (pd.Series([1.0, 2.0, None], dtype="Float64"), Kind.CONTINUOUS),
        (pd.Series([1, 2, None], dtype="UInt16"), Kind.ORDINAL),
        (pd.Series([True, False]), Kind.BOOLEAN),
        (pd.Series([True, None], dtype=object), Kind.BOOLEAN),
        (pd.Series(["a", None]), Kind.CATEGORICAL),
        (pd.Series(pd.Categorical(["a"], ordered=True)), Kind.ORDINAL),
        (pd.Series(pd.Categorical(["a"])), Kind.CATEGORICAL),
        (pd.Series([datetime.timedelta(1)]), Kind.DATETIME),
        (pd.Series([1, 2.5], dtype=object), Kind.CONTINUOUS),
        (pl.Series([1.0, 2.0, None]), Kind.CONTINUOUS),
        (pl.Series([datetime.date(2020, 1, 1)]), Kind.DATETIME),
        (pl.Series(["a"], dtype=pl.Enum(["a"])), Kind.CATEGORICAL),
    ],
)
def test_kinds_come_from_dtypes(cells, kind):
    frame = cells.to_frame("c")
    assert kind_of(frame) is kind
    if isinstance(frame, pl.DataFrame):
        assert kind_of(frame.to_arrow()) is kind


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (pd.Series([1, "a"], dtype=object), "several types: int, str"),
        (pd.Series([[1], [2]]), "type list"),
        (pd.Series([b"x"], dtype=object), "type bytes"),
        (pd.Series([2**70, 1], dtype=object), "wider than 64 bits"),
        (pd.Series(pd.period_range("2020", periods=2, freq="D")), "period"),
        (pl.Series([[1]]), "List"),
        (pl.Series([{"a": 1}]), "Struct"),
        (pl.Series([datetime.time(1)]), "Time"),
        (pl.Series([b"x"]), "Binary"),
        (pl.Series([1], dtype=pl.Int128), "Int128"),
    ],
)
def test_what_cannot_be_imputed_passes_through_with_one_warning(cells, reason):
    frame = cells.to_frame("strange")
    with pytest.warns(GrapefillWarning, match=rf"'strange' \(.*{reason}") as caught:
        schema = infer(frame)
    assert len(caught) == 1
    assert schema.columns[0].kind is Kind.PASSTHROUGH
    assert schema.features == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        infer(frame, kinds={"strange": "passthrough"})


def test_one_warning_names_all_columns():
    frame = pd.DataFrame({"id": range(30), "note": [f"text {i}" for i in range(30)], "x": 0.5})
    with pytest.warns(GrapefillWarning) as caught:
        schema = infer(frame)
    assert len(caught) == 1
    assert "'id' (identifier)" in str(caught[0].message)
    assert "'note' (free text or identifier)" in str(caught[0].message)
    assert schema.features == (2,)


@pytest.mark.parametrize(
    ("name", "is_identifier"),
    [
        ("ID", True),
        ("user_id", True),
        ("id_user", True),
        ("PassengerId", True),
        ("Unnamed: 0", True),
        ("index", True),
        ("rownum", True),
        ("humid", False),
        ("arrow", False),
        ("age", False),
    ],
)
def test_integer_identifiers_by_name(name, is_identifier):
    frame = pd.DataFrame({name: range(20)})
    if is_identifier:
        with pytest.warns(GrapefillWarning, match="identifier"):
            assert kind_of(frame) is Kind.PASSTHROUGH
        assert kind_of(frame, kinds={name: "ordinal"}) is Kind.ORDINAL
    else:
        assert kind_of(frame) is Kind.ORDINAL
    assert kind_of(frame.iloc[:19]) is Kind.ORDINAL
    assert kind_of(frame.assign(**{name: 1})) is Kind.ORDINAL


def test_free_text_rule_and_its_limits():
    half = [f"w{i}" for i in range(10)] * 2
    assert kind_of(pd.DataFrame({"c": half})) is Kind.CATEGORICAL
    distinct = [f"w{i}" for i in range(20)]
    assert kind_of(pd.DataFrame({"c": distinct[:19]})) is Kind.CATEGORICAL
    assert kind_of(pd.DataFrame({"c": distinct}, dtype="category")) is Kind.CATEGORICAL
    assert kind_of(pd.DataFrame({"c": distinct}), kinds={"c": "categorical"}) is Kind.CATEGORICAL
    with pytest.warns(GrapefillWarning, match="free text"):
        assert kind_of(pl.DataFrame({"c": distinct})) is Kind.PASSTHROUGH


def test_categories_are_the_observed_ones_in_declared_or_sorted_order():
    declared = pd.Categorical(["b", "a", None], categories=["c", "b", "a"])
    assert infer(pd.DataFrame({"c": declared})).columns[0].categories == ("b", "a")
    enum = pl.Series("c", ["a", "b"], dtype=pl.Enum(["c", "b", "a"]))
    assert infer(enum.to_frame()).columns[0].categories == ("b", "a")
    assert infer(pl.DataFrame({"c": ["b", "a"]})).columns[0].categories == ("a", "b")
    assert infer(pa.table({"c": ["b", "a"]})).columns[0].categories == ("a", "b")


@pytest.mark.parametrize(
    ("native", "kind", "phrase"),
    [
        (pd.DataFrame({"c": ["a"]}), "continuous", "cannot be 'continuous'"),
        (pd.DataFrame({"c": ["a"]}), "ordinal", "cannot be 'ordinal'"),
        (pd.DataFrame({"c": [0.5]}), "ordinal", "0.5, which is not a whole number"),
        (pd.DataFrame({"c": [0, 2]}), "boolean", "it holds 0, 2"),
        (pd.DataFrame({"c": [[1]]}), "categorical", "Choose one of 'passthrough'"),
        (pd.DataFrame({"c": [1]}), "number", "kind 'number'"),
        (pd.DataFrame({"c": [1]}), 3, "kind 3"),
    ],
)
def test_impossible_kinds_are_refused(native, kind, phrase):
    with pytest.raises(InputError, match=phrase):
        infer(native, kinds={"c": kind})


def test_kinds_by_label_and_by_position():
    array = np.array([[1.0, 2.0], [3.0, 4.0]])
    schema = infer(array, kinds={0: "ordinal", "x1": Kind.CATEGORICAL})
    assert [column.kind for column in schema.columns] == [Kind.ORDINAL, Kind.CATEGORICAL]
    assert schema.columns[1].categories == (2.0, 4.0)
    with pytest.raises(InputError, match=r"'income', which the table does not have.*'x0', 'x1'"):
        infer(array, kinds={"income": "ordinal"})
    assert kind_of(pd.DataFrame({7: [1, 0]}), kinds={7: "boolean"}) is Kind.BOOLEAN


@pytest.mark.parametrize(
    ("native", "phrase"),
    [
        (np.empty((0, 3)), r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of"),
        (np.empty((5, 0)), r"Found array with 0 feature\(s\) \(shape=\(5, 0\)\) while a minimum"),
        (pl.DataFrame({"a": []}), r"Found array with 0 sample\(s\)"),
        (np.array([[1.0, 2.0], [3.0, -np.inf]]), "inf.*'x1', row 1"),
        (np.array([[1.0], [np.inf]], dtype=object), "inf.*'x0', row 1"),
        (pa.table({"a": [1.0, float("inf")]}), "inf.*'a', row 1"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than once: 'a'"),
        (pa.table([[1], [2]], names=["a", "a"]), "more than once: 'a'"),
        (np.array([[1j]]), "Complex data not supported"),
        (pd.DataFrame({"z": [1j]}), "Complex data not supported: column 'z'"),
    ],
)
def test_tables_that_cannot_be_used(native, phrase):
    with pytest.raises(InputError, match=phrase):
        infer(native)


def test_empty_columns_are_no_features_and_give_no_warning():
    frame = pd.DataFrame({"a": [np.nan, np.nan], "b": [None, None], "c": [1.0, 2.0]})
    schema = infer(frame)
    assert [column.empty for column in schema.columns] == [True, True, False]
    assert schema.features == (2,)
    assert infer(pl.DataFrame({"a": [None, None]})).columns[0].empty


@pytest.mark.parametrize(
    "native",
    [
        np.array([[1.5, np.nan]]),
        pd.DataFrame(
            {
                "number": [0.1, None],
                "large": [2**62, 2**62 + 1],
                "text": ["ü", "b"],
                "flag": [True, False],
                "grade": pd.Categorical(["lo", "hi"], categories=["lo", "hi"], ordered=True),
                "when": pd.to_datetime(["2020-01-01", None]).as_unit("ns"),
                "wait": pd.to_timedelta([1, 2]),
                "cut": pd.cut([1, 2], 2),
                "empty": [None, None],
            }
        ),
        pd.DataFrame({1: [1.0], 2: [2.0]}),
        pd.DataFrame([[1.0, 2.0]], columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])),
    ],
    ids=["numpy", "mixed", "integer labels", "tuple labels"],
)
def test_a_schema_survives_json(native):
    schema = infer(native)
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False)))
    assert again == schema
    again.check(Table.wrap(native))


def test_an_ordered_dictionary_is_ordinal():
    sizes = pd.Categorical(["hi", "lo"], categories=["lo", "mid", "hi"], ordered=True)
    column = infer(pa.Table.from_pandas(pd.DataFrame({"c": sizes}))).columns[0]
    assert (column.kind, column.categories) == (Kind.ORDINAL, ("lo", "hi"))
    unordered = pd.Categorical(["hi", "lo"], categories=["lo", "hi"])
    assert kind_of(pa.Table.from_pandas(pd.DataFrame({"c": unordered}))) is Kind.CATEGORICAL


def test_an_enum_is_ordinal_on_request():
    enum = pl.DataFrame({"c": ["hi", "lo"]}, schema={"c": pl.Enum(["lo", "mid", "hi"])})
    for native in (enum, enum.to_arrow()):
        assert kind_of(native) is Kind.CATEGORICAL
        column = infer(native, kinds={"c": "ordinal"}).columns[0]
        assert (column.kind, column.categories) == (Kind.ORDINAL, ("lo", "hi"))
