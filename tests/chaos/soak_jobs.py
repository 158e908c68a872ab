"""Jobs of one session, one after the other: most end, some fail, some wait until somebody cancels them.

    soak_jobs.py DATA EXPECTED FOLDER SEED FIRST COUNT     EXPECTED: JSON, the rows of each job that ends

Exits with 1 when a job has other rows, or another end, than it should; prints how many had which end.
"""

import collections
import csv
import json
import random
import shutil
import sys
from pathlib import Path

import pyarrow as pa

from engine import Environment, JoinHint, col, count, sum_
from engine.errors import JobCancelledError, JobExecutionError

source, expected_file, folder, seed, first, job_count = sys.argv[1:]
expected = [tuple(row) for row in json.loads(Path(expected_file).read_text())]
schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("name", pa.string())])
environment = Environment()


def marker(fails_at):
    def mark(row):
        if row.v >= fails_at:
            raise ValueError("this row is not wanted")
        return row.k, row.v + 1, row.name.upper()

    return mark


def rows_of(target):
    rows = []
    for part in sorted(target.glob("part-*.csv")):
        with part.open(newline="") as file:
            rows += [tuple(row) for row in csv.reader(file)]
    return rows


def run(fate, fails_at, target):
    """Return how a job ended."""
    facts = environment.read_parquet(f"{source}/facts.parquet", rate_limit=5_000 if fate == "cancelled" else None)
    names = environment.read_parquet(f"{source}/names.parquet")
    joined = facts.join(names, on="k", hint=JoinHint.REPARTITION_HASH_SECOND)
    marked = joined.map(marker(fails_at), schema)
    groups = marked.group_by("name").agg(rows=count(), total=sum_(col("v"))).sort(["total", "name"], descending=True)
    groups.write_csv(str(target))
    try:
        environment.execute(f"to be {fate}")
    except JobCancelledError:
        return "cancelled"
    except JobExecutionError as error:
        return "failed" if "is not wanted" in str(error) else f"failed with {error}"
    return "finished" if rows_of(target) == expected else "finished with other rows"


ends = collections.Counter()
for number in range(int(first), int(first) + int(job_count)):
    random_ = random.Random(f"{seed}-{number}")
    fate = random_.choices(["finished", "failed", "cancelled"], [8, 1, 1])[0]
    target = Path(folder) / f"out-{number}"
    end = run(fate, random_.randrange(110_000) if fate == "failed" else 10**9, target)
    ends[end] += 1
    if end != fate:
        sys.exit(f"job {number} should have {fate}, but {end}")
    if fate != "finished" and target.exists():
        sys.exit(f"job {number} has {fate} and left an output")
    shutil.rmtree(target, ignore_errors=True)
print(json.dumps(ends))
