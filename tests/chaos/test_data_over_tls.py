"""TaskManagers that reach each other by TCP only, with certificates: every exchange of a job goes through TLS."""

import signal

from tests.chaos.cluster import ChaosCluster
from tests.chaos.conftest import JOB, RATE
from tests.chaos.test_lost_task_managers import finish
from tests.rpc.test_tls import contexts, made


class TlsCluster(ChaosCluster):
    """Within TLS, in a temporary folder that is too deep for the path of a UNIX socket."""

    def __init__(self, folder):
        settings = dict(line.split(": ", 1) for line in made(folder / "tls").splitlines())
        super().__init__(folder / ("deep" * 30), task_managers=3, **settings)
        self.tls = contexts(folder / "tls").client


def test_a_job_of_every_exchange_runs_over_tls_and_outlives_a_task_manager(tmp_path, data, expected):
    with TlsCluster(tmp_path) as cluster:
        assert not [*cluster.temporary.glob("drey-data-*/socket")]
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        cluster.await_state(job.job_id(), "RUNNING")
        signal.sigtimedwait([], 1.0)
        cluster.kill(cluster.pids("taskmanager")[0])
        cluster.add_task_manager()
        finish(cluster, job, tmp_path / "out", expected)
        assert "was refused" not in cluster.log_tails(2000)
