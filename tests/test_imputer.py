"""What GrapeImputer does, apart from bad input and scikit-learn's tools."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch import nn

import grapefill.training.fill
from grapefill import GrapeImputer
from grapefill.errors import ConfigError, GrapefillWarning, InputError
from grapefill.graph import Cells, Features
from grapefill.nn import GrapeNetwork
from grapefill.training import Progress, Trainer, get_preset

QUICK = {"max_steps": 8, "batch_rows": None, "width": 8, "edge_width": 8, "head_width": 8}
PRESETS = ["default", "fast", "paper"]


def quick(preset="default", *, settings=None, **parameters):
    parameters.setdefault("random_state", 0)
    return GrapeImputer(preset, settings=QUICK | (settings or {}), **parameters)


def mixed_table(rows=40, seed=0):
    """Return a table of eight columns that hang together, a fifth of it missing."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=rows)
    frame = pd.DataFrame(
        {
            "length": 40 + 5 * size + rng.normal(size=rows),
            "weight": np.exp(size).astype(np.float32),
            "age": pd.array(np.rint(30 + 8 * size), dtype="Int64"),
            "noise": rng.normal(size=rows),
            "species": pd.Categorical.from_codes((size > 0).astype(int), ["small", "large"]),
            "island": rng.choice(["north", "south", "west"], size=rows),
            "tagged": pd.array(size > 0.5, dtype="boolean"),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.rint(100 * size), unit="D"),
        }
    )
    return frame.mask(pd.DataFrame(rng.random(frame.shape) < 0.2, columns=frame.columns))


def numbers(frame):
    """Return a filled mixed table as one array of numbers, dates in days."""
    parts = frame.assign(
        species=frame["species"].cat.codes,
        island=frame["island"].astype("category").cat.codes,
        seen=(frame["seen"] - pd.Timestamp("2020-01-01")) / pd.Timedelta(days=1),
    )
    return parts.to_numpy(dtype=np.float64)


def largest_difference(left, right):
    return np.abs(numbers(left) - numbers(right)).max()


def largest_scaled_difference(left, right):
    """Return the largest difference in standard deviations of the column."""
    difference = np.abs(numbers(left) - numbers(right))
    return (difference / numbers(left).std(axis=0)).max()


class TestFilling:
    @pytest.mark.parametrize("preset", PRESETS)
    def test_fills_every_hole_and_changes_nothing_else(self, preset):
        table = mixed_table()
        before = table.copy(deep=True)
        filled = quick(preset).fit_transform(table)
        pd.testing.assert_frame_equal(table, before)
        assert table.isna().any(axis=None)
        assert not filled.isna().any(axis=None)
        pd.testing.assert_series_equal(filled.dtypes, table.dtypes)
        pd.testing.assert_frame_equal(filled.mask(table.isna()), table)

    def test_learns_what_the_table_shows(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=400)
        truth = np.column_stack([x, 2 * x, -x + 3])
        holes = rng.random(truth.shape) < 0.2
        table = np.where(holes, np.nan, truth)
        imputer = GrapeImputer(settings=QUICK | {"max_steps": 300}, random_state=0)
        filled = imputer.fit_transform(table)
        error = np.abs(filled - truth)[holes].mean()
        by_mean = np.abs(np.nanmean(table, axis=0) - truth)[holes].mean()
        assert error < 0.4 * by_mean

    def test_fit_transform_is_fit_then_transform(self):
        table = mixed_table()
        together = quick().fit_transform(table)
        pd.testing.assert_frame_equal(together, quick().fit(table).transform(table))

    def test_a_row_without_any_value_is_filled(self):
        table = mixed_table()
        row = table.iloc[[0]].mask(pd.DataFrame(True, index=[0], columns=table.columns))
        filled = quick().fit(table).transform(row)
        assert not filled.isna().any(axis=None)

    @pytest.mark.parametrize("cells", [1, 60])
    def test_slices_do_not_change_the_result(self, monkeypatch, cells):
        table = mixed_table()
        imputer = quick().fit(table)
        whole = imputer.transform(table)
        monkeypatch.setattr(grapefill.training.fill, "SLICE_CELLS", cells)
        pd.testing.assert_frame_equal(imputer.transform(table), whole)

    def test_a_wild_number_in_a_new_row_leaves_the_rest_finite(self):
        rng = np.random.default_rng(0)
        imputer = quick().fit(rng.normal(size=(30, 3)))
        filled = imputer.transform([[1e300, np.nan, -1e300]])
        assert np.isfinite(filled).all()
        assert filled[0, 0] == 1e300

    @pytest.mark.parametrize("preset", ["default", "paper"])
    def test_numbers_near_the_end_of_float64(self, preset):
        table = np.array([[1.7e308, 1e-310], [-1.7e308, 2e-310], [np.nan, np.nan], [1e308, 0.0]])
        filled = quick(preset).fit_transform(table)
        assert np.isfinite(filled).all()
        np.testing.assert_array_equal(filled[[0, 1, 3]], table[[0, 1, 3]])

    @pytest.mark.parametrize("layout", ["dense", "edges"])
    def test_layouts_agree(self, layout):
        table = mixed_table()
        auto = quick().fit(table)
        other = quick(layout=layout).fit(table)
        assert other.model_.layout == layout
        # Training itself rounds differently in the two layouts.
        assert largest_scaled_difference(auto.transform(table), other.transform(table)) < 0.05


