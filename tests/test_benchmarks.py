"""The benchmarks measure what they say."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks import accuracy, data, draws, labels, paper, runner, speed
from benchmarks.baselines.soft_impute import SoftImpute
from benchmarks.methods import METHODS
from benchmarks.plain import PlainNetwork, PlainSelectTraining
from benchmarks.results import ResultFile, markdown_table
from grapefill.evaluate import draw_mask
from grapefill.graph import Cells, Features, build_pairs
from grapefill.nn import GrapeNetwork, NetworkConfig

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def uci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a small table called yacht where the loaders look for it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    table = np.hstack([x, 2 * x, 1 - x, x**2])
    (tmp_path / "uci").mkdir()
    np.savetxt(
        tmp_path / "uci" / "yacht.csv.gz", table, delimiter=",", header="a,b,c,y", comments=""
    )
    monkeypatch.setenv("GRAPEFILL_DATA", str(tmp_path))
    for module in (paper, accuracy, labels):
        results = ResultFile(module.RESULTS.path.stem, module.RESULTS.key)
        results.path = tmp_path / "results" / results.path.name
        monkeypatch.setattr(module, "RESULTS", results)
    return tmp_path


def parse(module: Any, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    arguments = parser.parse_args(words)
    arguments.data_dir, arguments.verbose = None, False
    return arguments


@pytest.mark.parametrize("gather", [None, PlainSelectTraining.gather])
def test_the_yardstick_is_the_same_network(gather: Any) -> None:
    plain = PlainNetwork(5, width=8, **({} if gather is None else {"gather": gather}))
    config = NetworkConfig(width=8, edge_width=8, head_width=8)
    network = GrapeNetwork(Features((0,) * 5), config, torch.Generator())
    layers = zip(plain.messages, plain.updates, plain.edge_updates, network.convs, strict=True)
    pairs = [(plain.post[0], network.post[0]), (plain.post[2], network.post[2])]
    pairs += [(plain.o_edge[0], network.o_edge.hidden), (plain.o_edge[2], network.o_edge.output)]
    for message, update, edge_update, conv in layers:
        pairs += [(message, conv.message), (update, conv.update)]
        if conv.edge_update is not None:
            pairs.append((edge_update, conv.edge_update))
    for theirs, ours in pairs:
        ours.load_state_dict(theirs.state_dict())
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(20, 5, generator=generator)
    kept = torch.rand(20, 5, generator=generator) < 0.6
    wanted = torch.ones(20, 5, dtype=torch.bool)
    expected = plain(values, kept, wanted).view(20, 5)
    nodes = network.encode(network.graph(Cells(values, None, kept), "edges"))
    ours = network.predict(*nodes, build_pairs(wanted, "dense")).value
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_speed_prints_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    speed.run(parse(speed, "--tables", "yacht", "--rounds", "1", "--seconds", "0.05"))
    shown = capsys.readouterr().out
    assert "ratio to plain" in shown
    assert "| yacht 308 x 6 |" in shown


def test_paper_measures_once_and_resumes(uci: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--datasets", "yacht", "--seeds", "3", "--epochs", "2")
    paper.run(parse(paper, *words))
    assert "yacht seed 3: MAE" in capsys.readouterr().out
    paper.run(parse(paper, *words))
    again = capsys.readouterr().out
    assert "seed 3: MAE" not in again
    assert "| yacht | 0.151 |" in again
    (line,) = paper.RESULTS.lines()
    assert {"mae", "seconds", "version", "cores", "threads", "seed"} <= line.keys()


def test_accuracy_compares_and_records_failures(
    uci: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def here(measure: Any, fields: dict[str, Any], data_dir: str | None) -> dict[str, Any]:
        if fields["method"] == "knn":
            return {"error": "ValueError: no"}
        result: dict[str, Any] = measure(fields, data_dir)
        return result

    monkeypatch.setattr(runner, "in_own_process", here)
    methods = ["mean", "mice", "knn"]
    accuracy.run(parse(accuracy, "--datasets", "yacht", "--seeds", "3", "--methods", *methods))
    shown = capsys.readouterr().out
    assert "knn, seed 3: ValueError: no" in shown
    results = {line["method"]: line for line in accuracy.RESULTS.lines()}
    assert results["mice"]["mae"] < 0.5 * results["mean"]["mae"]
    assert results["knn"]["error"] == "ValueError: no"


class Watched:
    """A predictor that notes the labels it is given."""

    seen: ClassVar[list[Any]] = []

    def __init__(self, *, classes: bool) -> None:
        self.tree: Any = (DecisionTreeClassifier if classes else DecisionTreeRegressor)(
            random_state=0
        )

    def fit(self, X: Any, y: Any) -> None:
        self.seen.append(y)
        self.tree.fit(X[~np.isnan(y)], y[~np.isnan(y)])
        if hasattr(self.tree, "classes_"):
            self.classes_ = self.tree.classes_

    def predict(self, X: Any) -> Any:
        return self.tree.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.tree.predict_proba(X)


class TestLabels:
    TREES = ("random forest", "hist gradient boosting, squared")

    @pytest.fixture(autouse=True)
    def here(self, uci: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Measure in this process, a table of classes besides, and a method that is watched."""

        def iris(_: Any) -> tuple[Any, Any]:
            x = np.random.default_rng(0).normal(size=(90, 2))
            return x, (x[:, 0] > 0).astype(int) + 5 * (x[:, 0] > 1)

        def watched(transductive: bool) -> labels.Method:
            return labels.Method(
                lambda _: Watched(classes=False), lambda _: Watched(classes=True), transductive
            )

        monkeypatch.setitem(data.CLASSES, "iris", iris)
        monkeypatch.setitem(labels.METHODS, "inductive", watched(False))
        monkeypatch.setitem(labels.METHODS, "transductive", watched(True))
        monkeypatch.setattr(runner, "in_own_process", lambda measure, *given: measure(*given))
        monkeypatch.setattr(Watched, "seen", [])

    def test_measures_prints_and_resumes(self, capsys: pytest.CaptureFixture[str]) -> None:
        words = ("--datasets", "yacht", "iris", "--seeds", "3", "--methods", *self.TREES)
        labels.run(parse(labels, *words))
        shown = capsys.readouterr().out
        assert "30% of the features missing, MCAR; labels of 70% of the rows known" in shown
        assert "yacht, random forest, seed 3: mae" in shown
        assert "iris, random forest, seed 3: log_loss" in shown
        for word in ("| table | method | mae |", "log_loss | accuracy | ece | splits | fit s |"):
            assert word in shown
        assert "mae / best tree model" in shown
        lines = labels.RESULTS.lines()
        assert len(lines) == 4
        kept = {"fit_seconds", "predict_seconds", "peak_mb", "version", "seed", "missing"}
        assert all(kept <= line.keys() for line in lines)
        for line in lines:
            if line["dataset"] == "iris":
                assert 0.5 < line["accuracy"] <= 1
                assert 0 <= line["ece"] < 0.5
                assert line["log_loss"] > 0
            else:
                # The label is a square, whose mean would be .9 away.
                assert 0 < line["mae"] < 0.9
        labels.run(parse(labels, *words))
        again = capsys.readouterr().out
        assert "seed 3: mae" not in again
        assert "| yacht | random forest |" in again
        labels.run(parse(labels, *words[:-1], "lightgbm, absolute", "--table-only"))
        assert len(labels.RESULTS.lines()) == 4

    def test_a_method_without_classes_is_left_out(self, capsys: pytest.CaptureFixture[str]) -> None:
        method = "hist gradient boosting, absolute"
        labels.run(parse(labels, "--datasets", "iris", "--seeds", "3", "--methods", method))
        assert labels.RESULTS.lines() == []

    @pytest.mark.parametrize("dataset", ["yacht", "iris"])
    def test_rows_to_predict_take_part_without_their_labels(self, dataset: str) -> None:
        scores = []
        for method in ("inductive", "transductive"):
            fields = {"dataset": dataset, "method": method, "seed": 0, "missing": 0.0}
            scores.append(labels.measure(fields, None))
        inductive, transductive = Watched.seen
        assert len(inductive) == (42 if dataset == "yacht" else 63)
        assert not np.isnan(inductive).any()
        assert np.isnan(transductive).sum() == (18 if dataset == "yacht" else 27)
        known = transductive[~np.isnan(transductive)]
        np.testing.assert_array_equal(np.sort(known), np.sort(inductive))
        # A tree knows no other rows than those with labels.
        metric = "mae" if dataset == "yacht" else "accuracy"
        assert scores[0][metric] == scores[1][metric]

    def test_classes_are_aligned_with_those_of_the_table(self) -> None:
        y = np.array([3, 5, 9, 5])
        chances = np.array([[0.1, 0.9], [0.8, 0.2]])
        # Fitted without class 5.
        scores = labels._class_scores(y, np.array([2, 0]), np.array([3.0, 9.0]), chances)
        assert scores["accuracy"] == 1
        assert scores["log_loss"] == pytest.approx(-np.log([0.9, 0.8]).mean())
        assert scores["ece"] == pytest.approx(0.15)

    @pytest.mark.parametrize(
        ("confidence", "right", "expected"),
        [
            ([0.95] * 4, [1, 1, 1, 0], 0.2),
            ([1.0, 1.0], [1, 1], 0.0),
            ([1.0, 1.0], [0, 0], 1.0),
            # Two bins, a half each: |.65 - .5| and |.85 - 1|.
            ([0.65, 0.65, 0.85, 0.85], [1, 0, 1, 1], 0.15),
            # In one bin errors cancel.
            ([0.61, 0.69], [1, 0], 0.15),
        ],
    )
    def test_calibration_error(
        self, confidence: list[float], right: list[int], expected: float
    ) -> None:
        found = labels.calibration_error(np.array(confidence), np.array(right, dtype=bool))
        assert found == pytest.approx(expected)

    def test_ratios_are_to_the_best_tree_model_of_each_table(self) -> None:
        scores = {
            "random forest": [(2.0, 4.0), (8.0, 8.0)],
            "catboost": [(5.0, 5.0), (2.0, 2.0)],
            "grapefill default": [(1.0, 2.0), (4.0, 4.0)],
        }
        lines = [
            {"dataset": dataset, "method": method, "mae": score}
            for method, by_table in scores.items()
            for dataset, each in zip(("a", "b"), by_table, strict=True)
            for score in each
        ]
        lines.append({"dataset": "a", "method": "grapefill fast", "mae": 1.0})
        lines.append({"dataset": "b", "method": "grapefill fast", "error": "no"})
        methods = ["random forest", "grapefill default", "grapefill fast"]
        shown = labels.ratios(lines, ["a", "b"], methods, "mae").splitlines()
        assert shown[0] == "| mae / best tree model | a | b | geometric mean |"
        # Means of 3 and 2 are the best; a method that lacks a table is left out.
        assert shown[2:] == [
            "| random forest | 1.000 | 4.000 | 2.000 |",
            "| grapefill default | 0.500 | 2.000 | 1.000 |",
        ]


