"""TaskManagers that the JobManager reaches, and that do not reach each other: jobs go where their data is, or say so.

Each on machines that are network namespaces (root), and through proxies (anybody).
"""

import time

import pytest

from tests.chaos.conftest import JOB, rows_of
from tests.chaos.far_cluster import FarCluster, places
from tests.chaos.proxy_network import ProxyNetwork
from tests.chaos.tap_network import TapNetwork, reason_against

pytestmark = pytest.mark.parametrize("seed", [1], indirect=True)
#: rows a second, of a job that is not to take long
FAST = 400_000


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


def ran_on(cluster, names, job):
    return {name for name in names if f"of job {job.job_id()}, begins" in cluster.log_of(name)}


def test_a_job_ends_well_where_its_data_is(tmp_path, network_of, data, expected):
    network = network_of(2)
    with FarCluster(tmp_path / "cluster", network, 2) as cluster:
        network.cut("tm1", "tm2")
        began_s = time.monotonic()
        job = cluster.submit(JOB, data, tmp_path / "out", FAST)
        assert job.wait() == 0, f"{job.stdout}\n{job.stderr}\n{cluster.log_tails(60)}"
        print(
            time.monotonic() - began_s,
            cluster.get(f"/jobs/{job.job_id()}/exceptions")["exceptionHistory"]["entries"][:3],
        )
        assert rows_of(tmp_path / "out") == expected
        network.heal()
        cluster.wait_until(lambda: cluster.get("/overview")["slots-available"] == 4, "free slots")
