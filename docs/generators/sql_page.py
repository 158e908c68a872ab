"""The page of SQL: its functions from the guide, its forms, and what is refused, all held by tests."""

from __future__ import annotations

from typing import Final

from engine.sql_values.function_guide import GUIDE
from engine.sql_values.refused_functions import REFUSED

_HEAD = """# SQL functions and forms

The functions and forms of queries for `env.sql(text)` and `bin/flink-run sql`; [SQL](../guide/sql.md) shows how to use
them. A test runs each example over rows with nulls, and compares the answer with DuckDB's. A function may be called by
its names in DuckDB, Spark and PostgreSQL.

In the examples `i`, `j` and `n` are integers, `f` is a double, `b` a boolean, `s`, `p`, `h` and `js` are texts, `d` and
`e` dates, `ts` and `te` timestamps, `l` and `ls` lists.
"""
#: form, example over tables t (k, v, s), u (k, w) and n (k)
SYNTAX: Final[dict[str, dict[str, str]]] = {
    "Lists of SELECT": {
        "EXCLUDE, EXCEPT": "SELECT * EXCLUDE (s) FROM t",
        "REPLACE": "SELECT * REPLACE (k + 1 AS k) FROM t",
        "RENAME": "SELECT * RENAME (k AS key) FROM t",
        "fields of a struct": "SELECT q.* FROM (SELECT {'a': k, 'b': v} AS q FROM t)",
        "COLUMNS": "SELECT COLUMNS('^[kv]') FROM t",
        "a name within the same SELECT": "SELECT k + 1 AS a, a * 2 AS b FROM t WHERE a > 2",
        "DISTINCT ON": "SELECT DISTINCT ON (k) k, v FROM t ORDER BY k, v",
        "without FROM, or FROM first": "FROM t SELECT k",
        "VALUES as a table": "SELECT a, b FROM (VALUES (1, 'x'), (2, NULL)) AS x (a, b)",
    },
    "Joins": {
        "INNER, LEFT, RIGHT, FULL, CROSS": "SELECT t.k, w FROM t FULL JOIN u ON t.k = u.k",
        "USING": "SELECT k, v, w FROM t FULL JOIN u USING (k)",
        "NATURAL": "SELECT k, v, w FROM t NATURAL LEFT JOIN u",
        "unnest of lists": "SELECT k, x FROM t, unnest([k, v]) AS q(x)",
        "SEMI, ANTI": "SELECT k, v FROM t ANTI JOIN u ON t.k = u.k",
        "ASOF, ASOF LEFT": "SELECT t.k, w FROM t ASOF LEFT JOIN n ON t.k >= n.k JOIN u ON n.k = u.k",
    },
    "Conditions": {
        "IN, NOT IN, EXISTS of queries": "SELECT k FROM t WHERE k NOT IN (SELECT k FROM n)",
        "rows": "SELECT k, v FROM t WHERE (k, v) IN ((1, 10), (2, 30))",
        "rows of queries": "SELECT k, v FROM t WHERE (k, v) IN (SELECT k, w FROM u)",
        "ANY, ALL": "SELECT k, v FROM t WHERE v >= ALL (SELECT w FROM u WHERE w IS NOT NULL)",
        "patterns of columns": "SELECT k FROM t WHERE 'abc' LIKE '%' || s || '%'",
        "ANY of a list": "SELECT k FROM t WHERE k = ANY ([1, v])",
        "LIKE, ILIKE, ESCAPE": "SELECT k FROM t WHERE s LIKE '!a%' ESCAPE '!'",
        "regular expressions (RE2)": "SELECT k FROM t WHERE s ~ '^[ab]'",
        "IS DISTINCT FROM": "SELECT k FROM t WHERE k IS DISTINCT FROM v",
        "BETWEEN": "SELECT k FROM t WHERE v BETWEEN 10 AND 40",
    },
    "Groups": {
        "ALL": "SELECT s, sum(v) AS v FROM t GROUP BY ALL",
        "a number, a name": "SELECT k + 1 AS a, count(*) AS c FROM t GROUP BY 1",
        "HAVING": "SELECT k FROM t GROUP BY k HAVING count(*) > 1",
        "FILTER": "SELECT count(*) FILTER (WHERE v > 10) AS c FROM t",
        "ROLLUP, CUBE, GROUPING SETS": "SELECT s, k, sum(v) AS v FROM t GROUP BY GROUPING SETS ((s), (k), ())",
    },
    "Columns of values": {
        "PIVOT": "PIVOT t ON s USING sum(v) AS v GROUP BY k",
        "PIVOT in FROM": "SELECT * FROM t PIVOT (sum(v) FOR s IN ('a', 'b' AS bb))",
        "UNPIVOT": "UNPIVOT t ON k, v INTO NAME n VALUE x",
        "UNPIVOT in FROM": "SELECT * FROM t UNPIVOT INCLUDE NULLS (x FOR n IN (k, v AS vv))",
    },
    "Windows": {
        "frames of ROWS and RANGE": "SELECT k, sum(k) OVER (ORDER BY k ROWS 1 PRECEDING) AS x FROM n",
        "a name": "SELECT k, sum(k) OVER w AS x FROM n WINDOW w AS (ORDER BY k)",
        "a name, extended": "SELECT k, v, rank() OVER (w ORDER BY v) AS x FROM t WINDOW w AS (PARTITION BY k)",
        "IGNORE NULLS": "SELECT k, v, last_value(v IGNORE NULLS) OVER (ORDER BY k, v) AS x FROM t",
        "QUALIFY": "SELECT k, v FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) = 1",
    },
    "Orders and sets": {
        "ORDER BY ALL, a number, NULLS FIRST": "SELECT k, v FROM t ORDER BY ALL",
        "LIMIT, OFFSET, FETCH FIRST": "SELECT k FROM n ORDER BY k LIMIT 1 + 1 OFFSET 1",
        "UNION, INTERSECT, EXCEPT (MINUS), ALL": "SELECT k FROM t EXCEPT SELECT k FROM u",
        "UNION BY NAME": "SELECT k FROM n UNION ALL BY NAME SELECT w AS k FROM u",
    },
    "Queries": {
        "WITH": "WITH a (x) AS (SELECT k FROM t) SELECT x FROM a",
        "WITH RECURSIVE": (
            "WITH RECURSIVE a (x) AS (SELECT 1 UNION ALL SELECT x * 2 FROM a WHERE x < 9) SELECT x FROM a"
        ),
        "unnest in a list": "SELECT k, unnest([k, v]) AS x FROM t",
        "a query as a value": "SELECT k, (SELECT max(w) FROM u WHERE u.k = t.k) AS m FROM t",
        "queries that look outside": "SELECT k, (SELECT count(*) FROM u WHERE u.k < t.k AND u.w > t.v) AS c FROM t",
        "LATERAL": "SELECT t.k, x.w FROM t, LATERAL (SELECT w FROM u WHERE u.k = t.k ORDER BY w LIMIT 1) AS x",
        "range, generate_series": "SELECT i FROM range(1, 4) AS r(i)",
        "series of times": (
            "SELECT i FROM generate_series(DATE '2024-01-31', DATE '2024-04-30', INTERVAL 1 MONTH) AS r(i)"
        ),
        "TABLESAMPLE, USING SAMPLE, REPEATABLE": "SELECT count(*) AS c FROM t TABLESAMPLE (2 ROWS)",
    },
    "Values": {
        "casts": "SELECT '1'::INT AS a, TRY_CAST('x' AS INT) AS b, CAST(1 AS DECIMAL(9, 2)) AS c",
        "texts": "SELECT 'it''s' AS a, $$it's$$ AS b, e'a\\tb' AS c",
        "numbers": "SELECT 1_000 AS a, 1e3 AS b, .5 AS c",
        "intervals": "SELECT TIMESTAMP '2024-02-29' + INTERVAL '1 day 2 hours' - INTERVAL 3 MINUTE AS a",
        "functions of elements": "SELECT list_transform([1, 2], lambda x: x + k) AS a FROM t",
        "lists by a rule": "SELECT [x * 2 FOR x IN [1, 2, 3] IF x > 1] AS a",
        "maps": "SELECT MAP {'a': 1, 'b': 2}['b'] AS a, map_keys(MAP {'a': 1}) AS b",
        "structs": "SELECT {'a': k, 'b': s}.a AS a FROM t",
        "JSON": """SELECT '{"a": [1, "x"]}' -> 'a' AS a, '{"a": [1, "x"]}' ->> '$.a[1]' AS b""",
        "differences": "SELECT TIMESTAMP '2024-02-29' - TIMESTAMP '2024-02-28 12:00:00' AS a",
    },
}
_DIFFERS = """## Where dialects differ

| what | here | as | otherwise |
|---|---|---|---|
| `7 / 2` of integers | 3 | PostgreSQL, SQL Server | DuckDB, Spark: 3.5 |
| names | found in any case | DuckDB | PostgreSQL: lower case without quotes |
| NULLs in ascending order | last | PostgreSQL, DuckDB's setting | Spark: first |
| `dayofweek`, `weekday` | 0 on Sunday | DuckDB | Spark: 1 on Sunday, 0 on Monday |
| `datediff(a, b)` | days from b to a | Spark, MySQL | |
| `date_diff('week', a, b)` | seven days | DuckDB | |
| `log(x)` | base 10 | DuckDB, PostgreSQL | Spark: e |
| `substr(s, -2)` | the last two | DuckDB, Spark | PostgreSQL: from before the text |
| `regexp_extract(s, pattern)` | the whole match, "" where there is none | DuckDB | Spark: the first group |
| `regexp_replace(s, p, r)` | the first match | PostgreSQL, DuckDB | Spark: all |
| `split_part(s, '', 1)` | the whole text | PostgreSQL, Spark | DuckDB: its first character |
| `count_if` of no rows | 0 | Spark | DuckDB: null |
| `mode` of several | the least | | DuckDB: the first one |
| `list_distinct([1, NULL])` | with the null | Spark, Polars | DuckDB: without it |
| `list_sort(l, 'DESC')` | nulls first, as in ORDER BY | | DuckDB: last |
| lists that are null | null: `list_append(NULL, 1)` | Spark | DuckDB: as of no elements |
| `CAST(2.0 AS VARCHAR)` of a double | 2 | PostgreSQL | DuckDB, Spark: 2.0 |
| `x = ANY (NULL)`, of a list | null | PostgreSQL, SQL | DuckDB: false |
| parts of a TIMESTAMPTZ: `extract`, `date_trunc` | in UTC | | DuckDB, Spark: in the zone of the session |
| `upper('ß')`, `upper('ﬁ')`, also `initcap` | one sign each: 'ẞ', 'ﬁ' | DuckDB | Spark, Polars, Python: 'SS', 'FI' |
| `CAST('-3.5' AS BIGINT)` of a text | an error, null with TRY_CAST | PostgreSQL, Spark | DuckDB: -4 |
| a number as a date or timestamp | an error | PostgreSQL, DuckDB | Spark: seconds since 1970 |
| `a ^ b` | power | DuckDB, PostgreSQL | Spark: bits |
| rows with nulls, `(1, NULL) = (1, NULL)` | null | PostgreSQL, SQL | DuckDB: true |
| a quoted `"abc"` | a name | SQL | Spark, MySQL: a text |
"""


def sql_page() -> str:
    """Return the page."""
    parts = [_HEAD]
    for title, rows in GUIDE.items():
        parts.append(f"## {title}\n\n| functions | example | |\n|---|---|---|")
        for names, example, text in rows:
            parts.append(f"| {_code(*names.split())} | `{_cell(example)}` | {_cell(text)} |")
        parts.append("")
    for title, forms in SYNTAX.items():
        parts.append(f"## Forms: {title.lower()}\n\n| | |\n|---|---|")
        parts += [f"| {form} | `{_cell(query)}` |" for form, query in forms.items()]
        parts.append("")
    parts += [_DIFFERS, "## Refused\n\nErrors say what to write:\n\n| | |\n|---|---|"]
    parts += [f"| `{name}` | {_cell(_literal(instead))} |" for name, instead in sorted(REFUSED.items())]
    return "\n".join(parts) + "\n"


def _code(*names: str) -> str:
    return " ".join(f"`{name}`" for name in names)


def _literal(text: str) -> str:
    """Return a text whose braces are no attributes of Markdown."""
    return text.replace("{", "&#123;").replace("}", "&#125;")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
