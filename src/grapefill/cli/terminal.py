"""What a person sees: notes, progress, questions, errors."""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
from ast import literal_eval
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from grapefill.errors import GrapefillWarning
from grapefill.lines import wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console
    from rich.progress import Progress as RichProgress

    from grapefill.training import Progress

__all__ = ["Terminal", "as_option", "in_words_of_the_command_line"]

# What a message says to those who write Python, and what it means here.
PHRASES = {
    # Files keep all of their columns.
    "These columns have no observed value and are not used:": (
        "These columns have no value and stay empty:"
    ),
    "They are left out of the result unless keep_empty_features=True.": "",
    "or say that the file has no line of names": "or add --no-header",
    "say that the file has no line of names": "add --no-header",
    "Name the sheet to read another.": "Add --sheet and a name to read another.",
    "Read the file with its line of names.": "Leave out --no-header.",
    "Say so if it is the other way round.": "Add --day-first or --month-first to say so.",
    "Say so if they are values.": "If they are values, add --only-na.",
    "or name the delimiter if it is not": "or add --delimiter if it is not",
    "or turn quoting off if quotes are ordinary characters in this file": (
        "or add --no-quotes if quotes are ordinary characters in this file"
    ),
    "or allow overwriting": "or add --overwrite",
    "or say which format it has": "or add --format",
    "Name the right encoding, for example 'latin-1', or leave it out.": (
        "Give --encoding another name, for example latin-1, or leave it out."
    ),
    "Allow quotes.": "Leave out --no-quotes.",
    "or name its encoding": "or add --encoding",
    ", or pass an imputer.": ".",
    'Fit with settings={"validation": 0.1, "rejoin": 0.8} or another preset': (
        "Add --set validation=0.1 --set rejoin=0.8, or choose another --preset"
    ),
    ", without an o_edge of your own": "",
    "Call its item() for a number of Python.": "",
    "Allow it with allow_empty_rows=True.": "Add another column first.",
    "Name some with columns=[...].": "Name some with --columns.",
    "Use GrapeRegressor to predict numbers, or pass the classes as text.": (
        "Add --task regression to predict numbers, or --text NAME to predict texts."
    ),
    "What sample draws moves by": "What --draws writes moves by",
    "can obey its constraints": "is within --bounds",
    "Input X contains infinity": "The table contains infinity",
    "by NaN if they stand for missing cells": "by empty cells if they stand for missing ones",
    "Choose one as load(path, device=...).": "Choose one with --device.",
    "With add_indicator=True two": "With --indicator two",
    "or set add_indicator=False": "or leave out --indicator",
    "All known labels in y are": "All known labels are",
    "device=": "--device ",
}
# Where a message tells of columns that are not used.
UNUSED = 'Give them the kind "passthrough" to accept this, or another kind to use them.'
QUOTED = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
NAMED = re.compile(rf"{QUOTED} \(")
# Where a message names a text for missing cells, as Python writes it.
MARK = re.compile(rf"([Nn])ame (?:it|the text) as a mark for missing, na={QUOTED},")
# Where a message names a parameter for columns, and the option for them.
ASKED_OF_COLUMNS = {"constraints": "--bounds", "rules": "--rule", "delta": "--delta"}
ASKED = re.compile(rf"(?<![\w-])({'|'.join(ASKED_OF_COLUMNS)})(?= (?:names the|of) column\b)")
# Where a message names the field of a class.
SETTING = re.compile(r"\b(?:Network|Training|Forest|Factor)Config\.(?=\w)")
# Where a message says in which line, and in how many cells; other draws of a table have others.
PLACES = re.compile(r"\b(?:line|row) [\d,]+|(?<!\w)[\d,]+ (?:(?:more|other) )?cells?\b")
# The first steps take longer than others, and say little about how long the rest will take.
FEWEST_STEPS = 5
# The person who pressed Ctrl-C knows, and is asked what to do.
SILENT = ("Training was interrupted", "Fitting was interrupted")


