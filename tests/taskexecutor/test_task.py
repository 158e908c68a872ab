"""What a task reports of how it ended, whatever comes together."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from engine.errors import CorruptBlockError, PartitionReleasedError, ProducerFailedError, TaskCancelledError
from engine.graph.deployment import TaskCounters, TaskDeploymentDescriptor
from engine.ids import AllocationId, ExecutionAttemptId, JobId, JobVertexId, ResourceId
from engine.taskexecutor import task_executor
from engine.taskexecutor.task import Task
from engine.taskexecutor.task_rows import TaskRow
from engine.taskexecutor.task_threads import TaskThreads


class CancelledWhile:
    """An invokable that is cancelled and then ends with an error."""

    def __init__(self, error):
        self.error = error
        self.task = None

    def made(self):
        return self

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


def run_task(invokable, on_ended=lambda task: None):
    """Run a task to its end; return its reports."""
    reports = []
    made = [invokable]
    del invokable

    async def run():
        attempt = ExecutionAttemptId.create(JobVertexId(0), 0, 0)
        descriptor = TaskDeploymentDescriptor(
            JobId.random(), "job", attempt, AllocationId.random(), "v", 0, 1, 128, (), (), (), (), (), (), {}
        )
        task = Task(
            descriptor,
            "jobmaster",
            ResourceId.random(),
            lambda _: made.pop().made(),
            lambda _, report: reports.append(report),
            threads,
        )
        made[0].task = task
        row = TaskRow(asyncio.get_running_loop())
        task.start(row)
        row.begin()
        await asyncio.wait_for(task.ended.wait(), 60)
        on_ended(task)
        task.join()

    threads = TaskThreads()
    asyncio.run(run())
    threads.close()
    return reports


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (ValueError("the cause"), "FAILED"),
        (TaskCancelledError("told to"), "CANCELED"),
        (PartitionReleasedError("its own results, by its end"), "CANCELED"),
        (ProducerFailedError("another one, whose report says why"), "CANCELED"),
    ],
)
def test_a_failure_is_reported_also_when_the_task_is_cancelled_meanwhile(error, state):
    reports = run_task(CancelledWhile(error))
    assert [report.state for report in reports] == ["RUNNING", state]
    assert (reports[-1].failure is not None and reports[-1].failure.message == "the cause") == (state == "FAILED")


class Finishes(CancelledWhile):
    """An invokable that ends well."""

    def run(self):
        pass

    def counters(self):
        return TaskCounters(rows_in=7)

    def partition_samples(self):
        return ()


def test_a_task_that_has_ended_keeps_its_counters_and_not_what_it_ran():
    found = []

    def look(task):
        found.append((alive(), task.counters().rows_in))
        task.cancel()

    invokable = Finishes(None)
    alive = weakref.ref(invokable)
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        holder = [invokable]
        del invokable
        run_task(holder.pop(), look)
    finally:
        if is_collecting:
            gc.enable()
    assert found == [(None, 7)]


def test_a_task_for_which_the_machine_has_no_thread_has_failed(monkeypatch):
    def refused(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    (report,) = run_task(Finishes(None))
    assert (report.state, report.failure.type_name) == ("FAILED", "MachineLimitError")
    assert report.failure.retryable and "ulimit -u" in report.failure.message


class DamagedSamples(Finishes):
    """An invokable whose result cannot be read again."""

    def partition_samples(self):
        raise CorruptBlockError("block 7 cannot be used")


def test_a_result_whose_samples_cannot_be_read_is_a_failure_of_its_task():
    reports = run_task(DamagedSamples(None))
    assert [report.state for report in reports] == ["RUNNING", "FAILED"]
    assert reports[-1].failure.message == "block 7 cannot be used"


def test_memory_is_given_back_behind_a_job_unless_the_process_ends(monkeypatch):
    monkeypatch.setattr(task_executor, "_IDLE_S", 0)
    given = []
    monkeypatch.setattr(task_executor.FREED_MEMORY, "give_back", lambda: given.append(True))
    with ThreadPoolExecutor(1) as executor:
        resources = SimpleNamespace(release_partition=given.append)
        process = SimpleNamespace(_tasks={}, _blocking_work=executor, _resources=resources)
        asyncio.run(task_executor.TaskExecutor._give_back_when_idle(process))
        assert given == [True]
    # the interpreter has shut its executors down
    asyncio.run(task_executor.TaskExecutor._give_back_when_idle(process))
    asyncio.run(task_executor.TaskExecutor._drop_partitions(process, ["of a job that has ended"]))
    assert given == [True]


def test_results_of_one_message_are_dropped_by_one_piece_of_work(monkeypatch):
    done = []
    monkeypatch.setattr(task_executor.FREED_MEMORY, "give_back", lambda: done.append("memory"))
    with ThreadPoolExecutor(1) as executor:
        submit = executor.submit
        executor.submit = lambda *call: done.append("work") or submit(*call)
        process = SimpleNamespace(_blocking_work=executor, _resources=SimpleNamespace(release_partition=done.append))
        asyncio.run(task_executor.TaskExecutor._drop_partitions(process, ["one", "other"]))
    assert done == ["work", "one", "other", "memory"]


def test_an_error_in_what_is_dropped_is_told():
    def fail(partition):
        raise RuntimeError(f"{partition} cannot be removed")

    with ThreadPoolExecutor(1) as executor:
        process = SimpleNamespace(_blocking_work=executor, _resources=SimpleNamespace(release_partition=fail))
        with pytest.raises(RuntimeError, match="files cannot be removed"):
            asyncio.run(task_executor.TaskExecutor._drop_partitions(process, ["files"]))
