"""Every input that is likely to go wrong works in a documented way or says what to do."""

from __future__ import annotations

import copy
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import safetensors.torch
import torch

from grapefill import GrapeImputer
from grapefill.errors import (
    ConfigError,
    GrapefillError,
    GrapefillWarning,
    InputError,
    ModelFileError,
    SchemaError,
)
from grapefill.files.model import read_model, write_model

QUICK = {"max_steps": 4, "batch_rows": None, "width": 8, "edge_width": 8, "head_width": 8}
PRESETS = ["default", "paper"]


def quick(preset="default", **parameters):
    parameters.setdefault("random_state", 0)
    return GrapeImputer(preset, settings=QUICK, **parameters)


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=30),
            "age": pd.array(rng.integers(90, size=30), dtype="Int64"),
            "color": pd.Categorical(rng.choice(["red", "green", "blue"], size=30)),
        }
    )
    return frame.mask(pd.DataFrame(rng.random(frame.shape) < 0.2, columns=frame.columns))


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(table())


def says(*parts):
    """Match a message that has these parts, in this order."""
    return "(?s)" + ".*".join(map(re.escape, parts))


def kept(before, after):
    """Whether every observed cell is what it was, and the dtypes too."""
    return after.mask(before.isna()).equals(before)


class TestInfinity:
    @pytest.mark.parametrize("infinity", [np.inf, -np.inf])
    @pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_at_fit(self, infinity, container):
        X = container({"a": [1.0, 2.0, 3.0], "size": [1.0, infinity, 3.0]})
        with pytest.raises(InputError, match=says("infinity", "'size', row 1", "Replace")):
            quick().fit(X)

    def test_in_an_array(self):
        with pytest.raises(InputError, match=says("infinity", "'x1', row 0", "Replace")):
            quick().fit(np.array([[1.0, np.inf], [2.0, 3.0]]))

    def test_at_transform(self, fitted):
        X = table()
        X.loc[7, "size"] = np.inf
        with pytest.raises(InputError, match=says("infinity", "'size', row 7", "Replace")):
            fitted.transform(X)

    def test_passes_through_a_column_that_is_not_used(self):
        X = np.array([[1.0, np.inf], [np.nan, 3.0], [2.0, np.nan]])
        filled = quick(kinds={1: "passthrough"}).fit_transform(X)
        np.testing.assert_array_equal(filled[:, 1], X[:, 1])
        assert np.isfinite(filled[:, 0]).all()


class TestNoCells:
    @pytest.mark.parametrize("empty", [table().iloc[:0], pl.DataFrame({"a": []}), np.empty((0, 2))])
    def test_no_rows_at_fit(self, empty):
        with pytest.raises(InputError, match=says("0 sample(s)", "at least one row")):
            quick().fit(empty)

    @pytest.mark.parametrize("empty", [table().iloc[:, :0], np.empty((2, 0))])
    def test_no_columns_at_fit(self, empty):
        with pytest.raises(InputError, match=says("0 feature(s)", "one column")):
            quick().fit(empty)

    @pytest.mark.parametrize("graph_from", ["fit", "transform"])
    def test_no_rows_at_transform(self, graph_from):
        X = table()
        imputer = quick(graph_from=graph_from, add_indicator=True).fit(X)
        nothing = imputer.transform(X.iloc[:0])
        assert nothing.shape == (0, 6)
        pd.testing.assert_series_equal(nothing.dtypes[:3], X.dtypes)

    @pytest.mark.filterwarnings("ignore:X does not have valid feature names")
    def test_no_columns_at_transform(self, fitted):
        with pytest.raises(SchemaError, match=says("0 features", "expecting 3", "Pass the")):
            fitted.transform(table().iloc[:, :0])

    @pytest.mark.parametrize(
        "thing", ["text", None, 3.0, np.array([1.0, 2.0]), [[1.0], [1.0, 2.0]]]
    )
    def test_no_table_at_all(self, thing):
        with pytest.raises(
            InputError, match=r"Pass a 2-D|Reshape|same number of cells|no such file or folder"
        ):
            quick().fit(thing)


