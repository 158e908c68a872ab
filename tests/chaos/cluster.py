"""ChaosCluster: a real cluster of real processes in folders of its own, to be killed at will.

    with ChaosCluster(folder, task_managers=2) as cluster:
        job = cluster.submit(script, *arguments)     flink-run as a process of its own
        cluster.kill_task_manager(signal.SIGKILL)
        assert job.wait() == 0

Everything is started by the scripts that people use. On leaving, ``stop-cluster`` runs, and whatever of the cluster is
left then (processes, sockets, temporary files) is an AssertionError.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil

from engine.client.cluster_client import ClusterClient
from engine.rpc.credentials import Credentials
from tests.ha.quorum import free_port

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 120.0
#: in which a job ends, whatever befalls it; a test has five minutes
_JOB_S = 240.0

#: quick to notice, so that a test takes seconds; the defaults are for networks and loaded machines
QUICK = {
    "heartbeat.interval": "300 ms",
    "heartbeat.timeout": "3 s",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "20",
    "restart-strategy.fixed-delay.delay": "100 ms",
    "slot.request.timeout": "30 s",
    "taskmanager.memory.process.size": "512mb",
    "taskmanager.memory.managed.size": "32mb",
}
#: where no TaskManager is lost, and a busy machine must not make it look so
PATIENT = {"heartbeat.timeout": "50 s"}


class Job:
    """A ``flink-run job submit`` at work."""

    def __init__(self, command, environment, folder):
        self._out = folder / f"job-{time.monotonic_ns()}.out"
        self._err = self._out.with_suffix(".err")
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, env=environment, cwd=folder)

    @property
    def stdout(self):
        return self._out.read_text()

    @property
    def stderr(self):
        return self._err.read_text()

    def job_id(self):
        """Wait until the job is submitted and return its id."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            found = re.search(r"JobID ([0-9a-f]{32})", self.stdout)
            if found:
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"the job was not submitted:\n{self.stdout}\n{self.stderr}")

    def wait(self, timeout_s=_JOB_S):
        """Return the exit code."""
        return self.process.wait(timeout_s)


def is_gone(pid):
    """Whether a process has ended, collected by its parent or not; as long as a thread is left it holds its ports."""
    try:
        process = psutil.Process(pid)
        return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
    except psutil.NoSuchProcess:
        return True


