"""Bits of files that a TaskManager at work has written flip: that is noticed, and what was lost is computed again."""

import hashlib
import json
import os
import threading

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chaos.cluster import ROOT, ChaosCluster
from tests.chaos.conftest import rows_of

WIDE_JOB = ROOT / "tests" / "chaos" / "wide_join_sort.py"
ROWS = 240_000
RATE = 60_000
#: files of results and of operators, by the end of their names
KINDS = {"partition": ".shuffle.data", "spill": ".spill"}
FILES = 2
#: one bit in each so many bytes: no block is spared
STRIDE = 4096


@pytest.fixture(scope="module")
def wide(data):
    numbers = range(ROWS)
    texts = [hashlib.sha256(str(number).encode()).hexdigest() * 2 for number in numbers]
    keys = pa.array([number % 5000 for number in numbers], pa.int64())
    pq.write_table(pa.table({"k": keys, "text": texts}), data / "wide.parquet", row_group_size=10_000)
    return data


class Flipper(threading.Thread):
    """Flips bits in the first files of a kind that are large enough, while they are in use."""

    def __init__(self, folder, ending, random_):
        super().__init__()
        self._folder = folder
        self._ending = ending
        self._random = random_
        self._ends = threading.Event()
        self.flipped = {}
        self.start()

    def run(self):
        while not self._ends.wait(0.01) and len(self.flipped) < FILES:
            for path in self._folder.rglob(f"*{self._ending}"):
                if path not in self.flipped and len(self.flipped) < FILES:
                    self._flip(path)

    def _flip(self, path):
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return
        try:
            size = os.fstat(descriptor).st_size
            if size < 64 * STRIDE:
                return
            for begin in range(0, size - STRIDE, STRIDE):
                at = begin + self._random.randrange(STRIDE)
                byte = os.pread(descriptor, 1, at)
                os.pwrite(descriptor, bytes([byte[0] ^ 1 << self._random.randrange(8)]), at)
            self.flipped[path] = size // STRIDE
        finally:
            os.close(descriptor)

    def close(self):
        self._ends.set()
        self.join()


@pytest.mark.parametrize("seed", [1], indirect=True)
@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bits_in_files_cost_time_and_no_row(tmp_path, wide, seed, kind):
    settings = {"taskmanager.memory.network.max": "4mb", "taskmanager.memory.managed.size": "8mb"}
    with ChaosCluster(tmp_path / "cluster", **settings) as cluster:
        flipper = Flipper(cluster.temporary, KINDS[kind], seed)
        try:
            job = cluster.submit(WIDE_JOB, wide, tmp_path / "out", RATE)
            code = job.wait(120)
        finally:
            flipper.close()
        failures = json.dumps(cluster.get(f"/jobs/{job.job_id()}/exceptions"))
        print({path.name: count for path, count in flipper.flipped.items()}, failures.count("CorruptBlockError"))
        assert code == 0, f"{job.stderr}\n{cluster.log_tails(20)}"
        assert flipper.flipped
        assert "CorruptBlockError" in failures or "wrong checksum" in failures, failures[:5000]
    query = f"SELECT k, text, name FROM '{wide}/wide.parquet' JOIN '{wide}/names.parquet' USING (k) ORDER BY text"
    expected = [(str(k), text, name) for k, text, name in duckdb.sql(query).fetchall()]
    assert rows_of(tmp_path / "out") == expected
