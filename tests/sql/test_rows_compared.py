"""Rows beside rows: the answers are DuckDB's, and where it takes nulls for equal those of the standard."""

from __future__ import annotations

import pytest

from engine import Environment
from tests.sql.conftest import Answers, rows_of

QUERIES = (
    "SELECT k, v FROM t WHERE (k, v) IN ((1, 10), (2, 30), (3, 41))",
    "SELECT k, v FROM t WHERE (k, -v) = (2, -30) OR (k, s) = (1, 'a')",
    "SELECT k, w FROM u WHERE (k, w) <= (2, 30)",
    "SELECT k, v FROM t WHERE (k, v) IN (SELECT k, w FROM u)",
    "SELECT k, v FROM t WHERE (k, v) IN (SELECT n.k, 10 * n.k FROM n)",
    "SELECT k, v FROM t WHERE k > 1 AND ((k + 1, v) IN (SELECT 3, w FROM u) OR v = 40)",
    "SELECT k FROM n WHERE (k, k + 1) NOT IN (SELECT k, k + 1 FROM n WHERE k > 1)",
    "SELECT k FROM n WHERE (k, 1) NOT IN (SELECT k, 2 FROM u)",
    "SELECT k, v FROM t WHERE NOT (k > 2) AND (k, v) IN (SELECT k, w FROM u)",
    "SELECT k FROM n WHERE NOT k > 5 AND (NOT k = 9 AND (k, 1) NOT IN (SELECT k, 2 FROM u))",
    "SELECT t.k, u.w FROM t JOIN u ON (t.k, 30) = (u.k, u.w)",
    "SELECT k FROM t WHERE (SELECT 7) NOT IN (SELECT k FROM u WHERE k > 1)",
    "SELECT k FROM t WHERE (SELECT max(k) FROM n) NOT IN (SELECT k FROM u)",
    "SELECT k FROM t WHERE (SELECT max(k) FROM e) NOT IN (SELECT k FROM n)",
    "SELECT k FROM t WHERE (SELECT max(k) FROM e) NOT IN (SELECT k FROM e) AND k > 1",
    "SELECT k FROM t WHERE 7 NOT IN (SELECT k FROM u WHERE k > 1) AND k > 1",
    "SELECT k FROM t WHERE k = 1 OR NULL NOT IN (SELECT k FROM u)",
    "SELECT k FROM t WHERE NULL NOT IN (SELECT k FROM e)",
    "SELECT k FROM t WHERE 'x' NOT IN (SELECT s FROM t WHERE s IS NOT NULL)",
)
#: of nulls: a row that may be another one is not outside of it
STANDARD = {
    "SELECT k, v FROM t WHERE (k, v) IN ((2, NULL), (1, 10))": [(1, 10)],
    "SELECT k, v FROM t WHERE (k, v) NOT IN ((1, 10), (3, 41))": [
        *((2, 30), (2, None), (3, 40), (5, None), (None, 50))
    ],
    "SELECT k, v FROM t WHERE (k, v) NOT IN ((2, NULL), (1, 11))": [(1, 10), (3, 40), (5, None)],
    "SELECT k, v FROM t WHERE (k, v) NOT IN (SELECT k, w FROM u WHERE k = 4)": [
        (1, 10),
        (2, 30),
        (2, None),
        (3, 40),
        (5, None),
    ],
    "SELECT k FROM n WHERE (k, 1) NOT IN (SELECT k, w FROM u)": [(2,), (7,)],
    "SELECT k, v FROM t WHERE (k, v) NOT IN (SELECT k, w FROM e)": [
        *((1, 10), (2, 30), (2, None), (3, 40), (5, None), (None, 50), (None, None)),
    ],
}


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


@pytest.mark.parametrize("query", STANDARD)
def test_what_is_unknown_is_unknown_of_rows(environment: Environment, query: str) -> None:
    assert rows_of(environment.sql(query).to_arrow()) == sorted(STANDARD[query], key=repr)


_MAY_BE = "EXISTS (SELECT 1 FROM u WHERE u.k = 2 AND coalesce(u.k = t.k, TRUE) AND coalesce(u.w = t.v, TRUE))"
_IS = "EXISTS (SELECT 1 FROM u WHERE u.k = 2 AND u.k = t.k AND u.w = t.v)"


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("NOT ((k, v) IN (SELECT k, w FROM u WHERE k = 2))", f"NOT {_MAY_BE}"),
        ("((k, v) IN (SELECT k, w FROM u WHERE k = 2)) IS NULL", f"{_MAY_BE} AND NOT {_IS}"),
    ],
)
def test_unknown_is_told_from_false_of_a_query_of_rows(answers: Answers, condition: str, rows: str) -> None:
    found, _ = answers(f"SELECT k, v FROM t WHERE {condition}")
    wanted, _ = answers(f"SELECT k, v FROM t WHERE {rows}")
    assert found == wanted
