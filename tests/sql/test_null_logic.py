"""Queries whose answers hang on nulls: Drey's are DuckDB's."""

from __future__ import annotations

import pytest

from tests.sql.conftest import Answers
from tests.sql.null_queries import QUERIES


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(answers: Answers, query: str) -> None:
    found, wanted = answers(query)
    assert found == wanted
