"""Without high availability a JobManager's job ends with it: clearly, with all of its output or nothing."""

import pytest

from tests.chaos.cluster import ChaosCluster
from tests.chaos.conftest import IS_SHORT, JOB, rows_of

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
