"""``predict``: learn a column from one table and predict it for another."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from grapefill.cli.arguments import Columns, File, Output, Reading, Running, Training
from grapefill.cli.columns import Plan, complete, select_columns, text_columns
from grapefill.cli.names import find_column, in_other_case, listed
from grapefill.cli.notes import note_unseen, note_values
from grapefill.cli.row_notes import note_rows
from grapefill.cli.terminal import Terminal
from grapefill.cli.work import (
    check_outputs,
    default_output,
    in_slices,
    open_table,
    remove_checkpoint,
    train,
)
from grapefill.errors import ConfigError, InputError, warn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grapefill.files import TableFile
    from grapefill.files.cells.formats import ColumnFormat
    from grapefill.predictor import GrapePredictor

__all__ = ["predict", "predict_rows"]

EXAMPLES = """\
Examples:

  grapefill predict train.csv new.csv --target price -o predictions.csv

  grapefill predict train.csv new.csv --target sold --task classification --model sold.grape"""

Task = Literal["regression", "classification"]


def predict(
    data: File,
    new: File,
    /,
    *,
    target: str,
    output: Output = None,
    model: Annotated[str | None, Parameter(name=["--model", "-m"], metavar="FILE")] = None,
    task: Task | None = None,
    training: Training = Training(),
    columns: Columns = Columns(),
    reading: Reading = Reading(),
    running: Running = Running(),
) -> None:
    """Learn to predict a column, and predict it for the rows of another table.

    Both tables may have holes; nothing has to be filled first.

    Parameters
    ----------
    data
        The table to learn from, with the column to be predicted.
    new
        The table to predict for; - for standard input.
    target
        The column to be predicted.
    output
        Where the table goes that is like the second one with the predictions behind it, - for
        standard output. Without it, -predicted is added to the name.
    model
        Keep the model in this file, for 'grapefill apply'. If training is cut off, the same
        command goes on with it.
    task
        Whether to predict a number or a category. Without it numbers are predicted as numbers,
        except for 0 and 1.
    """
    terminal = Terminal.current(quiet=running.quiet)
    output = default_output(new, "predicted") if output is None else output
    check_outputs(output, model, inputs=[data, new], overwrite=running.overwrite)
    file = open_table(data, reading, text_columns(columns), terminal, beside=new)
    target = find_column(target, file.frame.column_names, "--target", repeats=False)
    types = {name: shape for name, shape in file.types.items() if name != target}
    other = open_table(new, reading, types, terminal, beside=data)
    other.check_target(output)
    plan = Plan.make(columns, file)
    _check_plan(plan, target)
    labels = plan.prepare(file)[target]
    if labels.null_count == len(labels):
        raise InputError(
            f"Column {target!r} of {file.name} has no value, so there is nothing to learn from. "
            "Choose another --target, or a table where it is known."
        )
    plan = plan.without_empty(file)
    table = plan.prepare(file)
    note_unseen(reading.na, [file, other], terminal)
    note_rows(file, terminal)
    note_values(file, table, plan, terminal, words=not reading.only_na, target=target)
    table = _common_columns(table.drop_columns([target]), other, file)
    usual = _usual_task(labels, plan.kinds.get(target), file, target)
    if task == "regression" and not _are_numbers(labels):
        raise InputError(
            f"Column {target!r} of {file.name} holds no numbers, so it cannot be predicted as one. "
            "Leave out --task regression."
        )
    task = task or usual
    if task == "classification":
        _check_classes(labels, target, file)
    if task == "classification" and plan.bounds:
        raise ConfigError(
            f"--bounds is for numbers, and {target!r} is predicted as a category. Leave it out, or "
            "add --task regression if it holds numbers."
        )
    shape = _format(file.types.get(target))
    classes = _classes(labels) if task == "classification" else None
    _require_free(other, _names(target, classes, shape))
    own = {name: kind for name, kind in plan.kinds.items() if name in table.column_names}
    checkpoint = training.checkpoint(model)
    parameters = training.parameters() | {"kinds": own, "checkpoint": checkpoint}
    predictor = _fit(table, labels, task, parameters, terminal)
    notes = {
        "types": types,
        "plan": plan.to_dict(),
        "reading": {"na": list(reading.na), "only_na": reading.only_na},
        "target": {"name": target, "format": file.types.get(target)},
    }
    predictor.notes_ = notes
    write_predictions(predictor, other, output, running, terminal)
    if model is not None:
        predictor.save(model, notes=notes)
        remove_checkpoint(checkpoint)
        terminal.show(f"The model:       {model}", to_error=output == "-")


def _check_plan(plan: Plan, target: str) -> None:
    """Refuse what cannot be done with a column that is predicted."""
    if plan.kinds.get(target) == "passthrough":
        raise ConfigError(f"--ignore and --target both name {target!r}. Choose one of them.")
    for name in plan.bounds:
        if name != target:
            raise ConfigError(
                f"--bounds names the column {name!r}, of which nothing is predicted. It limits "
                f"the predictions of {target!r} only."
            )


def predict_rows(
    predictor: GrapePredictor,
    data: str,
    output: str,
    reading: Reading,
    running: Running,
    *,
    types: Mapping[str, Any],
) -> None:
    """Predict for the rows of a file with a model that was kept."""
    terminal = Terminal.current(quiet=running.quiet)
    file = open_table(data, reading, types, terminal)
    file.check_target(output)
    write_predictions(predictor, file, output, running, terminal)


def write_predictions(
    predictor: GrapePredictor, file: TableFile, output: str, running: Running, terminal: Terminal
) -> None:
    """Write a file again, with predictions behind its columns."""
    from grapefill.files.cells.formats import ColumnFormat

    pa: Any = import_module("pyarrow")
    notes = predictor.notes_
    plan = Plan.from_dict(notes.get("plan", {}))
    table = complete(predictor, select_columns(predictor, plan.prepare(file), file.name))
    target = notes.get("target", {"name": "label", "format": None})
    usual = _format(target["format"])
    decimal = _decimal_mark(file)
    names = _names(target["name"], getattr(predictor, "classes_", None), usual)
    _require_free(file, names)
    name, *shares = names
    numbers = ColumnFormat("decimal", decimal=decimal, decimals=4, fixed=False)
    if hasattr(predictor, "classes_"):
        chances = in_slices(terminal, "Predicting", table, predictor.predict_proba, _stack)
        best = [
            predictor.classes_[k].item()
            if hasattr(predictor.classes_[k], "item")
            else predictor.classes_[k]
            for k in chances.argmax(axis=1)
        ]
        added = {name: pa.array(best)}
        formats = {name: usual} if usual is not None else {}
        for k, column in enumerate(shares):
            added[column] = pa.array(chances[:, k].round(6))
            formats[column] = numbers
    else:
        values = in_slices(terminal, "Predicting", table, predictor.predict, _stack)
        lower, upper = plan.bounds.get(target["name"], (None, None))
        if lower is not None or upper is not None:
            values = values.clip(lower, upper)
        decimals = 0 if usual is None else usual.decimals
        shown = replace(numbers, decimals=max(decimals + 2, _digits(values)))
        added, formats = {name: pa.array(values)}, {name: shown}
    result = file.frame
    for column, values in added.items():
        result = result.append_column(column, values)
    file.write(output, result, overwrite=running.overwrite, formats=formats)
    place = "standard output" if output == "-" else output
    terminal.show(
        *_quality(predictor, target["name"]),
        "1 row was predicted."
        if result.num_rows == 1
        else f"{result.num_rows:,} rows were predicted.",
        f"The predictions: {place}",
        to_error=output == "-",
    )


def _common_columns(table: Any, other: TableFile, file: TableFile) -> Any:
    """Return the columns that both tables have."""
    known = set(other.frame.column_names)
    lacking = [name for name in table.column_names if name not in known]
    spare = [name for name in other.frame.column_names if name not in table.column_names]
    hint = in_other_case(lacking, spare)
    if len(lacking) == table.num_columns:
        raise InputError(
            f"{other.name} has none of the columns of {file.name} to predict from. {hint}".rstrip()
        )
    if lacking:
        warn(
            f"These columns are not in {other.name} and are not used: {listed(lacking)}. "
            f"{hint}".rstrip()
        )
    return table.drop_columns(lacking) if lacking else table


def _usual_task(labels: Any, kind: str | None, file: TableFile, target: str) -> Task:
    pa: Any = import_module("pyarrow")
    pc: Any = import_module("pyarrow.compute")
    if kind in ("categorical", "boolean"):
        return "classification"
    if pa.types.is_temporal(labels.type):
        raise InputError(
            f"Column {target!r} of {file.name} holds dates, which cannot be predicted. Turn them "
            "into numbers first."
        )
    if pa.types.is_integer(labels.type):
        found = set(pc.unique(labels).drop_null().to_pylist())
        return "classification" if found <= {0, 1} and kind is None else "regression"
    return "regression" if _are_numbers(labels) else "classification"


def _check_classes(labels: Any, target: str, file: TableFile) -> None:
    """Refuse texts of which nearly every row has its own."""
    from grapefill.table.infer import is_free_text

    pa: Any = import_module("pyarrow")
    pc: Any = import_module("pyarrow.compute")
    if not (pa.types.is_string(labels.type) or pa.types.is_large_string(labels.type)):
        return
    known, distinct = len(labels) - labels.null_count, pc.count_distinct(labels).as_py()
    if is_free_text(known, distinct):
        raise InputError(
            f"Column {target!r} of {file.name} has {distinct:,} different texts in {known:,} rows, "
            "like free text or an identifier: hardly any could be learned from other rows. Choose "
            "another --target, or group the texts into fewer classes; if they are numbers with "
            "signs or units, write them as plain numbers."
        )


def _are_numbers(column: Any) -> bool:
    pa: Any = import_module("pyarrow")
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(column.type) for test in tests)


def _fit(
    table: Any,
    labels: Any,
    task: Task,
    parameters: Mapping[str, Any],
    terminal: Terminal,
) -> GrapePredictor:
    from grapefill.classifier import GrapeClassifier
    from grapefill.regressor import GrapeRegressor

    def start(callbacks: list[Any]) -> GrapePredictor:
        cls = GrapeClassifier if task == "classification" else GrapeRegressor
        predictor: GrapePredictor = cls(**parameters, callbacks=callbacks)
        return predictor.fit(table, labels)

    return train(terminal, start, parameters["checkpoint"], result="predictions")


def _format(plain: Mapping[str, Any] | None) -> ColumnFormat | None:
    """Return how a column is written, from what a model file or `TableFile.types` says."""
    from grapefill.files.cells.formats import ColumnFormat

    return ColumnFormat.from_dict(plain) if plain else None


def _classes(labels: Any) -> Any:
    """Return the classes that a classifier will find in a column."""
    import numpy as np

    pc: Any = import_module("pyarrow.compute")
    return np.array(sorted(pc.unique(labels).drop_null().to_pylist()))


def _names(target: str, classes: Any, shape: ColumnFormat | None) -> list[str]:
    """Return what the columns of predictions are called."""
    found = [] if classes is None else _labels(classes, shape)
    return [f"{target}_predicted", *(f"{target}_probability_{label}" for label in found)]


def _require_free(file: TableFile, names: list[str]) -> None:
    """Refuse a file that has columns where the predictions should go."""
    for name in names:
        if name in file.frame.column_names:
            raise InputError(
                f"{file.name} has a column {name!r} already, where the predictions should go. "
                "Rename it."
            )


def _labels(classes: Any, shape: Any) -> list[str]:
    """Return what classes are called in the file."""
    from grapefill.files.cells.write import write_plain, write_values

    pa: Any = import_module("pyarrow")
    values = pa.array(classes.tolist())
    return write_plain(values) if shape is None else write_values(values, shape)


def _decimal_mark(file: TableFile) -> str:
    marks = [s.decimal for s in file.formats.values() if s.family == "number" and s.decimals]
    return max(set(marks), key=marks.count) if marks else "."


def _digits(values: Any) -> int:
    """Return the decimals that give four digits of numbers of this size."""
    largest = float(abs(values).max()) if len(values) else 1.0
    return max(0, 4 - math.ceil(math.log10(largest))) if 0 < largest < math.inf else 0


def _stack(parts: list[Any]) -> Any:
    import numpy as np

    return np.concatenate(parts)


def _quality(predictor: GrapePredictor, target: str) -> list[str]:
    """Return a sentence on how well rows were predicted that were held out."""
    model = predictor.model_
    if model is None or not model.trials:
        return []
    trial = model.trials[-1]
    error = trial.error
    if error is None or trial.constant is None:
        return []
    if hasattr(predictor, "classes_"):
        return [
            f"Of {trial.cells} rows that were held out, {error:.0%} were predicted wrong; always "
            f"the most frequent {target!r} would be {trial.constant:.0%}."
        ]
    return [
        f"On {trial.cells} rows that were held out, {target!r} was off by {error:.4g} on average; "
        f"always the median would be off by {trial.constant:.4g}."
    ]
