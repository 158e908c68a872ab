"""JobTable: what a TaskExecutor has, or had, of each job: its attempts with their last reports, until it is released.

    add(job, attempt) ─► note(report) * ─► reports(job, attempts) ... forget(job)
                                       └─► sorted_out(job, named, running): what the next leader goes on with

An attempt's last report is kept after it was delivered: the JobMaster that takes a job over asks for it, since what
its predecessor heard may have been lost with it. Pure.

Held by: tests/taskexecutor/test_reattach.py
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator
from typing import NamedTuple

from engine.graph.deployment import TaskReport
from engine.ids import ExecutionAttemptId, JobId
from engine.taskexecutor.task_state import TaskState


class SortedOut(NamedTuple):
    """Attempts of a job whose leader was replaced."""

    #: named attempts that have ended: their named partitions are kept
    ended: tuple[ExecutionAttemptId, ...]
    #: attempts that were not named: all their state is removed
    unnamed: tuple[ExecutionAttemptId, ...]
    #: running attempts that were not named; they are cancelled first
    to_cancel: tuple[ExecutionAttemptId, ...]


class JobTable:
    """Attempts by job."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, dict[ExecutionAttemptId, TaskReport]] = {}
        #: epoch of the leader whose JobMaster last resumed each job
        self._attached: dict[JobId, int] = {}

    def __iter__(self) -> Iterator[JobId]:
        return iter(tuple(self._jobs))

    def __contains__(self, job_id: JobId) -> bool:
        return job_id in self._jobs

    def has(self, job_id: JobId, attempt: ExecutionAttemptId) -> bool:
        """Whether an attempt runs, or ran, here."""
        return attempt in self._jobs.get(job_id, ())

    def add(self, job_id: JobId, attempt: ExecutionAttemptId) -> None:
        """Add an attempt that begins."""
        report = TaskReport(attempt, str(TaskState.DEPLOYING))
        self._jobs.setdefault(job_id, {})[attempt] = report

    def note(self, job_id: JobId, report: TaskReport) -> None:
        """Keep the last report of an attempt; of a job that was released nothing is kept."""
        reports = self._jobs.get(job_id)
        if reports is not None and report.attempt in reports:
            reports[report.attempt] = report

    def attempts(self, job_id: JobId) -> tuple[ExecutionAttemptId, ...]:
        """Return all attempts of a job, oldest first."""
        return tuple(self._jobs.get(job_id, ()))

    def reports(self, job_id: JobId, attempts: Iterable[ExecutionAttemptId]) -> tuple[TaskReport, ...]:
        """Return the last report of each of those attempts that is known."""
        known = self._jobs.get(job_id, {})
        return tuple(known[attempt] for attempt in attempts if attempt in known)

    def sorted_out(
        self, job_id: JobId, named: Collection[ExecutionAttemptId], running: Container[ExecutionAttemptId]
    ) -> SortedOut:
        """Sort a job's attempts: those that continue, those that have ended, and those not named, which are removed.

        ``named``: by the JobMaster that goes on; ``running``: those that have not ended.
        """
        attempts = self.attempts(job_id)
        ended = tuple(attempt for attempt in attempts if attempt in named and attempt not in running)
        unnamed = tuple(attempt for attempt in attempts if attempt not in named)
        return SortedOut(ended, unnamed, tuple(attempt for attempt in unnamed if attempt in running))

    def forget(self, job_id: JobId) -> tuple[ExecutionAttemptId, ...]:
        """Remove a job; return its attempts."""
        self._attached.pop(job_id, None)
        return tuple(self._jobs.pop(job_id, ()))

    def attach(self, job_id: JobId, epoch: int) -> None:
        """Record that a JobMaster of that epoch goes on with a job."""
        self._attached[job_id] = epoch

    def is_attached(self, job_id: JobId, epoch: int) -> bool:
        """Whether a JobMaster of that epoch, or of a later one, goes on with a job."""
        return self._attached.get(job_id, 0) >= epoch