@pytest.fixture(scope="module", params=PRESETS)
def fitted(request):
    table = mixed_table(300)
    imputer = GrapeImputer(request.param, settings={"max_steps": 5}, random_state=0)
    return table, imputer.fit(table)


class TestIndependenceOfRows:
    def test_one_by_one(self, fitted):
        table, imputer = fitted
        together = imputer.transform(table)
        apart = pd.concat([imputer.transform(table.iloc[[i]]) for i in range(0, 300, 4)])
        assert largest_difference(apart, together.iloc[::4]) < 1e-6

    def test_in_any_order_and_batch(self, fitted):
        table, imputer = fitted
        together = imputer.transform(table)
        order = np.random.default_rng(1).permutation(300)
        for cuts in ([], [150], [1, 2, 130, 299]):
            batches = np.split(order, cuts)
            apart = pd.concat([imputer.transform(table.iloc[rows]) for rows in batches])
            assert largest_difference(apart.sort_index(), together) < 1e-6


class TestColumnOrder:
    """Feature nodes have no order, apart from the weights that belong to each."""

    CATEGORIES = (0, 3, 0, 2, 0)
    ORDER = (3, 0, 4, 1, 2)

    def table(self):
        rng = np.random.default_rng(0)
        table = np.column_stack(
            [rng.integers(k, size=60) if k else rng.normal(size=60) for k in self.CATEGORIES]
        ).astype(float)
        table[rng.random(table.shape) < 0.2] = np.nan
        return table

    def moved_slots(self, old, new):
        """Return the old place of every slot."""
        places = list(range(old.count))
        for at, j in enumerate(self.ORDER):
            places[new.of(at)] = range(old.count)[old.of(j)]
        return places

    def permuted(self, network, features):
        """Return the network with the weights of each feature moved to its new place."""
        config = network.config
        other = GrapeNetwork(features, config, torch.Generator())
        weights = copy.deepcopy(network.state_dict())
        slots = self.moved_slots(network.slots, other.slots)
        outputs = self.moved_slots(network.o_edge.slots, other.o_edge.slots)

        def move_last(name, order):
            kept = weights[name][:, : -len(order)]
            weights[name] = torch.cat([kept, weights[name][:, -len(order) :][:, order]], dim=1)

        if config.value_embedding:
            weights["feature_init"] = weights["feature_init"][list(self.ORDER)]
            weights["slot_weight"] = weights["slot_weight"][:, slots]
            weights["slot_bias"] = weights["slot_bias"][slots]
        else:
            nodes = list(self.ORDER)
            message = weights["convs.0.message.weight"]
            weights["convs.0.message.weight"] = torch.cat(
                [message[:, : len(nodes)][:, nodes], message[:, len(nodes) :][:, slots]], dim=1
            )
            move_last("convs.0.update.weight", nodes)
            move_last("convs.0.edge_update.weight", slots)
        for name in ("o_edge.output.weight", "o_edge.output.bias"):
            weights[name] = weights[name][outputs]
        other.load_state_dict(weights)
        return other.double()

    def cells(self, table, features):
        cells = Cells.from_numbers(table, features)
        return Cells(cells.value.double(), cells.code, cells.observed)

    @pytest.mark.parametrize("preset", ["default", "paper"])
    @pytest.mark.parametrize("steps", [0, 5])
    def test_permuted_columns_and_weights_give_permuted_predictions(self, preset, steps):
        # Dropout would draw other cells in another order.
        recipe = {"dropout": (0.0, 0.0), "loss_on": "observed", "max_steps": max(steps, 1)}
        recipe["validation"] = 0.0
        changed = get_preset(preset).change(width=16, edge_width=16, batch_rows=None, **recipe)
        features = Features(self.CATEGORIES)
        moved = Features(tuple(self.CATEGORIES[j] for j in self.ORDER))
        # In double precision, since Adam's first steps make the most of rounding errors.
        network = GrapeNetwork(features, changed.network, torch.Generator().manual_seed(0)).double()
        other = self.permuted(network, moved)
        table = self.table()
        cells = self.cells(table, features)
        moved_cells = self.cells(table[:, list(self.ORDER)], moved)
        start = copy.deepcopy(network)
        if steps:
            for each, its_cells in ((network, cells), (other, moved_cells)):
                generator = torch.Generator().manual_seed(1)
                Trainer(each, its_cells, changed.training, generator=generator).run()
        with torch.inference_mode():
            expected = network.predict_cells(cells)
            found = other.predict_cells(moved_cells)
            untrained = start.predict_cells(cells)
        for new, j in enumerate(self.ORDER):
            if self.CATEGORIES[j]:
                torch.testing.assert_close(found.logits[new], expected.logits[j], rtol=0, atol=1e-5)
            else:
                torch.testing.assert_close(
                    found.value[:, new], expected.value[:, j], rtol=0, atol=1e-5
                )
        learned = (expected.value - untrained.value).abs().max()
        assert learned > 1e-3 if steps else learned == 0


