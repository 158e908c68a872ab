"""Queries whose answers hang on nulls.

Tables: ``t(k, v, s)`` and ``u(k, w)`` with nulls in all columns, ``e(k, w)`` without rows, ``n(k)`` without nulls.

Held by: tests/sql/test_null_logic.py
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

TABLES: Final = {
    "t": pa.table(
        {
            "k": pa.array([1, 2, 2, 3, None, None, 5], pa.int64()),
            "v": pa.array([10, None, 30, 40, 50, None, None], pa.int64()),
            "s": pa.array(["a", "b", None, "", "a", "c", None]),
        }
    ),
    "u": pa.table({"k": pa.array([1, 2, None, 4, 4], pa.int64()), "w": pa.array([None, 30, 50, 1, None], pa.int64())}),
    "e": pa.table({"k": pa.array([], pa.int64()), "w": pa.array([], pa.int64())}),
    "n": pa.table({"k": pa.array([1, 2, 7], pa.int64())}),
}

QUERIES: Final = (
    "SELECT t.k, n.k FROM t CROSS JOIN n WHERE t.k NOT IN (SELECT k FROM u WHERE k > 1)",
    "SELECT k FROM n WHERE k NOT IN (SELECT u.k FROM u CROSS JOIN e)",
    "SELECT k, v FROM t WHERE k IN (SELECT k FROM u)",
    "SELECT k, v FROM t WHERE k NOT IN (SELECT k FROM u)",
    "SELECT k, v FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)",
    "SELECT k, v FROM t WHERE k NOT IN (SELECT k FROM e)",
    "SELECT k, v FROM t WHERE k IN (SELECT k FROM e)",
    "SELECT k, v FROM t WHERE k NOT IN (SELECT k FROM n)",
    "SELECT k FROM n WHERE k NOT IN (SELECT k FROM u)",
    "SELECT k FROM n WHERE k NOT IN (SELECT k FROM t WHERE k > 1)",
    "SELECT k, v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "SELECT k, v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "SELECT k, v FROM t WHERE NOT EXISTS (SELECT 1 FROM e WHERE e.k = t.k)",
    "SELECT k, v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w > t.v)",
    "SELECT k, v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w > t.v)",
    "SELECT k, v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.w > t.v)",
    "SELECT k, v FROM t WHERE k NOT IN (1, 2)",
    "SELECT k, v FROM t WHERE k NOT IN (1, NULL)",
    "SELECT k, v FROM t WHERE k IN (1, NULL)",
    "SELECT k, v FROM t WHERE NOT (k IN (1, NULL))",
    "SELECT k, v FROM t WHERE v > 10 OR k = 1",
    "SELECT k, v FROM t WHERE NOT (v > 10 OR k = 1)",
    "SELECT k, v FROM t WHERE NOT (v > 10 AND k = 2)",
    "SELECT k, v FROM t WHERE v <> 30",
    "SELECT k, v FROM t WHERE NOT v = 30",
    "SELECT k, v FROM t WHERE v BETWEEN 10 AND 40",
    "SELECT k, v FROM t WHERE v NOT BETWEEN 10 AND 30",
    "SELECT k, v FROM t WHERE v IS DISTINCT FROM 30",
    "SELECT k, v FROM t WHERE v IS NOT DISTINCT FROM NULL",
    "SELECT k, v FROM t WHERE (v > 20) IS TRUE",
    "SELECT k, v FROM t WHERE (v > 20) IS NOT TRUE",
    "SELECT k, v FROM t WHERE (v > 20) IS UNKNOWN",
    "SELECT k, v FROM t WHERE s LIKE 'a%'",
    "SELECT k, v FROM t WHERE s NOT LIKE 'a%'",
    "SELECT k, s FROM t WHERE s = ''",
    "SELECT t.k, u.w FROM t LEFT JOIN u ON t.k = u.k",
    "SELECT t.k, u.w FROM t LEFT JOIN u ON t.k = u.k AND u.w > 20",
    "SELECT t.k, u.w FROM t LEFT JOIN u ON t.k = u.k WHERE u.w IS NULL",
    "SELECT t.k AS a, u.k AS b FROM t RIGHT JOIN u ON t.k = u.k",
    "SELECT t.k AS a, u.k AS b FROM t FULL JOIN u ON t.k = u.k",
    "SELECT t.k AS a, u.k AS b FROM t FULL JOIN u ON t.k = u.k AND t.v > u.w",
    "SELECT t.k AS a, u.k AS b FROM t LEFT JOIN u ON t.v < u.w",
    "SELECT t.k AS a, e.w AS b FROM t LEFT JOIN e ON t.k = e.k",
    "SELECT t.k AS a, u.k AS b FROM t JOIN u ON t.k = u.k OR t.v = u.w",
    "SELECT k, count(*) AS n, count(v) AS c, sum(v) AS total FROM t GROUP BY k",
    "SELECT count(*) AS n, count(w) AS c, sum(w) AS total, min(w) AS least, max(w) AS most FROM e",
    "SELECT k, sum(w) AS total FROM e GROUP BY k",
    "SELECT count(*) AS n, sum(v) AS total, min(s) AS least FROM t WHERE v > 1000",
    "SELECT count(DISTINCT k) AS n, count(DISTINCT s) AS m FROM t",
    "SELECT k, count(*) FILTER (WHERE v > 20) AS n, sum(v) FILTER (WHERE v > 20) AS total FROM t GROUP BY k",
    "SELECT k, sum(v) AS total FROM t GROUP BY k HAVING sum(v) IS NULL",
    "SELECT DISTINCT k FROM t",
    "SELECT DISTINCT k, v IS NULL AS no_v FROM t",
    "SELECT k, CASE WHEN v > 20 THEN 'much' WHEN v <= 20 THEN 'little' ELSE 'unknown' END AS size FROM t",
    "SELECT k, CASE WHEN v > 20 THEN 'much' END AS size FROM t",
    "SELECT k, CASE k WHEN 1 THEN 'one' WHEN NULL THEN 'none' ELSE 'many' END AS word FROM t",
    "SELECT k, coalesce(v, k, 0) AS c, nullif(v, 10) AS d FROM t",
    "SELECT k, v + k AS a, v * NULL AS b, v = NULL AS c FROM t",
    "SELECT k, (v > 20) AND (k > 1) AS a, (v > 20) OR (k > 1) AS b, NOT (v > 20) AS c FROM t",
    "SELECT k, v FROM t WHERE v > (SELECT avg(w) FROM u)",
    "SELECT k, v FROM t WHERE v > (SELECT max(w) FROM e)",
    "SELECT k, v FROM t WHERE v > (SELECT avg(w) FROM u WHERE u.k = t.k)",
    "SELECT k, v FROM t WHERE k IS NULL OR k NOT IN (SELECT k FROM n)",
    "SELECT k FROM t UNION SELECT k FROM u",
    "SELECT k FROM t UNION ALL SELECT k FROM u",
    "SELECT k FROM t INTERSECT SELECT k FROM u",
    "SELECT k FROM t EXCEPT SELECT k FROM u",
    "SELECT k, v FROM t WHERE v = 10 OR k NOT IN (SELECT k FROM n)",
    "SELECT k, v FROM t WHERE v = 10 OR k NOT IN (SELECT k FROM u)",
    "SELECT k, v FROM t WHERE v = 10 OR k NOT IN (SELECT k FROM e)",
    "SELECT k, v FROM t WHERE v = 10 OR k IN (SELECT k FROM u)",
    "SELECT k, v FROM t WHERE v = 10 OR EXISTS (SELECT k FROM n WHERE n.k = t.k AND n.k > t.v)"
    " OR NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.v)",
    "SELECT k, v FROM t WHERE v = 10 OR NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "SELECT k FROM t WHERE v > ALL (SELECT w FROM u)",
    "SELECT k FROM t WHERE v > ALL (SELECT w FROM e)",
    "SELECT k FROM t WHERE v > ANY (SELECT w FROM u)",
    "SELECT k, s, grouping(k) AS g, sum(v) AS x FROM t GROUP BY ROLLUP (k, s)",
    "SELECT k, s, sum(v) AS x FROM t GROUP BY CUBE (k, s)",
    "SELECT k, s, grouping(k, s) AS g, count(*) AS x FROM t GROUP BY GROUPING SETS ((k), (s), ())",
    "SELECT s, count(*) AS x FROM t GROUP BY ROLLUP (s) HAVING count(*) > 1",
    "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS x (i, j)",
    "SELECT k, s FROM t ORDER BY s NULLS FIRST, k DESC NULLS LAST LIMIT 4",
    "SELECT k, s FROM t ORDER BY s DESC, k LIMIT 3",
    "SELECT k, k IN (SELECT k FROM u) AS a, v NOT IN (SELECT w FROM u) AS b, k IN (SELECT k FROM e) AS c FROM t",
    "SELECT k, CASE WHEN k IN (SELECT k FROM u) THEN 'in' WHEN k NOT IN (SELECT k FROM u) THEN 'out' ELSE '?' END AS a"
    " FROM t",
    "SELECT (k IN (SELECT k FROM u)) AND (v NOT IN (SELECT w FROM u)) AS a, k IN (SELECT k FROM n) OR v IS NULL AS b"
    " FROM t",
    "SELECT 1 IN (SELECT k FROM u) AS a, 9 IN (SELECT k FROM u) AS b, NULL IN (SELECT k FROM e) AS c",
    "SELECT k, CASE WHEN k IN (SELECT k FROM n WHERE k > (SELECT min(k) FROM n)) THEN 1 ELSE 0 END AS x FROM t",
    "SELECT sum(CASE WHEN k IN (SELECT k FROM u) THEN v ELSE -1 END) AS x,"
    " count(*) FILTER (WHERE v IN (SELECT w FROM u)) AS y FROM t",
    "SELECT k IN (SELECT k FROM u) AS m, count(*) AS c FROM t GROUP BY k IN (SELECT k FROM u)",
    "SELECT k, EXISTS (SELECT 1 FROM e) AS a, NOT EXISTS (SELECT 1 FROM u WHERE w > 5) AS b FROM t",
    "SELECT k, EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AS a,"
    " NOT EXISTS (SELECT * FROM u WHERE u.k = t.k AND w > 5) AS b FROM t",
    "SELECT k, CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.k = t.k) THEN k IN (SELECT k FROM n) END AS m FROM t",
    "SELECT t.k AS a, u.w AS b FROM t LEFT JOIN u ON t.k = u.k AND u.w > (SELECT min(w) FROM u)",
    "SELECT t.k AS a, u.w AS b FROM t FULL JOIN u ON t.k = u.k AND u.w IN (SELECT v FROM t)",
    "SELECT t.k AS a, u.w AS b FROM t RIGHT JOIN u ON t.k = u.k AND t.v NOT IN (SELECT k FROM n)",
    "SELECT t.k AS a, u.w AS b FROM t LEFT JOIN u ON t.k = u.k AND t.k + 1 IN (SELECT k FROM u)",
    "SELECT t.k AS a, u.w AS b FROM t LEFT JOIN u ON t.k = u.k AND EXISTS (SELECT 1 FROM e)",
    "SELECT k FROM t WHERE k IS NOT DISTINCT FROM v OR k = 2 AND v IS DISTINCT FROM k AND v > 3",
    "SELECT k, v FROM t WHERE k IS DISTINCT FROM CASE WHEN v > 10 THEN 2 END AND NOT v IS NOT DISTINCT FROM k"
    " OR s = 'a'",
    "SELECT k, sum(v) FILTER (WHERE v > 10) OVER (PARTITION BY k ORDER BY v, s) AS x,"
    " count(*) FILTER (WHERE v IS NULL) OVER () AS y FROM t",
)
