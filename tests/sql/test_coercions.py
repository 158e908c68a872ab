"""Values of two types beside each other: casts that a query writes are kept, those of the planner are Drey's own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import time
from decimal import Decimal
from typing import Final

import duckdb
import pyarrow as pa
import pytest

from engine import DataError, Environment
from tests.sql.conftest import rows_of

_TABLES = {
    "m": pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int32()),
            "dec": pa.array([Decimal("10.50"), Decimal("11.00"), Decimal("10.49"), None], pa.decimal128(8, 2)),
            "wide": pa.array([Decimal(number) for number in ("1.5", "-2", "10.49", "7")], pa.decimal128(20, 2)),
            "g": pa.array([1.23456789012345e-12, 2e15, 10.49, float("inf")], pa.float64()),
            "h": pa.array([1.5, 2e10, 0.25, None], pa.float32()),
        }
    ),
    "c": pa.table(
        {
            "k": pa.array([1, 2, 3, None], pa.int64()),
            "t": pa.array([time(0, 10), time(1), None, time(23)], pa.time64("us")),
            "s": pa.array([time(0, 10), None, time(7), time(23)], pa.time32("s")),
        }
    ),
    "u": pa.table({"w": pa.array([1, 3, 2**64 - 1], pa.uint64())}),
}
_ROW: Final = "row_number() OVER (ORDER BY k)"
QUERIES = (
    *(
        f"SELECT id FROM m WHERE {condition}"
        for condition in (
            "CAST(dec AS int) = 11",
            "CAST(dec AS int) IN (10, 11)",
            "CAST(dec AS int) <= 10",
            "CAST(dec AS bigint) > 10",
            "10 < CAST(dec AS bigint)",
            "CAST(dec AS decimal(8, 1)) = 10.5",
            "CAST(h AS decimal(30, 2)) = 1.5",
            "CAST(id AS bigint) BETWEEN 2 AND 1 + 2",
            "CAST(id AS double) = 2.5",
            "dec < g",
            "dec = g",
            "wide = g",
            "g IN (dec, wide)",
            "wide / 3 > 0.5001 OR wide / 3 = 0.5",
            "dec > 10.495",
            "dec = (SELECT max(g) FROM m WHERE id = 3)",
        )
    ),
    "SELECT id, coalesce(g, dec) AS r, coalesce(dec, g) AS s, coalesce(h, dec) AS t FROM m",
    "SELECT w + 0 AS r, 2 * w AS s, w - 1 AS t FROM u WHERE w <> 2**64 - 1",
    "SELECT w + 0 AS r, w * 1 AS s, w - 1 AS t, 0 + w AS x FROM u",
    "SELECT w + k AS r, k - w AS s, w + -1 AS t FROM u, c",
    "SELECT dec AS r FROM m UNION ALL SELECT g FROM m",
    "SELECT wide AS r FROM m UNION SELECT g FROM m",
    "SELECT id, CASE WHEN dec > 10.5 THEN dec ELSE g END AS r FROM m",
    "SELECT id, greatest(dec, g) AS r, least(wide, g) AS s FROM m",
    "SELECT a.id AS x, b.id AS y FROM m AS a JOIN m AS b ON a.dec = b.g",
    "SELECT a.id AS x FROM m AS a WHERE a.wide IN (SELECT g FROM m)",
    "SELECT avg(dec) > 10.6633 AS r, avg(wide) = 4.2475 AS s FROM m",
    "SELECT id, wide + g AS r, wide * 0.1 + g AS s FROM m",
    f"SELECT k, {_ROW} + 1 AS a, {_ROW} - k AS b, {_ROW} % 2 AS c, {_ROW} * 2 AS d FROM c",
    f"SELECT k, CASE WHEN k = 2 THEN {_ROW} ELSE -1 END AS r, ntile(2) OVER (ORDER BY k) % 2 AS s FROM c",
    f"SELECT k AS r FROM c UNION ALL SELECT {_ROW} FROM c",
    f"SELECT a.k FROM (SELECT k, {_ROW} AS r FROM c) AS a JOIN c ON a.r = c.k",
    "SELECT k FROM c JOIN u ON k = w",
    "SELECT k AS r FROM c UNION ALL SELECT w FROM u",
    "SELECT k, t > TIME '00:30:00' AS a, s BETWEEN TIME '00:00:00' AND TIME '07:00:00' AS b, s = t AS c FROM c",
    "SELECT k FROM c WHERE t IN (TIME '01:00:00', TIME '23:00:00')",
    "SELECT max(t) AS a, min(s) AS b FROM c",
)


@pytest.fixture(scope="module")
def both(nothing_is_left_by_the_module: None) -> Iterator[tuple[Environment, duckdb.DuckDBPyConnection]]:
    with Environment(config={"parallelism.default": 2}) as environment, duckdb.connect() as oracle:
        for name, table in _TABLES.items():
            environment.register(name, environment.from_arrow(table))
            oracle.register(name, table)
        yield environment, oracle


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(both: tuple[Environment, duckdb.DuckDBPyConnection], query: str) -> None:
    environment, oracle = both
    assert rows_of(environment.sql(query).to_arrow()) == sorted(oracle.sql(query).fetchall(), key=repr)


def test_numbers_of_rows_are_integers(both: tuple[Environment, duckdb.DuckDBPyConnection]) -> None:
    found = both[0].sql(f"SELECT {_ROW} + 1 AS a, {_ROW} - k AS b, rank() OVER (ORDER BY k) % 2 AS c FROM c")
    assert found.schema.types == [pa.int64()] * 3


@pytest.mark.parametrize(
    ("condition", "filtered"),
    [
        ("CAST(id AS bigint) = 1 + 1", "filter id == 2"),
        ("3 > id", "filter id < 3"),
        ("CAST(dec AS decimal(20, 4)) >= 10.5", "filter dec >= 10.5"),
        ("CAST(dec AS int) = 11", "filter cast(round(dec, 0)"),
    ],
)
def test_a_cast_that_changes_nothing_is_dropped(
    both: tuple[Environment, duckdb.DuckDBPyConnection], condition: str, filtered: str
) -> None:
    assert filtered in both[0].sql(f"SELECT id FROM m WHERE {condition}").explain()


def test_a_result_that_an_integer_without_a_sign_has_no_room_for_is_an_error(environment: Environment) -> None:
    environment.register("unsigned", environment.from_arrow(_TABLES["u"]))
    for written in ("w + 1", "w - 2"):
        with pytest.raises(DataError, match="out of bounds; in a row with w="):
            environment.sql(f"SELECT {written} AS r FROM unsigned").to_arrow()