class TestRandomness:
    @pytest.mark.parametrize("preset", PRESETS)
    def test_same_seed_same_result(self, preset):
        table = mixed_table()
        first, second = quick(preset).fit(table), quick(preset).fit(table)
        pd.testing.assert_frame_equal(
            first.transform(table), second.transform(table), check_exact=True
        )
        assert first.history_.loss == second.history_.loss
        again = first.fit(table).transform(table)
        pd.testing.assert_frame_equal(second.transform(table), again, check_exact=True)

    def test_another_seed_another_result(self):
        table = mixed_table()
        one = quick(random_state=1).fit_transform(table)
        two = quick(random_state=2).fit_transform(table)
        assert not one.equals(two)

    def test_nothing_global_is_touched(self):
        table = mixed_table()
        torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
        threads = torch.get_num_threads()
        deterministic = torch.are_deterministic_algorithms_enabled()
        settings = {"validation": 0.2, "batch_rows": 16}
        quick(settings=settings, random_state=3).fit(table).transform(table)
        assert torch.equal(torch.get_rng_state(), torch_state)
        for now, before in zip(np.random.get_state(), numpy_state, strict=True):  # noqa: NPY002
            np.testing.assert_array_equal(now, before)
        assert torch.get_num_threads() == threads
        assert torch.are_deterministic_algorithms_enabled() == deterministic
        assert torch.is_grad_enabled()


