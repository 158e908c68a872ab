"""The network between the processes of a cluster is slow, loses, and is cut: the output is right, and nobody is lost.

Each on machines that are network namespaces (root), and through proxies (anybody).
"""

import signal

import pytest

from tests.chaos.conftest import JOB, RATE, rows_of
from tests.chaos.far_cluster import FarCluster, places
from tests.chaos.proxy_network import ProxyNetwork
from tests.chaos.tap_network import TapNetwork, reason_against

TASK_MANAGERS = 2
pytestmark = pytest.mark.parametrize("seed", [1], indirect=True)


@pytest.fixture(params=["namespaces", "proxies"])
def network(request, seed):
    if request.param == "namespaces" and (reason := reason_against()):
        pytest.skip(reason)
    made = (TapNetwork if request.param == "namespaces" else ProxyNetwork)(places(TASK_MANAGERS), seed.random())
    yield made
    made.heal()
    made.close()


@pytest.fixture
def cluster(tmp_path, network):
    with FarCluster(tmp_path / "cluster", network, TASK_MANAGERS) as cluster:
        yield cluster


def begin(cluster, data, target, rate=RATE):
    job = cluster.submit(JOB, data, target, rate)
    cluster.await_state(job.job_id(), "RUNNING")
    return job


def finish(cluster, job, target, expected, seconds=120):
    assert job.wait(seconds) == 0, f"{job.stdout}\n{job.stderr}\n{cluster.log_tails(40)}"
    assert rows_of(target) == expected


def sleep(seconds):
    signal.sigtimedwait([], seconds)


def losses(cluster):
    return cluster.log_of("jm").count("is given up")


def uses(cluster, name, job):
    return f"of job {job.job_id()}, begins" in cluster.log_of(name)


def cut_off(network, direction):
    source, _, target = direction.partition("-")
    if target:
        network.cut(source, target, both=False)
    else:
        network.isolate("tm1")


def check_used_again(cluster, name, data, expected, folder):
    """After it is healed the TaskManager is registered again, and gets its share of the next job."""
    cluster.await_task_managers(TASK_MANAGERS)
    cluster.wait_until(lambda: cluster.get("/overview")["slots-available"] == 2 * TASK_MANAGERS, "free slots")
    again = cluster.submit(JOB, data, folder / "again", RATE, options=("-p", str(2 * TASK_MANAGERS)))
    finish(cluster, again, folder / "again", expected)
    assert uses(cluster, name, again)


def test_slow_links_that_change_the_order(cluster, network, data, expected, tmp_path):
    network.delay_s = 0.002, 0.03
    finish(cluster, begin(cluster, data, tmp_path / "out"), tmp_path / "out", expected)
    print(network.counts)
    assert network.counts["delayed"] > 100
    assert losses(cluster) == 0


def test_two_of_a_hundred_frames_are_lost(cluster, network, data, expected, tmp_path):
    if not isinstance(network, TapNetwork):
        pytest.skip("a proxy cannot lose a part of a TCP connection: test_proxies.py breaks connections instead")
    network.loss = 0.02
    finish(cluster, begin(cluster, data, tmp_path / "out"), tmp_path / "out", expected)
    print(network.counts)
    assert network.counts["lost"] > 10
    network.heal()
    check_used_again(cluster, "tm1", data, expected, tmp_path)


def test_rows_do_not_get_through_one_way_for_a_while(cluster, network, data, expected, tmp_path):
    job = begin(cluster, data, tmp_path / "out")
    network.cut("tm1", "tm2", both=False)
    cluster.wait_until(lambda: network.counts["cut"] > 0, "something to be cut")
    sleep(2.0)
    network.heal()
    finish(cluster, job, tmp_path / "out", expected)
    assert losses(cluster) == 0


@pytest.mark.parametrize("direction", ["jm-tm1", "tm1-jm", "both"])
def test_a_cut_shorter_than_the_time_out_of_heartbeats(cluster, network, data, expected, tmp_path, direction):
    if direction != "both" and isinstance(network, ProxyNetwork):
        pytest.skip("one namespace cut off in one direction; of proxies one in both is enough")
    job = begin(cluster, data, tmp_path / "out")
    cut_off(network, direction)
    sleep(1.2)
    network.heal()
    assert network.counts["cut"] > 0
    finish(cluster, job, tmp_path / "out", expected)
    assert losses(cluster) == 0
    check_used_again(cluster, "tm1", data, expected, tmp_path)


@pytest.mark.parametrize("direction", ["jm-tm1", "tm1-jm", "both"])
def test_a_cut_longer_than_the_time_out_of_heartbeats(cluster, network, data, expected, tmp_path, direction):
    if direction != "both" and isinstance(network, ProxyNetwork):
        pytest.skip("one namespace cut off in one direction; of proxies one in both is enough")
    job = begin(cluster, data, tmp_path / "out")
    cut_off(network, direction)
    cluster.wait_until(lambda: losses(cluster) > 0, "the loss of a TaskManager")
    finish(cluster, job, tmp_path / "out", expected)
    assert network.counts["cut"] > 0
    network.heal()
    check_used_again(cluster, "tm1", data, expected, tmp_path)
