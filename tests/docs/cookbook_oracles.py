"""What each recipe of the cookbook returns, as DuckDB computes it from the same tables.

ORACLES: page -> recipe -> {data set of the recipe: query over its other data sets}
"""

EVENTS = {
    "Sessions": {
        "sessions": """
            WITH marked AS (
                SELECT *, coalesce("at" - lag("at") OVER w >= INTERVAL 30 MINUTES, true) AS begins
                FROM visits WINDOW w AS (PARTITION BY "user" ORDER BY "at")
            ), numbered AS (
                SELECT *, count(*) FILTER (begins) OVER (PARTITION BY "user" ORDER BY "at") AS session FROM marked
            )
            SELECT "user", session, min("at"), max("at"), count(*) FROM numbered GROUP BY ALL"""
    },
    "Funnel": {
        "funnel": """
            WITH firsts AS (PIVOT steps ON step IN ('visit', 'basket', 'payment') USING min("at") GROUP BY "user")
            SELECT count(visit), count(*) FILTER (basket > visit),
                count(*) FILTER (payment > basket AND basket > visit) FROM firsts"""
    },
    "Retention": {
        "retention": """
            WITH weeks AS (
                SELECT "user", (day - min(day) OVER (PARTITION BY "user")) // 7 AS week FROM logins
            ), counted AS (SELECT week, count(DISTINCT "user") AS users FROM weeks GROUP BY week)
            SELECT week, users, round(users / (SELECT max(users) FROM counted), 2) FROM counted"""
    },
    "Cohorts": {
        "cohorts": """
            WITH known AS (
                SELECT *, min(date_trunc('month', day)) OVER (PARTITION BY customer) AS cohort FROM orders
            ), counted AS (SELECT cohort, paid, datediff('month', cohort, day) AS after FROM known)
            SELECT cohort, sum(paid) FILTER (after = 0), sum(paid) FILTER (after = 1), sum(paid) FILTER (after = 2)
            FROM counted GROUP BY cohort"""
    },
    "Time buckets": {
        "buckets": 'SELECT time_bucket(INTERVAL 15 MINUTES, "at") AS bucket, avg(load), count(*) FROM loads GROUP BY 1'
    },
    "A rolling mean over days with gaps": {
        "rolling": """
            SELECT day, price, (SELECT avg(price) FROM prices o WHERE o.day BETWEEN p.day - 2 AND p.day),
                (SELECT count(*) FROM prices o WHERE o.day BETWEEN p.day - 2 AND p.day) FROM prices p"""
    },
    "Gaps and islands": {
        "islands": """
            WITH begins AS (SELECT day FROM work WHERE day - 1 NOT IN (SELECT day FROM work)),
            ends AS (SELECT day FROM work WHERE day + 1 NOT IN (SELECT day FROM work)),
            runs AS (SELECT b.day AS first, (SELECT min(day) FROM ends e WHERE e.day >= b.day) AS last FROM begins b)
            SELECT first, last, last - first + 1 FROM runs"""
    },
    "A calendar with empty days": {
        "filled": """
            SELECT d::DATE, coalesce(sum(price), 0)
            FROM generate_series(DATE '2026-03-01', DATE '2026-03-04', INTERVAL 1 DAY) s(d)
            LEFT JOIN sales ON day = d GROUP BY d"""
    },
    "Intervals that overlap": {
        "clashes": """
            SELECT a.room, a.id, b.id FROM bookings a JOIN bookings b USING (room)
            WHERE a.id < b.id AND least(a."end", b."end") > greatest(a.begin, b.begin)"""
    },
    "The log of a web server": {
        "by_path": r"""
            WITH lines AS (
                SELECT unnest(string_split(trim(content, chr(10)), chr(10))) AS l FROM read_text('access.log')
            ),
            fields AS (
                SELECT nullif(regexp_extract(l, '"\w+ (\S+) ', 1), '') AS path,
                    try_cast(regexp_extract(l, '" (\d+) (\d+)$', 1) AS INT) AS status,
                    try_cast(regexp_extract(l, '" (\d+) (\d+)$', 2) AS INT) AS size,
                    try_strptime(regexp_extract(l, '\[(\S+) \+0000\]', 1), '%d/%b/%Y:%H:%M:%S') AS "at" FROM lines
            )
            SELECT path, count(*), count(*) FILTER (status >= 500), sum(size), max("at") FROM fields GROUP BY path"""
    },
}

