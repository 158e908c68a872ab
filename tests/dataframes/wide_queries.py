"""Queries over two tables of all types, ``mine`` and ``theirs``, whose answers do not depend on the order of rows.

Each is a plan of SQL that programs over all types end with; ``id`` is unique and orders what needs an order.
"""

QUERIES = [
    "SELECT id, x, at FROM mine WHERE x > 1 OR x IS NULL AND at < TIMESTAMP '2024-03-30 02:00:00'",
    "SELECT s, count(*) AS c, sum(d) AS t, max(at) AS m, min(u) AS u FROM mine GROUP BY s HAVING count(*) > 1",
    "SELECT x, d, count(DISTINCT day) AS c, avg(n) AS a FROM mine GROUP BY x, d",
    "SELECT day, g, sum(w) AS t, count(x) FILTER (WHERE x > 0) AS c FROM mine GROUP BY ROLLUP (day, g)",
    "SELECT g, median(d) AS m, string_agg(s, ',' ORDER BY id) AS t, stddev(n) AS dev FROM mine GROUP BY g",
    "SELECT a.id, b.id AS other, b.at FROM mine AS a JOIN theirs AS b ON a.d = b.d AND a.id > b.id",
    "SELECT a.id, b.x, b.l FROM mine AS a LEFT JOIN theirs AS b ON a.day = b.day AND b.yes",
    "SELECT a.g, b.s, a.id, b.id AS other FROM mine AS a FULL JOIN theirs AS b ON a.g = b.g AND a.s = b.s",
    "SELECT id, st FROM mine WHERE g IN (SELECT g FROM theirs WHERE x >= 0)",
    "SELECT id FROM mine WHERE s NOT IN (SELECT s FROM theirs)",
    "SELECT id, bin FROM mine AS a WHERE NOT EXISTS (SELECT 1 FROM theirs AS b WHERE b.at = a.at AND b.d > a.d)",
    "SELECT id, d FROM mine WHERE d > (SELECT avg(d) FROM theirs)",
    "SELECT a.id, (SELECT max(b.n) FROM theirs AS b WHERE b.g = a.g) AS most FROM mine AS a",
    "SELECT id, row_number() OVER (PARTITION BY g ORDER BY at, id) AS r, "
    "sum(d) OVER (PARTITION BY s ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS t FROM mine",
    "SELECT id, lag(x, 2) OVER (ORDER BY id) AS before, dense_rank() OVER (PARTITION BY x ORDER BY day) AS r FROM mine",
    "SELECT id, CASE WHEN x > 0 THEN d ELSE w END AS v, coalesce(g, n, 0) AS c, CAST(d AS DOUBLE) / 3 AS f FROM mine",
    "SELECT id, upper(s), s LIKE 'k%' AS k, s || '!' AS e, substring(s, 2, 2) AS p, nullif(s, 'a') AS o FROM mine",
    "SELECT id, at AT TIME ZONE 'Asia/Kathmandu' AS z, extract(hour FROM at) AS h FROM mine",
    "SELECT date_trunc('month', at2) AS m, count(*) AS c FROM mine GROUP BY date_trunc('month', at2)",
    "SELECT id, at + INTERVAL '1 day' AS later, day - DATE '2024-02-01' AS days, year(at2) AS y FROM mine",
    "SELECT id, abs(x) AS a, round(d, 1) AS r, floor(x) AS f, n % 3 AS q, g * d AS p, greatest(d, w) AS t FROM mine",
    "SELECT id, try_cast(s AS BIGINT) AS i, CAST(x AS VARCHAR) AS t, CAST(g AS DECIMAL(12, 2)) AS d FROM mine",
    "SELECT s, d FROM mine UNION SELECT s, d FROM theirs",
    "SELECT x, at FROM mine EXCEPT SELECT x, at FROM theirs",
    "SELECT g, day FROM mine INTERSECT ALL SELECT g, day FROM theirs",
    "SELECT DISTINCT x, u, dur FROM mine WHERE f > 0.25 OR yes IS NULL",
    "WITH t AS (SELECT g, max(x) AS x FROM mine GROUP BY g) "
    "SELECT a.id, t.x FROM mine AS a JOIN t ON a.g = t.g ORDER BY a.id LIMIT 20",
    "SELECT id, x FROM mine ORDER BY x DESC NULLS LAST, id LIMIT 7",
    "SELECT id, t, dur, m, lt FROM mine WHERE x IS DISTINCT FROM 0.0",
    "SELECT * FROM mine WHERE bin IS NOT NULL",
]
