"""What tests of SQL share: tables with nulls, an Environment that knows them, DuckDB that knows them too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import duckdb
import pyarrow as pa
import pytest

from engine import Environment
from tests.integration.conftest import children_alive, threads_alive, wait_until
from tests.sql.null_queries import TABLES

Answers = Callable[[str], tuple[list[tuple[object, ...]], list[tuple[object, ...]]]]


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    """Return the rows of a table in an order of their own."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        # the order of PostgreSQL and of the planner
        connection.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        yield connection


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> None:
    """Leave the threads of a module's Environment alone while its tests run."""


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_by_the_module() -> Iterator[None]:
    threads, children = threads_alive(), children_alive()
    yield
    assert wait_until(lambda: not threads_alive() - threads), f"threads left: {threads_alive() - threads}"
    assert wait_until(lambda: not children_alive() - children), "processes left"


@pytest.fixture(scope="module")
def environment(nothing_is_left_by_the_module: None) -> Iterator[Environment]:
    with Environment(config={"parallelism.default": 2}) as made:
        for name, table in TABLES.items():
            made.register(name, made.from_arrow(table))
        yield made


@pytest.fixture
def answers(environment: Environment, oracle: duckdb.DuckDBPyConnection) -> Answers:
    """Return a function: query -> rows of Drey's answer, rows of DuckDB's."""

    def of_both(query: str) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
        return rows_of(environment.sql(query).to_arrow()), sorted(oracle.sql(query).fetchall(), key=repr)

    return of_both