class TestGraphFrom:
    @pytest.mark.parametrize("preset", ["default", "paper"])
    def test_on_the_training_table_both_graphs_are_one(self, preset):
        table = mixed_table()
        from_fit = quick(preset).fit(table)
        from_transform = quick(preset, graph_from="transform").fit(table)
        left, right = from_fit.transform(table), from_transform.transform(table)
        assert largest_scaled_difference(left, right) < 1e-5

    def test_new_rows_make_another_graph(self):
        table, new = mixed_table(seed=0), mixed_table(seed=1)
        alone = {"rounds": 0}
        from_fit = quick(settings=alone).fit(table).transform(new)
        from_transform = quick(settings=alone, graph_from="transform").fit(table).transform(new)
        assert not from_transform.isna().any(axis=None)
        assert largest_scaled_difference(from_fit, from_transform) > 1e-6

    def test_the_rows_that_come_along_matter(self):
        table = mixed_table()
        imputer = quick(settings={"rounds": 0}, graph_from="transform").fit(table)
        together, alone = imputer.transform(table), imputer.transform(table.iloc[:5])
        assert largest_scaled_difference(together.iloc[:5], alone) > 1e-6


class TestWarmStart:
    def test_goes_on_from_where_it_was(self):
        table = mixed_table(100)
        settings = {"max_steps": 60, "schedule": "constant"}
        imputer = quick(settings=settings, warm_start=True).fit(table)
        first = np.mean(imputer.history_.loss[:10])
        imputer.fit(table)
        assert np.mean(imputer.history_.loss[:10]) < 0.8 * first

    def test_transfer_to_another_table_keeps_kinds_and_scaling(self):
        imputer = quick(warm_start=True).fit(mixed_table(seed=0))
        schema, scaling = imputer.schema_, imputer.model_.scaling
        other = mixed_table(25, seed=1)
        filled = imputer.fit(other).transform(other)
        assert imputer.schema_ is schema
        assert imputer.model_.scaling is scaling
        assert not filled.isna().any(axis=None)

    def test_a_file_can_be_trained_on(self, tmp_path):
        table = mixed_table()
        quick(warm_start=True).fit(table).save(tmp_path / "a.grape")
        loaded = GrapeImputer.load(tmp_path / "a.grape")
        before = copy.deepcopy(loaded.network_.state_dict())
        loaded.fit(table)
        weights = loaded.network_.state_dict()
        assert any(not torch.equal(weights[name], before[name]) for name in before)

    def test_another_architecture_is_refused(self):
        table = mixed_table()
        imputer = quick(warm_start=True).fit(table)
        imputer.set_params(settings=QUICK | {"width": 16})
        with pytest.raises(ConfigError, match=r"another architecture. Set warm_start=False"):
            imputer.fit(table)

    @pytest.mark.parametrize("rows", [0, 3])
    def test_a_second_table_without_values_is_refused(self, rows):
        table = mixed_table()
        imputer = quick(warm_start=True).fit(table)
        nothing = table.iloc[:rows].mask(table.iloc[:rows].notna())
        with pytest.raises(InputError, match="no observed cell"):
            imputer.fit(nothing)


