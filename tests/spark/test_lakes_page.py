"""The page on the way from a database to a lake, on a real PostgreSQL and with a session of Spark."""

import pytest

from engine import Environment
from tests.docs.pages import blocks_of
from tests.postgresql_server import postgresql
from tests.tidy.imports import ROOT

pytest.importorskip("pyspark")
pytest.importorskip("psycopg")
pytest.importorskip("deltalake")

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]
PAGE = ROOT / "docs/pages/guide/lakes.md"


def test_the_page_holds_on_postgresql_and_with_spark(spark, tmp_path, monkeypatch, capsys):
    blocks = blocks_of(PAGE.read_text(encoding="utf-8"), "python")
    assert sum(bool(block.output) for block in blocks) == 3
    monkeypatch.chdir(tmp_path)
    with postgresql() as uri:
        namespace = {"__name__": "__main__", "spark": spark}
        try:
            for block in blocks:
                # the page says that the URI is all that changes
                code = block.code.replace('"sqlite://shop.db"', repr(uri))
                code = code.replace("import sqlite3", "import psycopg")
                exec(code.replace('sqlite3.connect("shop.db")', f"psycopg.connect({uri!r})"), namespace)
                printed = capsys.readouterr().out
                if block.output is not None:
                    assert printed == block.output
            assert "sqlite" not in str(namespace["env"].read_database("orders", uri).explain())
        finally:
            for value in namespace.values():
                if isinstance(value, Environment):
                    value.close()
