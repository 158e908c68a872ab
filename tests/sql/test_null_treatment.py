"""IGNORE NULLS and RESPECT NULLS: the values are DuckDB's, also where they stand as in PostgreSQL and Spark."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from engine import Environment, NotYetSupportedError
from tests.sql.conftest import rows_of

TABLE = pa.table(
    {
        "n": list(range(1, 13)),
        "k": ["x", "x", "y", "y"] * 3,
        "i": pa.array([None, 5, None, -3, None, None, 7, 2, None, 5, None, None], pa.int64()),
        "f": [None, 2.5, -0.5, None] * 3,
        "s": ["a", None, "", None, "bcd", None, None, "e", "a", None, None, None],
        "b": [None, True, False, None] * 3,
        "d": [None, datetime.date(2024, 2, 29), None, datetime.date(1582, 10, 15)] * 3,
        "c": pa.array([Decimal("1.25"), None, None, Decimal("-7.50")] * 3, pa.decimal128(10, 2)),
    }
)
WINDOWS = (
    "ORDER BY n",
    "PARTITION BY k ORDER BY n DESC",
    "PARTITION BY k ORDER BY n ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ORDER BY n ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)
Oracle = duckdb.DuckDBPyConnection


@pytest.fixture
def oracle(environment: Environment) -> Iterator[Oracle]:
    environment.register("x", environment.from_arrow(TABLE))
    with duckdb.connect() as connection:
        connection.register("x", TABLE)
        yield connection


def check(environment: Environment, oracle: Oracle, query: str, wanted: str = "") -> None:
    assert rows_of(environment.sql(query).to_arrow()) == sorted(oracle.sql(wanted or query).fetchall(), key=repr)


@pytest.mark.parametrize("over", WINDOWS)
@pytest.mark.parametrize("value", ["i", "f", "s", "b", "d", "c"])
def test_rows_without_a_value_are_passed_over(environment: Environment, oracle: Oracle, value: str, over: str) -> None:
    calls = [f"{name}({value} IGNORE NULLS) OVER ({over})" for name in ("first_value", "last_value")]
    if "ROWS" not in over:
        calls += [f"lag({value} IGNORE NULLS) OVER w", f"lead({value}, 1, {value} IGNORE NULLS) OVER w"]
        calls += [f"lag({value}, 2 IGNORE NULLS) OVER w", f"nth_value({value}, 2 IGNORE NULLS) OVER w"]
    query = f"SELECT n, {', '.join(calls)} FROM x WINDOW w AS ({over})"
    check(environment, oracle, query)
    check(environment, oracle, query.replace(" IGNORE NULLS)", ") IGNORE NULLS"), query)


def test_nulls_that_are_respected_are_values(environment: Environment, oracle: Oracle) -> None:
    check(
        environment,
        oracle,
        "SELECT n, lag(i) RESPECT NULLS OVER (ORDER BY n), last_value(i RESPECT NULLS) OVER (ORDER BY n) FROM x",
        "SELECT n, lag(i) OVER (ORDER BY n), last_value(i) OVER (ORDER BY n) FROM x",
    )


def test_holes_are_filled(environment: Environment, oracle: Oracle) -> None:
    check(environment, oracle, "SELECT n, coalesce(i, last_value(i IGNORE NULLS) OVER (ORDER BY n)) + 1 FROM x")


def test_groups_take_their_first_value(environment: Environment, oracle: Oracle) -> None:
    query = "SELECT k, first(i ORDER BY n{}) FROM x GROUP BY k"
    check(environment, oracle, query.format(" IGNORE NULLS"), query.replace("{})", ") FILTER (WHERE i IS NOT NULL)"))


@pytest.mark.parametrize(
    ("call", "said"),
    [("rank()", r"rank\(\) with IGNORE NULLS"), ("count(i)", r"count\(\) with IGNORE NULLS")],
)
def test_what_is_not_there_is_said(environment: Environment, oracle: Oracle, call: str, said: str) -> None:
    with pytest.raises(NotYetSupportedError, match=said):
        environment.sql(f"SELECT {call} IGNORE NULLS OVER (ORDER BY n) FROM x")
