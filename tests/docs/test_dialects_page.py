"""The page of dialects has every form that is compared."""

from docs.generators.dialects_page import dialects_page
from tests.sql.dialects import postgres_rows, spark_rows


def test_the_page_has_every_form_once():
    page = dialects_page().splitlines()
    for rows in (postgres_rows, spark_rows):
        assert all(one in page for one in (*rows.EXPRESSIONS, *rows.AGGREGATES, *rows.QUERIES))
        assert {*rows.EXPRESSIONS, *rows.AGGREGATES, *rows.QUERIES} >= rows.REFUSED
