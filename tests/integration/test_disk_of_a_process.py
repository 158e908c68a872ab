"""A limit of a process's disk: whatever a job writes there, it fails with one error, and another job goes on."""

import concurrent.futures
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, sum_
from engine.errors import JobExecutionError
from engine.minicluster.mini_cluster import mini_cluster

pytestmark = pytest.mark.integration

ROWS = 2_000_000
SETTINGS = {"parallelism.default": 2, "taskmanager.memory.process.size": "64mb", "taskmanager.disk.limit": "20mb"}
TOTAL = pa.schema([("total", pa.int64())])
BLOCKING = {"execution.mode": "BATCH_FORCED"}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    chosen = np.random.default_rng(3)
    many = pa.table({"key": chosen.permutation(ROWS), "a": chosen.random(ROWS), "b": chosen.random(ROWS)})
    pq.write_table(many, folder / "many.parquet")
    wide = pa.table({"key": range(40), "text": [chosen.bytes(2 << 20).hex() for _ in range(40)]})
    pq.write_table(wide, folder / "wide.parquet", row_group_size=1, use_dictionary=False)
    return folder


def ordered(env, places):
    return env.read_parquet(places / "many.parquet").sort("a")


def grouped(env, places):
    return env.read_parquet(places / "many.parquet").group_by("key").agg(a=sum_("a"), b=sum_("b")).sort("b")


def joined(env, places):
    many = env.read_parquet(places / "many.parquet")
    return many.join(many.select("key", col("a").alias("c")), on="key")


def widened(env, places):
    return env.read_parquet(places / "wide.parquet").sort("text")


def limits_of(env):
    return mini_cluster(env._configuration.as_texts())._components.resources.services.io_manager.limits


@pytest.mark.parametrize("job", [ordered, grouped, joined, widened])
@pytest.mark.parametrize("settings", [{}, BLOCKING], ids=["pipelined", "blocking"])
def test_a_job_that_takes_too_much_fails_alone_and_leaves_nothing(job, settings, places, tmp_path):
    config = {**SETTINGS, **settings, "io.tmp.dirs": str(tmp_path)}
    with Environment(config=config) as env, concurrent.futures.ThreadPoolExecutor(1) as beside:
        slow = env.from_arrow(pa.table({"n": range(300)}), rate_limit=200.0).sort("n", descending=True)
        other = beside.submit(slow.to_arrow)
        with pytest.raises(JobExecutionError) as caught:
            job(env, places).write_parquet(tmp_path / "out")
            env.execute()
        text = str(caught.value)
        first = text.splitlines()[0]
        assert "of the limit of 21 MB in" in text and str(tmp_path) in text, text
        assert "raise taskmanager.disk.limit" in text and " job " in text, text
        assert "DiskFullError" in first or "room" in first or "spilled" in first, first
        assert other.result(60)["n"].to_pylist() == list(range(299, -1, -1))
        for limit in limits_of(env):
            assert limit.used_bytes == 0, limit.job_bytes()
    assert not list(tmp_path.glob("**/*.spill")) and not list(tmp_path.glob("**/*.shuffle.*"))


def right_first(left, right):
    return [(sum(row.n for row in right) + sum(len(row.text) for row in left),)]


@pytest.mark.parametrize("kind", ["process", "thread"])
@pytest.mark.parametrize("limit", ["12mb", "60mb"])
def test_groups_that_a_function_keeps_are_counted(kind, limit, tmp_path):
    words = np.random.default_rng(4)
    left = pa.table({"k": [1] * 24_000, "text": [words.bytes(512).hex() for _ in range(24_000)]})
    right = pa.table({"k": [1], "n": [5]})
    config = {
        "parallelism.default": 1, "taskmanager.memory.process.size": "1gb", "taskmanager.disk.limit": limit,
        "io.tmp.dirs": str(tmp_path), "python.execution-mode": kind,
    }  # fmt: skip
    with Environment(config=config) as env:
        pairs = env.from_arrow(left).co_group(env.from_arrow(right), "k", right_first, TOTAL)
        if limit == "60mb":
            assert pairs.collect() == [(5 + 24_000 * 1024,)]
        else:
            with pytest.raises(JobExecutionError) as caught:
                pairs.collect()
            text = str(caught.value)
            assert "of the limit of 12.6 MB in" in text and "raise taskmanager.disk.limit" in text, text
            assert "right_first keeps rows that it has not read yet" in text, text
        for each in limits_of(env):
            assert each.used_bytes == 0, each.job_bytes()


def right_first_whatever_happens(left, right):
    try:
        return right_first(left, right)
    except Exception:
        return [(0,)]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("kind", ["process", "thread"])
@pytest.mark.parametrize("function", [right_first, right_first_whatever_happens])
def test_a_disk_that_is_full_is_no_error_of_the_function_that_keeps_groups(kind, function, small_disk):
    left = pa.table({"k": [1] * 24_000, "text": ["x" * 1024] * 24_000})
    right = pa.table({"k": [1], "n": [5]})
    config = {
        "parallelism.default": 1, "taskmanager.memory.process.size": "1gb", "io.tmp.dirs": str(small_disk),
        "python.execution-mode": kind,
    }  # fmt: skip
    with Environment(config=config) as env:
        with pytest.raises(JobExecutionError) as caught:
            env.from_arrow(left).co_group(env.from_arrow(right), "k", function, TOTAL).collect()
        text = str(caught.value)
        assert "DiskFullError" in text and "No space left on device; free some space" in text, text
        assert f"cannot be kept in {small_disk}" in text, text


@pytest.mark.parametrize("job", [ordered, grouped, widened])
def test_a_job_within_the_limit_of_two_folders_is_right(job, places, tmp_path):
    folders = ",".join(str(tmp_path / name) for name in "ab")
    config = {**SETTINGS, "taskmanager.disk.limit": "150mb", "io.tmp.dirs": folders}
    with Environment(config=config) as env, Environment() as free:
        assert job(env, places).to_arrow().equals(job(free, places).to_arrow())
        assert [limit.used_bytes for limit in limits_of(env)] == [0, 0]
