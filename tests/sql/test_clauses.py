"""Clauses that say nothing, or two things, are errors at their place; those that say something are left alone."""

from __future__ import annotations

import re

import pytest

from engine import Environment
from engine.errors import EngineError, NotYetSupportedError

WRONG = {
    "SELECT * FROM t JOIN u ON": "line 1, column 22: ON is not complete; write ON a.k = b.k",
    "SELECT * FROM t LEFT JOIN u ON WHERE t.k = 1": "line 1, column 27: ON is not complete",
    "SELECT * FROM t JOIN u USING ()": "line 1, column 22: USING is not complete; write USING (k)",
    "SELECT k FROM t WHERE k IN": "line 1, column 23: IN is not complete; write IN (1, 2), or a query",
    "SELECT k FROM t WHERE k NOT IN": "line 1, column 23: IN is not complete",
    "WITH x AS (SELECT 1 AS a), X AS (SELECT 2 AS a) SELECT a FROM x": "WITH: the name X is there twice",
    "SELECT sum(k) OVER w FROM t WINDOW w AS (ORDER BY k), w AS (ORDER BY v)": "WINDOW: the name w is there twice",
    "SELECT * EXCLUDE (k, K) FROM t": "line 1, column 8: EXCLUDE: the column K is there twice",
    "SELECT * REPLACE (k + 1 AS k, 2 AS k) FROM t": "line 1, column 8: REPLACE: the column k is there twice",
    "SELECT * RENAME (k AS a, k AS b) FROM t": "line 1, column 8: RENAME: the column k is there twice",
    "SELECT {'a': 1, 'a': 2}": "the field a is there twice",
    "SELECT struct_pack(a := k, A := v) FROM t": "the field A is there twice",
    "SELECT k FROM t FOR UPDATE": "a lock of rows is not supported yet; a query reads what",
    "SELECT k FROM t WITH (NOLOCK)": "a lock of rows",
    "SELECT * FROM range(3) FOR VERSION AS OF 1": "a version of a function's rows; only tables have versions",
    "SELECT * FROM information_schema.tables FOR VERSION AS OF 1": "a version of information_schema.tables",
    "SELECT * FROM information_schema.tabels": "no view information_schema.tabels; did you mean tables?",
    "SELECT k FROM t WHERE s LIKE 'a' ESCAPE 'ab'": "line 1, column 23: ESCAPE takes one character, and this is 'ab'",
    "SELECT 0x1F": "line 1, column 8: 0x1F is neither a number nor a name",
    "SELECT 12abc, k FROM t": "line 1, column 8: 12abc is neither a number nor a name",
    "SELECT k FROM t WHERE v < 1e400": "1e400 is more than a DOUBLE holds",
    "SELECT t.k FROM t JOIN u": "line 1, column 24: JOIN u has no condition; write ON a.k = b.k, USING (k), or CROSS",
    "SELECT t.k FROM t INNER JOIN u AS w WHERE t.k = w.k": "JOIN w has no condition",
    "SELECT k FROM t ORDER BY 'k'": "line 1, column 26: ORDER BY of the text 'k' is no order; a name stands in double",
    "SELECT k FROM t ORDER BY -1": "line 1, column 27: ORDER BY -1 is no order; write ORDER BY 1 DESC",
    "SELECT k FROM t ORDER BY k ASC DESC": "line 1, column 28: ASC and DESC of one key; write one of them",
    "SELECT k FROM t LIMIT 1 BY k": "LIMIT n BY k (write QUALIFY row_number()",
    "SELECT k FROM $1": "line 1, column 15: the parameter 1 in place of a table; parameters are values",
    "SELECT k FROM t GROUP BY ROLLUP (k), DISTINCT v": "expected: an expression",
}
OF_DIALECTS = {
    ("snowflake", "SELECT k FROM t CHANGES (INFORMATION => DEFAULT) AT (OFFSET => -60)"): "CHANGES, the changes of a",
    ("bigquery", "SELECT AS STRUCT k FROM t"): "SELECT AS STRUCT and AS VALUE (write SELECT struct_pack(",
    ("spark", "SELECT k FROM t TABLESAMPLE (BUCKET 1 OUT OF 2 ON k)"): "TABLESAMPLE of buckets (write (50 PERCENT)",
    ("postgres", "SELECT t.k FROM t JOIN u"): "JOIN u has no condition",
    ("postgres", "SELECT k FROM t ORDER BY 'k'"): "ORDER BY of the text 'k' is no order",
}
RIGHT = {
    "SELECT k, row_number() OVER (ORDER BY 'k') AS n FROM t ORDER BY 1": 7,
    "SELECT k FROM t WHERE k IN ()": 0,
    "SELECT 1e3 AS a, 1_000 AS b, .5 AS c, 5. AS d, 1::INT AS e": 1,
    "SELECT k FROM t WHERE s LIKE 'a' ESCAPE '!'": 2,
    "SELECT k FROM t JOIN u USING (k), n AS x WHERE x.k = 1": 3,
}


@pytest.mark.parametrize("query", WRONG)
def test_a_clause_that_says_nothing_is_an_error(environment: Environment, query: str) -> None:
    with pytest.raises(EngineError, match=re.escape(WRONG[query])):
        environment.sql(query, params=[1] if "$1" in query else None)


@pytest.mark.parametrize(("dialect", "query"), OF_DIALECTS)
def test_a_form_that_only_another_engine_has_is_named(environment: Environment, dialect: str, query: str) -> None:
    with pytest.raises(EngineError, match=re.escape(OF_DIALECTS[dialect, query])):
        environment.sql(query, dialect=dialect)


def test_a_join_without_a_condition_is_one_of_all_pairs_where_the_dialect_says_so(environment: Environment) -> None:
    found = environment.sql("SELECT t.k FROM t JOIN u", dialect="spark").to_arrow()
    assert found.num_rows == environment.sql("SELECT t.k FROM t, u").to_arrow().num_rows


@pytest.mark.parametrize("query", ["SELECT * FROM t JOIN u ON", "SELECT * FROM t WHERE k IN"])
def test_clauses_of_a_dialect_are_looked_at(environment: Environment, query: str) -> None:
    with pytest.raises(EngineError, match="is not complete"):
        environment.sql(query, dialect="postgres")


def test_hexadecimal_digits_of_postgresql_are_no_bytes(environment: Environment) -> None:
    for query in ("SELECT 0x1F", "SELECT x'1F'"):
        with pytest.raises(NotYetSupportedError, match="a constant in hexadecimal digits"):
            environment.sql(query, dialect="postgres")


@pytest.mark.parametrize("query", RIGHT)
def test_a_clause_that_says_something_is_left_alone(environment: Environment, query: str) -> None:
    assert environment.sql(query).to_arrow().num_rows == RIGHT[query]
