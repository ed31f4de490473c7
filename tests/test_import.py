"""Importing the package is quick: what is heavy is imported when it is used."""

import json
import subprocess
import sys

import pytest

HEAVY = {
    "catboost",
    "joblib",
    "lightgbm",
    "matplotlib",
    "narwhals",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "safetensors",
    "scipy",
    "sklearn",
    "torch",
}


def imported_by(statement):
    """Return the top-level packages that a fresh interpreter has after `statement`."""
    # -S would hide the installed packages; what start-up hooks import is subtracted instead.
    code = f"""
import json, sys
before = set(sys.modules)
{statement}
print(json.dumps(sorted({{name.partition(".")[0] for name in set(sys.modules) - before}})))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "statement",
    [
        "import grapefill",
        "import grapefill; grapefill.__version__; dir(grapefill)",
        "import grapefill.errors",
    ],
)
def test_import_is_light(statement):
    imported = imported_by(statement)
    assert "grapefill" in imported
    assert imported & HEAVY == set()


def test_the_test_can_fail():
    assert "numpy" in imported_by("import numpy")


def test_looking_at_a_table_needs_no_torch():
    imported = imported_by("from grapefill import ampute, describe; ampute([[1, 2], [3, 4]], 0)")
    assert imported & {"torch", "polars", "rich"} == set()


def test_estimators_import_only_what_they_need():
    imported = imported_by("from grapefill import GrapeImputer")
    # pandas and pyarrow are not listed: scikit-learn imports them itself where it finds them.
    assert imported & {"polars", "catboost", "lightgbm", "matplotlib"} == set()
