"""kill -9, at any moment: nothing half done, and the same command goes on to the same end."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from grapefill.files.model import read_model

pytestmark = pytest.mark.skipif(
    not hasattr(os, "O_TMPFILE"), reason="a kill leaves a hidden file where all files have names"
)

PATIENCE = 120.0
STEPS = 150
OPTIONS = (
    *("--preset", "fast", "--set", f"max_steps={STEPS}", "--set", "patience=1000"),
    *("--set", "rounds=1", "--set", "trees=4", "--set", "trial_trees=4", "--overwrite"),
)
# Runs a command that dies at the n-th thing it does to its folder: opening it for a new file,
# naming a file, replacing another one, removing one.
DYING = """
import os, signal, sys
from grapefill.cli.main import main
folder, left, *arguments = sys.argv[1:]
left = int(left)
def watch(event, facts):
    global left
    touched = event == "open" and facts[0] == folder
    if touched or event in ("os.link", "os.rename", "os.remove"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
sys.exit(main(arguments))
"""


def step_of(checkpoint):
    """Return how far training had come when its state was kept."""
    if not checkpoint.exists():
        return 0
    return read_model(checkpoint).description["values"]["course"]["step"]


def wait_for_step(checkpoint, step, process):
    deadline = time.monotonic() + PATIENCE
    while step_of(checkpoint) < step:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_killed_again_and_again(spawn, houses, tmp_path):
    chance = random.Random(0)
    before = houses.read_bytes()
    undisturbed = tmp_path / "undisturbed.csv"
    assert spawn("impute", houses, "-o", undisturbed, *OPTIONS, "--quiet").wait(PATIENCE) == 0
    expected = undisturbed.read_bytes()
    undisturbed.unlink()

    filled, model = tmp_path / "filled.csv", tmp_path / "m.grape"
    checkpoint = tmp_path / "m.grape.checkpoint"
    command = ("impute", houses, "-o", filled, "-m", model, *OPTIONS)

    def check(*, hidden=0):
        """Require every file to be as it was before, complete, or not there."""
        assert houses.read_bytes() == before
        found = sorted(path for path in tmp_path.iterdir() if path != houses)
        parts = [path for path in found if path.match(".grapefill-*.part")]
        assert len(parts) <= hidden
        for path in parts:
            path.unlink()
        assert {*found} <= {filled, model, checkpoint, *parts}
        assert not filled.exists() or filled.read_bytes() == expected
        assert not model.exists() or read_model(model).estimator == "GrapeImputer"
        assert read_model(checkpoint).estimator == "checkpoint"

    # In training, at some moment after its state was kept anew.
    for _ in range(2):
        seen = step_of(checkpoint)
        process = spawn(*command, "--checkpoint-every", "0.02s", stderr=subprocess.DEVNULL)
        wait_for_step(checkpoint, seen + 1, process)
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        assert process.wait(PATIENCE) == -signal.SIGKILL
        check()
        assert seen < step_of(checkpoint) < STEPS
        assert not filled.exists()

    # While the files are written: five things are done for each.
    for moment in (chance.randint(1, 5), chance.randint(6, 10)):
        dying = [sys.executable, "-c", DYING, str(tmp_path), str(moment), *map(str, command)]
        process = spawn(command=dying, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert process.wait(PATIENCE) == -signal.SIGKILL
        # Between its name and its place, a complete file is hidden.
        check(hidden=1)

    process = spawn(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert f"Training was cut off before and goes on from step {STEPS}." in err
    assert filled.read_bytes() == expected
    assert sorted(tmp_path.iterdir()) == sorted([filled, houses, model])


def test_apply_is_killed_while_it_writes(cli, spawn, houses, quick, tmp_path):
    model, filled = tmp_path / "m.grape", tmp_path / "filled.csv"
    assert cli("fit", houses, "-m", model, *quick).code == 0
    filled.write_text("old")
    command = ("apply", model, houses, "-o", filled, "--overwrite")
    # The third thing is to name the file, which is complete by then.
    dying = [sys.executable, "-c", DYING, str(tmp_path), "3", *map(str, command)]
    process = spawn(command=dying, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert process.wait(PATIENCE) == -signal.SIGKILL
    assert sorted(tmp_path.iterdir()) == sorted([filled, houses, model])
    assert filled.read_text() == "old"
    assert cli(*command).code == 0
    assert ",," not in filled.read_text()
