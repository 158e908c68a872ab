"""Names of a list of SELECT in the same SELECT are what DuckDB takes them for."""

from __future__ import annotations

import pytest

from engine import Environment, PlanError
from tests.sql.conftest import Answers

QUERIES = (
    "SELECT k + 1 AS a, a * 2 AS b FROM t",
    "SELECT k + 1 AS a, a * 2 AS b, a + b AS c FROM t WHERE b > 4 AND c < 100",
    "SELECT v AS k, k + 1 AS x FROM t",
    "SELECT k AS a, (SELECT max(w) FROM u) + a AS b FROM t",
    "SELECT sum(v) AS total, count(*) AS n, total / n AS mean FROM t GROUP BY s",
    "SELECT k AS a FROM t WHERE a > 1 UNION ALL SELECT w AS b FROM u WHERE b > 1",
    "SELECT x.c FROM (SELECT k AS a, a + 1 AS c FROM t) AS x",
    'SELECT k AS "A b", "A b" + 1 AS c FROM t',
    "SELECT year(d) AS y, y + 1 AS z FROM (SELECT DATE '2024-02-29' AS d) AS a",
)


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


@pytest.mark.parametrize(
    "query", ["SELECT a + 1 AS a FROM t", "SELECT a AS b, b AS a FROM t", "SELECT b + 1, k AS b FROM t"]
)
def test_a_name_that_stands_for_nothing_is_no_column(environment: Environment, query: str) -> None:
    with pytest.raises(PlanError, match=r"line 1, column 8: no column [ab]"):
        environment.sql(query)
