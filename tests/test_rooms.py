"""Imports point down the list of rooms only, so that each can be read without those above it."""

import ast
from pathlib import Path

import pytest

import grapefill

ROOT = Path(grapefill.__file__).parent

# From the top down; rooms on one line do not import each other.
LEVELS = [
    ["cli"],
    ["report"],
    ["distributed"],
    ["comparing"],
    ["classifier", "imputer", "regressor", "sparse"],
    ["predictor"],
    ["estimator"],
    ["uncertainty"],
    ["evaluate"],
    ["training"],
    ["nn", "trees", "factors"],
    ["graph"],
    ["table"],
    ["files"],
    ["settings", "lines"],
    ["errors", "_version"],
]
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}


def modules():
    """Give the path and the dotted name of every module of the package."""
    for path in sorted(ROOT.rglob("*.py")):
        yield path, ["grapefill", *path.relative_to(ROOT).with_suffix("").parts]


def imported_rooms(source, name):
    """Yield (line, room) for each import of a part of grapefill; room "" is the package itself."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # In a/b.py, `from .` is a; in a/__init__.py it is a too: drop one part per dot.
            base = name[: -node.level] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            targets = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for target in targets:
            if target[0] == "grapefill":
                yield node.lineno, target[1] if len(target) > 1 else ""


def offences(source, name):
    own = name[1]
    for line, room in imported_rooms(source, name):
        if room not in LEVEL:
            yield f"line {line}: imports {room or 'the whole package'!r}, which is no room"
        elif room != own and LEVEL[room] <= LEVEL[own]:
            yield f"line {line}: {own!r} imports {room!r}, which is not below it"


def test_every_module_is_in_a_room():
    rooms = {name[1] for _, name in modules()}
    # `python -m grapefill` and the package's front door may open every room.
    assert rooms - {"__init__", "__main__"} <= LEVEL.keys()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        pytest.param(path, name, id=".".join(name))
        for path, name in modules()
        if name[1] not in {"__init__", "__main__"}
    ],
)
def test_imports_point_down(path, name):
    assert list(offences(path.read_text(encoding="utf-8"), name)) == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("from grapefill.training.loop import train", 1),
        ("import grapefill.imputer", 1),
        ("from ..training import loop", 1),
        ("from grapefill import GrapeImputer", 1),
        ("import grapefill", 1),
        ("def later():\n    from grapefill import imputer", 1),
        ("from grapefill.graph import dense\nfrom .config import Config\nimport torch", 0),
        ("from ..errors import GrapefillError", 0),
    ],
)
def test_the_rule_itself(source, count):
    assert len(list(offences(source, ["grapefill", "nn", "network"]))) == count
