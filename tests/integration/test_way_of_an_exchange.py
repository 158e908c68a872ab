"""From a producer to its two consumers, one in its own process and one in another: who tells whom what, in which order.

    M1 ─ 1 produces ─► result ─ 2 finished, with its sizes ─► JobMaster ─ 3 deploys ─► R1, R2
    R1, R2 ─ 4 ask for their subpartition ─► result ─ 5a handed over in the process, 5b sent to the other process

Source: the exchange of Flink's runtime; that a result can be read is told by 2 (docs/pages/decisions, 11).
"""

import json
import subprocess
import sys

import pytest

from tests.entrypoint.conftest import ROOT, installation, until  # noqa: F401 - a fixture

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]

#: runs a daemon, and notes what its parts do
NOTING = """
import importlib, json, os, sys, time

file = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def noted(module, kind, method, facts):
    owner = getattr(importlib.import_module(module), kind)
    original = getattr(owner, method)

    def noting(*arguments, **named):
        for told in facts(*arguments):
            line = {"at": time.monotonic_ns(), "process": os.getpid(), **told}
            os.write(file, json.dumps(line, default=str).encode() + b"\\n")
        return original(*arguments, **named)

    setattr(owner, method, noting)

def finished(self, request):
    for report in request.reports:
        if report.state == "FINISHED":
            yield {"event": "finished", "task": report.attempt, "sizes": report.partition_bytes}

def asks(self, now_ms):
    if self.is_reading or self.is_consumed:
        return []
    where = type(self).__name__.removesuffix("InputChannel").lower()
    wanted = self.descriptor
    return [{"event": f"asks {where}", "result": wanted.partition, "subpartition": wanted.subpartition_index}]

def deployed(self, request):
    for task in request.descriptors:
        read = [channel.partition for gate in task.gates for channel in gate.channels]
        yield {"event": "deployed", "task": task.attempt, "index": task.subtask_index, "reads": read}

def served(self, request, ready, number):
    return [{"event": "sends", "result": request.partition, "subpartition": request.subpartition_index}]

noted("engine.exchange.partition_manager", "ResultPartitionManager", "register",
      lambda self, partition: [{"event": "produces", "result": partition.id, "task": partition.id.producer}])
noted("engine.jobmaster.job_master", "JobMaster", "update_task_states", finished)
noted("engine.taskexecutor.task_executor", "TaskExecutor", "submit_tasks", deployed)
noted("engine.exchange.local_input_channel", "LocalInputChannel", "request", asks)
noted("engine.transport.remote_input_channel", "RemoteInputChannel", "request", asks)
noted("engine.transport.data_server", "PartitionSource", "_view_of", served)
sys.exit(importlib.import_module(f"engine.entrypoint.{sys.argv[1]}").main(["-D", "taskmanager.numberOfTaskSlots=1"]))
"""
JOB = """
import pyarrow as pa
from drey import Environment, count

rows = pa.table({"k": [number % 50 for number in range(1000)]})
with Environment(config={"parallelism.default": 2}) as env:
    groups = env.from_arrow(rows).set_parallelism(1).rebalance().group_by("k").agg(n=count())
    print("groups", groups.count())
"""


@pytest.fixture
def events(installation, tmp_path):  # noqa: F811
    """What the parts of a cluster of two TaskManagers did while a job ran, in order."""
    (tmp_path / "noting.py").write_text(NOTING)
    (tmp_path / "job.py").write_text(JOB)
    notes = tmp_path / "notes"
    running = []
    try:
        for part in ("jobmanager", "taskmanager", "taskmanager"):
            words = [sys.executable, str(tmp_path / "noting.py"), part, str(notes)]
            running.append(subprocess.Popen(words, env=installation.environment | {"PYTHONPATH": str(ROOT)}, cwd=ROOT))
            until((installation.conf / "cluster.secret").exists, "a secret")
        until(lambda: installation.slots() == 2, "two slots")
        command = (sys.executable, "-m", "engine.cli.main")
        done = installation.run("job", "submit", "-t", "cluster", str(tmp_path / "job.py"), command=command)
        assert "groups 50" in done.stdout, done.stderr
    finally:
        for each in running:
            each.terminate()
            each.wait(60)
    return sorted(map(json.loads, notes.read_text().splitlines()), key=lambda each: each["at"])


def test_the_messages_of_an_exchange(events):
    (produced,) = [each for each in events if each["event"] == "produces" and each["task"].startswith("v0-")]
    result, here = produced["result"], produced["process"]
    (finished,) = [each for each in events if each["event"] == "finished" and each["task"] == produced["task"]]
    deployed = [each for each in events if each["event"] == "deployed" and result in each["reads"]]
    assert finished["process"] not in {each["process"] for each in deployed}, "the JobMaster is another process"
    assert [size > 0 for size in finished["sizes"]] == [True]
    assert sorted(each["index"] for each in deployed) == [0, 1]
    assert len({each["process"] for each in deployed} | {here}) == 2, "one consumer is where the result is"
    assert produced["at"] < finished["at"] < min(each["at"] for each in deployed)

    exchanged = [each for each in events if each.get("result") == result and each is not produced]
    for consumer in deployed:
        way = [each for each in exchanged if each["subpartition"] == consumer["index"]]
        assert consumer["at"] < way[0]["at"]
        is_here = consumer["process"] == here
        steps = [("asks local", here)] if is_here else [("asks remote", consumer["process"]), ("sends", here)]
        assert [(each["event"], each["process"]) for each in way] == steps
