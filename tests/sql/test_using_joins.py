"""USING of joins that keep rows: the answers are DuckDB's, columns and their order as well."""

from __future__ import annotations

import duckdb
import pytest

from engine import Environment
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
    "SELECT * FROM t RIGHT JOIN u USING (k)",
    "SELECT * FROM t FULL JOIN u USING (k)",
    "SELECT k, v, w FROM t FULL OUTER JOIN u USING (k) WHERE k > 1 OR k IS NULL ORDER BY k, v, w",
    "SELECT k + 1 AS x, t.k AS one, u.k AS other FROM t FULL JOIN u USING (k)",
    "SELECT k, count(*) AS c, count(w) AS d FROM t FULL JOIN u USING (k) GROUP BY k HAVING count(*) > 0 ORDER BY k",
    "SELECT k, v, w FROM t FULL JOIN n USING (k) FULL JOIN u USING (k)",
    "SELECT k, v, w FROM t LEFT JOIN n USING (k) FULL JOIN u USING (k)",
    "SELECT k, w FROM n FULL JOIN t USING (k) LEFT JOIN u USING (k)",
    "SELECT q.k FROM (SELECT k, v FROM t RIGHT JOIN u USING (k)) AS q WHERE q.v IS NULL",
    "SELECT max(k) OVER (PARTITION BY k) AS m, CASE WHEN k > 1 THEN 'x' END AS c FROM t FULL JOIN u USING (k)",
    "SELECT k FROM t RIGHT JOIN u b USING (k) UNION SELECT k FROM n",
    "SELECT * FROM t FULL JOIN (SELECT k, w AS v FROM u) b USING (k, v)",
    "SELECT k FROM t NATURAL FULL JOIN u",
    "SELECT * FROM t AS a NATURAL LEFT JOIN u AS b",
    "SELECT * FROM t a NATURAL RIGHT JOIN n b WHERE k > 0",
    "SELECT * FROM t NATURAL JOIN u",
)
#: the same name twice: DuckDB calls the second one k_1 in the end only
TWICE = ("SELECT a.k, b.k FROM t a LEFT JOIN u b USING (k)", "SELECT a.k, b.k FROM t a FULL JOIN u b USING (k)")
OTHERS = (
    "SELECT * EXCLUDE (v) FROM t RIGHT JOIN u USING (k)",
    "SELECT * FROM (SELECT k FROM t) a NATURAL FULL JOIN u",
    "SELECT DISTINCT * FROM t LEFT JOIN u USING (k)",
    "SELECT * FROM t LEFT JOIN u USING (k) UNION SELECT 1, 2, 'a', 3",
)


@pytest.mark.parametrize("query", (*QUERIES, *OTHERS))
def test_the_answer_is_duckdbs(
    answers: Answers, environment: Environment, oracle: duckdb.DuckDBPyConnection, query: str
) -> None:
    found, wanted = answers(query)
    assert found == wanted
    assert environment.sql(query).columns == oracle.sql(query).columns


@pytest.mark.parametrize("query", TWICE)
def test_both_keys_are_there_by_their_names(answers: Answers, environment: Environment, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted
    assert environment.sql(query).columns == ["k", "k_1"]
