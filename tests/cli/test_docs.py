"""``flink-run docs`` finds pages, opens them, and says what to do where there are none."""

import webbrowser

import pytest

from engine.cli import docs
from engine.cli.main import main


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """A documentation of three pages, and the addresses that were opened."""
    for name in ("index.html", "guide/sql.html", "cookbook/index.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(docs, "documentation", lambda: tmp_path / "index.html")
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    return tmp_path, opened


@pytest.mark.parametrize(
    ("words", "file"),
    [((), "index.html"), (("guide/sql",), "guide/sql.html"), (("cookbook",), "cookbook/index.html")],
)
def test_a_page_is_opened(pages, capsys, words, file):
    folder, opened = pages
    assert main(["docs", *words]) == 0
    assert opened == [(folder / file).as_uri()]
    assert main(["docs", "--path", *words]) == 0
    assert len(opened) == 1
    assert capsys.readouterr().out.splitlines() == [str(folder / file)] * 2


def test_a_page_that_is_missing_names_similar_ones(pages, capsys):
    assert main(["docs", "guide/sqll"]) == 1
    assert main(["docs", "../index"]) == 1
    said = capsys.readouterr().err
    assert "no page 'guide/sqll'; did you mean guide/sql?" in said
    assert pages[1] == []


def test_without_documentation_the_command_says_how_to_make_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(docs, "documentation", lambda: tmp_path / "docs" / "index.html")
    assert main(["docs"]) == 1
    assert "make docs builds it" in capsys.readouterr().err
