"""describe, compare and ampute."""

import json

import pytest


def test_describe(cli, houses):
    result = cli("describe", houses, "--ignore", "id")
    assert result.code == 0
    assert "80 rows, 7 columns." in result.out
    assert "heating" in result.out
    assert "Little" in result.out


def test_describe_as_json(cli, houses):
    result = cli("describe", houses, "--json")
    found = json.loads(result.out)
    assert found["rows"] == 80
    assert [column["name"] for column in found["columns"]][:2] == ["id", "area"]


def test_describe_refuses_what_it_has_no_use_for(cli, houses):
    for option in (["--bounds", "area=0:"], ["--overwrite"]):
        result = cli("describe", houses, *option)
        assert result.code == 2
        assert option[0] in result.err


def test_quiet_leaves_the_answer(cli, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a,b,empty\n1,2,\n,3,\n2,4,\n")
    result = cli("describe", table, "--json", "--quiet")
    assert json.loads(result.out)["rows"] == 3
    assert not result.err


def test_compare(cli, houses):
    result = cli("compare", houses, "--methods", "mean,KNN", "--repeats", "2")
    assert result.code == 0
    assert "KNN" in result.out
    assert "were hidden, 2 times." in result.out
    assert "Use " in result.out
    found = json.loads(cli("compare", houses, "--methods", "mean", "--repeats", "1", "--json").out)
    assert found["recommended"] == "mean"


def test_compare_knows_its_methods(cli, houses):
    result = cli("compare", houses, "--methods", "guess")
    assert result.code == 1
    assert "guess" in result.err


@pytest.mark.parametrize("mechanism", ["mcar", "mar", "mnar"])
def test_ampute(cli, houses, changed, mechanism):
    holes = houses.with_name("houses-holes.csv")
    result = cli("ampute", houses, "--mechanism", mechanism, "--rate", "0.2")
    assert result.code == 0
    changes = changed(houses, holes)
    assert changes
    assert all(was and now == "" for was, now in changes)
    assert f"{len(changes)} cells were emptied." in result.out
    before = holes.read_bytes()
    cli("ampute", houses, "--mechanism", mechanism, "--rate", "0.2", "--overwrite")
    assert holes.read_bytes() == before


def test_ampute_some_columns(cli, houses):
    holes = houses.with_name("holes.csv")
    assert cli("ampute", houses, "-o", holes, "--columns", "area,price").code == 0
    old, new = (
        [line.split(",") for line in path.read_text().splitlines()] for path in (houses, holes)
    )
    touched = {
        old[0][j]
        for was, now in zip(old, new, strict=True)
        for j, (one, other) in enumerate(zip(was, now, strict=True))
        if one != other
    }
    assert touched == {"area", "price"}
    result = cli("ampute", houses, "--columns", "ara")
    assert result.code == 1
    assert "Did you mean 'area'?" in result.err
    # Three letters in common, in their order.
    result = cli("ampute", houses, "--columns", "carpet")
    assert "which is not there. The columns are 'id', 'area'" in result.err
