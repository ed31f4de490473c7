"""Tables of what was measured, ours beside the published figures, from the result lines."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import published
from benchmarks.experiments import EXPERIMENTS, FIRST_SEED, TASKS
from benchmarks.results import markdown_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    # By method and table, then by seed.
    Scores = dict[tuple[str, str], dict[int, float]]

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
# So many of everything are aimed at.
TRIALS = 3
# What an experiment's figures are relative to, and what was published.
YARDSTICK = {
    "labels": "mean, then linear",
    "label-levels": "mean, then linear",
    "label-ablation": "grapefill paper, batches, then linear",
    "time": None,
    "ratings": "biases",
}
PUBLISHED: dict[str, Mapping[str, Mapping[str, float]]] = {
    "imputation": published.IMPUTATION,
    "additional": published.IMPUTATION,
    "labels": published.LABELS,
    "ablation": published.ABLATION,
    "label-ablation": published.LABEL_ABLATION,
    "time": published.TIME,
    "ratings": published.RATINGS,
}
# Methods that an experiment shows the published figures of without running them.
ALSO_PUBLISHED = {"labels": ("grapefill paper",)}
INTRODUCTION = """# Benchmarks

This page is made by `python -m benchmarks table --write` from the lines in `benchmarks/results/`; a
test holds it to them. Run an experiment yourself with `python -m benchmarks run NAME`; the
[guide](adding-a-method.md) tells how to add a method.

Figures are means over trials, whose number is in the last column; masks and splits have the seeds
from 100 on; what was tuned was tuned on others, but for what `benchmarks/NOTES.md` owns up to.
*Published* rows are the paper's figures. "Relative" is the mean ratio to the method that the
heading names, over the tables and trials that both have. The note below a table says how many fits
are there, which are lacking, and what failed.

"missforest" is the package of that name as it comes: it learns a column from all rows, those with a
first guess included, so categories stay at their first guess. "Chained extra trees" is nearer to
what MissForest's authors describe.

The lines are from machines with two shared cores. Those of grapefill do not all come out again: the
same fit of a small table, with the same code and seeds, was about 5% better or worse in a later run
(`benchmarks/NOTES.md` has 50 of them). The likely cause is another processor, which rounds
otherwise; older lines do not tell theirs, nor the versions of numpy and scikit-learn, so it is not
proven.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("experiments", nargs="*", choices=[*EXPERIMENTS, []])
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")


def run(arguments: argparse.Namespace) -> None:
    """Print the tables, or write the page."""
    if arguments.write:
        PAGE.write_text(page())
        print(f"Wrote {PAGE}.")
        return
    for name in arguments.experiments or EXPERIMENTS:
        print(section(name))


def page() -> str:
    """Return the whole page."""
    return "\n".join([INTRODUCTION, *(section(name) for name in EXPERIMENTS)])


def section(name: str, also: Sequence[str] = ()) -> str:
    """Return the part of one experiment, with further methods if they are asked for."""
    experiment = EXPERIMENTS[name]
    parts = [f"## {name}\n\n{experiment.about}\n"]
    if (PAGE.parent / "figures" / f"{name}.svg").exists():
        parts.append(f"![{experiment.about}](figures/{name}.svg)\n")
    lines = _lines(name, also)
    levels = experiment.grid.get("missing", ())
    mechanisms = experiment.grid.get("mechanism", ())
    for level in levels or (None,):
        for mechanism in mechanisms or (None,):
            mine = [
                line
                for line in lines
                if level in (None, line.get("missing"))
                and mechanism in (None, line.get("mechanism"))
            ]
            words = [f"{level:.0%} missing"] if len(levels) > 1 else []
            words += [mechanism.upper()] if len(mechanisms) > 1 else []
            if words:
                parts.append(f"### {', '.join(words)}\n")
            grid = {"missing": level, "mechanism": mechanism}
            asked = {key: value for key, value in grid.items() if value is not None}
            parts += _tables(name, mine, asked, also)
    return "\n".join(parts)


def scores(lines: list[dict[str, Any]], metric: str) -> Scores:
    """Return the figures of every method on every table."""
    found: Scores = {}
    for line in lines:
        if line.get(metric) is not None:
            by_seed = found.setdefault((line["method"], line["dataset"]), {})
            by_seed[line["seed"]] = line[metric]
    return found


def relative(
    found: Scores, method: str, yardstick: str, datasets: tuple[str, ...]
) -> tuple[float, int] | None:
    """Return the mean ratio of a method to another over tables that both have, and their number.

    On each table, the trials that both have are compared.
    """
    ratios = []
    for dataset in datasets:
        mine, theirs = (found.get((each, dataset), {}) for each in (method, yardstick))
        both = mine.keys() & theirs.keys()
        if both:
            ratios.append(sum(mine[s] for s in both) / sum(theirs[s] for s in both))
    return (float(np.mean(ratios)), len(ratios)) if ratios else None


def _lines(name: str, also: Sequence[str] = ()) -> list[dict[str, Any]]:
    experiment = EXPERIMENTS[name]
    return [
        line
        for line in TASKS[experiment.task].RESULTS.good_lines()
        if line["seed"] >= FIRST_SEED
        and line["dataset"] in experiment.datasets
        and line["method"] in (*experiment.methods, *also)
        and all(line[key] in values for key, values in experiment.grid.items())
    ]


def _tables(
    name: str, lines: list[dict[str, Any]], asked: dict[str, Any], also: Sequence[str]
) -> list[str]:
    parts = []
    for metric in TASKS[EXPERIMENTS[name].task].METRICS:
        found = scores(lines, metric)
        if metric == "mae_new_graph":
            continue
        if name == "new-rows":
            found |= {
                (f"{method}, new graph", dataset): values
                for (method, dataset), values in scores(lines, "mae_new_graph").items()
            }
        if found:
            parts.append(_table(name, found, metric, asked, also))
    if not parts:
        parts.append("Not measured yet. " + _note(name, asked))
    return parts


