"""More queries whose answers hang on nulls: conditions, outer joins, aggregates and windows, in all their places.

Held by: tests/sql/test_null_forms.py
"""

from __future__ import annotations

from typing import Final

CONDITIONS: Final = (
    "v > ANY (SELECT w FROM u WHERE u.k = t.k)",
    "v >= ALL (SELECT w FROM u WHERE u.k = t.k)",
    "v <> ALL (SELECT w FROM u)",
    "v = ANY (SELECT w FROM u)",
    "NOT (v = ANY (SELECT w FROM u))",
    "NOT (v > ALL (SELECT w FROM u))",
    "NOT (v > ANY (SELECT w FROM u))",
    "v <> ANY (SELECT w FROM u)",
    "v = ALL (SELECT w FROM e)",
    "v < ANY (SELECT w FROM e)",
    "NOT (v < ANY (SELECT w FROM e))",
    "s = 'a' OR v > ALL (SELECT w FROM u)",
    "s = 'a' OR v > ANY (SELECT w FROM u)",
    "s = 'a' OR NOT v > ANY (SELECT w FROM u)",
    "v <> ALL (SELECT k FROM n)",
    "v = ANY (SELECT k FROM n) OR k IS NULL",
    "EXISTS (SELECT NULL FROM u)",
    "NOT EXISTS (SELECT NULL FROM e)",
    "EXISTS (SELECT 1 FROM u WHERE u.k IS NOT DISTINCT FROM t.k)",
    "NOT EXISTS (SELECT 1 FROM u WHERE u.k IS NOT DISTINCT FROM t.k)",
    "NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k OR u.k IS NULL)",
    "EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w IS NULL)",
    "NOT EXISTS (SELECT 1 FROM u WHERE u.w = t.v OR u.k = t.k)",
    "k IN (SELECT k FROM u WHERE k IS NULL)",
    "k NOT IN (SELECT k FROM u WHERE k IS NULL)",
    "k NOT IN (SELECT k FROM u WHERE FALSE)",
    "k NOT IN (SELECT k FROM n) AND v NOT IN (SELECT w FROM u)",
    "k NOT IN (SELECT k FROM n) OR v NOT IN (SELECT w FROM u)",
    "k IN (SELECT k FROM n) OR v IN (SELECT w FROM u)",
    "NOT (k IN (SELECT k FROM n) OR v IN (SELECT w FROM u))",
    "k > 1 AND k NOT IN (SELECT k FROM u)",
    "k = 3 AND k NOT IN (SELECT k FROM u)",
    "k > 2 AND k NOT IN (SELECT k FROM t AS x WHERE x.v > 20)",
    "v = (SELECT w FROM u WHERE u.k = 2)",
    "v = (SELECT w FROM e)",
    "v IS DISTINCT FROM (SELECT w FROM e)",
    "(SELECT w FROM e) IS NULL",
    "v > coalesce((SELECT max(w) FROM e), 20)",
    "v > (SELECT count(*) FROM u WHERE u.k = t.k)",
    "(SELECT count(*) FROM u WHERE u.k = t.k) = 0",
    "(SELECT max(w) FROM u WHERE u.k = t.k) IS NULL",
    "(SELECT sum(w) FROM u WHERE u.k = t.k) IS NOT NULL",
    "coalesce((SELECT sum(w) FROM u WHERE u.k = t.k), 0) = 0",
    "(SELECT count(w) FROM u WHERE u.k = t.k AND u.w > 5) < 1",
    "v BETWEEN k AND NULL",
    "v NOT BETWEEN NULL AND 20",
    "NOT (v BETWEEN 20 AND NULL)",
    "NULL",
    "NOT NULL",
    "v = v",
    "v <> v",
    "NOT (v = v)",
    "v = v OR v IS NULL",
    "(v = 10) = (k = 1)",
    "(v > 20) IS FALSE",
    "(v > 20) IS NOT FALSE",
    "(v > 20) IS NOT UNKNOWN",
    "v IN (10, v)",
    "v NOT IN (10, NULL)",
    "NOT (v IN (10, 30) AND s = 'a')",
    "s || 'x' = 'ax'",
    "s || NULL IS NULL",
    "concat(s, NULL) = 'a'",
    "s LIKE NULL",
    "s NOT LIKE '%b%'",
    "s ILIKE 'A'",
    "length(s) = 0 OR s IS NULL",
    "greatest(v, k) > 20",
    "least(v, k) IS NULL",
    "CASE WHEN v > 20 THEN TRUE WHEN v <= 20 THEN FALSE END",
    "NOT CASE WHEN v > 20 THEN TRUE WHEN v <= 20 THEN FALSE END",
    "CASE WHEN v IS NULL THEN k IS NULL ELSE v > 20 END",
    "CASE WHEN NULL THEN FALSE ELSE TRUE END",
    "nullif(v, 10) IS NULL",
    "nullif(k, NULL) = 1",
    "nullif(NULL, k) IS NULL",
    "coalesce(v > 20, k > 2)",
    "coalesce(v, k, 0) > 2",
    "v / nullif(k - 1, 0) > 3",
    "k IS NOT DISTINCT FROM NULL",
    "k IS DISTINCT FROM v",
)
_ON: Final = (
    "t.k = u.k AND t.v = u.w",
    "t.k = u.k AND u.w IS NULL",
    "t.k = u.k AND t.v IS NULL",
    "t.k IS NOT DISTINCT FROM u.k",
    "t.k = u.k AND (t.v > 20 OR u.w IS NULL)",
    "t.k = u.k AND FALSE",
    "t.k = u.k AND t.s = 'a'",
)
_OUTSIDE: Final = (
    "u.k IS NULL",
    "u.w IS NOT NULL",
    "t.k IS NULL AND u.k IS NULL",
    "coalesce(t.v, u.w) IS NULL",
    "t.v IS DISTINCT FROM u.w",
    "NOT (u.w > 5)",
    "u.w > 5 OR t.v > 5",
)
_AGGREGATES: Final = (
    "count(*)",
    "count(v)",
    "sum(v)",
    "avg(v)",
    "min(s)",
    "max(s)",
    "count(DISTINCT v)",
    "sum(DISTINCT v)",
    "bool_and(v > 10)",
    "bool_or(v > 10)",
    "stddev(v)",
    "sum(v) FILTER (WHERE k > 100)",
    "count(*) FILTER (WHERE v IS NULL)",
    "min(v) FILTER (WHERE NULL)",
    "sum(CASE WHEN v > 20 THEN 1 END)",
    "median(v)",
)
_GROUPS: Final = (
    "SELECT {0} AS x FROM t",
    "SELECT {0} AS x FROM t WHERE k > 100",
    "SELECT k, {0} AS x FROM t GROUP BY k",
    "SELECT k, {0} AS x FROM t WHERE k > 100 GROUP BY k",
    "SELECT k, s, grouping(k, s) AS g, {0} AS x FROM t GROUP BY ROLLUP (k, s)",
    "SELECT k, {0} AS x FROM t WHERE k > 100 GROUP BY GROUPING SETS ((k), ())",
)
_WINDOWED: Final = "sum(v) count(v) min(v) avg(v) first_value(v) last_value(v) lag(v) lead(v) rank() max(s) count(*)"
_ORDERS: Final = (
    "PARTITION BY k ORDER BY v, s",
    "ORDER BY v NULLS FIRST, k, s",
    "ORDER BY v DESC, k, s",
    "PARTITION BY s IS NULL ORDER BY k, v, s",
)
_OTHERS: Final = (
    "SELECT k FROM t WHERE k IS NULL GROUP BY k HAVING count(*) > 1",
    "SELECT k, sum(v) AS x FROM t GROUP BY CUBE (k) HAVING grouping(k) = 1",
    "SELECT k, count(*) AS x FROM t GROUP BY ROLLUP (k) HAVING k IS NULL",
    "SELECT * FROM (SELECT k, s, count(*) AS n FROM t GROUP BY CUBE (k, s)) AS x WHERE k = 2",
    "SELECT * FROM (SELECT k, s, count(*) AS n FROM t GROUP BY CUBE (k, s)) AS x WHERE k IS NULL",
    "SELECT * FROM (SELECT k, sum(v) AS n FROM t GROUP BY ROLLUP (k)) AS x WHERE n > 20",
    "SELECT DISTINCT v IS NULL AS a, k > 1 AS b FROM t",
    "SELECT k, v FROM t UNION SELECT k, w FROM u",
    "SELECT k, v FROM t EXCEPT SELECT k, w FROM u",
    "SELECT k, v FROM t INTERSECT SELECT k, w FROM u",
    "SELECT NULL AS a UNION ALL SELECT k FROM n",
    "SELECT x.k, y.k AS j FROM (SELECT k FROM t WHERE v IS NULL) AS x LEFT JOIN"
    " (SELECT k, max(w) AS m FROM u GROUP BY k) AS y ON x.k = y.k AND y.m > 5",
    "SELECT count(*) AS n FROM e LEFT JOIN t ON e.k = t.k",
    "SELECT count(*) AS n FROM t LEFT JOIN e ON e.k = t.k",
    "SELECT sum(w) AS n, count(*) AS c FROM t LEFT JOIN e ON e.k = t.k GROUP BY t.k",
    "SELECT (SELECT max(w) FROM e) AS a, (SELECT k FROM n WHERE k > 2) AS b FROM t",
    "SELECT k FROM t WHERE (SELECT w FROM u WHERE u.k = 1) IS NULL",
)
#: each is one test: a list of queries under a name
FORMS: Final[dict[str, list[str]]] = {
    "conditions": [f"SELECT k, v, s FROM t WHERE {condition}" for condition in CONDITIONS],
    "conditions negated": [f"SELECT count(*) AS n FROM t WHERE NOT ({condition})" for condition in CONDITIONS[::4]],
    "outer joins": [
        f"SELECT t.k AS a, t.v, u.k AS b, u.w FROM t {how} JOIN u ON {on}"
        for how in ("LEFT", "RIGHT", "FULL")
        for on in _ON
    ],
    "above outer joins": [
        f"SELECT t.k AS a, t.v, u.k AS b, u.w FROM t {how} JOIN u ON t.k = u.k WHERE {condition}"
        for how in ("LEFT", "RIGHT", "FULL")
        for condition in _OUTSIDE
    ],
    "aggregates": [query.format(aggregate) for aggregate in _AGGREGATES for query in _GROUPS],
    "windows": [
        f"SELECT k, v, s, {function} OVER ({order}) AS x FROM t" for function in _WINDOWED.split() for order in _ORDERS
    ],
    "others": list(_OTHERS),
}
