"""Databases on Spark: tasks of Spark read the ranges with the engine's reader."""

import sqlite3

import pytest

from engine import col

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