class TestStopping:
    def test_time_limit(self):
        imputer = quick(time_limit=1e-9, settings={"max_steps": 1000}).fit(mixed_table())
        assert imputer.history_.stopped == "time limit"
        assert len(imputer.history_.step) == 1

    def test_interrupt_keeps_the_best_so_far(self):
        def interrupt(progress):
            if progress.step == 3:
                raise KeyboardInterrupt

        table = mixed_table()
        imputer = quick(callbacks=[interrupt])
        with pytest.warns(GrapefillWarning, match="interrupted; the weights so far"):
            imputer.fit(table)
        assert imputer.history_.stopped == "interrupted"
        assert imputer.history_.step == [1, 2, 3]
        assert not imputer.transform(table).isna().any(axis=None)

    def test_early_stopping_restores_the_best_weights(self):
        table = mixed_table(100)
        recipe = {"validation": 0.2, "patience": 3, "max_steps": 400, "average": 0.0, "rejoin": 1.0}
        # A rate this high is soon worse than at its best.
        settings = recipe | {"learning_rate": 0.3, "schedule": "constant"}
        imputer = quick(settings=settings).fit(table)
        history = imputer.history_
        assert history.stopped == "early stopping"
        best = int(np.argmin(history.validation))
        assert history.best_step == history.validation_step[best] < history.step[-1]

        # The same training, ended at its best step, has the weights that were kept.
        def stop(progress):
            if progress.step == history.best_step:
                raise KeyboardInterrupt

        stopped = quick(settings=settings, callbacks=[stop])
        with pytest.warns(GrapefillWarning, match="interrupted"):
            stopped.fit(table)
        at_best = stopped.network_.state_dict()
        for name, weight in imputer.network_.state_dict().items():
            assert torch.equal(weight, at_best[name])

    def test_failing_callback_leaves_the_imputer_as_it_was(self):
        def fail(progress):
            raise RuntimeError("disk full")

        table = mixed_table()
        imputer = quick(callbacks=[fail])
        with pytest.raises(RuntimeError, match="disk full"):
            imputer.fit(table)
        assert [name for name in vars(imputer) if name.endswith("_")] == []

        imputer = quick(warm_start=True).fit(table)
        attributes, filled = dict(vars(imputer)), imputer.transform(table)
        imputer.set_params(callbacks=[fail])
        with pytest.raises(RuntimeError, match="disk full"):
            imputer.fit(mixed_table(seed=1))
        for name in ("model_", "history_", "schema_", "indicator_columns_"):
            assert getattr(imputer, name) is attributes[name]
        pd.testing.assert_frame_equal(imputer.transform(table), filled)


class TestProgress:
    def test_callbacks_get_every_step(self):
        seen = []
        imputer = quick(callbacks=[seen.append], settings={"validation": 0.2, "patience": 50})
        imputer.fit(mixed_table())
        assert all(isinstance(progress, Progress) for progress in seen)
        trees = [progress for progress in seen if progress.stage == "trees"]
        assert seen[-len(trees) :] == trees
        seen = seen[: -len(trees)]
        assert [progress.step for progress in seen] == imputer.history_.step
        assert [progress.loss for progress in seen] == imputer.history_.loss
        assert {progress.steps for progress in seen} == {8}
        assert seen[-1].validation == imputer.history_.validation[-1]
        assert seen[-1].seconds_left == 0

    def test_verbose_shows_a_bar(self, capsys):
        quick(verbose=True).fit(mixed_table())
        shown = "".join(capsys.readouterr())
        assert "Growing trees" in shown
        assert "loss" in shown

    def test_silent_otherwise(self, capfd):
        quick().fit_transform(mixed_table())
        assert capfd.readouterr() == ("", "")


