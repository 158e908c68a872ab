"""Values of several megabytes between processes: rows that another process reads hold them themselves."""

import pytest

from tests.chaos.cluster import ChaosCluster

pytestmark = pytest.mark.processes

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

JOB_BY_KEY = """
import sys
import pyarrow as pa
from engine import Environment, JoinHint, col

env = Environment()
schema = pa.schema([("text", pa.string()), ("n", pa.int64())])
#: alike but for the last letter
texts = ["k" * (2 << 20) + "abcdefgh"[n % 8] for n in range(12)]
rows = env.from_rows(list(zip(texts, range(12))), schema).rebalance()
others = env.from_rows([(texts[n], n) for n in (1, 3, 3, 5)], schema).rebalance()
others = others.select("text", col("n").alias("m"))
joined = rows.join(others, on="text", how="left", hint=JoinHint.REPARTITION_SORT_MERGE)
made = {"joined": joined.sort("text"), "ranges": rows.partition_by_range("text")}[sys.argv[2]]
other = col("m") if sys.argv[2] == "joined" else col("n")
made.select("n", other.alias("m"), col("text").str.slice(2 << 20, (2 << 20) + 1).alias("end")).write_csv(sys.argv[1])
env.execute("wide keys")
"""


def test_wide_values_pass_through_every_exchange_between_two_processes(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "by_key.py").write_text(JOB_BY_KEY)
    with ChaosCluster(tmp_path / "cluster", task_managers=2, slots=1) as cluster:
        job = cluster.submit(tmp_path / "job.py", tmp_path / "out", options=("-p", "2"))
        assert job.wait() == 0, job.stderr + cluster.log_tails()
        for kind in ("joined", "ranges"):
            job = cluster.submit(tmp_path / "by_key.py", tmp_path / kind, kind, options=("-p", "2"))
            assert job.wait() == 0, job.stderr + cluster.log_tails()
    lines = [line for part in sorted((tmp_path / "out").iterdir()) for line in part.read_text().splitlines()]
    assert lines == [f"{n},{n * n},{str(n % 10) * 2},{2 << 20}" for n in range(11, -1, -1)]
    found = rows_of(tmp_path / "joined")
    others = {"b": [1], "d": [3, 3], "f": [5]}
    pairs = [(str(n), str(m), "abcdefgh"[n % 8]) for n in range(12) for m in others.get("abcdefgh"[n % 8], [""])]
    assert sorted(found) == sorted(pairs)
    assert [end for _, _, end in found] == sorted(end for _, _, end in pairs)
    found = rows_of(tmp_path / "ranges")
    assert sorted(found) == sorted((str(n), str(n), "abcdefgh"[n % 8]) for n in range(12))
    assert [end for _, _, end in found] == sorted(end for _, _, end in found)


def rows_of(folder):
    return [tuple(line.split(",")) for part in sorted(folder.iterdir()) for line in part.read_text().splitlines()]
