"""Values of several megabytes between processes: rows that another process reads hold them themselves."""

from tests.chaos.cluster import ChaosCluster

JOB = """
import sys
import pyarrow as pa
from engine import Environment, JoinHint, col, max_

env = Environment()
wide = [(n, str(n % 10) * (2 << 20)) for n in range(12)]
rows = env.from_rows(wide, pa.schema([("k", pa.int64()), ("text", pa.string())])).rebalance()
small = env.from_rows([(n, n * n) for n in range(12)], pa.schema([("k", pa.int64()), ("square", pa.int64())]))
joined = rows.join(small, on="k", hint=JoinHint.REPARTITION_HASH_FIRST)
grouped = joined.group_by("k").agg(text=max_(col("text")), square=max_(col("square")))
ordered = grouped.sort("k", descending=True)
ordered.select("k", "square", col("text").str.slice(0, 2).alias("begin"), col("text").str.length().alias("size")) \\
    .write_csv(sys.argv[1])
env.execute("wide values")
"""


def test_wide_values_pass_through_every_exchange_between_two_processes(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    with ChaosCluster(tmp_path / "cluster", task_managers=2, slots=1) as cluster:
        job = cluster.submit(tmp_path / "job.py", tmp_path / "out", options=("-p", "2"))
        assert job.wait() == 0, job.stderr + cluster.log_tails()
    lines = [line for part in sorted((tmp_path / "out").iterdir()) for line in part.read_text().splitlines()]
    assert lines == [f"{n},{n * n},{str(n % 10) * 2},{2 << 20}" for n in range(11, -1, -1)]