class TestColumns:
    def test_duplicate_names(self, fitted):
        X = table().set_axis(["size", "age", "size"], axis=1)
        message = says("more than once: 'size'", "Rename or drop")
        with pytest.raises(InputError, match=message):
            quick().fit(X)
        with pytest.raises(InputError, match=message):
            fitted.transform(X)

    def test_missing(self, fitted):
        message = says("yet now missing", "- age", "Select the columns")
        with pytest.raises(SchemaError, match=message):
            fitted.transform(table().drop(columns="age"))

    def test_extra(self, fitted):
        message = says("unseen at fit time", "- weight", "Select the columns")
        with pytest.raises(SchemaError, match=message):
            fitted.transform(table().assign(weight=1.0))

    def test_renamed(self, fitted):
        message = says("unseen", "- colour", "now missing", "- color", "Select the columns")
        with pytest.raises(SchemaError, match=message):
            fitted.transform(table().rename(columns={"color": "colour"}))

    def test_reordered(self, fitted):
        message = says("same order", "Select the columns of the table at fit, in their order")
        with pytest.raises(SchemaError, match=message):
            fitted.transform(table()[["age", "size", "color"]])

    def test_another_number_in_an_array(self):
        imputer = quick().fit(np.random.default_rng(0).normal(size=(5, 3)))
        for columns in (2, 4):
            message = says(f"X has {columns} features", "expecting 3", "Pass the columns")
            with pytest.raises(SchemaError, match=message):
                imputer.transform(np.zeros((2, columns)))

    @pytest.mark.parametrize(
        ("name", "values"),
        [("size", "large"), ("color", 1.0), ("age", pd.Timestamp("2020-01-01")), ("age", True)],
    )
    def test_retyped(self, fitted, name, values):
        message = says(f"Column {name!r} is", "but was", "at fit. Convert it")
        with pytest.raises(SchemaError, match=message):
            fitted.transform(table().assign(**{name: values}))

    def test_integers_and_floats_are_one_type(self, fitted):
        filled = fitted.transform(table().astype({"age": "float32"}))
        assert filled["age"].dtype == np.float32
        assert not filled.isna().any(axis=None)


class TestDtypes:
    def test_complex_numbers_are_refused(self):
        message = says("Complex data not supported", "'z'", "two columns")
        with pytest.raises(InputError, match=message):
            quick().fit(pd.DataFrame({"a": [1.0, 2.0], "z": [1j, 2j]}))

    def test_sparse_matrices_are_refused(self):
        with pytest.raises(InputError, match=says("Sparse", "toarray()")):
            quick().fit(pytest.importorskip("scipy.sparse").eye(3))

    @pytest.mark.parametrize(
        "X",
        [
            pl.DataFrame({"a": [1.0, None, 3.0], "list": [[1], None, [2, 3]]}),
            pa.table({"a": [1.0, None, 3.0], "list": [[1], None, [2, 3]]}),
            pd.DataFrame({"a": [1.0, None, 3.0], "list": [[1], None, [2, 3]]}),
        ],
        ids=["polars", "pyarrow", "pandas"],
    )
    def test_what_cannot_be_imputed_passes_through_with_a_warning(self, X):
        imputer = quick()
        message = says("pass through unchanged", "'list' (values of", '"passthrough"')
        with pytest.warns(GrapefillWarning, match=message):
            imputer.fit(X)
        filled = imputer.transform(X)
        assert str(filled["list"].to_numpy()) == str(X["list"].to_numpy())
        assert not np.isnan(np.asarray(filled["a"])).any()

    def test_nothing_but_such_columns(self):
        X = pl.DataFrame({"list": [[1], None]})
        imputer = quick(kinds={"list": "passthrough"}).fit(X)
        assert imputer.transform(X).equals(X)
        assert imputer.history_.step == []

    def test_a_kind_the_column_cannot_have(self):
        message = says("Column 'color'", "cannot be 'continuous'", "Choose one of")
        with pytest.raises(InputError, match=message):
            quick(kinds={"color": "continuous"}).fit(table())


