"""Conditions that the planner would move or merge to other answers mean what is written, and so do their like."""

from __future__ import annotations

import pytest

from tests.sql.conftest import Answers

ABOVE_AN_AGGREGATE = (
    "SELECT n FROM (SELECT count(*) AS n FROM t) AS x WHERE (SELECT max(w) FROM u) < 5",
    "SELECT sum(y) AS m FROM (SELECT s, 3 AS y FROM t) AS x WHERE y * y = y HAVING count(*) > 0",
    "SELECT n FROM (SELECT 3 AS y, count(*) AS n FROM t) AS x WHERE y * y IS NOT DISTINCT FROM y",
    "SELECT n FROM (SELECT count(*) AS n FROM t) AS x WHERE n > 0 AND length('a') = 2",
    "SELECT n FROM (SELECT count(*) AS n FROM t) AS x WHERE n > 0 AND length('a') = 1",
    "SELECT x.n FROM (SELECT count(*) AS n FROM t) AS x JOIN t AS y ON x.n = y.k AND length(NULL) = 1",
    "SELECT 1 AS one FROM (SELECT count(*) AS n FROM t) AS x WHERE 1 = 2",
    "SELECT count(*) AS n FROM (SELECT count(*) AS n FROM t) AS x WHERE CAST(NULL AS BOOLEAN)",
    "SELECT t.k FROM (SELECT max(w) AS m FROM u) AS x, t WHERE 1 = 2",
    "SELECT t.k FROM (SELECT max(w) AS m FROM u) AS x JOIN t ON 'a' LIKE 'b'",
    "SELECT t.k FROM (SELECT max(w) AS m FROM u HAVING 1 = 2) AS x, t",
    "SELECT 1 AS one FROM (SELECT max(w) AS m FROM u) AS x WHERE 0 < (SELECT sum(k) FROM t WHERE k > 1000)",
    "SELECT 1 AS one FROM (SELECT max(w) AS m FROM u) AS x WHERE 0 < (SELECT sum(k) FROM t)",
    "SELECT t.k, x.m FROM t LEFT JOIN (SELECT max(w) AS m FROM u) AS x ON 1 = 2",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM (SELECT max(w) AS m FROM u) AS x WHERE 1 = 2)",
)
ANSWERED = (
    "SELECT * FROM (SELECT k FROM t UNION ALL SELECT w FROM u WHERE w NOT IN (1, NULL)) AS x WHERE k IN (30, 50)",
    "SELECT k FROM t WHERE k NOT IN (1, 2) OR k NOT IN (3, 4)",
    "SELECT k FROM t WHERE NOT (k IN (1, 2) AND k IN (3, 4))",
    "SELECT k, k IN (1, 2) AND k IN (3, 4) AS x FROM t",
    "SELECT k FROM t WHERE v > 1 OR (k IN (1, 2) AND k IN (3, 4)) IS NULL",
    "SELECT k FROM t WHERE k IN (1, 2) AND k NOT IN (3, NULL)",
    "SELECT k FROM t WHERE k IN (1, 2) AND k NOT IN (3, v)",
    "SELECT k FROM (SELECT k FROM t WHERE k NOT IN (CAST(NULL AS BIGINT), 3)) AS x WHERE k IN (1, 2)",
    "SELECT k FROM t WHERE k IN (1, 2) AND k NOT IN (nullif(1, 1), 3)",
    "SELECT x FROM (SELECT k AS x, k FROM t) AS a WHERE x IN (1, 2) AND k NOT IN (1, NULL)",
    "SELECT x FROM (SELECT k + v AS x FROM t WHERE k + v IN (11, 43)) AS a WHERE x NOT IN (11, NULL)",
    "SELECT k FROM t WHERE NOT (k IN (1, 2, NULL) AND k NOT IN (1, 5))",
    "SELECT min(v) AS m FROM t HAVING NOT (min(v) = min(v))",
    "SELECT * FROM (SELECT k, min(v) AS m FROM t GROUP BY CUBE (k, s)) AS x WHERE NOT (m = m)",
    "SELECT n FROM (SELECT count(*) AS n FROM t) AS x WHERE 1 = 1 AND (n > 3 OR 1 = 0)",
    "SELECT x FROM (SELECT k AS x, v AS y, k + v AS z FROM t) AS a"
    " WHERE x IN (1, NULL) OR y NOT IN (10) OR z IN (2, 3)",
    "SELECT k FROM t WHERE k IN (1, 2) AND k NOT IN (2, 3)",
    "SELECT k FROM t WHERE k NOT IN (1, 2) AND k NOT IN (3, NULL)",
    "SELECT k FROM t WHERE k IN (1, 2) OR k IN (3, NULL)",
    "SELECT k FROM t WHERE (k IN (1, 2) AND v > 10) OR (k IN (2, 3) AND v > 30)",
    "SELECT sum(CASE WHEN s IN ('a', 'b') THEN 1 END) AS x, sum(CASE WHEN s NOT IN ('a', 'b') THEN 1 END) AS y FROM t",
    "SELECT CASE WHEN k IN (1, v) THEN 'a' WHEN k IN (3, 5) THEN 'b' WHEN k NOT IN (7, NULL) THEN 'c' END AS x FROM t",
    "SELECT k FROM t WHERE NOT (v IN (1, 2) OR k IN (2, 3))",
    "SELECT n FROM (SELECT count(*) AS n FROM t) AS x WHERE n > (SELECT max(k) FROM u)",
    "SELECT count(*) AS n FROM t WHERE 1 = 0",
    "SELECT count(*) AS n FROM t WHERE v = NULL",
    "SELECT count(*) AS n, sum(k) AS m FROM t WHERE NOT (v = v)",
    "SELECT n FROM (SELECT count(*) AS n FROM t) AS x WHERE n > 3",
    "SELECT k FROM t WHERE v > (SELECT count(*) FROM u WHERE 1 = 0)",
    "SELECT k FROM t WHERE k IN (1, NULL)",
    "SELECT k FROM t WHERE k NOT IN (1, v)",
    "SELECT k FROM t WHERE k IN (1, -2, CAST(3 AS BIGINT)) AND k NOT IN (3, 4)",
    "SELECT k FROM t WHERE s IN ('a', 'NULL') AND s NOT IN ('b', 'IN ([')",
    "SELECT k FROM t WHERE k IN (1, NULL) OR v NOT IN (30, 40) OR k + 1 IN (3, 4)",
    "SELECT t.k AS x FROM t JOIN u ON t.k = u.k WHERE t.v NOT IN (1, NULL) OR u.w IN (30, 50)",
    "SELECT k FROM t WHERE v IN (CAST(-10.5 AS DECIMAL(9, 2)), 10) OR k IN (1, 2)",
)


@pytest.mark.parametrize("query", (*ABOVE_AN_AGGREGATE, *ANSWERED))
def test_conditions_mean_what_is_written(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted
