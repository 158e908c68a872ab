"""USING of joins that keep rows: the answers are DuckDB's, columns and their order as well."""

from __future__ import annotations

import duckdb
import pytest

from engine import Environment, NotYetSupportedError
from engine.sql.using_joins import with_using_joins
from tests.sql.conftest import Answers

QUERIES = (
    "SELECT * FROM t LEFT JOIN u USING (k)",
    "SELECT k, u.k AS other, w FROM t LEFT JOIN u USING (k) WHERE u.k IS NULL OR w > 1",
    "SELECT a.k, a.v, b.w FROM t a LEFT OUTER JOIN (SELECT k, w FROM u) AS b USING (k)",
    "SELECT k, count(b.k) AS c FROM t LEFT JOIN u b USING (k) GROUP BY k",
    "SELECT k, v, w FROM t JOIN n USING (k) LEFT JOIN u USING (k)",
    "SELECT k, a.v, u.w FROM t a LEFT JOIN n USING (k) LEFT JOIN u USING (k)",
    "SELECT * FROM (SELECT * FROM t LEFT JOIN u USING (k)) AS x",
    "SELECT * FROM t SEMI JOIN u USING (k)",
    "SELECT * FROM t ANTI JOIN u USING (k)",
    "SELECT t.v FROM t LEFT JOIN (SELECT k, w AS v FROM u) b USING (k, v)",
)
REFUSED = (
    "SELECT * FROM t RIGHT JOIN u USING (k)",
    "SELECT * FROM t FULL JOIN u USING (k)",
    "SELECT DISTINCT * FROM t LEFT JOIN u USING (k)",
    "SELECT * FROM t LEFT JOIN u USING (k) UNION SELECT 1, 2, 'a', 3",
)


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(
    answers: Answers, environment: Environment, oracle: duckdb.DuckDBPyConnection, query: str
) -> None:
    found, wanted = answers(query)
    assert found == wanted
    assert environment.sql(query).columns == oracle.sql(query).columns


@pytest.mark.parametrize("query", REFUSED)
def test_other_joins_with_using_are_refused(environment: Environment, query: str) -> None:
    with pytest.raises(NotYetSupportedError, match="USING of a LEFT, RIGHT or FULL JOIN"):
        environment.sql(query)


def test_joins_that_need_no_help_are_left() -> None:
    for text in (
        "a JOIN b USING (k)",
        "a LEFT JOIN b ON a.k = b.k",
        "a RIGHT JOIN b USING (k)",
        "a LEFT JOIN b USING (f(k))",
    ):
        assert with_using_joins(text) == text
