"""What is wrong with a text is said in one sentence, with its place, with names that are near, and in words of SQL."""

from __future__ import annotations

import re

import pytest

from engine import Environment, NotYetSupportedError, PlanError
from engine.sql.planner_errors import place_of

SAID = {
    # the parser
    "SELEC k FROM t": "line 1, column 1: expected: an SQL statement, found: SELEC; did you mean SELECT for SELEC?",
    "SELECT k FORM t": "line 1, column 15: expected: end of statement, found: t; did you mean FROM for FORM?",
    "SELECT k\nFROM t\nWHER k = 1": "line 3, column 6: expected: end of statement, found: k; did you mean WHERE",
    "SELECT k FROM t WHERE (k = 1": "line 1, column 29: expected: ), found: the end",
    "SELECT 'abc FROM t": "line 1, column 8: unterminated string literal",
    "SELECT k FROM t WHERE k BETWEEN 1": "line 1, column 34: expected: AND, found: the end",
    "SELECT k FROM t;; SELECT 1": "line 1, column 16: more than one statement",
    "SELECT s LIKE 'a' ESCAPE '!' AS x, k FORM t": "line 1, column 43: expected: end of statement, found: t; did you",
    "SHOW TABELS": "line 1, column 1: SHOW is followed by TABLES",
    "CREATE TABEL x AS SELECT 1": "line 1, column 8: expected: an object type after CREATE, found: TABEL; did you mean",
    # names
    "SELECT kk FROM t": "line 1, column 8: no column kk; did you mean k? (there are k, v, s)",
    "SELECT k,\n  'vv' AS vv, t.vv\nFROM t": "line 2, column 15: no column t.vv; did you mean v? (there are k, v, s)",
    "SELECT \"K\" FROM t": "line 1, column 8: no column K; did you mean k?",
    "SELECT k FROM t WHERE x.zz = 1": "line 1, column 23: no column x.zz (there are k, v, s)",
    'SELECT k FROM "a.parquet"': "no table parquet; a file stands in single quotes: FROM 'path.parquet'",
    "SELECT k FROM nowhere": "line 1, column 15: no table nowhere (there are t, u, e, n)",
    "SELECT k FROM t JOIN uu ON t.k = uu.k": "line 1, column 22: no table uu; did you mean u?",
    "SELECT uu FROM t JOIN uu ON t.k = uu.k": "line 1, column 23: no table uu; did you mean u?",
    "SELECT lenght(s) FROM t": "line 1, column 8: no function lenght; did you mean length",
    "SELECT nonsense(k) FROM t": "line 1, column 8: no function nonsense",
    "SELECT row_number() FROM t": "line 1, column 8: row_number() needs OVER",
    "SELECT k FROM t JOIN u ON t.k = u.k": "line 1, column 8: column k is in several tables",
    "SELECT k, v FROM t GROUP BY k": "line 1, column 11: column t.v is neither in GROUP BY nor in an aggregate",
    "SELECT k FROM t HAVING v > 1": "line 1, column 17: HAVING looks at t.v > 1, which is neither",
    "SELECT k FROM t WHERE sum(v) > 1": "line 1, column 17: an aggregate in WHERE; write it in HAVING",
    "SELECT d + 1 AS e FROM (SELECT CAST(s AS DATE) AS d FROM t) AS x GROUP BY ROLLUP (d + 1)": (
        "line 1, column 66: a key of ROLLUP or CUBE that is computed"
    ),
    # types
    "SELECT k + s FROM t": "line 1, column 10: BIGINT + VARCHAR is not defined; cast one side",
    "SELECT k FROM t WHERE s LIKE 5": "line 1, column 25: VARCHAR LIKE BIGINT is not defined",
    "SELECT sum(s) FROM t": "line 1, column 8: no function has these types of arguments: sum(VARCHAR)",
    "SELECT k FROM t WHERE k = 'abc'": "line 1, column 27: 'abc' is no BIGINT",
    "SELECT DATE '2024-13-01'": "line 1, column 13: '2024-13-01' is no DATE",
    "SELECT k::foo FROM t": "line 1, column 11: no type foo",
    "SELECT substring(s) FROM t": "line 1, column 8: substring needs a start",
    "SELECT NOT k FROM t": "line 1, column 8: unary operator 'NOT' requires a boolean expression, got BIGINT",
    # shapes
    "SELECT k FROM t LIMIT -1": "line 1, column 17: LIMIT -1 is negative",
    "SELECT k FROM t UNION SELECT k, w FROM u": "line 1, column 17: both sides of UNION need as many columns",
    "SELECT k FROM t WHERE k IN (SELECT k, w FROM u)": "a query of one column is needed here, not of 2",
    "SELECT k FROM t GROUP k": "line 1, column 17: expected: end of statement, found: GROUP; write GROUP BY",
    "SELECT sum(v) OVER (ORDER BY k ROWS 1 PRECEEDING) FROM t": (
        "line 1, column 39: expected: PRECEDING or FOLLOWING, found: PRECEEDING; did you mean PRECEDING"
    ),
    "SELECT k FROM t WHERE s = \"abc\"": "line 1, column 27: no column abc (there are k, v, s); a text stands in",
    "SELECT CAST(k AS INTT) FROM t": "line 1, column 18: no type INTT; did you mean INT",
    "SELECT * FROM t, t": "line 1, column 15: t stands twice in FROM; give each a name, as in t AS a, t AS b",
    "SELECT k FROM t a LEFT JOIN u b": "line 1, column 24: a join that keeps rows needs ON",
    "SELECT k FROM t WHERE k": "line 1, column 17: WHERE takes a condition, t.k is BIGINT; write t.k = ...",
    "SELECT INTERVAL '1 dya' + DATE '2024-01-01'": "line 1, column 17: '1 dya' is no INTERVAL; write INTERVAL '1 day'",
    "SELECT sum(sum(k)) FROM t": "an aggregate of an aggregate; write the inner one in a query of FROM",
    "SELECT k FROM t WHERE rank() OVER (ORDER BY k) = 1": "a function over a window in WHERE; write it in QUALIFY",
    "SELECT extract(yeer FROM DATE '2024-01-01')": "'yeer' is not a part of a date; did you mean year?",
    "SELECT date_trunc('mounth', DATE '2024-01-01')": "'mounth' is not a unit of date_trunc; did you mean month?",
    "SELECT k FROM t LIMIT (SELECT 2)": "LIMIT and OFFSET take a constant",
    "SELECT k FROM t LIMIT 'a'": "line 1, column 17: LIMIT takes a number of rows",
    "SELECT substr(s, 1, 2, 3) FROM t": "line 1, column 8: no function has these types of arguments",
    "SELECT year(k) FROM t": "line 1, column 8: year(): no function has these types of arguments",
    "SELECT k,\n  sign(s) FROM t": "line 2, column 3: no function has these types of arguments: sign(VARCHAR)",
    "SELECT k,\n  strftime(k) FROM t": "line 2, column 3: strftime() has 1 arguments here and takes 2",
    "SELECT list_append([1]) FROM t": "line 1, column 8: list_append(): no function has these types",
    # forms
    "SELECT k // 2 FROM t": "line 1, column 10: // is not there; integers divide to integers with /",
    "SELECT ~k FROM t": "line 1, column 8: ~ is not there; write xor(x, -1)",
    "SELECT TOP 5 k FROM t": "line 1, column 8: TOP is not there; write LIMIT",
    "SELECT k FROM t ORDER BY s COLLATE NOCASE": "line 1, column 28: COLLATE is not there; texts compare by bytes",
    "SELECT k FROM t PIVOT (sum(v) FOR s IN ('a'))": "PIVOT and UNPIVOT are not there; write sum(CASE WHEN ...)",
    "SELECT s -> 'a' FROM t": "line 1, column 10: -> is not there; write s ->> '$.a'",
    "SELECT k && v FROM t": "line 1, column 10: && is not there; write AND",
    "SELECT count(*) FROM t GROUP BY ()": "line 1, column 24: () is not there; without GROUP BY all rows are one group",
    "SELECT k FROM t FETCH FIRST 3 ROWS WITH TIES": "line 1, column 17: FETCH FIRST ... WITH TIES; write QUALIFY",
    "SHOW TABLES": "line 1, column 1: SHOW TABLES is no query; write list(env.tables)",
    "": "there is no statement in the text",
    "SELECT (SELECT w FROM u WHERE u.k = t.k) AS x FROM t": "a query that stands for a value and depends on the row",
}  # fmt: skip


