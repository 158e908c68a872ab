"""A session that lives long, and a consumer that stands still for long: nothing of the cluster grows."""

import contextlib
import json
import os
import random
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.errors import EngineError
from tests.chaos.cluster import ROOT, ChaosCluster
from tests.chaos.conftest import JOB, rows_of
from tests.chaos.footprint import Footprint

JOBS = int(os.environ.get("SOAK_JOBS", "60"))
STALL_S = float(os.environ.get("SOAK_STALL_S", "30"))
SOAK_JOBS = ROOT / "tests" / "chaos" / "soak_jobs.py"
STALLED = ROOT / "tests" / "chaos" / "stalled_consumer.py"
MIB = 2**20
#: jobs between two looks, half of them in each of two sessions
ROUND = 10
#: looks until caches, arenas of the allocator and pools have their size
WARM = 2


class Canceller(threading.Thread):
    """Cancels jobs of one name, each at a random moment of its life."""

    def __init__(self, cluster, random_):
        super().__init__()
        self._cluster = cluster
        self._random = random_
        self._ends = threading.Event()
        self.cancelled = set()
        self.start()

    def run(self):
        due_s = {}
        with contextlib.closing(self._cluster.client()) as client:
            while not self._ends.wait(0.05):
                for line in client.jobs():
                    if line.name == "to be cancelled" and line.end_ms < 0 and line.job_id not in self.cancelled:
                        due_s.setdefault(line.job_id, time.monotonic() + self._random.uniform(0.0, 2.5))
                for job_id in [known for known, at_s in due_s.items() if at_s <= time.monotonic()]:
                    del due_s[job_id]
                    with contextlib.suppress(EngineError):
                        client.cancel(job_id)
                    self.cancelled.add(job_id)

    def close(self):
        self._ends.set()
        self.join()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1], indirect=True)
def test_many_jobs_of_a_session_leave_a_cluster_as_it_was(tmp_path, data, expected, seed):
    oracle = tmp_path / "expected.json"
    oracle.write_text(json.dumps(expected))
    number = seed.randrange(10**6)
    ends = {"finished": 0, "failed": 0, "cancelled": 0}
    # What is kept of ended jobs on purpose has its bound soon.
    settings = {"jobstore.max-capacity": 20, "jobstore.cache-size": "1mb"}
    with ChaosCluster(tmp_path / "cluster", **settings) as cluster:
        footprint, canceller = Footprint(cluster), Canceller(cluster, random.Random(number))
        footprint.take()
        try:
            for first in range(0, JOBS, ROUND):
                share = ROUND // 2
                sessions = [
                    cluster.submit(SOAK_JOBS, data, oracle, tmp_path, number, begin, share)
                    for begin in (first, first + share)
                ]
                for session in sessions:
                    assert session.wait(600) == 0, f"{session.stdout}\n{session.stderr}\n{cluster.log_tails()}"
                    for end, count in json.loads(session.stdout.splitlines()[-1]).items():
                        ends[end] += count
                overview = cluster.wait_until(
                    lambda: (found := cluster.get("/overview"))["slots-available"] == 4 and found, "free slots"
                )
                assert overview["jobs-running"] == 0
                footprint.take()
        finally:
            canceller.close()
    print(f"{ends}\n{footprint.report(WARM)}")
    assert sum(ends.values()) == JOBS
    assert ends["cancelled"] == len(canceller.cancelled) > 0 < ends["failed"]
    check_flat(footprint, 20 * MIB)


def check_flat(footprint, rss_bytes):
    report = footprint.report(WARM)
    for name in footprint.daemons:
        assert footprint.growth(name, "rss", WARM) < rss_bytes, f"{name}\n{report}"
        for measure in ("fds", "threads", "children"):
            assert footprint.growth(name, measure, WARM) <= 2, f"{name} {measure}\n{report}"
    assert len(set(footprint.temporary_files[1:])) == 1, report


@pytest.mark.timeout(1200)
def test_a_consumer_that_stands_still_costs_no_memory_and_nobody_else(tmp_path, data, expected):
    texts = pa.array([f"{number:064d}" for number in range(1000)])
    rows = 1_000_000
    (tmp_path / "wide").mkdir()
    for part in range(4):
        numbers = pa.array(range(part * rows, (part + 1) * rows), pa.int64())
        table = pa.table({"v": numbers, "text": texts.take(pa.array([number % 1000 for number in range(rows)]))})
        pq.write_table(table, tmp_path / "wide" / f"{part}.parquet", row_group_size=50_000)
    gate, reached = tmp_path / "gate", tmp_path / "reached"
    with ChaosCluster(tmp_path / "cluster", slots=3) as cluster:
        pipelined = ("-D", "execution.mode=PIPELINED", "-p", "4")
        job = cluster.submit(STALLED, tmp_path / "wide", tmp_path / "out", gate, reached, options=pipelined)
        cluster.wait_until(reached.exists, "a consumer that stands still")
        footprint = Footprint(cluster)
        ends_s = time.monotonic() + STALL_S
        while time.monotonic() < ends_s:
            footprint.take()
            time.sleep(STALL_S / 30)
        report = footprint.report(WARM)
        print(report)
        for name in footprint.daemons:
            resident = footprint.values(name, "rss", WARM)
            assert max(resident) - min(resident) < 16 * MIB, report
        assert cluster.get(f"/jobs/{job.job_id()}")["state"] == "RUNNING"
        other = cluster.submit(JOB, data, tmp_path / "other", 0, options=("-p", "2"))
        assert other.wait() == 0, other.stderr
        assert rows_of(tmp_path / "other") == expected
        gate.touch()
        assert job.wait(300) == 0, f"{job.stderr}\n{cluster.log_tails()}"
        total = 4 * rows
        assert rows_of(tmp_path / "out") == [(str(total), str(total * (total - 1) // 2), str(64 * total))]
