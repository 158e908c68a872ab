"""Groups, grouping sets and aggregates: Drey's rows are DuckDB's."""

from __future__ import annotations

import pytest

from tests.sql.conftest import Answers

QUERIES = (
    "SELECT k, count(*) AS n FROM t GROUP BY k",
    "SELECT k + 1 AS j, k % 2 AS odd, sum(v * 2) AS total FROM t GROUP BY k + 1, k % 2",
    "SELECT count(DISTINCT k) AS a, count(v) AS b, count(1) AS c FROM t",
    "SELECT s, min(v) AS a, max(s) AS b FROM t GROUP BY s HAVING max(v) > 20",
    "SELECT sum(v) FILTER (WHERE k > 1) AS a, count(*) FILTER (WHERE k > 1) AS b FROM t",
    "SELECT k, stddev(v) AS a, var_samp(v) AS b FROM t GROUP BY k",
    "SELECT k FROM t GROUP BY k",
    "SELECT k, s FROM t GROUP BY CUBE (k, s)",
    "SELECT k, s, v, count(*) AS n FROM t GROUP BY ROLLUP (k, s, v)",
    "SELECT k, s, v, grouping(k, s, v) AS g, count(*) AS n FROM t GROUP BY GROUPING SETS ((k, s), (v), (k, v), ())",
    "SELECT k, sum(v) AS x FROM t GROUP BY ROLLUP (k) ORDER BY grouping(k), x DESC",
    "SELECT grouping(k) + grouping(s) AS level, count(*) AS n FROM t GROUP BY ROLLUP (k, s) HAVING count(*) > 1",
    "SELECT k, count(*) AS n FROM e GROUP BY ROLLUP (k)",
)


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted
