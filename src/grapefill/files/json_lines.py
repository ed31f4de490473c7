"""JSON lines: one object per line, its values replaced in the line's own text."""

from __future__ import annotations

import json
import math
import re
from importlib import import_module
from json.decoder import JSONDecodeError
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import InputError, warn
from grapefill.files.cells.formats import ColumnFormat
from grapefill.files.cells.marks import spellings
from grapefill.files.cells.numbers import describe_floats, rounded
from grapefill.files.cells.read import Context, TypedColumn, arrow_type, read_columns
from grapefill.files.cells.write import write_values
from grapefill.files.table_file import TableFile
from grapefill.files.text.encoding import to_utf8

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grapefill.files.changes import Changes
    from grapefill.files.options import ReadOptions
    from grapefill.files.places import Place

__all__ = ["JsonLinesFile"]

pa: Any = import_module("pyarrow")

_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"
_LINES = 10_000
_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonLinesFile(TableFile):
    """A file with one JSON object per line; a key that a line lacks is a hole.

    Columns that hold lists or objects are no part of the frame.

    Parameters
    ----------
    place : Place
        Where it was read.
    content : bytes
        The file.
    options : ReadOptions
        What the caller said about it.
    """

    def __init__(self, place: Place, content: bytes, options: ReadOptions) -> None:
        self.place = place
        self.options = options
        body, self.encoding = to_utf8(content, options.encoding, self.name)
        if not body.strip():
            raise InputError(f"{self.name} is empty: it has no line with an object.")
        if body.lstrip()[:1] == b"[":
            raise InputError(
                f"{self.name} is one JSON array. Write each of its objects in a line of its own "
                "instead, without brackets around all and commas between them, as jq -c '.[]' does."
            )
        self.lines = body.decode().split("\n")
        self.numbers: list[int] = []
        columns = self._read_cells()
        typed = self._typed(columns)
        self.frame = pa.table([c.values for c in typed.values()], names=list(typed))
        self.formats = {name: column.format for name, column in typed.items()}

    def where(self, row: int) -> str:
        """Return the line of a row, as a text editor shows it."""
        return f"line {self.numbers[row] + 1}"

    def has_mark(self, mark: str) -> bool:
        """Whether a value is a mark for missing."""
        marks = spellings([mark])
        lines = (json.loads(self.lines[number]) for number in self.numbers)
        # NaN is missing whatever the marks are.
        return any(
            value is not None
            and not isinstance(value, list | dict)
            and not (isinstance(value, float) and math.isnan(value))
            and _is_mark(value, marks)
            for line in lines
            for value in line.values()
        )

    def _read_cells(self) -> dict[str, list[Any]]:
        """Return the values of every key, None where a line lacks it."""
        columns: dict[str, list[Any]] = {}
        for number, line in enumerate(self.lines):
            if not line.strip():
                continue
            row = self._parse(number, line)
            count = len(self.numbers)
            self.numbers.append(number)
            for key, value in row.items():
                column = columns.get(key)
                if column is None:
                    column = columns[key] = [None] * count
                elif len(column) < count:
                    column.extend([None] * (count - len(column)))
                column.append(value)
        for column in columns.values():
            column.extend([None] * (len(self.numbers) - len(column)))
        if not columns:
            raise InputError(f"{self.name} has lines but no keys: there is nothing to fill.")
        return columns

    def _parse(self, number: int, line: str) -> dict[str, Any]:
        try:
            row = json.loads(line)
        except (JSONDecodeError, RecursionError) as error:
            column = f", character {error.colno}" if isinstance(error, JSONDecodeError) else ""
            raise InputError(
                f"Line {number + 1}{column} of {self.name} is not JSON. Every line must be one "
                "object in braces."
            ) from error
        if not isinstance(row, dict):
            raise InputError(f"Line {number + 1} of {self.name} is not an object in braces.")
        if "\\u" in line and _SURROGATE.search(json.dumps(row, ensure_ascii=False)):
            raise InputError(
                f"Line {number + 1} of {self.name} holds half of a character, such as '\\ud800' "
                "without its other half. Correct the text."
            )
        return row

    def _typed(self, columns: dict[str, list[Any]]) -> dict[str, TypedColumn]:
        """Give every column its type: that of its values, or for texts what they say."""
        result: dict[str, TypedColumn | None] = {}
        texts, names = [], []
        self._nested: dict[str, int] = {}
        self._mixed: set[str] = set()
        marks = spellings(self.options.na)
        for place, (name, found) in enumerate(columns.items()):
            values = [None if _is_mark(value, marks) else value for value in found]
            kinds = {type(value) for value in values if value is not None}
            if kinds & {list, dict}:
                self._nested[name] = place
                continue
            result[name] = column = self._of_kinds(name, values, kinds)
            if column is None:
                cells = values
                if not kinds <= {str}:
                    self._mixed.add(name)
                    cells = [_as_json(value) for value in values]
                names.append(name)
                texts.append(pa.chunked_array([pa.array(cells, type=pa.string())]))
        if self._nested:
            warn(
                f"These columns of {self.name} hold lists or objects and pass through unchanged: "
                + ", ".join(map(repr, self._nested))
                + "."
            )
        self._texts = set(names) - self._mixed
        expected = dict(self.options.types) | {n: ColumnFormat("text") for n in self._mixed}
        context = Context(
            self.name,
            self.where,
            expected=expected,
            decimal=self.options.decimal,
            day_first=self.options.day_first,
            usual_marks=False,
            others=tuple(column for column in result.values() if column is not None),
        )
        read = iter(read_columns(names, texts, context))
        return {name: next(read) if c is None else c for name, c in result.items()}

    def _of_kinds(self, name: str, values: list[Any], kinds: set[type]) -> TypedColumn | None:
        """Return a column of numbers or booleans; None for texts and mixtures."""
        expected = self.options.types.get(name)
        if not kinds:
            kind = pa.null() if expected is None else arrow_type(expected)
            nulls = pa.chunked_array([pa.nulls(len(values), type=kind)])
            return TypedColumn(nulls, expected or ColumnFormat("empty"))
        wanted = None if expected is None else expected.type
        if wanted == "text":
            return None
        if kinds <= {bool}:
            return TypedColumn(pa.chunked_array([pa.array(values)]), ColumnFormat("boolean"))
        small = (
            all(value is None or abs(value) < 2**63 for value in values) if kinds <= {int} else True
        )
        if kinds <= {int} and small and wanted != "decimal":
            column = pa.array(values, type=pa.int64())
            return TypedColumn(pa.chunked_array([column]), ColumnFormat("integer"))
        if kinds <= {int, float} and small:
            endless = (row for row, value in enumerate(values) if value in (math.inf, -math.inf))
            if (row := next(endless, None)) is not None:
                raise InputError(
                    f"{self.where(row).capitalize()} of {self.name}, column {name!r}, is infinite. "
                    "Correct the cell, or write null if it stands for a missing one."
                )
            floats = [None if value is None else float(value) for value in values]
            column = pa.array(floats, type=pa.float64(), from_pandas=True)
            shape = describe_floats([value for value in floats if value is not None], expected)
            return TypedColumn(pa.chunked_array([column]), shape)
        return None

    def _whole(self, changes: Changes) -> Any:
        """Return all columns; of those with lists or objects, which the frame lacks, the JSON."""
        table = super()._whole(changes)
        if not self._nested:
            return table
        warn(
            f"Lists and objects of {self.name} are written as JSON text in another format: "
            + ", ".join(map(repr, self._nested))
            + "."
        )
        rows = [json.loads(self.lines[number]) for number in self.numbers]
        for name, place in self._nested.items():
            texts = pa.array([_as_json(row.get(name)) for row in rows], type=pa.string())
            table = table.add_column(place, name, texts)
        return table

    def _pieces(self, changes: Changes) -> Iterator[bytes]:
        names = self.frame.column_names
        new: dict[int, dict[str, str]] = {}
        for j, (mask, values) in changes.filled.items():
            texts = self._as_values(names[j], values)
            for row, text in zip(np.flatnonzero(mask).tolist(), texts, strict=True):
                new.setdefault(row, {})[names[j]] = text
        for j, mask in changes.erased.items():
            for row in np.flatnonzero(mask).tolist():
                new.setdefault(row, {})[names[j]] = "null"
        for name, column in changes.added:
            for row, value in enumerate(column.to_pylist()):
                new.setdefault(row, {})[name] = json.dumps(value, ensure_ascii=False, default=str)
        return self._spliced(new)

    def _as_values(self, name: str, values: Any) -> list[str]:
        """Return new values as JSON, numbers with as many digits as the column has."""
        shape = self.formats[name]
        if pa.types.is_floating(values.type) and name not in self._texts:
            # A column of decimals stays one: 2.0, not 2.
            return [repr(rounded(value, shape)) for value in values.to_pylist()]
        written = write_values(values, shape)
        if name in self._texts:
            return [json.dumps(text, ensure_ascii=False) for text in written]
        if name in self._mixed or not pa.types.is_string(values.type):
            return written
        return [json.dumps(text, ensure_ascii=False) for text in written]

    def _spliced(self, new: dict[int, dict[str, str]]) -> Iterator[bytes]:
        yield self.encoding.bom
        rows = {number: row for row, number in enumerate(self.numbers) if row in new}
        for start in range(0, len(self.lines), _LINES):
            part = [
                replace_values(line, new[rows[number]]) if number in rows else line
                for number, line in enumerate(self.lines[start : start + _LINES], start=start)
            ]
            last = start + _LINES >= len(self.lines)
            yield self.encoding.encode(("\n".join(part) + ("" if last else "\n")).encode())


