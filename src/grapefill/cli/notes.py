"""Notes on what a table holds that would be learned, or filled in, and may not be meant so."""

from __future__ import annotations

import shlex
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grapefill.cli.terminal import as_option, with_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from grapefill.cli.columns import Plan
    from grapefill.cli.terminal import Terminal
    from grapefill.evaluate import Description
    from grapefill.evaluate.remarks import Values
    from grapefill.files import TableFile
    from grapefill.table import Table

__all__ = ["note_sentinels", "note_unseen", "note_values", "without_told"]

# Columns that a note names one by one.
MOST_COLUMNS = 10


def note_values(
    file: TableFile,
    table: Any,
    plan: Plan,
    terminal: Terminal,
    *,
    words: bool = True,
    target: str | None = None,
) -> None:
    """Tell of values that may not mean what they say.

    Parameters
    ----------
    file : TableFile
        What was read.
    table : pyarrow.Table
        What is to be learned from.
    plan : Plan
        Columns that it leaves out are not looked at.
    terminal : Terminal
        Where to show notes.
    words : bool
        Whether words such as 'Unknown' may stand for missing cells.
    target : str or None
        The column that is to be predicted, which cannot be ignored.
    """
    from grapefill.evaluate.remarks import Values
    from grapefill.table import Table

    note_sentinels(table, plan, terminal)
    used = _used(table, plan)
    if not used:
        return
    wrapped = Table.wrap(table.select(used))
    values = {name: Values(wrapped.cells(j)) for j, name in enumerate(used)}
    categories = dict(_categories(values, plan))
    if words:
        _note_words(categories, terminal)
    _note_spellings(categories, terminal)
    _note_ticks({n: each for n, each in values.items() if n != target}, file, terminal)


def note_sentinels(table: Any, plan: Plan, terminal: Terminal) -> None:
    """Tell of numbers such as -999 that may stand for missing cells.

    Parameters
    ----------
    table : pyarrow.Table
        What is to be learned from.
    plan : Plan
        Columns that it leaves out are not looked at.
    terminal : Terminal
        Where to show notes.
    """
    from grapefill.evaluate.remarks import LONG, find_sentinels, plain_number
    from grapefill.evaluate.text import join_words
    from grapefill.table import Table

    used = _used(table, plan)
    if not used:
        return
    found: defaultdict[float, list[tuple[str, int]]] = defaultdict(list)
    wrapped = Table.wrap(table.select(used))
    for j, value, count in find_sentinels(wrapped):
        found[value].append((used[j], count))
    for value, places in found.items():
        text = plain_number(value)
        # Files write such numbers in more ways than one.
        option = f"--na {text}" if abs(value) < LONG else "--na and the number as the file has it"
        also = _others_with(wrapped, value, {name for name, _ in places})
        them = (
            f" {text} is also in {_places(also)}, which would become missing too; if these are "
            f"values, empty the cells of {join_words([repr(name) for name, _ in places])} instead."
        )
        terminal.note(
            f"{text} stands far from all other numbers of {_places(places)}, and may mean missing. "
            f"If so, add {option}; otherwise it is learned as a number.{them if also else ''}"
        )


def _note_spellings(columns: Mapping[str, Values], terminal: Terminal) -> None:
    """Tell of categories that differ in upper and lower case only."""
    from grapefill.evaluate.text import counted, join_words
    from grapefill.evaluate.words import same_but_case

    shown = []
    for name, values in columns.items():
        for group in same_but_case(values):
            words = [
                f"{str(values.values[at])!r} ({counted(int(values.counts[at]), 'cell')})"
                for at in group
            ]
            shown.append(f"{join_words(words)} in column {name!r}")
    if shown:
        terminal.note(
            "These differ in upper and lower case only, and are learned and filled in as different "
            f"categories: {_some(shown, '; ')}. Write them in one way if they are the same."
        )


def _note_ticks(columns: Mapping[str, Values], file: TableFile, terminal: Terminal) -> None:
    """Tell of columns with one value, such as a tick, whose empty cells may mean no."""
    from grapefill.evaluate.words import is_tick

    ticks = {
        name: _as_in_file(file, name, values.values[0])
        for name, values in columns.items()
        if is_tick(values)
    }
    if not ticks:
        return
    option = as_option("--ignore", list(ticks))
    if len(ticks) == 1:
        (name,) = ticks
        what, them = f"Column {name!r} has only the value {ticks[name]}", "it as it is"
    else:
        shown = [f"{name!r} ({value})" for name, value in ticks.items()]
        what, them = f"Columns {_some(shown)} have only one value each", "them as they are"
    terminal.note(
        f"{what}; an empty cell may mean no. If so, write another value there, or add {option} to "
        f"leave {them}."
    )


