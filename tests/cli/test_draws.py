"""Draws, intervals and pooled estimates on the command line."""

import csv
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grapefill.files import read_table


@pytest.fixture
def draws(cli, houses, quick):
    """A folder with draws of `houses`."""
    folder = houses.with_name("imputations")
    options = ("--draws", "3", "--out-dir", folder, "--interval", "0.9")
    result = cli("impute", houses, *options, *quick)
    assert result.code == 0
    assert str(folder) in result.out
    return folder


def test_draws_and_intervals(draws, houses, changed):
    files = sorted(path.name for path in draws.iterdir())
    assert files == ["imputation-1.csv", "imputation-2.csv", "imputation-3.csv"]
    for name in files:
        changes = changed(houses, draws / name)
        assert changes
        assert all(was == "" and now for was, now in changes)
    assert len({(draws / name).read_text() for name in files}) == 3
    lower, upper = (
        read_table(houses.with_name(f"houses-filled-{word}.csv")).frame["price"].to_pylist()
        for word in ("lower", "upper")
    )
    assert all(low <= high for low, high in zip(lower, upper, strict=True))
    assert any(low < high for low, high in zip(lower, upper, strict=True))


def test_sets_of_categories(draws, houses):
    before, filled, sets = (
        list(csv.DictReader(houses.with_name(f"houses{word}.csv").read_text().splitlines()))
        for word in ("", "-filled", "-filled-sets")
    )
    found = {}
    for line in sets:
        assert list(line) == ["row", "column", "category"]
        found.setdefault((line["column"], int(line["row"]) - 1), set()).add(line["category"])
    # Words are those of the file.
    assert {line["category"] for line in sets if line["column"] == "garden"} <= {"yes", "no"}
    assert {column for column, _ in found} == {"heating", "garden"}
    for name in ("heating", "garden"):
        missing = [row for row, line in enumerate(before) if not line[name]]
        assert sorted(row for column, row in found if column == name) == missing
    for (name, row), categories in found.items():
        assert filled[row][name] in categories


@pytest.mark.parametrize(
    ("name", "delimiter", "end", "encoding"),
    [
        ("t.csv", ";", "\r\n", "utf-8-sig"),
        ("t.tsv", "\t", "\n", "utf-16"),
        ("t.txt", "|", "\n", "latin-1"),
    ],
)
def test_sets_are_written_like_the_table(cli, tmp_path, quick, *, name, delimiter, end, encoding):
    words = ("größer", f"kleiner{delimiter} oft")
    lines = [f"maß{delimiter}art"]
    for k in range(60):
        word = "" if k % 6 == 5 else f'"{words[k % 2]}"'
        lines.append(f"{k}{delimiter}{word}")
    path = tmp_path / name
    path.write_bytes((end.join(lines) + end).encode(encoding))
    result = cli("impute", path, "-o", tmp_path / f"filled-{name}", "--interval", "0.99", *quick)
    assert result.code == 0, result.err
    lower, sets = (tmp_path / f"filled-t-{word}{path.suffix}" for word in ("lower", "sets"))
    assert str(sets) in result.out
    assert sets.read_bytes()[:2] == lower.read_bytes()[:2] or encoding == "latin-1"
    first, *rest, last = sets.read_bytes().decode(encoding).split(end)
    assert (first, last) == (delimiter.join(["row", "column", "category"]), "")
    assert {line.split(delimiter)[0] for line in rest} == {str(k + 1) for k in range(5, 60, 6)}
    cells = {line.split(delimiter, 2)[2] for line in rest}
    assert cells == {words[0], f'"{words[1]}"'}


def test_sets_beside_another_format(cli, houses, quick):
    options = ("-o", houses.with_name("filled.parquet"), "--interval", "0.9")
    assert cli("impute", houses, *options, *quick).code == 0
    sets = houses.with_name("filled-sets.csv").read_text()
    assert sets.startswith("row,column,category\n")


def test_sets_of_an_earlier_run_do_not_stay(cli, houses, quick):
    old = houses.with_name("houses-filled-sets.csv")
    old.write_text("row,column,category\n1,heating,coal\n")
    assert cli("impute", houses, "--interval", "0.9", *quick).code == 1
    assert "coal" in old.read_text()
    options = ("--interval", "0.9", "--overwrite", "--ignore", "heating", "--ignore", "garden")
    result = cli("impute", houses, *options, *quick)
    assert result.code == 0, result.err
    assert not old.exists()


def test_bounds_hold_in_draws(cli, houses, quick):
    folder = houses.with_name("imputations")
    options = ("--draws", "2", "--out-dir", folder, "--bounds", "price=60000:70000")
    assert cli("impute", houses, *options, *quick).code == 0
    before = read_table(houses).frame["price"].to_pylist()
    for path in folder.iterdir():
        after = read_table(path).frame["price"].to_pylist()
        filled = [now for was, now in zip(before, after, strict=True) if was is None]
        assert filled
        assert all(60_000 <= value <= 70_000 for value in filled)


