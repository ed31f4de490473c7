"""Help is there at once, and errors are said in a sentence or two."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_origin

import pytest

import grapefill
from grapefill.cli.main import app, main
from grapefill.cli.terminal import PHRASES, SILENT, UNUSED, in_words_of_the_command_line
from grapefill.cli.too_many import REPEATED, WITH_COMMAS
from grapefill.cli.values import read_seconds, read_settings
from grapefill.errors import ConfigError, GrapefillError

ROOT = Path(grapefill.__file__).parent
COMMANDS = ["impute", "fit", "apply", "predict", "pool", "describe", "compare", "ampute", "demo"]


@pytest.mark.parametrize("arguments", [["--help"], ["impute", "--help"], ["--version"], []])
def test_help_imports_nothing_heavy(arguments):
    code = f"""
import json, sys
from grapefill.cli.main import app, main
code = main({arguments!r})
print("\\n" + json.dumps([code, sorted(sys.modules)]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == 0
    heavy = {"torch", "sklearn", "scipy", "pyarrow", "pandas", "polars", "narwhals", "openpyxl"}
    assert heavy & set(modules) == set()


def test_help_lists_the_commands(cli):
    result = cli("--help")
    assert result.code == 0
    for command in COMMANDS:
        assert f"│ {command} " in result.out
    assert "grapefill impute data.csv -o filled.csv" in result.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(cli, command):
    result = cli(command, "--help")
    assert result.code == 0
    assert result.err == ""
    if command != "demo":
        assert "Examples:" in result.out
        assert f"grapefill {command} " in result.out


def test_version(cli):
    assert cli("--version").out.strip() == grapefill.__version__


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["imput", "a.csv"], 'Did you mean "impute"?'),
        (["impute"], "requires an argument"),
        (["impute", "a.csv", "--prset", "fast"], "Did you mean --preset?"),
        (["impute", "a.csv", "--preset", "quick"], "Choose from"),
        (["fit", "a.csv"], "--model"),
        (["fit", "a.csv"], "See 'grapefill fit --help'."),
        (["impute", "a.csv", "b.csv"], "See 'grapefill impute --help'."),
        (["compare", "a.csv", "--seed", "-1"], "See 'grapefill compare --help'."),
        (["nothing"], "See 'grapefill --help'."),
        (["impute", "a.csv", "b.csv"], "One argument too many: b.csv."),
        (["impute", "a.csv", "--seed", "-1"], "Must be >= 0"),
        (["impute", "a.csv", "--seed", "1.5"], "--seed: 1.5 is not a whole number"),
        (["impute", "a.csv", "--draws", "two"], "--draws: two is not a whole number"),
        (["impute", "a.csv", "--time-limit", "soon"], "Write it like 90, 90s, 5m or 1h"),
        (["impute", "a.csv", "--checkpoint-every", "x"], '"x" for --checkpoint-every'),
        (["impute", "a.csv", "--set", "max_steps"], "Write it like max_steps=500"),
        (["impute", "a.csv", "--bounds", "area"], '"area" for --bounds'),
        (["impute", "a.csv", "--bounds", "area=9:1"], "its lower limit above its upper one"),
    ],
)
def test_what_is_not_understood(cli, arguments, words):
    result = cli(*arguments)
    assert result.code == 2
    assert words in result.err
    assert result.err.startswith("Error: ")
    assert result.out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("compare a.csv --methods mean KNN", "are written with commas: --methods mean,KNN."),
        ("impute a.csv --ignore b c d", "are written with commas: --ignore b,c,d."),
        ("impute --ignore b c a.csv", "are written with commas: --ignore b,c."),
        (
            "impute a.csv --bounds b=0:1 c=0:2",
            "others: --bounds b=0:1 --bounds c=0:2.",
        ),
        (
            "impute a.csv --bounds=b=0:1 c=0:2",
            "others: --bounds b=0:1 --bounds c=0:2.",
        ),
        ("impute a.csv --rule b<c c<d", "Repeat it for others: --rule 'b<c' --rule 'c<d'."),
        ("impute a.csv --delta b=1 c=2", "Repeat it for others: --delta b=1 --delta c=2."),
        ("impute a.csv --na -9 x", "Repeat it for others: --na=-9 --na x."),
        ("fit a.csv --set x=1 y=2 -m m", "Repeat it for others: --set x=1 --set y=2."),
        ("impute a.csv b.csv", "'grapefill impute' takes one file: give the command again"),
        ("impute a.csv --na -9 b.csv", "'grapefill impute' takes one file"),
        ("impute a.csv --preset fast b", "'grapefill impute' takes one file"),
        ("fit a.csv --set x=1 -m m b", "'grapefill fit' takes one file"),
        ("impute a.csv --ignore b --quiet c", "'grapefill impute' takes one file"),
        ("predict a.csv b.csv c.csv --target x", "'grapefill predict' takes two files"),
        ("pool a b --formula y~x", "'grapefill pool' takes one folder"),
        ("demo a.csv", "'grapefill demo' takes no file."),
    ],
)
def test_what_is_too_many(cli, arguments, words):
    result = cli(*arguments.split())
    assert result.code == 2
    assert "too many: " in result.err
    assert words in result.err
    assert ("commas" in result.err) == ("commas" in words)