class TestLittleInformation:
    @pytest.mark.parametrize("preset", PRESETS)
    def test_a_column_all_missing_is_left_out_with_a_warning(self, preset):
        X = table().assign(nothing=np.nan)
        imputer = quick(preset)
        message = says("no observed value", "'nothing'", "keep_empty_features=True")
        with pytest.warns(GrapefillWarning, match=message):
            imputer.fit(X)
        assert list(imputer.transform(X)) == ["size", "age", "color"]
        assert imputer.get_feature_names_out().tolist() == ["size", "age", "color"]

    @pytest.mark.parametrize("preset", PRESETS)
    def test_a_row_all_missing(self, preset):
        X = table()
        X.loc[3] = None
        X = X.astype(table().dtypes)
        filled = quick(preset).fit_transform(X)
        assert not filled.isna().any(axis=None)
        assert kept(X, filled)

    @pytest.mark.parametrize("preset", PRESETS)
    def test_one_row(self, preset):
        row = table().dropna().iloc[[0]]
        imputer = quick(preset).fit(row)
        pd.testing.assert_frame_equal(imputer.transform(row), row)
        # One value is all a column can be filled with.
        filled = imputer.transform(row.mask(row.notna()).astype(row.dtypes))
        pd.testing.assert_frame_equal(filled, row, check_categorical=False)

    @pytest.mark.parametrize("preset", PRESETS)
    @pytest.mark.parametrize("name", ["size", "age", "color"])
    def test_one_column(self, preset, name):
        X = table()[[name]]
        filled = quick(preset).fit_transform(X)
        assert not filled.isna().any(axis=None)
        assert kept(X, filled)

    @pytest.mark.parametrize("preset", PRESETS)
    @pytest.mark.parametrize("constant", [7.25, -1e-300, "word", True, pd.Timestamp("2020-01-01")])
    def test_a_constant_column_is_filled_with_the_constant(self, preset, constant):
        X = table().assign(same=pd.Series([None] * 5 + [constant] * 25))
        filled = quick(preset).fit_transform(X)
        assert set(filled["same"]) == {constant}

    @pytest.mark.parametrize("preset", PRESETS)
    def test_nothing_missing_at_all(self, preset):
        X = table().dropna()
        imputer = quick(preset, add_indicator=True).fit(X)
        pd.testing.assert_frame_equal(imputer.transform(X), X)

    @pytest.mark.parametrize("preset", PRESETS)
    def test_complete_at_fit_and_missing_at_transform(self, preset):
        imputer = quick(preset).fit(table().dropna())
        filled = imputer.transform(table())
        assert not filled.isna().any(axis=None)
        assert kept(table(), filled)

    @pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_everything_missing_at_fit(self, container):
        X = container({"a": [None, None], "b": [np.nan, np.nan]})
        message = says("Every cell is missing", "Check missing_values")
        with pytest.raises(InputError, match=message):
            quick().fit(X)

    @pytest.mark.parametrize("graph_from", ["fit", "transform"])
    def test_everything_missing_at_transform(self, graph_from):
        X = table()
        nothing = X.mask(X.notna()).astype(X.dtypes)
        filled = quick(graph_from=graph_from).fit(X).transform(nothing)
        assert not filled.isna().any(axis=None)
        # No row has anything to tell it from the others.
        assert len(filled.drop_duplicates()) == 1


class TestCategories:
    def test_unseen(self, fitted):
        X = table()
        X["color"] = X["color"].astype(object)
        X.loc[[2, 5], "color"] = ["violet", "pink"]
        message = says("not there at fit", "'color' ('pink', 'violet')", "Fit again")
        with pytest.warns(GrapefillWarning, match=message) as caught:
            filled = fitted.transform(X)
        assert len(caught) == 1
        assert filled.loc[[2, 5], "color"].tolist() == ["violet", "pink"]
        assert not filled.isna().any(axis=None)

    @pytest.mark.parametrize("graph_from", ["fit", "transform"])
    def test_unseen_in_many_slices_warns_once(self, monkeypatch, graph_from):
        monkeypatch.setattr("grapefill.training.fill.SLICE_CELLS", 12)
        X = pl.DataFrame({"color": ["red", "blue"] * 10, "x": np.arange(20.0)})
        imputer = quick(graph_from=graph_from).fit(X)
        new = X.with_columns(color=pl.Series(["c", "b", "a", "d", None] * 4))
        with pytest.warns(GrapefillWarning, match=r"'color' \('a', 'b', 'c', \.\.\.\)") as caught:
            filled = imputer.transform(new)
        assert len(caught) == 1
        assert filled["color"].null_count() == 0

    @pytest.mark.parametrize("preset", PRESETS)
    def test_ten_thousand(self, preset):
        rng = np.random.default_rng(0)
        names = [f"town {code}" for code in range(10_000)]
        codes = np.concatenate([np.arange(10_000), rng.integers(10_000, size=500)])
        codes[rng.random(codes.size) < 0.1] = -1
        X = pd.DataFrame(
            {"town": pd.Categorical.from_codes(codes, names), "x": rng.normal(size=codes.size)}
        )
        imputer = GrapeImputer(
            preset, settings=QUICK | {"max_steps": 2, "batch_rows": 256}, random_state=0
        )
        filled = imputer.fit_transform(X)
        assert filled["town"].dtype == X["town"].dtype
        assert not filled.isna().any(axis=None)
        assert kept(X, filled)
        observed = set(X["town"].dropna())
        assert set(filled["town"][X["town"].isna()]) <= observed
        assert imputer.model_.features.n_categories == (len(observed), 0)


