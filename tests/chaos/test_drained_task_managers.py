"""TaskManagers are drained while a job of several stages goes on: nothing that has finished is done again."""

import json

import pytest

from tests.chaos.cluster import PATIENT, ChaosCluster
from tests.chaos.guarded_cluster import GuardedCluster
from tests.chaos.workload import JOB, RATE, expected_rows, rows_of, write_data
from tests.ha.quorum import needs_quorum

pytestmark = pytest.mark.processes


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    write_data(folder)
    return folder


def listed(cluster):
    """Return the TaskManagers by id, as the command lists them."""
    done = cluster.run("taskmanager", "list", "--json")
    assert done.returncode == 0, done.stderr
    return {each["id"]: each for each in json.loads(done.stdout)["taskmanagers"]}


def one_with_tasks(cluster):
    """Wait until a TaskManager has tasks, and return its id."""
    return cluster.wait_until(
        lambda: next(
            (key for key, each in listed(cluster).items() if each["metrics"].get("Status.Tasks.Running")), None
        ),
        "a TaskManager with tasks",
    )


def attempts_of(cluster, job_id):
    """Return the number of the last attempt of each subtask and its TaskManager, in order of the stages."""
    found = []
    for vertex in cluster.get(f"/jobs/{job_id}")["vertices"]:
        subtasks = cluster.get(f"/jobs/{job_id}/vertices/{vertex['id']}")["subtasks"]
        found += [(each["attempt"], each["taskmanager-id"]) for each in subtasks]
    return found


def check_nothing_ran_twice(cluster, job_id, drained):
    """What was drained has run the first stages, others the last one, and no subtask has run twice."""
    attempts = attempts_of(cluster, job_id)
    assert {number for number, _ in attempts} == {0}
    assert drained in {place for _, place in attempts} and attempts[-1][1] != drained


def test_a_job_goes_on_while_its_task_manager_is_drained_and_nothing_finished_is_done_again(tmp_path, data):
    with ChaosCluster(tmp_path / "cluster", task_managers=2, **PATIENT) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        job_id = job.job_id()
        drained = one_with_tasks(cluster)
        done = cluster.run("taskmanager", "drain", drained[:12])
        assert done.returncode == 0, done.stderr
        assert "drains" in done.stdout
        seen = listed(cluster).get(drained)
        assert seen is None or seen["state"] == "DRAINING"
        assert job.wait() == 0, job.stderr
        assert rows_of(tmp_path / "out") == expected_rows(data)
        cluster.await_task_managers(1)
        assert drained not in listed(cluster)
        check_nothing_ran_twice(cluster, job_id, drained)
        assert "nothing of a job is left here" in cluster.log_tails(1000)


def test_one_that_is_stopped_ends_within_its_time_and_its_tasks_run_elsewhere(tmp_path, data):
    with ChaosCluster(tmp_path / "cluster", task_managers=2, **PATIENT) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        job.job_id()
        stopped = one_with_tasks(cluster)
        done = cluster.run("taskmanager", "stop", stopped, "--timeout", "100 ms")
        assert done.returncode == 0, done.stderr
        assert stopped not in listed(cluster)
        assert job.wait() == 0, job.stderr
        assert rows_of(tmp_path / "out") == expected_rows(data)


@needs_quorum
def test_what_is_draining_stays_draining_under_the_next_leader(tmp_path, data, small_quorum):
    with GuardedCluster(
        tmp_path / "cluster", small_quorum, job_managers=2, task_managers=2, points=(), **PATIENT
    ) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE // 2)
        job_id = job.job_id()
        drained = one_with_tasks(cluster)
        assert cluster.run("taskmanager", "drain", drained).returncode == 0
        _, epoch, _ = cluster.kill_leader()
        cluster.leaders.after(epoch, 60)
        seen = cluster.wait_until(lambda: cluster.get("/taskmanagers")["taskmanagers"], "TaskManagers at the next one")
        assert {each["state"] for each in seen if each["id"] == drained} <= {"DRAINING"}
        assert job.wait() == 0, job.stderr
        assert rows_of(tmp_path / "out") == expected_rows(data)
        cluster.await_task_managers(1)
        assert drained not in listed(cluster)
        check_nothing_ran_twice(cluster, job_id, drained)
