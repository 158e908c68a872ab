"""The smallest cluster that outlives its leader: two JobManagers, one TaskManager, one server of ZooKeeper.

Of all that tests/chaos does to clusters this one is in every run.
"""

import pytest

from tests.chaos.guarded_cluster import GuardedCluster
from tests.chaos.workload import JOB, RATE, expected_rows, rows_of, write_data
from tests.ha.quorum import needs_quorum

pytestmark = [needs_quorum, pytest.mark.quick]


def test_a_job_goes_on_when_the_leader_is_killed(tmp_path, quorum):
    data = tmp_path / "data"
    data.mkdir()
    write_data(data)
    with GuardedCluster(tmp_path / "cluster", quorum, job_managers=2, task_managers=1, points=()) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        cluster.await_state(job.job_id(), "RUNNING")
        _, epoch, _ = cluster.kill_leader()
        assert job.wait() == 0, job.stderr
        assert rows_of(tmp_path / "out") == expected_rows(data)
        assert cluster.leaders.now.epoch > epoch