def without_place(said: str, wanted: str) -> str:
    """Return what was said, with its place if one is wanted: some have one by the only word that it may be about."""
    said = said.removeprefix("sql: ")
    return said if wanted.startswith("line") else re.sub(r"^line \d+, column \d+: ", "", said)


@pytest.mark.parametrize("query", SAID)
def test_what_is_wrong_is_said_with_its_place(environment: Environment, query: str) -> None:
    with pytest.raises(PlanError) as caught:
        environment.sql(query)
    assert without_place(str(caught.value), SAID[query]).startswith(SAID[query])
    assert "\n" not in str(caught.value)


NOT_THERE = {
    "SELECT k ^ 2 FROM t": "line 1, column 10: ^, a power in some dialects and bits in others (write power(a, b)",
    "SELECT k ** 2 FROM t": "line 1, column 10: the operator ** (write power(a, b))",
    "SELECT k FROM t USING SAMPLE 10": "line 1, column 17: USING SAMPLE (write data.sample",
    "SELECT t.k FROM t ASOF JOIN u ON t.k >= u.k": "line 1, column 19: ASOF JOIN (write data.asof_join",
    "EXPLAIN SELECT 1": "EXPLAIN (a query begins with SELECT, FROM, WITH or VALUES; write env.sql('SELECT ...')",
    "INSERT INTO t VALUES (1)": "INSERT (a query begins with SELECT, FROM, WITH or VALUES; write data.write",
    "SELECT count(DISTINCT k, v) FROM t": "count(DISTINCT a, b) in SQL (write count(*) of a SELECT DISTINCT a, b)",
    "SELECT * FROM range(3)": "the SQL table range() (write (VALUES (1), (2)) AS t (k), or register one)",
    "SELECT list_transform([1], y -> y + 1)": "list_transform() with a function (write data.map",
}


