"""Macros of expressions and of queries: DuckDB has the same answers, and what is wrong is said at the call."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from engine import Environment, PlanError
from tests.sql.conftest import rows_of
from tests.sql.null_queries import TABLES

MACROS = (
    "CREATE MACRO plus(a, b := 5) AS a + b",
    "CREATE MACRO mean(x) AS sum(x) / count(x)",
    "CREATE MACRO twice(a) AS plus(a, a)",
    "CREATE MACRO most() AS (SELECT max(k) FROM t)",
    "CREATE MACRO place(x) AS row_number() OVER (ORDER BY x)",
    "CREATE MACRO of_key(k) AS (SELECT sum(u.w) FROM u WHERE u.k = k)",
    "CREATE MACRO near(x) AS (SELECT w FROM u ORDER BY abs(k - x), w LIMIT 1)",
    "CREATE MACRO most_of(x) AS (SELECT max(y) FROM (SELECT k + x AS y FROM u UNION ALL SELECT w FROM u) AS q)",
    "CREATE MACRO few(x) AS (WITH c AS (SELECT k FROM u WHERE k <= x) SELECT count(*) FROM c)",
    "CREATE MACRO deep(x) AS (SELECT count(*) FROM u WHERE k >= x AND EXISTS (SELECT 1 FROM u AS w WHERE k <= x + 1))",
    "CREATE MACRO among(x) AS x IN (SELECT k FROM u)",
    "CREATE MACRO with_each(l, y) AS list_transform(l, lambda x: x + y)",
    "CREATE MACRO each(l, x) AS list_transform(l, lambda x: x + 1)",
    "CREATE MACRO for_each(l, y) AS [x + y FOR x IN l IF x > y - 100]",
    "CREATE MACRO field(s) AS s.k + 1",
    "CREATE MACRO total(x) AS sum(x)",
    "CREATE TEMP MACRO pair(a, b := 2, c := 3) AS a * 100 + b * 10 + c",
    "CREATE MACRO IF NOT EXISTS pair(a) AS a",
    "CREATE MACRO above(least, n := 2) AS TABLE SELECT k, v * 2 AS w FROM t WHERE v > least ORDER BY v DESC LIMIT n",
)
#: DuckDB takes no parameter that has the name of a column of its body
_OTHER = "(x) AS (SELECT sum(u.w) FROM u WHERE u.k = x)"
QUERIES = (
    "SELECT plus(k) * 2 AS a, plus(k, v) AS b, plus(1 - 2, 3) * 2 AS c FROM t",
    "SELECT s, mean(v) AS m FROM t GROUP BY s HAVING mean(v) > 10",
    "SELECT twice(k) AS a, twice(twice(v)) AS b FROM t WHERE twice(k) > 2",
    "SELECT most() - k AS d FROM t",
    "SELECT place(-k) AS p, k FROM n",
    "SELECT * FROM above(15)",
    "SELECT a.k, u.w FROM above(5, 3) AS a JOIN u ON a.k = u.k",
    "SELECT k, near(k) AS a, most_of(k) AS b, few(k) AS c, deep(k) AS d, among(k) AS e FROM t WHERE k IS NOT NULL",
    "SELECT k FROM t WHERE among(k) AND few(k) > 0",
    "SELECT with_each([1, 2], x) AS a, each([x], 5) AS b, for_each([1, 2], x) AS c FROM (SELECT k AS x FROM t) AS q",
    "SELECT field({'k': 4}) AS a, k, total(k) OVER () AS b FROM t",
    "SELECT pair(k) AS a, pair(k, c := 9) AS b, pair(c := k, a := 1) AS c, pair(a => k) AS d FROM t",
    "SELECT * FROM above(n := 1, least := 5)",
    "WITH x AS (SELECT plus(k) AS k FROM t) SELECT k FROM x WHERE k IN (SELECT plus(k) FROM above(0, 9))",
)
#: calls that DuckDB reads in another way, or refuses, and what they are
WRITTEN = {
    "SELECT k, of_key(k) AS a, of_key(k + 1) AS b FROM t WHERE of_key(k) > 1 OR k IS NULL": (
        "SELECT j, of_key(j) AS a, of_key(j + 1) AS b FROM (SELECT k AS j FROM t) WHERE of_key(j) > 1 OR j IS NULL"
    ),
    "SELECT t.k, sum(of_key(u.k)) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.k": (
        "SELECT k, sum(of_key(j)) AS s FROM (SELECT t.k, u.k AS j FROM t JOIN u ON t.k = u.k) GROUP BY k"
    ),
    "SELECT total(k) FILTER (WHERE k > 1) AS a FROM t": "SELECT sum(k) FILTER (WHERE k > 1) AS a FROM t",
}


@pytest.fixture(scope="module")
def both(nothing_is_left_by_the_module: None) -> Iterator[tuple[Environment, duckdb.DuckDBPyConnection]]:
    with Environment(config={"parallelism.default": 2}) as environment, duckdb.connect() as oracle:
        oracle.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        oracle.execute("SET integer_division = true")
        for name, table in TABLES.items():
            environment.register(name, environment.from_arrow(table))
            oracle.register(name, table)
        for one in MACROS:
            environment.sql(one)
            oracle.execute(one.replace("(k) AS (SELECT sum(u.w) FROM u WHERE u.k = k)", _OTHER))
        yield environment, oracle


@pytest.mark.parametrize("query", QUERIES)
def test_a_call_is_the_body_of_the_macro(both: tuple[Environment, duckdb.DuckDBPyConnection], query: str) -> None:
    environment, oracle = both
    assert rows_of(environment.sql(query).to_arrow()) == sorted(oracle.sql(query).fetchall(), key=repr)


@pytest.mark.parametrize("query", WRITTEN)
def test_arguments_are_those_of_the_call(both: tuple[Environment, duckdb.DuckDBPyConnection], query: str) -> None:
    environment, oracle = both
    assert rows_of(environment.sql(query).to_arrow()) == sorted(oracle.sql(WRITTEN[query]).fetchall(), key=repr)


WRONG = {
    "SELECT of_key(kk) FROM t": r"line 1, column 15: no column kk; did you mean k\? \(there are k, v, s\)",
    "SELECT * FROM pair(1)": r"no table pair\(\)",
    "SELECT pair(b := 1)": r"the macro pair\(\) has 1 arguments here and takes 1 to 3; a is missing",
    "SELECT pair(a := 1, 2)": r"line 1, column 21: an argument of the macro pair\(\) without a name stands behind one",
    "SELECT pair(1, a := 2)": r"line 1, column 16: the macro pair\(\) is given two values of a",
    "SELECT pair(1, bb := 2)": r"line 1, column 16: the macro pair\(\) has no parameter bb; did you mean b\?",
    "SELECT lower(s := 'A')": r"line 1, column 14: lower\(\) takes its arguments by their places",
    "SELECT total(DISTINCT k) FROM t": r"DISTINCT within the call of the macro total\(\)",
    "SELECT mean(k) OVER () FROM t": r"line 1, column 8: WINDOW of the macro mean\(\), whose body is no",
    "CREATE MACRO f(a, a) AS a": "CREATE MACRO f: the parameter a is there twice",
    "CREATE MACRO f(a, b := a + 1) AS a": "CREATE MACRO f: the default of b has a column; it takes constants",
    "CREATE MACRO trim(a) AS a": "CREATE MACRO trim: this name has a syntax of its own; write another one",
    "CREATE MACRO cast(a) AS a": "CREATE MACRO cast: this name has a syntax of its own; write another one",
    "CREATE OR REPLACE MACRO IF NOT EXISTS f(a) AS a": "OR REPLACE and IF NOT EXISTS say two things",
    "SELECT plus(1, 2, 3)": r"line 1, column 8: the macro plus\(\) has 3 arguments here and takes 1 to 2",
    "SELECT\n  twice('a') FROM t": r"line 2, column 3: VARCHAR \+ VARCHAR is not defined",
    "SELECT plus(kk) FROM t": "line 1, column 13: no column kk",
    "CREATE MACRO plus(a) AS a": "CREATE MACRO plus: it is there already; write CREATE OR REPLACE MACRO",
    "CREATE MACRO f(a + 1) AS a": r"the parameters \(a \+ 1\) are not of the form \(a, b := 1\)",
    "CREATE MACRO f(a := 1, b) AS a": "parameters with a default stand behind those without",
    "CREATE MACRO f(a) AS SELECT a": "a query of a macro stands in parentheses, or behind AS TABLE",
    "CREATE MACRO f(a) AS TABLE a": "AS TABLE is followed by a query",
    "DROP MACRO plu": "there is no such macro; did you mean plus",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_at_the_call(both: tuple[Environment, duckdb.DuckDBPyConnection], text: str) -> None:
    with pytest.raises(PlanError, match=WRONG[text]):
        both[0].sql(text)


def test_a_macro_without_end_is_an_error() -> None:
    with Environment() as environment:
        environment.sql("CREATE MACRO again(a) AS again(a - 1) + again(a - 2)")
        environment.sql("CREATE MACRO one(a) AS other(a) + 1")
        environment.sql("CREATE MACRO other(a) AS one(a + 1)")
        for name in ("again", "one", "other"):
            with pytest.raises(PlanError, match=rf"line 1, column 8: the macro {name}\(\) calls itself"):
                environment.sql(f"SELECT {name}(1)")


def test_a_macro_of_a_query_sees_its_arguments_from_the_call(
    both: tuple[Environment, duckdb.DuckDBPyConnection],
) -> None:
    environment = both[0]
    environment.sql(
        "CREATE OR REPLACE MACRO lateral_of(x) AS (SELECT max(q.z) FROM u, LATERAL (SELECT u.k * x AS z) q)"
    )
    environment.sql(
        "CREATE OR REPLACE MACRO elements(k) AS (SELECT count(*) FROM u, unnest([k, u.k]) AS q(e) WHERE e = k)"
    )
    found = environment.sql("SELECT lateral_of(k) AS a, elements(k) AS b FROM t").to_arrow()
    written = """SELECT (SELECT max(u.k) FROM u) * t.k AS a,
                        (SELECT CASE WHEN t.k IS NULL THEN 0 ELSE count(*) END FROM u)
                        + (SELECT count(*) FROM u WHERE u.k = t.k) AS b FROM t"""
    assert rows_of(found) == rows_of(environment.sql(written).to_arrow())


def test_an_aggregate_may_be_an_argument_of_a_query() -> None:
    made = (
        "CREATE MACRO beside(a) AS (SELECT max(x) + a FROM (VALUES (1), (2)) AS t(x))",
        "CREATE MACRO deep(a) AS (SELECT max(x) + (SELECT min(y) + a FROM (VALUES (3), (4)) AS t(y))"
        " FROM (VALUES (1), (2)) AS t(x))",
    )
    asked = (
        "SELECT beside(sum(v)) AS r FROM (VALUES (1), (2)) AS s(v)",
        "SELECT k, beside(sum(s.v)) AS r FROM (VALUES (1, 2), (1, 3), (2, 9)) AS s(k, v) GROUP BY k HAVING"
        " beside(max(v)) > 4 ORDER BY k",
        "SELECT k, deep(max(v + k)) AS r FROM (VALUES (1, 2), (1, 3), (2, 9)) AS s(k, v) GROUP BY k ORDER BY k",
    )
    with Environment() as env, duckdb.connect() as connection:
        for text in made:
            env.sql(text)
            connection.execute(text)
        for text in asked:
            assert [tuple(row) for row in env.sql(text).collect()] == connection.sql(text).fetchall()


def test_a_macro_is_replaced_and_dropped() -> None:
    with Environment() as environment:
        environment.sql("CREATE MACRO f(a) AS a")
        assert environment.sql("CREATE OR REPLACE MACRO f(a) AS a + 1").to_arrow()["created"].to_pylist() == ["f"]
        assert environment.sql("SELECT f(1) AS x").to_arrow()["x"].to_pylist() == [2]
        environment.sql("DROP MACRO f")
        environment.sql("DROP MACRO IF EXISTS f")
        with pytest.raises(PlanError, match="no function f"):
            environment.sql("SELECT f(1)")
