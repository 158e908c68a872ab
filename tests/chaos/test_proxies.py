"""Connections of a cluster break, end too soon and bring flipped bits: never a wrong row, and always an end."""

import json
import signal

import pytest

from tests.chaos.conftest import JOB, RATE, rows_of
from tests.chaos.far_cluster import FarCluster, places
from tests.chaos.proxy_network import ProxyNetwork

DAMAGES = 3


@pytest.fixture
def network(seed):
    made = ProxyNetwork(places(2), seed.random())
    yield made
    made.close()


@pytest.fixture
def cluster(tmp_path, network):
    with FarCluster(tmp_path / "cluster", network, 2) as cluster:
        yield cluster


@pytest.mark.parametrize("seed", [1, 2], indirect=True)
@pytest.mark.parametrize("kind", ["break", "truncate", "flip"])
def test_rows_on_their_way_are_damaged_and_come_again(cluster, network, data, expected, tmp_path, kind):
    for name, port in cluster.data_ports.items():
        network.damage(name, port, kind, DAMAGES)
    job = cluster.submit(JOB, data, tmp_path / "out", 0)
    assert job.wait(120) == 0, f"{job.stderr}\n{cluster.log_tails(40)}"
    assert rows_of(tmp_path / "out") == expected
    failures = json.dumps(cluster.get(f"/jobs/{job.job_id()}/exceptions"))
    print(network.counts, failures.count("PartitionConnectionError"))
    assert network.counts[kind] > 0
    assert "PartitionConnectionError" in failures or "a data connection from" in cluster.log_of("tm1")


@pytest.mark.parametrize("seed", [1, 2], indirect=True)
@pytest.mark.parametrize("kind", ["break", "truncate", "flip"])
def test_messages_on_their_way_are_damaged(cluster, network, data, expected, tmp_path, kind):
    """What is lost of a message may cost a job, clearly; it costs no wrong row and not the cluster."""
    job = cluster.submit(JOB, data, tmp_path / "out", RATE)
    cluster.await_state(job.job_id(), "RUNNING")
    for name, port in cluster.rpc_ports.items():
        network.damage(name, port, kind, DAMAGES)
    code = job.wait(120)
    print(code, network.counts, job.stderr)
    assert network.counts[kind] > 0
    if code == 0:
        assert rows_of(tmp_path / "out") == expected
    else:
        assert job.stderr.strip()
        assert len(job.stderr.splitlines()) <= 16
    cluster.await_task_managers(2)
    again = cluster.submit(JOB, data, tmp_path / "again", 0)
    assert again.wait(120) == 0, f"{again.stderr}\n{cluster.log_tails(40)}"
    assert rows_of(tmp_path / "again") == expected


@pytest.mark.parametrize("seed", [1], indirect=True)
def test_two_task_managers_do_not_hear_each_other_for_half_a_minute(cluster, network, data, expected, tmp_path):
    """The JobManager hears both: nobody is lost, and what one has stored for the other is there when it is healed."""
    job = cluster.submit(JOB, data, tmp_path / "out", RATE)
    cluster.await_state(job.job_id(), "RUNNING")
    network.cut("tm1", "tm2")
    signal.sigtimedwait([], 30.0)
    assert network.counts["cut"] > 0
    network.heal()
    assert job.wait(120) == 0, f"{job.stderr}\n{cluster.log_tails(40)}"
    assert rows_of(tmp_path / "out") == expected
