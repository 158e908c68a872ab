"""TaskManagers die, hang and come back while a job runs: its output is there once, row for row."""

import signal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chaos.cluster import PATIENT, ROOT, ChaosCluster
from tests.chaos.conftest import IS_SHORT, JOB, RATE, rows_of

WIDE_ROWS_JOB = ROOT / "tests" / "chaos" / "wide_rows_to_files.py"
POINTS = ("task.submitted", "task.running", "partition.stored", "task.finishing")


def finish(cluster, job, target, expected):
    code = job.wait(120)
    assert code == 0, f"{job.stdout}\n{job.stderr}\n{cluster.log_tails(40)}"
    assert rows_of(target) == expected
    assert sorted(path.name for path in target.parent.iterdir() if path.name.startswith((".out", "out"))) == ["out"]


@pytest.mark.parametrize("seed", range(1 if IS_SHORT else 10), indirect=True)
def test_killed_at_a_random_moment(tmp_path, data, expected, seed):
    with ChaosCluster(tmp_path / "cluster", task_managers=3) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        job_id = job.job_id()
        cluster.await_state(job_id, "RUNNING")
        kills = 0
        for _ in range(seed.choice([1, 1, 2])):
            pid = seed.choice(cluster.pids("taskmanager"))
            signal.sigtimedwait([], seed.uniform(0.1, 2.0))
            if cluster.get(f"/jobs/{job_id}")["state"] in ("RUNNING", "RESTARTING"):
                kills += 1
            cluster.kill(pid)
            cluster.add_task_manager()
        assert kills, "the job ended before anything was killed"
        finish(cluster, job, tmp_path / "out", expected)


@pytest.mark.parametrize("point", POINTS[2:3] if IS_SHORT else POINTS)
def test_killed_at_a_fault_point(tmp_path, data, expected, point):
    marker = tmp_path / "marker"
    settings = {"debug.fault-point": f"{point}:kill:{marker}"}
    with ChaosCluster(tmp_path / "cluster", task_managers=3, **settings) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", 0)
        finish(cluster, job, tmp_path / "out", expected)
        assert marker.read_text().startswith(point)


@pytest.mark.parametrize("point", ["task.running"] if IS_SHORT else POINTS)
def test_hung_at_a_fault_point(tmp_path, data, expected, point):
    marker = tmp_path / "marker"
    settings = {"debug.fault-point": f"{point}:stop:{marker}"}
    with ChaosCluster(tmp_path / "cluster", task_managers=3, **settings) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", 0)
        finish(cluster, job, tmp_path / "out", expected)
        hung = int(marker.read_text().split()[1])
        cluster.kill(hung, signal.SIGCONT)
        cluster.await_task_managers(3)


def test_stopped_for_less_than_the_time_out_nothing_is_lost(tmp_path, data, expected):
    with ChaosCluster(tmp_path / "cluster", **PATIENT) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        cluster.await_state(job.job_id(), "RUNNING")
        pid = cluster.pids("taskmanager")[0]
        cluster.kill(pid, signal.SIGSTOP)
        signal.sigtimedwait([], 1.0)
        cluster.kill(pid, signal.SIGCONT)
        finish(cluster, job, tmp_path / "out", expected)
        assert cluster.get("/overview")["taskmanagers"] == 2


def test_all_killed_and_started_again_are_lost_at_once_by_every_job(tmp_path, data, expected):
    settings = {"restart-strategy.fixed-delay.attempts": "2", "heartbeat.interval": "10 s", **PATIENT}
    with ChaosCluster(tmp_path / "cluster", task_managers=3, **settings) as cluster:
        targets = [tmp_path / f"job-{index}" / "out" for index in range(4)]
        for target in targets:
            target.parent.mkdir()
        jobs = [cluster.submit(JOB, data, target, RATE) for target in targets]
        ids = [job.job_id() for job in jobs]
        cluster.wait_until(lambda: cluster.get("/overview")["slots-available"] == 0, "all slots in use")
        for pid in cluster.pids("taskmanager"):
            cluster.kill(pid)
        for _ in range(3):
            cluster.add_task_manager()
        for job, target in zip(jobs, targets, strict=True):
            finish(cluster, job, target, expected)
        for job_id in ids:
            failures = cluster.get(f"/jobs/{job_id}/exceptions?maxExceptions=50")["all-exceptions"]
            assert len(failures) <= 6, failures


def test_too_few_slots_left_fail_clearly(tmp_path, data):
    settings = {"slot.request.timeout": "2 s"}
    with ChaosCluster(tmp_path / "cluster", task_managers=1, **settings) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        cluster.await_state(job.job_id(), "RUNNING")
        cluster.kill(cluster.pids("taskmanager")[0])
        assert job.wait() == 1
        assert "slot" in job.stderr
        assert len(job.stderr.splitlines()) <= 16
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("sink", ["write_parquet"] if IS_SHORT else ["write_parquet", "write_records"])
def test_killed_while_its_subtask_writes_the_second_of_its_files(tmp_path, sink):
    texts = [str(number % 10) * (9 << 20) for number in range(20)]
    pq.write_table(pa.table({"k": range(20), "text": texts}), tmp_path / "wide.parquet", row_group_size=1)
    target = tmp_path / "out"
    with ChaosCluster(tmp_path / "cluster", slots=1) as cluster:
        job = cluster.submit(WIDE_ROWS_JOB, tmp_path / "wide.parquet", target, sink, options=("-p", "2"))
        cluster.wait_until(
            lambda: len(list(tmp_path.glob(".*/**/*-00001.parquet"))) == 2, "a second file of both subtasks"
        )
        cluster.kill(cluster.pids("taskmanager")[0])
        cluster.add_task_manager()
        assert job.wait(120) == 0, f"{job.stdout}\n{job.stderr}\n{cluster.log_tails(40)}"
        attempts = {task["attempt"] for task in subtasks_of(cluster, job.job_id())}
        assert attempts == {0, 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster", "out", "wide.parquet"]
    parts = sorted(target.glob("part-*.parquet"))
    assert [part.name for part in parts] == [f"part-{index:05d}.parquet" for index in range(len(parts))]
    assert len(parts) >= 5
    found = [row for part in parts for row in pq.read_table(part, columns=["k", "text", "c1099"]).to_pylist()]
    assert sorted(row["k"] for row in found) == list(range(20))
    assert all(row["text"] == str(row["k"] % 10) * (9 << 20) and row["c1099"] == row["k"] + 1099 for row in found)


def subtasks_of(cluster, job_id):
    vertices = cluster.get(f"/jobs/{job_id}")["vertices"]
    return [task for each in vertices for task in cluster.get(f"/jobs/{job_id}/vertices/{each['id']}")["subtasks"]]
