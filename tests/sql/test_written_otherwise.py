"""Forms that the planner does not read are written in words that it does read, and nothing else is changed."""

from __future__ import annotations

import pytest

from tests.sql.conftest import Answers

WRITTEN = {
    "a IS DISTINCT FROM b AND c": "(a IS DISTINCT FROM b ) AND c",
    "WHERE NOT x + (1) IS NOT DISTINCT FROM f(a, b) OR c": "WHERE NOT (x + (1) IS NOT DISTINCT FROM f(a, b) ) OR c",
    "ON CASE WHEN a THEN 1 END IS DISTINCT FROM CASE b WHEN 1 THEN 2 END AND c": (
        "ON (CASE WHEN a THEN 1 END IS DISTINCT FROM CASE b WHEN 1 THEN 2 END ) AND c"
    ),
    "s LIKE 'a!_b!!%' ESCAPE '!' AND x": r"s LIKE 'a\_b!%' AND x",
    r"s NOT ILIKE '50$%\' ESCAPE '$'": r"s NOT ILIKE '50\%\\'",
    "s SIMILAR TO '(a|b)%_.c'": r"s ~ '^(?s:(a|b).*.\.c)$'",
    "s NOT SIMILAR TO 'x#%it''s' ESCAPE '#'": r"s !~ '^(?s:x\%it''s)$'",
    "sum(v) FILTER (WHERE k > 1) OVER w": "sum(CASE WHEN  k > 1 THEN v END)  OVER w",
    "count(*) FILTER (WHERE k > 1) OVER (ORDER BY k)": "count(CASE WHEN  k > 1 THEN 1 END)  OVER (ORDER BY k)",
    "OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY": "OFFSET 2  LIMIT 3",
    "FETCH FIRST ROW ONLY": "LIMIT 1",
}
SAME = (
    "WHERE a IS DISTINCT FROM b",
    "WHERE (a IS DISTINCT FROM b) AND c",
    "SELECT a IS DISTINCT FROM b, c AND d",
    "WHERE a BETWEEN 1 AND b IS DISTINCT FROM c AND d",
    "SELECT ' IS DISTINCT FROM b AND c' -- SIMILAR TO 'x'",
    "s LIKE t.p ESCAPE '!'",
    "sum(v) FILTER (WHERE k > 1)",
    "sum(DISTINCT v) FILTER (WHERE k > 1) OVER w",
    "sum(v) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
)
QUERIES = (
    "SELECT k, s FROM t WHERE s LIKE '!a' ESCAPE '!' OR s LIKE '#_' ESCAPE '!'",
    "SELECT k, v FROM t ORDER BY k, v, s OFFSET 2 ROWS FETCH FIRST 2 ROWS ONLY",
    "SELECT k, s SIMILAR TO '(a|b)' AS x, s NOT SIMILAR TO '[bc]' AS y FROM t",
)


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


def test_a_query_that_looks_outside_on_all_sides_of_or_is_a_join(answers: Answers) -> None:
    conditions = "(u.k = t.k AND u.w > 40) OR (u.k = t.k AND u.w < 31)"
    found, wanted = answers(f"SELECT t.k FROM t WHERE (SELECT count(*) FROM u WHERE {conditions}) > 0")
    assert found == wanted
