"""Words and operators of other dialects mean what they mean there, and nothing else is changed."""

from __future__ import annotations

import pytest

from tests.sql.conftest import Answers

WRITTEN = {
    "WHERE k ISNULL OR v NOTNULL": "WHERE k IS NULL OR v IS NOT NULL",
    "s RLIKE 'a+' AND s NOT REGEXP 'b'": "s ~ 'a+' AND s !~ 'b'",
    "d + INTERVAL (k + 1) DAY": "d + interval_of(CAST((k + 1) AS BIGINT), 'day')",
    "d - INTERVAL k DAYS": "d - interval_of(CAST(k AS BIGINT), 'day')",
    "d + k * INTERVAL '2 weeks'": "d + interval_of(CAST((k) * 2 AS BIGINT), 'week')",
    "d + INTERVAL 1 DAY * (k)": "d + interval_of(CAST((k) AS BIGINT), 'day')",
    "j ->> '$.a' = 'b'": "json_extract_string(CAST(j AS VARCHAR), '$.a') = 'b'",
    "k::UBIGINT, CAST(v AS HUGEINT)": "k::BIGINT UNSIGNED, CAST(v AS DECIMAL(38, 0))",
    "FROM t SEMI JOIN u ON a = b": "SELECT * FROM t LEFT SEMI JOIN u ON a = b",
    "SELECT 1_000 MINUS SELECT 2": "SELECT 1000 EXCEPT SELECT 2",
    "WITH a AS MATERIALIZED (SELECT 1)": "WITH a AS  (SELECT 1)",
    "WITH a AS NOT MATERIALIZED (SELECT 1)": "WITH a AS  (SELECT 1)",
    "SELECT k, f(a, b) FROM t ORDER BY ALL DESC LIMIT 1": "SELECT k, f(a, b) FROM t ORDER BY 1 DESC, 2 DESC LIMIT 1",
    "SELECT DISTINCT k, f(a) FROM t ORDER BY F(a) DESC, k": "SELECT DISTINCT k, f(a) FROM t ORDER BY 2 DESC, k",
}
SAME = (
    "SELECT isnull, regexp, minus FROM t",
    "isnull(k), regexp_like(s, 'a')",
    "d + INTERVAL '1' DAY - INTERVAL '2 days 3 hours'",
    "SELECT a - b, c > d, '1_0', a_1",
    "LEFT SEMI JOIN u",
    "SELECT k FROM t ORDER BY f(k)",
)
QUERIES = (
    "SELECT k FROM t WHERE v ISNULL",
    "SELECT d + INTERVAL (k) DAY, d - k * INTERVAL '3 hours' AS y FROM (SELECT k, TIMESTAMP '2024-02-28' AS d FROM t)",
    "SELECT DISTINCT upper(s) AS x, k FROM t ORDER BY k",
    "SELECT DISTINCT upper(s) FROM t ORDER BY upper(s)",
    "SELECT s, sum(v) AS v FROM t GROUP BY ALL ORDER BY ALL",
    "FROM n",
    "FROM t SELECT k + 1",
    "SELECT k FROM t SEMI JOIN u ON t.k = u.k",
    "SELECT k FROM t ANTI JOIN u USING (k)",
    "WITH a AS MATERIALIZED (SELECT 1_000 AS k) SELECT k FROM a",
)


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


def test_an_order_by_all_is_by_all_columns(answers: Answers) -> None:
    found, wanted = answers("SELECT * FROM t ORDER BY ALL LIMIT 3")
    assert found == wanted
