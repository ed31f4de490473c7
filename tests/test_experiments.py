"""Every experiment runs from one command; tables and figures come from its lines."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import figures, openml, runner, tables
from benchmarks.__main__ import COMMANDS, main
from benchmarks.accuracy import check_filled
from benchmarks.experiments import EXPERIMENTS, TASKS
from benchmarks.methods import METHODS
from benchmarks.results import ResultFile, settings_of
from benchmarks.timing import METHODS as TIMED

# Small tables that come with the libraries.
TABLES = ["diabetes", "wine-classes"]
SMALL = {"labels": ["diabetes", "iris"], "ratings": ["made-up"]}
# Others cover these, or they take seconds in any budget.
LEFT_OUT = {"igmc", "missforest", "chained boosting", "catboost", "decision tree", "random forest"}


@pytest.fixture
def own_results(tmp_path, monkeypatch):
    """Keep lines in a folder of the test's, and measure in this process."""
    for task in TASKS.values():
        results = ResultFile(task.RESULTS.path.stem, task.RESULTS.key)
        results.path = tmp_path / results.path.name
        monkeypatch.setattr(task, "RESULTS", results)
    monkeypatch.setattr(runner, "in_own_process", lambda measure, *given, **_: measure(*given))
    return tmp_path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_smoke(name, own_results, capsys):
    experiment = EXPERIMENTS[name]
    datasets = SMALL.get(experiment.task, TABLES)
    methods = [method for method in experiment.methods if method not in LEFT_OUT]
    words = ["run", name, "--datasets", *datasets, "--methods", *methods]
    words += ["--trials", "1", "--budget", "0.005"]
    if len(experiment.grid.get("missing", ())) > 1:
        # One level of missing stands for all: the lines differ in nothing else.
        words += ["--missing", "0.5"]
    main(words)
    shown = capsys.readouterr().out
    assert experiment.about in shown
    lines = TASKS[experiment.task].RESULTS.lines()
    assert len(lines) >= len(methods)
    assert not [line for line in lines if "error" in line]
    kept = {"dataset", "method", "seed", "budget", "peak_mb", "version", "torch", "cores"}
    for line in lines:
        assert kept <= line.keys()
        assert line.keys() & {"seconds", "fit_seconds"}
    main(words)
    assert "[1/" not in capsys.readouterr().out


def test_the_guide_adds_a_method(own_results):
    guide = (tables.PAGE.parent / "adding-a-method.md").read_text()
    names: dict[str, object] = {}
    for code in re.findall(r"^```python\n(.*?)^```", guide, flags=re.MULTILINE | re.DOTALL):
        exec(code, names)
    try:
        main(
            ["run", "imputation", "--datasets", "diabetes", "--methods", "median", "--trials", "1"]
        )
    finally:
        METHODS.pop("median")
    (line,) = TASKS["imputation"].RESULTS.lines()
    assert 0 < line["mae"] < 0.3


