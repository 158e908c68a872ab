"""Conditions that the planner moves or merges to other answers are refused, and what only looks like them is not."""

from __future__ import annotations

import pytest

from engine import Environment, NotYetSupportedError
from tests.sql.conftest import Answers

REFUSED = {
    "SELECT n FROM (SELECT count(*) AS n FROM t) AS x WHERE (SELECT max(w) FROM u) < 5": "above an aggregate",
    "SELECT sum(y) AS m FROM (SELECT s, 3 AS y FROM t) AS x WHERE y * y = y HAVING count(*) > 0": "above an aggregate",
    "SELECT n FROM (SELECT 3 AS y, count(*) AS n FROM t) AS x WHERE y * y IS NOT DISTINCT FROM y": "above an aggregate",
    "SELECT n FROM (SELECT count(*) AS n FROM t) AS x WHERE n > 0 AND length('a') = 2": "above an aggregate",
    "SELECT x.n FROM (SELECT count(*) AS n FROM t) AS x JOIN t AS y ON x.n = y.k AND length(NULL) = 1": "aggregate",
}
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


@pytest.mark.parametrize("query", REFUSED)
def test_what_would_be_answered_wrongly_is_refused_by_name(environment: Environment, query: str) -> None:
    with pytest.raises(NotYetSupportedError, match=REFUSED[query]):
        environment.sql(query)


@pytest.mark.parametrize("query", ANSWERED)
def test_what_only_looks_like_it_is_answered(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted
