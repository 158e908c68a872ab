"""Some 300 queries on nulls in every form: Drey's answers are DuckDB's."""

from __future__ import annotations

import duckdb
import pytest

from engine import Environment
from tests.sql.null_forms import FORMS
from tests.tpch.answers import difference


@pytest.mark.parametrize("form", [pytest.param(form, marks=pytest.mark.thorough) for form in FORMS])
def test_the_answers_are_duckdbs(environment: Environment, oracle: duckdb.DuckDBPyConnection, form: str) -> None:
    wrong = {}
    for query in FORMS[form]:
        found = difference(environment.sql(query).to_arrow(), oracle.sql(query).to_arrow_table())
        if found:
            wrong[query] = found
    assert wrong == {}
