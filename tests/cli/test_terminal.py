"""On a terminal: a bar that moves, and Ctrl-C, after which nothing is half done."""

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grapefill.cli.terminal import Terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

# More than anybody waits for.
ENDLESS = ("--preset", "fast", "--set", "max_steps=1000000", "--set", "patience=1000000")
PATIENCE = 120.0


class Screen:
    """A pseudo-terminal with a process at its other end."""

    def __init__(self, spawn, *arguments):
        self.master, slave = pty.openpty()
        self.process = spawn(
            *arguments, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.text = ""

    def wait_for(self, pattern):
        """Read until a pattern is on the screen."""
        deadline = time.monotonic() + PATIENCE
        while not re.search(pattern, self.text):
            assert time.monotonic() < deadline, self.text
            if not self._read(1.0) and self.process.poll() is not None:
                assert re.search(pattern, self.text), self.text
                return

    def finish(self):
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None or self._read(0.1):
            assert time.monotonic() < deadline, self.text
            self._read(0.1)
        os.close(self.master)
        return self.process.returncode

    def type(self, text):
        os.write(self.master, text.encode())

    def _read(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other end is closed
            return False
        self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data.decode(errors="replace"))
        return bool(data)


def test_bar(spawn, houses, quick):
    screen = Screen(spawn, "impute", houses, *quick[:2], "--set", "max_steps=60")
    screen.wait_for(r"Training +\S+ +\d+% +\d+ s left +loss \d")
    assert screen.finish() == 0
    assert "cells were filled" in screen.text


def test_bar_of_apply(cli, spawn, houses, quick):
    model = houses.with_name("m.grape")
    assert cli("fit", houses, "-m", model, *quick).code == 0
    head, *lines = houses.read_text().splitlines(keepends=True)
    houses.write_text(head + "".join(lines) * 800)
    screen = Screen(spawn, "apply", model, houses)
    screen.wait_for(r"Filling +\S+ +\d+% +\d+ s left")
    assert screen.finish() == 0
    assert "cells were filled" in screen.text


def test_lines_end_between_words(spawn, tmp_path):
    rows = [[f"{k % 7}.5", ["yes", "no", "not known"][k % 3], f"id {k:04}"] for k in range(60)]
    lines = [",".join(row) for row in [["height", "the answer", "name of the person"], *rows]]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    screen = Screen(spawn, "describe", "table.csv")
    assert screen.finish() == 0
    # A bar that moves begins its line again.
    shown = [line.strip().rpartition("\r")[2] for line in screen.text.split("\n")]
    assert "has 'not known' in 20 cells" in screen.text
    assert max(map(len, shown)) <= 80
    screen = Screen(spawn, "describe", "table.csv", "--json")
    assert screen.finish() == 0
    assert max(map(len, screen.text.splitlines())) > 400


def test_notes_in_lines(monkeypatch, capfd):
    note = "These columns are not used: 'name of the person'. Add --ignore 'name of the person'."
    Terminal().note(note)
    assert capfd.readouterr().err == f"Note: {note}\n"
    terminal = Terminal()
    monkeypatch.setattr(type(terminal.notes), "is_terminal", True)
    monkeypatch.setattr(terminal.notes, "width", 40)
    terminal.note(note)
    assert [line.strip() for line in capfd.readouterr().err.splitlines()] == [
        "Note: These columns are not used:",
        "'name of the person'. Add",
        "--ignore 'name of the person'.",
    ]


def test_quiet_on_a_terminal(spawn, houses, quick):
    screen = Screen(spawn, "impute", houses, *quick, "--quiet")
    assert screen.finish() == 0
    assert screen.text == ""
    assert houses.with_name("houses-filled.csv").exists()


@pytest.mark.parametrize("debug", [False, True])
def test_errors_on_a_terminal(spawn, tmp_path, debug):
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3\n")
    screen = Screen(spawn, "impute", "bad.csv", *(["--debug"] if debug else []))
    assert screen.finish() == 1
    words = " ".join(screen.text.split())
    assert "Line 3 of 'bad.csv' has 1 cell, but the first line has 2." in words
    assert ("Traceback" in screen.text) is debug
    if not debug:
        assert re.search("(^|[\r\n])Error: Line 3", screen.text)
    assert names(tmp_path) == ["bad.csv"]


@pytest.mark.parametrize("quiet", [True, False])
def test_bar_only_where_it_can_be_seen(quiet, monkeypatch):
    terminal = Terminal(quiet=quiet)
    monkeypatch.setattr(type(terminal.notes), "is_terminal", True)
    with terminal.progress("Working") as bar:
        assert (bar._bar is None) is quiet
        bar.move(1, 2, 3.0)
    monkeypatch.setattr(type(terminal.notes), "is_terminal", False)
    with terminal.progress("Working") as bar:
        assert bar._bar is None


@pytest.mark.parametrize(
    ("typed", "answer"), [("\n", True), ("y\n", True), ("Yes\n", True), ("n\n", False), ("", False)]
)
def test_question(typed, answer, monkeypatch, capfd):
    source = io.StringIO(typed)
    source.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", source)
    assert Terminal().ask("Sure?") is answer
    assert capfd.readouterr().err == "Sure? [Y/n] "


def start_training(spawn, houses, *arguments):
    screen = Screen(spawn, "impute", houses, *ENDLESS, *arguments)
    screen.wait_for(r"Training .* left")
    return screen


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("answer", ["\n", "n\n", "Ctrl-C"])
def test_interrupt(spawn, houses, answer):
    before = houses.read_bytes()
    # Its state is kept after every step, so that nothing is lost either.
    model = ("--model", houses.with_name("m.grape"), "--checkpoint-every", "0.001s")
    screen = start_training(spawn, houses, *(model if answer == "n\n" else ()))
    screen.process.send_signal(signal.SIGINT)
    screen.wait_for(r"Training was interrupted after [\d,]+ steps. Use the best so far\? \[Y/n\]")
    if answer == "Ctrl-C":
        screen.process.send_signal(signal.SIGINT)
    else:
        screen.type(answer)
    code = screen.finish()
    assert "Traceback" not in screen.text
    assert houses.read_bytes() == before
    if answer == "\n":
        assert code == 0
        assert names(houses.parent) == ["houses-filled.csv", "houses.csv"]
        assert ",," not in houses.with_name("houses-filled.csv").read_text()
    else:
        assert code == 130
        assert "Interrupted. No file was left half-written." in screen.text
        left = ["m.grape.checkpoint"] if answer == "n\n" else []
        assert names(houses.parent) == ["houses.csv", *left]
        assert ("The same command goes on from the last checkpoint" in screen.text) is bool(left)


def test_interrupt_without_anybody_to_ask(spawn, houses):
    process = spawn(
        "impute",
        houses,
        *ENDLESS,
        "--model",
        houses.with_name("m.grape"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    # There is nothing to see, so wait until torch is there and training has begun.
    time.sleep(1)
    deadline = time.monotonic() + PATIENCE
    while not _is_busy(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert out == b""
    assert b"Interrupted. No file was left half-written." in err
    assert b"Traceback" not in err
    assert names(houses.parent) == ["houses.csv"]


def _is_busy(pid):
    """Whether a process has used some seconds of processor time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > 6


def test_kill_leaves_nothing(spawn, houses):
    before = houses.read_bytes()
    screen = start_training(spawn, houses, "--report", houses.with_name("report.html"))
    screen.process.kill()
    assert screen.finish() == -signal.SIGKILL
    assert houses.read_bytes() == before
    assert names(houses.parent) == ["houses.csv"]
