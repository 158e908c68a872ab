"""Groups in the order of their keys on two processes: combined runs cross the network and are combined on arrival."""

import random

import pytest

from tests.chaos.cluster import ChaosCluster

JOB = """
import random, sys
import pyarrow as pa
from engine import Environment, avg, col, count, max_, min_, sum_
from engine.optimizer import sort_planning, sorted_aggregates

sort_planning.SMALL_SORT_BYTES = 0.0            # sorted in ranges, however little it is
sorted_aggregates._why_dearer = lambda *_: ""   # and combined
chance = random.Random(7)
rows = [(chance.randrange(300), chance.randrange(1000), "x" * chance.randrange(40)) for _ in range(20_000)]
env = Environment()
data = env.from_rows(rows, pa.schema([("k", pa.int64()), ("n", pa.int64()), ("text", pa.string())])).rebalance()
groups = data.group_by("k").agg(
    rows=count(), total=sum_("n"), mean=avg("n"), least=min_("text"), longest=max_("text")
)
ordered = groups.filter(col("total") > 33_000).sort("k", descending=True)
if "SORTED_AGGREGATE" not in ordered.explain():
    raise SystemExit(ordered.explain())
ordered.select("k", "rows", "total", "mean", "least", "longest").write_csv(sys.argv[1])
env.execute("combined runs")
"""


def expected_lines():
    chance = random.Random(7)
    groups = {}
    for _ in range(20_000):
        key, number, text = chance.randrange(300), chance.randrange(1000), "x" * chance.randrange(40)
        groups.setdefault(key, []).append((number, text))
    lines = []
    for key in sorted(groups, reverse=True):
        numbers, texts = zip(*groups[key], strict=True)
        if sum(numbers) > 33_000:
            mean = sum(numbers) / len(numbers)
            lines.append((key, len(numbers), sum(numbers), mean, min(texts), max(texts)))
    return lines


def lines_of(folder):
    for part in sorted(folder.iterdir()):
        for line in part.read_text().splitlines():
            key, rows, total, mean, least, longest = line.split(",")
            yield int(key), int(rows), int(total), float(mean), least.strip('"'), longest


@pytest.mark.processes
@pytest.mark.timeout(300)
def test_combined_runs_that_cross_the_network_give_each_group_once_and_in_order(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    with ChaosCluster(tmp_path / "cluster", task_managers=2, slots=1) as cluster:
        for name, options in (("memory", ()), ("disk", ("-D", "debug.force-spill=true"))):
            job = cluster.submit(tmp_path / "job.py", tmp_path / name, options=("-p", "2", *options))
            assert job.wait() == 0, job.stderr + cluster.log_tails()
    expected = expected_lines()
    assert 50 < len(expected) < 300
    assert list(lines_of(tmp_path / "memory")) == list(lines_of(tmp_path / "disk")) == expected
    parts = [part for part in (tmp_path / "memory").iterdir() if part.stat().st_size > 0]
    assert len(parts) == 2, "each process has a range, and of each range the runs of both"
