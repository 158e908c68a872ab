"""DuckDB's dialect: the answers are those of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from engine import Environment
from tests.sql.dialects.compared import assert_refused, assert_same, assert_same_query, groups_of
from tests.sql.dialects.duckdb_rows import AGGREGATES, EXPRESSIONS, QUERIES, REFUSED
from tests.sql.dialects.rows import TABLE

Both = tuple[Environment, duckdb.DuckDBPyConnection]


@pytest.fixture(scope="module")
def both(environment: Environment) -> Iterator[Both]:
    environment.register("x", environment.from_arrow(TABLE))
    with duckdb.connect() as oracle:
        oracle.register("x", TABLE)
        oracle.execute("SET TimeZone = 'UTC'")
        yield environment, oracle


@pytest.mark.parametrize("expressions", groups_of(EXPRESSIONS, REFUSED), ids=lambda some: some[0])
def test_a_row_has_the_values_of_duckdb(both: Both, expressions: list[str]) -> None:
    assert_same(both[0], "duckdb", lambda query: both[1].execute(query).fetchall(), expressions, " ORDER BY n")


@pytest.mark.parametrize("expressions", groups_of(AGGREGATES, REFUSED), ids=lambda some: some[0])
def test_all_rows_have_the_values_of_duckdb(both: Both, expressions: list[str]) -> None:
    assert_same(both[0], "duckdb", lambda query: both[1].execute(query).fetchall(), expressions, "")


@pytest.mark.parametrize("query", [one for one in QUERIES if one not in REFUSED])
def test_a_query_has_the_rows_of_duckdb(both: Both, query: str) -> None:
    assert_same_query(both[0], "duckdb", lambda text: both[1].execute(text).fetchall(), query)


def test_what_is_not_there_is_refused(both: Both) -> None:
    for one in REFUSED:
        query = one if one in QUERIES else f"SELECT {one} FROM x"
        assert_refused(both[0], "duckdb", query)
