"""Every border of the engine in one program: what works where it runs, and what is refused there by name.

    python connectors.py FOLDER TARGET {"postgresql": URI, "settings": {…}}     one line of JSON: {connector: ""}

A connector that is refused has the words of its error. An entry reads what it wrote, so that rows are compared.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa

from engine import Environment, col, delta, iceberg
from engine.errors import NotYetSupportedError, PlanError

ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "s": [f"text {n % 7}" for n in range(100)]})
LATER = pa.table({"id": pa.array([99, 100], pa.int64()), "s": ["later", "new"]})


def written_and_read(env, write, read):
    write(env.from_arrow(ROWS))
    env.execute()
    found = read().filter(col("id") >= 90).to_arrow().sort_by("id")
    assert found.to_pylist() == ROWS.slice(90).to_pylist(), found


def merged(env, target, write, read):
    write(env.from_arrow(ROWS))
    env.execute()
    env.from_arrow(LATER).merge_into(target, on="id")
    found = read().filter(col("id") >= 99).to_arrow().sort_by("id")
    assert found.to_pylist() == LATER.to_pylist(), found


def catalog_in(folder):
    from pyiceberg.catalog.sql import SqlCatalog

    (folder / "lake").mkdir(exist_ok=True)
    place = {"uri": f"sqlite:///{folder}/lake/c.db", "warehouse": f"file://{folder}/lake"}
    catalog = SqlCatalog("lake", **place)
    catalog.create_namespace_if_not_exists("db")
    return catalog


def duckdb_at(folder):
    import duckdb

    place = f"{folder}/things.duckdb"
    with duckdb.connect(place) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS things AS SELECT range AS id FROM range(100)")
    return place


def read_by_driver(env, folder):
    found = env.read_database("things", duckdb_at(folder), driver="duckdb", partition_on="id", partitions=2)
    assert sorted(row.id for row in found.collect()) == list(range(100))


def connectors(env, folder, given):
    lake, server = f"{folder}/delta", given["postgresql"]
    sqlite, bucket = f"sqlite://{folder}/shop.db", "s3://bucket/rows"
    yield (
        "parquet on a store",
        lambda: written_and_read(env, lambda rows: rows.write_parquet(bucket), lambda: env.read_parquet(bucket)),
    )
    yield "delta", lambda: written_and_read(env, lambda rows: rows.write_delta(lake), lambda: env.read_delta(lake))
    yield (
        "delta merge",
        lambda: merged(
            env, delta(f"{lake}-m"), lambda rows: rows.write_delta(f"{lake}-m"), lambda: env.read_delta(f"{lake}-m")
        ),
    )
    catalog = catalog_in(folder)
    yield (
        "iceberg",
        lambda: written_and_read(
            env, lambda rows: rows.write_iceberg("db.t", catalog), lambda: env.read_iceberg("db.t", catalog)
        ),
    )
    yield (
        "iceberg merge",
        lambda: merged(
            env,
            iceberg("db.m", catalog),
            lambda rows: rows.write_iceberg("db.m", catalog),
            lambda: env.read_iceberg("db.m", catalog),
        ),
    )
    for name, place in (("postgresql", server), ("sqlite", sqlite)):
        yield (
            name,
            lambda place=place: written_and_read(
                env,
                lambda rows: rows.write_database("orders", place),
                lambda: env.read_database("orders", place, partition_on="id", partitions=2),
            ),
        )
    yield "another driver", lambda: read_by_driver(env, folder)


def main():
    folder, target, given = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    told = {}
    with Environment({"parallelism.default": "2", **given["settings"]}, target=target) as env:
        for name, works in connectors(env, folder, given):
            try:
                works()
                told[name] = ""
            except (NotYetSupportedError, PlanError) as error:
                told[name] = str(error)
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
