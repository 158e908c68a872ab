"""Queries within expressions over groups, which look at aggregates and keys of these: the answers are DuckDB's."""

from __future__ import annotations

import pytest

from engine import DataError, Environment, PlanError
from tests.sql.conftest import Answers

ANSWERED = (
    "SELECT k + 1 AS x, (SELECT max(w) FROM u WHERE u.k = t.k + 1) AS y FROM t GROUP BY k + 1",
    "SELECT k % 2 AS x, (SELECT count(*) FROM u WHERE u.k > t.k % 2) AS y FROM t GROUP BY k % 2",
    "SELECT coalesce(k, 0) AS x, EXISTS (SELECT 1 FROM u WHERE u.k = coalesce(t.k, 0)) AS y FROM t GROUP BY 1",
    "SELECT k FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM u WHERE u.w > sum(t.v))",
    "SELECT k FROM t GROUP BY k HAVING sum(v) > (SELECT min(w) FROM u WHERE u.w < max(t.v))",
    "SELECT k, (SELECT count(*) FROM u WHERE u.w > sum(t.v)) AS x FROM t GROUP BY k",
    "SELECT k, (SELECT count(*) FROM u WHERE w > sum(v)) AS x FROM t GROUP BY k",
    "SELECT k, EXISTS (SELECT 1 FROM u WHERE u.w > min(t.v) AND u.k = t.k) AS x FROM t GROUP BY k",
    "SELECT EXISTS (SELECT 1 FROM u WHERE u.w > sum(t.v)) AS x FROM t",
    "SELECT k FROM t GROUP BY k HAVING k IN (SELECT u.k FROM u WHERE u.w > count(t.v))",
    "SELECT k FROM t GROUP BY k ORDER BY (SELECT count(*) FROM u WHERE u.w < max(t.v)), k LIMIT 2",
    "SELECT k, (SELECT sum(w) + max(t.v) FROM u) AS x FROM t GROUP BY k",
    "SELECT k, (SELECT sum(w + t.k) FROM u) AS x FROM t GROUP BY k",
    "SELECT k, (SELECT sum(t.v)) AS x FROM t GROUP BY k",
    "SELECT k, (SELECT max(x) + sum(v) FROM (VALUES (1), (2)) AS o(x)) AS x FROM t GROUP BY k",
    "SELECT k, (SELECT max(w) FROM u WHERE u.k > (SELECT min(y.k) FROM u AS y WHERE y.w > sum(t.v) - 30)) AS x FROM t"
    " GROUP BY k",
    "SELECT k, (SELECT count(*) FROM u WHERE w > 10 * count(*) FILTER (t.v > 10)) AS x FROM t GROUP BY ROLLUP (k)",
    "SELECT k FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM u WHERE u.w > min(t.v) FILTER (WHERE t.v > 10))",
    "SELECT k, v, (SELECT sum(o.v) FROM t AS o WHERE o.k = t.k GROUP BY o.k HAVING sum(o.v) > min(t.v)) AS x FROM t"
    " GROUP BY k, v",
)


@pytest.mark.parametrize("query", ANSWERED)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


def test_an_aggregate_of_rows_outside_alone_is_one_of_theirs(environment: Environment) -> None:
    query = environment.sql("SELECT (SELECT max(t.v) FROM u) AS m FROM t")
    with pytest.raises(DataError, match=r"^a SQL query that stands for a value has more than one row; in a row with"):
        query.to_arrow()


def test_an_aggregate_of_the_querys_own_rows_stays_where_it_is(environment: Environment) -> None:
    with pytest.raises(PlanError, match="line 1, column 50: an aggregate in WHERE; write it in HAVING"):
        environment.sql("SELECT k, (SELECT max(w) FROM u AS t WHERE t.w > sum(t.w)) AS x FROM t GROUP BY k")
