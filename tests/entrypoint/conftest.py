"""Daemons in folders of their own, on a free port; whatever a test leaves running is ended."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.entrypoint.pid_file import PidFile
from engine.errors import ResourceError
from engine.gateways.messages import MESSAGE_TYPES, RequestLeader, RequestSlotOverview
from engine.gateways.protocol import this_program
from engine.rpc.codec import MessageCodec
from engine.rpc.credentials import Credentials
from engine.rpc.http_server import HttpServer
from engine.rpc.http_service import HttpRpcService
from tests.ha.quorum import free_port, started_quorum

ROOT = Path(__file__).parents[2]
WAIT_S = 60.0


def until(condition, what="it", timeout_s=WAIT_S):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true"
        time.sleep(0.02)


class Installation:
    """Folders for configuration, logs and pid files, and the commands on them."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.conf, self.log, self.pid, self.tmp = (folder / name for name in ("conf", "log", "pid", "tmp"))
        for path in (self.conf, self.log, self.pid, self.tmp):
            path.mkdir()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("DREY_")} | {
            "DREY_CONF_DIR": str(self.conf),
            "DREY_LOG_DIR": str(self.log),
            "DREY_PID_DIR": str(self.pid),
            "TMPDIR": str(self.tmp),
            "USER": "tester",
        }
        self.configure()

    def configure(self, **settings: object) -> None:
        lines = {"rest.port": self.port, "taskmanager.memory.process.size": "256mb", "taskmanager.numberOfTaskSlots": 2}
        lines |= {key.replace("__", "."): value for key, value in settings.items()}
        (self.conf / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in lines.items()))

    def run(self, *words: str, command=(sys.executable, "-m", "engine.entrypoint.scripts")):
        return subprocess.run(
            [*command, *words],
            check=False,
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=250,
            stdin=subprocess.DEVNULL,
        )

    def script(self, name: str, *words: str):
        return self.run(*words, command=(str(ROOT / "bin" / name),))

    def daemon(self, name: str, *words: str) -> "subprocess.Popen[str]":
        """Run a daemon's process as a child of this one."""
        return subprocess.Popen(
            [sys.executable, "-m", f"engine.entrypoint.{name}", *words],
            env=self.environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            stdin=subprocess.DEVNULL,
        )

    def pid_file(self, daemon: str) -> Path:
        return self.pid / f"flink-tester-{daemon}.pid"

    def pids(self, daemon: str) -> list[int]:
        return [process.pid for process in PidFile(self.pid_file(daemon), daemon).read()]

    def log_text(self, daemon: str, number: int = 0) -> str:
        return (self.log / f"flink-tester-{daemon}-{number}-{socket.gethostname()}.log").read_text()

    def slots(self) -> int:
        """Slots that the leading ResourceManager knows; -1 when nobody answers."""
        return asyncio.run(self._ask_slots())

    async def _ask_slots(self) -> int:
        server = HttpServer("localhost", [0])
        server.program = this_program("test")
        rpc = HttpRpcService(server, MessageCodec(MESSAGE_TYPES), Credentials.load(self.conf / "cluster.secret"))
        try:
            leader = await rpc.connect(f"localhost:{self.port}/leader", 0).ask(RequestLeader())
            manager = rpc.connect(f"{leader.address}/resourcemanager", leader.epoch)
            return (await manager.ask(RequestSlotOverview())).total_count
        except (ConnectionError, ResourceError):
            return -1
        finally:
            await rpc.close()

    def close(self) -> None:
        for path in self.pid.glob("*.pid"):
            for process in PidFile(path, path.stem.rpartition("-")[2]).read():
                if process.identity and process.is_alive:
                    for pid in process.living_pids:  # a supervisor first
                        os.kill(pid, signal.SIGKILL)
                    until(lambda gone=process: not gone.is_alive)


@pytest.fixture
def installation(tmp_path):
    made = Installation(tmp_path)
    yield made
    made.close()


@pytest.fixture
def quorum(tmp_path):
    """One server of ZooKeeper of the test's own."""
    with started_quorum(tmp_path / "quorum", 1) as made:
        yield made
