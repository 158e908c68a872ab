"""JobManagers and servers of ZooKeeper are killed under jobs, and over and over."""

import os
import signal
import time

import pytest

from tests.chaos.cluster import ChaosCluster
from tests.chaos.conftest import IS_SHORT, JOB, RATE, rows_of
from tests.ha.candidate import SESSION_S, settings_of
from tests.ha.quorum import needs_quorum, until
from tests.ha.test_zookeeper import MARGIN_S, Process

pytestmark = needs_quorum


def elected(quorum, session="4 s"):
    return {
        "high-availability.type": "ZOOKEEPER",
        "high-availability.zookeeper.quorum": quorum.hosts,
        "high-availability.zookeeper.client.session-timeout": session,
    }


def test_a_killed_leader_of_the_quorum_is_nothing_to_a_job(tmp_path, quorum, data, expected):
    with ChaosCluster(tmp_path / "cluster", **elected(quorum, "20 s")) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        cluster.await_state(job.job_id(), "RUNNING")
        quorum.kill(next(number for number in quorum.servers if quorum.mode(number) == "leader"))
        assert job.wait() == 0, job.stderr
        assert rows_of(tmp_path / "out") == expected


def test_a_job_goes_on_when_its_only_job_manager_is_started_again(tmp_path, quorum, data, expected):
    # A supervisor would start it, too, and one of the two would find its port taken.
    alone = {"jobmanager.supervisor.enabled": "false"}
    with ChaosCluster(tmp_path / "cluster", **elected(quorum), **alone) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        cluster.await_state(job.job_id(), "RUNNING")
        cluster.kill(cluster.pids("jobmanager")[0])
        cluster.script("jobmanager", "start")
        assert job.wait() == 0, job.stderr
        assert rows_of(tmp_path / "out") == expected


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_leaders_are_followed_again_and_again_and_epochs_grow(quorum, number):
    settings = settings_of(quorum.hosts, f"chaos-{number}")
    line = [Process(quorum, settings, str(name)) for name in range(2)]
    epochs, took_s = [], []
    try:
        for _ in range(3 if IS_SHORT else 12):
            until(lambda: any(process.times("acted") for process in line), "a leader")
            leader = max(line, key=lambda process: max(process.times("granted"), default=(0, 0)))
            line.remove(leader)
            time.sleep(0.3)  # the other one stands in the line
            began_s = time.clock_gettime(time.CLOCK_BOOTTIME)
            os.kill(leader.process.pid, number)
            until(lambda: line[0].times("granted"), "the next leader")
            granted_s, epoch = line[0].times("granted")[0]
            took_s.append(granted_s - began_s)
            os.kill(leader.process.pid, signal.SIGCONT)
            until(lambda: line[0].times("acted"), "its first act")
            assert all(at_s < granted_s for at_s, old in leader.times("acted") if old < epoch)
            leader.close()
            epochs.append(epoch)
            line.append(Process(quorum, settings, "next"))
    finally:
        for process in line:
            process.close()
    assert epochs == sorted(set(epochs))
    print(f"took {sorted(round(time_s, 2) for time_s in took_s)} s of sessions of {SESSION_S} s")
    assert sorted(took_s)[len(took_s) // 2] < SESSION_S + MARGIN_S
