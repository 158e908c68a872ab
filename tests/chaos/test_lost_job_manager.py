"""Without high availability a JobManager's job ends with it: clearly, with all of its output or nothing."""

import pytest

from tests.chaos.cluster import ChaosCluster
from tests.chaos.conftest import IS_SHORT, JOB, RATE, rows_of

POINTS = ("job.accepted", "sink.deciding", "sink.decided", "sink.published")


@pytest.mark.parametrize("point", POINTS[2:3] if IS_SHORT else POINTS)
def test_killed_at_a_fault_point(tmp_path, data, expected, point):
    marker = tmp_path / "marker"
    settings = {"debug.fault-point": f"{point}:kill:{marker}"}
    with ChaosCluster(tmp_path / "cluster", **settings) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", 0)
        assert job.wait() == 1
        assert marker.read_text().startswith(point)
        assert "JobManager" in job.stderr
        target = tmp_path / "out"
        assert not target.exists() or rows_of(target) == expected
        cluster.script("jobmanager", "start")
        cluster.await_task_managers(2)
        again = cluster.submit(JOB, data, tmp_path / "again", 0)
        assert again.wait() == 0, again.stderr
        assert rows_of(tmp_path / "again") == expected


def test_with_a_storage_folder_a_job_goes_on_when_its_job_manager_is_started_again(tmp_path, data, expected):
    storage = tmp_path / "storage"
    with ChaosCluster(tmp_path / "cluster", **{"high-availability.storageDir": storage}) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        cluster.await_state(job.job_id(), "RUNNING")
        cluster.kill(cluster.pids("jobmanager")[0])
        cluster.script("jobmanager", "start")
        assert job.wait() == 0, job.stderr
        assert rows_of(tmp_path / "out") == expected
        assert cluster.run("ha", "gc", "--json").stdout == '{"orphans": [], "size_bytes": 0}\n'