def test_every_option_that_takes_several_values_is_known():
    found = {
        name
        for command in COMMANDS
        for argument in app[command].assemble_argument_collection()
        if get_origin(argument.hint) is tuple
        for name in argument.names
    }
    assert found == {*WITH_COMMAS, *REPEATED}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["impute", "none.csv"], "there is no such file"),
        (["impute", "{houses}", "-o", "{houses}"], "which is never overwritten"),
        (["impute", "{houses}", "-o", "no/folder/x.csv"], "does not exist. Create it first"),
        (["impute", "{houses}", "--ignore", "romms"], "Did you mean 'rooms'?"),
        (["impute", "{houses}", "--ignore", "zzz"], "The columns are 'id', 'area', 'rooms'"),
        (["impute", "{houses}", "--set", "depth=1"], "depth"),
        (["impute", "{houses}", "--delimiter", "ab"], "delimiter must be one ASCII character"),
        (["impute", "{houses}", "--ordinal", "heating=gas"], "'wood' is not one of its levels gas"),
        (["impute", "{houses}", "--bounds", "heating=0:1"], "'heating', which holds no numbers"),
        (["impute", "{houses}", "--ignore", "area", "--ordinal", "area"], "both name the column"),
        (["impute", "{houses}", "--day-first", "--month-first"], "exclude each other"),
        (["impute", "{houses}", "-o", "x.doc"], "what 'x.doc' should be from its suffix"),
        (["impute", "{houses}", "-o", "x.tsv"], "Give it the suffix '.csv'"),
        (["impute", "{houses}", "-o", "x.csv", "-m", "x.csv"], "are one file, for two results"),
        (["impute", "{houses}", "--encoding", "utf9"], "There is no encoding 'utf9'"),
        (["impute", "{houses}", "--encoding", "hex"], "'hex' is not an encoding of text"),
        (["impute", "{houses}", "--encoding", "rot13"], "Give --encoding another name"),
        (["impute", "{houses}", "--device", "meta"], "--device 'meta' cannot be used here: it"),
        (["impute", "{houses}", "--device", "xla"], "its torch, has none. Use 'auto' or 'cpu'."),
        (["impute", "{houses}", "--set", "max_steps=0"], "--set epochs and max_steps must be"),
        (["impute", "{houses}", "--ordinal", "heating=gas,wood,gas"], "the level 'gas' of column"),
        (["impute", "{houses}", "--sheet", "2"], "--sheet is for Excel workbooks only."),
        (["impute", "{houses}", "--format", "parquet", "--delimiter", ";"], "delimited text only"),
        (["impute", "{houses}", "--report", "report.pdf"], "Name it with '.html' at the end"),
        (["apply", "{houses}", "{houses}"], "or not a model file at all"),
        (
            ["predict", "{houses}", "{houses}", "--target", "garden", "--task", "regression"],
            "Leave out --task regression.",
        ),
        (["compare", "{houses}", "--methods", "guess"], "'grapefill default'."),
        (["predict", "{houses}", "{houses}", "--target", "cost"], "--target names the column"),
        (["predict", "{houses}", "{houses}", "--target", "sold"], "holds dates"),
    ],
)
def test_errors_are_sentences(cli, houses, arguments, words):
    before = sorted(houses.parent.iterdir())
    result = cli(*(argument.format(houses=houses) for argument in arguments))
    assert result.code == 1
    assert words in result.err
    assert result.err.startswith("Error: ") or "\nError: " in result.err
    assert "Traceback" not in result.err
    assert sorted(houses.parent.iterdir()) == before


