"""Queries whose answers hang on nulls: Drey's are DuckDB's."""

from __future__ import annotations

import pytest

from engine import Environment, NotYetSupportedError
from tests.sql.conftest import Answers
from tests.sql.null_queries import QUERIES

REFUSED = {
    "SELECT k IN (SELECT k FROM u) AS x FROM t": "subquery",
    "SELECT k FROM t WHERE v = 1 OR k IN (SELECT k FROM u) OR EXISTS (SELECT 1 FROM n WHERE n.k = t.k)": "both IN",
    "SELECT k FROM t WHERE v = 1 OR k NOT IN (SELECT k FROM u WHERE u.w = t.v)": "depends on the row outside",
    "SELECT k FROM t WHERE k NOT IN (SELECT k FROM u WHERE u.w = t.v)": "depends on the row outside",
    "SELECT k FROM t WHERE NOT (k IN (SELECT k FROM u WHERE u.w = t.v))": "depends on the row outside",
    "SELECT k FROM t WHERE k NOT IN (SELECT k FROM u WHERE u.k = t.k)": "depends on the row outside",
    "SELECT k FROM t WHERE v = 1 OR k NOT IN (SELECT k FROM u WHERE u.k = t.k)": "depends on the row outside",
}


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


@pytest.mark.parametrize("query", REFUSED)
def test_what_would_be_wrong_is_refused_by_name(environment: Environment, query: str) -> None:
    with pytest.raises(NotYetSupportedError, match=REFUSED[query]):
        environment.sql(query).to_arrow()