class TestOwnEdgeHead:
    WIDTH = 8

    def table(self):
        return np.random.default_rng(0).normal(size=(30, 3))

    def holes(self):
        table = self.table()
        table[::4, 1] = np.nan
        return table

    def module(self, outputs=1, inputs=2 * WIDTH):
        generator = torch.Generator().manual_seed(0)
        layer = nn.Linear(inputs, outputs)
        with torch.no_grad():
            layer.weight.normal_(generator=generator)
            layer.bias.zero_()
        return nn.Sequential(layer, nn.Tanh())

    def test_a_copy_is_trained(self):
        module = self.module()
        before = copy.deepcopy(module.state_dict())
        imputer = quick(o_edge=module).fit(self.holes())
        own = imputer.network_.o_edge.module
        assert own is not module
        assert isinstance(own[1], nn.Tanh)
        assert not torch.equal(own[0].weight, before["0.weight"])
        assert torch.equal(module[0].weight, before["0.weight"])
        assert not np.isnan(imputer.transform(self.holes())).any()

    def test_refit_is_equal(self):
        imputer = quick(o_edge=self.module())
        first = imputer.fit_transform(self.holes())
        np.testing.assert_array_equal(imputer.fit_transform(self.holes()), first)

    def test_wrong_number_of_outputs(self):
        message = r"returns 5 outputs per cell, this table needs 1. Give its last layer"
        with pytest.raises(ConfigError, match=message):
            quick(o_edge=self.module(5)).fit(self.holes())

    @pytest.mark.parametrize("preset", PRESETS)
    @pytest.mark.parametrize(
        ("columns", "outputs"),
        [
            (["length", "age"], 1),
            (["length", "island", "tagged"], 1 + 3 + 2),
            (["island", "tagged"], 3 + 2),
        ],
    )
    def test_outputs_are_one_and_a_logit_for_each_category(self, preset, columns, outputs):
        table = mixed_table()[columns]
        filled = quick(preset, o_edge=self.module(outputs)).fit_transform(table)
        assert not filled.isna().any(axis=None)
        with pytest.raises(ConfigError, match=f"this table needs {outputs}"):
            quick(preset, o_edge=self.module(outputs + 1)).fit(table)

    def test_file(self, tmp_path):
        imputer = quick(o_edge=self.module()).fit(self.holes())
        imputer.save(tmp_path / "a.grape")
        module = self.module()
        loaded = GrapeImputer.load(tmp_path / "a.grape", o_edge=module)
        assert loaded.o_edge is module
        np.testing.assert_array_equal(
            loaded.transform(self.holes()), imputer.transform(self.holes())
        )
        with pytest.raises(ConfigError, match=r"Pass the same module as load\(path, o_edge"):
            GrapeImputer.load(tmp_path / "a.grape")
        with pytest.raises(ConfigError, match="do not fit the given module"):
            GrapeImputer.load(tmp_path / "a.grape", o_edge=self.module(2))

    def test_a_module_without_weights_is_missed_too(self, tmp_path):
        head = nn.Sequential(nn.Unflatten(-1, (1, -1)), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(2))
        imputer = quick(o_edge=head).fit(self.holes())
        imputer.save(tmp_path / "a.grape")
        with pytest.raises(ConfigError, match="an O_edge module of your own"):
            GrapeImputer.load(tmp_path / "a.grape")

    def test_a_file_without_one_refuses_one(self, tmp_path):
        quick().fit(self.holes()).save(tmp_path / "a.grape")
        with pytest.raises(ConfigError, match="fitted without an O_edge module"):
            GrapeImputer.load(tmp_path / "a.grape", o_edge=self.module())


