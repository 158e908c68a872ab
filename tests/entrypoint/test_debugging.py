"""Breakpoints: in one process for all parts of a cluster, and in client, JobManager and TaskManager as processes."""

import bdb
import inspect
import re
import subprocess
import sys
import threading

import pyarrow as pa
import pytest

from engine import Environment
from engine.dispatcher.dispatcher import Dispatcher
from engine.jobmaster.job_master import JobMaster
from engine.operators.batch_task import BatchTask
from engine.optimizer.optimizer import optimize
from engine.taskexecutor.task_executor import TaskExecutor
from tests.entrypoint.conftest import ROOT, WAIT_S, until

JOB = """
import pyarrow as pa
from drey import Environment

with Environment() as env:
    print("counted", env.from_rows([(1,), (2,)], pa.schema([("n", pa.int64())])).count())
"""
#: a breakpoint in each of the three
PLACES = {"client": optimize, "jobmanager": Dispatcher.submit_job, "taskmanager": TaskExecutor.submit_tasks}


def place_of(function):
    """File and number of the first line that a function runs, as a debugger is told it."""
    lines, first = inspect.getsourcelines(function)
    body = next(at for at, line in enumerate(lines) if line.rstrip().endswith('"""'))
    return inspect.getsourcefile(function), first + body + 1


class Stops(bdb.Bdb):
    """Notes where it stops, in whichever thread, and goes on."""

    def __init__(self):
        super().__init__()
        self.reset()
        self.functions = set()

    def user_line(self, frame):
        if self.break_here(frame):
            self.functions.add(frame.f_code.co_qualname)
        self.set_continue()


@pytest.mark.integration
@pytest.mark.quick
def test_a_debugger_stops_in_all_parts_of_a_cluster_in_one_process():
    functions = [*PLACES.values(), JobMaster.start, BatchTask.run]
    debugger = Stops()
    for function in functions:
        assert debugger.set_break(*place_of(function)) is None
    former = sys.gettrace(), threading.gettrace()
    threading.settrace(debugger.trace_dispatch)
    sys.settrace(debugger.trace_dispatch)
    try:
        # a cluster of its own: threads that are there already are not traced
        with Environment(config={"parallelism.default": 1, "client.timeout": "61 s"}) as env:
            assert env.from_rows([(1,), (2,)], pa.schema([("n", pa.int64())])).count() == 2
    finally:
        sys.settrace(former[0])
        threading.settrace(former[1])
        debugger.clear_all_breaks()
    assert debugger.functions == {function.__qualname__ for function in functions}


class Debugged:
    """A process under pdb with one breakpoint, and what it has said."""

    def __init__(self, part, installation, *words):
        file, line = place_of(PLACES[part])
        commands = ("-c", f"b {file}:{line}", "-c", "c")
        self.log = installation.log / f"{part}.pdb"
        with self.log.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pdb", *commands, "-m", *words],
                env=installation.environment,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def wait_for(self, pattern):
        until(lambda: re.search(pattern, self.log.read_text()), f"{pattern} in {self.log.read_text()}")

    def go_on(self, function):
        self.wait_for(rf"> \S+\(\d+\){function}\(\)")
        self.process.stdin.write("c\n")
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait(WAIT_S)


@pytest.mark.processes
@pytest.mark.timeout(240)
def test_each_process_runs_under_pdb(installation, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    submit = ("job", "submit", "-t", "cluster", "-m", f"127.0.0.1:{installation.port}", str(tmp_path / "job.py"))
    running = []
    try:
        for part in ("jobmanager", "taskmanager"):
            running.append(Debugged(part, installation, f"engine.entrypoint.{part}", "-D", "heartbeat.timeout=1 h"))
            running[-1].wait_for({"jobmanager": "leads at", "taskmanager": "registered at"}[part])
        running.append(Debugged("client", installation, "engine.cli.main", *submit))
        for part, function in ((2, "optimize"), (0, "submit_job"), (1, "submit_tasks")):
            running[part].go_on(function)
        running[2].wait_for("counted 2")
    finally:
        for each in running:
            each.end()