def test_draws_of_an_earlier_run(cli, draws, houses, quick):
    """They are never pooled with later ones, and never lost before those are there."""
    before = {path: path.read_bytes() for path in draws.iterdir()}
    more = ("-o", houses.with_name("more.csv"), "--out-dir", draws)
    # Names are padded to the same width, so that none of them is in the way of another.
    result = cli("impute", houses, "--draws", "12", *more, *quick)
    assert result.code == 1
    assert "has draws of an earlier run, such as 'imputation-1.csv'" in result.err
    assert {path: path.read_bytes() for path in draws.iterdir()} == before
    assert not houses.with_name("more.csv").exists()
    (draws / "imputation-notes.txt").write_text("mine")
    (draws / "imputation-2024.html").write_text("mine as well")
    result = cli("impute", houses, "--draws", "2", *more, "--overwrite", *quick)
    assert result.code == 0
    assert "Removed 1 draw of an earlier run" in result.err
    assert sorted(path.name for path in draws.iterdir()) == [
        "imputation-1.csv",
        "imputation-2.csv",
        "imputation-2024.html",
        "imputation-notes.txt",
    ]


def test_no_other_file_is_taken_for_a_draw(cli, houses, quick):
    data = houses.rename(houses.with_name("imputation-7.csv"))
    options = ("--draws", "2", "--out-dir", houses.parent, "--overwrite")
    result = cli("impute", data, *options, *quick)
    assert result.code == 1
    assert "imputation-7.csv' would be taken for a draw" in result.err
    assert data.exists()
    houses.symlink_to(data)
    result = cli("impute", houses, *options, *quick)
    assert result.code == 1
    assert "which would be taken for a draw" in result.err
    assert data.exists()


def test_no_folder_of_a_command_that_is_refused(cli, houses, quick, tmp_path):
    folder = tmp_path / "a" / "b"
    options = ("--draws", "2", "--out-dir", folder)
    assert cli("impute", houses, *options, "--ignore", "nothing", *quick).code == 1
    assert cli("impute", houses, *options, "--set", "depth=1", *quick).code == 1
    assert sorted(tmp_path.iterdir()) == [houses]
    assert cli("impute", houses, *options, *quick).code == 0
    assert len(list(folder.iterdir())) == 2
    result = cli("impute", houses, "--draws", "2", "--out-dir", houses / "b", *quick)
    assert result.code == 1
    assert "houses.csv' is a file. Choose another folder." in result.err


def test_pool_takes_draws_only(cli, draws, houses):
    for name in (".DS_Store", "notes.txt", "data-filled.csv"):
        (draws / name).write_bytes(b"\0\1")
    result = cli("pool", draws, "--formula", "price ~ np.log(area)")
    assert result.code == 0, result.err
    assert "3 tables were pooled." in result.out


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("", "has no two sides"),
        ("price", 'Write it like "price ~ area + rooms"'),
        ("price ~", "has no two sides"),
        ("price ~ log(area)", "no column 'log', nor a function"),
        # Names of the program are no names of a formula.
        ("price ~ family", "there is no column 'family'"),
        ("price ~ area +", "the expression ended"),
        ("price ~ C(area, 3)", "cannot be fitted: tuple index out of range"),
    ],
)
def test_bad_formulas(cli, houses, formula, message):
    for number in (1, 2):
        houses.with_name(f"imputation-{number}.csv").write_bytes(houses.read_bytes())
    result = cli("pool", houses.parent, "--formula", formula)
    assert result.code == 1
    assert message in result.err
    assert "should not have" not in result.err


def test_pool_refuses_draws_of_another_table(cli, draws):
    second = draws / "imputation-2.csv"
    second.write_text("\n".join(second.read_text().splitlines()[:40]) + "\n")
    result = cli("pool", draws, "--formula", "price ~ area")
    assert result.code == 1
    assert "has 39 rows" in result.err


def test_pool_refuses_holes(cli, draws, houses):
    (draws / "imputation-2.csv").write_text(houses.read_text())
    result = cli("pool", draws, "--formula", "price ~ area")
    assert result.code == 1
    assert "has no value" in result.err


def test_pool(cli, draws):
    result = cli("pool", draws, "--formula", "price ~ area + C(heating)")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0].split()[:3] == ["term", "estimate", "std_error"]
    assert re.match(r"area +\d", next(line for line in lines if line.startswith("area")))


