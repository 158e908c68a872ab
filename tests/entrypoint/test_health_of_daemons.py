"""/healthz and /readyz of real processes, asked as orchestrators do, and by ``probe.sh``."""

import http.client
import signal
import sys

import pytest

from engine.entrypoint.probe import main as probe
from tests.entrypoint.conftest import ROOT, until
from tests.ha.quorum import free_port

pytestmark = pytest.mark.processes


def answer(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers={"Host": "10.244.0.7"})
        return connection.getresponse().read().decode().strip()
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()


@pytest.fixture
def probed(installation, monkeypatch, capsys):
    monkeypatch.setenv("DREY_CONF_DIR", str(installation.conf))

    def ask(*words):
        capsys.readouterr()
        return probe(words), capsys.readouterr().out.strip()

    return ask


def test_a_task_manager_is_ready_while_a_job_manager_has_it(installation, probed):
    port = free_port()
    installation.configure(taskmanager__rpc__port=port)
    task_manager = installation.daemon("taskmanager")
    try:
        until(lambda: answer(port, "/readyz") == "not ready: not-registered", "the TaskManager's answer")
        assert probed("taskmanager") == (1, "not ready: not-registered")
        assert answer(port, "/healthz") == "ok" and probed("taskmanager", "alive") == (0, "ok")
        assert probed("jobmanager") == (1, "nothing answers: Connection refused")
        job_manager = installation.daemon("jobmanager")
        try:
            until(lambda: answer(port, "/readyz") == "ok", "registration")
            assert answer(installation.port, "/readyz") == "ok"
            assert probed("taskmanager", "ready") == probed("jobmanager") == probed("any", "alive") == (0, "ok")
        finally:
            job_manager.kill()
            job_manager.communicate()
        until(lambda: answer(port, "/readyz") == "not ready: not-registered", "the loss of the JobManager")
    finally:
        task_manager.send_signal(signal.SIGTERM)
        task_manager.communicate()
    assert answer(port, "/healthz") == ""


def test_a_history_server_is_ready_when_it_serves(installation, probed):
    port = free_port()
    installation.configure(historyserver__web__port=f"{port}-{port + 2}")
    server = installation.daemon("historyserver")
    try:
        until(lambda: probed("historyserver") == (0, "ok"), "the history server")
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate()


def test_with_mutual_tls_a_probe_shows_the_certificate_that_an_orchestrator_has_not(installation, probed):
    made = installation.script("make-certificates.sh", str(installation.conf), "history.example")
    assert made.returncode == 0, made.stderr
    port = free_port()
    settings = {"historyserver.web.port": port, "security.ssl.enabled": "true", "security.ssl.key": "cluster.key"}
    settings |= {"security.ssl.certificate": "cluster.pem", "security.ssl.ca": "ca.pem"}
    installation.configure(**settings)
    server = installation.daemon("historyserver")
    try:
        until(lambda: probed("historyserver") == (0, "ok"), "the history server")
        assert answer(port, "/healthz") == ""
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate()


def test_a_job_manager_that_finds_no_quorum_is_alive_and_not_ready(installation, probed):
    settings = {"high-availability.type": "ZOOKEEPER", "high-availability.zookeeper.quorum": f"127.0.0.1:{free_port()}"}
    installation.configure(**settings)
    job_manager = installation.daemon("jobmanager")
    try:
        until(lambda: probed("jobmanager") == (1, "not ready: no-leader"), "the JobManager's answer")
        assert probed("jobmanager", "alive") == (0, "ok")
    finally:
        job_manager.kill()
        job_manager.communicate()


def test_a_port_that_is_any_free_one_cannot_be_asked(probed):
    code, said = probed("taskmanager")
    assert code == 1 and "taskmanager.rpc.port is 0" in said
    assert probed("any", "alive") == (1, "nothing answers: Connection refused")


def test_the_script_is_the_same(installation):
    asked = installation.run("jobmanager", "alive", command=(str(ROOT / "bin" / "probe.sh"),))
    assert (asked.returncode, asked.stdout) == (1, "nothing answers: Connection refused\n"), asked.stderr
    words = (sys.executable, "-P", "-m", "engine.entrypoint.probe")
    assert installation.run("nobody", command=words).returncode == 2
