"""Task: one attempt in one thread.

    start ─► thread: INITIALIZING ─ factory(descriptor, services) ─► RUNNING ─ invokable.run() ─► FINISHED
                                                                 └─ raises ─► FAILED, or CANCELED: TaskCancelledError

State changes are reported through ``loop.call_soon_threadsafe``, so that ``on_report`` runs on the loop, in order. That
it is INITIALIZING is not: it is so until the thread has made its invokable, and RUNNING says that it has.
``cancel`` may come at any time from the loop: before the thread began, it does not begin. The thread is a daemon: one
that never ends must not keep the process alive.

Source: Flink's Task, which is a Runnable with one thread.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Protocol

from engine.errors import JobExecutionError, PartitionReleasedError, ProducerFailedError, TaskCancelledError
from engine.fault_points import reach
from engine.gateways.failure_info import failure_info
from engine.gateways.insight import TaskActivity
from engine.graph.deployment import (
    FailureInfo,
    RangeSamples,
    StagedFile,
    TaskCounters,
    TaskDeploymentDescriptor,
    TaskReport,
)
from engine.graph.task_wait import TaskWait
from engine.ids import ResourceId
from engine.memory.heap import FROZEN_HEAP
from engine.storage.store_client import in_job
from engine.task_log import task_log
from engine.taskexecutor.task_notes import notable
from engine.taskexecutor.task_rows import TaskRow
from engine.taskexecutor.task_state import TASK_STATES, TASK_TRANSITIONS, TaskState, check_task_transition
from engine.taskexecutor.task_threads import TaskThreads
from engine.taskexecutor.task_turns import TASK_TURNS

_log = logging.getLogger(__name__)


class Invokable(Protocol):
    """The work of a task: ``engine.operators.batch_task.BatchTask``."""

    def run(self) -> None:
        """Run to the end; raises what went wrong."""
        ...

    def cancel(self) -> None:
        """Make ``run`` end soon; from another thread."""
        ...

    def counters(self) -> TaskCounters:
        """Return the counters so far; from any thread."""
        ...

    def activity(self) -> TaskActivity:
        """Return the current activity; from any thread."""
        ...

    def wait(self) -> TaskWait | None:
        """Return the current wait, None while it works; from any thread."""
        ...

    def staged_files(self) -> tuple[StagedFile, ...]:
        """Return the finished files of sinks."""
        ...

    def partition_rows(self) -> tuple[int, ...]:
        """Return rows for each produced partition."""
        ...

    def partition_bytes(self) -> tuple[int, ...]:
        """Return bytes for each produced partition."""
        ...

    def partition_samples(self) -> tuple[RangeSamples, ...]:
        """Return keys of each sorted partition."""
        ...

    def subpartition_bytes(self) -> tuple[bytes, ...]:
        """Return bytes for each subpartition of each BLOCKING partition, () for others."""
        ...


#: errors that a cancelled task meets: its own, of its own results, and of results of others that end with it
_OF_CANCELLATION = (TaskCancelledError, PartitionReleasedError, ProducerFailedError)
#: factory of the invokable, called in the task's thread
InvokableFactory = Callable[[TaskDeploymentDescriptor], Invokable]


class Task:
    """One attempt. Everything but the thread's own part is used on the loop only."""

    def __init__(
        self,
        descriptor: TaskDeploymentDescriptor,
        job_master_address: str,
        resource_id: ResourceId,
        factory: InvokableFactory,
        on_report: Callable[[Task, TaskReport], None],
        threads: TaskThreads,
    ) -> None:
        self.descriptor = descriptor
        self.job_master_address = job_master_address
        self.state = TaskState.DEPLOYING
        #: event of the loop: the thread has ended
        self.ended = asyncio.Event()
        self._resource_id = resource_id
        self._factory = factory
        self._on_report = on_report
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        #: invokable of the attempt, until its last report; guarded by: self._lock
        self._invokable: Invokable | None = None
        self._last_counters: TaskCounters | None = TaskCounters()  # guarded by: self._lock
        self._is_cancelled = False  # guarded by: self._lock
        self._is_given_up = False
        self._has_told_of_counters = False  # once is enough; which thread does, does not matter
        self._thread = threads.thread(self._run, self.name)
        self._row: TaskRow

    @property
    def name(self) -> str:
        """Name for people: ``join (1/4)``."""
        descriptor = self.descriptor
        return f"{descriptor.vertex_name} ({descriptor.subtask_index + 1}/{descriptor.parallelism})"

    def start(self, row: TaskRow) -> None:
        """Start the thread in its turn in a row; where the machine gives none, the attempt has failed.

        INITIALIZING is not reported: it lasts until the thread has made its invokable.
        """
        self._enter(TaskState.INITIALIZING)
        self._row = row
        self._thread.start_in(row, self._refused)

    def _refused(self, error: RuntimeError) -> None:
        self._is_given_up = True
        failed = TaskReport(self.descriptor.attempt, TaskState.FAILED.value, failure=self._failure(error))
        self._loop.call_soon_threadsafe(self._reported, failed, True)

    def cancel(self) -> None:
        """Cancel the attempt; returns at once."""
        with self._lock:
            if self._is_cancelled:
                return
            self._is_cancelled = True
            invokable = self._invokable
        if invokable is not None:
            invokable.cancel()

    def counters(self) -> TaskCounters | None:
        """Return the counters of the attempt so far, None where they cannot be read."""
        with self._lock:
            invokable, last = self._invokable, self._last_counters
        return last if invokable is None else self._counters_of(invokable)

    def activity(self) -> TaskActivity:
        """Return the current activity of the attempt."""
        with self._lock:
            invokable = self._invokable
        return TaskActivity.BUSY if invokable is None else invokable.activity()

    def wait(self) -> TaskWait | None:
        """Return the current wait of the attempt, None while it works."""
        with self._lock:
            invokable = self._invokable
        try:
            return None if invokable is None else invokable.wait()
        except Exception:  # it is being opened or closed: at work
            _log.debug("what %s waits for cannot be told", self.name, exc_info=True)
            return None

    def join(self) -> None:
        """Wait until the thread is free once ``ended`` is set, which takes no time; not for one that was given up."""
        if not self._is_given_up:
            self._thread.join()

    def give_up(self, timeout_s: float) -> None:
        """Report as failed a task whose thread does not end; the thread is left alone."""
        self._is_given_up = True
        frame = sys._current_frames().get(self._thread.ident or -1)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
        _log.error("%s did not end within %g s of its cancellation; it is here:\n%s", self.name, timeout_s, stack)
        error = JobExecutionError(f"{self.name} did not end within {timeout_s:g} s of its cancellation", details=stack)
        self._reported(
            TaskReport(self.descriptor.attempt, TaskState.FAILED.value, failure=self._failure(error)), is_last=True
        )

    # ---- the task's thread ----

    def _run(self) -> None:
        job_id = self.descriptor.job_id
        with task_log(job_id, self.descriptor.attempt, self.name), in_job(str(job_id)):
            self._run_attempt()

    def _run_attempt(self) -> None:
        try:
            self._invoke()
            # In here: samples of a stored result may have to be read from its file, which may be damaged.
            finished = self._report_of(TaskState.FINISHED)
        except BaseException as error:  # the root of a thread: whatever it is, it is reported
            self._ended_by(error)
        else:
            self._send_last(finished)

    def _invoke(self) -> None:
        invokable = self._factory(self.descriptor)
        with self._lock:
            self._invokable = invokable
            is_cancelled = self._is_cancelled
        if is_cancelled:
            invokable.cancel()
        self._report(TaskState.RUNNING)
        reach("task.running")
        with FROZEN_HEAP, TASK_TURNS:
            invokable.run()
        reach("task.finishing")

    def _ended_by(self, error: BaseException) -> None:
        with self._lock:
            is_cancelled = self._is_cancelled
        # Whatever else it is was there before the cancellation, and may be why the job is being cancelled.
        if is_cancelled and isinstance(error, _OF_CANCELLATION):
            self._send_last(self._report_of(TaskState.CANCELED))
        else:
            _log.info("%s failed", self.name, exc_info=error)
            self._send_last(self._report_of(TaskState.FAILED, self._failure(error)))

    def _failure(self, error: BaseException) -> FailureInfo:
        return failure_info(error, self.name, str(self._resource_id))

    def _report(self, state: TaskState) -> None:
        self._call_loop(self._reported, self._report_of(state), False)

    def _send_last(self, report: TaskReport) -> None:
        notes = notable(report.counters)
        if notes:
            _log.info("%s: %s", self.name, notes)
        # Results that live on know this task, and must not keep what made them; the loop may look for the memory.
        with self._lock:
            self._last_counters = report.counters
            self._invokable = None
        self._call_loop(self._reported, report, True)

    def _report_of(self, state: TaskState, failure: FailureInfo | None = None) -> TaskReport:
        attempt, invokable = self.descriptor.attempt, self._invokable
        if invokable is None or state is TaskState.RUNNING:  # it has done nothing yet
            return TaskReport(attempt, state.value, failure=failure)
        return TaskReport(
            attempt,
            state.value,
            counters=self._counters_of(invokable) or TaskCounters(),
            failure=failure,
            staged_files=invokable.staged_files() if state is TaskState.FINISHED else (),
            partition_rows=invokable.partition_rows(),
            partition_bytes=invokable.partition_bytes(),
            subpartition_bytes=invokable.subpartition_bytes(),
            partition_samples=invokable.partition_samples() if state is TaskState.FINISHED else (),
        )

    def _counters_of(self, invokable: Invokable) -> TaskCounters | None:
        # Whatever state the invokable is in, its numbers must cost neither a report that has to leave the thread nor
        # the TaskExecutor that asks for them.
        try:
            return invokable.counters()
        except Exception:
            if not self._has_told_of_counters:
                self._has_told_of_counters = True
                _log.exception("the counters of %s cannot be read", self.name)
            return None

    def _call_loop(self, callback: Callable[..., None], *arguments: object) -> None:
        try:
            self._row.tell(callback, *arguments)
        except RuntimeError:
            # The loop is closed: the process ends and no report is read any more.
            _log.warning("%s has no JobMaster to report to", self.name)

    # ---- the loop ----

    def _reported(self, report: TaskReport, is_last: bool) -> None:
        if not self.state.is_terminal:
            self._enter(TASK_STATES[report.state])
            self._on_report(self, report)
        if is_last:
            self.ended.set()

    def _enter(self, target: TaskState) -> None:
        if target not in TASK_TRANSITIONS[self.state]:
            check_task_transition(self.state, target)  # which raises
        self.state = target
