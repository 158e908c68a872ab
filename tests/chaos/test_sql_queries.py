"""Queries in SQL while processes of their cluster die: the answers are DuckDB's, all of them."""

import signal

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.chaos.cluster import ROOT, ChaosCluster
from tests.chaos.conftest import IS_SHORT
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
    cluster.wait_until(cluster.leader_process, "a leader that listens")
    cluster.kill_leader()
    cluster.restore_job_managers()


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
    for name in NAMES:
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
