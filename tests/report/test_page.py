"""The page holds everything, harms nobody, and looks as it should in a browser."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from grapefill import GrapeImputer, GrapeRegressor
from grapefill.errors import ConfigError
from grapefill.report import make_report, write_report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
EVIL = '<script>document.title="gone"</script>'
SETTINGS = {"max_steps": 30, "rounds": 1, "trees": 5, "trial_trees": 5}


def make_table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    size = random.normal(size=120)
    table = pd.DataFrame(
        {
            EVIL: size + 0.2 * random.normal(size=120),
            "$x^2$ & more": size**2,
            "kind": np.where(size > 0, "<b>large</b>", "small"),
            "count": random.integers(0, 5, 120).astype(float),
        }
    )
    return table.mask(random.random(table.shape) < 0.2)


@pytest.fixture(scope="module")
def page() -> str:
    table = make_table()
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    return make_report(imputer, table, title="A <table> & its holes")


class Outline(HTMLParser):
    """Collects the tags of a page, and the attributes of those that load something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_nothing_is_said_of_empty_cells_where_there_are_none(page: str) -> None:
    assert "still empty" not in page
    assert "left alone" not in page


def test_names_and_values_stay_text(page: str) -> None:
    tags = {tag for tag, _ in Outline(page).tags}
    assert tags.isdisjoint({"script", "b-large", "iframe", "link", "object"})
    assert EVIL not in page
    assert "&lt;script&gt;" in page
    assert "<h1>A &lt;table&gt; &amp; its holes</h1>" in page
    assert "$x^2$ &amp; more" in page


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    for tag, attributes in Outline(page).tags:
        for name in ("src", "href", "xlink:href", "action", "data", "srcset"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:")), (tag, target)
    assert not re.search(r"@import|url\((?!['\"]?(#|data:))", page)


def test_every_plot_has_a_text_alternative(page: str) -> None:
    plots = [attributes for tag, attributes in Outline(page).tags if tag == "svg"]
    # Errors, map, patterns, four distributions, three scatters, intervals, correlations, training.
    assert len(plots) == 13
    for attributes in plots:
        assert attributes["role"] == "img"
        assert len(attributes["aria-label"] or "") > 20


def test_plots_take_the_colours_of_the_page(page: str) -> None:
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    assert {"var(--ink)", "var(--observed)", "var(--filled)"} <= set(
        re.findall(r"var\(--\w+\)", drawn)
    )
    assert not re.findall(r"(?:fill|stroke): #(?!none)[0-9a-f]{6}", drawn)


def test_the_same_fit_gives_the_same_page(page: str) -> None:
    table = make_table()
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    again = make_report(imputer, table, title="A <table> & its holes")

    def without_time(text: str) -> str:
        return re.sub(r"<b>[^<]*</b>of training", "", text)

    assert without_time(again) == without_time(page)


def no_holes() -> Any:
    return np.random.default_rng(0).normal(size=(40, 3))


def only_categories() -> Any:
    table = pd.DataFrame({"a": list("xyzx") * 10, "b": list("uvuu") * 10})
    return table.mask(np.random.default_rng(0).random(table.shape) < 0.2)


def one_column() -> Any:
    return np.where(np.arange(30) % 4, np.arange(30.0), np.nan)[:, None]


def constant_column() -> Any:
    table = np.column_stack([np.ones(40), np.arange(40.0)])
    table[::3] = np.nan
    table[1] = [np.nan, 3.0]
    return table


def many_columns() -> Any:
    random = np.random.default_rng(0)
    table = random.normal(size=(60, 1)) + random.normal(size=(60, 70))
    return np.where(random.random(table.shape) < 0.1, np.nan, table)


@pytest.mark.parametrize(
    "make", [no_holes, only_categories, one_column, constant_column, many_columns]
)
def test_unusual_tables_have_a_report_too(make: Any) -> None:
    table = make()
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    page = make_report(imputer, table)
    assert page.rstrip().endswith("</html>")
    wide = make is many_columns
    for words in (
        "60 of 70 columns are shown, those with the most missing cells.",
        "12 of 60 patterns are shown, the most frequent ones.",
        "60 of 70 columns are shown, those with the most cells filled in.",
        "12 of 70 columns are shown.",
        "30 of 70 columns are shown.",
    ):
        assert (words in page) == wide, words
    nothing = make is no_holes
    assert ("No cell was missing, so there was nothing to fill in." in page) == nothing
    assert ("Table: what was filled in</title>" in page) != nothing


def test_cells_that_stay_empty_are_told() -> None:
    table = make_table().assign(note=[None] * 7 + [f"text {k}" for k in range(113)])
    kinds = {"note": "passthrough"}
    imputer = GrapeImputer("fast", settings=SETTINGS, kinds=kinds, random_state=0).fit(table)
    page = make_report(imputer, table)
    assert "<b>7</b>cells still empty" in page
    assert "are still empty: 7 of <b>note</b>." in page
    assert "Left alone: <b>note</b> (left as it is; 7 empty)." in page
    assert page.count("Columns that are left alone are among them.") == 2


def test_a_preset_without_held_out_cells_says_so() -> None:
    table = np.where(np.eye(30, 3, dtype=bool), np.nan, no_holes()[:30])
    imputer = GrapeImputer("paper", settings={"epochs": 5}, random_state=0).fit(table)
    assert "cannot say how good" in make_report(imputer, table)


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    table = no_holes()
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(path, imputer, table, title="Numbers")
    assert path.read_text(encoding="utf-8") == make_report(imputer, table, title="Numbers")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "light"), (1280, "dark")])
def test_in_a_browser(browser: Any, page: str, tmp_path: Path, width: int, scheme: str) -> None:
    """No error, no request, nothing wider than the screen, every plot has a size."""
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab = context.new_page()
    messages, requests = [], []
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(path.as_uri())
    assert messages == []
    assert requests == [path.as_uri()]
    assert tab.title().startswith("A <table>")
    sizes = tab.eval_on_selector_all(
        "svg",
        "plots => plots.map(p => p.getBoundingClientRect()).map(box => [box.width, box.height])",
    )
    assert len(sizes) == 13
    assert all(wide > 60 and high > 40 for wide, high in sizes)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    paper, ink = tab.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (paper, ink)]
    assert (brightness[0] < brightness[1]) == (scheme == "dark")
    context.close()


def test_only_a_fitted_imputer_has_a_report(tmp_path: Path) -> None:
    table, path = no_holes(), tmp_path / "report.html"
    regressor = GrapeRegressor("fast", settings=SETTINGS).fit(table[:, :2], table[:, 2])
    with pytest.raises(ConfigError, match=r"a GrapeImputer .* not about a GrapeRegressor"):
        write_report(path, regressor, table)
    with pytest.raises(NotFittedError, match="This GrapeImputer instance is not fitted yet"):
        write_report(path, GrapeImputer("fast"), table)
    assert not path.exists()


def test_draws_are_shown_where_they_are_asked_for(page: str) -> None:
    assert "<h2>Draws</h2>" not in page
    table = make_table()
    imputer = GrapeImputer("fast", settings=SETTINGS, random_state=0).fit(table)
    section = make_report(imputer, table, draws=3).partition("<h2>Draws</h2>")[2]
    section = section.partition("</section>")[0]
    names = [tag["aria-label"] for name, tag in Outline(section).tags if name == "svg"]
    # Of categories nothing is shown.
    assert len(names) == 3
    assert all("observed values beside 3 draws of" in str(name) for name in names)
    assert EVIL not in section
