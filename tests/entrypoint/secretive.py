"""A program over all connectors, each opened by secrets of its own, which says all that it can say.

    python -m tests.entrypoint.secretive FOLDER TARGET        secrets and places: one line of JSON on standard input

While its last job runs, a function in a worker writes its process's id to FOLDER/worker, and waits for FOLDER/go.
"""

import json
import logging
import os
import sys
import time
from pathlib import Path

import pyarrow as pa

from engine import Environment, delta, iceberg

ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "s": [f"text {n % 7}" for n in range(100)]})
BUCKET = "s3://data"


def told(data):
    """Print what a data set says of itself."""
    sys.stdout.write(f"{data!r}\n{data.explain()}\n{data.explain(logical=True)}\n")
    sys.stdout.write(f"{data.explain(format='html')}\n{data.explain(analyze=True)}\n")


def refused(call):
    """Log an error with all that hangs on it."""
    try:
        call()
    except Exception:
        logging.exception("refused")
    else:
        raise AssertionError("it was not refused")


def main():
    folder, target, given = Path(sys.argv[1]), sys.argv[2], json.loads(sys.stdin.readline())
    logging.basicConfig(level="DEBUG")
    options, database = given["options"], given["database"]
    with Environment({"parallelism.default": "2"}, target=target) as env:
        rows = env.from_arrow(ROWS)
        rows.write_parquet(f"{BUCKET}/plain", storage_options=options)
        rows.write_records(f"{BUCKET}/records", storage_options=options)
        rows.write_delta(f"{BUCKET}/delta", storage_options=options)
        rows.write_iceberg("db.t", f"{BUCKET}/lake", storage_options=options)
        print(env.execute())
        rows.merge_into(delta(f"{BUCKET}/delta", storage_options=options), on="id")
        rows.merge_into(iceberg("db.t", f"{BUCKET}/lake", storage_options=options), on="id")
        env.attach("lake", f"{BUCKET}/lake", storage_options=options)
        rows.write_database("orders", database, mode="overwrite")
        print(env.execute())
        for data in (
            env.read_parquet(f"{BUCKET}/plain", storage_options=options),
            env.read_records(f"{BUCKET}/records", storage_options=options),
            env.read_delta(f"{BUCKET}/delta", storage_options=options),
            env.sql("SELECT * FROM lake.db.t"),
            env.read_database("orders", database, partition_on="id", partitions=2),
        ):
            told(data)
            assert data.count() == 100
        refused(lambda: env.read_parquet("s3://nowhere/x", storage_options=options))
        refused(lambda: env.read_delta("s3://nowhere/x", storage_options=options))
        refused(lambda: env.read_iceberg("db.none", f"{BUCKET}/lake", storage_options=options))
        refused(lambda: env.read_database("SELECT nothing", database))

        def waits(row):
            pid = folder / "worker"
            if not pid.exists():
                pid.write_text(f"{os.getpid()} {os.getppid()}")
            while not (folder / "go").exists():
                time.sleep(0.05)
            return row

        data = env.read_parquet(f"{BUCKET}/plain", storage_options=options)
        print(data.map(waits, schema=ROWS.schema).count())


if __name__ == "__main__":
    main()
