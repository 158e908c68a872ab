"""What a process has after its clusters are closed, and after many jobs on one: nothing more than before."""

import textwrap
import threading
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from engine import Environment, JobExecutionError, JoinHint, col, count, sum_
from tests.integration.conftest import SETTINGS, children_alive, left_over, threads_alive, wait_until


def descriptors():
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[entry.name] = str(entry.readlink())
        except OSError:
            continue
    return found


def threads():
    """How many there are, but for the pool of at most four for blocking calls, which come when they are needed."""
    names = [thread.name for thread in threading.enumerate()]
    pooled = [name for name in names if name.startswith("drey-blocking")]
    return len(names) - len(pooled)


def work(env, folder, index):
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    data = env.from_arrow(pa.table({"a": range(3000), "b": [n % 11 for n in range(3000)]}))
    names = env.from_arrow(pa.table({"b": range(11), "name": [f"n{n}" for n in range(11)]}))
    joined = data.map(lambda row: row, schema).join(names, on="b", hint=JoinHint.REPARTITION_HASH_SECOND)
    result = joined.group_by("name").agg(n=count(), s=sum_(col("a"))).sort("name")
    assert len(result.collect()) == 11
    result.write_csv(str(folder / f"out-{index}"))
    env.execute()
    with pytest.raises(JobExecutionError):
        data.map(lambda row: (1 // (row.a - 2500), 0), schema).sort("a").collect()


@pytest.mark.quick
@pytest.mark.parametrize("force_spill", [False, True])
def test_close_gives_everything_back(tmp_path, force_spill):
    spill, results = tmp_path / "spill", tmp_path / "results"
    spill.mkdir()
    results.mkdir()
    settings = {**SETTINGS, "io.tmp.dirs": str(spill), "debug.force-spill": force_spill}
    with Environment(config={**settings, "parallelism.default": 1}) as env:
        env.from_arrow(pa.table({"a": [1]})).collect()  # what is loaded once stays: pools of Arrow, libraries
    threads, children, files = threads_alive(), children_alive(), descriptors()
    with Environment(config={**settings, "parallelism.default": 3}) as env:
        work(env, results, 0)
        assert children_alive() - children, "workers run in processes"
    assert wait_until(lambda: not threads_alive() - threads), threads_alive() - threads
    assert wait_until(lambda: not children_alive() - children)
    assert wait_until(lambda: len(descriptors()) <= len(files)), set(descriptors().values()) - set(files.values())
    assert not [path for path in spill.rglob("*") if path.is_file()]
    assert [path.name for path in results.iterdir()] == ["out-0"]


def test_thirty_jobs_in_one_environment_keep_memory_descriptors_and_threads_flat(tmp_path):
    spill = tmp_path / "spill"
    spill.mkdir()
    process = psutil.Process()
    with Environment(config={**SETTINGS, "io.tmp.dirs": str(spill)}) as env:
        for index in range(3):
            work(env, tmp_path, index)
        before = process.memory_info().rss, len(descriptors()), threads()
        for index in range(3, 11):
            work(env, tmp_path, index)
        # A machine with other work ends threads, and gives memory back, when it comes to it; what leaks stays.
        assert wait_until(lambda: threads() <= before[2]), threads_alive()
        assert wait_until(lambda: len(descriptors()) <= before[1] + 2), descriptors()
        assert wait_until(lambda: process.memory_info().rss - before[0] < 24 << 20), (
            f"memory grew from {before[0] >> 20} to {process.memory_info().rss >> 20} MB"
        )
        assert [path.name for path in spill.rglob("*") if path.is_file()] == ["lock"], "spill files of finished jobs"
    assert left_over(tmp_path) == []


def test_environments_of_one_configuration_share_a_cluster_and_another_close_does_not_end_it(tmp_path):
    one, other = Environment(config=SETTINGS), Environment(config=SETTINGS)
    data = one.from_arrow(pa.table({"a": [1, 2]}))
    assert other.from_arrow(pa.table({"a": [3]})).collect() == [(3,)]
    assert data.count() == 2
    other.close()
    assert data.count() == 2
    one.close()


def test_a_script_that_closes_nothing_leaves_nothing_and_prints_nothing(run, tmp_path):
    (tmp_path / "job.py").write_text(
        textwrap.dedent(
            """
            import pyarrow as pa
            from engine import Environment
            schema = pa.schema([("a", pa.int64())])
            env = Environment(config={"debug.force-spill": True})
            data = env.from_arrow(pa.table({"a": range(1000)})).map(lambda row: row, schema).sort("a")
            assert data.count() == 1000
            iterator = iter(data.collect())
            """
        )
    )
    done = run("job.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not [path for path in (tmp_path / "spill").rglob("*") if path.is_file()]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.py", "spill"]


def test_an_error_that_nobody_catches_ends_the_script_at_once_and_cleanly(run, tmp_path):
    (tmp_path / "job.py").write_text(
        textwrap.dedent(
            """
            import pyarrow as pa
            from engine import Environment
            schema = pa.schema([("a", pa.int64())])
            env = Environment()
            env.from_arrow(pa.table({"a": range(1000)})).map(lambda row: (1 // 0,), schema).write_csv("out")
            env.execute()
            """
        )
    )
    done = run("job.py")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.py", "spill"]
