"""Queries in SQL while processes of their cluster die: the answers are DuckDB's, all of them.

Of TPC-DS a sample; ``CHAOS=full`` (``make chaos-sql FULL=1``) has all of it meet each fault once, query by query.
"""

import os
import signal
import subprocess
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.chaos.cluster import PATIENT, ROOT, ChaosCluster
from tests.chaos.conftest import IS_FULL, IS_SHORT
from tests.chaos.guarded_cluster import GuardedCluster
from tests.ha.quorum import needs_quorum
from tests.tpcds import queries as tpcds
from tests.tpcds.tables import generate, views
from tests.tpch import sql_queries as tpch
from tests.tpch.answers import difference
from tests.tpch.tables import write_small

JOB = ROOT / "tests" / "chaos" / "sql_queries.py"
#: of TPC-DS: grouping sets, queries as values, EXISTS below OR, INTERSECT, windows, a full join, shared groups
SAMPLE = ("5", "6", "10", "14b", "27", "47", "51", "58", "67", "95", "97")
NAMES = [*(f"tpch-{number}" for number in tpch.QUERIES), *(f"tpcds-{name}" for name in SAMPLE)]
if IS_SHORT:
    NAMES = NAMES[::4]
#: queries that meet one fault together, so that a test takes some minutes
PARTS = [[f"tpcds-{name}" for name in list(tpcds.QUERIES)[first::8]] for first in range(8)]
#: everything that sorts, joins or groups writes to its disk
SPILLING = {"debug.force-spill": "true"}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sql")
    write_small(folder / "tpch")
    generate(folder / "tpcds", 0.01)
    return folder


def wanted(source, name):
    """Return DuckDB's answer."""
    benchmark, _, number = name.partition("-")
    with duckdb.connect() as connection:
        connection.execute(views(source / benchmark))
        connection.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        text = tpch.QUERIES[int(number)] if benchmark == "tpch" else tpcds.for_duckdb(number)
        return connection.sql(text).to_arrow_table()


def kill_task_manager(cluster, seed):
    cluster.kill(seed.choice(cluster.pids("taskmanager")))
    cluster.add_task_manager()


def kill_leader(cluster, _seed):
    cluster.kill(cluster.wait_until(cluster.leader_process, "a leader that listens").pid)
    cluster.restore_job_managers()


def take_another_server_away(cluster, seed):
    """Kill a server of the quorum, after the one that was killed before is back."""
    quorum = cluster.quorum
    if any(not quorum.mode(number) for number in quorum.servers):
        quorum.start()
    cluster.wait_until(lambda: all(quorum.mode(number) for number in quorum.servers), "a whole quorum")
    quorum.kill(seed.choice(list(quorum.servers)))


def answers_are_right(cluster, folder, source, seed, kill):
    job = cluster.submit(JOB, source, folder / "out", *NAMES)
    kills = 0
    while job.process.poll() is None and kills < len(NAMES) // 3:
        done = job.stdout.count("done ")
        cluster.wait_until(
            lambda done=done: job.stdout.count("done ") > done or job.process.poll() is not None, "the next answer"
        )
        signal.sigtimedwait([], seed.uniform(0, 0.5))
        if job.process.poll() is None:
            kill(cluster, seed)
            kills += 1
    assert job.wait(250) == 0, f"{job.stdout}\n{job.stderr}\n{cluster.log_tails(40)}"
    assert kills, "the queries ended before anything was killed"
    are_duckdbs(folder, source, NAMES)


def are_duckdbs(folder, source, names):
    for name in names:
        assert difference(pq.read_table(folder / "out" / name), wanted(source, name)) == "", name


@pytest.mark.parametrize("seed", range(1 if IS_SHORT else 3), indirect=True)
def test_the_answers_are_right_while_task_managers_die(tmp_path, source, seed):
    with ChaosCluster(tmp_path / "cluster", task_managers=3) as cluster:
        answers_are_right(cluster, tmp_path, source, seed, kill_task_manager)


