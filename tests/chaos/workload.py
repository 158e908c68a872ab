"""The job of the chaos tests: its data, and what must come out."""

import csv
import random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tests.chaos.cluster import ROOT

ROWS = 120_000
#: rows a second of a job that should live for some seconds
RATE = 40_000
JOB = ROOT / "tests" / "chaos" / "shuffle_join_sort.py"


def write_data(folder):
    """Write what the job reads."""
    random_ = random.Random(7)
    keys = [random_.randrange(5000) for _ in range(ROWS)]
    facts = pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(range(ROWS), pa.int64())})
    names = pa.table({"k": pa.array(range(4800), pa.int64()), "name": [f"name-{k % 700}" for k in range(4800)]})
    pq.write_table(facts, folder / "facts.parquet", row_group_size=10_000)
    pq.write_table(names, folder / "names.parquet")


def expected_rows(folder):
    """Return the job's output by DuckDB."""
    query = f"""
        SELECT upper(name) AS name, count(*) AS rows, sum(v + 1)::BIGINT AS total
        FROM '{folder}/facts.parquet' JOIN '{folder}/names.parquet' USING (k) GROUP BY 1 ORDER BY total DESC, name DESC
    """
    return [(name, str(rows), str(total)) for name, rows, total in duckdb.sql(query).fetchall()]


def rows_of(folder):
    """Return the rows of an output's parts, in order of their numbers."""
    rows = []
    for part in sorted(folder.glob("part-*.csv")):
        with part.open(newline="") as file:
            rows += [tuple(row) for row in csv.reader(file)]
    return rows