def in_words_of_the_command_line(message: str) -> str:
    """Return a message with the names of options in place of those of parameters."""
    for phrase, meaning in PHRASES.items():
        message = message.replace(phrase, meaning)
    if message.endswith(UNUSED):
        names = [literal_eval(name) for name in NAMED.findall(message)]
        message = message.removesuffix(UNUSED) + (
            f"Add {as_option('--ignore', names)} to accept this, or --categorical and a name to "
            "use one of them."
        )
    message = MARK.sub(_na_option, message)
    message = ASKED.sub(lambda match: ASKED_OF_COLUMNS[match[1]], message)
    return SETTING.sub("--set ", message).rstrip()


def _na_option(match: re.Match[str]) -> str:
    add = "Add" if match[1] == "N" else "add"
    return f"{add} --na {shlex.quote(literal_eval(match[2]))}"


def as_option(option: str, names: Sequence[str]) -> str:
    """Return an option with the names of columns, ready to be pasted into a shell.

    Examples
    --------
    >>> as_option("--ignore", ["id", "Lfd. Nr."]), as_option("--ignore", ["id", "town, country"])
    ("--ignore 'id,Lfd. Nr.'", "--ignore id --ignore 'town, country'")
    >>> as_option("--ignore", ["-flag"])
    '--ignore=-flag'
    """
    given = names if any("," in name for name in names) else [",".join(names)]
    return " ".join(with_value(option, name) for name in given)


def with_value(option: str, value: str) -> str:
    """Return an option with its value, which may look like an option itself."""
    return f"{option}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}"


_current: ContextVar[Terminal] = ContextVar("terminal")


class Terminal:
    """Where notes and results go.

    Notes, progress and errors go to standard error; results go to standard output, unless the
    filled table goes there.

    Parameters
    ----------
    quiet : bool
        Whether to show nothing but errors.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._consoles: dict[str, Console] = {}
        self._said: set[str] = set()
        self._file: str | None = None
        self._listener: Callable[[Warning | str], bool] | None = None

    @classmethod
    def current(cls, *, quiet: bool = False) -> Terminal:
        """Return the terminal of the running command; warnings go to the same one."""
        terminal = _current.get(None) or cls()
        terminal.quiet = quiet
        return terminal

    @contextlib.contextmanager
    def as_current(self) -> Iterator[None]:
        """Be the terminal of the command that runs inside."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def _console(self, which: str) -> Console:
        from rich.console import Console

        if which not in self._consoles:
            error = which == "error"
            plain = Console(stderr=error, highlight=False)
            # A pipe or a log has no width of its own.
            wide = None if plain.is_terminal else 100
            self._consoles[which] = Console(stderr=error, highlight=False, width=wide)
        return self._consoles[which]

    @property
    def notes(self) -> Console:
        """The console for what is not a result."""
        return self._console("error")

    @property
    def width(self) -> int | None:
        """How many letters fit on a line of results; None if they go to a file or a pipe."""
        console = self._console("output")
        return console.width if console.is_terminal else None

    def show(self, *results: Any, to_error: bool = False) -> None:
        """Show what was done."""
        if not self.quiet:
            self.answer(*results, to_error=to_error)

    def answer(self, *results: Any, to_error: bool = False, as_is: bool = False) -> None:
        """Show what was asked for, be it quiet or not; for programs as it is, without new lines."""
        console = self._console("error" if to_error else "output")
        for result in results:
            soft = isinstance(result, str)
            shown = _fitted(result, console) if soft and not as_is else result
            console.print(shown, markup=False, soft_wrap=soft)

    def note(self, message: str) -> None:
        """Show a note, once."""
        alike = {message}
        if self._file is not None:
            alike.add(PLACES.sub("", message.replace(self._file, "")))
        if self.quiet or alike & self._said or message.startswith(SILENT):
            return
        self._said |= alike
        self.tell("Note: ", "yellow", in_words_of_the_command_line(message))

    def tell(self, title: str, style: str, message: str) -> None:
        """Show a message that is not a result, be it quiet or not."""
        from rich.text import Text

        text = _fitted(title + message, self.notes)
        self.notes.print(Text.assemble((title, style), text[len(title) :]), soft_wrap=True)

    @contextlib.contextmanager
    def one_of_many(self, name: str) -> Iterator[None]:
        """Show notes inside on one of many files like each other, and on the next only other ones.

        Parameters
        ----------
        name : str
            What notes call the file.
        """
        self._file = name
        try:
            yield
        finally:
            self._file = None

    def has_told(self, *words: str) -> bool:
        """Whether a note with all of some words in it was shown."""
        return any(all(word in message for word in words) for message in self._said)

    @contextlib.contextmanager
    def hearing(self, listener: Callable[[Warning | str], bool]) -> Iterator[None]:
        """Let somebody hear warnings inside first, who returns which of them are not to be shown.

        Parameters
        ----------
        listener : callable
            Takes a warning and returns whether it has been dealt with.
        """
        before, self._listener = self._listener, listener
        try:
            yield
        finally:
            self._listener = before

    def show_warning(self, message: Warning | str, category: type[Warning], *_: object) -> None:
        """Show a warning of ours; those of other packages are for programmers."""
        if self._listener is not None and self._listener(message):
            return
        if issubclass(category, GrapefillWarning):
            self.note(str(message))

    @contextlib.contextmanager
    def progress(self, title: str) -> Iterator[Bar]:
        """Show a bar that moves, if there is a terminal to show it on."""
        if self.quiet or not self.notes.is_terminal:
            yield Bar(None, None, title)
            return
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[left]}"),
            TextColumn("[dim]{task.fields[facts]}"),
            console=self.notes,
            transient=True,
        )
        task = bar.add_task(title, total=None, left="", facts="")
        with bar:
            yield Bar(bar, task, title)

    def ask(self, question: str) -> bool:
        """Ask a question that Enter answers with yes; without anybody to ask it is no."""
        with contextlib.ExitStack() as stack:
            source = sys.stdin
            if not source.isatty():
                try:
                    source = stack.enter_context(open("/dev/tty", encoding="utf-8"))  # noqa: PTH123
                except OSError:
                    return False
            self.notes.print(f"{question} [Y/n] ", end="", markup=False)
            try:
                answer = source.readline()
            except KeyboardInterrupt:
                self.notes.print()
                return False
        return bool(answer) and answer.strip().lower() in ("", "y", "yes")