@needs_quorum
@pytest.mark.parametrize("seed", range(1 if IS_SHORT else 3), indirect=True)
def test_the_answers_are_right_while_leaders_die(tmp_path, quorum, source, seed):
    with GuardedCluster(tmp_path / "cluster", quorum) as cluster:
        answers_are_right(cluster, tmp_path, source, seed, kill_leader)


def each_meets(cluster, folder, source, seed, fault, names, is_repeated=True, query_s=250):
    """Run queries one by one, with a fault in the middle of each; not ``is_repeated``: no subtask is run again."""
    turns = cluster.environment["TURNS"] = str(folder / "turns")
    Path(turns).mkdir()
    job = cluster.submit(JOB, source, folder / "out", *names)
    for name in names:
        (Path(turns) / name).touch()
        signal.sigtimedwait([], seed.uniform(0.05, 1.5))
        fault(cluster, seed)
        cluster.wait_until(
            lambda name=name: f"done {name}\n" in job.stdout or job.process.poll() is not None, name, query_s
        )
        assert f"done {name}\n" in job.stdout, f"{name}\n{job.stdout}\n{job.stderr}\n{cluster.log_tails(40)}"
        assert is_repeated or cluster.wait_until(lambda: [repeated(cluster)], "a leader that answers") == [[]], name
    assert job.wait() == 0, job.stderr
    are_duckdbs(folder, source, names)


def repeated(cluster):
    """Return subtasks that have run more than once."""
    return [
        (job["jid"], vertex["name"], subtask["subtask"])
        for job in cluster.get("/jobs/overview")["jobs"]
        for vertex in cluster.get(f"/jobs/{job['jid']}")["vertices"]
        for subtask in cluster.get(f"/jobs/{job['jid']}/vertices/{vertex['id']}")["subtasks"]
        if subtask["attempt"] > 0
    ]


@pytest.fixture
def full_disk(tmp_path):
    """A file system on which nothing but a few folders has room."""
    folder = tmp_path / "full"
    folder.mkdir()
    if (
        os.getuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=False).returncode
    ):
        pytest.skip("mounts a file system: only root may")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


every_query = pytest.mark.skipif(not IS_FULL, reason="all of TPC-DS for each fault: CHAOS=full")
in_parts = pytest.mark.parametrize("part", range(len(PARTS)))


@every_query
@in_parts
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [0], indirect=True)
def test_every_query_loses_a_task_manager(tmp_path, source, seed, part):
    with ChaosCluster(tmp_path / "cluster", task_managers=3) as cluster:
        each_meets(cluster, tmp_path, source, seed, kill_task_manager, PARTS[part])


@every_query
@needs_quorum
@in_parts
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [0], indirect=True)
def test_every_query_loses_a_leader_and_repeats_nothing(tmp_path, quorum, source, seed, part):
    with GuardedCluster(tmp_path / "cluster", quorum, **PATIENT) as cluster:
        each_meets(cluster, tmp_path, source, seed, kill_leader, PARTS[part], is_repeated=False)


@every_query
@needs_quorum
@in_parts
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [0], indirect=True)
def test_every_query_loses_a_server_of_the_quorum(tmp_path, quorum, source, seed, part):
    with GuardedCluster(tmp_path / "cluster", quorum, session_s=20, **PATIENT) as cluster:
        each_meets(cluster, tmp_path, source, seed, take_another_server_away, PARTS[part], is_repeated=False)


@every_query
@in_parts
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [0], indirect=True)
def test_every_query_meets_a_full_disk(tmp_path, full_disk, source, seed, part):
    with ChaosCluster(tmp_path / "cluster", task_managers=1, **SPILLING) as cluster:
        cluster.environment["DREY_IO_TMP_DIRS"] = str(full_disk)
        cluster.add_task_manager()
        cluster.await_task_managers(2)
        each_meets(cluster, tmp_path, source, seed, lambda *_: None, PARTS[part])
        assert "DiskFullError" in cluster.log_tails(10**6), "nothing met the full disk"
