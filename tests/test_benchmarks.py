"""The benchmarks measure what they say."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from benchmarks import accuracy, data, paper, runner, speed
from benchmarks.methods import METHODS
from benchmarks.plain import PlainNetwork, PlainSelectTraining
from benchmarks.results import ResultFile, markdown_table
from benchmarks.soft_impute import SoftImpute
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
    for module in (paper, accuracy):
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


def test_markdown_table() -> None:
    assert markdown_table(["a"], [["1"]]) == "| a |\n| --- |\n| 1 |"
