"""``apply``: fill a table, or predict from it, with a model that was kept."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapefill.cli.arguments import File, Output, Ray, Reading, Running
from grapefill.cli.columns import Plan, select_columns
from grapefill.cli.impute import fill, show_result
from grapefill.cli.notes import note_unseen
from grapefill.cli.row_notes import note_rows
from grapefill.cli.terminal import Terminal
from grapefill.cli.work import default_output, open_table
from grapefill.errors import InputError

if TYPE_CHECKING:
    from grapefill.estimator import GrapeEstimator

__all__ = ["apply"]

EXAMPLES = """\
Examples:

  grapefill fit data.csv --model prices.grape

  grapefill apply prices.grape new.csv -o filled.csv

  grapefill apply prices.grape folder/ -o filled-folder/"""


def apply(
    model: File,
    data: File,
    /,
    *,
    output: Output = None,
    device: str | None = None,
    reading: Reading = Reading(),
    running: Running = Running(),
    ray: Ray = Ray(),
) -> None:
    """Fill a table, or predict from it, with a model that was kept.

    The columns are read as they were when the model was made.

    Parameters
    ----------
    model
        The file of the model, from 'grapefill fit', 'impute' or 'predict' with --model.
    data
        A table with the same columns, - for standard input, or a folder of Parquet files. If
        filling a folder is cut off, the same command goes on with it.
    output
        Where the result goes, - for standard output; for a folder, another folder. Without it,
        -filled or -predicted is added to the name.
    device
        Where to compute: auto, cpu, cuda or mps.
    """
    from grapefill.cli.predict import predict_rows
    from grapefill.cli.stream import (
        apply_to_folder,
        apply_to_large_file,
        fingerprint_of_file,
        is_large,
        plan_run,
    )
    from grapefill.files.places import check_output
    from grapefill.files.table_file import read_options

    terminal = Terminal.current(quiet=running.quiet)
    started = time.perf_counter()
    folder = Path(data).is_dir()
    if output is not None and not folder:
        check_output(output, inputs=[data, model], overwrite=running.overwrite)
    estimator = _load(model, device)
    predicts = hasattr(estimator, "predict")
    if predicts and folder:
        raise InputError(
            f"{data!r} is a folder, which only models that fill can be applied to. Predict from "
            "its files one by one."
        )
    if output is None and not folder:
        output = default_output(data, "predicted" if predicts else "filled")
        check_output(output, inputs=[data, model], overwrite=running.overwrite)
    notes = estimator.notes_
    kept, given = notes.get("reading", {}), reading.na
    reading = replace(
        reading,
        na=(*kept.get("na", ()), *reading.na),
        only_na=reading.only_na or bool(kept.get("only_na")),
    )
    types = dict(notes.get("types") or _types_of(estimator))
    if predicts:
        assert output is not None
        predict_rows(estimator, data, output, reading, running, types=types)
        return
    plan = Plan.from_dict(notes.get("plan", {}))
    if folder:
        run = plan_run(
            data,
            output,
            plan,
            fingerprint=fingerprint_of_file(model),
            na=reading.na,
            overwrite=running.overwrite,
        )
        apply_to_folder(estimator, plan, run, na=reading.na, terminal=terminal, work=ray.fill)
        return
    if ray.address is not None:
        raise InputError(f"--ray is for folders, and {data!r} is a file. Leave it out.")
    assert output is not None
    if is_large(data, output):
        options = read_options(types, **reading.options())
        apply_to_large_file(estimator, plan, data, output, options=options, terminal=terminal)
        return
    file = open_table(data, reading, types, terminal)
    file.check_target(output)
    note_unseen(given, [file], terminal)
    note_rows(file, terminal)
    table = select_columns(estimator, plan.prepare(file), file.name)
    filled = file.as_written(fill(estimator, plan, table, file, terminal))
    file.write(output, filled, overwrite=running.overwrite)
    seconds = time.perf_counter() - started
    show_result(terminal, estimator, file.frame, filled, output=output, seconds=seconds)


def _load(path: str, device: str | None) -> GrapeEstimator:
    from grapefill.classifier import GrapeClassifier
    from grapefill.files.model import read_model
    from grapefill.imputer import GrapeImputer
    from grapefill.regressor import GrapeRegressor

    name = read_model(path).estimator
    known: dict[str, type[GrapeEstimator]] = {
        cls.__name__: cls for cls in (GrapeImputer, GrapeRegressor, GrapeClassifier)
    }
    return known.get(name, GrapeImputer).load(path, device=device)


def _types_of(estimator: GrapeEstimator) -> dict[str, Any]:
    """Return what columns were at fit, for a model that was not made from a file of text."""
    words = {"number": "decimal", "text": "text", "boolean": "boolean", "datetime": "date"}
    schema = estimator.schema_
    return {
        str(name): words[column.family]
        for name, column in zip(schema.names or (), schema.columns, strict=True)
        if column.imputable and column.family in words
    }
