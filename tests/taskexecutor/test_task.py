"""What a task reports of how it ended, whatever comes together."""

from __future__ import annotations

import asyncio

import pytest

from engine.errors import TaskCancelledError
from engine.graph.deployment import TaskCounters, TaskDeploymentDescriptor
from engine.ids import AllocationId, ExecutionAttemptId, JobId, JobVertexId, ResourceId
from engine.taskexecutor.task import Task


class CancelledWhile:
    """An invokable that is cancelled and then ends with an error."""

    def __init__(self, error):
        self.error = error
        self.task = None

    def run(self):
        self.task.cancel()
        raise self.error

    def cancel(self):
        pass

    def counters(self):
        return TaskCounters()

    def staged_files(self):
        return ()

    def partition_rows(self):
        return ()

    partition_bytes = partition_rows
    subpartition_bytes = partition_rows


@pytest.mark.parametrize(
    ("error", "state"), [(ValueError("the cause"), "FAILED"), (TaskCancelledError("told to"), "CANCELED")]
)
def test_a_failure_is_reported_also_when_the_task_is_cancelled_meanwhile(error, state):
    reports = []

    async def run():
        attempt = ExecutionAttemptId.create(JobVertexId(0), 0, 0)
        descriptor = TaskDeploymentDescriptor(
            JobId.random(), "job", attempt, AllocationId.random(), "v", 0, 1, 128, (), (), (), (), (), 0, {}
        )
        invokable = CancelledWhile(error)
        task = Task(
            descriptor,
            "jobmaster",
            ResourceId.random(),
            lambda *_: invokable,
            lambda _, report: reports.append(report),
            lambda *_: None,
        )
        invokable.task = task
        task.start()
        await asyncio.wait_for(task.ended.wait(), 60)
        task.join()

    asyncio.run(run())
    assert [report.state for report in reports] == ["INITIALIZING", "RUNNING", state]
    assert (reports[-1].failure is not None and reports[-1].failure.message == "the cause") == (state == "FAILED")
