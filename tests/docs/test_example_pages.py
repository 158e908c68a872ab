"""Each example has a page with its text, its command and its code."""

from pathlib import Path

import pytest

from docs.generators.example_pages import example_pages

EXAMPLES = Path(__file__).resolve().parents[2] / "engine" / "examples"


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