def _fitted(text: str, console: Console) -> str:
    """Return a text in lines of the terminal's width; in a pipe, a line goes on to its end."""
    return wrap(text, console.width) if console.is_terminal else text


class Bar:
    """A bar that moves, or nothing."""

    def __init__(self, bar: RichProgress | None, task: Any, title: str) -> None:
        self._bar = bar
        self._task = task
        self._title = title

    def train(self, progress: Progress) -> None:
        """Show a step of training; a callback of estimators."""
        if self._bar is None:
            return
        facts = f"loss {progress.loss:.4f}"
        if progress.validation is not None:
            facts += f", held-out {progress.validation:.4f}"
        # In time, so that a time limit or uneven steps do not make the bar jump.
        self._bar.update(
            self._task,
            description=self._title if progress.stage == "network" else "Growing trees",
            total=max(progress.seconds + progress.seconds_left, 1e-9),
            completed=progress.seconds,
            left=_left(progress.seconds_left) if progress.step >= FEWEST_STEPS else "",
            facts=facts,
        )

    def move(self, done: int, total: int, seconds_left: float | None, facts: str = "") -> None:
        """Show how much of the work is done, and how long the rest will take if that is known."""
        if self._bar is not None:
            left = "" if seconds_left is None else _left(seconds_left)
            self._bar.update(self._task, total=total, completed=done, left=left, facts=facts)

    @property
    def callbacks(self) -> list[Callable[[Progress], None]]:
        """What to give to an estimator."""
        return [self.train]


def _left(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> _left(5), _left(65), _left(4000)
    ('5 s left', '1:05 left', '1:06:40 left')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s left"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d} left"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d} left"