def test_pool_logistic(cli, draws):
    result = cli("pool", draws, "--formula", "heating ~ rooms", "--family", "logistic")
    assert result.code in (0, 1)
    assert result.code == 1 or "counts as 1." in result.err
    result = cli("pool", draws, "--formula", "rooms ~ area", "--family", "logistic")
    assert result.code == 1
    assert "two values" in result.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--draws", "3"), "add --out-dir FOLDER"),
        (("--out-dir", "folder"), "add --draws 20"),
        (("--draws", "0", "--out-dir", "folder"), "--draws must be at least 1, got 0."),
        (("--interval", "90"), "between 0 and 1"),
        (("--interval", "0.9", "-o", "-"), "name it with --output"),
    ],
)
def test_bad_options(cli, houses, quick, options, message):
    result = cli("impute", houses, *options, *quick)
    assert result.code == 1
    assert message in result.err


def test_intervals_need_held_out_cells(cli, houses, monkeypatch, tmp_path):
    monkeypatch.setattr("grapefill.cli.impute.train", None)
    result = cli("impute", houses, "--interval", "0.9", "--preset", "paper")
    assert result.code == 1
    assert "Add --set validation=0.1 --set rejoin=0.8, or choose another --preset." in result.err
    assert sorted(tmp_path.iterdir()) == [houses]


def test_bad_folders(cli, draws, tmp_path):
    formula = ("--formula", "price ~ area")
    assert "is not a folder" in cli("pool", tmp_path / "nowhere", *formula).err
    (tmp_path / "empty").mkdir()
    assert "has no draws" in cli("pool", tmp_path / "empty", *formula).err
    (tmp_path / "empty" / "imputation-1.csv").touch()
    assert "needs at least 2" in cli("pool", tmp_path / "empty", *formula).err
    assert "cannot be fitted" in cli("pool", draws, "--formula", "price ~ nothing").err


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("price ~ area + sold", "The column 'sold' holds dates"),
        ("price ~ C(sold)", "The column 'sold' holds dates"),
        ("price ~ none", "The column 'none' of"),
        ("none ~ area", "imputation-1.csv has no value"),
    ],
)
def test_pool_refuses_terms_without_numbers(cli, tmp_path, formula, message):
    lines = [f"{k * k},{k},2024-01-{k:02d}," for k in range(1, 20)]
    for number in (1, 2):
        path = tmp_path / f"imputation-{number}.csv"
        path.write_text("\n".join(["price,area,sold,none", *lines]) + "\n")
    assert cli("pool", tmp_path, "--formula", "price ~ area").code == 0
    result = cli("pool", tmp_path, "--formula", formula)
    assert result.code == 1
    assert message in " ".join(result.err.split())


def test_pool_says_once_what_all_draws_have(cli, tmp_path):
    for number in (1, 2, 3):
        classes = "ab-"[:number] * 20
        lines = [f"{k * k + number},{k},${k},{classes[k]}" for k in range(1, 20)]
        lines.append(f"1,2,$3,{'-' if number > 1 else 'a'}")
        text = "\n".join(["price,area,paid,class", *lines]) + "\n"
        (tmp_path / f"imputation-{number}.csv").write_text(text)
    result = cli("pool", tmp_path, "--formula", "price ~ area")
    assert result.code == 0, result.err
    assert result.err.count("Column 'paid' of") == 1
    # The first draw has no such cell, and the others have not as many of them.
    assert result.err.count("Column 'class' (1 cell) of") == 1
    assert result.err.count("Note:") == 2


def test_pool_of_parquet_files(cli, tmp_path):
    for number in (1, 2):
        table = pa.table({"price": [1.0, 2.0, 4.0, 3.0 * number], "area": [1, 2, 3, 4]})
        pq.write_table(table, tmp_path / f"imputation-{number}.parq")
    result = cli("pool", tmp_path, "--formula", "price ~ area")
    assert result.code == 0, result.err
    assert "2 tables were pooled." in result.out


@pytest.fixture
def german(tmp_path):
    """Draws of a table whose columns are not called by single words."""
    for draw in (1, 2, 3):
        rows = [f"{k};{40 * k + draw * (k % 3)};{'ja' if k % 3 else 'nein'}" for k in range(20, 60)]
        text = "\n".join(["Alter;Einkommen (€);Kunde?", *rows]) + "\n"
        (tmp_path / f"imputation-{draw}.csv").write_text(text, encoding="utf-8")
    return tmp_path


def test_pool_names_that_are_no_words(cli, german):
    result = cli("pool", german, "--formula", 'Q("Kunde?") ~ Alter', "--family", "logistic")
    assert result.code == 0, result.err
    assert "Of the column 'Kunde?', nein counts as 1." in result.err
    result = cli("pool", german, "--formula", "Q('Kunde?') ~ Alter")
    assert "The column 'Kunde?', which is to be predicted, holds no numbers." in result.err


