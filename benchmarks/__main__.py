"""``python -m benchmarks``: the paper's experiments and ours, from one command.

``list`` shows the experiments, ``run`` measures what is missing of one, ``table`` and ``figures``
show what was measured. The other commands are older ways to some of the same measurements.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from benchmarks import (
    accuracy,
    coverage,
    draws,
    faults,
    figures,
    files,
    labels,
    paper,
    rubin,
    scale,
    speed,
    tables,
    wide,
)
from benchmarks.data import data_folder
from benchmarks.experiments import EXPERIMENTS, TASKS, run
from benchmarks.openml import check

if TYPE_CHECKING:
    from types import ModuleType

COMMANDS = {
    "table": tables,
    "figures": figures,
    "accuracy": accuracy,
    "coverage": coverage,
    "draws": draws,
    "faults": faults,
    "files": files,
    "labels": labels,
    "paper": paper,
    "rubin": rubin,
    "scale": scale,
    "speed": speed,
    "wide": wide,
}


def main(words: list[str] | None = None) -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data-dir", help="folder with uci/*.csv.gz; default GRAPEFILL_DATA")
    parser.add_argument("--results-dir", type=Path, help="where result lines are kept")
    parser.add_argument("--threads", type=int, help="torch threads; default all cores")
    parser.add_argument("--verbose", action="store_true", help="show training progress")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("list", help="show the experiments").set_defaults(run=_list)
    _add_run(commands.add_parser("run", help="measure what is missing of experiments"))
    commands.add_parser("check", help="compare data files with known checksums").set_defaults(
        run=_check
    )
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=_first_line(module))
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    arguments = parser.parse_args(words)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
        # Measurements run in processes of their own.
        os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    if arguments.results_dir:
        modules = [*TASKS.values(), *COMMANDS.values()]
        for results in {module.RESULTS for module in modules if hasattr(module, "RESULTS")}:
            results.path = arguments.results_dir / results.path.name
    arguments.run(arguments)


def _first_line(module: ModuleType) -> str:
    words = (module.__doc__ or "").partition("\n")[0]
    return words.replace("%", "%%")


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiments", nargs="+", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--datasets", nargs="+", help="default: those of the paper")
    parser.add_argument("--methods", nargs="+", help="default: those of the experiment")
    parser.add_argument("--trials", type=_count, default=5, help="masks, from seed 100 on")
    parser.add_argument("--missing", type=_share, help="another share of missing cells")
    parser.add_argument("--time-limit", type=_positive, help="seconds for one measurement")
    parser.add_argument(
        "--budget", type=_positive, default=1, help="share of the usual training, for a quick look"
    )
    parser.add_argument("--retry-failed", action="store_true", help="measure again what failed")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    chosen = list(EXPERIMENTS) if "all" in arguments.experiments else arguments.experiments
    for name in chosen:
        datasets, methods, missing = arguments.datasets, arguments.methods, arguments.missing
        if len(chosen) > 1:
            # Of several experiments, each takes what it knows.
            task = TASKS[EXPERIMENTS[name].task]
            datasets = datasets and [each for each in datasets if each in task.DATASETS]
            methods = methods and [each for each in methods if each in task.METHODS]
            missing = missing if "missing" in EXPERIMENTS[name].grid else None
            if datasets == [] or methods == []:
                print(f"{name} has none of these tables, or of these methods.")
                continue
        run(
            name,
            datasets=datasets,
            methods=methods,
            trials=arguments.trials,
            missing=missing,
            time_limit=arguments.time_limit,
            share=arguments.budget,
            data_dir=arguments.data_dir,
            retry=arguments.retry_failed,
        )
        if arguments.budget == 1:
            print(tables.section(name, also=methods or ()))


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 1 on")
    return int(text)


def _positive(text: str, below: float = math.inf) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < below:
        limit = "" if below == math.inf else f" and below {below:g}"
        raise argparse.ArgumentTypeError(f"{text} is no number above 0{limit}")
    return number


def _share(text: str) -> float:
    return _positive(text, below=1)


def _list(_: argparse.Namespace) -> None:
    for name, experiment in EXPERIMENTS.items():
        print(f"{name}: {experiment.about}")
        print(f"    tables: {', '.join(experiment.datasets)}")
        print(f"    methods: {'; '.join(experiment.methods)}")


def _check(arguments: argparse.Namespace) -> None:
    words = {True: "as known", False: "another file", None: "absent"}
    for name, found in check(data_folder(arguments.data_dir)).items():
        print(f"{name}: {words[found]}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("Stopped. The same command goes on from here.") from None
