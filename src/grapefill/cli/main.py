"""The application: its commands, and how it ends."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from typing import TYPE_CHECKING, NoReturn

from cyclopts import App, CycloptsError, Group, UnusedCliTokensError, ValidationError

from grapefill._version import __version__
from grapefill.cli.apply import EXAMPLES as APPLY_EXAMPLES
from grapefill.cli.apply import apply
from grapefill.cli.demo import demo
from grapefill.cli.evaluate import (
    AMPUTE_EXAMPLES,
    COMPARE_EXAMPLES,
    DESCRIBE_EXAMPLES,
    ampute,
    compare,
    describe,
)
from grapefill.cli.impute import EXAMPLES as IMPUTE_EXAMPLES
from grapefill.cli.impute import FIT_EXAMPLES, fit, impute
from grapefill.cli.pooling import POOL_EXAMPLES, pool
from grapefill.cli.predict import EXAMPLES as PREDICT_EXAMPLES
from grapefill.cli.predict import predict
from grapefill.cli.terminal import Terminal, in_words_of_the_command_line
from grapefill.cli.too_many import explain_too_many
from grapefill.errors import GrapefillError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["app", "main", "run"]

USAGE, FAILURE, INTERRUPTED = 2, 1, 130

HELP = "Fill the holes in any table, and predict from tables with holes."
EPILOGUE = """\
Start with 'grapefill demo', or with a table of your own:

grapefill impute data.csv -o filled.csv

'grapefill COMMAND --help' explains a command."""

app = App(
    name="grapefill",
    help=HELP,
    help_epilogue=EPILOGUE,
    help_format="markdown",
    version=__version__,
    suppress_keyboard_interrupt=False,
    group_parameters=Group("Files", sort_key=1),
    group_arguments=Group("Files", sort_key=1),
)
COMMANDS: dict[Callable[..., None], str | None] = {
    impute: IMPUTE_EXAMPLES,
    fit: FIT_EXAMPLES,
    apply: APPLY_EXAMPLES,
    predict: PREDICT_EXAMPLES,
    pool: POOL_EXAMPLES,
    describe: DESCRIBE_EXAMPLES,
    compare: COMPARE_EXAMPLES,
    ampute: AMPUTE_EXAMPLES,
    demo: None,
}
for place, (command, examples) in enumerate(COMMANDS.items()):
    app.command(command, help_epilogue=examples, sort_key=place)
app.register_install_completion_command(help="Install completion for your shell.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code.

    Parameters
    ----------
    arguments : sequence of str or None
        What stands behind ``grapefill`` on the command line; None takes it from there.

    Returns
    -------
    int
        0, or 2 for a command that is not understood, 1 for one that fails, 130 after Ctrl-C.
    """
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in tokens
    terminal = Terminal()
    with warnings.catch_warnings(), terminal.as_current():
        warnings.simplefilter("default" if debug else "ignore")
        warnings.simplefilter("always", UserWarning)
        if not debug:
            warnings.showwarning = terminal.show_warning  # type: ignore[assignment]
        try:
            app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        except UnusedCliTokensError as error:
            extra = error.unused_tokens or ()
            message = explain_too_many(tokens, extra, _command(error), error.target)
            return _fail(terminal, f"{message} {_see(error)}", USAGE)
        except ValidationError as error:
            given = None if error.argument is None else error.argument.value
            if isinstance(given, tuple):
                error.value = ", ".join(given)
            return _fail(terminal, f"{error} {_see(error)}", USAGE)
        except CycloptsError as error:
            return _fail(terminal, f"{error} {_see(error)}", USAGE)
        except GrapefillError as error:
            if debug:
                raise
            return _fail(terminal, in_words_of_the_command_line(str(error)), FAILURE)
        except KeyboardInterrupt:
            return _fail(terminal, "Interrupted. No file was left half-written.", INTERRUPTED)
        except BrokenPipeError:
            # Whoever read our output has enough.
            _forget_output()
            return FAILURE
        except MemoryError:
            if debug:
                raise
            message = "There is not enough memory for this table. Try fewer rows or columns."
            return _fail(terminal, message, FAILURE)
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                _forget_output()
                message = "There is no space left where the output goes. Make room, or send it "
                return _fail(terminal, message + "to another place.", FAILURE)
            if debug:
                raise
            message = (
                f"Something went wrong that should not have: {type(error).__name__}: {error}. "
                "Please report it with what --debug shows."
            )
            return _fail(terminal, message, FAILURE)
    return 0


def _see(error: CycloptsError) -> str:
    """Return where a command that was not understood is explained."""
    return f"See '{_command(error)} --help'."


def _command(error: CycloptsError) -> str:
    return " ".join(["grapefill", *(error.command_chain or ())])


def _forget_output() -> None:
    """Let go what is left of the output; Python would complain when it cannot write that."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(terminal: Terminal, message: str, code: int) -> int:
    terminal.tell("Error: " if code != INTERRUPTED else "", "bold red", message)
    return code


def run() -> NoReturn:
    """Run the command line; where the command `grapefill` begins."""
    sys.exit(main())