def replace_values(line: str, new: dict[str, str]) -> str:
    """Return an object's text with some values replaced, or added behind the others.

    Parameters
    ----------
    line : str
        The object.
    new : dict of str to str
        JSON text by key.

    Examples
    --------
    >>> replace_values('{"a": 1e3, "b": null}', {"b": "2", "c": "3"})
    '{"a": 1e3, "b": 2, "c": 3}'
    """
    spans: dict[str, tuple[int, int]] = {}
    comma, colon = ", ", ": "
    at = last = _skip(line, line.index("{") + 1)
    while line[at] != "}":
        key, end = _DECODER.raw_decode(line, at)
        end = _skip(line, end)
        start = _skip(line, end + 1)
        colon = line[end:start]
        # Of a key that is there twice, the last value counts.
        spans[key] = (start, _DECODER.raw_decode(line, start)[1])
        last = spans[key][1]
        at = _skip(line, last)
        if line[at] == ",":
            following = _skip(line, at + 1)
            comma = line[at:following]
            at = following
        elif len(spans) == 1:
            comma = "," + colon[1:]
    pieces, done = [], 0
    for (start, end), text in sorted((spans[key], new[key]) for key in new if key in spans):
        pieces += [line[done:start], text]
        done = end
    pieces.append(line[done:last])
    added = [
        json.dumps(key, ensure_ascii=False) + colon + text
        for key, text in new.items()
        if key not in spans
    ]
    pieces.append((comma if spans and added else "") + comma.join(added))
    return "".join([*pieces, line[last:]])


def _skip(line: str, at: int) -> int:
    while line[at] in _SPACE:
        at += 1
    return at


def _is_mark(value: Any, marks: frozenset[str]) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    if not marks or isinstance(value, bool):
        return False
    if isinstance(value, str):
        return value.strip() in marks
    return not marks.isdisjoint({str(value), f"{value}.0"})


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
