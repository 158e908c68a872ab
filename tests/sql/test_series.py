"""range() and generate_series() as tables: values are DuckDB's."""

from __future__ import annotations

import duckdb
import pytest

from engine import Environment, PlanError

QUERIES = (
    "SELECT * FROM range(3)",
    "SELECT * FROM generate_series(1, 0)",
    "SELECT * FROM generate_series(1, NULL)",
    "SELECT * FROM range(CAST(NULL AS BIGINT), 3)",
    "SELECT * FROM generate_series(5, 1, -2) AS g(x)",
    "SELECT * FROM generate_series(TIMESTAMP '2024-01-31', TIMESTAMP '2024-05-31', INTERVAL 1 MONTH)",
    "SELECT * FROM range(DATE '2024-01-01', DATE '2024-01-03', INTERVAL 12 HOUR) AS r(x)",
    "SELECT * FROM range(TIMESTAMP '2024-01-01', TIMESTAMP '2024-03-01', INTERVAL 1 MONTH)",
    "SELECT * FROM generate_series(TIMESTAMP '2024-01-03', TIMESTAMP '2024-01-01', INTERVAL '-1 day')",
    "SELECT * FROM generate_series(TIMESTAMP '2024-03-01 10:00', TIMESTAMP '2023-12-01', INTERVAL '-1 month')",
    "SELECT * FROM generate_series(TIMESTAMPTZ '2024-01-01 00:00:00+00', TIMESTAMPTZ '2024-01-02 00:00:00+00',"
    " INTERVAL '12 hours')",
)


@pytest.mark.parametrize("query", QUERIES)
def test_values_are_those_of_duckdb(environment: Environment, query: str) -> None:
    wanted = duckdb.sql(query)
    found = environment.sql(query).to_arrow()
    assert found.column_names == wanted.columns
    assert [tuple(row.values()) for row in found.to_pylist()] == wanted.fetchall()


@pytest.mark.parametrize("query", [query.replace("* FROM", "", 1) for query in QUERIES if " AS " not in query])
def test_lists_are_those_of_duckdb(environment: Environment, query: str) -> None:
    ((values,),) = duckdb.sql(query).fetchall()
    (row,) = environment.sql(query).to_arrow().to_pylist()
    assert list(row.values()) == [values]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("range(1, 5, 0)", "line 1, column 15: range() with a step of 0"),
        ("range('a')", "range() takes one to three whole numbers, or two times and an interval"),
        ("range(DATE '2024-01-01', DATE '2024-01-02')", "range() of times takes a begin, an end and an interval"),
        ("range(1000000000000)", "range() of 1000000000000 numbers; 100000000 at most"),
        ("range(DATE '2024-01-01', DATE '2025-01-01', INTERVAL '1 month -40 days')", "that leads to no end"),
    ],
)
def test_what_is_wrong_is_said(environment: Environment, call: str, said: str) -> None:
    with pytest.raises(PlanError) as raised:
        environment.sql(f"SELECT * FROM {call}")
    assert said in str(raised.value)
