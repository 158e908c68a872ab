"""Groups, grouping sets and aggregates: Drey's rows are DuckDB's."""

from __future__ import annotations

import pytest

from engine import Environment, PlanError
from tests.sql.conftest import Answers, rows_of

QUERIES = (
    "SELECT k * 1 AS g, count(DISTINCT k) AS n FROM t GROUP BY k * 1",
    "SELECT (k > 1 AND TRUE) AS g, count(DISTINCT k > 1) AS n FROM t GROUP BY (k > 1 AND TRUE)",
    "SELECT -(-k) AS g, k AS h, count(DISTINCT k) AS n FROM t GROUP BY CUBE (k, -(-k))",
    "SELECT CASE WHEN TRUE THEN k END AS g, k, count(*) AS n FROM t GROUP BY k, CASE WHEN TRUE THEN k END",
    "SELECT k, count(*) AS n FROM t GROUP BY k",
    "SELECT k + 1 AS j, k % 2 AS odd, sum(v * 2) AS total FROM t GROUP BY k + 1, k % 2",
    "SELECT count(DISTINCT k) AS a, count(v) AS b, count(1) AS c FROM t",
    "SELECT s, min(v) AS a, max(s) AS b FROM t GROUP BY s HAVING max(v) > 20",
    "SELECT sum(v) FILTER (WHERE k > 1) AS a, count(*) FILTER (WHERE k > 1) AS b FROM t",
    "SELECT k, stddev(v) AS a, var_samp(v) AS b FROM t GROUP BY k",
    "SELECT sum(DISTINCT v) AS a, avg(DISTINCT k) AS b, count(*) AS c, count(DISTINCT v) AS d FROM t",
    "SELECT s, sum(DISTINCT k) FILTER (WHERE v > 10) AS a, sum(v) AS b FROM t GROUP BY s",
    "SELECT s, stddev_pop(v) AS a, var_pop(v) AS b, median(v) AS c FROM t GROUP BY s",
    "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY v) AS a FROM t",
    "SELECT mode() WITHIN GROUP (ORDER BY s) AS a, mode() WITHIN GROUP (ORDER BY k) AS b FROM t",
    "SELECT round(corr(k, v), 9) AS a, covar_pop(k, v) FILTER (WHERE v > 10) AS b, covar_samp(v, k) AS c FROM t",
    "SELECT s, bit_and(k) AS a, bit_or(k) AS b, bit_xor(k) AS c, bit_xor(DISTINCT k) AS d FROM t GROUP BY s",
    "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY v DESC) AS a, count(*) AS c FROM t",
    "SELECT bool_and(v > 5) AS a, bool_or(v > 45) AS b, bool_and(v > 100) FILTER (WHERE v > 1000) AS c FROM t",
    "SELECT string_agg(s, '-' ORDER BY v, s) AS a, array_agg(v ORDER BY v DESC, s) AS b FROM t WHERE s IS NOT NULL",
    "SELECT k, array_agg(v ORDER BY v NULLS FIRST) AS a, string_agg(s, '' ORDER BY s) AS b FROM t GROUP BY k",
    "SELECT k, list(v ORDER BY v NULLS FIRST)[1] AS a, list(s ORDER BY s)[1:2] AS b FROM t GROUP BY k",
    "SELECT k FROM t GROUP BY k",
    "SELECT k, s FROM t GROUP BY CUBE (k, s)",
    "SELECT k, s, v, count(*) AS n FROM t GROUP BY ROLLUP (k, s, v)",
    "SELECT k, s, v, grouping(k, s, v) AS g, count(*) AS n FROM t GROUP BY GROUPING SETS ((k, s), (v), (k, v), ())",
    "SELECT k, sum(v) AS x FROM t GROUP BY ROLLUP (k) ORDER BY grouping(k), x DESC",
    "SELECT grouping(k) + grouping(s) AS level, count(*) AS n FROM t GROUP BY ROLLUP (k, s) HAVING count(*) > 1",
    "SELECT k, s, count(*) AS n FROM t GROUP BY ROLLUP (k, s), ROLLUP (k)",
    "SELECT k, s, v, count(*) AS n FROM t GROUP BY ROLLUP (k), v, CUBE (s), GROUPING SETS ((k), ())",
    "SELECT k, count(*) AS n FROM e GROUP BY ROLLUP (k)",
    "SELECT k FROM e GROUP BY ROLLUP (k)",
    "SELECT 1 AS one FROM (SELECT k, max(w) AS m FROM e GROUP BY CUBE (k)) AS x CROSS JOIN n",
    "SELECT 1 AS one FROM (SELECT max(w) AS m FROM e) AS x",
)


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


@pytest.mark.parametrize("dialect", [None, "postgres"])
def test_equal_grouping_sets_are_one_behind_distinct(environment: Environment, dialect: str | None) -> None:
    once = "SELECT k, s, count(*) AS n FROM t GROUP BY GROUPING SETS ((k, s), (k), (s), ())"
    several = "SELECT k, s, count(*) AS n FROM t GROUP BY DISTINCT ROLLUP (k, s), ROLLUP (s, k)"
    found, wanted = (rows_of(environment.sql(query, dialect=dialect).to_arrow()) for query in (several, once))
    assert found == wanted
    with_equal = environment.sql(several.replace("DISTINCT ", ""), dialect=dialect).to_arrow()
    assert with_equal.num_rows > len(wanted)


def test_an_aggregate_that_is_not_there_is_refused_by_name(environment: Environment) -> None:
    for query in ("nth_value(v, 2)", "approx_percentile_cont_with_weight(v, k, 0.5)"):
        with pytest.raises(PlanError, match=rf"{query[:9]}"):
            environment.sql(f"SELECT {query} AS x FROM t")


def test_first_and_last_values_by_an_order_keep_nulls(answers: Answers) -> None:
    values = "first(v ORDER BY k DESC, v) AS f, last(s ORDER BY k, v, s) AS l, arg_max(v, k) AS m, count(*) AS n"
    found, wanted = answers(f"SELECT {values} FROM t")
    assert found == wanted
