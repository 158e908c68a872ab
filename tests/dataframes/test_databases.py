"""Databases on Spark: tasks of Spark read the ranges with the engine's reader."""

import sqlite3

import pytest

from engine import col, count, count_distinct, sum_
from engine.errors import EngineError, PlanError
from tests.postgresql_server import postgresql

pytestmark = pytest.mark.spark
pytest.importorskip("adbc_driver_sqlite.dbapi")


@pytest.fixture
def file(tmp_path):
    place = tmp_path / "numbers.db"
    with sqlite3.connect(place) as connection:
        connection.execute("CREATE TABLE t (i INTEGER, s TEXT, f REAL)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(i, f"text {i % 7}", i / 4) for i in range(1000)])
    connection.close()
    return f"sqlite://{place}"


def test_ranges_are_read_by_tasks_of_spark(places, file):
    for env in places:
        data = env.read_database("t", file, partition_on="i", partitions=3)
        kept = data.filter((col("i") >= 990) & (col("s") == "text 3")).select("i", "f").collect()
        assert sorted(kept) == [(i, i / 4) for i in range(990, 1000) if i % 7 == 3]


def test_tasks_of_spark_write_tables(places, file):
    with postgresql() as uri:
        for number, env in enumerate(places):
            rows = env.read_database("t", file, partition_on="i", partitions=3).filter(col("i") < 500)
            for place in (file, uri):
                rows.write_database(f"w{number}", place)
                env.execute()
                rows.select("i", (col("f") + 1).alias("f")).write_database(f"w{number}", place, mode="upsert", on="i")
                with pytest.raises(PlanError, match="no unique index"):
                    env.execute()
                rows.select("i").write_database(f"w{number}", place, mode="append")
                env.execute()
                found = env.read_database(f"w{number}", place)
                assert found.agg(n=count(), d=count_distinct("i"), s=sum_("f")).collect() == [(1000, 500, 31187.5)]
        with pytest.raises(EngineError, match="on a cluster pass uri='env:NAME'"):
            secret = uri.replace("tester@", "tester:pw@")
            places[1].read_database("w0", secret).write_database("w2", secret)
            places[1].execute()