def test_list_names_every_experiment(capsys):
    main(["list"])
    shown = capsys.readouterr().out
    assert all(f"{name}: " in shown for name in EXPERIMENTS)


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=str)
def test_help_is_shown(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--help"])
    assert stopped.value.code == 0
    assert "usage" in capsys.readouterr().out


def test_every_command_keeps_its_lines_where_it_is_told(tmp_path, monkeypatch):
    modules = (*TASKS.values(), *COMMANDS.values())
    kept = [module.RESULTS for module in modules if hasattr(module, "RESULTS")]
    for results in kept:
        monkeypatch.setattr(results, "path", results.path)
    main(["--results-dir", str(tmp_path), "draws", "--table-only"])
    assert all(results.path.parent == tmp_path for results in kept)


def test_every_method_of_an_experiment_is_known():
    for experiment in EXPERIMENTS.values():
        task = TASKS[experiment.task]
        assert set(experiment.methods) <= set(task.METHODS)
        assert set(experiment.datasets) <= set(task.DATASETS)


def test_unknown_methods_and_tables_are_refused():
    with pytest.raises(SystemExit, match="no method 'magic'"):
        main(["run", "imputation", "--methods", "magic"])
    with pytest.raises(SystemExit, match="no table 'titanic'"):
        main(["run", "imputation", "--datasets", "titanic"])


def _sleep(fields, data_dir):
    time.sleep(60)


def _crash(fields, data_dir):
    os._exit(3)


def test_a_method_that_takes_too_long_or_crashes_is_noted(tmp_path, capsys):
    results = ResultFile("x", ("dataset", "method", "seed"))
    results.path = tmp_path / "x.jsonl"
    fields = {"dataset": "a", "method": "b", "seed": 100}
    for measure, error in ((_sleep, "TimeLimit: not done after 0.2 s"), (_crash, "exit code 3")):
        results.path.unlink(missing_ok=True)
        limit = 0.2 if measure is _sleep else None
        runner.run_missing(results, [fields], measure, data_dir=None, shown=str, time_limit=limit)
        (line,) = results.lines()
        assert error in line["error"]
        assert line["seconds"] > 0
        assert results.good_lines() == []
        assert results.has(**fields)


def test_the_latest_of_two_equal_measurements_counts(tmp_path):
    results = ResultFile("x", ("dataset",))
    results.path = tmp_path / "x.jsonl"
    for fields in ({"mae": 1.0}, {"mae": 2.0}, {"error": "no"}, {"mae": 9.0, "budget": 0.1}):
        results.add(dataset="a", **fields)
    (line,) = results.good_lines()
    assert line["mae"] == 2.0


def test_settings_are_plain():
    for name, make in TIMED.items():
        settings = settings_of(make(0))
        assert json.loads(json.dumps(settings)) == settings, name


def test_the_page_is_made_of_the_committed_lines():
    assert tables.PAGE.read_text() == tables.page(), "run python -m benchmarks table --write"


def test_figures_are_drawn_from_the_lines(own_results, tmp_path, capsys):
    lines = TASKS["imputation"].RESULTS
    for method, mae in (("mean", 0.2), ("grapefill default", 0.1)):
        for missing in (0.3, 0.5):
            fields = {"dataset": "yacht", "method": method, "seed": 100, "mechanism": "mcar"}
            lines.add(**fields, missing=missing, mae=mae if missing == 0.3 else 0.2)
    main(["figures", "--folder", str(tmp_path / "figures")])
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert drawn == {"imputation.svg", "imputation-levels.svg"}
    assert "0.500 (1 tables)" in tables.section("imputation")
    (axes,) = figures.bars("imputation").axes
    # The lines of other shares of missing cells are of another experiment.
    assert sorted({bar.get_height() for bar in axes.patches if bar.get_height() > 0}) == [0.5, 1]
    assert figures.FOLDER.parent.name == "docs"


def test_a_table_says_which_cells_are_empty_and_why(own_results):
    lines = TASKS["imputation"].RESULTS
    fields = {"seed": 100, "missing": 0.3, "mechanism": "mcar"}
    lines.add(dataset="yacht", method="mean", mae=0.2, **fields)
    lines.add(dataset="wine", method="mean", error="MemoryError: too much", **fields)
    said = tables.section("imputation")
    others = [name for name in EXPERIMENTS["imputation"].datasets if name not in ("yacht", "wine")]
    assert f"Empty: mean on {', '.join(others)} (not measured yet); grapefill paper on" in said
    assert "protein, wine, yacht (20,000 epochs on all rows" in said
    assert "not measured yet are knn; mice, 3 rounds;" in said
    assert "Lacking are 2 trials of mean on yacht." in said
    assert "Failed: mean on wine (MemoryError: too much)." in said


def test_methods_that_were_asked_for_are_shown(own_results):
    fields = {"seed": 100, "missing": 0.3, "mechanism": "mcar", "dataset": "yacht"}
    TASKS["imputation"].RESULTS.add(method="miwae", mae=0.1, **fields)
    assert "| miwae |" not in tables.section("imputation")
    assert "| miwae |" in tables.section("imputation", also=["miwae"])


def test_a_line_that_was_cut_off_is_passed_over(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.results.FOLDER", tmp_path)
    results = ResultFile("some", ("seed",))
    results.add(seed=1, mae=0.5, largest=float("inf"))
    with results.path.open("a") as file:
        file.write('{"seed": 2, "ma')
    results.add(seed=3, mae=0.25)
    assert [line["seed"] for line in results.lines()] == [1, 3]
    assert [line["seed"] for line in results.lines()] == [1, 3]
    assert capsys.readouterr().err.count("line 2 was cut off") == 1
    assert "Infinity" not in results.path.read_text()


def test_what_failed_can_be_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.results.FOLDER", tmp_path)
    results = ResultFile("some", ("dataset", "method", "seed"))
    fields = {"dataset": "yacht", "method": "mean", "seed": 1}
    results.add(**fields, error="MemoryError")
    monkeypatch.setattr(runner, "in_own_process", lambda *_, **__: {"mae": 0.5})
    for retry, expected in ((False, 1), (True, 2), (True, 2)):
        runner.run_missing(results, [fields], None, data_dir=None, shown=lambda _: "", retry=retry)
        assert len(results.lines()) == expected


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda table: table.fillna(0.5).iloc[:1], "shape"),
        (lambda table: table, "cells are not filled"),
        (lambda table: table.fillna(0.5) * 2, "observed cells were changed"),
    ],
)
def test_what_is_no_filled_table_is_an_error(answer, message):
    complete = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1]})
    missing = np.array([[True, False], [False, False], [False, True]])
    check_filled(complete, complete.mask(missing).fillna(0.5), missing)
    with pytest.raises(ValueError, match=message):
        check_filled(complete, answer(complete.mask(missing)), missing)


@pytest.mark.parametrize(
    "option", [("--trials", "0"), ("--missing", "1"), ("--budget", "0"), ("--time-limit", "-1")]
)
def test_numbers_that_make_no_sense_are_refused(option, capsys):
    with pytest.raises(SystemExit):
        main(["run", "imputation", *option])
    assert option[0] in capsys.readouterr().err


def test_several_experiments_take_what_they_know(own_results, capsys):
    words = ["run", "labels", "ratings", "--methods", "biases", "--missing", "0.2"]
    with pytest.raises(SystemExit, match="has no folder"):
        main(["--data-dir", "/nowhere", *words])
    assert "labels has none of these" in capsys.readouterr().out


def test_data_files_are_compared_with_known_sums(tmp_path):
    (tmp_path / "uci").mkdir()
    (tmp_path / "uci" / "yacht.csv.gz").write_bytes(b"other")
    found = openml.check(tmp_path)
    assert found["uci/yacht.csv.gz"] is False
    assert found["uci/wine.csv.gz"] is None


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("GRAPEFILL_DATA"), reason="GRAPEFILL_DATA is not set")
def test_the_data_folder_is_the_one_that_lines_are_from():
    assert all(openml.check(Path(os.environ["GRAPEFILL_DATA"])).values())
