"""The code in the README and in the pages of docs runs, as it stands, from top to bottom."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)

# Shell and text are shown, not run; a block with any other label is a mistake to be noticed.
NOT_RUN = {"bash", "text"}


def blocks(text):
    """Yield (line number, label, code) of each fenced block."""
    for match in re.finditer(r"^```(.*)\n([\s\S]*?)^```[ \t]*$", text, flags=re.MULTILINE):
        yield text.count("\n", 0, match.start()) + 2, match[1].strip(), match[2]


@each_page
def test_every_block_has_a_known_label(page):
    found = list(blocks(page.read_text(encoding="utf-8")))
    assert {label for _, label, _ in found} <= {"python", *NOT_RUN}
    # What is made of results has none.
    assert any(label == "python" for _, label, _ in found) is (page.name != "benchmarks.md")
    fences = re.findall(r"^\s*(?:```|~~~)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(fences) == 2 * len(found), "a fence is indented, not closed, or made of ~~~"


@each_page
@pytest.mark.slow
def test_python_blocks_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # One namespace for all: a reader carries on from the block above.
    namespace = {"__name__": "__readme__"}
    for line, label, code in blocks(page.read_text(encoding="utf-8")):
        if label == "python":
            # Blank lines in front give tracebacks the page's own line numbers.
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)


def test_blocks_are_found_as_written():
    text = "a\n```python\nx = 1\n\ny = 2\n```\nb\n```bash\nls\n```\n"
    assert list(blocks(text)) == [(3, "python", "x = 1\n\ny = 2\n"), (9, "bash", "ls\n")]
