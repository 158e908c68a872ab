"""Strangers and broken peers at every port of a cluster at work: nothing falls, grows or waits because of them."""

import collections
import contextlib
import os
import random
import re
import socket
import threading
import time

import psutil
import pytest

from engine.rpc.credentials import Credentials
from engine.transport.greeting_channel import GreetingChannel
from engine.transport.handshake import Greeting, greet_as_reader
from tests.chaos.cluster import ChaosCluster
from tests.chaos.conftest import IS_SHORT, JOB, RATE, rows_of
from tests.chaos.footprint import sample
from tests.chaos.fuzz import PROGRAM, DataFuzz, HttpFuzz, SlowLoris

#: attacks on each port
COUNT = int(os.environ.get("FUZZ_COUNT", "150" if IS_SHORT else "2000"))
MIB = 2**20


class GoodClient(threading.Thread):
    """Does at every port what those do whom it is for, and notes how long that takes."""

    def __init__(self, cluster, data_ports, credentials):
        super().__init__()
        self._cluster = cluster
        self._data_ports = data_ports
        self._credentials = credentials
        self._ends = threading.Event()
        self.took_s = []
        self.failures = []
        self.start()

    def run(self):
        while not self._ends.wait(0.02):
            began_s = time.monotonic()
            try:
                self._cluster.get("/overview")
                for port in self._data_ports:
                    with socket.create_connection(("127.0.0.1", port), 20) as connection:
                        greet_as_reader(GreetingChannel(connection, 20), Greeting("drey", self._credentials, PROGRAM))
            except Exception as error:
                self.failures.append(repr(error))
            self.took_s.append(time.monotonic() - began_s)

    def close(self):
        self._ends.set()
        self.join()


def listening_ports(pid):
    listening = psutil.Process(pid).net_connections("tcp")
    return sorted(one.laddr.port for one in listening if one.status == psutil.CONN_LISTEN)


def routes_of(cluster):
    """Every path of the JobManager's own table; variables name nothing that is there."""
    names = ("resourcemanager", "dispatcher", "leader", "nobody")
    found = [("POST", "/rpc"), *(("POST", f"/rpc/{name}") for name in names)]
    for path, methods in cluster.get("/openapi.json")["paths"].items():
        filled = re.sub(r"\{[^}]*\}", "0" * 32, path)
        found += [(method.upper(), filled) for method in methods if (method, path) != ("delete", "/cluster")]
    return found


def fuzzers(cluster, credentials, seed):
    """Return one for each listening port of the cluster, and the ports of rows."""
    data_ports = []
    made = [
        HttpFuzz(("127.0.0.1", port), credentials, routes_of(cluster), random.Random(seed.random()))
        for port in listening_ports(cluster.pids("jobmanager")[0])
    ]
    names = [line["id"] for line in task_managers(cluster)]
    targets = [("POST", f"/rpc/{kind}-{name}") for name in names for kind in ("taskexecutor", "insight")]
    targets.append(("POST", "/rpc"))
    for pid in cluster.pids("taskmanager"):
        known = {int(line["path"].partition("/")[0].rpartition(":")[2]) for line in task_managers(cluster)}
        for port in listening_ports(pid):
            address, own = ("127.0.0.1", port), random.Random(seed.random())
            if port in known:
                made.append(HttpFuzz(address, credentials, targets, own))
            else:
                data_ports.append(port)
                made.append(DataFuzz(address, credentials, own))
    return made, data_ports


def task_managers(cluster):
    return cluster.get("/taskmanagers")["taskmanagers"]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1], indirect=True)
def test_no_bytes_at_any_port_harm_a_cluster_at_work(tmp_path, data, expected, seed):
    with ChaosCluster(tmp_path / "cluster") as cluster, contextlib.ExitStack() as ends:
        credentials = Credentials.load(cluster.folder / "conf" / "cluster.secret")
        attackers, data_ports = fuzzers(cluster, credentials, seed)
        assert len(attackers) == 5, "a JobManager's port, and two of each TaskManager"
        pids = cluster.pids("jobmanager") + cluster.pids("taskmanager")
        good = GoodClient(cluster, data_ports, credentials)
        ends.callback(good.close)
        loris = SlowLoris([attacker.address for attacker in attackers], 10)
        ends.callback(loris.close)
        # Pools and workers have their size, and what a first job loads is there.
        assert cluster.submit(JOB, data, tmp_path / "warm", 0).wait() == 0
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        cluster.await_state(job.job_id(), "RUNNING")
        before = {pid: sample(pid) for pid in pids}
        answers = attack(attackers, seed)
        assert job.wait() == 0, f"{job.stderr}\n{cluster.log_tails()}"
        assert rows_of(tmp_path / "out") == expected
        good.close()
        loris.close()
        assert pids == cluster.pids("jobmanager") + cluster.pids("taskmanager")
        assert all(psutil.pid_exists(pid) for pid in pids)
        check(cluster, attackers, answers, good, before)
        if not IS_SHORT:
            again = cluster.submit(JOB, data, tmp_path / "again", 0)
            assert again.wait() == 0, again.stderr
            assert rows_of(tmp_path / "again") == expected


def attack(attackers, seed):
    """Run all attacks on all ports, each port from a thread of its own; return how they were answered."""
    answers = [collections.Counter() for _ in attackers]

    def work(attacker, answered, order):
        for name in order:
            answered[name, attacker.attacks[name]()] += 1

    threads = []
    for attacker, answered in zip(attackers, answers, strict=True):
        order = seed.choices(list(attacker.attacks), k=COUNT)
        threads.append(threading.Thread(target=work, args=(attacker, answered, order)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return answers


def check(cluster, attackers, answers, good, before):
    report = [f"{attacker.address}: {dict(answered)}" for attacker, answered in zip(attackers, answers, strict=True)]
    took_s = sorted(good.took_s)
    median_s = took_s[len(took_s) // 2]
    report.append(f"good client: {len(took_s)} rounds, median {median_s:.3f} s, most {took_s[-1]:.3f} s")
    report += [f"{pid}: {then} -> {sample(pid)}" for pid, then in before.items()]
    text = "\n".join(report)
    print(text)
    assert not good.failures, f"{good.failures[:5]}\n{text}"
    for attacker, answered in zip(attackers, answers, strict=True):
        assert sum(answered.values()) == COUNT, text
        if isinstance(attacker, HttpFuzz):
            check_http(answered, text)
        else:
            assert attacker.frames > COUNT, text
            assert {answer for _, answer in answered} <= {"greeted", "0 frames", "1 frames"}, text
            assert answered["replayed", "1 frames"] > 0, text
            assert answered["greeted", "greeted"] > 0, text

    def is_as_before(pid):
        now = sample(pid)
        assert now["rss"] - before[pid]["rss"] < 32 * MIB, text
        return now["fds"] <= before[pid]["fds"] + 4 and now["threads"] <= before[pid]["threads"] + 4

    for pid in before:
        cluster.wait_until(lambda pid=pid: is_as_before(pid), f"few connections\n{text}")


def check_http(answered, text):
    for name, answer in answered:
        assert answer not in (500, "not even once"), f"{name} {answer}\n{text}"
        if name == "unsigned":
            assert answer == 401, f"{name} {answer}\n{text}"
        if name == "replayed":
            assert answer == "once, then 401", f"{name} {answer}\n{text}"
        if name == "called":
            assert answer == "called", f"{name} {answer}\n{text}"
    assert answered["signed", 200] > 0, text
    assert answered["called", "called"] > 0, text
