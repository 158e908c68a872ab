"""A server of Flight SQL in this process, and in processes of their own."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from engine import Environment
from engine.flight_sql.service import FlightSqlService

ROWS = 100_000


@pytest.fixture
def env():
    with Environment(config={"parallelism.default": 2}) as environment:
        numbers = environment.from_arrow(pa.table({"n": pa.array(range(ROWS), pa.int64())}))
        environment.register("numbers", numbers)
        environment.register("slow", environment.from_arrow(pa.table({"n": range(ROWS)}), rate_limit=200.0))
        yield environment


@pytest.fixture
def service(env):
    with FlightSqlService(env, "127.0.0.1", 0, is_open=True) as running:
        yield running


@pytest.fixture
def conf(tmp_path, monkeypatch):
    """Have an empty configuration; return its folder."""
    folder = tmp_path / "serve-conf"
    folder.mkdir()
    (folder / "config.yaml").write_text("")
    monkeypatch.setenv("DREY_CONF_DIR", str(folder))
    return folder


@pytest.fixture
def serve(conf):
    """Start servers as processes; yield the function that starts one and returns it with its address."""
    with contextlib.ExitStack() as stack:

        def started(*words):
            server = subprocess.Popen(
                [sys.executable, "-m", "engine.cli.main", "serve", "--flight-sql", "0", *map(str, words)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, "DREY_CONF_DIR": str(conf), "DREY_LOG_DIR": str(conf / "log")},
                text=True, start_new_session=True,
            )  # fmt: skip
            stack.callback(ended, server)
            readable, _, _ = select.select([server.stdout], [], [], 60)
            line = server.stdout.readline() if readable else ""
            assert line.startswith("Flight SQL at "), line + (server.stderr.read() if server.poll() is not None else "")
            return server, line.split()[3]

        yield started


def idle(service):
    """Whether all statements of a service end, soon."""
    return until(lambda: (service.running.admission.running, len(service.running._all())) == (0, 0))


def until(condition):
    """Whether a condition comes true."""
    for _ in range(4000):
        if condition():
            return True
        time.sleep(0.005)
    return False


def ended(server):
    if server.poll() is None:
        server.send_signal(signal.SIGTERM)
    try:
        server.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        server.kill()
        server.communicate()
        raise