def _table(
    name: str, found: Scores, metric: str, asked: dict[str, Any], also: Sequence[str]
) -> str:
    experiment = EXPERIMENTS[name]
    yardstick = YARDSTICK.get(name, "mean")
    known = PUBLISHED.get(name, {}) if metric in ("mae", "seconds", "rmse") else {}
    shown = [*experiment.methods, *also, *(method for method, _ in found)]
    shown += ALSO_PUBLISHED.get(name, ())
    shown = list(dict.fromkeys(shown))
    rows = []
    for method in shown:
        if any((method, dataset) in found for dataset in experiment.datasets):
            rows.append(_row(method, found, experiment.datasets, yardstick))
        if method in known:
            figures = [_figure(known[method][dataset]) for dataset in experiment.datasets]
            rows.append([f"*{method}, published*", *figures, "", ""])
    header = [
        metric,
        *experiment.datasets,
        f"relative to {yardstick}" if yardstick else "",
        "trials",
    ]
    notes = [_implementations(name), _empty(name, found), _note(name, asked)]
    return markdown_table(header, rows) + "\n\n" + " ".join(note for note in notes if note)


def _row(method: str, found: Scores, datasets: tuple[str, ...], yardstick: str | None) -> list[str]:
    cells = [
        _figure(float(np.mean(list(found[method, d].values())))) if (method, d) in found else ""
        for d in datasets
    ]
    ratio = relative(found, method, yardstick, datasets) if yardstick else None
    words = ""
    if ratio is not None:
        words = f"{ratio[0]:.3f}" + (f" ({ratio[1]} tables)" if ratio[1] < len(datasets) else "")
    trials = {len(found[method, d]) for d in datasets if (method, d) in found}
    spread = f"{min(trials)}" if len(trials) == 1 else f"{min(trials)}-{max(trials)}"
    return [method, *cells, words, spread]


def _figure(value: float) -> str:
    if value == 0:
        return "0"
    digits = max(0, 3 - int(np.floor(np.log10(abs(value)))) - 1 + (abs(value) < 1))
    return f"{value:.{min(digits, 7)}f}"


def _implementations(name: str) -> str:
    """Say which tree it was, where there are two."""
    said = {line["implementation"] for line in _lines(name) if line.get("implementation")}
    return f"The decision tree is {', '.join(sorted(said))}." if said else ""


def _empty(name: str, found: Scores) -> str:
    """Say which cells of a table are empty, and why; those that failed are said elsewhere."""
    experiment = EXPERIMENTS[name]
    failed = {(line["method"], line["dataset"]) for line in _failed(name)}
    words, absent = [], []
    for method in experiment.methods:
        lacking = [d for d in experiment.datasets if (method, d) not in {*found, *failed}]
        if len(lacking) == len(experiment.datasets) and method not in experiment.empty:
            absent.append(method)
        elif lacking:
            why = experiment.empty.get(method, "not measured yet")
            words.append(f"{method} on {', '.join(lacking)} ({why})")
    words += [f"not measured yet are {'; '.join(absent)}"] if absent else []
    return f"Empty: {'; '.join(words)}." if words else ""


def _wanted(name: str) -> set[tuple[Any, ...]]:
    """Return the keys of three trials of everything that an experiment asks for."""
    experiment = EXPERIMENTS[name]
    seeds = range(FIRST_SEED, FIRST_SEED + TRIALS)
    fields = experiment.fields(experiment.datasets, experiment.methods, seeds)
    return {TASKS[experiment.task].RESULTS.key_of(each) for each in fields}


def _failed(name: str) -> list[dict[str, Any]]:
    """Return the lines of an experiment with an error, where there is no other line."""
    results = TASKS[EXPERIMENTS[name].task].RESULTS
    left = _wanted(name) - {results.key_of(line) for line in _lines(name)}
    return [line for line in results.lines() if "error" in line and results.key_of(line) in left]


def _note(name: str, asked: dict[str, Any]) -> str:
    """Say what was measured of what a table asks for, what is lacking, and what failed."""
    results = TASKS[EXPERIMENTS[name].task].RESULTS
    at = {field: results.key.index(field) for field in (*asked, "method", "dataset")}
    wanted = {
        key for key in _wanted(name) if all(key[at[field]] == asked[field] for field in asked)
    }
    done = {results.key_of(line) for line in _lines(name)}
    counts = Counter((key[at["method"]], key[at["dataset"]]) for key in wanted - done)
    lacking: dict[tuple[str, int], list[str]] = {}
    for (method, dataset), count in sorted(counts.items()):
        # Where all are lacking, the cell is empty, and the reason is told with it.
        if count < TRIALS:
            lacking.setdefault((method, count), []).append(dataset)
    failed = sorted(
        {
            f"{line['method']} on {line['dataset']} ({line['error'].splitlines()[0]})"
            for line in _failed(name)
        }
    )
    words = f"Of three trials of everything, {len(wanted & done)} of {len(wanted)} fits are here."
    if lacking:
        every = len(EXPERIMENTS[name].datasets)
        rest = [
            f"{count} trial{'s' * (count > 1)} of {method} on "
            + ("all" if len(on) == every else ", ".join(on))
            for (method, count), on in lacking.items()
        ]
        words += f" Lacking are {'; '.join(rest)}."
    if failed:
        words += " Failed: " + "; ".join(failed) + "."
    return words + "\n"
