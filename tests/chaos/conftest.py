"""Data and oracle of the chaos jobs.

``CHAOS=all`` runs everything, ``CHAOS=short`` a part of it that takes a few minutes; without it nothing is collected.
``CHAOS_SEED=n`` repeats the random schedules of one seed.
"""

import csv
import os
import random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chaos.cluster import ROOT

IS_SHORT = os.environ.get("CHAOS") == "short"
collect_ignore_glob = [] if os.environ.get("CHAOS") else ["test_*.py"]
ROWS = 120_000
#: rows a second of a job that should live for some seconds
RATE = 40_000
JOB = ROOT / "tests" / "chaos" / "shuffle_join_sort.py"


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/chaos" in str(item.path):
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chaos-data")
    random_ = random.Random(7)
    keys = [random_.randrange(5000) for _ in range(ROWS)]
    facts = pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(range(ROWS), pa.int64())})
    names = pa.table({"k": pa.array(range(4800), pa.int64()), "name": [f"name-{k % 700}" for k in range(4800)]})
    pq.write_table(facts, folder / "facts.parquet", row_group_size=10_000)
    pq.write_table(names, folder / "names.parquet")
    return folder


@pytest.fixture(scope="session")
def expected(data):
    query = f"""
        SELECT upper(name) AS name, count(*) AS rows, sum(v + 1)::BIGINT AS total
        FROM '{data}/facts.parquet' JOIN '{data}/names.parquet' USING (k) GROUP BY 1 ORDER BY total DESC, name DESC
    """
    return [(name, str(rows), str(total)) for name, rows, total in duckdb.sql(query).fetchall()]


@pytest.fixture
def seed(request):
    """Return the random numbers of one schedule."""
    chosen = int(os.environ.get("CHAOS_SEED", request.param))
    print(f"seed {chosen}")
    return random.Random(chosen)


def rows_of(folder):
    """Return the rows of an output's parts, in order of their numbers."""
    rows = []
    for part in sorted(folder.glob("part-*.csv")):
        with part.open(newline="") as file:
            rows += [tuple(row) for row in csv.reader(file)]
    return rows
