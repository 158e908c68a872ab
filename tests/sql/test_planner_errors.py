"""What is wrong with a text is said in one sentence, with its place, with names that are near, and in words of SQL."""

from __future__ import annotations

import pytest

from engine import Environment, PlanError
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
    "SELECT k FROM nowhere": "line 1, column 15: no table nowhere (there are t, u, e, n)",
    "SELECT k FROM t JOIN uu ON t.k = uu.k": "line 1, column 22: no table uu; did you mean u?",
    "SELECT lenght(s) FROM t": "line 1, column 8: no function lenght; did you mean length",
    "SELECT nonsense(k) FROM t": "line 1, column 8: no function nonsense",
    "SELECT row_number() FROM t": "line 1, column 8: row_number() needs OVER",
    "SELECT k FROM t JOIN u ON t.k = u.k": "line 1, column 8: column k is in several tables",
    "SELECT k, v FROM t GROUP BY k": "line 1, column 11: column t.v is neither in GROUP BY nor in an aggregate",
    "SELECT k FROM t HAVING v > 1": "line 1, column 17: HAVING looks at t.v > 1, which is neither",
    "SELECT k FROM t WHERE sum(v) > 1": "line 1, column 17: an aggregate in WHERE; write it in HAVING",
    # types
    "SELECT k + s FROM t": "line 1, column 10: BIGINT + VARCHAR is not defined; cast one side",
    "SELECT k FROM t WHERE s LIKE 5": "line 1, column 25: VARCHAR LIKE BIGINT is not defined",
    "SELECT sum(s) FROM t": "line 1, column 8: no function has these types of arguments: sum(VARCHAR)",
    "SELECT k FROM t WHERE k = 'abc'": "line 1, column 27: 'abc' is no BIGINT",
    "SELECT DATE '2024-13-01'": "line 1, column 13: '2024-13-01' is no DATE",
    "SELECT k::foo FROM t": "line 1, column 11: no type foo",
    "SELECT substring(s) FROM t": "line 1, column 8: substring needs a start",
    "SELECT NOT k FROM t": "unary operator 'NOT' requires a boolean expression, got BIGINT",
    # shapes
    "SELECT k FROM t LIMIT -1": "line 1, column 17: LIMIT -1 is negative",
    "SELECT k FROM t UNION SELECT k, w FROM u": "line 1, column 17: both sides of UNION need as many columns",
    "SELECT k FROM t WHERE k IN (SELECT k, w FROM u)": "a query of one column is needed here, not of 2",
    "SELECT (SELECT w FROM u WHERE u.k = t.k) AS x FROM t": "a query that stands for a value and depends on the row",
}  # fmt: skip


@pytest.mark.parametrize("query", SAID)
def test_what_is_wrong_is_said_with_its_place(environment: Environment, query: str) -> None:
    with pytest.raises(PlanError) as caught:
        environment.sql(query)
    assert str(caught.value).startswith(f"sql: {SAID[query]}")
    assert "\n" not in str(caught.value)


def test_of_many_columns_some_are_named(environment: Environment) -> None:
    columns = ", ".join(f"{number} AS c{number}" for number in range(40))
    with pytest.raises(PlanError, match=r"no column x9; did you mean c9.*c11 and 28 more\)$"):
        environment.sql(f"SELECT x9 FROM (SELECT {columns}) AS wide")


def test_columns_without_a_name_are_called_as_they_are_written(environment: Environment) -> None:
    assert environment.sql("SELECT k + 1, s || 'x' FROM t").columns == ["k + 1", "s || 'x'"]


def test_a_name_is_looked_for_where_it_is_one() -> None:
    text = "SELECT 'kk' AS kk, kk(1), -- kk\n t.kk FROM t"
    assert place_of("kk", text) == ""
    assert place_of("kk(", text) == "line 1, column 20: "
    assert place_of("t.kk", text) == "line 2, column 2: "
    assert place_of("'kk'", text) == "line 1, column 8: "
