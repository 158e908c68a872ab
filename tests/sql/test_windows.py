"""Functions over windows in SQL: Drey's values are DuckDB's."""

from __future__ import annotations

import pytest

from engine import Environment
from engine.errors import NotYetSupportedError, PlanError
from tests.sql.conftest import Answers

#: orders have no equals where a function depends on which of them comes first
FUNCTIONS = (
    "row_number() OVER (ORDER BY v, k, s)",
    "rank() OVER (PARTITION BY k ORDER BY v)",
    "dense_rank() OVER (ORDER BY k DESC)",
    "percent_rank() OVER (ORDER BY k NULLS FIRST)",
    "cume_dist() OVER (ORDER BY k)",
    "ntile(3) OVER (ORDER BY v, k, s)",
    "lag(v) OVER (ORDER BY k, v, s)",
    "lag(v, 2, 0) OVER (ORDER BY k, v, s)",
    "lag(v, -1) OVER (ORDER BY k, v, s)",
    "lead(v, -2, 7) OVER (ORDER BY k, v, s)",
    "lead(s, 1) OVER (PARTITION BY k ORDER BY v, s)",
    "first_value(v) OVER (PARTITION BY s ORDER BY k, v)",
    "last_value(v) OVER (PARTITION BY s ORDER BY k, v ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "nth_value(v, 2) OVER (ORDER BY k, v, s)",
    "sum(v) OVER ()",
    "sum(v) OVER (PARTITION BY k)",
    "sum(v) OVER (ORDER BY k)",
    "count(*) OVER (PARTITION BY s)",
    "count(v) OVER (PARTITION BY s ORDER BY k)",
    "count(CAST(NULL AS BIGINT)) OVER (PARTITION BY s)",
    "stddev(v) OVER (PARTITION BY s)",
    "sum(v) OVER (ORDER BY k, v, s ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "min(v) OVER (ORDER BY k, v, s ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
    "max(v) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "sum(v) OVER (ORDER BY k RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
    "count(v) OVER (ORDER BY k DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)",
    "max(v) OVER (PARTITION BY k ORDER BY k RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "avg(v) OVER (PARTITION BY k + 1 ORDER BY v % 7, s, v)",
    "median(v) OVER (PARTITION BY k)",
    "quantile_cont(v, 0.25) OVER (PARTITION BY s)",
    "mode(k) OVER (PARTITION BY k + 1)",
    "len(list(v) OVER (PARTITION BY k))",
    "approx_count_distinct(v) OVER ()",
)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_value_is_duckdbs(answers: Answers, function: str) -> None:
    found, wanted = answers(f"SELECT k, v, s, {function} AS x FROM t")
    assert found == wanted


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v, s) AS p FROM t) WHERE p <= 1",
        "SELECT k, sum(sum(v)) OVER (ORDER BY k) AS running FROM t GROUP BY k",
        "SELECT k, sum(v) OVER (PARTITION BY k) AS a, rank() OVER (ORDER BY v) AS b, v - lag(v) OVER (ORDER BY v) AS c"
        " FROM t WHERE v IS NOT NULL",
        "SELECT t.k, count(v) OVER () AS c FROM t JOIN u ON t.k = u.k",
        "SELECT k, v FROM t QUALIFY rank() OVER (PARTITION BY k ORDER BY v DESC) = 1",
    ],
)
def test_windows_in_queries(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


@pytest.mark.parametrize("call", ["ntile($1)", "lag(1, $1)", "nth_value(1, $1)"])
@pytest.mark.parametrize("value", [None, "x", 1.5])
def test_a_constant_of_a_function_that_is_no_whole_number_is_named(
    environment: Environment, call: str, value: object
) -> None:
    with pytest.raises(PlanError, match="write a whole number"):
        environment.sql(f"SELECT {call} OVER (ORDER BY x) FROM (VALUES (1)) AS t (x)", params=[value])


def test_frames_of_all_values_are_refused(environment: Environment) -> None:
    with pytest.raises(NotYetSupportedError, match="of whole partitions alone"):
        environment.sql("SELECT mode(v) OVER (PARTITION BY k ORDER BY v) FROM t")
