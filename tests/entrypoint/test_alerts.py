"""Each alert of ``conf/prometheus`` fires on a real Prometheus when what it is about happens to a real cluster."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.tls import make_tls
from tests.entrypoint.conftest import ROOT, until
from tests.entrypoint.monitoring import RULES, Prometheus, needs_prometheus
from tests.entrypoint.test_mixed_versions import OTHER
from tests.ha.quorum import free_ports, needs_quorum

pytestmark = pytest.mark.processes

#: thresholds that a test would wait for too long, or must not reach, and those in their place
SOONER = {
    "_age_seconds > 30": "_age_seconds > 1",
    "> 600": "> 1",
    "[10m]) > 10": "[10m]) > 0",
    "used_bytes) < 0.10": "used_bytes) < 1.01",
    "< 14 * 86400": "< 1400 * 86400",
}
FAILS = """
from drey import Environment
import pyarrow as pa

def fail(row):
    raise ValueError("no")

schema = pa.schema([("x", pa.int64())])
Environment().from_rows([(1,)], schema).map(fail, schema).collect()
"""
WAITS = FAILS.replace('raise ValueError("no")', "return row")


def sooner(rules):
    """Return rules that fire at once, with thresholds that a test reaches."""
    for text, other in SOONER.items():
        assert rules.count(text) == 1, text
        rules = rules.replace(text, other)
    return re.sub(r"for: \w+", "for: 0s", rules)


@pytest.fixture
def begun():
    """Processes that are killed at the end."""
    processes = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def worker_pid(installation):
    (pid,) = installation.pids("taskmanager")
    return pid


def submit(installation, tmp_path, script):
    path = tmp_path / f"{len(script)}.py"
    path.write_text(script)
    command = [sys.executable, "-m", "engine.cli.main", "job", "submit", "-t", "cluster", str(path)]
    return subprocess.Popen(
        command, env=installation.environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def refused(installation, port):
    credential = Credentials(b"another secret!!!").sign("DELETE", "/cluster")
    request = urllib.request.Request(
        f"https://localhost:{port}/cluster", method="DELETE", headers={AUTHORIZATION: credential}
    )
    folder = installation.conf / "tls"
    client = make_tls(folder / "cluster.pem", folder / "cluster.key", folder / "ca.pem").client
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request, timeout=30, context=client)


@needs_prometheus
@needs_quorum
def test_each_alert_fires_when_what_it_is_about_happens(installation, quorum, begun, tmp_path):
    ports = free_ports(2)
    tls = installation.conf / "tls"
    made = installation.script("make-certificates.sh", str(tls))
    assert made.returncode == 0, made.stderr
    installation.configure(
        **{
            "security.ssl.enabled": "true",
            "security.ssl.certificate": tls / "cluster.pem",
            "security.ssl.key": tls / "cluster.key",
            "security.ssl.ca": tls / "ca.pem",
            "high-availability.type": "ZOOKEEPER",
            "high-availability.cluster-id": "alerts",
            "high-availability.zookeeper.quorum": quorum.hosts,
            "high-availability.zookeeper.client.session-timeout": "6 s",
            "heartbeat.interval": "300 ms",
            "heartbeat.timeout": "4 s",
            "taskmanager.rpc.port": ports,
            "restart-strategy.type": "none",
        }
    )
    started = installation.run("cluster", "start")
    assert started.returncode == 0, started.stdout + started.stderr
    (leader_pid,) = installation.pids("jobmanager")
    folder = tmp_path / "prometheus"
    folder.mkdir()
    rules = RULES.read_text()
    targets = {"drey": [f"localhost:{port}" for port in (installation.port, ports)]}
    files = f"ca_file: {tls}/ca.pem, cert_file: {tls}/cluster.pem, key_file: {tls}/cluster.key"
    prometheus = Prometheus(folder, targets, rules, f"scheme: https, tls_config: {{{files}}}, ")
    fired = set()

    def fires(*names):
        until(lambda: fired.update(prometheus.firing()) or fired.issuperset(names), f"the alerts {names}")

    try:
        until(lambda: prometheus.query("sum(drey_taskmanagers) + sum(drey_leader) + sum(up)") == [4], "all that is up")
        assert prometheus.firing() == set(), "nothing is wrong yet"
        prometheus.use(sooner(rules))
        fires("DreyDiskNearlyFull", "DreyCertificateEnds")
        refused(installation, installation.port)
        begun.append(submit(installation, tmp_path, FAILS))
        fires("DreyRequestsRefused", "DreyJobFailed", "DreyAttemptsFail")
        worker = worker_pid(installation)
        os.kill(worker, signal.SIGSTOP)
        fires("DreyTaskManagerSilent", "DreyProcessDown")
        os.kill(worker, signal.SIGKILL)
        fires("DreyTaskManagerLost", "DreyNoTaskManager")
        begun.append(submit(installation, tmp_path, WAITS))
        fires("DreyJobWaits", "DreyTooFewSlots")
        os.kill(leader_pid, signal.SIGSTOP)
        time.sleep(1.5)  # the leader's lease goes on
        os.kill(leader_pid, signal.SIGCONT)
        fires("DreyEventLoopSlow")
        other = [sys.executable, "-c", OTHER.format(module="entrypoint.taskmanager")]
        begun.append(
            subprocess.Popen(
                other, env=installation.environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )
        fires("DreyVersionsDiffer")
        quorum.stop()
        fires("DreyZooKeeperLost", "DreyNoLeader")
    finally:
        prometheus.close()
    assert fired == set(re.findall(r"alert: (\w+)", rules)), "each of them"
