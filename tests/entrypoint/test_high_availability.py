"""Several JobManagers over a real ZooKeeper: one leads, TaskManagers and clients find it, the next one takes over."""

import json
import os
import re
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from engine.rpc.http_forwarding import ANSWERED_BY_HEADER
from tests.entrypoint.conftest import until
from tests.ha.quorum import Quorum, free_ports, needs_quorum

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    made = Quorum(tmp_path_factory.mktemp("quorum"), 1)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def ports(installation, quorum, tmp_path):
    first = free_ports(2)
    (installation.conf / "masters").write_text(f"localhost:{first}\nlocalhost:{first + 1}\n")
    installation.configure(
        **{
            "high-availability.type": "ZOOKEEPER",
            "high-availability.cluster-id": tmp_path.name,
            "high-availability.zookeeper.quorum": quorum.hosts,
            "high-availability.zookeeper.client.session-timeout": "20 s",
            "high-availability.zookeeper.client.connection-timeout": "30 s",
        },
    )
    return first, first + 1


def overview(port, own=True):
    """Return what a JobManager says: (status, document); ``own``: what another one said in its place is status 503."""
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/overview", timeout=30) as answer:
            is_own = ANSWERED_BY_HEADER not in answer.headers
            return answer.status if is_own or not own else 503, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())
    except OSError:
        return 0, {}


def metrics(port):
    """Return the metrics of a JobManager itself that have no label but its name."""
    with urllib.request.urlopen(f"http://localhost:{port}/metrics?processes=own", timeout=30) as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r'^(\w+)\{process="jobmanager"\} (\S+)$', text, re.M)}


def leader_of(ports):
    """Return the port that leads, or None."""
    return next((port for port in ports if overview(port)[0] == 200), None)


def pid_at(installation, port):
    """Return the process of the JobManager that was started for a port."""
    for pid in installation.pids("jobmanager"):
        if str(port) in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
            return pid
    raise AssertionError(f"no JobManager for {port}")


@needs_quorum
def test_the_next_job_manager_leads_when_the_first_was_killed_and_all_find_it(installation, ports):
    done = installation.run("cluster", "start")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"Started jobmanager \d+ at ", done.stdout)) == 2
    until(lambda: leader_of(ports) is not None, "a leader")
    leader = leader_of(ports)
    standby = sum(ports) - leader
    assert overview(standby)[0] == 503
    until(lambda: overview(leader)[1].get("slots-total") == 2, "the TaskManager's registration")
    assert overview(standby, own=False) == overview(leader), "a standby asks the leader"
    assert {port: metrics(port)["drey_leader"] for port in ports} == {leader: 1, standby: 0}
    assert metrics(leader)["drey_leader_epoch"] == metrics(standby)["drey_leader_epoch"] > 0
    assert all(metrics(port)["drey_zookeeper_connected"] == 1 for port in ports)
    asked = installation.run("job", "list", command=(sys.executable, "-m", "engine.cli.main"))
    assert asked.returncode == 0, asked.stdout + asked.stderr
    with urllib.request.urlopen(f"http://localhost:{standby}/overview/events", timeout=30) as stream:
        parts = json.loads(stream.readline().removeprefix(b"data: "))
    assert f"standing by: localhost:{standby}" in parts["managers"], "the leader's words, through the standby"
    os.kill(pid_at(installation, leader), signal.SIGKILL)
    until(lambda: overview(standby)[1].get("slots-total") == 2, "the TaskManager at the next leader")
    assert (metrics(standby)["drey_leader"], metrics(standby)["drey_elections_total"]) == (1, 1)
    asked = installation.run("job", "list", command=(sys.executable, "-m", "engine.cli.main"))
    assert asked.returncode == 0, asked.stdout + asked.stderr
    assert installation.run("cluster", "stop").returncode == 0
    assert list(installation.tmp.iterdir()) == []


@needs_quorum
def test_a_job_manager_that_was_stopped_past_its_lease_leads_no_more_and_stands_by(installation, ports):
    brief = ("-D", "high-availability.zookeeper.client.session-timeout=3 s")
    for port in ports:
        assert installation.run("jobmanager", "start", "localhost", str(port), *brief).returncode == 0
    until(lambda: leader_of(ports) is not None, "a leader")
    leader = leader_of(ports)
    standby = sum(ports) - leader
    pid = pid_at(installation, leader)
    os.kill(pid, signal.SIGSTOP)
    until(lambda: overview(standby)[0] == 200, "the next leader")
    os.kill(pid, signal.SIGCONT)
    until(lambda: overview(leader)[0] == 503, "the end of the first leadership")
    until(lambda: overview(leader, own=False) == overview(standby), "the news")
    assert installation.run("jobmanager", "stop-all").returncode == 0


@needs_quorum
def test_a_leader_whose_storage_cannot_be_opened_lets_another_one_lead(installation, ports, tmp_path):
    good, bad = ports
    broken = tmp_path / "elsewhere" / tmp_path.name
    broken.mkdir(parents=True)
    assert installation.run("jobmanager", "start", "localhost", str(good)).returncode == 0
    until(lambda: leader_of(ports) == good, "the first leader")
    elsewhere = f"high-availability.storageDir={broken.parent}"
    assert installation.run("jobmanager", "start", "localhost", str(bad), "-D", elsewhere).returncode == 0
    # Like a disk that is gone: nothing can be made in it, and the next leader needs it.
    (broken / "jobs").write_text("in the way")
    first, next_one = pid_at(installation, good), pid_at(installation, bad)
    os.kill(first, signal.SIGKILL)
    until(lambda: next_one not in installation.pids("jobmanager"), "the end of the one that cannot lead")
    until(lambda: leader_of(ports) == good, "the first one's next process as the leader")
    assert "high-availability.storageDir cannot be opened" in installation.log_text("jobmanager", 1)
    assert str(broken / "jobs") in installation.log_text("jobmanager", 1)
    assert installation.run("jobmanager", "stop-all").returncode == 0


@needs_quorum
def test_a_job_manager_without_zookeeper_ends_and_says_so(installation, ports):
    done = installation.run(
        "jobmanager",
        "start",
        "-D",
        "high-availability.zookeeper.quorum=127.0.0.1:1",
        "-D",
        "high-availability.zookeeper.client.connection-timeout=300 ms",
    )
    assert done.returncode == 1
    assert "no ZooKeeper of 127.0.0.1:1 has answered" in done.stderr
    assert installation.pids("jobmanager") == []


@needs_quorum
def test_a_client_says_that_nobody_leads(installation, ports):
    words = ("job", "list")
    asked = installation.run(*words, command=(sys.executable, "-m", "engine.cli.main"))
    assert asked.returncode != 0
    assert "security.secret-file" in asked.stderr