def note_unseen(na: Sequence[str], files: Sequence[TableFile], terminal: Terminal) -> None:
    """Tell of texts that --na names and no cell has.

    Parameters
    ----------
    na : sequence of str
        What the option names.
    files : sequence of TableFile
        What was read.
    terminal : Terminal
        Where to show notes.
    """
    from grapefill.evaluate.text import join_words

    names = {name for file in files for name in file.frame.column_names}
    for text in dict.fromkeys(na):
        if any(file.has_mark(text) for file in files):
            continue
        column, _, value = text.partition("=")
        hint = (
            f"The option names no column: write {with_value('--na', value)}, for all of them."
            if value and column in names
            else "Check how the file writes it."
        )
        terminal.note(
            f"--na {shlex.quote(text)} was found in no cell of "
            f"{join_words([file.name for file in files])}. {hint}"
        )


def _note_words(columns: Mapping[str, Values], terminal: Terminal) -> None:
    """Tell of words such as 'Unknown' that may stand for missing cells."""
    from grapefill.evaluate.text import join_words
    from grapefill.evaluate.words import words_for_missing

    found: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, values in columns.items():
        for at in words_for_missing(values):
            word = str(values.values[at])
            if not _is_told(name, repr(word), terminal):
                found[word].append((name, int(values.counts[at])))
    if not found:
        return
    shown = [f"{word!r} in {_places(places)}" for word, places in found.items()]
    options = " ".join(with_value("--na", word) for word in found)
    is_, it = ("is", "it") if len(found) == 1 else ("are", "they")
    terminal.note(
        f"{join_words(shown)} may mean missing. If so, add {options}; otherwise {it} {is_} learned "
        "and filled in like any other word."
    )


def without_told(found: Description, terminal: Terminal) -> Description:
    """Return a description without the remarks that notes on reading the file have made."""

    def is_told(name: str, code: str, text: str) -> bool:
        if code == "numbers_as_text":
            return terminal.has_told(f"{name!r}", "in columns of numbers") or any(
                terminal.has_told(f"Column {name!r} of ", words)
                for words in ("is text, since its numbers", "holds numbers, but")
            )
        mark = text.partition(" in ")[0].removeprefix("has ")
        return code == "sentinel" and _is_told(name, mark, terminal)

    columns = tuple(
        replace(
            column,
            remarks=tuple(
                remark
                for remark in column.remarks
                if not is_told(column.name, remark.code, remark.text)
            ),
        )
        for column in found.columns
    )
    return replace(found, columns=columns)


def _others_with(table: Table, value: float, known: Collection[str]) -> list[tuple[str, int]]:
    """Return the other columns that have a number, be it as text, and how often."""
    from grapefill.evaluate.remarks import Values, plain_number
    from grapefill.files.cells.marks import spellings
    from grapefill.table.kinds import Form

    found, texts = [], spellings([plain_number(value)])
    for j, name in enumerate(table.labels):
        cells = table.cells(j)
        form = cells.storage.form
        if name in known or form is Form.BOOLEAN:
            continue
        count = 0
        if form.is_numeric:
            count = int((cells.numbers()[~cells.missing] == value).sum())
        elif form in (Form.TEXT, Form.CATEGORY):
            values = Values(cells)
            pairs = zip(values.values, values.counts.tolist(), strict=True)
            count = sum(number for text, number in pairs if str(text).strip() in texts)
        if count:
            found.append((name, count))
    return found


def _is_told(name: str, mark: str, terminal: Terminal) -> bool:
    """Whether a note on reading the file has named a mark such as '-', as Python writes it."""
    return terminal.has_told(f"{name!r} (", f"so that {mark} is taken for a value")


def _categories(columns: Mapping[str, Values], plan: Plan) -> Iterator[tuple[str, Values]]:
    """Yield the columns of words that are learned from, without those whose levels are named."""
    from grapefill.table.infer import is_free_text
    from grapefill.table.kinds import Form

    for name, values in columns.items():
        form = values.cells.storage.form
        if form not in (Form.TEXT, Form.CATEGORY) or name in plan.levels or not values.distinct:
            continue
        named = name in plan.kinds or form is Form.CATEGORY
        if named or not is_free_text(values.observed, values.distinct):
            yield name, values


def _used(table: Any, plan: Plan) -> list[str]:
    """Return the columns that are learned from."""
    return [name for name in table.column_names if plan.kinds.get(name) != "passthrough"]


def _as_in_file(file: TableFile, name: str, value: Any) -> str:
    """Return a text, a truth, or the number 1, as a file has it."""
    if isinstance(value, str):
        return repr(value)
    shape = file.formats.get(name)
    if shape is not None and shape.family == "boolean":
        return repr(shape.words[0])
    return "true" if str(file.frame.schema.field(name).type) == "bool" else "1"


def _places(places: Sequence[tuple[str, int]]) -> str:
    """Return columns, and how many of their cells are meant."""
    shown = [f"{name!r} ({count:,} cell{'s' if count > 1 else ''})" for name, count in places]
    return ("column " if len(places) == 1 else "columns ") + _some(shown)


def _some(shown: Sequence[str], between: str = ", ") -> str:
    """Return the first of many things, and how many are left."""
    left = len(shown) - MOST_COLUMNS
    first = shown[:MOST_COLUMNS]
    return between.join([*first, f"and {left:,} more"] if left > 0 else first)