def test_options_are_named_as_options(cli, make_csv, rows):
    path = make_csv("bad.csv", [*rows(5), ["1", "2"]])
    result = cli("impute", path)
    assert "Line 7 of" in result.err
    assert "or add --delimiter if it is not ','" in result.err
    (path.parent / "out.csv").touch()
    result = cli("impute", make_csv("good.csv", rows(5)), "-o", path.parent / "out.csv")
    assert "or add --overwrite" in result.err


def test_no_words_of_python(cli, make_csv):
    one = make_csv("one.csv", [[str(k)] for k in range(20)], ["x"])
    assert "Add another column first." in cli("ampute", one).err
    text = make_csv("text.csv", [[f"word {k}", f"{k}"] for k in range(40)], ["w", "id"])
    assert "Name some with --columns." in cli("ampute", text).err
    table = make_csv("table.csv", [[str(k % 7), f"{k / 8}"] for k in range(40)], ["x", "y"])
    result = cli("predict", table, table, "--target", "y", "--task", "classification")
    assert "Add --task regression to predict numbers" in result.err


def test_debug_shows_the_traceback(houses):
    with pytest.raises(GrapefillError):
        main(["impute", str(houses), "-o", str(houses), "--debug"])


def test_a_bug_is_a_sentence_too(cli, houses, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("grapefill.cli.impute.open_table", fail)
    result = cli("impute", houses)
    assert result.code == 1
    assert "should not have: ZeroDivisionError: oh. Please report it" in result.err

    def starve(*_, **__):
        raise MemoryError

    monkeypatch.setattr("grapefill.cli.impute.open_table", starve)
    assert "not enough memory" in cli("impute", houses).err


def test_phrases_are_those_of_our_messages():
    sources = [p.read_text() for p in ROOT.rglob("*.py") if "cli" not in p.relative_to(ROOT).parts]
    # A message may go over several lines of source.
    joined = re.sub(r'"\s*\n\s*f?"|\'\s*\n\s*f?"|"\s*\n\s*f?\'', "", "\n".join(sources))
    # Not one by one: pytest would explain at length what the sources hold instead.
    assert [phrase for phrase in (*PHRASES, *SILENT, UNUSED) if phrase not in joined] == []


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5 m", 90), ("2min", 120), (".5h", 1800)]
)
def test_times(text, seconds):
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-5", "5 days", "1:30"])
def test_no_times(text):
    with pytest.raises(ConfigError, match="Write it like"):
        read_seconds(text)


def test_settings():
    assert read_settings(("max-steps=5", "average=0.9", "x=true", "y=none")) == {
        "max_steps": 5,
        "average": 0.9,
        "x": True,
        "y": None,
    }


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("or name the text as a mark for missing, na='n.k.', if", "or add --na n.k. if"),
        ("Name it as a mark for missing, na='-', if it", "Add --na - if it"),
        ('name it as a mark for missing, na="it\'s", if', "add --na 'it'\"'\"'s' if"),
        (f"These are not used: 'id' (x), 'Lfd. Nr.' (y). {UNUSED}", "Add --ignore 'id,Lfd. Nr.' "),
        (f"Not used: 'a, b' (x), \"it's\" (y). {UNUSED}", "Add --ignore 'a, b' --ignore 'it'"),
    ],
)
def test_options_are_ready_to_paste(said, meant):
    assert meant in in_words_of_the_command_line(said)
