"""Options that several commands share, in the groups in which the help shows them."""

from __future__ import annotations

import codecs
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter, validators

from grapefill.cli.values import read_delta, read_limits, read_seconds, read_settings
from grapefill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts import Token

    from grapefill.training import CheckpointFile

__all__ = [
    "Answering",
    "Columns",
    "File",
    "Filling",
    "Kinds",
    "Output",
    "Ray",
    "Reading",
    "Running",
    "Seed",
    "Training",
    "Whole",
]

_TRAINING = Group("Training", sort_key=2)
_COLUMNS = Group("Columns", sort_key=3)
_READING = Group("Reading the file", sort_key=4)
_RUNNING = Group("Running", sort_key=5)
_RAY = Group("Many workers", sort_key=6)

# Without the empty word, every list has an option that empties it.
_REPEAT = Parameter(negative="", show_default=False)
_NAMES = Parameter(negative="", show_default=False, metavar="COLUMN")
_PLAIN = Parameter(negative="", show_default=False)


def _check_file(_: Any, value: str | None) -> None:
    """Refuse what is an option rather than a file; a single hyphen is standard input or output."""
    if value is not None and value.startswith("-") and value != "-":
        raise ValueError(f"{value} is not a file.")


def _whole_number(_: Any, tokens: Sequence[Token]) -> int:
    """Read a whole number, and do not cut 1.5 down to one."""
    text = tokens[0].value
    with contextlib.suppress(ValueError):
        return int(text)
    # Numbers such as 1e4 are whole as well.
    with contextlib.suppress(ValueError):
        if float(text).is_integer():
            return int(float(text))
    raise ValueError(f"{text} is not a whole number.")


def _check_time(_: Any, value: str | None) -> None:
    if value is not None:
        read_seconds(value)


def _check_settings(_: Any, value: tuple[str, ...]) -> None:
    read_settings(value)


def _check_limits(_: Any, value: tuple[str, ...]) -> None:
    for each in value:
        read_limits(each)


def _check_delta(_: Any, value: tuple[str, ...]) -> None:
    for each in value:
        read_delta(each)


_TIME = Parameter(validator=_check_time, metavar="TIME")
_SETTING = Parameter(name="--set", validator=_check_settings, metavar="NAME=VALUE")
_LIMITS = Parameter(validator=_check_limits, metavar="LIMITS")
_DELTA = Parameter(validator=_check_delta, metavar="NUMBER")
_FILE = Parameter(allow_leading_hyphen=True, validator=_check_file, metavar="FILE")
File = Annotated[str, _FILE]
Whole = Annotated[int, Parameter(converter=_whole_number)]
Seed = Annotated[Whole, Parameter(validator=validators.Number(gte=0, lt=2**32))]
Output = Annotated[str | None, _FILE, Parameter(name=["--output", "-o"])]


