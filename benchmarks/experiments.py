"""The experiments: which tables, methods and settings of which task.

A task is a module that can ``measure`` one method on one table and keeps its own ``RESULTS`` and
``METHODS``. An experiment is a grid of such measurements, so the same line serves every experiment
that asks for it. To add one, add an entry to `EXPERIMENTS`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from benchmarks import accuracy, labels, new_rows, timing, transfer
from benchmarks.data import MIXED, UCI, data_folder
from benchmarks.ratings import task as ratings
from benchmarks.ratings.data import NAMES
from benchmarks.runner import run_missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TASKS: dict[str, Any] = {
    "imputation": accuracy,
    "labels": labels,
    "new rows": new_rows,
    "time": timing,
    "transfer": transfer,
    "ratings": ratings,
}
FIRST_SEED = 100
LEVELS = (0.1, 0.3, 0.5, 0.7)


@dataclass(frozen=True)
class Experiment:
    """A grid of measurements.

    Parameters
    ----------
    task : str
        One of `TASKS`.
    about : str
        What it shows, in a sentence.
    datasets, methods : tuple of str
        Tables, and methods of the task.
    grid : mapping of str to tuple
        Further settings; every combination is measured.
    empty : mapping of str to str
        Why some methods were not measured on all tables.
    """

    task: str
    about: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    empty: Mapping[str, str] = field(default_factory=dict)

    def fields(
        self, datasets: Sequence[str], methods: Sequence[str], seeds: Sequence[int]
    ) -> list[dict[str, Any]]:
        """Return what tells each measurement from the others."""
        task = TASKS[self.task]
        return [
            {"dataset": dataset, "method": method, "seed": seed}
            | dict(zip(self.grid, values, strict=True))
            for values in product(*self.grid.values())
            for dataset in datasets
            for seed in seeds
            for method in methods
            if task.allows(dataset, method)
        ]


THIRTY: Mapping[str, tuple[Any, ...]] = {"missing": (0.3,)}
MCAR: Mapping[str, tuple[Any, ...]] = {"missing": (0.3,), "mechanism": ("mcar",)}
STATISTICS = ("mean", "knn", "mice, 3 rounds", "mice", "svd", "spectral", "gain")
TREES = ("chained extra trees", "chained boosting", "missforest")
OURS = ("grapefill fast", "grapefill default")
LINEAR = tuple(f"{name}, then linear" for name in STATISTICS)
ALL_LABELS = (
    *LINEAR,
    "decision tree",
    *labels.TREES,
    "chained extra trees, random forest",
    *OURS,
)

EXPERIMENTS: dict[str, Experiment] = {
    "imputation": Experiment(
        "imputation",
        "Feature imputation, 30% missing completely at random.",
        UCI,
        (*STATISTICS, *TREES, *OURS, "grapefill paper", "grapefill paper, batches"),
        MCAR,
        {
            "grapefill paper": "20,000 epochs on all rows at once take half an hour (power) to "
            'several hours (protein) a fit; "grapefill paper, batches" has the same network with '
            "10,000 steps on 1,024 rows at most",
        },
    ),
    "labels": Experiment(
        "labels",
        "Label prediction, 30% of the features missing, labels of 70% of the rows known. As in the "
        "paper, grapefill and what is filled before a linear model see the features of all rows, "
        "trees only those of the known labels.",
        UCI,
        ALL_LABELS,
        THIRTY,
    ),
    "imputation-levels": Experiment(
        "imputation",
        "Feature imputation at 10%, 30%, 50% and 70% missing.",
        UCI,
        (*STATISTICS, "chained extra trees", *OURS),
        {"missing": LEVELS, "mechanism": ("mcar",)},
    ),
    "label-levels": Experiment(
        "labels",
        "Label prediction at 10%, 30%, 50% and 70% missing.",
        UCI,
        ALL_LABELS,
        {"missing": LEVELS},
    ),
    "new-rows": Experiment(
        "new rows",
        "Rows that were not there at fit, 70/30, without training again.",
        UCI,
        (
            *STATISTICS,
            "chained extra trees",
            "knn, fitted",
            "mice, fitted",
            "chained extra trees, fitted",
            *OURS,
        ),
        THIRTY,
    ),
    "ablation": Experiment(
        "imputation",
        'Edge dropout and aggregation, with preset "paper" for 10,000 steps of 1,024 rows at most.',
        UCI,
        (
            "mean",
            "grapefill paper, batches",
            "grapefill paper, batches, no edge dropout",
            "grapefill paper, batches, sum",
            "grapefill paper, batches, max",
        ),
        MCAR,
    ),
    "label-ablation": Experiment(
        "labels",
        'End-to-end against impute-then-predict with the same network: preset "paper" for labels, '
        "of 16 units, 20,000 steps of 1,024 rows at most. The published figures of the latter are "
        "of the paper's larger network for imputation, of 64 units.",
        UCI,
        ("grapefill paper, batches", "grapefill paper, batches, then linear"),
        THIRTY,
    ),
    "time": Experiment(
        "time",
        "Seconds to fill a table at test time: of networks, which were trained before, without the "
        "training; of methods that learn anew from every table, with it.",
        UCI,
        tuple(timing.METHODS),
        THIRTY,
    ),
    "additional": Experiment(
        "imputation",
        "The appendix's additional baselines, missMDA and MIWAE.",
        UCI,
        ("mean", "missmda", "missmda, one draw", "miwae", *OURS),
        MCAR,
    ),
    "mechanisms": Experiment(
        "imputation",
        "Missing at random (by other columns) and not at random (by the value itself).",
        UCI,
        ("mean", "knn", "mice", "chained extra trees", *OURS),
        {"missing": (0.3,), "mechanism": ("mar", "mnar")},
    ),
    "mixed": Experiment(
        "imputation",
        "Numbers and categories in one table.",
        MIXED,
        ("mean", "knn", "mice", "chained extra trees", "missforest", *OURS),
        MCAR,
    ),
    "transfer": Experiment(
        "transfer",
        "A hundred unusual rows, with a long table of the same columns to learn from.",
        UCI,
        tuple(transfer.METHODS),
        THIRTY,
    ),
    "ratings": Experiment(
        "ratings",
        "RMSE of ratings of users and items; nearly all cells are missing. GC-MC uses the graphs "
        "of friends and of like items, as its authors do, the others do not; IGMC has 4,000 steps "
        "of 50 ratings, 42 passes over YahooMusic, 8.5 over Flixster and 1.6 over Douban.",
        NAMES,
        tuple(ratings.METHODS),
    ),
}


def run(
    name: str,
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    trials: int = 5,
    missing: float | None = None,
    time_limit: float | None = None,
    share: float = 1,
    data_dir: str | None = None,
    retry: bool = False,
) -> None:
    """Measure what an experiment needs and is not there yet."""
    experiment = EXPERIMENTS[name]
    task = TASKS[experiment.task]
    for given, known, word in (
        (methods, task.METHODS, "method"),
        (datasets, task.DATASETS, "table"),
    ):
        for each in given or ():
            if each not in known:
                raise SystemExit(f"{name} has no {word} {each!r}. Known: {'; '.join(known)}.")
    if missing is not None and "missing" not in experiment.grid:
        raise SystemExit(f"{name} makes no holes: leave --missing out.")
    if data_dir is not None:
        data_folder(data_dir)
    seeds = range(FIRST_SEED, FIRST_SEED + trials)
    todo = experiment.fields(datasets or experiment.datasets, methods or experiment.methods, seeds)
    if missing is not None:
        todo = _unique({**fields, "missing": missing} for fields in todo)
    if share != 1:
        todo = [{**fields, "budget": share} for fields in todo]
    print(f"{name}: {experiment.about} {len(todo)} measurements.", flush=True)
    run_missing(
        task.RESULTS,
        todo,
        task.measure,
        data_dir=data_dir,
        shown=task.shown,
        time_limit=time_limit,
        retry=retry,
    )


def _unique(todo: Any) -> list[dict[str, Any]]:
    return list({tuple(fields.items()): fields for fields in todo}.values())
