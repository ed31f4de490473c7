"""What the options say about columns, for the columns that a file has."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from grapefill.cli.arguments import Columns, Filling
from grapefill.cli.names import find_column, find_columns, in_other_case, listed
from grapefill.cli.numbers import Limits, as_value, find_bounds, find_deltas
from grapefill.errors import ConfigError, InputError, warn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grapefill.cli.arguments import Kinds
    from grapefill.estimator import GrapeEstimator
    from grapefill.files import TableFile
    from grapefill.imputer import GrapeImputer
    from grapefill.table import Schema

__all__ = [
    "Plan",
    "complete",
    "fill_rows",
    "select_columns",
    "text_columns",
]

WORKBOOKS = (".xlsx", ".xlsm")


class Rows(Protocol):
    """A file, or some rows of one."""

    @property
    def frame(self) -> Any:
        """The pyarrow table."""

    @property
    def name(self) -> str:
        """What to call it in a message."""

    def where(self, row: int) -> str:
        """Return what to call a row in a message."""


@dataclass(frozen=True)
class Plan:
    """What is to be done with the columns of a file.

    Parameters
    ----------
    kinds : dict of str to str
        Kinds that are not left to be found out.
    levels : dict of str to list of str
        The order of the levels of ordinal columns of text.
    bounds : dict of str to (float or None, float or None)
        Limits for what is filled in.
    rules : tuple of str
        What the cells of a row obey.
    delta : dict of str to float
        What is added to filled numbers.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    levels: dict[str, list[str]] = field(default_factory=dict)
    bounds: dict[str, Limits] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    delta: dict[str, float] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of an imputer, but for those of `constraints`."""
        return {"kinds": self.kinds, "rules": self.rules or None, "delta": self.delta or None}

    def constraints(self, schema: Schema) -> dict[str, dict[str, float]] | None:
        """Return the bounds of columns that are filled with numbers, for an imputer.

        Others, such as numbers that are categories, are held within theirs by `hold`.

        Parameters
        ----------
        schema : Schema
            What the columns are found to be.
        """
        from grapefill.uncertainty.constraints import is_filled_number

        numbers = {column.name for column in schema.columns if is_filled_number(column)}
        limits = {
            name: {end: limit for end, limit in (("min", low), ("max", high)) if limit is not None}
            for name, (low, high) in self.bounds.items()
            if name in numbers
        }
        return {name: ends for name, ends in limits.items() if ends} or None

    @classmethod
    def make(cls, columns: Kinds, file: Rows) -> Plan:
        """Read the options and hold them against the columns of a file.

        Raises
        ------
        InputError
            If an option names a column that the file does not have.
        """
        names = file.frame.column_names
        named: dict[str, list[str]] = {
            option: find_columns(getattr(columns, option), names, f"--{option}")
            for option in ("categorical", "continuous", "ignore", "text")
        }
        for name in named.pop("text"):
            _require_text(file.frame[name], name)
        named["ordinal"] = []
        levels: dict[str, list[str]] = {}
        for given in columns.ordinal:
            name, equals, order = given.partition("=")
            if equals and given not in names:
                name = find_column(name, names, "--ordinal")
                levels[name] = _read_levels(order)
                twice = [level for level in levels[name] if levels[name].count(level) > 1]
                if twice:
                    raise ConfigError(
                        f"--ordinal lists the level {twice[0]!r} of column {name!r} twice. List "
                        "every level once, from the lowest to the highest."
                    )
                named["ordinal"].append(name)
            else:
                named["ordinal"] += find_columns([given], names, "--ordinal")
        options: dict[str, str] = {}
        for option, found in named.items():
            for name in found:
                if options.setdefault(name, option) != option:
                    raise ConfigError(
                        f"--{options[name]} and --{option} both name the column {name!r}. Choose "
                        "one of them."
                    )
        kinds = {n: "passthrough" if kind == "ignore" else kind for n, kind in options.items()}
        limits = columns.bounds if isinstance(columns, Columns) else ()
        bounds = find_bounds(limits, file.frame, kinds)
        if not isinstance(columns, Filling):
            return cls(kinds, levels, bounds)
        deltas = find_deltas(columns.delta, file.frame, kinds)
        return cls(kinds, levels, bounds, columns.rule, deltas)

    def without_empty(self, file: TableFile) -> Plan:
        """Return a plan that leaves columns without any value as they are."""
        from grapefill.files.changes import find_missing

        frame = file.frame
        pairs = zip(frame.column_names, frame.columns, strict=True)
        empty = [name for name, column in pairs if find_missing(column).all()]
        if len(empty) == frame.num_columns:
            raise InputError(f"{file.name} has no values at all: there is nothing to learn from.")
        new = [name for name in empty if self.kinds.get(name) != "passthrough"]
        if new:
            warn(f"These columns have no value and stay empty: {listed(new)}.")
        return replace(self, kinds=self.kinds | dict.fromkeys(empty, "passthrough"))

    def prepare(self, file: Rows) -> Any:
        """Return the table of a file, or some of its rows, with the levels in their order."""
        pa: Any = import_module("pyarrow")
        pc: Any = import_module("pyarrow.compute")
        frame = file.frame
        for name, levels in self.levels.items():
            if name not in frame.column_names:
                continue
            texts = frame[name].cast(pa.string())
            codes = pc.index_in(texts, value_set=pa.array(levels))
            strange = pc.and_(pc.is_null(codes), pc.is_valid(texts))
            if pc.any(strange).as_py():
                row = int(strange.to_numpy().argmax())
                raise InputError(
                    f"{file.where(row).capitalize()} of {file.name}, column {name!r}: "
                    f"{texts[row].as_py()!r} is not one of its levels {', '.join(levels)}. List "
                    "all levels, from the lowest to the highest."
                )
            known = pa.array(levels)
            chunks = [
                pa.DictionaryArray.from_arrays(chunk, known, ordered=True) for chunk in codes.chunks
            ]
            at = frame.column_names.index(name)
            kind = pa.dictionary(codes.type, known.type, ordered=True)
            frame = frame.set_column(at, name, pa.chunked_array(chunks, type=kind))
        return frame

    def hold(self, before: Any, after: Any) -> Any:
        """Return a filled table with what was filled in held within the bounds."""
        pa: Any = import_module("pyarrow")
        pc: Any = import_module("pyarrow.compute")
        for name, (lower, upper) in self.bounds.items():
            if name not in after.column_names or pa.types.is_null(after[name].type):
                continue
            column = after[name]
            held = column
            if lower is not None:
                held = pc.max_element_wise(held, as_value(lower, column, up=True))
            if upper is not None:
                held = pc.min_element_wise(held, as_value(upper, column, up=False))
            hole, empty = (pc.is_null(each, nan_is_null=True) for each in (before[name], column))
            # The limits would take the place of what was left empty.
            held = pc.if_else(pc.and_not(hole, empty), held, column)
            at = after.column_names.index(name)
            after = after.set_column(at, after.schema.field(at), held.cast(column.type))
        return after

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        bounds = {name: list(limits) for name, limits in self.bounds.items()}
        return {"levels": self.levels, "bounds": bounds}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Plan:
        """Rebuild a plan from `to_dict`; kinds are a matter of fitting."""
        bounds = {name: (low, high) for name, (low, high) in plain.get("bounds", {}).items()}
        return cls({}, dict(plain.get("levels", {})), bounds)


def text_columns(columns: Kinds) -> dict[str, Any]:
    """Return the types of columns that are to be read as text, before the file is."""
    names = [name for given in columns.text for name in (given, *given.split(","))]
    types: dict[str, Any] = {name.strip(): "text" for name in names}
    for given in columns.ordinal:
        name, equals, order = given.partition("=")
        if equals:
            types[name.strip()] = {"type": "text", "levels": _read_levels(order)}
    return types


def _read_levels(given: str) -> list[str]:
    return [level.strip() for level in given.split(",")]


def select_columns(estimator: GrapeEstimator, table: Any, name: str) -> Any:
    """Return the columns of a table that a model was made from, in their order.

    Columns that it did not learn from, such as ignored ones, may be lacking; see `complete`.

    Raises
    ------
    InputError
        If others are not there.
    """
    names = estimator.schema_.names
    if names is None:
        return table
    zoned = [column.name for column in estimator.schema_.columns if column.zoned]
    if zoned and any(suffix in name.lower() for suffix in WORKBOOKS):
        warn(f"Workbooks know no time zones: times of {listed(zoned)} are taken to be in UTC.")
        estimator.schema_ = estimator.schema_.without_zones()
    known = set(table.column_names)
    lacking = [str(names[j]) for j in estimator.schema_.features if str(names[j]) not in known]
    if lacking:
        spare = sorted(known - set(map(str, names)))
        hint = in_other_case(lacking, spare) or "Add them; they may be empty."
        raise InputError(
            f"{name} lacks columns that the model was made from: {listed(lacking)}. {hint}"
        )
    return table.select([str(each) for each in names if str(each) in known])


def complete(estimator: GrapeEstimator, table: Any) -> Any:
    """Return a table with columns that it may lack, without any value, as the model asks for."""
    pa: Any = import_module("pyarrow")
    wanted = [str(each) for each in estimator.schema_.names or table.column_names]
    known = set(table.column_names)
    for name in wanted:
        if name not in known:
            table = table.append_column(name, pa.nulls(table.num_rows))
    return table.select(wanted)


def fill_rows(imputer: GrapeImputer, plan: Plan, table: Any) -> Any:
    """Return a table of `select_columns` filled, with what was filled in held within the bounds."""
    whole = complete(imputer, table)
    added = set(whole.column_names) - set(table.column_names)
    filled = imputer.transform(whole)
    filled = filled.select([name for name in filled.column_names if name not in added])
    return plan.hold(table, filled)


def _require_text(column: Any, name: str) -> None:
    """Refuse a column whose cells have a type of their own, as in Parquet files."""
    pa: Any = import_module("pyarrow")
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise ConfigError(
            f"--text names the column {name!r}, whose cells are {kind} in the file and stay so. "
            "Add --categorical instead if they are not to be filled in as numbers."
        )
