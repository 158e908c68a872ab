"""Joins whose parts lie in two TaskManagers: each source leaves out what no part of the build side has."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.processes

JOB = """
import pathlib, re, sys
import pyarrow as pa
import pyarrow.parquet as pq
from engine import Environment, JoinHint, col, count, sum_

env = Environment(config={"execution.mode": sys.argv[2], "parallelism.default": 2}, target="cluster")
folder = pathlib.Path(sys.argv[1])
numbers = pa.table({"k": [row % 10_000 for row in range(200_000)], "n": range(200_000)})
for name, table in (("facts", numbers), ("few", pa.table({"d": range(0, 10_000, 100), "w": range(100)}))):
    (folder / name).mkdir(exist_ok=True)
    for part in range(2):
        pq.write_table(table.slice(part * len(table) // 2, len(table) // 2), folder / name / f"{part}.parquet")
facts, few = env.read_parquet(str(folder / "facts")), env.read_parquet(str(folder / "few"))
joined = facts.join(few, left_on="k", right_on="d", hint=JoinHint.REPARTITION_HASH_SECOND)
totals = joined.agg(rows=count(), n=sum_("n"), w=sum_("w"))
expected = [row for row in range(200_000) if row % 10_000 % 100 == 0]
assert totals.collect()[0] == (len(expected), sum(expected), sum(row % 10_000 // 100 for row in expected))
told = totals.explain(analyze=True)
left_out = re.findall("left out ([0-9 ]+) rows at run time", told)
print(*[each.replace(" ", "") for each in left_out] or ["none"])
"""


def test_a_source_leaves_out_rows_that_no_part_in_another_process_has(installation, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    (installation.conf / "workers").write_text("localhost\nlocalhost\n")
    installation.configure(taskmanager__numberOfTaskSlots=1)
    assert installation.run("cluster", "start").returncode == 0
    try:
        for mode in ("PIPELINED", "BATCH"):
            command = (sys.executable, str(tmp_path / "job.py"), str(tmp_path), mode)
            done = installation.run("job.py", command=command)
            assert (done.returncode, done.stdout.strip()) == (0, "198000"), done.stderr + done.stdout
    finally:
        assert installation.run("cluster", "stop").returncode == 0
