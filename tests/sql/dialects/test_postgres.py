"""PostgreSQL's dialect: the answers are those of a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from engine import Environment
from tests.postgresql_server import postgresql
from tests.sql.dialects.compared import Answer, assert_refused, assert_same, assert_same_query, groups_of
from tests.sql.dialects.postgres_rows import AGGREGATES, EXPRESSIONS, QUERIES, REFUSED
from tests.sql.dialects.rows import TABLE

pytestmark = pytest.mark.thorough
Both = tuple[Environment, Answer]
_TYPES = {
    **dict.fromkeys("nik", "bigint"),
    "v": "double precision",
    "p": "numeric(10, 2)",
    **dict.fromkeys("st", "text"),
    **dict.fromkeys("de", "date"),
    "m": "timestamp",
    "b": "boolean",
    "l": "bigint[]",
    "w": "text[]",
}


def _literal(value: Any, name: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"ARRAY[{', '.join(_literal(one, name) for one in value)}]::{_TYPES[name]}"
    return f"'{value}'" if not isinstance(value, bool | int | float) else str(value)


@pytest.fixture(scope="module")
def both(environment: Environment) -> Iterator[Both]:
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    environment.register("x", environment.from_arrow(TABLE))
    with postgresql() as uri, dbapi.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE x ({', '.join(f'{name} {_TYPES[name]}' for name in TABLE.column_names)})")
        for row in TABLE.to_pylist():
            cursor.execute(f"INSERT INTO x VALUES ({', '.join(_literal(one, name) for name, one in row.items())})")

        def answer(query: str) -> list[tuple[Any, ...]]:
            cursor.execute(query)
            rows: pa.Table = cursor.fetch_arrow_table()
            return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))

        yield environment, answer


@pytest.mark.parametrize("expressions", groups_of(EXPRESSIONS, REFUSED), ids=lambda some: some[0])
def test_a_row_has_the_values_of_postgresql(both: Both, expressions: list[str]) -> None:
    assert_same(both[0], "postgres", both[1], expressions, " ORDER BY n")


@pytest.mark.parametrize("expressions", groups_of(AGGREGATES, REFUSED), ids=lambda some: some[0])
def test_all_rows_have_the_values_of_postgresql(both: Both, expressions: list[str]) -> None:
    assert_same(both[0], "postgres", both[1], expressions, "")


@pytest.mark.parametrize("query", [one for one in QUERIES if one not in REFUSED])
def test_a_query_has_the_rows_of_postgresql(both: Both, query: str) -> None:
    assert_same_query(both[0], "postgres", both[1], query)


def test_what_is_not_there_is_refused(both: Both) -> None:
    for one in REFUSED:
        query = one if one in QUERIES else f"SELECT {one} FROM x"
        assert_refused(both[0], "postgres", query)