class TestLargeIntegers:
    HUGE = (2**53 + 1, 2**53 + 3, 2**62 + 7, 2**63 - 1, -(2**63))

    @pytest.mark.parametrize("preset", PRESETS)
    def test_observed_cells_are_exact(self, preset):
        X = pl.DataFrame({"i": [*self.HUGE, None], "x": [1.0, None, 3.0, 4.0, 5.0, 6.0]})
        filled = quick(preset).fit_transform(X)
        assert filled["i"][:5].to_list() == list(self.HUGE)
        assert filled.null_count().sum_horizontal().item() == 0

    @pytest.mark.parametrize("container", ["numpy", "pandas", "pyarrow"])
    def test_neighbours_beyond_float64(self, container):
        """Between two neighbours only these two are possible."""
        column = [2**60 + 1, 2**60 + 2, -1, 2**60 + 1]
        X = {
            "numpy": np.array([column, [1, 2, 3, 4]]).T,
            "pandas": pd.DataFrame({"i": column, "x": [1, 2, 3, 4]}),
            "pyarrow": pa.table({"i": column, "x": [1, 2, 3, 4]}),
        }[container]
        filled = quick(missing_values=-1).fit_transform(X)
        found = filled[:, 0] if container == "numpy" else filled["i"].to_numpy()
        assert found.dtype == np.int64
        assert found[[0, 1, 3]].tolist() == [2**60 + 1, 2**60 + 2, 2**60 + 1]
        assert found[2] in (2**60 + 1, 2**60 + 2)

    def test_unsigned(self):
        X = np.array([[2**64 - 1, 1], [2**63 + 1, 2], [0, 3]], dtype=np.uint64)
        filled = quick(missing_values=0).fit_transform(X)
        assert filled.dtype == np.uint64
        assert filled[:2].tolist() == X[:2].tolist()
        assert 2**63 + 1 <= int(filled[2, 0]) <= 2**64 - 1

    def test_wider_than_64_bits_pass_through(self):
        X = np.array([[2**70, 1], [3, 2], [None, None]], dtype=object)
        imputer = quick()
        with pytest.warns(GrapefillWarning, match="'x0' .integers wider than 64 bits"):
            imputer.fit(X)
        assert imputer.transform(X)[:, 0].tolist() == [2**70, 3, None]


