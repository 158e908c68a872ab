"""The leader is cut off from ZooKeeper, one way or both: another one leads, and nobody sees two of them act."""

import pytest

from tests.chaos.cluster import PATIENT, WAIT_S
from tests.chaos.conftest import IS_SHORT, JOB, RATE, rows_of
from tests.chaos.cut_link import Link
from tests.chaos.guarded_cluster import GuardedCluster
from tests.chaos.test_quorum_faults import attempts_of, check_promises
from tests.ha.quorum import needs_quorum

pytestmark = [needs_quorum, pytest.mark.timeout(1200)]


class LinkedCluster(GuardedCluster):
    """Each JobManager reaches ZooKeeper over links of its own."""

    def start(self):
        self.links = {
            port: [Link(int(host.rpartition(":")[2])) for host in self.quorum.hosts.split(",")] for port in self.ports
        }
        for port in self.ports:
            self.start_job_manager(port)
        for _ in range(self._line_count()):
            self.add_task_manager()

    def start_job_manager(self, port):
        hosts = ",".join(f"127.0.0.1:{link.port}" for link in self.links[port])
        option = f"high-availability.zookeeper.quorum={hosts}"
        self.script("jobmanager", "start", "localhost", str(port), "-D", option)

    def __exit__(self, *error):
        try:
            for link in self.all_links:
                link.heal()
            super().__exit__(*error)
        finally:
            for link in self.all_links:
                link.close()

    @property
    def all_links(self):
        return [link for links in self.links.values() for link in links]


@pytest.mark.parametrize("seed", range(1 if IS_SHORT else 12), indirect=True)
def test_a_leader_that_is_cut_off_from_zookeeper_is_followed_by_another(tmp_path, quorum, data, expected, seed):
    with LinkedCluster(tmp_path / "cluster", quorum, job_managers=2, session_s=2, **PATIENT) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE / 2)
        job_id = job.job_id()
        cluster.await_state(job_id, "RUNNING")
        for _ in range(2):
            leader = cluster.leaders.now
            links = cluster.links[int(leader.address.rpartition(":")[2])]
            directions = seed.choice([["out"], ["in"], ["out", "in"]])
            for link in links:
                link.cut(*directions)
            cluster.leaders.after(leader.epoch, WAIT_S)
            assert sum(link.held_bytes for link in links), "nothing was cut"
            for link in links:
                link.heal()
        assert job.wait(240) == 0, f"{job.stdout}\n{job.stderr}\n{cluster.log_tails(40)}"
        assert rows_of(tmp_path / "out") == expected
        assert attempts_of(cluster, job_id) == {0}
        cluster.wait_until(lambda: not cluster.state_left(), "nothing kept of the job")
    check_promises(quorum)
