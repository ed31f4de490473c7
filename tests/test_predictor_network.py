"""How the predictors' network is built: presets, O_node, modules of one's own, the summary."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from grapefill import GrapeClassifier, GrapeImputer, GrapeRegressor
from grapefill.errors import ConfigError, GrapefillWarning, InputError
from grapefill.nn.heads import NodeHead
from grapefill.training import get_preset

QUICK = {
    **{"layers": 1, "width": 8, "edge_width": 8, "head_width": 8, "max_steps": 8},
    **{"rounds": 1, "trees": 4, "early_trees": 2, "trial_trees": 4},
}
BOTH = pytest.mark.parametrize("estimator", [GrapeRegressor, GrapeClassifier])


def quick(estimator=GrapeRegressor, *, preset="fast", settings=None, **parameters):
    parameters.setdefault("random_state", 0)
    return estimator(preset, settings=QUICK | (settings or {}), **parameters)


def table(estimator=GrapeRegressor, rows=60, seed=0):
    """Return three columns with holes, and numbers or classes that depend on them linearly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    y = X @ [1.0, 2.0, -1.0]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y if estimator is GrapeRegressor else np.digitize(y, [-1.0, 1.0])


def outcome(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


class TestPresets:
    def test_paper(self):
        preset = get_preset("paper", labels=True)
        network, training = preset.network, preset.training
        assert (network.layers, network.width, network.edge_width) == (2, 16, 16)
        assert (network.head_width, network.labels) == (0, "node")
        assert (training.epochs, training.loss, training.validation) == (20_000, "squared", 0)
        assert preset.forest.rounds == 0
        # The table preset keeps the three layers that the paper fills tables with.
        assert get_preset("paper").network.layers == 3

    @pytest.mark.parametrize(("unit", "scale"), [(1, 1), (1e6, 3e6), (1e-6, 3e-6)])
    def test_paper_learns_labels_in_their_own_units(self, unit, scale):
        """As its authors did, unless these are out of all proportion."""
        X, _ = table(GrapeRegressor, 20)
        y = unit * np.linspace(1, 4, 20)
        model = GrapeRegressor("paper", settings={"epochs": 1}, random_state=0).fit(X, y)
        assert model.model_.scaling.scale[-1] == pytest.approx(scale)
        assert model.model_.scaling.center[-1] == pytest.approx(unit)

    def test_several_labels_share_a_scale(self):
        X, y = table(GrapeRegressor, 20)
        both = np.column_stack([y, 100 * y])
        model = GrapeRegressor("paper", settings={"epochs": 1}, random_state=0).fit(X, both)
        np.testing.assert_allclose(model.model_.scaling.scale[-2:], np.ptp(both, axis=0))

    @BOTH
    def test_paper_learns_a_linear_label(self, estimator):
        (X, y), (new, truth) = table(estimator, 150), table(estimator, 150, seed=1)
        settings = {"epochs": 250, "learning_rate": 0.005}
        model = estimator("paper", settings=settings, random_state=0).fit(X, y)
        network = model.network_
        assert len(network.convs) == 2
        assert network.config.width == 16
        assert network.o_edge.hidden is None
        assert isinstance(network.o_node, NodeHead)
        assert isinstance(network.o_node.output, nn.Linear)
        assert (model.model_.chain, model.model_.linear) == (None, None)
        assert len(model.history_.step) == 250
        assert model.score(new, truth) > 0.6

    @BOTH
    @pytest.mark.parametrize("name", ["default", "fast"])
    def test_elsewhere_a_label_is_one_more_column(self, estimator, name):
        X, y = table(estimator)
        model = quick(estimator, preset=name).fit(X, y)
        assert model.network_.o_node is None
        assert model.network_.features.count == 4
        assert model.network_.features.n_categories[3] == (3 if estimator is GrapeClassifier else 0)

    @BOTH
    def test_o_node_with_the_default_preset(self, estimator):
        X, y = table(estimator, 150)
        settings = {"labels": "node", "rounds": 2, "max_steps": 60, "learning_rate": 0.02}
        model = quick(estimator, preset="default", settings=settings).fit(X, y)
        assert isinstance(model.network_.o_node, NodeHead)
        assert model.network_.features.count == 3
        assert model.model_.features.count == 4
        # Only labels are held out, so only they can be judged by.
        cells = [trial.cells for trial in model.model_.trials]
        assert cells[:3] == [0, 0, 0]
        assert cells[3] > 5
        assert model.score(X, y) > 0.6
        alone = quick(estimator, preset="default", settings=settings | {"rounds": 0}).fit(X, y)
        assert alone.score(X, y) > 0.5

    def test_classes_by_o_node_in_a_wide_table_leave_factors_nothing_to_be_judged_by(self):
        X = np.random.default_rng(0).normal(size=(60, 30))
        model = quick(GrapeClassifier, settings={"labels": "node"}).fit(X, X[:, 0] > 0)
        assert model.model_.linear is None
        assert model.model_.trials[-1].cells > 0

    def test_a_preset_of_one_s_own_is_taken_as_it_is(self):
        X, y = table()
        preset = get_preset("paper").change(**QUICK | {"layers": 3, "rounds": 0})
        model = GrapeRegressor(preset, random_state=0).fit(X, y)
        assert len(model.network_.convs) == 3
        assert isinstance(model.network_.o_node, NodeHead)


class Dropping(nn.Module):
    """A module whose weights and dropout would touch the global generator."""

    def __init__(self, inputs=3, outputs=1):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")
        with torch.no_grad():
            self.linear.weight.fill_(0.1)
            self.linear.bias.zero_()
        self.dropout = nn.Dropout(0.5)

    def forward(self, rows):
        return self.linear(self.dropout(rows))


class TestOwnModules:
    def test_a_copy_is_trained_and_no_trees_are_grown(self):
        X, y = table()
        module = Dropping()
        model = quick(preset="default", o_node=module).fit(X, y)
        own = model.network_.o_node.output
        assert isinstance(own, Dropping)
        assert own is not module
        assert (module.linear.weight == 0.1).all()
        assert not torch.equal(own.linear.weight, module.linear.weight)
        assert model.model_.chain is None
        assert model.model_.trials == ()

    def test_its_randomness_is_its_own(self):
        X, y = table()
        before = torch.get_rng_state()
        first, second = (quick(o_node=Dropping()).fit(X, y).predict(X) for _ in range(2))
        assert torch.equal(torch.get_rng_state(), before)
        np.testing.assert_array_equal(first, second)

    def test_the_imputed_row_is_what_it_sees(self):
        class Watching(Dropping):
            def forward(self, rows):
                shapes.add(tuple(rows.shape[1:]))
                return super().forward(rows)

        shapes = set()
        X, y = table()
        frame = pd.DataFrame(X).assign(word=np.where(y > 0, "up", np.where(y > -1, "mid", "low")))
        frame.columns = frame.columns.astype(str)
        quick(o_node=Watching(6)).fit(frame, y)
        assert shapes == {(3 + 3,)}

    @pytest.mark.parametrize(
        ("estimator", "labels", "outputs"),
        [
            (GrapeRegressor, lambda y: y, 1),
            (GrapeRegressor, lambda y: np.column_stack([y, y]), 2),
            (GrapeClassifier, lambda y: y > 0, 2),
            (GrapeClassifier, lambda y: np.digitize(y, [-1, 1]), 3),
        ],
    )
    def test_outputs_are_one_per_number_and_one_per_class(self, estimator, labels, outputs):
        X, y = table()
        model = quick(estimator, o_node=Dropping(3, outputs)).fit(X, labels(y))
        assert len(model.predict(X)) == 60
        message = f"O_node module returns {outputs + 1} outputs per row, this table needs"
        with pytest.raises(ConfigError, match=f"{message} {outputs}. Give its last layer"):
            quick(estimator, o_node=Dropping(3, outputs + 1)).fit(X, labels(y))

    @pytest.mark.parametrize("preset", ["fast", "paper"])
    def test_inputs_of_another_width_are_refused(self, preset):
        X, y = table()
        with pytest.raises(ConfigError, match=r"O_node module cannot take.*needs 3 inputs"):
            quick(preset=preset, o_node=Dropping(5)).fit(X, y)

    @pytest.mark.parametrize(
        ("estimator", "preset", "outputs"),
        # Where the label is a feature, cells of it are predicted too.
        [
            (GrapeRegressor, "fast", 1),
            (GrapeClassifier, "fast", 1 + 3),
            (GrapeClassifier, "paper", 1),
        ],
    )
    def test_o_edge(self, estimator, preset, outputs):
        X, y = table(estimator)
        model = quick(estimator, preset=preset, o_edge=nn.Linear(16, outputs)).fit(X, y)
        assert model.network_.o_edge.module.out_features == outputs
        assert model.model_.chain is None
        assert np.isfinite(outcome(model, X)).all()
        with pytest.raises(ConfigError, match=f"this table needs {outputs}"):
            quick(estimator, preset=preset, o_edge=nn.Linear(16, 9)).fit(X, y)

    def test_files(self, tmp_path):
        X, y = table()
        edge, node = nn.Linear(16, 1), Dropping()
        model = quick(o_edge=edge, o_node=node).fit(X, y)
        path = tmp_path / "a.grape"
        model.save(path)
        given = {"o_edge": nn.Linear(16, 1), "o_node": Dropping()}
        loaded = GrapeRegressor.load(path, **given)
        assert loaded.o_node is given["o_node"]
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        for name in given:
            rest = {other: module for other, module in given.items() if other != name}
            word = name.replace("o_", "O_")
            message = rf"fitted with an {word} module of your own.*load\(path, {name}=\.\.\.\)"
            with pytest.raises(ConfigError, match=message):
                GrapeRegressor.load(path, **rest)
        with pytest.raises(ConfigError, match="weights in the file do not fit the given module"):
            GrapeRegressor.load(path, **given | {"o_node": Dropping(4)})

    @pytest.mark.parametrize("name", ["o_edge", "o_node"])
    def test_a_file_without_one_refuses_one(self, name, tmp_path):
        X, y = table()
        quick(preset="paper").fit(X, y).save(tmp_path / "a.grape")
        with pytest.raises(ConfigError, match=r"fitted without an O_.*Load it without"):
            GrapeRegressor.load(tmp_path / "a.grape", **{name: Dropping()})

    def test_a_file_of_an_imputer_refuses_o_node(self, tmp_path):
        GrapeImputer("fast", settings=QUICK).fit(table()[0]).save(tmp_path / "a.grape")
        with pytest.raises(ConfigError, match="fitted without an O_node"):
            GrapeImputer.load(tmp_path / "a.grape", o_node=Dropping())


class TestRefresh:
    """The network was trained further in the caller's own code."""

    @pytest.mark.parametrize("how", ["feature", "node"])
    @BOTH
    def test_the_table_at_fit_gives_the_states_at_fit(self, estimator, how):
        X, y = table(estimator)
        model = quick(estimator, settings={"labels": how, "rounds": 0}).fit(X, y)
        expected, states = outcome(model, X), model.model_.states.final.clone()
        model.network_.train()
        assert model.refresh(X, y) is model
        assert not model.network_.training
        assert torch.equal(model.model_.states.final, states)
        np.testing.assert_array_equal(outcome(model, X), expected)
        # What is known of the labels has its part in the states, where they are nodes.
        model.refresh(X)
        changed = not torch.equal(model.model_.states.final, states)
        assert changed == (how == "feature")

    def test_states_are_old_until_then(self):
        X, y = table()
        model = quick(settings={"rounds": 0}).fit(X, y)
        before = model.predict(X)
        cells = model.encode(X)
        assert cells.observed[:, :3].tolist() == (~np.isnan(X)).tolist()
        assert not cells.observed[:, 3].any()
        optimizer = torch.optim.SGD(model.network_.parameters(), lr=0.1)
        model.network_(cells).square().mean().backward()
        optimizer.step()
        stale = copy.deepcopy(model).predict(X)
        assert np.abs(model.refresh(X, y).predict(X) - stale).max() > 1e-4
        assert np.abs(stale - before).max() > 1e-4

    def test_of_the_labels_some_may_be_unknown(self):
        X, y = table(GrapeClassifier)
        some = np.where(np.arange(60) < 20, np.nan, y)
        model = quick(GrapeClassifier).fit(X, some)
        states = model.model_.states.final.clone()
        model.refresh(X, some)
        assert torch.equal(model.model_.states.final, states)
        model.refresh(X, np.full(60, np.nan))
        assert not torch.equal(model.model_.states.final, states)
        unknown = np.where(np.arange(60) < 20, 7, y)
        with pytest.warns(GrapefillWarning, match="not there at fit"):
            model.refresh(X, unknown)
        assert torch.equal(model.model_.states.final, states)

    @pytest.mark.parametrize(
        ("rows", "labels", "message"),
        [
            (0, lambda y: None, "no observed cell"),
            (60, lambda y: y[:9], "X has 60 rows, y has 9 labels"),
            (60, lambda y: np.column_stack([y, y]), "y has 2 columns, at fit it had 1"),
            (60, lambda y: np.where(y > 0, np.inf, y), "contains infinity"),
            (60, lambda y: np.where(y > 0, "up", "down"), "a regressor predicts numbers"),
        ],
    )
    def test_bad_input(self, rows, labels, message):
        X, y = table()
        model = quick().fit(X, y)
        states = model.model_.states
        with pytest.raises(InputError, match=message):
            model.refresh(X[:rows], labels(y))
        assert model.model_.states is states


class TestSummary:
    @pytest.mark.parametrize("targets", [1, 2])
    def test_the_labels_have_lines_of_their_own(self, targets):
        X, y = table()
        model = quick().fit(X, np.column_stack([y] * targets))
        header, *lines = model.summary().splitlines()[: 4 + targets]
        words = "column kind filled by held out constant network trees blend"
        assert " ".join(header.split()) == words
        assert [line.split()[0] for line in lines] == ["x0", "x1", "x2", *["label"] * targets]
        for line, trial in zip(lines, model.model_.trials, strict=True):
            assert f"{trial.blend:.4g}" in line
            assert ("trees" in line) == (trial.share < 1)

    def test_of_a_classifier_and_of_the_paper_s_preset(self):
        X, y = table(GrapeClassifier)
        assert "\nlabel " in quick(GrapeClassifier).fit(X, y).summary()
        last = quick(GrapeClassifier, preset="paper").fit(X, y).summary().splitlines()[-1]
        assert last.split() == ["label", "label", "network"]

    def test_factors_are_named_where_they_are_used(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 26)) + 0.1 * rng.normal(size=(80, 26))
        model = quick(settings={"rounds": 0}).fit(X, X.sum(axis=1))
        header, *lines = model.summary().splitlines()[:28]
        words = "column kind filled by held out constant network factors blend"
        assert " ".join(header.split()) == words
        assert lines[-1].startswith("label ")
        assert "factors" in lines[-1]
        trial = model.model_.trials[-1]
        assert trial.factors < 0.5 * trial.constant
        assert f"{trial.factors:.4g}" in lines[-1]