class TestModelFile:
    @pytest.fixture
    def path(self, fitted, tmp_path):
        path = tmp_path / "a.grape"
        fitted.save(path)
        return path

    @pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.999])
    def test_truncated(self, path, share):
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])
        with pytest.raises(ModelFileError, match=says("Cannot load", str(path), "fit and save")):
            GrapeImputer.load(path)

    @pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9, 0.9999])
    def test_altered(self, path, share):
        content = bytearray(path.read_bytes())
        content[int(len(content) * share)] ^= 1
        path.write_bytes(bytes(content))
        with pytest.raises(ModelFileError, match=says("Cannot load", str(path))):
            GrapeImputer.load(path)

    def test_foreign(self, path):
        foreign = {
            "text": b"size,age\n1,2\n",
            "safetensors": safetensors.torch.save({"w": torch.ones(2)}),
            "pickle": b"\x80\x04N.",
            "zip": b"PK\x03\x04 and more",
        }
        for content in foreign.values():
            path.write_bytes(content)
            with pytest.raises(ModelFileError, match=says("Cannot load", str(path))):
                GrapeImputer.load(path)

    def test_not_there(self, tmp_path):
        with pytest.raises(ModelFileError, match=says("no such file", "Check the path")):
            GrapeImputer.load(tmp_path / "b.grape")

    def test_another_estimator(self, path):
        write_model(path, estimator="GrapeClassifier", tensors={}, description={})
        message = says("holds a GrapeClassifier", "GrapeClassifier.load")
        with pytest.raises(ModelFileError, match=message):
            GrapeImputer.load(path)

    @pytest.mark.parametrize("parameters", [None, {"unheard_of": 1}])
    def test_another_version(self, path, parameters):
        description = {} if parameters is None else {"parameters": parameters}
        write_model(path, estimator="GrapeImputer", tensors={}, description=description)
        message = says("this version does not understand it", "Install that version, or fit again")
        with pytest.raises(ModelFileError, match=message):
            GrapeImputer.load(path)

    @pytest.mark.parametrize(
        ("name", "tensor"),
        [
            ("network.o_edge.output.weight", None),
            ("network.o_edge.output.weight", torch.zeros(1)),
            ("states.0", None),
            ("states.1", torch.zeros(2, 3)),
            ("states.final", torch.zeros(3, 9)),
            ("states.final", torch.zeros(24)),
            ("scaling.center", None),
            ("scaling.center", torch.zeros(2, dtype=torch.float64)),
            ("scaling.scale", torch.zeros(3, 3, dtype=torch.float64)),
        ],
    )
    def test_odd_tensors(self, path, name, tensor):
        file = read_model(path)
        tensors = {key: value for key, value in file.tensors.items() if key != name}
        assert len(tensors) == len(file.tensors) - 1
        if tensor is not None:
            tensors[name] = tensor
        write_model(path, estimator="GrapeImputer", tensors=tensors, description=file.description)
        with pytest.raises(ModelFileError, match=says("Cannot load", "fit again")):
            GrapeImputer.load(path)

    @pytest.mark.parametrize(
        "change",
        [
            {"schema": {"columns": [], "names": None}},
            {"schema": {"columns": [{"name": "a"}], "names": None}},
            {"schema": None},
            {"extras": {"indicator_columns": [3]}},
            {"extras": {"indicator_columns": ["size"]}},
            {"extras": {"indicator_columns": 0}},
            {"history": {"speed": 1}},
            {"model": {}},
            {"model": {"preset": {}, "layout": "dense", "own_o_edge": False}},
            {"parameters": [1]},
            {"parameters": {"kinds": 3}},
        ],
    )
    def test_odd_descriptions(self, path, change):
        file = read_model(path)
        write_model(
            path,
            estimator="GrapeImputer",
            tensors=file.tensors,
            description=file.description | change,
        )
        with pytest.raises(ModelFileError, match=says("Cannot load", "fit again")):
            GrapeImputer.load(path)

    def saved_elsewhere(self, fitted, path, device="cuda:7"):
        """Save a model as a machine with another device would have."""
        fitted = copy.deepcopy(fitted).set_params(device=device)
        fitted.save(path)

    def test_a_device_that_is_not_here(self, fitted, path):
        self.saved_elsewhere(fitted, path)
        message = says("fitted with device='cuda:7'", 'device="auto" is used', "load(path, device")
        with pytest.warns(GrapefillWarning, match=message) as caught:
            loaded = GrapeImputer.load(path)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert loaded.device == "auto"
        pd.testing.assert_frame_equal(loaded.transform(table()), fitted.transform(table()))
        loaded.fit(table())

    def test_a_device_of_choice(self, fitted, path):
        self.saved_elsewhere(fitted, path)
        loaded = GrapeImputer.load(path, device="cpu")
        assert loaded.device == "cpu"
        assert loaded.model_.device == torch.device("cpu")
        with pytest.raises(ConfigError, match="device='gpu' cannot be used here"):
            GrapeImputer.load(path, device="gpu")

    def test_the_device_at_fit_is_kept(self, fitted, path):
        self.saved_elsewhere(fitted, path, device="cpu")
        assert GrapeImputer.load(path).device == "cpu"

    def test_nowhere_to_write(self, fitted, tmp_path):
        with pytest.raises(ModelFileError, match="The model was not saved"):
            fitted.save(tmp_path / "no folder" / "a.grape")


