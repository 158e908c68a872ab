"""Rows that a script reads while its job runs on a cluster of real processes; leaving early cancels the job there."""

from __future__ import annotations

import json
import sys
import urllib.request

import pytest

from tests.entrypoint.conftest import until

pytestmark = pytest.mark.processes

JOB = """
import sys
import pyarrow as pa
from engine import Environment, col

env = Environment(target="cluster")
numbers = env.from_arrow(pa.table({"n": range(300_000)}))
rows = [row.n for row in numbers.sort("n", descending=True).iter_rows()]
assert rows == list(range(300_000))[::-1], rows[:10]
with numbers.select((col("n") * 2).alias("n")).to_batches() as batches:
    assert sorted(n for batch in batches for n in batch.column(0).to_pylist()) == list(range(0, 600_000, 2))
numbers.write_parquet(sys.argv[1])
env.execute()
mapped = env.read_parquet(sys.argv[1]).map(lambda row: (row.n,), numbers.schema)
for first in (0, 100_000, 299_990):
    assert [row.n for row in mapped.limit(10, offset=first).iter_rows()] == list(range(first, first + 10))
endless = env.from_arrow(pa.table({"n": range(300_000)}), rate_limit=1000.0).to_batches()
assert next(endless).num_rows
endless.close()
print("all read")
"""


def test_rows_come_from_a_cluster_and_leaving_cancels_the_job(installation, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    started = installation.run("cluster", "start")
    assert started.returncode == 0, started.stderr + started.stdout
    command = (sys.executable, str(tmp_path / "job.py"), str(tmp_path / "numbers"))
    done = installation.run("job.py", command=command)
    assert (done.returncode, done.stdout.strip()) == (0, "all read"), done.stderr

    def states():
        with urllib.request.urlopen(f"http://localhost:{installation.port}/jobs/overview", timeout=30) as response:
            return sorted(job["state"] for job in json.loads(response.read())["jobs"])

    until(lambda: states() == ["CANCELED", *["FINISHED"] * 6], "the end of all jobs")
    assert installation.run("cluster", "stop").returncode == 0
