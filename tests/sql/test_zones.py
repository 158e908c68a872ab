"""AT TIME ZONE of columns and constants: the answers are DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pytest

from engine import Environment, PlanError, SchemaError
from tests.sql.conftest import rows_of

_BERLIN = "AT TIME ZONE 'Europe/Berlin'"
#: with hours that are there twice, or not at all
_MOMENTS = [
    datetime.fromisoformat(text) if text else None
    for text in (
        *("2024-02-29T23:30", "2024-07-01T00:15", "", "2024-03-31T01:59", "2024-03-31T02:30", "2024-03-31T03:00"),
        *("2024-10-26T12:00", "2024-10-27T01:59", "2024-10-27T02:30", "2024-10-27T03:00", "1970-01-01T00:00"),
    )
]
QUERIES = (
    f"SELECT CAST(t {_BERLIN} AS VARCHAR) AS r FROM m",
    f"SELECT CAST(n {_BERLIN} AS VARCHAR) AS r FROM m",
    f"SELECT CAST(d {_BERLIN} AS VARCHAR) AS r FROM m",
    "SELECT CAST(t AT TIME ZONE 'Australia/Sydney' AS VARCHAR) AS r FROM m",
    f"SELECT z {_BERLIN} AS r, CAST(z {_BERLIN} AS DATE) AS s, date_trunc('day', z {_BERLIN}) AS u FROM m",
    f"SELECT extract(hour FROM z {_BERLIN}) AS r, other {_BERLIN} AS s FROM m",
    f"SELECT t AT TIME ZONE 'UTC' {_BERLIN} AS r FROM m",
    "SELECT (t + INTERVAL '1 hour') AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York' AS r FROM m",
    f"SELECT count(*) AS n FROM m WHERE t {_BERLIN} < timestamptz '2024-02-29 23:00:00+00'",
    f"SELECT m.z {_BERLIN} AS r FROM m WHERE m.t {_BERLIN} < z",
    f"SELECT z::timestamp {_BERLIN} AT TIME ZONE 'UTC' AS r FROM m",
    f"SELECT CASE WHEN t IS NULL THEN z ELSE z END {_BERLIN} AS r FROM m",
    f"SELECT max(\"z\") {_BERLIN} AS r, TIMESTAMP '2024-01-01 00:00:00' {_BERLIN} AT TIME ZONE 'UTC' AS s FROM m",
    f"SELECT timestamptz '2024-01-01 12:00:00+05:30' {_BERLIN} AS r",
    f"SELECT a.t FROM m AS a JOIN m AS b ON a.t {_BERLIN} = b.z",
    "SELECT count(*) AS n FROM m WHERE z > TIMESTAMPTZ '2024-03-01 00:30:00+02:00' AND now() > z",
    "SELECT CAST(z AS VARCHAR) AS r, CAST(z AS DATE) AS s FROM m",
    "SELECT z > t AS a, z = d AS b, d < other AS c, z IN (TIMESTAMP '1970-01-01') AS e, z - t AS f FROM m",
    "SELECT now() > TIMESTAMP '2020-01-01' AS a, current_timestamp > DATE '2020-01-01' AS b",
    "SELECT count(*) AS n FROM m AS a JOIN m AS b ON a.z = b.t WHERE a.z IN (SELECT t FROM m)",
    "SELECT CAST(coalesce(other, t) AS VARCHAR) AS a, CAST(greatest(d, z) AS VARCHAR) AS b FROM m",
)


@pytest.fixture(scope="module")
def both(nothing_is_left_by_the_module: None) -> Iterator[tuple[Environment, duckdb.DuckDBPyConnection]]:
    local = pa.array(_MOMENTS, pa.timestamp("us"))
    table = pa.table(
        {
            "t": local,
            "n": local.cast(pa.timestamp("ns")),
            "d": local.cast(pa.timestamp("s")).cast(pa.date32(), safe=False),
            "z": pa.array(_MOMENTS, pa.timestamp("us", "UTC")),
            "other": pa.array(_MOMENTS, pa.timestamp("us", "Asia/Tokyo")),
        }
    )
    with Environment(config={"parallelism.default": 2}) as environment, duckdb.connect() as oracle:
        environment.register("m", environment.from_arrow(table))
        oracle.register("m", table)
        oracle.execute("SET timezone = 'UTC'")
        yield environment, oracle


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdbs(both: tuple[Environment, duckdb.DuckDBPyConnection], query: str) -> None:
    environment, oracle = both
    assert rows_of(environment.sql(query).to_arrow()) == sorted(oracle.sql(query).fetchall(), key=repr)


def test_what_is_no_time_or_no_zone_is_said(both: tuple[Environment, duckdb.DuckDBPyConnection]) -> None:
    environment, _ = both
    with pytest.raises(PlanError, match="AT TIME ZONE of what is no TIMESTAMP"):
        environment.sql("SELECT '2024-01-01' AT TIME ZONE 'UTC' AS x")
    with pytest.raises(SchemaError, match="there is no time zone 'Nowhere'"):
        environment.sql("SELECT z AT TIME ZONE 'Nowhere' AS x FROM m")


def test_a_column_without_a_name_is_as_it_is_written(
    both: tuple[Environment, duckdb.DuckDBPyConnection],
) -> None:
    found = both[0].sql("SELECT t AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo' FROM m")
    assert found.columns == ["t at time zone 'UTC' at time zone 'Asia/Tokyo'"]


def test_a_group_by_a_zone_is_that_of_the_list(both: tuple[Environment, duckdb.DuckDBPyConnection]) -> None:
    query = "SELECT {0} AS x, count(*) AS n FROM m GROUP BY {0}".format(
        "date_trunc('day', t AT TIME ZONE 'Asia/Tokyo')"
    )
    found = both[0].sql(query).to_arrow()
    assert sum(found["n"].to_pylist()) == both[1].execute("SELECT count(*) FROM m").fetchone()[0]
    assert found.num_rows == len(both[1].execute(query).fetchall())


def test_equal_values_of_several_types_have_a_zone_each() -> None:
    with Environment() as env:
        moments = pa.array([0], pa.timestamp("us"))
        env.register("a", env.from_arrow(pa.table({"t": moments})))
        env.register("b", env.from_arrow(pa.table({"t": moments.cast(pa.timestamp("us", "UTC"))})))
        query = "SELECT CAST({0} AS VARCHAR) AS x FROM a UNION ALL SELECT CAST({0} AS VARCHAR) FROM b"
        found = env.sql(query.format("t AT TIME ZONE 'Asia/Tokyo'")).to_arrow()
        assert sorted(found["x"].to_pylist()) == ["1969-12-31 15:00:00+00", "1970-01-01 09:00:00"]


def test_a_day_of_a_moment_is_one_of_utc_whatever_the_zone_of_its_column(environment: Environment) -> None:
    moment = datetime(2024, 3, 31, 0, 30, tzinfo=UTC)
    table = pa.table({"z": pa.array([moment], pa.timestamp("us", "Europe/Berlin")), "n": [1]})
    environment.register("berlin", environment.from_arrow(table))
    query = "SELECT z + INTERVAL '1 day' AS a, z + INTERVAL (n) DAY AS b, z - INTERVAL '1 month' AS c FROM berlin"
    (row,) = environment.sql(query).to_arrow().to_pylist()
    assert row["a"] == row["b"] == moment + timedelta(days=1)
    assert row["c"] == datetime(2024, 2, 29, 0, 30, tzinfo=UTC)