class ChaosCluster:
    def __init__(self, folder, task_managers=2, slots=2, **settings):
        self.folder = Path(folder)
        self.port = free_port()
        #: what GETs show and trust, an SSLContext; None: no TLS
        self.tls = None
        self.temporary = self.folder / "tmp"
        for name in ("conf", "log", "pid", "tmp"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "conf" / "workers").write_text("localhost\n" * task_managers)
        (self.folder / "conf" / "masters").write_text(f"localhost:{self.port}\n")
        self.settings = {**QUICK, "rest.port": str(self.port), "taskmanager.numberOfTaskSlots": str(slots)}
        self.settings |= {key.replace("__", "."): str(value) for key, value in settings.items()}
        # in quotes: an address of IPv6 begins as a list of YAML does
        lines = [f"{key}: {json.dumps(value)}" for key, value in self.settings.items()]
        (self.folder / "conf" / "config.yaml").write_text("\n".join([*lines, ""]))
        # Processes that listen on machines of their own make none.
        Credentials.load_or_create(self.folder / "conf" / "cluster.secret")
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("DREY_")},
            "DREY_CONF_DIR": str(self.folder / "conf"),
            "DREY_LOG_DIR": str(self.folder / "log"),
            "DREY_PID_DIR": str(self.folder / "pid"),
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(ROOT),
        }

    def __enter__(self):
        try:
            self.start()
            self.await_task_managers(self._line_count())
        except BaseException:
            self.kill_all()
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            self.script("cluster", "stop")
            deadline = time.monotonic() + WAIT_S
            while self.processes() and time.monotonic() < deadline:
                time.sleep(0.05)
            left = [process.cmdline() for process in self.processes()]
            assert not left, f"processes are left: {left}"
            if kind is None:
                assert not self.leftovers(), f"files are left: {self.leftovers()}"
        finally:
            self.kill_all()

    def _line_count(self):
        return len((self.folder / "conf" / "workers").read_text().splitlines())

    def start(self):
        """Start all processes."""
        self.script("cluster", "start")

    # ---- the scripts that people use ----

    def script(self, *words, check=True):
        """Run what a script of bin/ runs."""
        command = [sys.executable, "-m", "engine.entrypoint.scripts", *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=120, check=False)
        assert not check or done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}\n{self.log_tails()}"
        return done

    def submit(self, script, *arguments, options=(), folder=None):
        """Start ``flink-run job submit``, in a folder, and return it at work."""
        command = [sys.executable, "-m", "engine.cli.main", "job", "submit", "-t", "cluster", *options, str(script)]
        return Job([*command, *map(str, arguments)], self.environment, folder or self.folder)

    def run(self, *words):
        """Run ``flink-run`` to its end."""
        command = [sys.executable, "-m", "engine.cli.main", *words]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=120, check=False, cwd=self.folder
        )

    # ---- what an operator sees ----

    def client(self):
        """Return a client that has the cluster's secret; to be closed."""
        return ClusterClient(f"localhost:{self.port}", Credentials.load(self.folder / "conf" / "cluster.secret"))

    def get(self, path):
        """Return the JSON of a GET."""
        scheme = "http" if self.tls is None else "https"
        with urllib.request.urlopen(f"{scheme}://localhost:{self.port}{path}", timeout=20, context=self.tls) as answer:
            return json.load(answer)

    def await_task_managers(self, count):
        """Wait until so many TaskManagers are registered."""
        self.wait_until(lambda: self.get("/overview")["taskmanagers"] == count, f"{count} TaskManagers")

    def await_state(self, job_id, *states):
        """Wait until the job is in one of these states; return it."""
        return self.wait_until(
            lambda: next((state for state in states if self.get(f"/jobs/{job_id}")["state"] == state), None),
            f"job in {states}",
        )

    def wait_until(self, condition, what, seconds=WAIT_S):
        deadline = time.monotonic() + seconds
        error = None
        while time.monotonic() < deadline:
            try:
                found = condition()
            except OSError as failure:
                error = failure
            else:
                if found:
                    return found
            time.sleep(0.03)
        raise AssertionError(f"not in {seconds} s: {what} ({error})\n{self.log_tails()}")

    def log_tails(self, lines=15):
        tails = []
        for path in sorted((self.folder / "log").glob("*.log")):
            tails += [f"--- {path.name}", *path.read_text(errors="replace").splitlines()[-lines:]]
        return "\n".join(tails)

    # ---- processes ----

    def pids(self, daemon):
        """Return the pids of a daemon, oldest first."""
        files = list((self.folder / "pid").glob(f"flink-*-{daemon}.pid"))
        return [int(line) for file in files for line in file.read_text().split()]

    def processes(self):
        """Return every process of this cluster that is there: daemons and Python workers."""
        own = str(self.folder / "conf")
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("DREY_CONF_DIR") == own and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def kill(self, pid, number=signal.SIGKILL):
        os.kill(pid, number)
        if number == signal.SIGKILL:
            self.wait_until(lambda: is_gone(pid), "its end")

    def add_task_manager(self):
        """Start one more TaskManager."""
        self.script("taskmanager", "start")

    def kill_all(self):
        for process in self.processes():
            try:
                process.kill()
            except psutil.Error:
                continue

    def leftovers(self):
        """Return temporary files that belong to nobody any more."""
        return sorted(str(path.relative_to(self.temporary)) for path in self.temporary.rglob("*") if path.is_file())
