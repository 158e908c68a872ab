"""A job that brings its own modules, on a cluster of real processes that speak TLS and keep their secret."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from tests.entrypoint.conftest import until
from tests.folders import files_below
from tests.rpc.test_tls import made

pytestmark = pytest.mark.processes

JOB = """
import sys
import pyarrow as pa
import beside
import brought
from engine import Environment

env = Environment()
numbers = env.from_rows([(n,) for n in range(100)], schema=pa.schema([("x", pa.int64())]))
numbers.map(lambda row: (brought.plus(beside.twice(row.x)),), pa.schema([("y", pa.int64())])).write_csv(sys.argv[1])
env.execute("brings modules")
"""


def test_modules_of_a_job_reach_its_workers_over_tls_and_go_with_it(installation, tmp_path):
    script, library = tmp_path / "script", tmp_path / "library"
    for folder in (script, library):
        folder.mkdir()
    (script / "job.py").write_text(JOB)
    (script / "beside.py").write_text("def twice(x):\n    return 2 * x\n")
    (library / "brought.py").write_text("def plus(x):\n    return x + 1\n")
    tls = dict(line.split(": ", 1) for line in made(tmp_path / "tls").splitlines())
    installation.configure(**tls)
    started = installation.run("cluster", "start")
    assert started.returncode == 0, started.stderr + started.stdout
    pids = [pid for daemon in ("jobmanager", "taskmanager") for pid in installation.pids(daemon)]
    assert len(pids) == 2

    def submit(name):
        words = ("job", "submit", "-t", "cluster", "--py-files", str(library / "brought.py"))
        command = (sys.executable, "-m", "engine.cli.main")
        return installation.run(*words, str(script / "job.py"), str(tmp_path / name), command=command)

    done = submit("out")
    assert done.returncode == 0, done.stderr
    lines = [int(line) for part in (tmp_path / "out").iterdir() for line in part.read_text().split()]
    assert sorted(lines) == [2 * n + 1 for n in range(100)]

    def blobs():
        return [path for path in files_below(installation.tmp) if len(path.name) == 64]

    until(lambda: not blobs(), "the end of the job's blobs")
    listeners = [c.laddr.ip for pid in pids for c in psutil.Process(pid).net_connections() if c.status == "LISTEN"]
    assert listeners and set(listeners) == {"127.0.0.1"}
    secret = (installation.conf / "cluster.secret").read_text().strip()
    texts = [path.read_text(errors="replace") for path in installation.log.rglob("*") if path.is_file()]
    texts += [" ".join(psutil.Process(pid).cmdline() + list(psutil.Process(pid).environ().values())) for pid in pids]
    assert not any(secret in text for text in (*texts, done.stdout, done.stderr))
    # A client without a certificate is not served.
    installation.configure()
    refused = submit("again")
    assert refused.returncode != 0 and not Path(tmp_path / "again").exists()
    installation.configure(**tls)
    assert installation.run("cluster", "stop").returncode == 0
