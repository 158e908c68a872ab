"""A real quorum for tests: its folders, its servers, and why it cannot be had."""

import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WAIT_S = 60.0
_PORTS = range(20_000, 32_000, 10)
#: each process of a run has tens of its own; runs at the same time begin at different places
_PROCESS = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_OWN = _PORTS[_PROCESS :: int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))]
_FIRST_TEN = os.getppid() * 37 % len(_OWN)
_TENS = itertools.cycle([*_OWN[_FIRST_TEN:], *_OWN[:_FIRST_TEN]])

needs_quorum = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None or not (os.environ.get("JAVA_HOME") or shutil.which("java")),
    reason="ZooKeeper needs Java and PySpark's jars",
)


def until(condition, what="it", timeout_s=WAIT_S):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true"
        time.sleep(0.01)


def free_ports(count):
    """Return the first of so many free ports in a row, ten at most, none of which was returned before.

    They lie below those that the system gives to connections: until a server listens there, nobody else comes upon one.
    """
    for first in itertools.islice(_TENS, len(_OWN)):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise AssertionError("no free ports")


def free_port():
    """Return a port of which ``free_ports`` says what it is."""
    return free_ports(1)


class Quorum:
    """Servers on this machine, in a folder."""

    def __init__(self, folder, servers, session_s=2):
        self.servers = range(1, servers + 1)
        #: what every command begins with
        self.prefix = []
        self.port = free_ports(3 * servers)
        self.folder = folder
        for name in ("conf", "log", "pid"):
            (folder / name).mkdir()
        first = self.port + servers
        lines = [f"server.{n}=localhost:{first + 2 * n - 2}:{first + 2 * n - 1}\n" for n in self.servers]
        (folder / "conf" / "zoo.cfg").write_text(
            f"dataDir={folder}/data\nclientPort={self.port}\ntickTime=200\nsyncLimit={5 * session_s // 2}\n"
            f"maxSessionTimeout=60000\n{''.join(lines)}"
        )
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("DREY_")} | {
            "DREY_CONF_DIR": str(folder / "conf"),
            "DREY_LOG_DIR": str(folder / "log"),
            "DREY_PID_DIR": str(folder / "pid"),
            "DREY_HIGH_AVAILABILITY_ZOOKEEPER_CLIENT_SESSION_TIMEOUT": f"{session_s} s",
            "USER": "tester",
        }
        self.hosts = ",".join(f"127.0.0.1:{self.port + n}" for n in range(servers))

    def run(self, *words):
        return subprocess.run(
            [*self.prefix, sys.executable, "-m", "engine.entrypoint.scripts", *words],
            check=False,
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=250,
            stdin=subprocess.DEVNULL,
        )

    def start(self):
        done = self.run("quorum", "start")
        if done.returncode:  # on a busy machine servers take longer than their script waits
            until(lambda: all(self.mode(number) for number in self.servers), done.stdout + done.stderr)
        return done.stdout

    def stop(self):
        return self.run("quorum", "stop").stdout

    def pids(self):
        path = self.folder / "pid" / "flink-tester-zookeeper.pid"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def mode(self, number):
        """Return what a server is: leader, follower, standalone; "" when it serves nobody."""
        try:
            with socket.create_connection(("127.0.0.1", self.port + number - 1), 10) as connection:
                connection.sendall(b"srvr")
                answer = connection.makefile().read()
        except OSError:
            return ""
        return answer.partition("Mode: ")[2].partition("\n")[0]

    def kill(self, number):
        """Kill a server; return when it is gone."""
        pid = self.pid_of(number)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not self.mode(number), "the server's end")

    def pid_of(self, number):
        """Return the process of a server."""
        mine = f"{self.folder}/data/{number}/zoo.cfg"
        return next(pid for pid in self.pids() if mine in Path(f"/proc/{pid}/cmdline").read_text())


@contextmanager
def started_quorum(folder: Path, servers: int, session_s: int = 2) -> Iterator[Quorum]:
    """Start servers in a new folder, for sessions that last so long, and stop them."""
    folder.mkdir()
    made = Quorum(folder, servers, session_s)
    try:
        made.start()
        yield made
    finally:
        made.stop()