VERSIONS = {
    "The latest version of each row": {
        "latest": 'SELECT id, max("at"), arg_max(city, "at") FROM versions GROUP BY id',
    },
    "A slowly changing dimension": {
        "history": """
            WITH changed AS (
                SELECT * FROM changes QUALIFY city IS DISTINCT FROM lag(city) OVER (PARTITION BY id ORDER BY day)
            )
            SELECT id, city, day, lead(day) OVER (PARTITION BY id ORDER BY day) FROM changed"""
    },
    "Join with the version that was valid": {
        "with_city": """
            SELECT o."order", o.day, c.city FROM orders o ASOF LEFT JOIN changes c ON o.id = c.id AND o.day >= c.day"""
    },
    "Merge of change data": {
        "merged": """
            WITH last AS (SELECT sku, arg_max(op, seq) AS op, arg_max(pieces, seq) AS pieces FROM feed GROUP BY sku)
            SELECT * FROM stock WHERE sku NOT IN (SELECT sku FROM last)
            UNION ALL SELECT sku, pieces FROM last WHERE op <> 'D'"""
    },
    "Late data": {
        "corrected": "SELECT day, sum(price) FROM (FROM events UNION ALL FROM late) GROUP BY day",
    },
    "Incremental export": {"exported": "FROM source"},
    "As-of join": {
        "priced": """
            SELECT t."at", t.symbol, t.size, CASE WHEN t."at" - q."at" <= 5 THEN bid END
            FROM trades t ASOF LEFT JOIN quotes q ON t.symbol = q.symbol AND q."at" <= t."at" """
    },
    "Currency conversion": {
        "converted": """
            SELECT p.day, currency, amount, coalesce(rate, 1), round(amount * coalesce(rate, 1), 2)
            FROM payments p ASOF LEFT JOIN rates r USING (currency, day)"""
    },
    "Validity of rates": {
        "without_rate": """
            SELECT id, day FROM paid p WHERE NOT EXISTS (
                SELECT 1 FROM rates r WHERE r.currency = p.currency AND p.day - r.day BETWEEN 0 AND 6)"""
    },
    "Inventory by FIFO": {
        "fifo": """
            WITH pieces_in AS (
                SELECT lot, cost, row_number() OVER (ORDER BY lot) AS n FROM bought, range(pieces)
            ), pieces_out AS (SELECT sale, row_number() OVER (ORDER BY sale) AS n FROM sold, range(pieces))
            SELECT sale, lot, count(*), sum(cost) FROM pieces_in JOIN pieces_out USING (n) GROUP BY ALL"""
    },
}

CLEANING = {
    "Duplicates by a normalized key": {
        "unique": """
            SELECT *, lower(regexp_replace(name, '\\W', '', 'g')) AS key FROM customers
            QUALIFY row_number() OVER (PARTITION BY key ORDER BY changed DESC) = 1"""
    },
    "Names that are similar": {
        "similar": """
            SELECT a.town, a.name, b.name, levenshtein(a.name, b.name) AS edits
            FROM names a JOIN names b USING (town) WHERE a.id < b.id AND edits <= 2"""
    },
    "Dead letters": {
        "good": "SELECT id, price::INT FROM texts WHERE try_cast(price AS INT) IS NOT NULL",
        "dead": """
            SELECT 'ValueError: invalid literal for int() with base 10: ''' || price || '''', id
            FROM texts WHERE try_cast(price AS INT) IS NULL""",
    },
    "A report on the quality of data": {
        "quality": """
            SELECT 'id is unique', count(*) FROM people p WHERE (SELECT count(*) FROM people o WHERE o.id = p.id) > 1
            UNION ALL SELECT 'mail has an @', count(*) FROM people WHERE mail NOT LIKE '%@%' OR mail IS NULL
            UNION ALL SELECT 'born in the past', count(*) FROM people WHERE born >= DATE '2026-01-01'"""
    },
    "JSON logs as a table": {
        "flat": """
            SELECT (line->>'at')::TIMESTAMP, (line->>'$.user.id')::INT, unnest((line->>'$.user.tags')::VARCHAR[]),
                (line->>'ms')::DOUBLE FROM logs WHERE json_valid(line)"""
    },
    "Columns to rows": {
        "long": 'SELECT shop, year::INT, sales FROM (UNPIVOT wide ON "2024", "2025" INTO NAME year VALUE sales)',
    },
    "Winsorize": {
        "winsorized": """
            SELECT x, round(greatest(least(x, (SELECT quantile_cont(x, 0.9) FROM "values")),
                (SELECT quantile_cont(x, 0.1) FROM "values")), 2) FROM "values" """
    },
    "A sample of each group": {
        "stratified": "FROM rows QUALIFY row_number() OVER (PARTITION BY label ORDER BY md5(id)) <= 2",
    },
    "Training and test data": {
        "parts": """
            SELECT CASE WHEN md5("user") < '4' THEN 'test' ELSE 'training' END AS part, count(*), max(n)
            FROM clicks GROUP BY part"""
    },
    "Fill gaps with the last value": {
        "filled": """
            SELECT meter, hour, last_value(kw IGNORE NULLS) OVER (PARTITION BY meter ORDER BY hour) FROM meters"""
    },
    "Compare two tables": {
        "difference": """
            SELECT coalesce(o.id, n.id), o.price, n.price,
                CASE WHEN o.id IS NULL THEN 'new' WHEN n.id IS NULL THEN 'gone' ELSE 'changed' END
            FROM old o FULL JOIN new n USING (id) WHERE o.price IS DISTINCT FROM n.price"""
    },
}

