"""Clusters whose machines are network namespaces: two machines, IPv6 alone, a machine of two interfaces."""

import json
import subprocess
import sys
import urllib.request

import psutil
import pytest

from engine.client.cluster_client import ClusterClient
from engine.network_address import address_text, split_address
from engine.rpc.credentials import Credentials
from tests.chaos.far_cluster import FarCluster, places
from tests.chaos.far_guarded_cluster import PLACES, FarGuardedCluster, far_quorum
from tests.chaos.tap_network import TapNetwork, reason_against
from tests.chaos.workload import JOB, RATE, expected_rows, rows_of, write_data
from tests.ha.quorum import needs_quorum

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.fixture
def networked(request):
    """Make networks that end with the test; the test is skipped where there can be none."""
    if reason := reason_against():
        pytest.skip(reason)

    def make(names, **arguments):
        network = TapNetwork(names, 1, **arguments)
        request.addfinalizer(network.close)
        return network

    return make


class WideCluster(FarCluster):
    """A FarCluster whose processes listen on all interfaces of their machines; TaskManagers are told no host."""

    any_host = "0.0.0.0"

    def _bind_host(self, name):
        return self.any_host

    def _task_manager(self, name):
        return {"taskmanager.bind-host": self.any_host, "taskmanager.memory.process.size": f"{511 + int(name[2:])}mb"}

    def pid_of(self, name):
        if name == "jm":
            return super().pid_of(name)
        said = f"taskmanager.memory.process.size={511 + int(name[2:])}mb"
        return next(pid for pid in self.pids("taskmanager") if said in psutil.Process(pid).cmdline())


class WideIpv6Cluster(WideCluster):
    any_host = "::"


def check_rows(cluster, data, target, rate=0):
    job = cluster.submit(JOB, data, target, rate)
    assert job.wait() == 0, f"{job.stdout}\n{job.stderr}\n{cluster.log_tails(30)}"
    assert rows_of(target) == expected_rows(data)
    return job


def bytes_received(network, name):
    """Return the bytes that a machine has had from others."""
    said = subprocess.run(
        [*network.command(name), "cat", "/proc/net/dev"], capture_output=True, text=True, check=True
    ).stdout
    line = next(line for line in said.splitlines() if line.strip().startswith("eth0:"))
    return int(line.split()[1])


@pytest.mark.parametrize("is_ipv6", [False, True], ids=["ipv4", "ipv6-alone"])
def test_task_managers_that_listen_everywhere_are_told_by_the_address_that_faces_the_job_manager(
    is_ipv6, networked, data, tmp_path
):
    network = networked(places(2), is_ipv6=is_ipv6)
    kind = WideIpv6Cluster if is_ipv6 else WideCluster
    with kind(tmp_path / "cluster", network, 2) as cluster:
        told = [each["path"].partition("/")[0] for each in cluster.get("/taskmanagers")["taskmanagers"]]
        assert {split_address(each)[0] for each in told} == {network.address(name) for name in ("tm1", "tm2")}
        check_rows(cluster, data, tmp_path / "out")
        assert bytes_received(network, "tm1") > 100_000, "rows of the other machine"


@needs_quorum
def test_a_guarded_cluster_of_ipv6_alone_changes_its_leader_and_ends_its_job(networked, data, tmp_path):
    network = networked(PLACES, is_ipv6=True)
    (tmp_path / "quorum").mkdir()
    quorum = far_quorum(tmp_path / "quorum", network, servers=1)
    quorum.start()
    try:
        with FarGuardedCluster(tmp_path / "cluster", network, quorum) as cluster:
            job = cluster.submit(JOB, data, tmp_path / "out", RATE)
            cluster.await_state(job.job_id(), "RUNNING")
            for number, port in enumerate(cluster.ports, 1):
                assert readiness(network, address_text(network.address(f"jm{number}"), port)) == "ok", "a standby, too"
            epoch, address = cluster.leaders.now.epoch, network.address(cluster.leader_place())
            (leader,) = (each for each in cluster.processes() if address in each.cmdline())
            leader.kill()
            cluster.leaders.after(epoch, 60)
            assert job.wait() == 0, f"{job.stderr}\n{cluster.log_tails(30)}"
            assert rows_of(tmp_path / "out") == expected_rows(data)
    finally:
        quorum.stop()


def readiness(network, place):
    with network.inside("client"), urllib.request.urlopen(f"http://{place}/readyz", timeout=30) as answer:
        return answer.read().decode().strip()


class TwoFacedCluster(WideCluster):
    """A JobManager with an interface for TaskManagers and one for people, who are told another address."""

    outside = "10.79.0.1"

    def _job_manager(self, name):
        return {"jobmanager.bind-host": self.any_host, "rest.address": self.outside}


def test_a_machine_of_two_interfaces_is_reached_by_each_under_its_own_address(networked, data, tmp_path):
    network = networked([*places(1), "person"])
    jm, person = network._namespace("jm"), network._namespace("person")
    for words in (
        f"-n {jm} link add out0 type veth peer name out0 netns {person}",
        *(f"-n {each} link set out0 up" for each in (jm, person)),
        f"-n {jm} addr add {TwoFacedCluster.outside}/24 dev out0",
        f"-n {person} addr add 10.79.0.2/24 dev out0",
        f"-n {person} link set eth0 down",
    ):
        subprocess.run(["ip", *words.split()], check=True)
    with TwoFacedCluster(tmp_path / "cluster", network, 1) as cluster:
        check_rows(cluster, data, tmp_path / "out")
        place = address_text(cluster.outside, cluster.port)
        client = ClusterClient(place, Credentials.load(cluster.folder / "conf" / "cluster.secret"))
        with network.inside("person"):
            try:
                assert client.document("/overview")["taskmanagers"] == 1
            finally:
                client.close()
            for path in ("/healthz", "/readyz"):
                with urllib.request.urlopen(f"http://{place}{path}", timeout=30) as answer:
                    assert answer.read() == b"ok\n"
        words = [*network.command("person"), sys.executable, "-m", "engine.cli.main", "job", "list", "-a", "-m", place]
        listed = subprocess.run(words, env=cluster.environment, capture_output=True, text=True, timeout=60, check=False)
        assert listed.returncode == 0 and "shuffle, join, sort" in listed.stdout, listed.stderr


def test_the_addresses_that_are_told_have_brackets(networked, data, tmp_path):
    network = networked(places(1), is_ipv6=True)
    with FarCluster(tmp_path / "cluster", network, 1) as cluster:
        place = f"[{network.address('jm')}]:{cluster.port}"
        job = cluster.submit(JOB, data, tmp_path / "out", 0, options=["-m", place])
        assert job.wait() == 0, job.stderr
        (executor,) = cluster.get("/taskmanagers")["taskmanagers"]
        assert executor["path"].startswith(f"[{network.address('tm1')}]:"), executor
        vertices = cluster.get(f"/jobs/{job.job_id()}")["vertices"]
        vertex = cluster.get(f"/jobs/{job.job_id()}/vertices/{vertices[0]['id']}")
        assert vertex["subtasks"][0]["host"] == network.address("tm1"), json.dumps(vertex["subtasks"][0])