class TestParameters:
    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("preset", "papr", "preset must be one of 'paper', 'default', 'fast'"),
            ("settings", {"widht": 3}, "Unknown setting 'widht'. Did you mean 'width'?"),
            ("settings", {"qqqq": 3}, "Unknown setting 'qqqq'. The settings are"),
            (
                "settings",
                {"width": "wide"},
                "NetworkConfig.width must be a whole number, got 'wide'",
            ),
            ("settings", {"width": 8.0}, "NetworkConfig.width must be a whole number, got 8.0"),
            ("settings", {"width": 0}, "NetworkConfig.width must be at least 1"),
            ("settings", {"layers": True}, "NetworkConfig.layers must be a whole number"),
            ("settings", {"residual": "yes"}, "NetworkConfig.residual must be True or False"),
            ("settings", {"residual": None}, "NetworkConfig.residual must be True or False"),
            ("settings", {"activation": ["relu"]}, "NetworkConfig.activation must be one of"),
            ("settings", {"max_steps": 3.5}, "TrainingConfig.max_steps must be a whole number or"),
            ("settings", {"batch_rows": "all"}, "TrainingConfig.batch_rows must be a whole number"),
            (
                "settings",
                {"learning_rate": np.nan},
                "TrainingConfig.learning_rate must be a finite",
            ),
            ("settings", {"learning_rate": -1}, "TrainingConfig.learning_rate"),
            ("settings", {"weight_decay": np.inf}, "TrainingConfig.weight_decay must be a finite"),
            ("settings", {"clip": "1"}, "TrainingConfig.clip must be a finite number"),
            ("settings", {"dropout": (0.1, 0.2, 0.3)}, "TrainingConfig.dropout must be"),
            ("settings", {"dropout": 0.3}, "TrainingConfig.dropout must be a tuple of 2 finite"),
            ("settings", {"dropout": ()}, "TrainingConfig.dropout must be"),
            ("settings", {"dropout": "ab"}, "TrainingConfig.dropout must be"),
            ("settings", {"dropout": None}, "TrainingConfig.dropout must be"),
            ("settings", {"dropout": (0.1, np.nan)}, "TrainingConfig.dropout must be"),
            ("settings", {"loss": np.array(["squared"])}, "TrainingConfig.loss must be one of"),
            ("settings", {1: 2}, "settings has a value that cannot work: keywords must be strings"),
            ("settings", ["width"], "settings must be a dict"),
            ("kinds", ["ordinal"], "kinds must be a dict"),
            ("graph_from", "new", "graph_from must be one of 'fit', 'transform'"),
            ("layout", "sparse", "layout must be one of 'auto', 'dense', 'edges'"),
            ("time_limit", 0, "time_limit must be positive"),
            ("time_limit", "1s", "time_limit must be positive"),
            ("device", "gpu", "device='gpu' cannot be used here"),
            ("missing_values", [1], "cannot mark missing cells. Use a number"),
            ("o_edge", "text", "o_edge must be a torch.nn.Module or None, got 'text'"),
            ("callbacks", print, "callbacks must be a sequence. Pass a list"),
        ],
    )
    def test_are_checked_at_fit(self, name, value, message):
        imputer = quick().set_params(**{name: value})
        with pytest.raises(ConfigError, match=re.escape(message)):
            imputer.fit(table())
        assert not hasattr(imputer, "n_features_in_")

    @pytest.mark.parametrize(
        "settings",
        [
            {"width": np.int64(8), "residual": np.bool_(True)},
            {"learning_rate": 1, "clip": np.float32(1)},
            {"dropout": [0.1, 0.5]},
            {"dropout": (np.float32(0.1), np.float64(0.5))},
        ],
    )
    def test_settings_of_like_types_work_and_can_be_saved(self, settings, tmp_path):
        imputer = quick().set_params(settings=QUICK | settings)
        filled = imputer.fit_transform(table())
        imputer.save(tmp_path / "a.grape")
        loaded = GrapeImputer.load(tmp_path / "a.grape")
        pd.testing.assert_frame_equal(loaded.transform(table()), filled)
        assert loaded.fit(table()).model_.preset == imputer.model_.preset

    def test_a_device_that_is_not_in_this_machine(self):
        if torch.cuda.is_available():
            pytest.skip("this machine has CUDA")
        with pytest.raises(ConfigError, match=says("device='cuda'", "Use 'auto' or 'cpu'")):
            quick(device="cuda").fit(table())

    def test_kinds_of_an_unknown_column(self):
        with pytest.raises(InputError, match=says("'colour'", "Its columns are 'size', 'age'")):
            quick(kinds={"colour": "categorical"}).fit(table())

    def test_all_errors_have_one_base(self):
        for error in (InputError, SchemaError, ConfigError, ModelFileError):
            assert issubclass(error, GrapefillError)
            assert issubclass(error, ValueError)


class TestIndicatorNames:
    @pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_a_name_that_is_taken(self, container):
        X = container({"a": [1.0, None], "missingindicator_a": [3.0, 4.0]})
        message = says("two columns would be called 'missingindicator_a'", "Rename the column")
        with pytest.raises(InputError, match=message):
            quick(add_indicator=True).fit(X)
        assert quick().fit_transform(X)["missingindicator_a"].to_numpy().tolist() == [3.0, 4.0]
