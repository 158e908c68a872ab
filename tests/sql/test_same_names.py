"""Values that the planner knows by the same name are several all the same, and keep the names that were written."""

from __future__ import annotations

import pytest

from engine import Environment
from tests.sql.conftest import Answers

QUERIES = (
    "SELECT max(k), max(k) FROM t",
    "SELECT k, k, t.v, T.v FROM t",
    "SELECT sum(v) AS a, sum(CAST(v AS DOUBLE)) AS b, sum(CAST(v AS DECIMAL(9, 2))) AS c FROM t",
    "SELECT min(CAST(-0.5 AS DOUBLE)) AS a, min(CAST(-0.5 AS DECIMAL(9, 2))) AS b FROM t GROUP BY k",
    "SELECT k + 1, k + 1, 'a', 'a', 1 AS one FROM t WHERE k > 1",
    "SELECT sum(CAST(v AS DOUBLE)) AS a, sum(CAST(v AS BIGINT)) AS b FROM t GROUP BY CAST(k AS DOUBLE)",
)


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


def test_columns_of_the_same_name_are_numbered(environment: Environment) -> None:
    assert environment.sql(QUERIES[0]).columns == ["max(k)", "max(k)_1"]
    assert environment.sql(QUERIES[1]).columns == ["k", "k_1", "v", "v_1"]
    assert environment.sql(QUERIES[4]).columns == ["k + 1", "k + 1_1", "'a'", "'a'_1", "one"]
