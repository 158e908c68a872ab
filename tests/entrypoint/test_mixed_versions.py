"""Processes of another version are turned away, by name, before they could misunderstand anything."""

import json
import socket
import subprocess
import sys
import urllib.request

import pytest

from engine import __version__
from engine.gateways.protocol import protocol
from tests.entrypoint.conftest import ROOT, until

pytestmark = [pytest.mark.processes, pytest.mark.timeout(120)]

HERE = socket.gethostname()
#: a program of a far release: it knows none of this one's messages
OTHER = (
    "import sys, engine, engine.versions as versions; engine.__version__ = '9.9.9'; "
    "versions.PROTOCOL = versions.Form('message', 99, 98); from engine.{module} import main; sys.exit(main())"
)


class Processes:
    """A JobManager of this version, and processes that are begun beside it."""

    def __init__(self, installation):
        self.installation = installation
        self.begun = []
        assert installation.run("jobmanager", "start").returncode == 0

    def begin(self, module, *words, is_other=True):
        code = OTHER.format(module=module)
        command = [sys.executable, "-c", code] if is_other else [sys.executable, "-m", f"engine.{module}"]
        process = subprocess.Popen(
            [*command, *words],
            env=self.installation.environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        self.begun.append(process)
        return process

    def said(self, module, *words, is_other=True):
        return self.begin(module, *words, is_other=is_other).communicate(timeout=100)[0]

    def asked(self, path):
        with urllib.request.urlopen(f"http://localhost:{self.installation.port}{path}", timeout=60) as answer:
            return answer.read().decode()


@pytest.fixture
def cluster(installation):
    made = Processes(installation)
    yield made
    for process in made.begun:
        process.kill()
        process.communicate()


def both(role):
    """What a refusal says of the other one and of the JobManager."""
    other = f"the {role} on {HERE} has Drey 9.9.9 (protocol 98-99:{protocol().partition(':')[2]})"
    return f"{other}, the JobManager on {HERE} has Drey {__version__} (protocol {protocol()})"


def test_a_task_manager_of_another_version_does_not_register(cluster):
    log = cluster.installation.log / "other.log"
    other = cluster.begin("entrypoint.taskmanager", "--log-file", str(log))
    until(lambda: log.exists() and "not registered" in log.read_text(), "a refusal")
    (line,) = [each for each in log.read_text().splitlines() if "not registered" in each]
    assert both("TaskManager") in line and other.poll() is None
    assert cluster.installation.slots() == 0

    refused = json.loads(cluster.asked("/jobmanager/refusals"))["refused"][0]
    assert refused["reason"] == "version" and both("TaskManager") in refused["message"]
    assert refused["address"] == "127.0.0.1"
    assert 'drey_refused_requests_total{process="jobmanager",reason="version"}' in cluster.asked("/metrics")
    assert "has Drey 9.9.9" in cluster.asked("/jobmanager/page")

    cluster.begin("entrypoint.taskmanager", is_other=False)
    until(lambda: cluster.installation.slots() == 2, "a TaskManager of this version")
    (listed,) = json.loads(cluster.asked("/taskmanagers"))["taskmanagers"]
    assert (listed["version"], listed["protocol"]) == (__version__, protocol())
    overview = json.loads(cluster.asked("/overview"))
    assert (overview["flink-version"], overview["protocol"]) == (__version__, protocol())
    assert f"version {__version__}, protocol {protocol()}" in cluster.asked("/")


def test_a_client_of_another_version_is_told_so_whatever_it_asks(cluster, tmp_path):
    job = tmp_path / "job.py"
    job.write_text(
        "import pyarrow as pa\nfrom engine import Environment\nenv = Environment()\n"
        f"env.from_rows([(1,)], pa.schema({{'x': pa.int64()}})).write_csv({str(tmp_path / 'out')!r})\nenv.execute()\n"
    )
    for words in (["job", "list"], ["job", "status", "0" * 32], ["job", "submit", "-t", "cluster", str(job)]):
        said = cluster.said("cli.main", *words)
        assert both("client") in said and "Traceback" not in said, said
    assert not (tmp_path / "out").exists()
    assert "has Drey" not in cluster.said("cli.main", "job", "list", is_other=False)
