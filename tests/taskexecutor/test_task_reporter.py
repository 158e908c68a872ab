"""Reports of tasks come in order, and those that no one waits for come together."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from engine.graph.deployment import TaskReport
from engine.graph.ship_strategy import PartitionerSpec, ResultPartitionType
from engine.ids import ExecutionAttemptId, JobId, JobVertexId
from engine.rpc.request import ACKNOWLEDGE
from engine.taskexecutor import task_reporter
from engine.taskexecutor.task_reporter import TaskReporter

JOB = JobId("a" * 32)


class Told:
    """A JobMaster that takes note of the states in each message."""

    def __init__(self):
        self.messages = []

    def note(self, reports):
        pass

    async def ask(self, request):
        self.messages.append([report.state for report in request.reports])
        self.note(request.reports)
        return ACKNOWLEDGE


def task_with(kind, result_type):
    result = SimpleNamespace(result_type=result_type, partitioner=PartitionerSpec(kind))
    descriptor = SimpleNamespace(job_id=JOB, partitions=(result,))
    return SimpleNamespace(descriptor=descriptor, job_master_address="jobmaster")


def reported(task, *steps):
    """Return the messages that follow from states; numbers are seconds between them."""
    told, attempt = Told(), ExecutionAttemptId.create(JobVertexId(0), 0, 0)

    async def body():
        reporter = TaskReporter(lambda _: told, lambda _: True, lambda work, name: asyncio.ensure_future(work))
        for step in steps:
            if isinstance(step, str):
                reporter.report(task, TaskReport(attempt, step))
            else:
                await asyncio.sleep(step)
        while not reporter.is_idle:
            await asyncio.sleep(0.001)

    asyncio.run(body())
    return told.messages


def test_a_short_task_is_one_message(monkeypatch):
    monkeypatch.setattr(task_reporter, "BEGUN_S", 60.0)
    task = task_with("HASH", ResultPartitionType.BLOCKING)
    assert reported(task, "INITIALIZING", "RUNNING", 0.01, "FINISHED") == [["INITIALIZING", "RUNNING", "FINISHED"]]


def test_a_task_that_has_begun_is_reported_after_a_moment(monkeypatch):
    monkeypatch.setattr(task_reporter, "BEGUN_S", 0.001)
    task = task_with("HASH", ResultPartitionType.BLOCKING)
    assert reported(task, "INITIALIZING", "RUNNING", 0.1, "FINISHED") == [["INITIALIZING", "RUNNING"], ["FINISHED"]]


def test_a_report_that_was_kept_says_for_how_long(monkeypatch):
    monkeypatch.setattr(task_reporter, "BEGUN_S", 60.0)
    ages = []
    monkeypatch.setattr(Told, "note", lambda told, reports: ages.extend(each.age_ms for each in reports), raising=False)
    reported(task_with("HASH", ResultPartitionType.BLOCKING), "RUNNING", 0.05, "FINISHED")
    assert ages[0] >= 40
    assert ages[1] < ages[0]


@pytest.mark.parametrize(
    ("kind", "result_type", "is_at_once"),
    [
        ("HASH", ResultPartitionType.PIPELINED, True),
        ("BROADCAST", ResultPartitionType.PIPELINED, True),
        ("FORWARD", ResultPartitionType.PIPELINED, False),
        ("HASH", ResultPartitionType.BLOCKING, False),
    ],
)
def test_a_task_that_sends_rows_to_others_is_reported_at_once(monkeypatch, kind, result_type, is_at_once):
    monkeypatch.setattr(task_reporter, "BEGUN_S", 60.0)
    messages = reported(task_with(kind, result_type), "RUNNING", 0.01, "FINISHED")
    assert messages == ([["RUNNING"], ["FINISHED"]] if is_at_once else [["RUNNING", "FINISHED"]])


def test_more_reports_than_a_message_takes_wait_for_nothing(monkeypatch):
    monkeypatch.setattr(task_reporter, "BEGUN_S", 60.0)
    monkeypatch.setattr(task_reporter, "REPORTS_MAX", 2)
    task = task_with("HASH", ResultPartitionType.BLOCKING)
    states = ["RUNNING", "FINISHED", "RUNNING"]
    assert reported(task, *states) == [["RUNNING", "FINISHED"], ["RUNNING"]]
