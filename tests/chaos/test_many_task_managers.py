"""Four TaskManagers of two slots each; a random one is killed under the main job and under one of every exchange."""

import shutil
import signal

import duckdb
import pytest

from engine.examples.generate_instruments import main as generate
from tests.chaos.cluster import ROOT, ChaosCluster
from tests.chaos.conftest import JOB, RATE, rows_of

MAIN_JOB = ROOT / "engine" / "examples" / "skew_join.py"
ROWS = 1_400_000


@pytest.fixture(scope="module")
def instruments(tmp_path_factory):
    folder = tmp_path_factory.mktemp("instruments")
    generate(["--rows", str(ROWS), "--out", str(folder)])
    return folder


@pytest.fixture
def cluster(tmp_path):
    with ChaosCluster(tmp_path / "cluster", task_managers=4, slots=2) as cluster:
        yield cluster


def kill_one(cluster, submit, seed, latest_s):
    """Kill a TaskManager at a random moment of a job; return the job. One that was over already is run again."""
    for attempt in range(5):
        job = submit()
        job_id = job.job_id()
        cluster.wait_until(lambda job_id=job_id: cluster.get(f"/jobs/{job_id}")["state"] != "CREATED", "a start")
        signal.sigtimedwait([], seed.uniform(0.0, latest_s / 2**attempt))
        if cluster.get(f"/jobs/{job_id}")["state"] == "RUNNING":
            cluster.kill(seed.choice(cluster.pids("taskmanager")))
            cluster.wait_until(lambda: cluster.get("/overview")["taskmanagers"] == 3, "the loss")
            return job
        assert job.wait(120) == 0, job.stderr
    raise AssertionError("every job ended before anything was killed")


@pytest.mark.parametrize("seed", range(2), indirect=True)
def test_the_main_job_outlives_one_of_four(cluster, tmp_path, instruments, seed):
    target = tmp_path / "out"

    def submit():
        shutil.rmtree(target, ignore_errors=True)
        return cluster.submit(MAIN_JOB, "--input", instruments, "--out", target, "--join-type", "normal")

    job = kill_one(cluster, submit, seed, 0.6)
    assert job.wait(120) == 0, f"{job.stderr}\n{cluster.log_tails(20)}"
    read = "read_csv('{}/*.csv', header=false, all_varchar=true, nullstr='', names={})"
    names = [f"c{number:02d}" for number in range(13)]
    joined = f"""
        SELECT i.* EXCLUDE c11, CASE WHEN coalesce(ISOCode, '') = '' THEN ISOExtended ELSE ISOCode END AS code
        FROM {read.format(instruments / "instruments", names)} i
        JOIN read_csv('{instruments}/currencies.csv', header=false, all_varchar=true,
                      names=['id', 'ISOCode', 'ISOExtended', 'Name']) ON c11 = id
    """
    columns = [*names[:11], "code", names[12]]
    summary = "SELECT count(*), sum(hash({})::HUGEINT) FROM {}"
    (expected,) = duckdb.sql(summary.format(", ".join(columns), f"({joined})")).fetchall()
    assert duckdb.sql(summary.format(", ".join(names), read.format(target, names))).fetchall() == [expected]
    assert expected[0] > ROWS // 2


@pytest.mark.parametrize("seed", range(3), indirect=True)
def test_a_job_of_every_exchange_outlives_one_of_four(cluster, tmp_path, data, expected, seed):
    job = kill_one(cluster, lambda: cluster.submit(JOB, data, tmp_path / "out", RATE), seed, 1.0)
    assert job.wait(120) == 0, f"{job.stderr}\n{cluster.log_tails(20)}"
    assert rows_of(tmp_path / "out") == expected