class TestInsideTorch:
    """The paper's "pre-trained and fixed or concurrently learned"."""

    class Larger(nn.Module):
        def __init__(self, network, places):
            super().__init__()
            self.network = network
            self.label = nn.Linear(places, 1)

        def forward(self, cells):
            return self.label(self.network(cells))[:, 0]

    @pytest.fixture
    def parts(self):
        table = mixed_table()
        imputer = quick().fit(table)
        cells = imputer.encode(table)
        places = imputer.network_.features.places
        return imputer, cells, self.Larger(copy.deepcopy(imputer.network_), places)

    def test_cells_are_the_table(self, parts):
        imputer, cells, _ = parts
        table = mixed_table()
        assert cells.observed.tolist() == table.notna().to_numpy().tolist()
        rows = imputer.network_(cells)
        assert rows.requires_grad
        assert rows.shape == (40, 6 + 2 + 3 + 2 - 1)

    @pytest.mark.parametrize("frozen", [True, False])
    def test_training_around_it(self, parts, frozen):
        _, cells, larger = parts
        larger.network.requires_grad_(not frozen)
        before = copy.deepcopy(larger.state_dict())
        target = torch.linspace(-1, 1, cells.n_observations)
        optimizer = torch.optim.Adam(p for p in larger.parameters() if p.requires_grad)
        losses = []
        for _ in range(20):
            loss = (larger(cells) - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
        after = larger.state_dict()
        changed = {name for name in before if not torch.equal(before[name], after[name])}
        assert {"label.weight", "label.bias"} <= changed
        inside = {name for name in changed if name.startswith("network.")}
        assert not inside if frozen else {"network.feature_init", "network.slot_weight"} <= inside

    def test_no_column_to_encode(self):
        table = pl.DataFrame({"tags": [["a"], ["b"]]})
        imputer = quick(kinds={"tags": "passthrough"}).fit(table)
        assert imputer.network_ is None
        with pytest.raises(InputError, match=r"there is no network\. Fit on a table with"):
            imputer.encode(table)
        with pytest.raises(InputError, match=r"there is no network\. Fit on a table with"):
            imputer.refresh(table)


class TestRefresh:
    """The network was trained further in the caller's own code."""

    def trained(self, preset, table):
        imputer = quick(preset, settings={"rounds": 0}).fit(table)
        cells = imputer.encode(table)
        optimizer = torch.optim.SGD(imputer.network_.parameters(), lr=0.1)
        imputer.network_(cells).square().mean().backward()
        optimizer.step()
        return imputer

    @pytest.mark.parametrize("preset", ["default", "paper"])
    def test_states_are_old_until_then(self, preset):
        table = mixed_table()
        imputer = self.trained(preset, table)
        expected = copy.deepcopy(imputer).set_params(graph_from="transform").transform(table)
        assert largest_scaled_difference(imputer.transform(table), expected) > 1e-4
        assert imputer.refresh(table) is imputer
        assert largest_scaled_difference(imputer.transform(table), expected) < 1e-5

    def test_the_network_is_left_for_evaluation(self):
        table = mixed_table()
        imputer = quick().fit(table)
        imputer.network_.train()
        assert not imputer.refresh(table).network_.training

    def test_a_file_keeps_the_new_states(self, tmp_path):
        table = mixed_table()
        imputer = self.trained("default", table).refresh(table)
        imputer.save(tmp_path / "a.grape")
        loaded = GrapeImputer.load(tmp_path / "a.grape")
        pd.testing.assert_frame_equal(
            loaded.transform(table), imputer.transform(table), check_exact=True
        )

    def test_nothing_to_see(self):
        table = mixed_table()
        imputer = quick().fit(table)
        with pytest.raises(InputError, match="no observed cell"):
            imputer.refresh(table.iloc[:0])
        with pytest.raises(NotFittedError):
            quick().refresh(table)


class TestSummary:
    def test_tells_what_fills_each_column_and_how_well(self):
        imputer = quick().fit(mixed_table(100))
        header, *lines = imputer.summary().splitlines()[:9]
        words = "column kind filled by held out constant network trees blend alone"
        assert " ".join(header.split()) == words
        assert [line.split()[0] for line in lines] == list(mixed_table().columns)
        for line, trial in zip(lines, imputer.model_.trials, strict=True):
            assert f"{trial.blend:.4g}" in line
            assert line.endswith(f"{trial.alone:.4g}")
            assert ("network" in line) == (trial.share > 0)

    def test_without_trees_there_is_nothing_to_compare(self):
        lines = quick("paper").fit(mixed_table()).summary().splitlines()
        assert len(lines) == 9
        assert all(line.endswith("network") for line in lines[1:])

    def test_survives_a_file(self, tmp_path):
        imputer = quick().fit(mixed_table())
        imputer.save(tmp_path / "a.grape")
        assert GrapeImputer.load(tmp_path / "a.grape").summary() == imputer.summary()
        assert "held out" in imputer.summary()

    def test_a_warm_start_forgets_the_old_trial(self):
        table = mixed_table()
        imputer = quick(warm_start=True).fit(table)
        assert imputer.model_.trials
        imputer.set_params(settings=imputer.settings | {"rounds": 0}).fit(table)
        assert (imputer.model_.chain, imputer.model_.trials) == (None, ())

    def test_nothing_to_fill(self):
        imputer = quick(keep_empty_features=True).fit(np.full((3, 1), np.nan))
        assert imputer.summary() == "None of the columns seen in fit can be imputed."
