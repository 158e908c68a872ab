"""Queries whose answers hang on nulls: Drey's are DuckDB's."""

from __future__ import annotations

import pytest

from engine import Environment, NotYetSupportedError
from tests.sql.conftest import Answers
from tests.sql.null_queries import QUERIES

REFUSED = {
    "SELECT k IN (SELECT k FROM u) AS x FROM t": "subquery",
}


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted


@pytest.mark.parametrize("query", REFUSED)
def test_what_would_be_wrong_is_refused_by_name(environment: Environment, query: str) -> None:
    with pytest.raises(NotYetSupportedError, match=REFUSED[query]):
        environment.sql(query).to_arrow()