@pytest.fixture
def owners(tmp_path):
    """Draws with columns of yes and no, as text."""
    random = np.random.default_rng(0)
    for draw in (1, 2, 3):
        rows = [
            f"{random.normal():.3f},{random.normal():.3f},{random.choice(['yes', 'no'])},"
            f"{random.choice(['Y', 'N'])},{random.choice(['true', 'false'])}"
            for _ in range(60)
        ]
        text = "\n".join(["score,area,owner,pays rent,new", *rows]) + "\n"
        (tmp_path / f"imputation-{draw}.csv").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("score ~ owner", ["Intercept", "owner[T.yes]"]),
        ("score ~ C(owner)", ["Intercept", "C(owner)[T.yes]"]),
        ("score ~ 0 + owner", ["owner[no]", "owner[yes]"]),
        ("score ~ owner:area", ["Intercept", "owner[no]:area", "owner[yes]:area"]),
        ("score ~ C(owner, Treatment(True))", ["Intercept", "C(owner, Treatment(True))[T.no]"]),
        ("score ~ Q('pays rent')", ["Intercept", "Q('pays rent')[T.Y]"]),
        ("score ~ new", ["Intercept", "new[T.True]"]),
        ("score ~ I(owner * area)", ["Intercept", "I(owner * area)"]),
    ],
)
def test_pool_has_the_words_of_the_file(cli, owners, formula, terms):
    result = cli("pool", owners, "--formula", formula)
    assert result.code == 0, result.err
    lines = [line for line in result.out.splitlines()[1:] if line]
    assert [line.split("  ")[0] for line in lines[: len(terms)]] == terms


def test_pool_says_which_word_counts(cli, owners):
    result = cli("pool", owners, "--formula", "owner ~ score", "--family", "logistic")
    assert "Of the column 'owner', yes counts as 1." in result.err


@pytest.mark.parametrize(
    ("formula", "advice"),
    [
        ("Einkommen ~ Alter", "If you mean 'Einkommen (€)', write Q(\"Einkommen (€)\")."),
        ("Q('Einkommen') ~ Alter", "If you mean 'Einkommen (€)', write Q(\"Einkommen (€)\")."),
        ("Einkommen (€) ~ Alter", "For the column 'Einkommen (€)', write Q(\"Einkommen (€)\")."),
        ("Alter ~ kunde", 'write Q("Kunde?").'),
        ("Q('Einkommen (€)') ~ alter", "there is no column 'alter'. Did you mean 'Alter'?"),
        ("Q('Einkommen (€)') ~ Altr", "there is no column 'Altr'. Did you mean 'Alter'?"),
        ("Q('Einkommen (€)') ~ Matte", "there is no column 'Matte', nor a function of that name."),
        ("Alter ~ sin(Alter)", "there is no column 'sin', nor a function of that name."),
    ],
)
def test_pool_says_what_to_write(cli, german, formula, advice):
    result = cli("pool", german, "--formula", formula)
    assert result.code == 1
    assert advice in result.err


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """Draws with types of pandas, an ordered category and a column that tells another."""
    folder = tmp_path_factory.mktemp("parquet")
    random = np.random.default_rng(0)
    size = random.choice(["S", "M", "L"], 80)
    sold = random.random(80) < 0.5
    table = pd.DataFrame(
        {
            "sold": pd.array(sold, dtype="boolean"),
            "rooms": pd.array(random.integers(1, 4, 80), dtype="Int64"),
            "size": pd.Categorical(size, ["S", "M", "L"], ordered=True),
            "tells": 10.0 * sold,
        }
    )
    for number in (1, 2):
        price = 2.0 * (size == "L") + random.normal(size=80)
        table.assign(price=price).to_parquet(folder / f"imputation-{number}.parquet")
    return folder


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("price ~ sold", ["sold[T.True]"]),
        ("price ~ C(rooms)", ["C(rooms)[T.2]", "C(rooms)[T.3]"]),
        ("price ~ size", ["size[T.M]", "size[T.L]"]),
    ],
)
def test_pool_types_of_pandas(cli, parquet, formula, terms):
    result = cli("pool", parquet, "--formula", formula)
    assert result.code == 0, result.err
    lines = result.out.splitlines()[2 : len(terms) + 2]
    assert [line.split()[0] for line in lines] == terms


def test_pool_wants_a_family_for_two_values(cli, parquet):
    result = cli("pool", parquet, "--formula", "sold ~ price")
    assert result.code == 1
    assert "add --family logistic" in result.err


def test_pool_tells_of_models_that_did_not_converge(cli, parquet):
    result = cli("pool", parquet, "--formula", "sold ~ tells", "--family", "logistic")
    assert result.code == 0, result.err
    assert "The models of 2 of 2 imputations did not converge" in result.err
