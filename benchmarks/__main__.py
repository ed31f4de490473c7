"""``python -m benchmarks EXPERIMENT``."""

from __future__ import annotations

import argparse

import torch

from benchmarks import (
    accuracy,
    coverage,
    draws,
    faults,
    files,
    labels,
    paper,
    rubin,
    scale,
    speed,
    wide,
)

EXPERIMENTS = {
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


def main() -> None:
    """Run an experiment."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data-dir", help="folder with uci/*.csv.gz; default GRAPEFILL_DATA")
    parser.add_argument("--threads", type=int, help="torch threads; default all cores")
    parser.add_argument("--verbose", action="store_true", help="show training progress")
    experiments = parser.add_subparsers(required=True, metavar="EXPERIMENT")
    for name, module in EXPERIMENTS.items():
        experiment = experiments.add_parser(name, help=module.__doc__)
        module.add_arguments(experiment)
        experiment.set_defaults(run=module.run)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    arguments.run(arguments)


if __name__ == "__main__":
    main()
