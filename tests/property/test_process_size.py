"""What the process size promises: a job in a control group of just that size ends, is right, and nothing is killed.

Interpreter, libraries, pages, Arrow and Python workers are all charged to the group; skipped where none can be made.
"""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.property.matrix import IS_TORTURE
from tests.property.test_memory_bound import IS_BOUNDED, MEGABYTE, ROOT, texts, write

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not IS_BOUNDED, reason="the address sanitizer's memory is larger than the groups here"),
]

#: process size, slots
SIZES = [("384mb", 1), ("512mb", 2), ("1gb", 2), ("1gb", 4)] if IS_TORTURE else [("384mb", 2)]
ROWS = 8_000_000 if IS_TORTURE else 60_000
COLUMNS = 200 if IS_TORTURE else 40
QUERIES = {
    "sort": "SELECT * FROM 'facts.parquet'",
    "join": "SELECT f.*, o.other FROM 'facts.parquet' f JOIN 'others.parquet' o USING (v)",
    "group": "SELECT v, count(*) AS rows, sum(k) AS total, max(text) AS text FROM 'facts.parquet' GROUP BY v",
    "mapped": "SELECT 2 * k AS k, v + 1 AS v, text FROM 'facts.parquet'",
    "text": "SELECT k, v, text FROM 'facts.parquet' WHERE k >= 500",
    "columns": "SELECT * FROM 'columns.parquet'",
}
JOBS = QUERIES if IS_TORTURE else ("mapped", "columns")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Facts of 100 bytes a row, as Parquet and CSV, half as many others, and rows of many columns."""
    folder = tmp_path_factory.mktemp("facts")
    chosen = np.random.default_rng(5)
    values, others = chosen.permutation(ROWS), chosen.permutation(ROWS)

    def facts(start, count):
        return {
            "k": chosen.integers(0, 1000, count),
            "v": values[start : start + count],
            "text": texts(chosen, count, 80),
        }

    write(folder / "facts.parquet", ROWS, facts)
    write(
        folder / "others.parquet",
        ROWS // 2,
        lambda start, count: {"v": others[start : start + count], "other": texts(chosen, count, 40)},
    )
    with (
        pq.ParquetFile(folder / "facts.parquet") as file,
        pyarrow.csv.CSVWriter(folder / "facts.csv", file.schema_arrow) as writer,
    ):
        for batch in file.iter_batches():
            writer.write(batch)
    many = {f"c{index}": texts(chosen, ROWS // 20, 12) for index in range(COLUMNS)}
    pq.write_table(pa.table(many), folder / "columns.parquet", use_dictionary=False)
    return folder


@contextlib.contextmanager
def limited_group(name, size_bytes):
    """Yield the folder of a memory control group of that size, without swap; skips where none can be made."""
    tops = {"memory.limit_in_bytes": Path("/sys/fs/cgroup/memory"), "memory.max": Path("/sys/fs/cgroup")}
    folder = None
    for limit, top in tops.items():
        folder = top / f"drey-{os.getpid()}-{name}"
        try:
            folder.mkdir()
            (folder / limit).write_text(str(size_bytes))
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
            continue
        break
    else:
        pytest.skip("no memory control group can be made here")
    for swap, text in (("memory.swap.max", "0"), ("memory.swappiness", "0")):
        with contextlib.suppress(OSError):
            (folder / swap).write_text(text)
    try:
        yield folder
    finally:
        deadline = time.monotonic() + 30
        while folder.exists():
            try:
                folder.rmdir()
            except OSError:
                # Workers end a moment after the job's process.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def killed(group):
    for name in ("memory.events", "memory.oom_control"):
        if (group / name).exists():
            return sum(int(line.split()[1]) for line in (group / name).read_text().splitlines() if "oom_kill " in line)
    raise AssertionError("the group does not say whether it killed")


def run(name, folder, target, size, slots, group):
    command = [sys.executable, "-m", "tests.property.process_size_job", name, folder, target, size, slots, group]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, check=False, timeout=1800
    )


def size_bytes(size):
    return int(size[:-2]) * (MEGABYTE if size.endswith("mb") else 1024 * MEGABYTE)


@pytest.mark.parametrize(("size", "slots"), SIZES)
@pytest.mark.parametrize("name", JOBS)
def test_a_job_ends_within_a_control_group_of_the_process_size(name, size, slots, data, tmp_path):
    with limited_group(name, size_bytes(size)) as group:
        ended = run(name, data, tmp_path, size, slots, group)
        assert ended.returncode == 0, f"exit {ended.returncode}: {ended.stderr[-2000:]}"
        assert killed(group) == 0
    result = f"read_csv('{tmp_path / name}/*.csv')" if name == "text" else f"'{tmp_path / name}/*.parquet'"
    expected = QUERIES[name]
    for path in data.iterdir():
        expected = expected.replace(f"'{path.name}'", f"'{path}'")
    with duckdb.connect(config={"threads": 1}) as connection:
        fingerprint = "SELECT count(*), sum(hash(t)::HUGEINT) FROM ({}) t"
        columns = ", ".join(row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {result}").fetchall())
        found = connection.execute(fingerprint.format(f"SELECT {columns} FROM {result}")).fetchone()
        assert found == connection.execute(fingerprint.format(f"SELECT {columns} FROM ({expected})")).fetchone()


def test_a_worker_that_hoards_is_an_error_and_not_the_end_of_the_process(data, tmp_path):
    # Four batches and 64 MiB for each are more than the workers' part of so small a process.
    with limited_group("hoarding", size_bytes("384mb")) as group:
        ended = run("hoarding", data, tmp_path, "384mb", 1, group)
    assert ended.returncode == 1, ended.stderr[-2000:]
    assert "MemoryBudgetError: " in ended.stderr
    assert "hoard (" in ended.stderr
    assert "process_size_job.py, line " in ended.stderr
    assert "taskmanager.memory.process.size" in ended.stderr
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.fixture(scope="module")
def texts_file(tmp_path_factory):
    """More rows than the pages of the groups here hold."""
    path = tmp_path_factory.mktemp("texts") / "texts.parquet"
    chosen = np.random.default_rng(7)
    write(
        path, 4_000_000, lambda start, count: {"id": np.arange(start, start + count), "text": texts(chosen, count, 80)}
    )
    return path


@pytest.mark.parametrize(("held_mb", "environments"), [(800, 1), (0, 6)])
def test_the_default_size_leaves_room_for_the_script_and_for_environments(held_mb, environments, texts_file, tmp_path):
    command = [sys.executable, "-m", "tests.property.default_size_job", texts_file, tmp_path]
    with limited_group(f"default-{held_mb}", size_bytes("1gb")) as group:
        command += [group, held_mb, environments]
        ended = subprocess.run(
            list(map(str, command)), env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
            check=False, timeout=600,
        )  # fmt: skip
        assert ended.returncode == 0, f"exit {ended.returncode}: {ended.stderr[-2000:]}"
        assert killed(group) == 0
    with duckdb.connect(config={"threads": 1}) as connection:
        fingerprint = "SELECT count(*), sum(hash(id, text)::HUGEINT) FROM read_parquet('{}')"
        wanted = connection.execute(fingerprint.format(texts_file)).fetchone()
        for number in range(environments):
            assert connection.execute(fingerprint.format(tmp_path / str(number) / "*.parquet")).fetchone() == wanted
