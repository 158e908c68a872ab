"""The recipes of the cookbook print what their pages show, and return what DuckDB computes from the same tables."""

import datetime
import re

import duckdb
import pytest

from engine import DataSet
from tests.docs.cookbook_oracles import ORACLES
from tests.docs.pages import FOLDER, blocks_of

pytestmark = [pytest.mark.integration, pytest.mark.quick]

COOKBOOK = FOLDER / "cookbook"


def recipes(page):
    """The first block of a page, and the block of each of its recipes."""
    text = (COOKBOOK / f"{page}.md").read_text(encoding="utf-8")
    head, *sections = re.split(r"(?m)^## ", text)
    (first,) = blocks_of(head, "python")
    return first.code, {section.partition("\n")[0]: blocks_of(section, "python") for section in sections}


def plain(value):
    """A value as both engines may be asked for it."""
    if isinstance(value, datetime.datetime):
        value = value.replace(tzinfo=None)
        return value.date() if value.time() == datetime.time() else value
    return round(value, 9) if isinstance(value, float) else value


def ordered(rows):
    return sorted((tuple(plain(value) for value in row) for row in rows), key=repr)


def expected(query, namespace):
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in set(re.findall(r"\w+", query)):
            if isinstance(namespace.get(name), DataSet):
                connection.register(name, namespace[name].to_arrow())
        return ordered(connection.execute(query).fetchall())


@pytest.mark.parametrize("page", ORACLES)
def test_each_recipe_prints_what_it_shows_and_returns_what_duckdb_computes(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first, sections = recipes(page)
    assert sections.keys() == ORACLES[page].keys()
    namespace = {"__name__": "__main__"}
    exec(first, namespace)
    with namespace["env"]:
        for title, (block,) in sections.items():
            exec(compile(block.code, title, "exec"), namespace)
            assert capsys.readouterr().out == block.output, title
            for name, query in ORACLES[page][title].items():
                rows = ordered(tuple(row.values()) for row in namespace[name].to_arrow().to_pylist())
                assert rows == expected(query, namespace), f"{title}: {name}"


def test_the_cookbook_has_forty_short_recipes():
    assert {path.stem for path in COOKBOOK.glob("*.md")} == {*ORACLES, "index"}
    found = {page: recipes(page)[1] for page in ORACLES}
    assert sum(len(sections) for sections in found.values()) >= 40
    index = (COOKBOOK / "index.md").read_text(encoding="utf-8")
    for page, sections in found.items():
        for title, (block,) in sections.items():
            assert block.code.count("\n") <= 36, title
            anchor = re.sub(r"[\s-]+", "-", title.lower())
            assert f"[{title}]({page}.md#{anchor})" in index, title
