"""Each example has a page with its text, its command and its code."""

import re
from pathlib import Path

import pytest

from docs.generators.example_pages import example_pages
from docs.generators.example_runs import shown_run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "engine" / "examples"


def test_every_example_has_a_page_that_the_navigation_names():
    pages = example_pages()
    names = {path.stem for path in EXAMPLES.glob("*.py")} - {"__init__", "generate_instruments"}
    assert set(pages) == names | {"index"}
    navigation = (EXAMPLES.parents[1] / "docs" / "mkdocs.yml").read_text()
    for name in pages:
        assert f"examples/{name}.md" in navigation, name
        assert name == "index" or f"({name}.md)" in pages["index"]


@pytest.mark.parametrize("name", ["sessions", "skew_join"])
def test_a_page_says_what_it_shows_and_how_it_is_run(name):
    page = example_pages()[name]
    assert page.startswith("# ")
    assert f"engine/examples/{name}.py" in page
    assert "Held by" not in page
    assert "def main(" in page
    assert '"""Sessions' not in page


@pytest.mark.integration
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("latest_state", "skew_join") else pytest.mark.thorough)
        for name in example_pages()
        if name != "index"
    ],
)
def test_a_page_shows_what_the_example_reads_prints_and_plans(name):
    shown = shown_run(name)
    parts = dict(part.split("\n", 1) for part in shown.split("## ")[1:])
    assert list(parts) == ["Input", "Output", "Plan"]
    assert "rows are shown" in parts["Input"] or "rows)" in parts["Input"]
    assert re.search(r"\brows?\b", parts["Output"])
    assert "parallelism" in parts["Plan"] and " source" in parts["Plan"]
    assert "/tmp" not in shown and str(ROOT) not in shown
