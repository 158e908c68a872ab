"""Queries within queries, wherever they stand and whatever they look at outside: the answers are DuckDB's."""

from __future__ import annotations

import pytest

from engine import Environment, NotYetSupportedError, PlanError
from tests.sql.conftest import Answers

REFUSED = {
    "SELECT (SELECT sum(x) FROM unnest(l) AS q (x)) FROM (SELECT [k] AS l FROM t) AS y": r"l outside, a BIGINT\[\]",
    "SELECT s FROM t WHERE s LIKE s ESCAPE '!'": "ESCAPE",
    "SELECT * FROM t, range(0, v, k)": r"line 1, column 18: the step of range\(\) of values of rows",
    "SELECT * FROM t, range(0, v, 0)": r"line 1, column 18: range\(\) with a step of 0",
    "SELECT * FROM t, range(s)": r"line 1, column 18: range\(\) of values of rows takes one to three whole numbers",
    "SELECT * FROM t, (VALUES (t.k)) AS x (a)": "line 1, column 27: no column t.k",
    "SELECT sum(k) OVER (ORDER BY DATE '2020-01-01' + v RANGE 1 PRECEDING) AS n FROM t": "INTERVAL",
    "SELECT max(k) OVER (ORDER BY s RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM t": "distances of numbers",
}
ANSWERED = (
    "SELECT k, (SELECT count(*) FROM u WHERE u.k = t.k HAVING count(*) <> 1) AS x FROM t",
    "SELECT k, (SELECT count(*) FROM u WHERE u.k = t.k HAVING count(*) IN (SELECT k - 1 FROM n)) AS x FROM t",
    "SELECT k, (SELECT count(*) FROM u WHERE u.k = t.k QUALIFY count(*) OVER () + count(*) <> 2) AS x FROM t",
    "SELECT k, (SELECT count(*) FROM u WHERE u.k = t.k HAVING count(*) > 1) AS x FROM t",
    "SELECT sum(k) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) AS n FROM t",
    "SELECT sum(k) OVER (RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES) AS n FROM t",
    "SELECT sum(v) OVER (ORDER BY k GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS n FROM t",
    "SELECT k, EXISTS (SELECT count(*) FROM u WHERE u.k = t.k GROUP BY ROLLUP (t.k)) AS x FROM t",
    "SELECT k FROM t WHERE EXISTS (SELECT u.k FROM u WHERE u.k = t.k GROUP BY ROLLUP (u.k))",
    "SELECT k, (SELECT count(*) FROM u WHERE u.k = t.k GROUP BY u.k) AS x FROM t",
    "SELECT k, (SELECT count(*) FROM u WHERE u.k = t.k GROUP BY t.k) AS x FROM t",
    (
        "SELECT t.k, x, y, g FROM t, LATERAL (SELECT t.k AS x, count(*) AS y, grouping(u.w) AS g FROM u "
        "WHERE u.k < t.k GROUP BY CUBE (t.k, u.w)) AS q"
    ),
    (
        "SELECT t.k, x, y, g FROM t, LATERAL (SELECT u.k AS x, count(*) AS y, grouping(u.k) AS g FROM u "
        "WHERE u.k = t.k GROUP BY ROLLUP (u.k)) AS q"
    ),
    "SELECT * FROM t, LATERAL (SELECT * FROM range(0, t.k))",
    "SELECT * FROM t, range(0, t.k)",
    "SELECT * FROM t, LATERAL generate_series(t.v, t.k, -2) AS g (n)",
    "SELECT * FROM t LEFT JOIN LATERAL (SELECT * FROM range(t.k - 1)) ON TRUE",
    "SELECT k, (SELECT count(*) FROM range(t.k, t.v) AS r (n), u WHERE u.w = n) AS x FROM t",
    "SELECT * FROM t, LATERAL (VALUES (t.k, 'a'), (t.v, 'b'), (1, 'c')) AS x (a, b)",
    "SELECT * FROM t LEFT JOIN LATERAL (VALUES (t.k), (t.v)) AS x (a) ON a > 2",
    "SELECT k, (SELECT max(a) FROM (VALUES (t.k), (t.v)) AS x (a)) AS y, v IN (VALUES (t.k), (30)) AS z FROM t",
    "SELECT k FROM t WHERE upper('a') NOT IN (SELECT s FROM t)",
    "SELECT k FROM t WHERE 'a AND t.v' NOT IN (SELECT s FROM t)",
    "SELECT k FROM t WHERE (CAST(99 AS BIGINT) IN (SELECT k FROM u)) = FALSE",
    "SELECT k FROM t WHERE v > 1 AND NOT (10 + 2 IN (SELECT k FROM u))",
    "SELECT k FROM t WHERE 99 NOT IN (SELECT k FROM u)",
    (
        "SELECT k, sum(v) OVER (ORDER BY CAST(v AS DOUBLE)) AS m, sum(k) OVER (PARTITION BY s ORDER BY "
        "CAST(k AS SMALLINT) RANGE BETWEEN 2 PRECEDING AND 0 FOLLOWING) AS n, count(*) OVER (ORDER BY k "
        "RANGE 1 PRECEDING) AS c FROM t"
    ),
    "SELECT k FROM t WHERE 2 IN (SELECT k FROM u) AND v > 10",
    "SELECT k FROM t WHERE v IN (SELECT max(w) FROM u)",
    "SELECT k FROM t WHERE v NOT IN (SELECT max(w) FROM u LIMIT 1)",
    "SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) NOT IN (SELECT k FROM n)",
    "SELECT k FROM t WHERE k + 1 NOT IN (SELECT k FROM n)",
    "SELECT k FROM t WHERE CASE WHEN v > 10 THEN 2 ELSE k END NOT IN (SELECT k FROM n)",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k LIMIT 1)",
    "SELECT k FROM t WHERE k IN (SELECT k FROM u WHERE w > (SELECT min(v) FROM t AS x WHERE x.k = u.k))",
    "SELECT k FROM t WHERE v IN (SELECT w FROM u WHERE u.k = t.k)",
    "SELECT k, 'LIKE ESCAPE; INTERSECT ALL' AS s FROM t /* TABLESAMPLE */ -- GROUPS BETWEEN",
    "SELECT k FROM t WHERE k IS NULL OR k NOT IN (SELECT k FROM n)",
    "SELECT k FROM t WHERE NOT (k IN (SELECT k FROM u) OR s IS NULL)",
    "SELECT k FROM t WHERE EXISTS (SELECT k FROM u WHERE u.k = t.k GROUP BY k) AND v > (SELECT avg(w) FROM u)",
    "SELECT rank() OVER w AS n FROM t WINDOW w AS (PARTITION BY k ORDER BY v)",
    "WITH a AS (SELECT k FROM t), b AS (SELECT k FROM u) SELECT a.k FROM a JOIN b ON a.k = b.k",
    "SELECT sum(v) FILTER (WHERE v > 10) AS n, count(DISTINCT s) AS m FROM t",
    "SELECT k FROM t WHERE k BETWEEN 1 AND v IS DISTINCT FROM TRUE AND v = 10",
    "SELECT max(k) OVER (ORDER BY CAST(v AS DOUBLE) RANGE BETWEEN 0.5 PRECEDING AND CURRENT ROW) AS n FROM t",
    "SELECT count(*) OVER (ORDER BY CAST(v AS DOUBLE) RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM t",
    "SELECT count(*) OVER (ORDER BY v / 2.0 RANGE BETWEEN CURRENT ROW AND 1 FOLLOWING) AS n FROM t",
    (
        "SELECT sum(k) OVER (ORDER BY k RANGE 1 PRECEDING) AS m, sum(v) OVER (ORDER BY CAST(v AS DECIMAL(9, "
        "2)) RANGE BETWEEN 20 PRECEDING AND 0 FOLLOWING) AS n FROM t"
    ),
    "SELECT bool_or(v > 5) FILTER (WHERE v > 1) OVER (ORDER BY v) AS n FROM t",
    "SELECT count(DISTINCT s) OVER () AS n FROM t",
    "SELECT rank() OVER (w ORDER BY v) AS n FROM t WINDOW w AS (PARTITION BY k)",
    "SELECT rank() OVER z AS n FROM t WINDOW w AS (PARTITION BY k), z AS (w ORDER BY v)",
    "SELECT k FROM t WHERE (k IN (SELECT k FROM u)) IS NULL",
    "SELECT k FROM t WHERE (k IN (SELECT k FROM u) OR v = 1) IS NULL",
    "SELECT k FROM t WHERE (k IN (SELECT k FROM u) OR v = k) IS NULL",
    "SELECT k FROM t WHERE (k NOT IN (SELECT k FROM u)) IS NOT NULL",
    "SELECT k FROM t WHERE coalesce(k IN (SELECT k FROM u), TRUE)",
    "SELECT k FROM t WHERE (k IN (SELECT k FROM u)) IS DISTINCT FROM TRUE",
    "SELECT k FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.k = t.k)",
    "SELECT k FROM t WHERE v > (SELECT avg(w) FROM u) AND NOT EXISTS (SELECT max(w) FROM u WHERE u.k = t.k)",
    "SELECT k FROM t WHERE 1 IN (SELECT row_number() OVER (ORDER BY w) FROM u WHERE u.k = t.k)",
    (
        "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM (SELECT rank() OVER (ORDER BY w) AS r FROM u WHERE u.k "
        "= t.k) AS x WHERE r > 1)"
    ),
    "SELECT k FROM t WHERE 0 IN (SELECT count(*) FROM u WHERE u.k = t.k)",
    "SELECT k FROM t WHERE 0 >= ANY (SELECT count(*) FROM u WHERE u.k = t.k)",
    "SELECT k FROM t WHERE 0 = ALL (SELECT count(*) FROM u WHERE u.k = t.k)",
    "SELECT k FROM t WHERE v IN (SELECT max(w) FROM u WHERE u.k = t.k HAVING count(*) < 3)",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k HAVING count(*) = 0)",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k OFFSET 1)",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k LIMIT 1 OFFSET 1)",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k LIMIT 0)",
    "SELECT k FROM t WHERE v IN (SELECT w FROM u WHERE u.k = t.k LIMIT 1)",
    "SELECT k FROM t WHERE v > ALL (SELECT w FROM u WHERE u.k = t.k ORDER BY w OFFSET 1)",
    "SELECT k FROM t WHERE v > (SELECT max(w) FROM (SELECT w FROM u WHERE u.k = t.k LIMIT 1) AS x)",
    "SELECT k, (SELECT max(w) FROM u WHERE u.k <> t.k) AS x FROM t",
    "SELECT k, (SELECT count(*) FROM u WHERE u.k < t.k AND u.w > t.v) AS x FROM t",
    "SELECT k, (SELECT sum(w) FROM u WHERE u.k = t.k OR t.k IS NULL) AS x FROM t",
    "SELECT k, (SELECT w FROM u WHERE u.k = t.k ORDER BY w DESC LIMIT 1) AS x FROM t",
    "SELECT k, (SELECT w FROM u WHERE u.k >= t.k ORDER BY w, k LIMIT 1 OFFSET 1) AS x FROM t",
    "SELECT k, EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w > t.v) AS x FROM t",
    ("SELECT k, v IN (SELECT w FROM u WHERE u.k = t.k) AS x, v NOT IN (SELECT w FROM u WHERE u.k <> t.k) AS y FROM t"),
    ("SELECT k, v > ALL (SELECT w FROM u WHERE u.k = t.k) AS x, v < ANY (SELECT w FROM u WHERE u.k > t.k) AS y FROM t"),
    "SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) > (SELECT count(*) FROM u WHERE u.k = t.k)",
    "SELECT k, (SELECT max(w) FROM u WHERE u.k = t.k) AS m, sum(v) AS s FROM t GROUP BY k",
    "SELECT k, sum((SELECT max(w) FROM u WHERE u.k = t.k)) AS s FROM t GROUP BY k",
    "SELECT k FROM t ORDER BY (SELECT max(w) FROM u WHERE u.k = t.k), v LIMIT 3",
    "SELECT k, sum((SELECT count(*) FROM u WHERE u.k = t.k)) OVER (ORDER BY v, s) AS x FROM t",
    "SELECT k, (SELECT sum(x.w) FROM (SELECT w FROM u WHERE u.k = t.k ORDER BY w LIMIT 2) AS x) AS s FROM t",
    "SELECT k, (SELECT count(DISTINCT w) FROM u WHERE u.k <= t.k) AS s FROM t",
    ("SELECT k, (SELECT max(r) FROM (SELECT rank() OVER (ORDER BY w) AS r FROM u WHERE u.k = t.k) AS x) AS s FROM t"),
    (
        "SELECT k, (SELECT max(y) FROM (SELECT w AS y FROM u WHERE u.k = t.k UNION ALL SELECT k FROM n WHERE "
        "n.k > t.k) AS x) AS s FROM t"
    ),
    "SELECT k, (SELECT max(w) FROM u LEFT JOIN n ON u.k = n.k AND n.k > t.k WHERE n.k IS NULL) AS s FROM t",
    ("SELECT k, (SELECT count(*) FROM u WHERE EXISTS (SELECT 1 FROM n WHERE n.k = u.k AND n.k <> t.k)) AS s FROM t"),
    "SELECT k, (SELECT count(*) + t.v FROM u WHERE u.k = t.k) AS s FROM t",
    "SELECT k, (SELECT t.k + 1) AS s FROM t",
    "SELECT k, (SELECT max(w) FROM u WHERE u.k = t.k HAVING count(*) > 1) AS s FROM t",
    "SELECT t.k, x.w FROM t, LATERAL (SELECT w FROM u WHERE u.k = t.k ORDER BY w LIMIT 1) AS x",
    "SELECT t.k, x.c FROM t LEFT JOIN LATERAL (SELECT count(*) AS c FROM u WHERE u.k = t.k) AS x ON TRUE",
    (
        "SELECT t.k, x.w, y.z FROM t, LATERAL (SELECT w FROM u WHERE u.k > t.k) AS x, LATERAL (SELECT x.w + "
        "t.k AS z) AS y"
    ),
    "SELECT t.k, u.w FROM t LEFT JOIN u ON t.k = u.k AND u.w IN (SELECT max(k) * 10 FROM n)",
    "SELECT k FROM t WHERE (SELECT max(w) FROM u WHERE u.k = t.k) > 5 OR k IS NULL",
    "SELECT k FROM t WHERE CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.k = t.k) THEN v > 10 ELSE v IS NULL END",
    "SELECT k FROM t WHERE k IN (SELECT k FROM u INTERSECT SELECT k FROM n WHERE n.k <> t.v)",
    "SELECT k, NOT EXISTS (SELECT 1 FROM u WHERE u.w >= ALL (SELECT n.k FROM n WHERE n.k = t.k OR n.k > 1)) AS x"
    " FROM t",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k IN (SELECT n.k FROM n WHERE n.k < ANY (SELECT w"
    " FROM u AS y WHERE y.k = t.k AND y.k <= u.k)))",
    "SELECT k, (SELECT max(w) FROM u WHERE u.k = t.k AND u.k = t.v) AS x FROM t",
)


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_not_there_is_refused_by_name(environment: Environment, query: str) -> None:
    with pytest.raises((NotYetSupportedError, PlanError), match=REFUSED[query]):
        environment.sql(query)


@pytest.mark.parametrize("query", ANSWERED)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


@pytest.mark.parametrize("constant", ["2.5", "-2.5", "2.50", "10.49", "1 + 1.5", "2.5e0", "1e-1"])
def test_an_integer_of_a_constant_is_rounded(answers: Answers, constant: str) -> None:
    found, wanted = answers(f"SELECT CAST({constant} AS INT) AS x")
    assert found == wanted


def test_an_integer_of_a_whole_constant_is_that(environment: Environment) -> None:
    found = environment.sql("SELECT CAST(2.0 AS INT) AS x, CAST(round(2.5) AS INT) AS y").to_arrow()
    assert found.to_pydict() == {"x": [2], "y": [3]}
