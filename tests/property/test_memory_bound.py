"""Jobs over a hundred times their managed memory: right, within the bound of resident memory, nothing left behind.

    resident over idle <= managed + network + 64 MB + 16 MB a slot + 4 x the largest record a slot

Each job is a process of its own (budget_job.py); where the machine lets us make a memory control group, the kernel
enforces the bound too, and ends the process that goes beyond.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.config.loader import configuration_from_texts
from engine.memory.process_memory import process_memory
from tests.property.budget_job import PROCESS_SIZE
from tests.property.matrix import IS_TORTURE

ROOT = Path(__file__).resolve().parents[2]
SLOTS = 2
MEGABYTE = 1 << 20
#: with the address sanitizer, whose memory is larger than the bound, only results are looked at
IS_BOUNDED = "libasan" not in os.environ.get("LD_PRELOAD", "")
#: managed memory, and the megabytes of rows that are a hundred times as much
SIZES = {"4mb": 400, "16mb": 1600, "64mb": 6400} if IS_TORTURE else {"160kb": 16}
JOBS = {
    "sort": "SELECT * FROM 'facts.parquet'",
    "group": "SELECT v, count(*) AS rows, sum(k) AS total, max(text) AS text FROM 'facts.parquet' GROUP BY v",
    "join": "SELECT f.*, o.other FROM 'facts.parquet' f JOIN 'others.parquet' o USING (v)",
    "heavy_probe": "SELECT h.*, n.name FROM 'heavy.parquet' h JOIN 'names.parquet' n USING (h)",
    "heavy_build": "SELECT n.*, h.id, h.pad FROM 'names.parquet' n JOIN 'heavy.parquet' h USING (h)",
    "three": "SELECT v, count(*) AS rows, sum(k) AS total, max(other) AS text "
    "FROM 'facts.parquet' JOIN 'others.parquet' USING (v) GROUP BY v",
    "many_sources": "SELECT k, count(*) AS rows, sum(v) AS total, max(text) AS text FROM 'facts.parquet' GROUP BY k",
}
#: jobs that the default run takes: rows sorted, one heavy key, and a join and its groups at once
QUICK = ("heavy_build", "three")
PIECE_ROWS = 1_000_000


def texts(chosen, rows, width):
    letters = chosen.integers(97, 123, rows * width, dtype=np.uint8)
    ends = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(ends.tobytes()), pa.py_buffer(letters.tobytes()))


def write(path, rows, piece):
    """Write a table in pieces: piece(first row, rows) -> columns."""
    writer = None
    for start in range(0, rows, PIECE_ROWS):
        table = pa.table(piece(start, min(PIECE_ROWS, rows - start)))
        writer = writer or pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=False)
        writer.write_table(table, row_group_size=50_000)
    writer.close()


@pytest.fixture(scope="module", params=SIZES)
def data(request, tmp_path_factory):
    """Facts of 100 bytes a row, half as many others, and rows of which 99 % have one key."""
    folder = tmp_path_factory.mktemp("facts")
    chosen = np.random.default_rng(5)
    rows = SIZES[request.param] * 10_000
    values, others = chosen.permutation(rows), chosen.permutation(rows)

    def facts(start, count):
        ranges = {"k": chosen.integers(0, 1000, count), "v": values[start : start + count]}
        return ranges | {"text": texts(chosen, count, 80)}

    def heavy(start, count):
        keys = np.where(chosen.random(count) < 0.99, 7, chosen.integers(0, 1000, count))
        return {"h": keys, "id": np.arange(start, start + count), "pad": texts(chosen, count, 60)}

    write(folder / "facts.parquet", rows, facts)
    write(
        folder / "others.parquet",
        rows // 2,
        lambda start, count: {"v": others[start : start + count], "other": texts(chosen, count, 40)},
    )
    write(folder / "heavy.parquet", rows, heavy)
    write(
        folder / "names.parquet",
        1000,
        lambda start, count: {"h": range(count), "name": [f"name {index}" for index in range(count)]},
    )
    yield request.param, folder
    shutil.rmtree(folder)


@contextlib.contextmanager
def control_group(name):
    """Yield the folder of a memory control group of our own, or None where the machine does not allow one."""
    root = Path("/sys/fs/cgroup/memory")
    folder = root / f"drey-{os.getpid()}-{name}"
    try:
        if not IS_BOUNDED or not (root / "memory.limit_in_bytes").exists():
            raise OSError("no memory controller of the first version")
        folder.mkdir()
    except OSError:
        yield None
        return
    try:
        yield folder
    finally:
        folder.rmdir()


def allowed_bytes(managed, record_bytes=0):
    settings = {"taskmanager.memory.process.size": PROCESS_SIZE, "taskmanager.memory.managed.size": managed}
    sizes = process_memory(configuration_from_texts(settings), SLOTS, 1 << 34)
    return sizes.managed_bytes + sizes.network_bytes + (64 + 16 * SLOTS) * MEGABYTE + 4 * SLOTS * record_bytes


def run_job(name, source, target, managed, allowed):
    with control_group(name) as group:
        command = [sys.executable, "-m", "tests.property.budget_job", name, source, target, managed, str(SLOTS)]
        command += [str(allowed), str(group)] if group else [str(allowed)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "BUDGET_SPILL": str(target / "spill")}
        if name == "many_sources":
            # As where the engine is loaded before pyarrow: the allocator that Parquet has otherwise keeps what each of
            # forty threads has freed.
            environment["ARROW_DEFAULT_MEMORY_POOL"] = "jemalloc"
        (target / "spill").mkdir()
        ended = subprocess.run(
            list(map(str, command)), env=environment, capture_output=True, text=True, check=False, timeout=1800
        )
    assert ended.returncode == 0, f"exit {ended.returncode}: {ended.stderr[-2000:]}"
    assert not [path for path in (target / "spill").rglob("*") if path.is_file()], "spill files left"
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough) for name in JOBS]
)
def test_a_job_over_a_hundred_times_its_memory_is_right_and_stays_within_its_bound(name, data, tmp_path):
    managed, folder = data
    allowed = allowed_bytes(managed)
    report = run_job(name, folder, tmp_path, managed, allowed)
    assert not IS_BOUNDED or report["peak"] - report["idle"] <= allowed
    with duckdb.connect(config={"threads": 1}) as connection:
        expected = JOBS[name]
        for path in folder.iterdir():
            expected = expected.replace(f"'{path.name}'", f"'{path}'")
        fingerprint = "SELECT count(*), sum(hash(t)::HUGEINT) FROM ({}) t"
        found = connection.execute(fingerprint.format(f"SELECT * FROM '{tmp_path / name}/*.parquet'")).fetchone()
        columns = [
            row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM '{tmp_path / name}/*.parquet'").fetchall()
        ]
        wanted = f"SELECT {', '.join(columns)} FROM ({expected})"
        assert found == connection.execute(fingerprint.format(wanted)).fetchone()