REPORTS = {
    "A pivot with totals": {
        "pivot": """
            SELECT shop, coalesce(sum(paid) FILTER (month(day) = 1), 0), coalesce(sum(paid) FILTER (month(day) = 2), 0),
                coalesce(sum(paid) FILTER (month(day) = 3), 0), sum(paid) FROM sales GROUP BY shop"""
    },
    "Subtotals of a hierarchy": {
        "levels": """
            SELECT region, shop, grouping(region, shop), sum(paid) FROM sales GROUP BY ROLLUP (region, shop)"""
    },
    "The best of each group": {
        "best": """
            SELECT region, shop, sum(paid) AS total FROM sales GROUP BY region, shop
            QUALIFY row_number() OVER (PARTITION BY region ORDER BY total DESC) = 1"""
    },
    "Running totals and shares": {
        "running": """
            SELECT shop, day, paid, (SELECT sum(paid) FROM sales o WHERE o.shop = s.shop AND o.day <= s.day),
                round(paid / (SELECT sum(paid) FROM sales o WHERE o.shop = s.shop), 3) FROM sales s"""
    },
    "Month over month": {
        "growth": """
            WITH monthly AS (SELECT date_trunc('month', day) AS month, sum(paid) AS paid FROM sales GROUP BY 1)
            SELECT n.month, n.paid, round(100 * (n.paid - o.paid) / o.paid, 1)
            FROM monthly n LEFT JOIN monthly o ON o.month = n.month - INTERVAL 1 MONTH"""
    },
    "ABC analysis": {
        "abc": """
            WITH shares AS (SELECT *, (SELECT sum(earned) FROM products o WHERE o.earned >= p.earned) /
                (SELECT sum(earned) FROM products) AS share FROM products p)
            SELECT *, CASE WHEN share <= 0.8 THEN 'A' WHEN share <= 0.95 THEN 'B' ELSE 'C' END FROM shares"""
    },
    "Median and quantiles of each group": {
        "spread": """
            SELECT region, count(*), quantile_cont(paid, 0.25), median(paid), quantile_cont(paid, 0.75)
            FROM sales GROUP BY region"""
    },
    "A histogram": {"histogram": "SELECT floor(paid / 25)::INT * 25, count(*) FROM sales GROUP BY 1"},
    "Distance to the best": {
        "ranked": """
            SELECT *, paid > (SELECT avg(paid) FROM per_shop),
                paid - (SELECT max(paid) FROM per_shop o WHERE o.region = p.region) FROM per_shop p"""
    },
}

STRUCTURES = {
    "Products that are bought together": {
        "pairs": """
            SELECT a.product, b.product, count(*), round(count(*) / (SELECT count(DISTINCT receipt) FROM items), 2)
            FROM items a JOIN items b USING (receipt) WHERE a.product < b.product GROUP BY ALL"""
    },
    "A grid of places": {
        "cells": """
            SELECT floor(lat * 10)::INT, floor(lon * 10)::INT, count(*), round(avg(lat), 3), round(avg(lon), 3)
            FROM points GROUP BY 1, 2"""
    },
    "The nearest shop": {
        "nearest": """
            SELECT home, shop, round(6371 * acos(sin(radians(lat)) * sin(radians(to_lat)) + cos(radians(lat)) *
                cos(radians(to_lat)) * cos(radians(to_lon - lon))), 1) AS km
            FROM homes, shops QUALIFY row_number() OVER (PARTITION BY home ORDER BY km) = 1"""
    },
    "All parents of a node": {
        "parents": """
            WITH RECURSIVE above AS (
                SELECT part, within, 1 AS level FROM parts
                UNION ALL
                SELECT a.part, p.within, level + 1 FROM above a JOIN parts p ON a.within = p.part
            )
            SELECT * FROM above WHERE within IS NOT NULL"""
    },
    "PageRank": {
        "pagerank": """
            WITH RECURSIVE ranks AS (
                SELECT DISTINCT page, 1.0::DOUBLE AS rank, 0 AS round FROM links
                UNION ALL
                SELECT l."to", 0.15 + 0.85 * sum(r.rank / l.links), round + 1
                FROM ranks r JOIN links l USING (page) WHERE round < 10 GROUP BY l."to", round
            )
            SELECT page, round(rank, 4) FROM ranks WHERE round = 10"""
    },
}

ORACLES = {
    "events": EVENTS,
    "versions": VERSIONS,
    "cleaning": CLEANING,
    "reports": REPORTS,
    "structures": STRUCTURES,
}