def test_a_process_of_its_own_gives_a_result_or_an_error() -> None:
    assert runner.in_own_process(dict.get, {"a": {"mae": 1.0}}, "a") == {"mae": 1.0}
    assert "TypeError" in runner.in_own_process(int, {}, None)["error"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["mean", "knn", "mice", "soft svd", "missforest"])
def test_every_method_fills_a_mixed_table(method: str) -> None:
    complete = data.load_table("wine-classes")
    filled = METHODS[method](0).fit_transform(
        complete.mask(draw_mask(data.as_numbers(complete), 0.2))
    )
    assert not filled.isna().any(axis=None)
    assert (filled.dtypes == complete.dtypes).all()


def test_categories_survive_the_way_through_numbers() -> None:
    table = data.load_table("penguins")
    numbers = data.as_numbers(table)
    assert numbers.min() == 0
    assert numbers.max() == 1
    assert data.from_numbers(numbers, table).equals(table)


def test_soft_svd_finds_a_low_rank() -> None:
    complete = data.load_table("wide-500x200").to_numpy()[:, :40]
    mask = draw_mask(complete, 0.3)
    holes = np.where(mask, np.nan, complete)
    filled = SoftImpute().fit_transform(holes)
    error = np.abs(filled - complete)[mask].mean()
    assert error < 0.7 * np.abs(np.nanmean(holes, axis=0) - complete)[mask].mean()


def test_missing_data_folder_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPEFILL_DATA", raising=False)
    with pytest.raises(SystemExit, match="GRAPEFILL_DATA"):
        data.data_folder()


def test_the_error_to_be_expected_of_correlations_is_told_by_the_draws() -> None:
    random = np.random.default_rng(0)
    spread = random.uniform(0.01, 0.05, size=(30, 30))
    truth, *drawn = random.normal(0, spread, size=(21, 30, 30))
    off = draws._gap(truth, np.mean(drawn, axis=0))
    assert draws._expected(np.stack(drawn)) == pytest.approx(off, rel=0.07)


def test_markdown_table() -> None:
    assert markdown_table(["a"], [["1"]]) == "| a |\n| --- |\n| 1 |"
