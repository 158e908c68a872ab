"""TaskManagers that the JobManager reaches, and that do not reach each other: jobs go where their data is, or say so.

Each on machines that are network namespaces (root), and through proxies (anybody).
"""

import pytest

from tests.chaos.conftest import JOB, RATE, rows_of
from tests.chaos.far_cluster import FarCluster, places
from tests.chaos.proxy_network import ProxyNetwork
from tests.chaos.tap_network import TapNetwork, reason_against

pytestmark = pytest.mark.parametrize("seed", [1], indirect=True)
#: rows a second, of a job that is not to take long
FAST = 400_000
STRATEGY = {"restart-strategy.type": "exponential-delay"}


@pytest.fixture(params=["namespaces", "proxies"])
def network_of(request, seed):
    """Make the network of so many TaskManagers."""
    if request.param == "namespaces" and (reason := reason_against()):
        pytest.skip(reason)
    made = []

    def make(task_managers):
        kind = TapNetwork if request.param == "namespaces" else ProxyNetwork
        made.append(kind(places(task_managers), seed.random()))
        return made[-1]

    yield make
    for each in made:
        each.heal()
        each.close()


def test_a_job_ends_well_where_its_data_is(tmp_path, network_of, data, expected):
    network = network_of(2)
    with FarCluster(tmp_path / "cluster", network, 2, **STRATEGY) as cluster:
        network.cut("tm1", "tm2")
        job = cluster.submit(JOB, data, tmp_path / "out", FAST)
        assert job.wait() == 0, f"{job.stdout}\n{job.stderr}\n{cluster.log_tails(60)}"
        assert rows_of(tmp_path / "out") == expected
        print(job.stderr)
        assert "Attempt 2 failed" in job.stderr and "Attempt 5 failed" not in job.stderr
        assert "cannot read from TaskManager" in job.stderr
        assert network.address("tm1") in job.stderr and network.address("tm2") in job.stderr
        network.heal()
        cluster.wait_until(lambda: cluster.get("/overview")["slots-available"] == 4, "free slots")


def test_a_link_that_is_cut_while_rows_go_through_it(tmp_path, network_of, data, expected):
    network = network_of(3)
    with FarCluster(tmp_path / "cluster", network, 3, **STRATEGY) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        cluster.await_state(job.job_id(), "RUNNING")
        network.cut("tm1", "tm2")
        assert job.wait() == 0, f"{job.stdout}\n{job.stderr}\n{cluster.log_tails(60)}"
        assert rows_of(tmp_path / "out") == expected
        assert network.counts["cut"] > 0


def test_a_job_that_needs_both_ends_with_both_hosts(tmp_path, network_of, data):
    network = network_of(2)
    with FarCluster(tmp_path / "cluster", network, 2, **STRATEGY) as cluster:
        network.cut("tm1", "tm2")
        options = ("-p", "4", "-D", "execution.mode=PIPELINED")
        job = cluster.submit(JOB, data, tmp_path / "out", FAST, options=options)
        assert job.wait() == 1, f"{job.stdout}\n{job.stderr}\n{cluster.log_tails(60)}"
        (line,) = [line for line in job.stderr.splitlines() if line.startswith("ResourceError: ")]
        assert f" on {network.address('tm1')}" in line and f" on {network.address('tm2')}" in line, line
        assert "too few slots" in line and not (tmp_path / "out").exists()
        network.heal()
        cluster.wait_until(lambda: cluster.get("/overview")["slots-available"] == 4, "free slots")