@Parameter(name="*", group=_TRAINING)
@dataclass(frozen=True, kw_only=True)
class Training:
    """How to train.

    Parameters
    ----------
    preset
        How thorough to be: fast for a first look; paper is the published method, and slow.
    time_limit
        Stop training after that long: 90, 90s, 5m or 1h.
    seed
        Where randomness starts; the same seed gives the same result on the same machine.
    device
        Where to train: auto, cpu, cuda or mps.
    checkpoint_every
        With --model, how often to keep the state of training, from which the same command goes on
        if it is cut off: 30s, 5m.
    change
        Change a setting of the preset, such as max_steps=500. Can be repeated.
    """

    preset: Literal["default", "fast", "paper"] = "default"
    time_limit: Annotated[str | None, _TIME, Parameter(name=["--time-limit", "-t"])] = None
    seed: Seed = 0
    device: str = "auto"
    checkpoint_every: Annotated[str, _TIME] = "30s"
    change: Annotated[tuple[str, ...], _REPEAT, _SETTING] = ()

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of an estimator."""
        return {
            "preset": self.preset,
            "settings": read_settings(self.change) or None,
            "time_limit": self.time_limit and read_seconds(self.time_limit),
            "random_state": self.seed,
            "device": self.device,
        }

    def checkpoint(self, model: str | None) -> CheckpointFile | None:
        """Return where the state of training is kept until all files are written."""
        seconds = read_seconds(self.checkpoint_every)
        if model is None:
            return None
        from grapefill.training import CheckpointFile

        return CheckpointFile(f"{model}.checkpoint", seconds, keep=True)


@Parameter(name="*", group=_COLUMNS)
@dataclass(frozen=True, kw_only=True)
class Kinds:
    """What columns are, where their cells do not tell.

    Parameters
    ----------
    ignore
        Columns to leave as they are and not to learn from, such as identifiers. Like the next
        ones, can be repeated, or list several with commas.
    categorical
        Columns of categories, even if they look like numbers.
    ordinal
        Columns of whole numbers, or of levels: size=small,medium,large.
    continuous
        Columns of numbers with anything in between.
    text
        Columns to read as text, such as codes.
    """

    ignore: Annotated[tuple[str, ...], _NAMES] = ()
    categorical: Annotated[tuple[str, ...], _NAMES] = ()
    ordinal: Annotated[tuple[str, ...], _NAMES] = ()
    continuous: Annotated[tuple[str, ...], _NAMES] = ()
    text: Annotated[tuple[str, ...], _NAMES] = ()


@Parameter(name="*", group=_COLUMNS)
@dataclass(frozen=True, kw_only=True)
class Columns(Kinds):
    """What columns are, and what may be filled in.

    Parameters
    ----------
    bounds
        Limits for what is filled in or predicted: age=0:120, price=0: for one limit only.
    """

    bounds: Annotated[tuple[str, ...], _REPEAT, _LIMITS] = ()


@Parameter(name="*", group=_COLUMNS)
@dataclass(frozen=True, kw_only=True)
class Filling(Columns):
    """What columns are, and what filled cells obey.

    Parameters
    ----------
    rule
        What the cells of a row obey once they are filled in, such as "end >= start" or
        "`part a` + b <= 100". Can be repeated.
    delta
        Add a number to what is filled in, to see how results change if what is missing is larger
        or smaller than it seems: income=-500. Can be repeated.
    """

    rule: Annotated[tuple[str, ...], _REPEAT, Parameter(metavar="RULE")] = ()
    delta: Annotated[tuple[str, ...], _REPEAT, _DELTA] = ()


@Parameter(name="*", group=_READING)
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read a file, where it does not tell itself.

    Parameters
    ----------
    na
        A further text for missing cells, such as -999. Can be repeated.
    only_na
        Take only empty cells and what --na names for missing, not NA, NaN, null and the like.
    delimiter
        What separates cells: a character, or tab.
    decimal
        The decimal mark, a point or a comma.
    encoding
        The encoding, such as latin-1.
    day_first
        In dates like 01/02/2024 the day comes first.
    month_first
        In dates like 01/02/2024 the month comes first.
    no_header
        Take the first line for values, not names.
    no_quotes
        Take quotes for ordinary characters.
    sheet
        The sheet of a workbook, by its name or number.
    format
        The format, if the suffix does not tell.
    """

    na: Annotated[
        tuple[str, ...], _REPEAT, Parameter(allow_leading_hyphen=True, metavar="TEXT")
    ] = ()
    only_na: Annotated[bool, _PLAIN] = False
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    day_first: Annotated[bool, _PLAIN] = False
    month_first: Annotated[bool, _PLAIN] = False
    no_header: Annotated[bool, _PLAIN] = False
    no_quotes: Annotated[bool, _PLAIN] = False
    sheet: str | None = None
    format: Literal["delimited", "parquet", "arrow", "excel", "json"] | None = None

    def options(self) -> dict[str, Any]:
        """Return the options of `read_table`."""
        if self.day_first and self.month_first:
            raise ConfigError("--day-first and --month-first exclude each other. Choose one.")
        self._check_encoding()
        order = True if self.day_first else False if self.month_first else None
        return {
            "na": self.na,
            "usual_na": not self.only_na,
            "delimiter": self.delimiter,
            "decimal": self.decimal,
            "encoding": self.encoding,
            "day_first": order,
            "header": not self.no_header,
            "quote": "" if self.no_quotes else '"',
            "sheet": self.sheet,
            "format": self.format,
        }

    def _check_encoding(self) -> None:
        """Refuse codecs of Python that turn bytes into something else than text."""
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError:
            return  # reading the file says what to do
        try:
            "a".encode(self.encoding or "utf-8")
        except (LookupError, UnicodeError) as error:
            raise ConfigError(
                f"{self.encoding!r} is not an encoding of text. Give --encoding another name, for "
                "example latin-1, or leave it out."
            ) from error


@Parameter(name="*", group=_RUNNING)
@dataclass(frozen=True, kw_only=True)
class Answering:
    """What a command shows that writes no file.

    Parameters
    ----------
    quiet
        Show nothing but the answer, and errors.
    debug
        Show where in the program an error arose.
    """

    quiet: Annotated[bool, _PLAIN, Parameter(name=["--quiet", "-q"])] = False
    debug: Annotated[bool, _PLAIN] = False


@Parameter(name="*", group=_RUNNING)
@dataclass(frozen=True, kw_only=True)
class Running:
    """What to show, and what may be replaced.

    Parameters
    ----------
    overwrite
        Replace files that exist. The input is never replaced.
    quiet
        Show nothing but errors.
    debug
        Show where in the program an error arose.
    """

    overwrite: Annotated[bool, _PLAIN] = False
    quiet: Annotated[bool, _PLAIN, Parameter(name=["--quiet", "-q"])] = False
    debug: Annotated[bool, _PLAIN] = False


@Parameter(name="*", group=_RAY)
@dataclass(frozen=True, kw_only=True)
class Ray:
    """Workers for folders of Parquet files.

    Parameters
    ----------
    address
        Work on a Ray cluster: its address, or local for workers on this machine.
    workers
        How many workers.
    """

    address: Annotated[str | None, Parameter(name="--ray", metavar="ADDRESS")] = None
    workers: Annotated[Whole, Parameter(name="--workers", show_default=True)] = 2

    @property
    def fill(self) -> Any:
        """What fills files on the cluster; None without one."""
        if self.address is None:
            return None
        from functools import partial

        from grapefill.distributed import fill_files

        return partial(fill_files, workers=self.workers, address=self.address)