@pytest.mark.parametrize("query", NOT_THERE)
def test_what_is_not_there_is_said_with_what_to_write(environment: Environment, query: str) -> None:
    with pytest.raises(NotYetSupportedError) as caught:
        environment.sql(query)
    assert without_place(str(caught.value), NOT_THERE[query]).startswith(NOT_THERE[query])


def test_of_many_columns_some_are_named(environment: Environment) -> None:
    columns = ", ".join(f"{number} AS c{number}" for number in range(40))
    with pytest.raises(PlanError, match=r"no column x9; did you mean c9.*c11 and 28 more\)$"):
        environment.sql(f"SELECT x9 FROM (SELECT {columns}) AS wide")


def test_a_name_that_needs_quotes_is_shown_with_them(environment: Environment) -> None:
    environment.register("Orders", environment.sql('SELECT 1 AS "Big"'))
    for query, said in (
        ("SELECT 1 FROM ORDERS", 'line 1, column 15: no table orders; quote it, "Orders"'),
        ('SELECT Big FROM "Orders"', 'line 1, column 8: no column big; quote it, "Big": names without quotes'),
    ):
        with pytest.raises(PlanError, match=said):
            environment.sql(query)


def test_columns_without_a_name_are_called_as_they_are_written(environment: Environment) -> None:
    assert environment.sql("SELECT k + 1, s || 'x' FROM t").columns == ["k + 1", "s || 'x'"]


def test_a_name_is_looked_for_where_it_is_one() -> None:
    text = "SELECT 'kk' AS kk, kk(1), -- kk\n t.kk FROM t"
    assert place_of("kk", text) == ""
    assert place_of("kk(", text) == "line 1, column 20: "
    assert place_of("t.kk", text) == "line 2, column 2: "
    assert place_of("'kk'", text) == "line 1, column 8: "


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT k,\n  ntile(k) OVER (ORDER BY k) FROM t", "line 2, column 3"),
        ("SELECT date_trunc(s, DATE '2024-01-01') FROM t", "line 1, column 8"),
        ("SELECT k FROM t WHERE EXISTS (SELECT max(w) FROM u)", "line 1, column 23"),
        ("SELECT count(DISTINCT k) OVER (ORDER BY v) FROM t", "line 1, column 14"),
    ],
)
def test_what_is_refused_later_has_the_place_of_the_word_that_it_names(
    environment: Environment, query: str, place: str
) -> None:
    with pytest.raises(NotYetSupportedError, match=f"^sql: {place}: "):
        environment.sql(query)
