"""NOT IN of constants and of queries that depend on the row outside: the answers are DuckDB's."""

from __future__ import annotations

import pytest

from tests.sql.conftest import Answers

#: what stands before IN
VALUES = [
    "k",
    "99",
    *(
        pytest.param(value, marks=pytest.mark.thorough)
        for value in ("2", "k + v", "CAST(k AS DOUBLE)", "abs(k) + 1", "CASE WHEN v > 20 THEN k END")
    ),
]
#: what it may be one of
LISTS = (
    "SELECT k FROM u WHERE u.w = t.v",
    "SELECT u.k FROM u WHERE u.k = t.k",
    "SELECT k FROM u WHERE u.w > t.v AND u.k = t.k",
    "SELECT k FROM u WHERE u.w >= t.v",
    "SELECT w FROM u WHERE u.k <> t.k",
    "SELECT DISTINCT u.k AS x FROM u WHERE u.w = t.v",
    "SELECT max(w) AS m FROM u WHERE u.k = t.k GROUP BY u.w",
    "SELECT n.k FROM n WHERE n.k = t.k",
    "SELECT k FROM e WHERE e.w = t.v",
    "SELECT w FROM u",
    "SELECT k FROM n UNION SELECT w FROM u",
    "VALUES (1), (NULL)",
    "SELECT u.k FROM u JOIN n ON u.k = n.k WHERE u.w = t.v OR t.v IS NULL",
)
PLACES = [
    "{0} NOT IN ({1})",
    pytest.param("{0} IN ({1})", marks=pytest.mark.thorough),
    "v = 10 OR {0} NOT IN ({1})",
    pytest.param("s = 'a' OR {0} IN ({1})", marks=pytest.mark.thorough),
]
OTHERS = (
    "NULL NOT IN (SELECT k FROM u)",
    "(SELECT max(k) + 9 FROM u) NOT IN (SELECT k FROM u)",
    "v = 10 OR (SELECT max(k) + 9 FROM u) NOT IN (SELECT k FROM u)",
    "k IN (SELECT k FROM u WHERE u.w = t.v) AND v NOT IN (SELECT k FROM n)",
    "v = 10 OR k IN (SELECT k FROM u) OR EXISTS (SELECT 1 FROM n WHERE n.k = t.k)",
    "v = 10 OR NOT (k IN (SELECT k FROM u) AND EXISTS (SELECT 1 FROM n WHERE n.k = t.k))",
    "k NOT IN (SELECT k FROM u WHERE u.w = t.v) AND v NOT IN (SELECT w FROM u WHERE u.k = t.k) AND s IS NOT NULL",
    "k NOT IN (SELECT k FROM u WHERE w NOT IN (SELECT k FROM n WHERE n.k = u.k)) OR 5 NOT IN (SELECT k FROM n)",
    "k = 2 AND k NOT IN (SELECT k FROM u WHERE u.w = t.v)",
    "k > 2 AND k NOT IN (SELECT k FROM u WHERE u.w > t.v)",
    "k + NULL NOT IN (SELECT k FROM u)",
    "k + NULL NOT IN (SELECT k FROM e)",
    "length('k1') NOT IN (SELECT k FROM u)",
    "7 + length('k1') NOT IN (SELECT k FROM n)",
    "CASE WHEN TRUE THEN 7 END NOT IN (SELECT k FROM u)",
    "v = 10 OR length('k1') NOT IN (SELECT k FROM u)",
    "v = 10 OR CASE WHEN TRUE THEN 8 END NOT IN (SELECT k FROM n)",
    "(SELECT max(k) + 9 FROM u) IN (SELECT k FROM n)",
    "NOT (7 IN (SELECT k FROM n) AND k IN (SELECT k FROM u WHERE u.w = t.v))",
)
NOT_IN = (
    "k NOT IN (SELECT t.v FROM u WHERE u.k = t.k)",
    "k NOT IN (SELECT k FROM u WHERE u.w = t.v UNION SELECT k FROM n)",
)


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("values", LISTS)
@pytest.mark.parametrize("value", VALUES)
def test_the_answer_is_duckdbs(answers: Answers, value: str, values: str, place: str) -> None:
    found, wanted = answers(f"SELECT k, v FROM t WHERE {place.format(value, values)}")
    assert found == wanted


@pytest.mark.parametrize("condition", (*OTHERS, *NOT_IN))
def test_several_of_them(answers: Answers, condition: str) -> None:
    found, wanted = answers(f"SELECT k, v, s FROM t WHERE {condition}")
    assert found == wanted
